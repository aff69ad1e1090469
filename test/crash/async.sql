-- SPDX-License-Identifier: Apache-2.0
-- Breaks the store on purpose: a commit is answered before it is on disk. What was acknowledged is lost when the server dies.
alter database pawl set synchronous_commit = off;
