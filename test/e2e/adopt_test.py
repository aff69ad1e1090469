#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""adopt_test.py - OL-ADOPT: `pawl adopt` on real tables of the older layout, in a real server.

Usage: adopt_test.py PATH-OF-PAWL
"""

import copy
import json
import re
import subprocess
import sys
import threading
import time
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TOP / "test" / "support"))
import pg  # noqa: E402
import tap  # noqa: E402

PAWL = sys.argv.pop()
USAGE, DATA, NO_INPUT, UNAVAILABLE, CONFIG = 64, 65, 66, 69, 78  # sysexits
CANARY = "canary-7f31"  # in every payload: must appear in no output

TABLES = """
create table outbox_pending (outbox_id uuid, payload jsonb, next_attempt_at timestamptz,
                             created_at timestamptz default now());
create type attempt_state as enum ('DISPATCHING', 'DISPATCHED', 'RETRYABLE', 'FAILED', 'ZOMBIE_REQUEUE', 'LOST');
create table outbox_attempts (outbox_id uuid, attempt_no int, state attempt_state, claimed_at timestamptz,
                              claimed_by text, error_code text, error_text text, payment_id int, payload text);
create table payments (payment_id int, outbox_id uuid, body jsonb);
create function u(n int) returns uuid language sql immutable as $$
    select ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid $$;
-- The rows of a job's attempts, a letter each: D dispatching, S dispatched, R retryable, F failed, Z zombie; a minute apart.
create function tell(n int, letters text, gap int default 1) returns void language sql as $$
    insert into outbox_attempts (outbox_id, attempt_no, state, claimed_at, claimed_by, payment_id)
    select u(n), i * gap, (case substr(letters, i, 1) when 'D' then 'DISPATCHING' when 'S' then 'DISPATCHED'
                           when 'R' then 'RETRYABLE' when 'F' then 'FAILED' when 'Z' then 'ZOMBIE_REQUEUE'
                           else 'LOST' end)::attempt_state,
           date_trunc('s', now()) - interval '2 h' + i * interval '1 min', 'relay', n
    from generate_series(1, length(letters)) i; $$;
create function bill(n int) returns void language sql as $$
    insert into payments values (n, u(n), jsonb_build_object('n', n, 'canary', '%s')); $$;
create function wait(n int, due interval default '-1 min') returns void language sql as $$
    insert into outbox_pending values (u(n), jsonb_build_object('n', n, 'canary', '%s'), now() + due); $$;
