#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""commands_test.py - the commands on jobs, queues and workers, on a SQLite file and on PostgreSQL; and what is made from
their tables: help, manual pages, the completion of shells.

Usage: commands_test.py PATH-OF-PAWL
"""

import contextlib
import json
import os
import pty
import re
import select
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TOP / "test" / "support"))
import pg  # noqa: E402
import tap  # noqa: E402
from commands import CLEAN, CONFIG, DATA, NO_INPUT, UNAVAILABLE, USAGE, Store  # noqa: E402

PAWL = sys.argv.pop()
CANARY = "canary-93b2"
ID = "0190a000-0000-7000-8000-000000000001"
UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
Store.program = PAWL


def wait_for(what):
    end = time.monotonic() + 60
    while not what():
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.05)


class Cases(Store):
    """Run on each kind of store."""

    # ---- enqueue

    def test_payload_from_argument_file_and_standard_input(self):
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"from a file")
            file.flush()
            for words, given, payload in ((("mail", "as a word"), "", "as a word"), (("mail",), "piped\n", "piped\n"),
                                          (("mail", "-"), "dash", "dash"), (("mail", "--file", file.name), "", "from a file"),
                                          (("mail", "--file=-"), "x", "x"), (("mail", ""), "", ""),
                                          (("mail", "--", "--json"), "", "--json")):
                job = self.enqueue(*words, input=given)
                self.assertRegex(job, f"^{UUID}$")
                self.assertEqual(self.good("jobs", "show", job, "--payload"), payload)

    def test_options_of_a_job(self):
        self.good("enqueue", "mail", "x", "--id", ID, "--priority", "2", "--delay", "1h", "--max-retries", "7", "--timeout",
                  "5m", "--start-within", "2h", "--dedupe", "k1", "--backoff-base", "1s", "--backoff-max", "1m")
        job = self.json("jobs", "show", ID)
        self.assertEqual((job["id"], job["priority"], job["max_retries"], job["state"]), (ID, 2, 7, "Ready"))
        self.assertGreater(job["due_at"], job["created_at"])
        self.assertGreater(job["start_by"], job["due_at"])
        self.assertEqual([q["delayed"] for q in self.json("queues")["queues"]], [1])

    def test_enqueuing_twice_is_told_and_harmless(self):  # Q-ENQUEUE
        self.enqueue("mail", "x", "--id", ID, "--dedupe", "k")
        done = self.pawl("enqueue", "mail", "y", "--id", ID)
        self.assertEqual((done.returncode, done.stdout), (0, ID + "\n"))
        self.assertIn("EXISTS", done.stderr)
        done = self.pawl("enqueue", "mail", "y", "--dedupe", "k")
        self.assertEqual((done.returncode, done.stdout), (0, ID + "\n"))
        self.assertIn("DUPLICATE", done.stderr)
        told = self.json("enqueue", "mail", "y", "--dedupe", "k")
        self.assertEqual(told, {"jobs": [{"id": ID, "verdict": "DUPLICATE"}]})
        self.assertEqual(self.ids(), [ID])

    def test_many_lines(self):
        lines = [{"payload": f"p{n}"} for n in range(1200)]
        lines += [{"payload": {"b": 1, "a": [True, None]}, "queue": "other", "priority": 0, "dedupe_key": "d", "delay": "1h"}]
        told = self.good("enqueue", "mail", "--ndjson", "--priority", "7", input="\n".join(map(json.dumps, lines)) + "\n")
        ids = told.split()
        self.assertEqual(len(set(ids)), 1201)
        self.assertEqual(self.good("jobs", "show", ids[-1], "--payload"), '{"b":1,"a":[true,null]}')
        self.assertEqual(self.json("jobs", "show", ids[0])["priority"], 7)
        self.assertEqual(self.json("jobs", "show", ids[-1])["priority"], 0)
        self.assertEqual({q["queue"]: q["ready"] for q in self.json("queues")["queues"]}, {"mail": 1200, "other": 1})
        self.assertEqual(self.ids("--limit", "5000", "--queue", "mail"), sorted(ids[:-1]))

    def test_a_line_that_is_wrong_is_named(self):
        for line, complaint in (('{"payload": "x", "prioritty": 1}', "prioritty is not a key of a job; did you mean priority?"),
                                ('{"payload": "x", "priority": 10}', "priority must be from 0 to 9"),
                                ('{"payload": "x", "delay": 5}', "delay must be a duration"),
                                ('{"payload": "x", "delay": "soon"}', "delay"), ('{"payload": "x", "id": "7"}', "id must be a UUID"),
                                ('{"priority": 1}', "payload must be there"), ("[]", "not a JSON object"), ("{", "not a JSON"),
                                ('{"payload": "x", "payload": "y"}', "not a JSON object"), ("", "not a JSON object"),
                                ('{"payload": "x", "queue": "a b"}', "queue")):
            text = '{"payload": "%s"}\n%s\n{"payload": "z"}\n' % (CANARY, line)
            done = self.refused(DATA, complaint, "enqueue", "mail", "--ndjson", input=text)
            self.assertRegex(done.stderr, "lines? (2|1 to 3)")
            self.assertNotIn(CANARY, done.stderr)
        self.assertIn("1 jobs were enqueued before it failed", self.pawl("enqueue", "mail", "--ndjson",
                                                                        input='{"payload": 1}\nx').stderr)

    def test_headers(self):
        job = self.enqueue("mail", "x", "--header", "tenant: acme", "--header=X-Note:  two words\t", "--header", "empty:")
        headers = {"tenant": "acme", "X-Note": "two words", "empty": ""}
        self.assertEqual(self.json("jobs", "show", job)["headers"], headers)
        text = self.good("jobs", "show", job)
        for line in ("header         tenant: acme\n", "header         X-Note: two words\n", "header         empty: \n"):
            self.assertIn(line, text)
        self.assertEqual(self.good("jobs", "show", job, "--payload"), "x")
        for words in ((), ("--json",)):
            self.assertNotIn("acme", self.good("jobs", "list", *words))
        self.assertNotIn("headers", self.json("jobs", "show", self.enqueue("mail", "x")))

    def test_headers_of_many_lines(self):
        lines = [{"payload": "a"}, {"payload": "b", "headers": {"b": "1", "c": "\u00e4\u20ac"}}, {"payload": "c", "headers": {}}]
        ids = self.good("enqueue", "mail", "--ndjson", "--header", "a: 1", input="\n".join(map(json.dumps, lines))).split()
        told = [self.json("jobs", "show", job).get("headers") for job in ids]
        self.assertEqual(told, [{"a": "1"}, {"b": "1", "c": "\u00e4\u20ac"}, None])

    def test_bad_headers_are_named_and_not_told(self):  # NFR-003
        for header, complaint in ((CANARY, "--header needs a name, a colon and a value"),
                                  (f": {CANARY}", "--header: the name of header 2 is bad"),
                                  (f"a b: {CANARY}", "--header: the name of header 2 is bad"),
                                  (f"x-key: {CANARY}\nadmin: yes", 'the value of header "x-key" is bad after'),
                                  (f"GOOD: {CANARY}", 'header "GOOD" is there twice'),
                                  (f"x-key: {CANARY}{'v' * 4096}", 'the value of header "x-key" has'),
                                  (f"{'n' * 129}: {CANARY}", "--header: the name of header 2 is bad")):
            done = self.refused(USAGE, complaint, "enqueue", "mail", "x", "--header", "good: 1", "--header", header)
            self.assertNotIn(CANARY, done.stderr)
        many = [word for n in range(64) for word in ("--header", f"h{n}: 1")]
        self.assertEqual(len(self.json("jobs", "show", self.enqueue("mail", "x", *many))["headers"]), 64)
        self.refused(USAGE, "--header is given more than 64 times", "enqueue", "mail", "x", *many, "--header", "more: 1")
        self.refused(USAGE, "--header needs a value", "enqueue", "mail", "x", "--header")
        for headers, complaint in (('{"x-key": 1}', "headers must be an object of texts"), ("[]", "headers must be an object"),
                                   ('{"x-key": "%s\\u0000"}' % CANARY, "headers must be an object of texts"),
                                   ('{"x-key": "%s\\nadmin: yes"}' % CANARY, 'headers: the value of header "x-key" is bad'),
                                   ('{"x-key": "%s", "X-Key": "1"}' % CANARY, 'header "X-Key" is there twice'),
                                   ('{"": "%s"}' % CANARY, "headers: the name of header 1 is bad"),
                                   ("{%s}" % ", ".join('"h%d": "%s"' % (n, "v" * 4000) for n in range(5)), "more than 16384 bytes")):
            text = '{"payload": "y"}\n{"payload": "x", "headers": %s}\n' % headers
            done = self.refused(DATA, complaint, "enqueue", "mail", "--ndjson", input=text)
            self.assertIn("line 2: ", done.stderr)
            self.assertNotIn(CANARY, done.stderr)
        self.assertEqual(self.ids("--limit", "1", "--reason", "error"), [])

    def test_enqueue_refuses_contradictions(self):
        self.refused(USAGE, "the payload is said twice", "enqueue", "mail", "x", "--file", "y")
        self.refused(USAGE, "the payload is said twice", "enqueue", "mail", "x", "--ndjson")
        self.refused(USAGE, "--id cannot be", "enqueue", "mail", "--ndjson", "--id", ID)
        self.refused(USAGE, "say QUEUE", "enqueue")
        self.refused(USAGE, "UUID", "enqueue", "mail", "x", "--id", "7")
        self.refused(NO_INPUT, "/none/such", "enqueue", "mail", "--file", "/none/such")

    # ---- looking

    def test_lists_are_filtered_and_paged(self):
        ids = sorted(self.enqueue("mail", str(n)) for n in range(5))
        other = self.enqueue("other", "x")
        self.assertEqual(self.ids("--queue", "mail"), ids)
        page = self.json("jobs", "--queue", "mail", "--limit", "2")
        self.assertEqual([j["id"] for j in page["jobs"]], ids[:2])
        self.assertEqual(self.ids("--queue", "mail", "--after", page["next_after"]), ids[2:])
        self.good("cancel", other)
        self.assertEqual(self.ids("--state", "failed"), [other])
        self.assertEqual(self.ids("--state", "failed,in_flight", "--reason", "cancelled"), [other])
        self.assertEqual(self.ids("--state", "succeeded"), [])
        self.assertEqual(self.ids("--reason", "poison"), [])
        self.refused(USAGE, "it must be ready, in_flight, succeeded or failed", "jobs", "--state", "gone")
        text = self.good("jobs", "--queue", "mail")
        self.assertEqual(len(text.splitlines()), 6)
        for job in ids:
            self.assertIn(job, text)

    def test_one_job_and_its_history(self):
        job = self.enqueue("mail", CANARY)
        for words in (("jobs", "show", job), ("jobs", "show", job, "--json"), ("attempts", job), ("attempts", job, "--json")):
            self.assertNotIn(CANARY, self.good(*words))
        self.assertEqual(self.json("attempts", job), {"id": job, "attempts": []})
        self.good("cancel", job)
        history = self.json("attempts", job)["attempts"]
        self.assertEqual([(a["attempt_no"], a["outcome"], a["reason"], a["ended_by"]) for a in history],
                         [(1, "FAILED", "cancelled", "operator")])
        self.assertIn("cancelled", self.good("attempts", job))
        self.assertIn("state          Failed", self.good("jobs", "show", job))
        for words in (("jobs", "show", ID), ("attempts", ID)):
            self.refused(DATA, "no such job", *words)
        for words in (("jobs", "show", "x"), ("attempts", "x"), ("jobs", "--after", "x")):
            self.refused(USAGE, "", *words)

    def test_who_holds_what(self):  # OL-QUERIES
        job = self.enqueue("mail", CANARY)
        self.assertEqual((self.json("leases")["leases"], self.json("workers")["workers"]), ([], []))
        with tempfile.TemporaryDirectory() as folder:
            gate = Path(folder) / "gate"
            os.mkfifo(gate)
            worker = subprocess.Popen([PAWL, "work", "mail", "--name", "here", "--", "sh", "-c", f"read x < {gate}"],
                                      env=self.env, stderr=subprocess.DEVNULL)
            leases = []
            for _ in range(500):
                leases = self.json("leases")["leases"]
                if leases:
                    break
                time.sleep(0.05)
            self.assertEqual([(x["job"], x["queue"], x["is_expired"]) for x in leases], [(job, "mail", False)])
            name = leases[0]["worker"]
            self.assertNotIn("token", self.good("leases", "--json"))
            self.assertIn(name, self.good("leases", "--worker", name))
            self.assertEqual(self.json("leases", "--worker", "other")["leases"], [])
            self.assertEqual(self.json("leases", "--queue", "other")["leases"], [])
            self.assertEqual(self.json("jobs", "--worker", name)["jobs"][0]["worker"], name)
            fleet = {w["name"]: w for w in self.json("workers")["workers"]}
            self.assertEqual((fleet[name]["kind"], fleet[name]["leases"]), ("worker", 1))
            self.assertEqual(fleet[name]["queues"], "mail")
            self.assertRegex(self.good("workers"), re.escape(name) + "  mail\n")
            self.assertEqual(self.json("queues")["queues"][0]["in_flight"], 1)
            self.assertEqual(self.json("cancel", job)["jobs"][0]["state"], "InFlight")
            self.assertTrue(self.json("leases")["leases"][0]["is_cancel_asked"])
            gate.write_text("go\n")
            worker.terminate()
            worker.wait(60)
        self.assertEqual(self.json("leases")["leases"], [])

    # ---- ordering keys

    def test_ordering_keys_and_bounds(self):
        first = self.enqueue("mail", "x", "--key", "customer 17")
        second = self.enqueue("mail", "y", "--key", "customer 17", "--priority", "0")
        self.enqueue("mail", "z", "--key", "customer 18")
        listed = self.json("jobs", "list", "--queue", "mail", "--key", "customer 17")["jobs"]
        self.assertEqual(sorted(x["id"] for x in listed), sorted([first, second]))
        self.assertEqual({x["ordering_key"] for x in listed}, {"customer 17"})
        self.refused(CONFIG, "queue is missing", "jobs", "list", "--key", "customer 17")
        self.assertEqual(self.json("queues", "show", "mail")["max_in_flight"], 0)
        self.assertEqual(self.json("queues", "set", "mail", "--max-in-flight", "3")["max_in_flight"], 3)
        self.assertEqual(self.json("queues", "show", "mail")["max_in_flight"], 3)
        with tempfile.TemporaryDirectory() as folder:
            said = Path(folder) / "said"
            script = f'echo "$PAWL_ORDERING_KEY $PAWL_FENCE $PAWL_JOB_ID" >> {said}'
            worker = subprocess.Popen([PAWL, "work", "mail", "--", "sh", "-c", script],
                                      env=self.env, stderr=subprocess.DEVNULL)
            wait_for(lambda: self.json("queues")["queues"][0]["succeeded"] == 3)
            worker.terminate()
            worker.wait(60)
            told = [line.rsplit(" ", 2) for line in said.read_text().splitlines()]
        fences = [int(fence) for key, fence, job in told if key == "customer 17"]
        self.assertEqual([job for key, fence, job in told if key == "customer 17"], [first, second])
        self.assertLess(fences[0], fences[1])

    # ---- queues

    def test_names_that_are_none(self):
        """Said by name, as what is wrong with the command line; nothing is opened for it."""
        nowhere = {**self.env, "PAWL_STORE": "sqlite:/none/such/x.db"}
        for words in (("enqueue", "a b", "x"), ("work", "q", "a b", "--", "true"), ("queues", "set", "a b", "--lease", "9s"),
                      ("queues", "pause", "a b"), ("queues", "resume", "a b"), ("queues", "show", "a b"),
                      ("jobs", "--queue", "a b"), ("leases", "--queue", "a b"), ("leases", "--worker", "a b"),
                      ("cancel", "--queue", "a b"), ("verify", "--queue", "a b"), ("work", "q", "--name", "a b", "--", "true")):
            self.refused(USAGE, '"a" goes on with byte 0x20 at 1; printable ASCII without blanks', *words, env=nowhere)
        self.refused(USAGE, "queue is empty", "enqueue", "", "x", env=nowhere)
        self.refused(USAGE, "is longer than 128 bytes", "enqueue", "a" * 129, "x", env=nowhere)
        self.refused(USAGE, 'queue "q" is given twice', "work", "q", "r", "q", "--", "true", env=nowhere)

    def test_queue_settings(self):
        default = self.json("queues", "show", "mail")
        self.assertEqual(default["execution_timeout_ms"], "default")
        self.assertEqual(default["max_retries"], 3)
        changed = self.json("queues", "set", "mail", "--lease", "60s", "--max-retries", "0", "--keep-failed", "forever",
                            "--timeout", "5m", "--keep-succeeded", "1d", "--backoff-base", "1s", "--backoff-max", "2m",
                            "--max-lost-leases", "2")
        self.assertEqual(changed, {**default, "lease_ms": 60000, "max_retries": 0, "keep_failed_ms": "forever",
                                   "execution_timeout_ms": 300000, "keep_succeeded_ms": 86400000, "backoff_base_ms": 1000,
                                   "backoff_max_ms": 120000, "max_lost_leases": 2})
        again = self.json("queues", "set", "mail", "--timeout", "default")
        self.assertEqual(again, {**changed, "execution_timeout_ms": "default"})
        self.assertEqual(self.json("queues", "show", "mail"), again)
        self.assertIn("keep-failed      forever", self.good("queues", "show", "mail"))
        self.refused(USAGE, "say which setting", "queues", "set", "mail")
        self.refused(USAGE, "--lease", "queues", "set", "mail", "--lease", "forever")
        self.refused(CONFIG, "lease_ms", "queues", "set", "mail", "--lease", "1ms")
        self.assertEqual(self.json("queues", "show", "mail"), again)

    def test_pause_and_resume(self):
        self.enqueue("mail", "x")
        self.good("queues", "pause", "mail")
        self.assertEqual(self.json("queues")["queues"][0]["is_paused"], True)
        self.assertIn("paused", self.good("queues", "list"))
        self.assertEqual(self.json("queues", "resume", "mail")["is_paused"], False)
        self.refused(USAGE, "say QUEUE", "queues", "pause")
        self.refused(USAGE, "did you mean pause?", "queues", "puase", "mail")

    # ---- changing

    def test_cancel_redrive_discard(self):  # Q-DEAD-LETTER, RES-13
        job = self.enqueue("mail", "x")
        self.assertEqual(self.good("cancel", job), "1 cancelled\n")
        self.assertEqual(self.json("redrive", job), {"jobs": [{"id": job, "verdict": "OK", "state": "Ready"}], "redriven": 1})
        done = self.refused(DATA, f"{job}: NOT_FAILED", "redrive", job)
        self.assertEqual(done.stdout, "0 redriven\n")
        self.refused(DATA, f"{ID}: GONE", "cancel", job, ID)
        self.assertEqual(self.good("discard", job), "1 discarded\n")
        self.refused(DATA, f"{job}: GONE", "redrive", job)
        self.assertEqual(self.pawl("jobs", "show", job, "--payload").returncode, DATA)

    def test_by_filter(self):
        lines = "".join(json.dumps({"payload": number, "queue": "mail" if number % 3 else "other"}) + "\n"
                        for number in range(1500))
        self.good("enqueue", "mail", "--ndjson", input=lines)
        self.assertEqual(self.json("cancel", "--queue", "mail"), {"cancelled": 1000})
        self.assertEqual(self.good("redrive", "--queue", "mail", "--reason", "cancelled", "--limit", "10"), "10 redriven\n")
        self.assertEqual(self.good("redrive", "--reason", "exhausted"), "0 redriven\n")
        self.assertEqual(self.good("cancel", "--all"), "510 cancelled\n")
        self.assertEqual(self.good("discard", "--all", "--limit", "1100"), "1100 discarded\n")
        self.assertEqual(self.good("redrive", "--all"), "400 redriven\n")

    def test_nothing_is_changed_wholesale_by_mistake(self):
        self.enqueue("mail", "x")
        for command in ("cancel", "redrive", "discard"):
            self.refused(USAGE, "say ids, or --queue", command)
            self.refused(USAGE, "say ids, or --queue", command, "--limit", "5")
            self.refused(USAGE, "not both", command, ID, "--queue", "mail")
            self.refused(USAGE, "UUID", command, "x")
        self.assertEqual(len(self.ids("--state", "ready")), 1)

    def test_prune(self):
        self.good("queues", "set", "mail", "--keep-failed", "1ms")
        for number in range(3):
            self.good("cancel", self.enqueue("mail", str(number)))
        time.sleep(0.05)  # the store's own clock decides
        self.assertEqual(self.good("prune", "--limit", "1"), "1 pruned\n")
        self.assertEqual(self.json("prune"), {"pruned": 2})
        self.assertEqual(self.ids(), [])


class SqliteTest(Cases, unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.env = {**CLEAN, "PAWL_STORE": f"sqlite:{self.folder}/pawl.db"}
        self.make_tables()

    # What puts nothing in.
    READING = (("jobs",), ("jobs", "show", ID), ("attempts", ID), ("leases",), ("workers",), ("queues",), ("queues", "show", "q"),
               ("queues", "resume", "q"), ("redrive", "--all"), ("discard", "--all"), ("cancel", ID), ("prune",), ("verify",),
               ("top", "--once"), ("reap",), ("worklease",), ("worklease", "show", "d"))

    def test_a_file_of_another_program(self):
        """It does not get Pawl's tables by being read, and is left as it is to the last byte."""
        file = Path(self.folder) / "theirs.db"
        with contextlib.closing(sqlite3.connect(file)) as theirs:
            theirs.execute("create table theirs (x)")
        before = file.read_bytes()
        for words in self.READING:
            done = self.refused(CONFIG, f"{file}: has none of Pawl's tables; `pawl enqueue`", *words, "--store", f"sqlite:{file}")
            self.assertEqual((words, done.stdout), (words, ""))
        done = self.pawl("doctor", "--store", f"sqlite:{file}")
        self.assertEqual(done.returncode, CONFIG, done)
        self.assertIn("has none of Pawl's tables", done.stdout + done.stderr)
        self.assertEqual(file.read_bytes(), before)
        self.assertEqual(sorted(p.name for p in Path(self.folder).iterdir() if "theirs" in p.name), ["theirs.db"])
        self.good("enqueue", "q", "x", "--store", f"sqlite:{file}")  # on purpose: they share the file
        self.assertEqual(len(self.json("jobs", "--store", f"sqlite:{file}")["jobs"]), 1)
        with contextlib.closing(sqlite3.connect(file)) as theirs:
            self.assertEqual(theirs.execute("select count(*) from theirs").fetchone(), (0,))

    def test_a_file_that_is_not_there(self):
        """A path that was mistyped does not become a store by being read: only what puts something in makes a file."""
        home = {**CLEAN, "XDG_STATE_HOME": f"{self.folder}/state"}
        file = Path(self.folder) / "pwal.db"
        before = sorted(p.name for p in Path(self.folder).iterdir())
        for words in self.READING:
            done = self.refused(UNAVAILABLE, f"{file}: there is no such file", *words, "--store", f"sqlite:{file}")
            self.assertEqual(done.stdout, "")
            self.refused(UNAVAILABLE, "state/pawl/pawl.db: there is no such file", *words, env=home)
        self.refused(UNAVAILABLE, "", "doctor", "--store", f"sqlite:{file}")
        self.assertEqual(sorted(p.name for p in Path(self.folder).iterdir()), before)
        for i, words in enumerate((("enqueue", "q", "x"), ("queues", "set", "q", "--lease", "9s"), ("queues", "pause", "q"))):
            self.good(*words, "--store", f"sqlite:{self.folder}/made{i}.db")
            self.good("queues", "--store", f"sqlite:{self.folder}/made{i}.db")

    def test_where_the_store_is_named(self):
        """--store over PAWL_STORE over DATABASE_URL over PG... over the file in the state folder."""
        def sqlite(name):
            return f"sqlite:{self.folder}/{name}.db"

        def queue(env, *words):
            return [q["queue"] for q in self.json("queues", *words, env=env)["queues"]]

        for name in ("option", "pawl", "url"):
            self.good("enqueue", name, "x", "--store", sqlite(name), env=CLEAN)
        home = {**CLEAN, "XDG_STATE_HOME": self.folder}
        self.good("enqueue", "home", "x", env=home)
        self.assertTrue((Path(self.folder) / "pawl" / "pawl.db").exists())
        server = {**home, "PGHOST": "/none/such"}
        url = {**server, "DATABASE_URL": sqlite("url")}
        store = {**url, "PAWL_STORE": sqlite("pawl")}
        self.assertEqual(queue(store, "--store", sqlite("option")), ["option"])
        self.assertEqual(queue(store), ["pawl"])
        self.assertEqual(queue(url), ["url"])
        self.refused(UNAVAILABLE, "no such socket", "queues", env=server)
        self.assertEqual(queue(home), ["home"])
        self.assertEqual(queue({**home, "PAWL_STORE": "", "DATABASE_URL": "", "PGHOST": ""}), ["home"])

    def test_a_store_of_no_kind(self):
        done = self.refused(CONFIG, "postgres://", "queues", "--store", f"mysql://u:{CANARY}@h/d")
        self.assertNotIn(CANARY, done.stderr)
        for command in (("migrate", "status"), ("adopt", "-")):
            self.refused(CONFIG, "not a PostgreSQL database", *command)
        self.assertEqual(self.json("queues", "--store", "memory:"), {"queues": []})


