-- SPDX-License-Identifier: Apache-2.0
-- The schema, and the record of the steps that were applied to it. Safe to run again: it is run before the record is read.
create schema if not exists pawl;
create table if not exists pawl.migration (
    name text primary key, -- of the step
    applied_at timestamptz not null default clock_timestamp(),
    applied_by text not null default session_user
);
