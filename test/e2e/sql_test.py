#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sql_test.py - OL-ANY-CLIENT: runs every example in SQL of docs/sql.md, operating.md, worklease.md, webhooks.md and
fencing.md as it stands there.

Usage: sql_test.py PATH-OF-PAWL. Needs psycopg2.
"""

import re
import subprocess
import sys
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TOP / "test" / "support"))
import pg  # noqa: E402
import tap  # noqa: E402

PAWL = sys.argv.pop()
SQL_MD = (TOP / "docs" / "sql.md").read_text()
OPERATING_MD = (TOP / "docs" / "operating.md").read_text()
WORKLEASE_MD = (TOP / "docs" / "worklease.md").read_text()
WEBHOOKS_MD = (TOP / "docs" / "webhooks.md").read_text()
FENCING_MD = (TOP / "docs" / "fencing.md").read_text()
ROLES = """
do $$ begin
    if to_regrole('app') is null then create role app login; create role looker login; end if;
end $$;
grant create, usage on schema public to app;
select pawl.grant_runtime('app'), pawl.grant_reader('looker');
"""


def blocks(text, kind):
    return re.findall(rf"^```{kind}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def section(text, title):
    """What stands under a heading, up to the next of its rank."""
    return re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)[1]


class Documented(unittest.TestCase):
    world = None

    def setUp(self):
        self.db = self.world.database()
        self.world.sql(self.db, ROLES)

    def one(self, sql):
        return self.world.sql(self.db, sql)[0][0]

    def psql(self, text, role, is_stopping=True):
        """Run a script as somebody would paste it. Gives its output and its complaints."""
        env = self.world.environment(self.db, PGUSER=role)
        return subprocess.run(["psql", "-XqAt", *(["-v", "ON_ERROR_STOP=1"] if is_stopping else [])], env=env, input=text,
                              capture_output=True, text=True, check=False, timeout=120)


class SqlTest(Documented):
    def test_producing_and_working(self):
        script = blocks(section(SQL_MD, "Producing"), "sql") + blocks(section(SQL_MD, "Working"), "sql")
        self.assertGreaterEqual(len(script), 8)
        done = self.psql("\n".join(script), "app", is_stopping=False)
        # One error, and the one that is announced.
        self.assertEqual(re.findall(r"ERROR: +(.*)", done.stderr), ["LEASE_LOST"], done.stderr)
        self.assertEqual(self.one("select count(*) from orders where id = 17"), "1")
        self.assertEqual(self.one("select count(*) from orders where id = 18"), "0")
        # The order 17, the one with all arguments, and two of the batch; not the one that was rolled back.
        self.assertEqual(self.one("select count(*) from pawl.jobs where queue = 'mail'"), "4")
        self.assertEqual(self.one("select count(*) from sent_mails"), "1")
        self.assertEqual(self.one("select string_agg(outcome, ',') from pawl.attempts where queue = 'mail'"), "DISPATCHED")
        # Two in order: the first was completed before the second was claimed.
        self.assertEqual(self.one("select string_agg(state, ',' order by state) from pawl.jobs where queue = 'ledger'"),
                         "InFlight,Succeeded")
        lines = done.stdout.splitlines()
        at = lines.index("+100")
        self.assertEqual((lines[at + 1], lines[at + 3]), ("0", "-30"))
        self.assertEqual(self.one("select state from pawl.jobs j join sent_mails s on s.job = j.id"), "Succeeded")

    def test_work_leases(self):
        done = self.psql("\n".join(blocks(WORKLEASE_MD, "sql")), "app")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = done.stdout.splitlines()
        self.assertEqual([lines[0], lines[2], lines[3]], ["ENQUEUED", "RETRY_SCHEDULED|1", "NEXT_HINT|1002"])
        done = self.psql("\n".join(blocks(WORKLEASE_MD, "sql reader")), "looker")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout.splitlines(), ["orders/7|||||f|1|1002", "1|1002", "1001|1001|processed"])

    def test_webhooks(self):
        done = self.psql("\n".join(blocks(WEBHOOKS_MD, "sql")), "app")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(self.one("select count(*) from orders"), "1")
        # The event's own, and that of the replay.
        self.assertEqual(self.one("select count(*) from pawl.jobs where queue = 'webhook/crm'"), "2")
        self.assertIn("crm|order.*,invoice.paid|t|2|20", done.stdout.splitlines())
        done = self.psql("\n".join(blocks(WEBHOOKS_MD, "sql reader")), "looker")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout.splitlines(), ["crm|https://crm.example|order.*,invoice.paid|t|anna|"])

    def test_a_receiver_refuses_an_older_writer(self):
        """The check of fencing.md, under the fences of two leases of one key of which the first was lost."""
        check, = blocks(FENCING_MD, "sql")
        self.assertLessEqual(len(check.splitlines()), 10)
        claim = "select fence from pawl.claim_outbox_batch(1, '{}', 30, 'ledger')"
        self.world.sql(self.db, "select pawl.enqueue('ledger', '+100', p_ordering_key => 'account-17')")
        old = self.one(claim.format("w1"))
        self.world.sql(self.db, "update pawl.job set lease_expires_at = clock_timestamp() - interval '1 s'; delete from pawl.sweep;")
        new = self.one(claim.format("w2"))
        self.assertGreater(int(new), int(old))

        def write(amount, fence):
            done = self.psql(f"set client_min_messages = warning; \\set account account-17\n\\set amount {amount}\n"
                             f"\\set fence {fence}\n{check}", "app")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            return done.stdout.split()

        self.assertEqual(write(1, old), ["account-17"])
        self.assertEqual(write(2, new), ["account-17"])
        self.assertEqual(write(3, old), [])  # the lease is gone, and its holder does not know
        self.assertEqual(write(4, new), ["account-17"])
        self.assertEqual(self.one("select amount from balance"), "4")

    def test_the_error_is_the_one_that_is_said(self):
        done = self.psql("\\set VERBOSITY verbose\nselect pawl.complete_outbox_attempt(gen_random_uuid(), gen_random_uuid(), 'w', "
                         "'DISPATCHED');", "app")
        self.assertIn("P7002: LEASE_LOST", done.stderr)

    def test_looking(self):
        for text in (section(SQL_MD, "Looking"), section(OPERATING_MD, "Looking")):
            for block in blocks(text, "sql"):
                done = self.psql(block, "looker")
                self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_operating(self):
        self.world.sql(self.db, "select pawl.enqueue('mail', 'x')")
        for block in blocks(section(SQL_MD, "Operating"), "sql"):
            done = self.psql(block, "app")
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_every_block_is_run(self):
        titles = ["Producing", "Working", "Looking", "Operating"]
        self.assertEqual(sum(len(blocks(section(SQL_MD, title), "sql")) for title in titles), len(blocks(SQL_MD, "sql")))
        self.assertEqual(len(blocks(SQL_MD, "sh")), 1)
        self.assertEqual(len(blocks(SQL_MD, "python")), 1)

    def test_errors_are_those_that_are_listed(self):
        listed = set(re.findall(r"`(P7\d\d\d)`", section(SQL_MD, "Errors") + section(WORKLEASE_MD, "Asking for an offset")))
        sources = "".join(p.read_text() for p in (TOP / "src/store/postgres/sql").glob("[01]*.sql") if "adopt" not in p.name)
        raised = set(re.findall(r"errcode = '(P7\d\d\d)'", sources)) - {"P7099"}  # that one is caught where it is raised
        self.assertEqual(raised - listed, set())

    def test_worker_in_the_shell(self):
        self.world.sql(self.db, "select pawl.enqueue('mail', 'first one'); select pawl.enqueue('mail', 'second');")
        script = blocks(SQL_MD, "sh")[0]
        done = subprocess.run(["/bin/sh", "-c", script, "worker", "once"], env=self.world.environment(self.db, PGUSER="app"),
                              capture_output=True, text=True, check=False, timeout=120)
        self.assertEqual((done.returncode, done.stderr, done.stdout), (0, "", "first one\nsecond\n"))
        self.assertEqual(self.one("select count(*) from pawl.jobs where state = 'Succeeded'"), "2")

    def test_roles_of_the_manual(self):
        """The blocks of "Roles" in operating.md, as they stand, but for the address."""
        first, second = blocks(section(OPERATING_MD, "Roles"), "sql")
        shell = blocks(section(OPERATING_MD, "Roles"), "sh")[0]
        self.world.sql("postgres", "create database app")
        self.addCleanup(self.world.sql, "postgres", "drop database app; drop role pawl_owner, pawl_runtime, pawl_reader;")
        self.world.sql("postgres", first)
        words = re.sub(r"--store \S+", "", shell.strip()).split()[1:]
        done = self.world.pawl("app", *words, role="pawl_owner")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.world.sql("app", second)
        self.world.sql("app", "select pawl.enqueue('q', 'x'); select * from pawl.claim_outbox_batch(1, 'w1');", role="pawl_runtime")
        self.world.sql("app", "select * from pawl.queue_stats", role="pawl_reader")


class PythonTest(Documented):
    """The worker of the document, under psycopg2."""

    def setUp(self):
        super().setUp()
        self.names = {}
        exec(compile(blocks(SQL_MD, "python")[0], "docs/sql.md", "exec"), self.names)  # the example itself is tested
        self.world.sql(self.db, "create table done (what text); grant all on done to app;")
        env = self.world.environment(self.db)
        self.dsn = f"host={env['PGHOST']} port={env['PGPORT']} dbname={self.db} user=app"

    def enqueue(self, what):
        return self.one(f"select pawl.enqueue('mail', '{what}', p_max_retries => 0)")

    def done(self):
        return [row[0] for row in self.world.sql(self.db, "select what from done order by what")]

    @staticmethod
    def write(cursor, payload):
        cursor.execute("insert into done values (%s)", (payload.decode(),))

    def test_each_job_is_done_once(self):
        ids = [self.enqueue(word) for word in ("a", "b", "c")]
        self.names["work"](self.dsn, "w1", self.write)
        self.assertEqual(self.done(), ["a", "b", "c"])
        for outbox_id in ids:
            self.assertEqual(self.one(f"select outcome from pawl.attempts where job_id = '{outbox_id}'"), "DISPATCHED")

    def test_a_handler_that_fails_leaves_nothing_but_its_error(self):
        outbox_id = self.enqueue("bad")

        def fail(cursor, payload):
            self.write(cursor, payload)
            raise ValueError("no")

        self.names["work"](self.dsn, "w1", fail)
        self.assertEqual(self.done(), [])
        self.assertEqual(self.one(f"select outcome || ' ' || error_code from pawl.attempts where job_id = '{outbox_id}'"),
                         "FAILED ValueError")

    def test_who_lost_the_lease_loses_what_he_did(self):
        """P7002 rolls the caller's own transaction back: the effect is there exactly once."""
        self.enqueue("contested")

        def slow(cursor, payload):
            self.write(cursor, payload)
            # Meanwhile the lease ends, and somebody else does the job. (The row is not locked: nobody waits.)
            self.world.sql(self.db, "update pawl.job set lease_expires_at = clock_timestamp() - interval '1 s'; "
                                    "delete from pawl.sweep;")
            self.names["work"](self.dsn, "w2", self.write)

        self.names["work"](self.dsn, "w1", slow)
        self.assertEqual(self.done(), ["contested"])
        self.assertEqual([row[0] for row in self.world.sql(
            self.db, "select outcome || ' ' || worker from pawl.attempts order by attempt_no")], ["ZOMBIE_REQUEUE w1", "DISPATCHED w2"])

    def test_enqueue_goes_with_the_transaction(self):
        import psycopg2
        db = psycopg2.connect(self.dsn)
        cursor = db.cursor()
        cursor.execute("insert into done values ('order')")
        cursor.execute("select pawl.enqueue('mail', %s)", ("x",))
        db.rollback()
        self.assertEqual((self.done(), self.one("select count(*) from pawl.jobs")), ([], "0"))
        cursor.execute("insert into done values ('order')")
        cursor.execute("select pawl.enqueue('mail', %s)", ("x",))
        db.commit()
        db.close()
        self.assertEqual((self.done(), self.one("select count(*) from pawl.jobs")), (["order"], "1"))

    def test_a_completion_that_rolls_back_leaves_the_lease(self):
        import psycopg2
        outbox_id = self.enqueue("x")
        db = psycopg2.connect(self.dsn)
        cursor = db.cursor()
        cursor.execute("select lease_token from pawl.claim_outbox_batch(1, 'w1', 30, 'mail')")
        token = cursor.fetchone()[0]
        db.commit()
        self.names["complete"](cursor, outbox_id, token, "w1", "DISPATCHED")
        db.rollback()
        self.assertEqual(self.one(f"select state || ' ' || claimed_by from pawl.jobs where id = '{outbox_id}'"), "InFlight w1")
        self.names["complete"](cursor, outbox_id, token, "w1", "DISPATCHED")
        db.commit()
        db.close()
        self.assertEqual(self.one(f"select state from pawl.jobs where id = '{outbox_id}'"), "Succeeded")


class MigrateTest(Documented):
    def test_three_processes_at_once(self):
        self.world.sql("postgres", "create database raced")
        processes = [subprocess.Popen([PAWL, "migrate", "up"], env=self.world.environment("raced"), stdin=subprocess.DEVNULL,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(3)]
        for process in processes:
            _, complaint = process.communicate(timeout=120)
            self.assertEqual((process.returncode, complaint), (0, ""))
        steps = [p for p in (TOP / "src/store/postgres/sql").glob("[0-9]*.sql") if not p.name.startswith("000")]
        self.assertEqual(self.world.sql("raced", "select count(*) from pawl.migration")[0][0], str(len(steps)))
        self.assertEqual(self.world.sql("raced", "select pawl.enqueue('q', 'x') is not null")[0][0], "t")


if __name__ == "__main__":
    with pg.World(PAWL) as Documented.world:
        tap.main()
