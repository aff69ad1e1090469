-- SPDX-License-Identifier: Apache-2.0
-- Headers, beside the payload, as long as which they are kept: one text, as pawl/headers.h says. NULL: none. From here on a row may have
-- an empty payload, where there are headers.
ALTER TABLE pawl_payload ADD COLUMN headers TEXT CHECK (length(CAST(headers AS BLOB)) BETWEEN 1 AND 16384);