""" % (CANARY, CANARY)

MAPPING = {
    "queue": "payments",
    "stale_after": "120s",
    "pending": {"schema": "public", "table": "outbox_pending", "id": "outbox_id", "payload": "payload",
                "due_at": "next_attempt_at", "created_at": "created_at"},
    "attempts": {"schema": "public", "table": "outbox_attempts", "id": "outbox_id", "number": "attempt_no",
                 "state": "state", "at": "claimed_at", "worker": "claimed_by", "error_code": "error_code",
                 "error_text": "error_text"},
    "claimed_payload": {"schema": "public", "table": "payments", "key": "outbox_id", "payload": "body"},
}


def u(number):
    return f"00000000-0000-4000-8000-{number:012}"


class Adopting(unittest.TestCase):
    """What all cases share: a database with the old tables, and the ways to look at both sides."""

    shards = 1
    name = "test"
    world = None  # one server for all of them

    def setUp(self):
        self.db = self.world.database(self.shards, self.name)
        self.sql(TABLES)
        self.mapping = copy.deepcopy(MAPPING)

    def sql(self, text, role=None):
        return self.world.sql(self.db, text, role)

    def adopt(self, *words, mapping=None, role=None):
        text = mapping if isinstance(mapping, str) else json.dumps(mapping or self.mapping)
        done = self.world.pawl(self.db, "adopt", "-", *words, input=text, role=role)
        self.assertNotIn(CANARY, done.stdout + done.stderr)  # NFR-003
        return done

    def report(self, *words, **more):
        done = self.adopt("--json", *words, **more)
        self.assertEqual(done.stderr, "")
        return json.loads(done.stdout)

    def classes(self, report):
        return {c["class"]: c["count"] for c in report["jobs"] if c["count"]}

    def adopted(self, *words, **more):
        report = self.report(*words, **more)
        self.assertTrue(report["is_done"], report)
        return self.classes(report)

    def assert_refused(self, exit_code, *complaints, words=(), **more):
        """Refused, and nothing at all has changed."""
        before = self.sql("select pawl_test.fingerprint()")
        done = self.adopt(*words, **more)
        self.assertEqual(done.returncode, exit_code, done.stdout + done.stderr)
        for complaint in complaints:
            self.assertIn(complaint, done.stderr)
        self.assertEqual(self.sql("select pawl_test.fingerprint()"), before)
        return done

    def job(self, number):
        rows = self.sql(f"select state, retries, lost_leases, attempts, lease_version, reason, next_attempt_at <= now(), "
                        f"priority, payload_len from pawl.jobs where id = '{u(number)}'")
        self.assertEqual(len(rows), 1, rows)  # Q-ONE-STATE
        return rows[0][:7]

    def ledger(self, number):
        return [" ".join(row) for row in self.sql(
            f"select attempt_no, outcome, reason, ended_by, lease_version from pawl.attempts "
            f"where job_id = '{u(number)}' order by attempt_no")]

    def claim_all(self, worker="w1"):
        """Claims and completes everything that is due; gives the ids in the order of the claim."""
        return [row[0] for row in self.sql(
            f"select c.outbox_id, pawl.complete_outbox_attempt(c.outbox_id, c.lease_token, '{worker}', 'DISPATCHED') "
            f"from pawl.claim_outbox_batch(1000, '{worker}', 30, 'payments') c")]


class ClassesTest(Adopting):
    def test_pending_rows_become_ready(self):
        self.sql("select wait(1), wait(2, '1 h'); insert into outbox_pending values (u(3), '{}', null)")
        self.assertEqual(self.adopted(), {"pending_due": 2, "pending_later": 1})
        self.assertEqual(self.job(1), ["Ready", "0", "0", "0", "0", "none", "t"])
        self.assertEqual(self.job(2), ["Ready", "0", "0", "0", "0", "none", "f"])
        self.assertEqual(self.job(3)[0], "Ready")
        self.assertEqual(self.sql(f"select convert_from(payload, 'UTF8')::jsonb ->> 'n' from pawl.job where id = '{u(1)}'"),
                         [["1"]])
        self.assertEqual(self.claim_all(), [u(1), u(3)])

    def test_open_dispatching_becomes_ready_with_a_zombie_row(self):
        self.sql("select tell(1, 'D'), tell(2, 'DRD'), bill(1), bill(2)")
        self.assertEqual(self.adopted(), {"dispatching_expired": 2})
        self.assertEqual(self.job(1), ["Ready", "0", "1", "1", "1", "expired", "t"])
        self.assertEqual(self.ledger(1), ["1 ZOMBIE_REQUEUE expired expiry 1"])
        self.assertEqual(self.job(2), ["Ready", "1", "1", "2", "2", "expired", "t"])
        self.assertEqual(self.ledger(2), ["1 RETRYABLE error holder 1", "2 ZOMBIE_REQUEUE expired expiry 2"])
        self.assertEqual(self.sql(f"select convert_from(payload, 'UTF8')::jsonb ->> 'n' from pawl.job where id = '{u(2)}'"),
                         [["2"]])

    def test_a_valid_old_lease_is_waited_for(self):
        self.sql("select tell(1, 'D'), bill(1); update outbox_attempts set claimed_at = now() - interval '20 s'")
        self.assertEqual(self.adopted(), {"dispatching_valid": 1})
        self.assertEqual(self.job(1), ["Ready", "0", "1", "1", "1", "expired", "f"])
        self.assertEqual(self.sql("select next_attempt_at between now() + interval '95 s' and now() + interval '100 s' "
                                  "from pawl.jobs"), [["t"]])
        self.assertEqual(self.claim_all(), [])

    def test_outcomes_are_renumbered_without_gaps(self):
        self.sql("select tell(1, 'DRDRDS', 3), tell(2, 'DRDF', 2), tell(3, 'DR'), wait(3), bill(2)")
        report = self.report()
        self.assertEqual(self.classes(report), {"pending_due": 1, "failed": 1, "dispatched": 1})
        self.assertEqual({r["class"]: r["count"] for r in report["rows"]},
                         {"outcomes": 6, "dispatching_open": 0, "dispatching_closed": 6, "late": 0})
        self.assertEqual(self.ledger(1), ["1 RETRYABLE error holder 1", "2 RETRYABLE error holder 2",
                                          "3 DISPATCHED none holder 3"])
        self.assertEqual(self.job(1), ["Succeeded", "2", "0", "3", "3", "none", ""])
        self.assertEqual(self.ledger(2), ["1 RETRYABLE error holder 1", "2 FAILED fatal holder 2"])
        self.assertEqual(self.job(2), ["Failed", "1", "0", "2", "2", "fatal", "t"])
        self.assertEqual(self.job(3), ["Ready", "1", "0", "1", "1", "error", "t"])

    def test_attempts_carry_times_worker_and_error(self):
        self.sql("""select tell(1, 'DRDS');
                    update outbox_attempts set error_code = 'E1', error_text = E'no\\tone\\x01' || repeat('x', 2000)
                    where attempt_no = 2;
                    update outbox_attempts set claimed_by = case attempt_no when 1 then 'relay 1' end""")
        self.adopted()
        self.assertEqual(self.sql("select a.worker, a.error_code, left(a.error_text, 8), octet_length(a.error_text), "
                                  "a.started_at = o.claimed_at, a.finished_at = o.claimed_at + interval '1 min' "
                                  "from pawl.attempts a join outbox_attempts o "
                                  "on o.outbox_id = a.job_id and o.attempt_no = 2 * a.attempt_no - 1 order by a.attempt_no"),
                         [["relay?1", "E1", "no", "one?x", "1024", "t", "t"], ["", "", "", "", "t", "t"]])

    def test_a_job_that_was_to_be_retried_and_is_not_pending_becomes_ready(self):
        self.sql("select tell(1, 'DR'), tell(2, 'DZ'), bill(1), bill(2)")
        self.assertEqual(self.adopted(), {"retryable": 2})
        self.assertEqual(self.job(1), ["Ready", "1", "0", "1", "1", "error", "t"])
        self.assertEqual(self.job(2), ["Ready", "0", "1", "1", "1", "expired", "t"])
        self.assertEqual(sorted(self.claim_all()), [u(1), u(2)])

    def test_a_pending_row_whose_last_attempt_is_open_gets_its_zombie_row(self):
        self.sql("select tell(1, 'D'), wait(1)")
        self.assertEqual(self.adopted(), {"pending_due": 1})
        self.assertEqual(self.ledger(1), ["1 ZOMBIE_REQUEUE expired expiry 1"])
        self.assertEqual(self.job(1)[:4], ["Ready", "0", "1", "1"])

    def test_counters_begin_again_after_a_failure(self):
        self.sql("select tell(1, 'DRDRDFDR'), tell(2, 'DRDF'), wait(2), wait(1)")
        self.adopted()
        self.assertEqual(self.job(1)[:4], ["Ready", "1", "0", "4"])
        self.assertEqual(self.job(2)[:4], ["Ready", "0", "0", "2"])

    def test_what_came_after_success_is_left_out(self):  # Q-NEVER-AGAIN
        self.sql("select tell(1, 'DDSS'), tell(2, 'DSF'), tell(3, 'DSDR')")
        report = self.report()
        self.assertEqual(self.classes(report), {"dispatched": 3})
        self.assertEqual({r["class"]: r["count"] for r in report["rows"]},
                         {"outcomes": 3, "dispatching_open": 0, "dispatching_closed": 5, "late": 3})
        for number in (1, 2, 3):
            self.assertEqual(self.ledger(number), ["1 DISPATCHED none holder 1"])
            self.assertEqual(self.job(number)[0], "Succeeded")

    def test_failed_jobs_can_be_redriven(self):
        self.sql("select tell(1, 'DF'), bill(1)")
        self.assertEqual(self.adopted(), {"failed": 1})
        self.assertEqual(self.sql(f"select verdict from pawl.redrive_batch(0, array['{u(1)}'::uuid])"), [["OK"]])
        self.assertEqual(self.claim_all(), [u(1)])
        self.assertEqual(self.ledger(1), ["1 FAILED fatal holder 1", "2 DISPATCHED none holder 2"])

    def test_failed_jobs_without_payload(self):
        self.sql("select tell(1, 'DF'), tell(2, 'D'), bill(2)")
        self.assert_refused(DATA, "1 job: its payload is not in public.payments", u(1))
        self.mapping["failed_without_payload"] = "discard"
        self.assertEqual(self.adopted(), {"failed_without_payload": 1, "dispatching_expired": 1})
        self.assertEqual(self.sql("select is_discarded, payload is null, payload_len from pawl.dead_letter"), [["t", "t", "0"]])
        self.assertEqual(self.sql(f"select verdict from pawl.redrive_batch(0, array['{u(1)}'::uuid])"), [["GONE"]])

    def test_order_is_kept(self):  # Q-FIFO
        self.sql("select wait(5, '-5 min'), wait(3, '-3 min'), wait(4, '-4 min'), wait(9, '-9 min'), tell(1, 'D'), bill(1)")
        self.adopted()
        self.assertEqual(self.claim_all(), [u(1), u(9), u(5), u(4), u(3)])  # what came back goes first

    def test_order_without_due_times(self):  # Q-FIFO
        del self.mapping["pending"]["due_at"]
        self.sql("select wait(n) from generate_series(1, 5) n; update outbox_pending set created_at = now() - "
                 "case outbox_id when u(3) then interval '2 min' when u(5) then interval '1 min' else interval '0' end")
        self.adopted()
        self.assertEqual(self.claim_all(), [u(3), u(5), u(1), u(2), u(4)])


class PayloadTest(Adopting):
    def test_payload_in_the_newest_attempt_that_has_one(self):
        self.mapping["claimed_payload"] = {"payload": "payload"}
        self.sql("select tell(1, 'DRD'); update outbox_attempts set payload = 'p' || attempt_no where attempt_no < 3")
        self.assertEqual(self.adopted(), {"dispatching_expired": 1})
        self.assertEqual(self.sql("select convert_from(payload, 'UTF8') from pawl.job"), [["p2"]])

    def test_payload_by_another_column_of_the_attempt(self):
        self.mapping["claimed_payload"].update(key="payment_id", match="payment_id")
        self.sql("select tell(1, 'D'), bill(1); update payments set outbox_id = null")
        self.assertEqual(self.adopted(), {"dispatching_expired": 1})

    def test_bytes_stay_as_they_are(self):
        self.sql("""alter table outbox_pending alter payload type bytea using convert_to(payload::text, 'UTF8');
                    insert into outbox_pending values (u(1), '\\x00ff10')""")
        self.adopted()
        self.assertEqual(self.sql("select payload from pawl.job"), [["\\x00ff10"]])

    def test_missing_payloads_are_listed_and_stop_the_run(self):
        self.sql("select wait(1), tell(2, 'D'), tell(3, 'DR'), tell(4, 'D'), bill(4), tell(5, 'DS')")
        done = self.assert_refused(DATA, "nothing was adopted", "2 jobs: its payload is not in public.payments", u(2), u(3))
        self.assertNotIn(u(4), done.stderr)
        report = self.report()
        self.assertFalse(report["is_done"])
        self.assertEqual([(p["count"], p["ids"]) for p in report["problems"]], [(2, [u(2), u(3)])])
        self.assertEqual(self.sql("select count(*) from pawl.job"), [["0"]])

    def test_no_place_for_payloads_in_the_mapping(self):
        del self.mapping["claimed_payload"]
        self.sql("select tell(1, 'D')")
        self.assert_refused(DATA, "the mapping does not say where its payload is (claimed_payload)")
        self.sql("delete from outbox_attempts; select wait(2), tell(3, 'DS')")
        self.assertEqual(self.adopted(), {"pending_due": 1, "dispatched": 1})

    def test_other_rows_that_cannot_be_adopted(self):
        for setup, why in (
                ("insert into outbox_pending values (null, '{}')", "it has no id"),
                ("insert into outbox_pending values (u(1), null)", "its payload is NULL in the pending table"),
                ("select wait(1), wait(1)", "it stands in the pending table more than once"),
                ("select tell(1, 'D'), bill(1), bill(1)", "its payload stands in public.payments more than once"),
                ("select tell(1, 'DX'), bill(1)", "an attempt has a state that the mapping does not name"),
                ("select tell(1, 'D'), bill(1); update outbox_attempts set state = null", "an attempt has a state"),
                ("select tell(1, 'DS'), wait(1)", "it is pending although an attempt is DISPATCHED"),
                ("select tell(1, 'DSD'), bill(1)", "it was claimed again after it was DISPATCHED"),
                ("select tell(1, 'DS'); update outbox_attempts set claimed_at = null", "a time is missing"),
                ("select wait(1); update outbox_pending set next_attempt_at = 'infinity'", "a time is missing, infinite"),
                ("select wait(1); update outbox_pending set created_at = '1066-10-14'", "a time is missing, infinite or before 1970"),
                ("select wait(0); update outbox_pending set outbox_id = '00000000-0000-0000-0000-000000000000'", "its id is the UUID of zeros"),
                ("select wait(1); update pawl.config set payload_max = 10", "its payload is larger than 10 bytes"),
                (f"select wait(1), pawl.enqueue('other', 'x', '{u(1)}')", "Pawl has, or had, a job of this id")):
            with self.subTest(why):
                self.setUp()
                self.sql(setup)
                self.assert_refused(DATA, "nothing was adopted", f"1 job: {why}" if "stands in the pend" not in why else why)


class RunsTest(Adopting):
    def fill(self):
        self.sql("select wait(1), wait(2, '1 h'), tell(3, 'D'), bill(3), tell(4, 'DF'), bill(4), tell(5, 'DS'), "
                 "tell(6, 'DR'), bill(6)")

    def test_dry_run_changes_nothing(self):
        self.fill()
        before = self.world.dump(self.db)
        done = self.adopt("--dry-run")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for line in ("pending_due +1  Ready now", "pending_later +1  Ready, due when it was due", "failed +1  Failed",
                     "dispatching_expired +1  Ready now, with a ZOMBIE_REQUEUE row", "dispatched +1  Succeeded",
                     "6 jobs would be adopted; nothing was changed", u(3)):
            self.assertRegex(done.stdout, line)
        report = self.report("--dry-run", "--retire")
        self.assertEqual((report["is_dry_run"], report["is_done"], report["adopted"]), (True, False, 0))
        self.assertEqual(self.world.dump(self.db), before)

    def test_a_dry_run_waits_for_nobody(self):
        self.fill()
        with self.world.session(self.db) as other:
            other.run("begin")
            other.run("lock table outbox_pending, outbox_attempts in share row exclusive mode")
            self.assertEqual(self.report("--dry-run")["is_dry_run"], True)

    def test_a_second_run_finds_nothing_to_do(self):
        self.fill()
        old = self.sql("select * from outbox_pending order by 1; select * from outbox_attempts order by 1, 2")
        self.assertEqual(sum(self.adopted().values()), 6)
        self.assertEqual(self.sql("select * from outbox_pending order by 1; select * from outbox_attempts order by 1, 2"), old)
        before = self.world.dump(self.db)
        done = self.adopt()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("Nothing to do", done.stdout)
        self.assertEqual(self.adopted(), {"adopted_before": 6})
        self.assertEqual(self.world.dump(self.db), before)

    def test_a_second_run_adopts_what_has_come_since(self):
        self.fill()
        self.adopted()
        self.claim_all()
        self.sql("select wait(7), tell(1, 'DR')")
        self.assertEqual(self.adopted(), {"pending_due": 1, "adopted_before": 6})
        self.assertEqual(self.claim_all(), [u(7)])

    def test_what_was_pruned_is_not_adopted_again(self):
        self.fill()
        self.adopted()
        self.sql("""select pawl.queue_set('payments', 30000, null, 3, 10, 500, 30000, 1, 1);
                    select pg_sleep(0.01); select pawl.prune(0, 1000)""")
        self.assertEqual(self.sql("select count(*) from pawl.attempt where outcome = 0"), [["0"]])
        self.assertEqual(self.adopted(), {"adopted_before": 6})

    def test_retire_renames_in_the_same_transaction(self):
        self.fill()
        report = self.report("--retire")
        self.assertEqual((report["is_done"], report["is_retired"], report["adopted"]), (True, True, 6))
        self.assertEqual(self.sql("select relname from pg_class where relname like 'outbox%' and relkind = 'r' order by 1"),
                         [["outbox_attempts_adopted"], ["outbox_pending_adopted"]])
        for words in ((), ("--retire",), ("--dry-run",)):
            again = self.report(*words)
            self.assertEqual(self.classes(again), {"adopted_before": 6})

    def test_retire_after_an_earlier_adoption(self):
        self.fill()
        self.adopted()
        self.assertTrue(self.report("--retire")["is_retired"])

    def test_retire_that_cannot_be_adopts_nothing(self):
        self.fill()
        self.sql("create table outbox_attempts_adopted (x int)")
        self.assert_refused(UNAVAILABLE, "42P07", words=("--retire",))

    def test_failure_in_the_middle_rolls_back_whole(self):
        self.fill()
        self.sql("create function no() returns trigger language plpgsql as $$ begin raise exception 'no'; end $$")
        for table in ("job", "attempt", "dead_letter", "adopted"):
            with self.subTest(table):
                self.sql(f"create trigger no before insert on pawl.{table} execute function no()")
                self.assert_refused(UNAVAILABLE, "SQLSTATE P0001", words=("--retire",))
                self.sql(f"drop trigger no on pawl.{table}")
        self.assertEqual(sum(self.adopted().values()), 6)

    def test_adopted_ids_can_never_be_enqueued_again(self):  # Q-ENQUEUE, Q-NEVER-AGAIN
        self.fill()
        self.adopted()
        for number in range(1, 7):
            self.assertEqual(self.sql(f"select verdict from pawl.enqueue_batch(0, array['payments'], array['{u(number)}'::uuid],"
                                      f" array['x'::bytea])"), [["EXISTS"]])
        self.assertEqual(sorted(self.claim_all()), [u(1), u(3), u(6)])
        self.assertEqual(self.ledger(3), ["1 ZOMBIE_REQUEUE expired expiry 1", "2 DISPATCHED none holder 2"])

    def test_many_rows(self):
        self.sql("""insert into outbox_pending select gen_random_uuid(), '{"n": 1}', now() from generate_series(1, 20000);
                    insert into outbox_attempts (outbox_id, attempt_no, state, claimed_at)
                    select i, n, (case n when 1 then 'DISPATCHING' else 'DISPATCHED' end)::attempt_state, now()
                    from (select gen_random_uuid() i from generate_series(1, 20000)) j, generate_series(1, 2) n""")
        self.assertEqual(self.adopted(), {"pending_due": 20000, "dispatched": 20000})


class OthersTest(Adopting):
    """What others do to the same tables at the same time."""

    def start(self, *words):
        process = subprocess.Popen([PAWL, "adopt", "-", "--json", *words], env=self.world.environment(self.db),
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        process.stdin.write(json.dumps(self.mapping))
        process.stdin.close()
        process.stdin = None
        return process

    def await_lock(self, relation):
        """Until somebody waits for a lock on a table."""
        for _ in range(1000):
            if self.sql(f"select 1 from pg_locks where relation = '{relation}'::regclass and not granted"):
                return
            time.sleep(0.02)
        self.fail(f"nobody waits for {relation}")

    def test_a_writer_in_the_way_is_waited_for_and_its_rows_are_adopted(self):
        with self.world.session(self.db) as writer:
            writer.run("begin")
            writer.run("select wait(1)")
            process = self.start("--lock-timeout", "30s")
            self.await_lock("outbox_pending")
            writer.run("commit")
        out, err = process.communicate(timeout=60)
        self.assertEqual(err, "")
        self.assertEqual(self.classes(json.loads(out)), {"pending_due": 1})

    def test_a_writer_that_stays_in_the_way(self):
        with self.world.session(self.db) as writer:
            writer.run("begin")
            writer.run("select tell(1, 'D')")
            done = self.adopt("--lock-timeout", "100ms")
            self.assertEqual(done.returncode, UNAVAILABLE)
            self.assertIn("could not be locked within the lock timeout of 100 ms", done.stderr)
            self.assertIn("nothing was done", done.stderr)

    def test_no_writer_slips_in_between(self):
        self.sql("select wait(1)")
        with self.world.session(self.db) as blocker, self.world.session(self.db) as writer:
            blocker.run("begin")
            blocker.run("lock table pawl.adopted in share mode")  # adopt stops where it writes there
            process = self.start("--lock-timeout", "30s")
            self.await_lock("pawl.adopted")
            writer.run("set lock_timeout = '100ms'")
            self.assertIn("lock timeout", writer.run("select wait(2)"))
            self.assertIn("lock timeout", writer.run("delete from outbox_pending"))
            self.assertIn("lock timeout", writer.run("select tell(1, 'D')"))
            self.assertIn("1", writer.run("select count(*) from outbox_pending"))  # readers go on
            blocker.run("commit")
        out, err = process.communicate(timeout=60)
        self.assertEqual(err, "")
        self.assertEqual(self.classes(json.loads(out)), {"pending_due": 1})

    def test_an_enqueue_of_the_same_id_at_the_same_time(self):
        """Of a job that is live, and of one that the old table says is done."""
        for setup in ("select wait(1)", "select tell(1, 'DS')"):
            for end, code in (("commit", UNAVAILABLE), ("rollback", 0)):
                with self.subTest((setup, end)):
                    self.setUp()
                    self.sql(setup)
                    with self.world.session(self.db) as producer:
                        producer.run("begin")
                        producer.run(f"select pawl.enqueue('elsewhere', 'x', '{u(1)}')")
                        process = self.start("--lock-timeout", "30s")
                        self.await_transaction()
                        producer.run(end)
                    out, err = process.communicate(timeout=60)
                    self.assertEqual(process.returncode, code, out + err)
                    self.assertEqual(len(self.sql("select 1 from pawl.jobs")), 1)  # Q-ONE-STATE

    def await_transaction(self):
        for _ in range(1000):
            if self.sql("select 1 from pg_locks where locktype = 'transactionid' and not granted"):
                return
            time.sleep(0.02)
        self.fail("nobody waits for a transaction")

    def test_an_enqueue_that_comes_second_finds_the_history(self):
        self.sql("select tell(1, 'DS')")
        with self.world.session(self.db) as blocker:
            blocker.run("begin")
            blocker.run("lock table pawl.adopted in share mode")
            process = self.start("--lock-timeout", "30s")
            self.await_lock("pawl.adopted")
            told = []
            late = threading.Thread(target=lambda: told.append(self.sql(
                f"select verdict from pawl.enqueue_batch(0, array['q'], array['{u(1)}'::uuid], array['x'::bytea])")))
            late.start()
            self.await_transaction()
            blocker.run("commit")
            late.join()
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0)
        self.assertEqual(told, [[["EXISTS"]]])

    def test_two_at_once(self):
        self.sql("select wait(1), tell(2, 'D'), bill(2)")
        processes = [self.start("--lock-timeout", "30s") for _ in range(3)]
        counts = sorted(json.loads(p.communicate(timeout=60)[0])["adopted"] for p in processes)
        self.assertEqual(counts, [0, 0, 2])


class IdsTest(Adopting):
    shards = 8

    def test_uuids_get_the_right_shard_bits(self):
        self.sql("select wait(n) from generate_series(1, 200) n; select tell(n, 'D'), bill(n) from generate_series(201, 250) n;"
                 "select tell(n, 'DS') from generate_series(251, 300) n")
        self.assertEqual(self.adopted(), {"pending_due": 200, "dispatching_expired": 50, "dispatched": 50})
        self.assertEqual(self.sql("""
            select count(*), count(distinct shard), bool_and(pawl.id_shard(id, 8) = shard),
                   bool_and(pawl.shard_hash('payments', null, id) % 8 = shard) from pawl.jobs"""), [["300", "8", "t", "t"]])
        # But for these twelve bits they are what they were.
        self.assertEqual(self.sql("select count(*) from pawl.adopted where left(id::text, 15) || '000' || substr(id::text, 19) "
                                  "= left(old_id, 15) || '000' || substr(old_id, 19)"), [["300"]])
        self.assertEqual(len(self.claim_all()), 250)
        self.assertEqual(self.sql("select count(*) from pawl.jobs where state <> 'Succeeded'"), [["0"]])
        self.assertEqual(self.adopted(), {"adopted_before": 300})

    def test_numbers_and_texts_become_uuids(self):
        for kind, value in (("int8", "n"), ("text", "'order ' || n"), ("text", "u(n)::text")):
            with self.subTest(kind + value):
                self.setUp()
                self.sql(f"alter table outbox_pending drop outbox_id, add outbox_id {kind};"
                         f"alter table outbox_attempts drop outbox_id, add outbox_id {kind};"
                         f"insert into outbox_pending (payload, outbox_id) select '{{}}', {value} from generate_series(1, 60) n;"
                         f"insert into outbox_attempts (attempt_no, state, claimed_at, outbox_id) "
                         f"select 1, 'DISPATCHED', now(), {value} from generate_series(61, 80) n")
                self.assertEqual(self.adopted(), {"pending_due": 60, "dispatched": 20})
                first = self.sql("select old_id, id from pawl.adopted order by 1")
                self.assertEqual(self.sql("select bool_and(pawl.shard_hash('payments', null, id) % 8 = shard), "
                                          "bool_and(pawl.id_shard(id, 8) = shard) from pawl.jobs"), [["t", "t"]])
                self.assertEqual(len(self.claim_all()), 60)
                # The same old ids become the same in another database.
                self.sql("truncate pawl.adopted, pawl.job; alter table pawl.attempt disable trigger user; truncate pawl.attempt")
                self.adopted()
                self.assertEqual(self.sql("select old_id, id from pawl.adopted order by 1"), first)

    def test_ids_that_become_the_same(self):
        self.sql("alter table outbox_pending alter outbox_id type text;"
                 "insert into outbox_pending values ('ABCDEFAB-0000-4000-8000-000000000001', '{}'),"
                 "('abcdefab-0000-4000-8000-000000000001', '{}'), (repeat('x', 256), '{}')")
        self.assert_refused(DATA, "2 jobs: another old id becomes the same id", "1 job: its id is longer than 255 bytes")


class NamesTest(Adopting):
    def odd(self, text):
        """The old tables and the mapping under names that are no plain words."""
        names = {"outbox_pending": f"Pending {text}", "outbox_attempts": f'"{text}"', "payments": f"pay.{text}"}
        columns = {"outbox_id": f"{text} id", "payload": f"{text}'p", "claimed_at": f"At;{text}", "state": f"{text}\\state",
                   "attempt_no": f"no%{text}"}
        quoted = lambda name: '"' + name.replace('"', '""') + '"'  # noqa: E731
        self.sql(f"create schema {quoted('S ' + text)}")
        for table, name in names.items():
            for column, other in columns.items():
                self.sql(f"do $do$ begin alter table {table} rename {column} to {quoted(other)};"
                         f"exception when undefined_column then null; end $do$")
            self.sql(f"alter table {table} rename to {quoted(name)}; alter table {quoted(name)} "
                     f"set schema {quoted('S ' + text)}")
        for part in ("pending", "attempts", "claimed_payload"):
            entry = self.mapping[part]
            entry["schema"] = "S " + text
            entry["table"] = names[entry["table"]]
            for key, value in entry.items():
                entry[key] = columns.get(value, value)

    def test_odd_names(self):
        for text in ('A "b" c', "x; drop table t --", "%I %s $1", "$sql$", "\\'", "é ü"):
            with self.subTest(text):
                self.setUp()
                self.sql("select wait(1), wait(2), tell(3, 'DR'), wait(3), tell(4, 'D'), bill(4)")
                self.odd(text)
                self.assertEqual(self.adopted("--retire"), {"pending_due": 3, "dispatching_expired": 1})
                self.assertEqual(self.report()["jobs"][0]["count"], 4)

    def test_names_are_never_sql(self):
        self.sql("select wait(1); create table victim (x int)")
        evil = ['outbox_id"; drop table victim; --', "outbox_id::text); drop table victim; --", "ctid"]
        for part in ("pending", "attempts", "claimed_payload"):
            for key in self.mapping[part]:
                for value in evil:
                    mapping = copy.deepcopy(self.mapping)
                    mapping[part][key] = value
                    done = self.adopt("--dry-run", mapping=mapping)
                    self.assertEqual(done.returncode, CONFIG, (part, key, value))
                    self.assertIn(f"{part}.", done.stderr)
        for value in ("x'; drop table victim; --", "x' || (select 'y') || '", "$q$"):
            self.mapping["states"] = {"failed": value}
            self.assertEqual(self.report("--dry-run")["jobs"][0]["count"], 1)
        self.assertEqual(self.sql("select count(*) from victim, outbox_pending"), [["0"]])

    def test_other_words_for_states(self):
        self.sql("alter table outbox_attempts alter state type text; select tell(1, 'DR'), tell(2, 'D'), bill(1), bill(2)"
                 .replace("; select", "; create or replace function tell(n int, letters text, gap int default 1) returns void "
                          "language sql as $$ insert into outbox_attempts (outbox_id, attempt_no, state, claimed_at) "
                          "select u(n), i, substr(letters, i, 1), now() - interval '1 h' from generate_series(1, "
                          "length(letters)) i $$; select"))
        self.mapping["states"] = {"dispatching": "D", "retryable": "R", "dispatched": "S", "failed": "F", "zombie_requeue": "Z"}
        self.assertEqual(self.adopted(), {"dispatching_expired": 1, "retryable": 1})

    def test_pawls_own_tables_and_the_systems_are_refused(self):
        for schema, table in (("pawl", "job"), ("pg_catalog", "pg_class"), ("public", "outbox_attempts"), ("none", "none")):
            self.mapping["pending"].update(schema=schema, table=table)
            self.assert_refused(CONFIG, ".table is")

    def test_an_id_cannot_control_the_terminal(self):
        self.sql("alter table outbox_pending alter outbox_id type text;"
                 "insert into outbox_pending values (E'\\x1b[31mred', '{}')")
        done = self.adopt("--dry-run")
        self.assertNotIn("\x1b", done.stdout)
        self.assertIn("?[31mred", done.stdout)


class RightsTest(Adopting):
    name = "rights"

    def setUp(self):
        super().setUp()
        self.sql("""select wait(1);
            do $$ begin create role stranger login; create role worker login; create role boss login;
            exception when duplicate_object then null; end $$;
            select pawl.grant_runtime('worker');
            do $$ declare r record; begin
                execute 'alter schema pawl owner to boss';
                for r in select oid::regclass n from pg_class where relnamespace = 'pawl'::regnamespace and relkind in ('r', 'v') loop
                    execute format('alter table %s owner to boss', r.n); end loop;
                for r in select oid::regclass n from pg_class c where relnamespace = 'pawl'::regnamespace and relkind = 'S'
                         and not exists (select from pg_depend d where d.objid = c.oid and d.deptype in ('a', 'i')) loop
                    execute format('alter sequence %s owner to boss', r.n); end loop;
                for r in select oid::regprocedure n from pg_proc where pronamespace = 'pawl'::regnamespace loop
                    execute format('alter function %s owner to boss', r.n); end loop;
            end $$;""")

    def test_whoever_is_not_the_owner_is_told_so(self):
        for role in ("stranger", "worker"):
            self.assert_refused(CONFIG, "owner of the schema pawl", role=role)
        self.sql("grant execute on all functions in schema pawl to worker")
        self.assert_refused(CONFIG, "the role worker is not the owner of the schema pawl: call as boss", role="worker")

    def test_the_owner_is_told_what_he_lacks(self):
        self.assert_refused(CONFIG, "boss may not read public.outbox_pending", role="boss")
        self.sql("grant select on outbox_pending, outbox_attempts, payments to boss")
        self.assertEqual(self.report("--dry-run", role="boss")["jobs"][0]["count"], 1)
        self.assert_refused(CONFIG, "boss may not lock public.outbox_pending: grant update on it", role="boss")
        self.sql("grant update on outbox_pending, outbox_attempts to boss")
        self.assert_refused(CONFIG, "boss may not rename public.outbox_pending: it belongs to", role="boss", words=("--retire",))
        self.assertEqual(self.adopted(role="boss"), {"pending_due": 1})

    def test_rows_that_are_hidden_from_the_owner_are_not_overlooked(self):
        self.sql("grant select, update on outbox_pending, outbox_attempts, payments to boss;"
                 "alter table outbox_pending enable row level security;"
                 "create policy none on outbox_pending using (false)")
        self.assert_refused(CONFIG, "the role lacks a privilege", role="boss")


class MappingTest(Adopting):
    def assert_mapping(self, text, *complaints):
        done = self.adopt(mapping=text)
        self.assertEqual((done.returncode, done.stdout), (CONFIG, ""), done.stderr)
        for complaint in complaints:
            self.assertIn(complaint, done.stderr)

    def test_every_needed_key_is_missed_by_its_name(self):
        for path in ("queue", "stale_after", *(f"{part}.{key}" for part, keys in (
                ("pending", ("schema", "table", "id", "payload")),
                ("attempts", ("schema", "table", "id", "number", "state", "at"))) for key in keys)):
            mapping = copy.deepcopy(self.mapping)
            holder, _, key = path.rpartition(".")
            del (mapping[holder] if holder else mapping)[key]
            self.assert_mapping(json.dumps(mapping), f"{path} is missing")
        for key in ("schema", "table", "key", "payload"):
            mapping = copy.deepcopy(self.mapping)
            del mapping["claimed_payload"][key]
            self.assert_mapping(json.dumps(mapping), f"claimed_payload.{key} is missing")

    def test_unknown_keys_are_named_with_their_line(self):
        for text, complaint in (
                ('{\n "queu": "x"}', "line 2: queu is not a key of the mapping; did you mean queue?"),
                ('{"pending": {\n\n  "tabel" : "x"}}', "line 3: pending.tabel is not a key of the mapping; did you mean "
                 "pending.table?"),
                ('{"attempts": {"id": "x"}, "pending":\n{"zzzzzzzz": "x"}}', "line 2: pending.zzzzzzzz is not a key"),
                ('{"pending.table": "x"}', "pending.table is not a key"),
                ('{"a\\u0062": "x"}', "ab is not a key"),
                ('{"%s": "x"}' % ("y" * 5000), "is not a key")):
            self.assert_mapping(text, complaint)

    def test_values_of_another_kind(self):
        for text, complaint in (
                ('{"queue": 5}', "line 1: queue must be a text in quotes"),
                ('{"queue": null}', "queue must be a text"),
                ('{\n"pending": "x"}', "line 2: pending must be an object"),
                ('{"pending": {"table": {"a": "b"}}}', "pending.table must be a text"),
                ("[]", "must be a JSON object"), ('"x"', "not JSON"), ("", "line 1, column 0: not JSON"),
                ('{"queue": "a"\n "x": 1}', "line 2"), ('{"queue": "a", "queue": "b"}', "duplicate object key"),
                ('{"queue": "a"} x', "not JSON"), ('{"queue": "\\u0000"}', "not JSON"), ("[" * 5000, "not JSON"),
                (json.dumps({**MAPPING, "queue": "a b"}), 'queue "a" goes on with byte 0x20'),
                (json.dumps({**MAPPING, "queue": "x" * 129}), "queue"),
                (json.dumps({**MAPPING, "stale_after": "120"}), "stale_after"),
                (json.dumps({**MAPPING, "failed_without_payload": "no"}), "it must be refuse or discard"),
                (json.dumps({**MAPPING, "pending": {**MAPPING["pending"], "id": ""}}), "pending.id is empty"),
                (json.dumps({**MAPPING, "pending": {**MAPPING["pending"], "id": "x" * 64}}), "pending.id is too long"),
                (json.dumps({**MAPPING, "pending": {**MAPPING["pending"], "id": "a\nb"}}), "without control characters"),
                (json.dumps({**MAPPING, "pending": {**MAPPING["pending"], "id": "nope"}}), "pending.id is nope; it must be a "
                 "column of public.outbox_pending"),
                (json.dumps({**MAPPING, "attempts": {**MAPPING["attempts"], "at": "attempt_no"}}), "of type timestamptz"),
                (" " * 70000, "more than 65536 bytes")):
            with self.subTest(complaint):
                self.assert_mapping(text, complaint)

    def test_timestamps_without_zone_count_as_utc(self):
        self.sql("alter table outbox_attempts alter claimed_at type timestamp using claimed_at at time zone 'UTC';"
                 "alter database " + self.db + " set timezone = 'Asia/Tokyo'; select tell(1, 'DS')")
        self.sql("update outbox_attempts set claimed_at = timestamp '2026-01-02 03:04:05'")
        self.adopted()
        self.sql("alter database " + self.db + " reset timezone")
        self.assertEqual(self.sql("select finished_at = '2026-01-02 03:04:05+00' from pawl.attempts"), [["t"]])

    def test_words(self):
        for words, code, complaint in (((), USAGE, "say MAPPING"), (("/none/such.json",), NO_INPUT, "/none/such.json"),
                                       (("-", "--dry"), USAGE, "did you mean --dry-run?"),
                                       (("-", "--lock-timeout", "5"), USAGE, "--lock-timeout"),
                                       ((str(TOP),), NO_INPUT, "")):
            done = self.world.pawl(self.db, "adopt", *words)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(complaint, done.stderr)
        self.assertIn("examples:", self.world.pawl(self.db, "adopt", "--help").stdout)

    def test_progress_is_for_terminals(self):
        done = subprocess.run(["script", "-qec", f"{PAWL} adopt - --dry-run", "/dev/null"], capture_output=True, text=True,
                              env=self.world.environment(self.db), input=json.dumps(self.mapping) + "\n\x04", check=False)
        self.assertIn("reading the attempts", done.stdout)


class ManualTest(Adopting):
    """docs/adopting.md shows what really happens."""

    def test_the_worked_example(self):
        text = (TOP / "docs" / "adopting.md").read_text()
        example = text.split("## A worked example")[1].split("\n## ")[0]
        blocks = re.findall(r"^```(\w+)\n(.*?)^```$", example, re.MULTILINE | re.DOTALL)
        self.assertEqual([kind for kind, _ in blocks], ["sql", "json", "sh", "text", "sh", "sql"])
        self.sql("drop table outbox_pending, outbox_attempts, payments cascade")
        self.sql(blocks[0][1])
        done = self.adopt("--dry-run", mapping=blocks[1][1])
        self.assertEqual(done.stdout, blocks[3][1])
        self.assertEqual(blocks[2][1], "pawl adopt payments.json --dry-run\n")
        self.assertEqual(blocks[4][1], "pawl adopt payments.json --retire\n")
        self.assertTrue(self.report("--retire", mapping=blocks[1][1])["is_retired"])
        self.assertEqual(len(self.sql(blocks[5][1])), 4)

    def test_every_key_is_explained(self):
        text = (TOP / "docs" / "adopting.md").read_text()
        source = (TOP / "src" / "store" / "adopt.c").read_text()
        keys = re.findall(r'^    \{"([a-z_.]+)", (?:true|false)\}', source, re.MULTILINE)
        self.assertGreater(len(keys), 20)
        for key in keys:
            self.assertIn(f"| `{key}` |", text)


if __name__ == "__main__":
    with pg.World(PAWL) as Adopting.world:
        tap.main()