class PostgresTest(Cases, unittest.TestCase):
    world = None

    def setUp(self):
        database = self.world.database(2)
        self.env = {**CLEAN, "DATABASE_URL": f"postgresql:///{database}?host={self.world.server.folder}"
                                             f"&user={self.world.server.user}"}

    # With two shards an id of one's own must have the right bits: these two take what the store makes.
    def test_options_of_a_job(self):
        job = self.enqueue("mail", "x", "--priority", "2", "--delay", "1h", "--max-retries", "7")
        self.assertEqual(self.json("jobs", "show", job)["max_retries"], 7)

    def test_enqueuing_twice_is_told_and_harmless(self):
        job = self.enqueue("mail", "x", "--dedupe", "k")
        self.assertEqual(self.json("enqueue", "mail", "y", "--id", job, "--dedupe", "k"),
                         {"jobs": [{"id": job, "verdict": "EXISTS"}]})


class Cutter(threading.Thread):
    """Between the program and the server: cuts the connection once, when the answer to an enqueue comes."""

    def __init__(self, folder, server):
        super().__init__(daemon=True)
        self.server = server
        self.cuts = 0
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(f"{folder}/.s.PGSQL.5432")
        self.listener.listen()
        self.start()

    def run(self):
        while True:
            client = self.listener.accept()[0]
            server = socket.socket(socket.AF_UNIX)
            server.connect(self.server)
            asked = threading.Event()
            threading.Thread(target=self.forward, args=(client, server, asked), daemon=True).start()
            threading.Thread(target=self.back, args=(server, client, asked), daemon=True).start()

    def forward(self, client, server, asked):
        while data := client.recv(65536):
            if b"enqueue_batch" in data and self.cuts == 0:
                asked.set()
            server.sendall(data)
        server.close()

    def back(self, server, client, asked):
        with contextlib.suppress(OSError):
            while data := server.recv(65536):
                if asked.is_set():
                    self.cuts += 1
                    break
                client.sendall(data)
            client.shutdown(socket.SHUT_RDWR)


