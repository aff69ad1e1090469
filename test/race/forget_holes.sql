-- SPDX-License-Identifier: Apache-2.0
-- Broken on purpose: marks without holes.
create function pawl.forget() returns trigger language plpgsql as $$
begin
    new.holes := '{}';
    new.hole_seqs := '{}';
    return new;
end $$;
create trigger forget before insert on pawl.mark for each row execute function pawl.forget();
