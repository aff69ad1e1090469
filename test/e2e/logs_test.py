#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""logs_test.py - what `pawl work` and `pawl reap --watch` log: its form, and that nothing secret gets into it.

NFR-003: a full run on a SQLite file and on PostgreSQL with canaries in everything that is secret, in which jobs fail in every
way and the store does, too; then all that all processes printed and served is searched for them.

Usage: logs_test.py PATH-OF-PAWL
"""

import base64
import json
import re
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest
import uuid
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TOP / "test" / "support"))
import pg  # noqa: E402
import running  # noqa: E402
import tap  # noqa: E402

PAWL = Path(sys.argv.pop()).resolve()
USAGE = 64
DOCUMENT = (TOP / "docs" / "logs.md").read_text(encoding="utf-8")
IDS = set(re.findall(r"^\| `([A-Z-]+)` \|", DOCUMENT, re.MULTILINE))
CANARIES = {name: f"canary{name}{uuid.uuid4().hex[:12]}" for name in ("payload", "header", "dedupe", "password", "stdout", "stderr")}
HEADER = ("--header", f"x-key: {CANARIES['header']}")
# By the end of its payload: what becomes of a job.
HANDLER = f"""
read -r word
echo {CANARIES['stdout']}
echo "$PAWL_HEADER_X_KEY"
echo {CANARIES['stderr']} >&2
case $word in
*-fail) exit 65 ;;
*-retry) exit 1 ;;
*-snooze) exit 75 ;;
*-signal) kill -KILL $$ ;;
*-long) sleep 600 ;;
esac
"""


def forms(secret):
    """A secret as it might be printed."""
    plain = secret.encode()
    yield from (secret, secret[::-1], plain.hex(), base64.b64encode(plain).decode().rstrip("=")[:-2])


def token_forms(token):
    """A token of 16 bytes as it might be printed."""
    yield from (token.hex(), str(uuid.UUID(bytes=token)), base64.b64encode(token).decode().rstrip("="), ":".join(f"{b:02x}" for b in token))


class FormTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="pawl-logs-")
        self.addCleanup(folder.cleanup)
        self.env = {**running.CLEAN, "PAWL_STORE": f"sqlite:{folder.name}/jobs.db"}
        self.runs = 0

    def counts(self):
        queue = json.loads(self.pawl("queues", "--json").stdout)["queues"][0]
        return queue["succeeded"], queue["failed"]

    def pawl(self, *words):
        return subprocess.run([PAWL, *map(str, words)], env=self.env, capture_output=True, text=True, check=False, timeout=60)

    def one_run(self, *words):
        """A worker that has done a job and failed another; its events, in the order of its log."""
        for payload in ("done", "x-fail"):
            self.assertEqual(self.pawl("enqueue", "q", payload).returncode, 0)
        with running.Running(PAWL, "work", "q", *words, "--", "sh", "-c", HANDLER, env=self.env) as worker:
            self.runs += 1
            running.wait_for(lambda: self.counts() == (self.runs, self.runs))
            self.assertEqual(worker.end(), 0)
            return worker.events(), worker.log()

    def test_logfmt_is_usual(self):
        events, lines = self.one_run()
        self.assertTrue(all(line.startswith("time=") for line in lines))
        self.assertEqual([e["event"] for e in events], ["WORKER-UP", "JOB-SETTLED", "WORKER-STOPPING", "WORKER-STOPPED"])
        settled = events[1]
        self.assertEqual((settled["level"], settled["queue"], settled["attempt"], settled["outcome"], settled["reason"]),
                         ("warn", "q", "1", "failed", "fatal"))
        self.assertRegex(settled["job"], r"^[0-9a-f-]{36}$")
        self.assertRegex(settled["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$")
        self.assertEqual(len({e["worker"] for e in events}), 1)

    def test_json_lines(self):
        events, lines = self.one_run("--log-format", "json", "--verbose")
        self.assertTrue(all(line.startswith("{") and line.endswith("}") for line in lines))
        for event in events:
            self.assertIn(event["event"], IDS)
            self.assertTrue({"time", "level", "event", "msg", "worker"} <= set(event), event)
        seen = {e["event"] for e in events}
        self.assertTrue({"WORKER-UP", "CALL", "JOB-START", "JOB-ENDED", "JOB-SETTLED", "JOB-OVER", "REAP-RUN",
                         "WORKER-STOPPED"} <= seen, seen)
        over = [e for e in events if e["event"] == "JOB-OVER"]
        self.assertEqual([e["reason"] for e in over], ["settled", "settled"])  # FR-005: why renewal ended
        self.assertIsInstance(over[0]["attempt"], int)

    def test_json_for_short(self):
        """As every command has it: also those whose output is a log."""
        events, lines = self.one_run("--json")
        self.assertTrue(all(line.startswith("{") for line in lines), lines)
        self.assertIn("WORKER-UP", {e["event"] for e in events})
        with running.Running(PAWL, "reap", "--watch", "--json", env=self.env) as reaper:
            reaper.wait_event("REAPER-UP")
            self.assertEqual(reaper.end(), 0)
            self.assertTrue(all(line.startswith("{") for line in reaper.log()), reaper.log())

    def test_levels(self):
        events, _ = self.one_run("--log-level", "warn")
        self.assertEqual([e["event"] for e in events], ["JOB-SETTLED"])
        events, _ = self.one_run("--log-level", "error")
        self.assertEqual(events, [])
        events, _ = self.one_run("--log-level", "debug")
        self.assertIn("debug", {e["level"] for e in events})

    def test_words_that_are_none(self):
        for option, value in (("--log-format", "xml"), ("--log-level", "loud")):
            done = self.pawl("work", "q", option, value, "--", "true")
            self.assertEqual(done.returncode, USAGE)
            self.assertIn(option, done.stderr)


class CanaryCases:
    """On each kind of store. `env` names it; `tokens()` gives the lease tokens that it holds now."""

    def pawl(self, *words, env=None, check=True):
        done = subprocess.run([PAWL, *map(str, words)], env=env or self.env, capture_output=True, text=True, check=False,
                              timeout=120)
        if check:
            self.assertEqual(done.returncode, 0, done.stderr)
        name = " ".join(map(str, words))[:60]  # many begin in the same way
        self.printed[name] = self.printed.get(name, "") + done.stdout + done.stderr
        return done

    def start(self, name, *words):
        process = running.Running(PAWL, *words, env=self.env)
        self.addCleanup(process.__exit__)
        self.processes[name] = process
        return process

    def worker(self, name, *words):
        return self.start(name, "work", "q", "--lease", "2s", "--poll", "100ms", "--grace", "500ms", "--presence", "500ms",
                          "--reaper-interval", "500ms", "--call-timeout", "1s", "--metrics-listen", "0", "--metrics-interval",
                          "300ms", "--verbose", *words, "--", "sh", "-c", HANDLER)

    def enqueue(self, end, *words):
        return self.pawl("enqueue", "q", f"{CANARIES['payload']}-{end}", *HEADER, *words).stdout.strip()

    def collect(self):
        self.seen_tokens.update(self.tokens())
        for name, process in self.processes.items():
            if process.process.poll() is None:
                self.printed.setdefault(f"metrics of {name}", "")
                self.printed[f"metrics of {name}"] += process.metrics()

    def wait(self, what):
        def look():
            if time.monotonic() > self.collected_at + 0.5:
                self.collect()
                self.collected_at = time.monotonic()
            return what()
        running.wait_for(look)

    def test_nothing_secret_is_printed(self):
        self.printed, self.processes, self.seen_tokens, self.collected_at = {}, {}, set(), 0
        first = self.worker("first")
        second = self.worker("second", "--log-format", "json")
        reaper = self.start("reaper", "reap", "--watch", "--interval", "500ms", "--lease", "2s", "--presence", "500ms", "--verbose",
                            "--metrics-listen", "0")
        for process in (first, second, reaper):
            process.address()
        key = ("--dedupe", CANARIES["dedupe"])
        holder = self.enqueue("long", *key)
        self.pawl("enqueue", "q", CANARIES["payload"], *HEADER, *key, check=False)  # a duplicate
        self.pawl("enqueue", "q", CANARIES["payload"], *HEADER, "--id", holder, check=False)
        self.pawl("enqueue", "q", CANARIES["payload"], *HEADER, "--priority", "77", check=False)
        self.pawl("enqueue", "q", CANARIES["payload"], *HEADER, *HEADER, check=False)
        self.pawl("enqueue", "q", CANARIES["payload"], "--header", CANARIES["header"], check=False)
        self.pawl("enqueue", "q", CANARIES["payload"], f"--heade={HEADER[1]}", check=False)
        self.pawl("enqueue", "q", CANARIES["payload"], *HEADER, "--dedupe", "a\tb", check=False)
        ends = [self.enqueue(end) for end in ("done", "fail", "retry", "snooze", "signal")]
        timed = self.enqueue("long", "--timeout", "1s", "--max-retries", "0")
        self.wait(lambda: {"failed", "retried", "snoozed", "succeeded"} <= {
            e.get("outcome") for p in (first, second) for e in p.events("JOB-SETTLED")})
        self.wait(lambda: any(e["job"] == timed and e["reason"] == "timeout"
                              for p in (first, second) for e in p.events("JOB-ABORT")))
        self.enqueue("long")  # beside the holder: two leases at once
        self.wait(lambda: len(self.seen_tokens) >= 2)
        self.disturb(lambda: self.wait(lambda: first.events("CALL-FAILED") and second.events("CALL-FAILED")))
        # A worker that is killed is recovered, and its death reported.
        second.end(9)
        self.processes.pop("second")
        self.wait(lambda: [e for p in (first, reaper) for e in p.events("WORKER-DIED")])
        self.pawl("cancel", holder, check=False)
        self.wait(lambda: holder in self.pawl("jobs", "list", "--reason", "cancelled").stdout)  # a list tells no headers
        self.every_command(ends[0], ends[4])
        self.mistakes()
        self.collect()
        for process in (first, reaper):
            process.end()
        self.printed.update({"log of first": "\n".join(first.log()), "log of second": "\n".join(second.log()),
                             "log of reaper": "\n".join(reaper.log()), "output of reaper": reaper.out()})
        self.search(first, second, ends)

    def every_command(self, ended, other):
        """All that there are, with --json and without, but those that show on purpose what is searched for: `jobs show` has
        headers, and `attempts` of what has failed its words."""
        never = str(uuid.uuid4())
        runs = {
            "adopt": (("/no/such.json",),), "bench": (("--jobs", "100", "--repeats", "1"),), "attempts": ((ended,), (never,)), "cancel": ((ended,), (never,)), "completion": (("bash",),),
            "config": ((),), "demo": ((),), "discard": ((other,), (never,)), "doctor": ((),),
            "endpoint": (("list",), ("show", "nothing"), ("test", "nothing"), ("disable", "nothing")),
            "publish": (("order.created", CANARIES["payload"], *HEADER),), "enqueue": (("q", "--file", "/no/such"),),
            "help": ((), ("enqueue",)), "jobs": (("list",), ("list", "--state", "failed"), ("show", never)),
            "leases": ((), ("--queue", "q")), "migrate": (("status",), ("plan",)), "prune": ((),),
            "queues": ((), ("show", "q"), ("set", "q", "--max-retries", "1"), ("pause", "idle"), ("resume", "idle")), "reap": ((),),
            "redrive": ((other,), (never,)), "serve": (("--routes",), ("--tokens", "/no/such")),
            "token": (("list", "--tokens", "/no/such"), ("remove", "x", "--tokens", "/no/such")), "top": (("--once",),), "verify": ((),), "version": ((),), "workers": ((),),
            "worklease": (("list",), ("show", "nothing")),
        }
        told = set(re.findall(r"(?m)^  ([a-z]+) ", self.pawl("help").stdout))
        # Workers run all the time; those that deliver are searched in deliver_test.py.
        self.assertEqual(told - {"work", "deliver"}, set(runs))
        for name, calls in runs.items():
            for words in calls:
                for form in ((), ("--json",)):
                    done = self.pawl(name, *words, *form, check=False)
                    self.assertGreaterEqual(done.returncode, 0, (name, words))  # no signal
                    self.printed[f"{name} {len(self.printed)}"] = done.stdout + done.stderr

    def search(self, first, second, ends):
        everything = "\n".join(self.printed.values())
        self.assertGreater(len(everything), 100000)
        self.assertGreaterEqual(len(self.seen_tokens), 2)
        for name, secret in CANARIES.items():
            for form in forms(secret):
                for source, text in self.printed.items():
                    self.assertFalse(form in text, f"{name} is in {source}")
        for token in self.seen_tokens:
            for form in token_forms(token):
                self.assertFalse(form.lower() in everything.lower(), "a token was printed")
        # The canaries did sing: a handler's output goes where it belongs, and the payload was there.
        self.assertIn(CANARIES["stdout"], first.out() + second.out())
        self.assertIn(CANARIES["stderr"], self.pawl("attempts", ends[1]).stdout)
        self.assertIn(CANARIES["payload"], self.pawl("jobs", "show", ends[1], "--payload").stdout)
        self.assertIn(CANARIES["header"], self.pawl("jobs", "show", ends[1]).stdout)
        self.assertIn(CANARIES["header"], first.out() + second.out())
        for line in self.printed["log of first"].splitlines():
            self.assertIn(running.fields(line)["event"], IDS)

    def mistakes(self):
        """Commands that fail, with a password in what they were told."""
        for url in (f"postgres://u:{CANARIES['password']}@127.0.0.1:1/d", f"postgres://u:{CANARIES['password']}@no.such.host.invalid/d",
                    f"postgres://u:{CANARIES['password']}@[bad/d", f"postgre://u:{CANARIES['password']}@h/d",
                    f"postgres://u:{CANARIES['password']}@/d?nonsense={CANARIES['password']}", f"sqlite:/no/such/{0}/folder/x.db"):
            for env in ({**running.CLEAN, "PAWL_STORE": url}, {**running.CLEAN, "DATABASE_URL": url}):
                done = self.pawl("jobs", "list", env=env, check=False)
                self.assertNotEqual(done.returncode, 0)
                self.printed[f"failed {len(self.printed)}"] = done.stdout + done.stderr
                done = self.pawl("work", "q", "--", "true", env=env, check=False)
                self.printed[f"failed {len(self.printed)}"] = done.stdout + done.stderr
        done = self.pawl("jobs", "list", f"--stor=postgres://u:{CANARIES['password']}@h/d", check=False)
        self.printed[f"failed {len(self.printed)}"] = done.stdout + done.stderr


class SqliteTest(CanaryCases, unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="pawl-logs-")
        self.addCleanup(folder.cleanup)
        self.file = Path(folder.name) / "jobs.db"
        self.env = {**running.CLEAN, "PAWL_STORE": f"sqlite:{self.file}"}
        subprocess.run([PAWL, "enqueue", "q", "--ndjson"], env=self.env, stdin=subprocess.DEVNULL, check=True)  # its tables

    def tokens(self):
        with sqlite3.connect(self.file, timeout=60) as db:
            return [bytes(row[0]) for row in db.execute("select lease_token from pawl_job where lease_token is not null")]

    def disturb(self, until):
        """Another process holds the file for a while."""
        db = sqlite3.connect(self.file, timeout=60, isolation_level=None)
        db.execute("begin immediate")
        try:
            until()
        finally:
            db.execute("rollback")
            db.close()


class PostgresTest(CanaryCases, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.world = pg.World(str(PAWL))
        cls.world.__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.world.__exit__(None, None, None)

    def setUp(self):
        self.database = self.world.database(name="logs")
        server = self.world.server
        self.env = {**running.CLEAN, "PAWL_STORE": f"postgres://{server.user}:{CANARIES['password']}@/{self.database}"
                                                   f"?host={server.folder}&port=5432"}

    def tokens(self):
        return [uuid.UUID(row[0]).bytes for row in
                self.world.sql(self.database, "select lease_token from pawl.job where lease_token is not null")]

    def disturb(self, until):
        """Rows are refused, which the server tells with all that is in them; connections end."""
        broken = ("attempt", "add constraint unlucky check (false) not valid"), ("worker", "add constraint unlucky check (false) not valid")
        for table, change in broken:
            self.world.sql(self.database, f"alter table pawl.{table} {change}")
        try:
            self.pawl("cancel", self.enqueue("done", "--delay", "1h"), check=False)
            self.world.sql(self.database, "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()")
            until()
        finally:
            for table, _ in broken:
                self.world.sql(self.database, f"alter table pawl.{table} drop constraint unlucky")


if __name__ == "__main__":
    tap.main()