class LostAnswerTest(Store, unittest.TestCase):
    def test_an_enqueue_whose_answer_is_lost_is_repeated(self):
        """Q-AT-LEAST-ONCE without a second job: the ids are made before the first try."""
        database = PostgresTest.world.database(1)
        server = PostgresTest.world.server
        with tempfile.TemporaryDirectory() as folder:
            cutter = Cutter(folder, f"{server.folder}/.s.PGSQL.5432")
            env = {**CLEAN, "PAWL_STORE": f"postgresql:///{database}?host={folder}&user={server.user}"}
            told = self.good("enqueue", "mail", "--ndjson", input='{"payload": 1}\n{"payload": 2}\n', env=env)
        self.assertEqual(cutter.cuts, 1)
        self.assertEqual([row[0] for row in PostgresTest.world.sql(database, "select id from pawl.job order by id")],
                         sorted(told.split()))


class TablesTest(Store, unittest.TestCase):
    """What is made from the tables of the commands."""

    helps = {}

    def help(self, *words):
        """Help is the same each time: it is asked for once."""
        if words not in self.helps:
            self.helps[words] = self.good(*words)
        return self.helps[words]

    def commands(self):
        return re.findall(r"(?m)^  (\w+) ", self.help("help"))

    def actions(self, only=""):
        for command in self.commands() if only == "" else [only] if only else []:
            found = re.findall(rf"pawl ({command}(?: [a-z]+)?)", self.help(command, "--help").split("\n\n")[0])
            yield from found

    def options(self, action):
        return re.findall(r"(?m)^  (--[a-z-]+)", self.help(*action.split(), "--help"))

    def test_every_command_has_help(self):
        commands = self.commands()
        self.assertEqual(commands, sorted(commands))
        self.assertGreater(len(commands), 15)
        for action in self.actions():
            text = self.good(*action.split(), "--help")
            self.assertIn("usage: pawl " + action, text)
            self.assertRegex(text, r"\nexamples:\n  .*pawl ")
            self.assertLessEqual(max(map(len, text.splitlines())), 100)
            self.assertEqual(self.options(action), sorted(self.options(action)), action)
            # Every option is known to the command, whatever it says of it.
            for option in self.options(action):
                self.assertNotIn(f'unknown option "{option}"', self.pawl(*action.split(), option, "--nope").stderr)
        for command in commands:
            self.assertEqual(self.good("help", command), self.good(command, "--help"))

    def test_what_reads_speaks_json(self):
        without = {"help", "completion", "work"}
        for action in self.actions():
            if action.split()[0] not in without:
                self.assertIn("--json", self.options(action), action)

    def test_manual_pages(self):
        for command in [None, *self.commands()]:
            page = self.good("help", "--scdoc", *([command] if command else []))
            done = subprocess.run(["scdoc"], input=page, capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""), (command, page))
            self.assertIn(".TH", done.stdout)
            for action in self.actions(command):
                for option in self.options(action):
                    self.assertIn("*" + option.replace("-", "\\-") + "*", page, action)
        built = (TOP / "src" / "meson.build").read_text()
        listed = re.search(r"man_commands = \[(.*?)\]", built, re.DOTALL)[1]
        self.assertEqual(sorted(re.findall(r"'([\w]+)'", listed)), self.commands())

    def test_bash_completes(self):
        script = self.good("completion", "bash")

        def complete(*words):
            probe = script + ('\nCOMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _pawl; printf "%s\\n" "${COMPREPLY[@]}"\n')
            done = subprocess.run(["bash", "-c", probe, "bash", *words], capture_output=True, text=True, check=True)
            self.assertEqual(done.stderr, "")
            return done.stdout.split()

        self.assertEqual(sorted(complete("pawl", "")), self.commands())
        self.assertEqual(complete("pawl", "enq"), ["enqueue"])
        self.assertEqual(complete("pawl", "queues", "pa"), ["pause"])
        for action in self.actions():
            self.assertEqual(sorted(set(complete("pawl", *action.split(), "--"))), sorted({*self.options(action), "--help"}),
                             action)
        self.assertEqual(complete("pawl", "jobs", "list", "--state", "f"), ["failed"])

    def test_other_shells_are_told_every_option(self):
        for shell, form in (("zsh", "'{option}["), ("fish", " -l {name} ")):
            script = self.good("completion", shell)
            for action in self.actions():
                for option in self.options(action):
                    self.assertIn(form.format(option=option, name=option.removeprefix("--")), script)
            if shutil.which(shell):
                subprocess.run([shell, "-n"], input=script, text=True, check=True)
        self.refused(USAGE, "it must be bash, fish or zsh", "completion", "csh")

    def test_zsh_completes(self):
        """Typed on a terminal; the script is installed where zsh looks for it, or is sourced."""
        if not shutil.which("zsh"):
            self.skipTest("there is no zsh")
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "_pawl").write_text(self.good("completion", "zsh"))
            for load in (f"fpath=({folder} $fpath); autoload -Uz compinit; compinit -u -D",
                         f"autoload -Uz compinit; compinit -u -D; source {folder}/_pawl"):
                master, slave = pty.openpty()
                shell = subprocess.Popen(["zsh", "-f"], stdin=slave, stdout=slave, stderr=slave, env={**CLEAN, "TERM": "dumb"},
                                         start_new_session=True)
                os.close(slave)
                self.addCleanup(shell.wait)
                self.addCleanup(shell.kill)
                self.addCleanup(os.close, master)
                self.type(master, load + "; echo rea''dy\n", "ready")
                for words, completed in (("pawl enq", "ueue"), ("pawl queues pau", "se"), ("pawl top --ref", "resh"),
                                         ("pawl jobs list --state f", "ailed")):
                    self.type(master, words + "\t", words + completed)
                    self.type(master, "\x15echo do''ne\n", "done")

    def type(self, master, keys, awaited):
        os.write(master, keys.encode())
        text, end = "", time.monotonic() + 60
        while awaited not in text:
            self.assertLess(time.monotonic(), end, text)
            if select.select([master], [], [], 1)[0]:
                text += re.sub(r"\x08.|[\r\x07]", "", os.read(master, 65536).decode(errors="replace"))

    def test_fish_completes(self):
        if not shutil.which("fish"):
            self.skipTest("there is no fish")
        script = self.good("completion", "fish")

        def complete(words):
            done = subprocess.run(["fish", "--no-config", "-c", script + f"\ncomplete -C '{words}'"], capture_output=True,
                                  text=True, check=True, env={**CLEAN, "HOME": "/tmp"})
            self.assertEqual(done.stderr, "")
            return [line.split("\t")[0] for line in done.stdout.splitlines()]

        self.assertEqual(complete("pawl enq"), ["enqueue"])
        self.assertEqual(complete("pawl queues pau"), ["pause"])
        self.assertEqual(complete("pawl top --ref"), ["--refresh"])
        self.assertEqual(complete("pawl jobs list --state fa"), ["failed"])

    def test_the_reference_is_current(self):
        page = (TOP / "docs" / "commands.md").read_text()
        reference = page.split("<!-- What follows is made by tools/update-docs. -->")[1]
        self.assertEqual(reference.strip(), self.good("help", "--markdown").strip(),
                         "docs/commands.md is old: run tools/update-docs with this program")
        for action in self.actions():
            self.assertRegex(reference, rf"(?m)^####? pawl {action}$")
            for option in self.options(action):
                self.assertIn("`" + option, reference)

    def test_the_walk_can_be_walked(self):
        """What docs/commands.md tells a newcomer to type, typed."""
        walk = (TOP / "docs" / "commands.md").read_text().split("## Where jobs are kept")[0]
        script = "set -e\n" + "".join(re.findall(r"(?ms)^```sh\n(.*?)^```$", walk)) + "kill $!; wait $!\n"
        with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:  # doctor warns of files in memory
            (Path(folder) / "bin").mkdir()
            (Path(folder) / "bin" / "pawl").symlink_to(Path(PAWL).resolve())
            env = {**CLEAN, "XDG_STATE_HOME": folder, "PATH": f"{folder}/bin:{CLEAN['PATH']}"}
            done = subprocess.run(["bash", "-c", script], env=env, capture_output=True, text=True, check=False, timeout=120)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            for expected in ("sent to ada", "sent to dora", "no such person", "1 redriven", "1 discarded", "0 errors, 0 warnings",
                             "No gap, no overlap, no second completion"):
                self.assertIn(expected, done.stdout)

    def test_misspelt_options_are_guessed(self):
        for action in self.actions():
            for option in self.options(action):
                wrong = option[:-1] + "_"
                done = self.refused(USAGE, f'unknown option "{wrong}"', *action.split(), wrong)
                self.assertIn("did you mean --", done.stderr)


