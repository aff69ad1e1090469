#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""verify_test.py - `pawl verify`: on a history that workers made it holds; whatever is edited by hand is found.

Usage: verify_test.py PATH-OF-PAWL
"""

import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TOP / "test" / "support"))
import pg  # noqa: E402
import tap  # noqa: E402
from commands import CLEAN, DATA, Store  # noqa: E402

Store.program = sys.argv.pop()
SECONDS_MAX = 60
CANARY = "canary-7e57"

# What a job's payload says is what becomes of it.
HANDLER = r"""
read -r word
case $word in
ok*) exit 0 ;;
twice*) [ "$PAWL_ATTEMPT" -ge 2 ] || exit 1 ;;
bad*) echo no >&2; exit 1 ;;
fatal*) exit 65 ;;
later*) [ "$PAWL_ATTEMPT" -ge 2 ] || exit 75 ;;
hang*) exec sleep 600 ;;
gate*) while [ ! -e "$GATE" ]; do sleep 0.02; done ;;
esac
"""
# Edits by hand: what verify calls them, and SQL with {A} the ledger's table, {ID} its column of ids, {LIVE} and {ENDED} the
# tables of jobs, {LEASE} and {START} columns, {JOB} the job's id. "twice" has two attempts and succeeded, "bad" two and failed.
EDITS = [
    ("gap", "twice", "delete from {A} where {ID} = {JOB} and attempt_no = 1"),
    ("gap", "bad", "update {A} set attempt_no = 7 where {ID} = {JOB} and attempt_no = 2"),
    ("gap", "bad", "update {A} set attempt_no = attempt_no + 5 where {ID} = {JOB}"),
    ("count", "bad", "delete from {A} where {ID} = {JOB} and attempt_no = 2"),
    ("count", "bad", "update {ENDED} set attempts = attempts + 1 where id = {JOB}"),
    ("count", "ready", "update {LIVE} set attempts = attempts + 1 where id = {JOB}"),
    ("overlap", "twice", "update {A} set {START} = {START} - {HOUR} where {ID} = {JOB} and attempt_no = 2"),
    ("overlap", "bad", "update {A} set finished_at = finished_at + {HOUR} where {ID} = {JOB} and attempt_no = 1"),
    ("second_completion", "twice", "update {A} set outcome = 0 where {ID} = {JOB} and attempt_no = 1"),
    ("after_end", "bad", "update {A} set outcome = 0 where {ID} = {JOB} and attempt_no = 1"),
    ("lease", "bad", "update {A} set {LEASE} = 1 where {ID} = {JOB} and attempt_no = 2"),
    ("lease", "bad", "update {ENDED} set lease_version = 1 where id = {JOB}"),
    ("state", "bad", "update {A} set outcome = 1 where {ID} = {JOB} and attempt_no = 2"),
    ("state", "bad", "update {ENDED} set reason = 9 where id = {JOB}"),
    ("state", "bad", "update {ENDED} set finished_at = finished_at + {HOUR} where id = {JOB}"),
]


class Cases(Store):
    """Run on each kind of store."""

    def wait_for(self, what):
        end = time.monotonic() + SECONDS_MAX
        while not (found := what()):
            self.assertLess(time.monotonic(), end, "it does not come")
            time.sleep(0.05)
        return found

    def states(self, **more):
        found = self.json("verify", **more)
        return {name: found[name] for name in ("ready", "in_flight", "succeeded", "failed")}

    @contextlib.contextmanager
    def worker(self, *words):
        process = subprocess.Popen([self.program, "work", "mail", *words, "--", "sh", "-c", HANDLER], env=self.env,
                                   stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            yield process
        finally:
            process.terminate()
            process.wait(SECONDS_MAX)

    def make_history(self):
        """Jobs that succeeded, were retried, failed, were put back, lost their worker, were cancelled and redriven."""
        self.good("queues", "set", "mail", "--lease", "5s", "--timeout", "10m", "--max-retries", "1", "--backoff-base", "1ms",
                  "--backoff-max", "1ms")  # what hangs is neither lost nor stopped while a slow machine does the rest
        jobs = {word: self.enqueue("mail", f"{word} {CANARY}\n") for word in ("ok", "twice", "bad", "fatal", "later", "hang")}
        jobs["redriven"] = self.enqueue("mail", "bad\n")
        with self.worker("--poll", "100ms") as worker:
            self.wait_for(lambda: self.states() == {"ready": 0, "in_flight": 1, "succeeded": 3, "failed": 3})
            self.good("redrive", jobs["redriven"])
            self.wait_for(lambda: self.states()["failed"] == 3)
            os.killpg(worker.pid, signal.SIGKILL)
        self.wait_for(lambda: self.json("reap")["recovered"] == 1)
        jobs["ready"] = jobs.pop("hang")
        jobs["cancelled"] = self.enqueue("other", "x")
        self.good("cancel", jobs["cancelled"])
        self.good("redrive", jobs["cancelled"])
        jobs["discarded"] = self.enqueue("other", "y")
        self.good("cancel", jobs["discarded"])
        self.good("discard", jobs["discarded"])
        self.enqueue("other", "never tried")
        return jobs

    def test_a_history_of_workers_holds(self):
        jobs = self.make_history()
        found = self.json("verify")
        self.assertEqual((found["is_sound"], found["flaws"], found["jobs"]), (True, [], 10))
        self.assertEqual(self.states(), {"ready": 3, "in_flight": 0, "succeeded": 3, "failed": 4})
        attempts = sum(len(self.json("attempts", job)["attempts"]) for job in self.ids())
        self.assertEqual(found["attempts"], attempts)
        self.assertEqual(self.json("verify", "--queue", "other")["jobs"], 3)
        self.assertEqual(self.json("verify", "--queue", "none")["jobs"], 0)
        text = self.good("verify")
        self.assertIn("10 jobs: 3 ready, 0 in flight, 3 succeeded, 4 failed;", text)
        self.assertIn("No gap, no overlap, no second completion", text)
        self.assertEqual(len(self.json("attempts", jobs["redriven"])["attempts"]), 4)
        self.check_edits(jobs)

    def check_edits(self, jobs):
        for flaw, word, sql in EDITS:
            with self.subTest(sql=sql), self.edited(sql, jobs[word]) as env:
                done = self.refused(DATA, "", "verify", "--json", env=env)
                found = json.loads(done.stdout)
                self.assertEqual([(f["flaw"], f["id"]) for f in found["flaws"]], [(flaw, jobs[word])], found)
                self.assertEqual((found["is_sound"], found["flawed"]), (False, 1))
                done = self.refused(DATA, "", "verify", env=env)
                self.assertRegex(done.stdout, rf"(?m)^{jobs[word]}  {flaw} ")
                self.assertIn("1 jobs are not as they must be.", done.stdout)
                self.assertNotIn(CANARY, done.stdout + done.stderr)

    def test_while_workers_run(self):
        """Jobs change between the look at them and the look at their ledgers: that is no flaw."""
        self.good("queues", "set", "mail", "--max-retries", "2", "--backoff-base", "1ms", "--backoff-max", "1ms")
        words = ["gate\n", *(("ok\n", "twice\n", "bad\n")[n % 3] for n in range(599))]
        self.good("enqueue", "mail", "--ndjson", input="".join(json.dumps({"payload": word}) + "\n" for word in words))
        gate = Path(tempfile.mkdtemp()) / "gate"
        self.addCleanup(shutil.rmtree, gate.parent)
        self.env = {**self.env, "GATE": str(gate)}
        looks = 0
        with self.worker("--poll", "50ms", "--parallel", "4"):
            while True:
                found = self.json("verify")
                self.assertEqual((found["is_sound"], found["jobs"]), (True, 600), found)
                looks += 1
                if looks == 3:
                    gate.touch()  # so many looks, however fast the worker is
                if found["succeeded"] + found["failed"] == 600:
                    break

    def test_long_ledgers_are_read_in_pages(self):
        job = self.enqueue("mail", "x")
        for _ in range(self.rounds):
            self.good("cancel", job)
            self.good("redrive", job)
        self.copy_rows(job)
        found = self.json("verify")
        self.assertEqual((found["is_sound"], found["attempts"]), (True, 500))
        self.assertEqual(len(self.json("attempts", job)["attempts"]), 500)

    rounds = 2

    def test_progress_is_for_terminals(self):
        self.enqueue("mail", "x")
        self.assertEqual(self.pawl("verify").stderr, "")


    def test_jobs_in_two_places(self):  # Q-ONE-STATE
        job = self.enqueue("mail", "x")
        self.good("cancel", job)
        self.good("redrive", job)
        self.make_twin(job)
        done = self.refused(DATA, "", "verify")
        self.assertRegex(done.stdout, rf"(?m)^{job}  state .*at once$")


class SqliteTest(Cases, unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.file = self.folder / "pawl.db"
        self.env = {**CLEAN, "PAWL_STORE": f"sqlite:{self.file}"}

    @staticmethod
    def edit(file, *statements):
        db = sqlite3.connect(file)
        db.execute("pragma wal_autocheckpoint = 0")
        for name in ("update", "delete", "insert"):
            db.execute(f"drop trigger pawl_attempt_{name}")
        for sql in statements:
            db.execute(sql)
        db.commit()
        db.close()

    @contextlib.contextmanager
    def edited(self, sql, job):
        copy = self.folder / "copy.db"
        for part in ("", "-wal"):
            if (self.folder / f"pawl.db{part}").exists():
                shutil.copy(self.folder / f"pawl.db{part}", self.folder / f"copy.db{part}")
        self.edit(copy, sql.format(A="pawl_attempt", ID="id", LIVE="pawl_job", ENDED="pawl_ended", LEASE="job_version",
                                   START="claimed_at", HOUR="3600000000", JOB="x'" + job.replace("-", "") + "'"))
        try:
            yield {**self.env, "PAWL_STORE": f"sqlite:{copy}"}
        finally:
            for file in self.folder.glob("copy.db*"):
                file.unlink()

    def copy_rows(self, job):
        blob = "x'" + job.replace("-", "") + "'"
        self.edit(self.file,
                  "with recursive n (n) as (values (3) union all select n + 1 from n where n < 500) "
                  "insert into pawl_attempt select id, n, outcome, reason, ended_by, job_version, claimed_by, claimed_at, finished_at, "
                  f"error_code, error_text, token_digest, wire_sends from pawl_attempt, n where id = {blob} and attempt_no = 2",
                  f"update pawl_job set attempts = 500 where id = {blob}")


    def make_twin(self, job):
        blob = "x'" + job.replace("-", "") + "'"
        self.edit(self.file,
                  "insert into pawl_ended (id, number, queue_id, state, priority, next_attempt_at, created_at, finished_at, "
                  "retries, lost_leases, lost_in_a_row, attempts, lease_version, reason, payload_len) "
                  "select j.id, j.number, queue_id, 3, priority, next_attempt_at, created_at, "
                  "(select finished_at from pawl_attempt a where a.id = j.id), "
                  f"0, 0, 0, 1, 0, 9, payload_len from pawl_job j where id = {blob}")


class PostgresTest(Cases, unittest.TestCase):
    world = None

    def setUp(self):
        self.database = self.world.database(2)
        self.env = self.url(self.database)

    def url(self, database):
        server = self.world.server
        return {**CLEAN, "PAWL_STORE": f"postgresql:///{database}?host={server.folder}&user={server.user}"}

    @contextlib.contextmanager
    def edited(self, sql, job):
        self.world.sql("postgres", f"create database edited template {self.database}")
        self.world.sql("edited", "set session_replication_role = replica; " + sql.format(
            A="pawl.attempt", ID="job_id", LIVE="pawl.job", ENDED="pawl.dead_letter", LEASE="lease_version", START="started_at",
            HOUR="interval '1 hour'", JOB=f"'{job}'"))
        try:
            yield self.url("edited")
        finally:
            self.world.sql("postgres", "drop database edited with (force)")

    def copy_rows(self, job):
        self.world.sql(self.database, f"""
            set session_replication_role = replica;
            insert into pawl.attempt (shard, line_id, job_id, attempt_no, lease_version, outcome, reason, ended_by, finished_at)
            select shard, line_id, job_id, n, lease_version, outcome, reason, ended_by, finished_at
            from pawl.attempt, generate_series(3, 500) n where job_id = '{job}' and attempt_no = 2;
            update pawl.job set attempts = 500 where id = '{job}'""")

    def make_twin(self, job):
        self.world.sql(self.database, f"""
            insert into pawl.dead_letter (shard, line_id, id, priority, retries, lost_leases, reason, attempts, lease_version,
                                          created_at, due_at, finished_at, payload_len)
            select j.shard, j.line_id, id, j.priority, 0, 0, 9, 1, 0, j.created_at, next_attempt_at, a.finished_at, 1
            from pawl.job j join pawl.attempt a on a.job_id = j.id where id = '{job}'""")


if __name__ == "__main__":
    with pg.World(Store.program) as PostgresTest.world:
        tap.main()
