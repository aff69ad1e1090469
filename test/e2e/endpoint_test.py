#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""endpoint_test.py - `pawl endpoint` and `pawl publish` on a SQLite file and on PostgreSQL: what they do, what they refuse, and
that no secret is told anywhere but where it is made.

Usage: endpoint_test.py PATH-OF-PAWL
"""

import json
import re
import resource
import shutil
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
from commands import CLEAN, DATA, UNAVAILABLE, USAGE, Store  # noqa: E402

Store.program = sys.argv.pop()
URL = "https://hooks.example/in"
WHSEC = r"^whsec_[A-Za-z0-9+/]{43}=$"


def allow_core_dumps():
    most = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (most, most))


class Cases(Store):
    """Run on each kind of store."""

    folder = None

    def add(self, name, *words, topics="order.*", url=URL):
        done = self.pawl("endpoint", "add", name, "--url", url, "--topics", topics, *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()

    def show(self, name):
        return self.json("endpoint", "show", name)

    def queued(self, name):
        return self.ids("--queue", f"webhook/{name}", "--state", "ready")

    def file(self, text):
        path = Path(tempfile.mkstemp(dir=self.folder)[1])
        path.write_text(text)
        return path

    # ---- endpoints

    def test_a_secret_is_made_and_shown_once(self):
        secret = self.add("crm")
        self.assertRegex(secret, WHSEC)
        told = self.json("endpoint", "rotate", "crm")
        self.assertEqual(set(told), {"name", "secret"})
        self.assertRegex(told["secret"], WHSEC)
        self.assertNotEqual(told["secret"], secret)
        self.assertEqual(self.show("crm")["secrets"], 2)
        self.json("endpoint", "rotate", "crm", "--at-once")
        self.assertEqual(self.show("crm")["secrets"], 1)

    def test_a_key_pair_comes_with_its_public_key(self):
        secret, public = self.add("crm", "--key-pair").split()
        self.assertRegex(secret, "^whsk_")
        self.assertRegex(public, "^whpk_")
        told = self.json("endpoint", "rotate", "crm", "--key-pair")
        self.assertEqual(set(told), {"name", "secret", "public_key"})

    def test_settings(self):
        self.add("crm", "--ordering", "key", "--format", "cloudevents-binary", "--timeout", "5s", "--rate", "60", "--max-retries", "3",
                 "--max-in-flight", "9", "--backoff-base", "1s", "--backoff-max", "1m", "--lease", "90s", "--header", "x-a: 1",
                 "--header", "x-b: 2", "--fail-statuses", "404,400")
        told = self.show("crm")
        self.assertEqual({k: told[k] for k in ("state", "queue", "url", "topics", "ordering", "format", "headers", "fail_statuses",
                                               "timeout_ms", "rate_per_minute", "secrets", "lease_ms", "max_in_flight", "max_retries",
                                               "backoff_base_ms", "backoff_max_ms", "revision")},
                         {"state": "enabled", "queue": "webhook/crm", "url": URL, "topics": "order.*", "ordering": "key",
                          "format": "cloudevents-binary", "headers": "x-a,x-b", "fail_statuses": "400,404", "timeout_ms": 5000,
                          "rate_per_minute": 60, "secrets": 1, "lease_ms": 90000, "max_in_flight": 9, "max_retries": 3,
                          "backoff_base_ms": 1000, "backoff_max_ms": 60000, "revision": 1})
        changed = self.json("endpoint", "set", "crm", "--topics", "*", "--ordering", "none", "--headers-file", "/dev/null")
        self.assertEqual((changed["topics"], changed["ordering"], changed["headers"], changed["max_retries"], changed["revision"]),
                         ("*", "none", "", 3, 2))

    def test_lists(self):
        for name in ("b", "a", "c"):
            self.add(name)
        rows = self.json("endpoint")["endpoints"]
        self.assertEqual([r["name"] for r in rows], ["a", "b", "c"])
        self.assertEqual(rows[0]["origin"], "https://hooks.example")
        page = self.json("endpoint", "list", "--limit", "1", "--after", "a")
        self.assertEqual(([r["name"] for r in page["endpoints"]], page["next_after"]), (["b"], "b"))
        self.assertEqual(len(self.good("endpoint", "list").splitlines()), 4)

    def test_switches(self):
        self.add("crm")
        told = self.json("endpoint", "disable", "crm", "--by", "anna", "--reason", "moving house")
        self.assertEqual((told["state"], told["switched_by"], told["reason"]), ("disabled", "anna", "moving house"))
        self.assertEqual(self.json("publish", "order.created", "x")["endpoints"], 0)
        self.good("endpoint", "enable", "crm")
        told = self.show("crm")
        self.assertEqual(told["state"], "enabled")
        self.assertIn("@", told["switched_by"])

    def test_removal(self):
        self.add("crm")
        self.good("publish", "order.created", "x")
        self.refused(DATA, "webhook/crm", "endpoint", "remove", "crm")
        self.good("endpoint", "disable", "crm")
        self.good("cancel", "--queue", "webhook/crm")
        self.assertEqual(self.json("endpoint", "remove", "crm"), {"name": "crm", "is_removed": True})
        self.refused(DATA, "no endpoint crm", "endpoint", "show", "crm")
        self.refused(DATA, "no endpoint crm", "endpoint", "remove", "crm")

    def test_refusals(self):
        self.add("crm")
        for url, complaint in (("http://hooks.example/", "scheme"), ("https://127.0.0.1/", "loopback"), ("https://10.0.0.1/", "private"),
                               ("https://hooks.example:8443/", "port"), ("https://u:p@hooks.example/", "credentials"), ("", "url")):
            done = self.refused(USAGE, complaint, "endpoint", "set", "crm", "--url", url)
            self.assertEqual(done.stdout, "")
        self.good("endpoint", "set", "crm", "--url", "http://127.0.0.1:8080/x", "--webhook-http", "--webhook-ports", "8080",
                  "--webhook-allow", "127.0.0.0/8,10.0.0.1")
        self.refused(DATA, "already", "endpoint", "add", "crm", "--url", URL, "--topics", "*")
        self.refused(USAGE, "--topics", "endpoint", "add", "other", "--url", URL)
        for words, complaint in ((("--topics", "a..b"), "topic"), (("--topics", "a.*.b"), "topic"), (("--fail-statuses", "500"), "--fail-statuses"),
                                 (("--header", "no colon"), "--header"), (("--timeout", "1h"), "timeout_ms"),
                                 (("--webhook-ports", "0", "--url", URL), "--webhook-ports"),
                                 (("--webhook-allow", "10.0.0.1/8", "--url", URL), "--webhook-allow")):
            done = self.pawl("endpoint", "set", "crm", *words)
            self.assertNotEqual(done.returncode, 0, words)
            self.assertIn(complaint, done.stderr, words)
        self.assertEqual(self.show("crm")["revision"], 2)

    def test_headers_stay_where_a_file_cannot_be_read(self):
        self.add("crm", "--header", "x-key: 1")
        for path in self.folder, f"{self.folder}/nowhere":
            self.refused(USAGE, "--headers-file", "endpoint", "set", "crm", "--headers-file", path)
        self.assertEqual(self.show("crm")["headers"], "x-key")

    # ---- publishing

    def test_an_event_becomes_a_job_for_each(self):
        self.add("a", "--ordering", "key")
        self.add("b", topics="order.created")
        self.add("c", topics="invoice.*")
        told = self.json("publish", "order.created", '{"n": 1}', "--id", "evt_1", "--key", "k", "--header", "content-type: application/json")
        self.assertEqual(told, {"id": "evt_1", "verdict": "OK", "endpoints": 2, "jobs": 2})
        self.assertEqual([len(self.queued(n)) for n in "abc"], [1, 1, 0])
        job = self.json("jobs", "show", self.queued("a")[0])
        self.assertEqual(job["headers"], {"pawl-event-id": "evt_1", "pawl-event-type": "order.created", "pawl-event-key": "k",
                                          "content-type": "application/json"})
        self.assertEqual(self.good("jobs", "show", self.queued("b")[0], "--payload"), '{"n": 1}')
        again = self.pawl("publish", "order.created", "other", "--id", "evt_1", "--key", "k")
        self.assertEqual((again.returncode, again.stdout), (0, "evt_1\n"))
        self.assertIn("published before", again.stderr)
        self.assertEqual([len(self.queued(n)) for n in "abc"], [1, 1, 0])

    def test_payloads_come_as_for_enqueue(self):
        self.add("a")
        for words, given, payload in ((("order.x",), "piped\n", "piped\n"), (("order.x", "-"), "dash", "dash"),
                                      (("order.x", "--file", self.file("from a file")), "", "from a file"), (("order.x", ""), "", "")):
            self.good("publish", *words, input=given)
            job = self.queued("a")[0]
            self.assertEqual(self.good("jobs", "show", job, "--payload"), payload)
            self.good("cancel", job)
        self.refused(USAGE, "twice", "publish", "order.x", "x", "--file", "-")
        for words, complaint in ((("a..b", "x"), "event_type"), (("order.x", "x", "--id", "a.b"), "id"),
                                 (("order.x", "x", "--header", "pawl-event-id: x"), "pawl-event-id")):
            done = self.pawl("publish", *words)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(complaint, done.stderr)

    def test_nobody_wants_it(self):
        done = self.pawl("publish", "order.x", "x")
        self.assertEqual(done.returncode, 0)
        self.assertIn("no enabled endpoint", done.stderr)

    # ---- secrets: NFR-003

    def test_no_secret_is_told(self):
        """Whatever is asked and refused: given secrets, values of headers and paths of URLs are told nowhere."""
        canaries = {"secret": "Y2FuYXJ5LXNlY3JldC0xLWNhbmFyeS1zZWNyZXQtMQ==", "second": "Y2FuYXJ5LXNlY3JldC0yLWNhbmFyeS1zZWNyZXQtMg==",
                    "header": "canary-header-77", "path": "canary-path-77"}
        told = []

        def run(*words, **more):
            done = self.pawl(*words, **more)
            told.append((words, done.stdout + done.stderr))
            return done

        secret = self.file(f"whsec_{canaries['secret']}\n")
        headers = self.file(f"authorization: Bearer {canaries['header']}\nx-ok: 1\n")
        url = f"https://hooks.example/{canaries['path']}"
        done = run("endpoint", "add", "crm", "--url", url, "--topics", "*", "--secret-file", secret, "--headers-file", headers)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, "")
        run("endpoint", "add", "crm", "--url", url, "--topics", "*", "--secret-file", secret, "--headers-file", headers)
        run("endpoint", "rotate", "crm", "--secret-file", "-", input=f"whsec_{canaries['second']}\n")
        run("endpoint", "rotate", "crm", "--secret-file", "-", input=f"whsec_{canaries['second']}\n")
        run("endpoint", "rotate", "crm", "--secret-file", "-", input=f"whsec_{canaries['second']}!\n")
        run("endpoint", "rotate", "crm", "--secret-file", "-", input=f"{canaries['second'] * 9}\n")
        run("endpoint", "rotate", "nix", "--secret-file", secret)
        run("endpoint", "set", "crm", "--header", f"x-key: {canaries['header']}\x01")
        run("endpoint", "set", "crm", "--header", f"bad name: {canaries['header']}")
        run("endpoint", "set", "crm", "--url", f"https://127.0.0.1/{canaries['path']}")
        run("endpoint", "set", "crm", "--url", f"ftp://hooks.example/{canaries['path']}")
        run("publish", "order.x", "x")
        for words in (("endpoint",), ("endpoint", "--json"), ("endpoint", "disable", "crm", "--reason", "r"), ("queues", "--json"),
                      ("queues", "show", "webhook/crm"), ("jobs", "--json"), ("config",), ("doctor",), ("verify",), ("workers",),
                      ("jobs", "show", self.queued("crm")[0]), ("top", "--once"), ("endpoint", "remove", "crm")):
            run(*words)
        shown = run("endpoint", "show", "crm", "--json")
        self.assertEqual(json.loads(shown.stdout)["headers"], "authorization,x-ok")
        self.assertEqual(json.loads(shown.stdout)["secrets"], 2)
        for what, canary in canaries.items():
            for words, text in told:
                if what == "path" and words[:2] == ("endpoint", "show"):
                    self.assertIn(canary, text)  # who asks for one endpoint is told where it is
                else:
                    self.assertNotIn(canary, text, (what, words))

    @unittest.skipUnless(sys.platform == "linux", "reads /proc")
    def test_a_command_that_holds_a_secret_leaves_no_core_dump(self):
        self.add("crm")
        for words in ("add", "erp", "--url", URL, "--topics", "*"), ("rotate", "crm"):
            with subprocess.Popen([self.program, "endpoint", *words, "--secret-file", "-"], env=self.env, stdin=subprocess.PIPE,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=allow_core_dumps) as process:
                limits = Path(f"/proc/{process.pid}/limits")
                end = time.monotonic() + 60
                while time.monotonic() < end and not re.search(r"Max core file size +0 +0 ", limits.read_text()):
                    time.sleep(0.01)
                self.assertRegex(limits.read_text(), r"Max core file size +0 +0 ")
                process.kill()


class SqliteTest(Cases, unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.env = {**CLEAN, "PAWL_STORE": f"sqlite:{self.folder}/pawl.db"}
        (Path(self.folder) / "pawl.db").touch()

    def sql(self, *statements):
        with sqlite3.connect(f"{self.folder}/pawl.db", timeout=30) as db:
            for statement in statements:
                db.execute(statement)
        db.close()

    def test_an_application_publishes_in_its_own_transaction(self):
        self.add("a", "--ordering", "key")
        self.add("b", topics="*,order.created")
        self.add("c", topics="order.created.*,other")
        self.add("off", topics="*")
        self.good("endpoint", "disable", "off")
        self.sql("CREATE TABLE orders (id INTEGER)")
        db = sqlite3.connect(f"{self.folder}/pawl.db", timeout=30, isolation_level=None)
        db.execute("BEGIN IMMEDIATE")
        db.execute("INSERT INTO orders VALUES (17)")
        db.execute("INSERT INTO pawl_publish (type, payload) VALUES ('order.created', 'x')")
        db.execute("ROLLBACK")
        self.assertEqual([len(self.queued(n)) for n in "abc"], [0, 0, 0])
        db.execute("INSERT INTO pawl_publish (type, payload, ordering_key, headers, time_us) VALUES "
                   "('order.created', 'bytes', 'k', '{\"content-type\": \"text/plain\"}', 1600000000000001)")
        self.assertEqual([len(self.queued(n)) for n in "abc"], [1, 1, 0])
        self.assertEqual(self.ids("--queue", "webhook/off"), [])
        of_a, of_b = (self.json("jobs", "show", self.queued(n)[0]) for n in "ab")
        self.assertEqual(of_a["headers"], of_b["headers"])
        self.assertRegex(of_a["headers"].pop("pawl-event-id"), "^[0-9a-f]{32}$")
        self.assertEqual(of_a["headers"], {"pawl-event-type": "order.created", "pawl-event-key": "k", "content-type": "text/plain",
                                           "pawl-event-time": "1600000000000001"})
        self.assertEqual((of_a.get("ordering_key"), of_b.get("ordering_key")), ("k", None))
        self.assertEqual(self.good("jobs", "show", of_a["id"], "--payload"), "bytes")
        refused = [("type) VALUES ('a..b'", "type"), ("type) VALUES ('a.*'", "type"), ("type) VALUES (NULL", "type"),
                   ("type, headers) VALUES ('x', '[]'", "headers"), ("type, headers) VALUES ('x', 'x'", "headers"),
                   ("type, headers) VALUES ('x', '{\"Pawl-a\": \"1\"}'", "pawl-"), ("type, time_us) VALUES ('x', 0", "time_us"),
                   ("type, time_us) VALUES ('x', 253402300799000001", "time_us"), ("type, payload) VALUES ('x', 17", "payload"),
                   ("type, payload) VALUES ('x', zeroblob(1048577)", "payload"), ("type, ordering_key) VALUES ('x', 17", "ordering_key"),
                   ("type, ordering_key) VALUES ('x', char(10)", "ordering_key"), ("type, ordering_key) VALUES ('x', ' k'", "ordering_key"),
                   ("type, headers) VALUES ('x', '{\"a\": null}'", "headers"), ("type, headers) VALUES ('x', '{\"a b\": \"1\"}'", "name"),
                   ("type, headers) VALUES ('x', '{\"a\": \"1\\n\"}'", "value"), ("type, headers) VALUES ('x', '{\"a\": \"1\", \"A\": \"2\"}'", "names"),
                   ("type, headers) VALUES ('x', '{" + ", ".join(f'"h{i}": "v"' for i in range(61)) + "}'", "60 at most")]
        for is_wanted in True, False:  # it must not depend on there being an endpoint
            if not is_wanted:
                self.good("endpoint", "disable", "b")
            for row, complaint in refused:
                with self.assertRaisesRegex(sqlite3.IntegrityError, f"^pawl_publish: .*{complaint}"):
                    db.execute(f"INSERT INTO pawl_publish ({row})")
        db.close()
        self.assertEqual([len(self.queued(n)) for n in "abc"], [1, 1, 0])

    def test_topics_match_as_they_do_in_c(self):
        """The table of test/store/topic_cases.h."""
        table = (TOP / "test" / "store" / "topic_cases.h").read_text()
        cases = [line.split('"') for line in table.splitlines() if line.startswith('    {"')]
        self.assertGreater(len(cases), 20)
        self.add("crm")
        for _, topics, _, kind, verdict in cases:
            self.good("endpoint", "set", "crm", "--topics", topics)
            self.sql(f"INSERT INTO pawl_publish (type) VALUES ('{kind}')")
            self.assertEqual(len(self.queued("crm")), int("true" in verdict), (topics, kind))
            self.good("cancel", "--queue", "webhook/crm")

    def test_a_file_that_is_not_there(self):
        self.env = {**CLEAN, "PAWL_STORE": f"sqlite:{self.folder}/other.db"}
        self.refused(UNAVAILABLE, "other.db", "endpoint", "show", "crm")
        self.add("crm")
        self.assertEqual(self.show("crm")["state"], "enabled")


class PostgresTest(Cases, unittest.TestCase):
    world = None

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        database = self.world.database(2)
        self.env = {**CLEAN, "DATABASE_URL": f"postgresql:///{database}?host={self.world.server.folder}"
                                             f"&user={self.world.server.user}"}


if __name__ == "__main__":
    with pg.World(Store.program) as PostgresTest.world:
        tap.main()