class StartTest(Store, unittest.TestCase):
    def test_make_run_starts_the_engine(self):
        """What it says can be tried works."""
        self.assertRegex((TOP / "Makefile").read_text(), r"(?m)^run:.*\n(\t.*\n)*\t@tools/start \$\(RELEASE\)/src/pawl$")
        with tempfile.TemporaryDirectory() as folder:
            output = Path(folder) / "output"
            # A store that the environment names is not the one: it is about the embedded store.
            env = {**CLEAN, "XDG_STATE_HOME": folder, "DATABASE_URL": "postgres:///x?host=/none/such"}
            with socket.create_server(("127.0.0.1", 0)) as free:
                address = "127.0.0.1:%d" % free.getsockname()[1]
            with open(output, "w", encoding="utf-8") as file:
                engine = subprocess.Popen([TOP / "tools" / "start", PAWL, address], env=env, stdout=file, stderr=file)
            self.addCleanup(engine.wait)
            self.addCleanup(engine.kill)
            wait_for(lambda: "event=SERVER-UP" in output.read_text())
            self.assertIn(f"http://{address}", output.read_text())
            tries = re.findall(r"(?m)^    (curl .*|export .*|pawl .*)$", output.read_text())
            self.assertEqual(len([line for line in tries if line.startswith("curl ")]), 3)
            script = "\n".join(line.replace("curl ", "curl -sSf ") for line in tries)
            done = subprocess.run(["sh", "-e", "-c", script], env=env, capture_output=True, text=True, check=False, timeout=60)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn('"payload":"my first job"', done.stdout)
            self.assertIn('"state":"InFlight"', done.stdout)
            engine.terminate()
            self.assertEqual(engine.wait(60), 0)


if __name__ == "__main__":
    with pg.World(PAWL) as PostgresTest.world:
        tap.main()
