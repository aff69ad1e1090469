#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sqlite_test.py - whether what docs/sqlite.md shows can be copied and pasted, and what SQL may do.

Usage: sqlite_test.py PATH-OF-MAIL_WORKER PATH-OF-PAWL
"""

import json
import os
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
import tap  # noqa: E402

PAWL = Path(sys.argv.pop()).resolve()
WORKER = Path(sys.argv.pop()).resolve()
DOCUMENT = (TOP / "docs" / "sqlite.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", DOCUMENT, re.MULTILINE | re.DOTALL)


class InFolder(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        self.folder = Path(self._folder.name)
        self.file = self.folder / "shop.db"

    def run_in_folder(self, *command):
        env = {**os.environ, "PATH": f"{WORKER.parent}:{os.environ['PATH']}"}
        done = subprocess.run(command, cwd=self.folder, env=env, capture_output=True, text=True,
                              check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""), command)
        return done.stdout

    def worked(self):
        return self.run_in_folder(str(WORKER), "shop.db")

    def connect(self):
        self.worked()  # makes the file
        db = sqlite3.connect(self.file, isolation_level=None)
        db.execute("PRAGMA wal_autocheckpoint = 0")
        self.addCleanup(db.close)
        return db


class DocumentTest(InFolder):
    def test_everything_shown_runs_as_shown(self):
        commands = {"sh": ("sh", "-e", "-c"), "python": (sys.executable, "-c")}
        count = 0
        for (kind, text), (next_kind, wanted) in zip(BLOCKS, BLOCKS[1:] + [("", "")]):
            if kind in commands:
                output = self.run_in_folder(*commands[kind], text)
                self.assertEqual(output, wanted if next_kind == "text" else "", text)
                count += 1
        self.assertGreaterEqual(count, 6)

    def test_the_c_shown_is_in_the_example(self):
        source = (TOP / "examples" / "mail_worker.c").read_text()
        shown = [text for kind, text in BLOCKS if kind == "c"]
        self.assertEqual(len(shown), 1)
        self.assertIn(shown[0], source)

    def test_all_columns_are_told(self):
        db = self.connect()
        columns = [row[1] for row in db.execute("PRAGMA table_info(pawl_enqueue)")]
        self.assertEqual(len(columns), 13)
        for column in columns:
            self.assertIn(f"`{column}`", DOCUMENT)


class EnqueueTest(InFolder):
    def refused(self, db, message, **values):
        """An insert of these columns raises; the text says `message`, and nothing is left."""
        columns = ", ".join(values)
        marks = ", ".join("?" * len(values))
        before = db.execute("SELECT count(*) FROM pawl_job").fetchone()
        for verb in ("INSERT", "INSERT OR IGNORE", "INSERT OR REPLACE"):
            with self.assertRaises(sqlite3.IntegrityError, msg=str(values)) as raised:
                db.execute(f"{verb} INTO pawl_enqueue ({columns}) VALUES ({marks})",
                           list(values.values()))
            self.assertIn("pawl_enqueue: " + message, str(raised.exception))
        self.assertEqual(db.execute("SELECT count(*) FROM pawl_job").fetchone(), before)
        self.assertEqual(db.execute("SELECT count(*) FROM pawl_draft").fetchone(), (0,))

    def test_what_pawl_h_forbids_is_refused(self):
        db = self.connect()
        ten_years = 3650 * 24 * 3600 * 1000
        for queue in (None, "", "a b", "a\tb", "ä", "a" * 129, 7, b"mail", "a\0b"):
            self.refused(db, "queue must be", queue=queue)
        for payload in (1, 1.5):
            self.refused(db, "payload must be", queue="mail", payload=payload)
        self.refused(db, "payload is larger", queue="mail", payload=b"x" * (1 << 20) + b"x")
        for job in (b"short", bytes(16), "no uuid", str(uuid.UUID(int=0)), 5,
                    "0" * 32, "g0000000-0000-0000-0000-000000000000"):
            self.refused(db, "id must be", queue="mail", id=job)
        for priority in (-1, 10, "5", 1.5):
            self.refused(db, "priority must be", queue="mail", priority=priority)
        for delay in (-1, ten_years + 1, "1"):
            self.refused(db, "delay_ms must be", queue="mail", delay_ms=delay)
        self.refused(db, "start_within_ms must be", queue="mail", delay_ms=5, start_within_ms=5)
        self.refused(db, "start_within_ms must be", queue="mail", start_within_ms=0)
        for retries in (-1, 10001, "1"):
            self.refused(db, "max_retries must be", queue="mail", max_retries=retries)
        for column in ("timeout_ms", "backoff_base_ms", "backoff_max_ms"):
            for value in (0, ten_years + 1, "1"):
                self.refused(db, column + " must be", queue="mail", **{column: value})
        for key in ("", "a\nb", "a\x7fb", "a\x80b", "x" * 256, b"key", 5, "a\0b"):
            self.refused(db, "dedupe_key must be", queue="mail", dedupe_key=key)
        for key in ("a\nb", "a\x7fb", "a\x80b", "x" * 256, b"key", 5, "a\0b"):
            self.refused(db, "ordering_key must be", queue="mail", ordering_key=key)

    def test_bad_headers_are_refused(self):
        db = self.connect()
        for headers in (1, b"{}", "", "hush", '{"a\\u0000b": "1"}', '{"a": "1\\u0000"}', "[]", "null", '{"a": 1}', '{"a": null}', '{"a": ["hush"]}', '{"a": "hush"'):
            self.refused(db, "headers must be a text: a JSON object of texts", queue="mail", headers=headers)
        for name in ("", "a b", "a:", "a\n", "\u00e4", "n" * 129):
            self.refused(db, "the name of a header must have", queue="mail", headers=json.dumps({"fine": "1", name: "hush"}))
        for value in ("hush\nadmin: yes", "a\tb", "a\x7f", "a\x85", " a", "a ", " ", "v" * 4097, "\u00e4" * 2049):
            self.refused(db, "the value of a header must have", queue="mail", headers=json.dumps({"fine": "1", "a": value}))
        self.refused(db, "headers must have names that differ", queue="mail", headers='{"Tenant": "1", "tenant": "2"}')
        self.refused(db, "headers must have names that differ", queue="mail", headers='{"a": "1", "a": "2"}')
        self.refused(db, "headers must be 64 at most", queue="mail", headers=json.dumps({f"h{n}": "" for n in range(65)}))
        longest = {**{name: "v" * 4000 for name in "abcd"}, "e": "v" * (16384 - 4 * 4004 - 4)}
        self.refused(db, "headers must be 64 at most", queue="mail", headers=json.dumps({**longest, "e": longest["e"] + "v"}))
        db.execute("INSERT INTO pawl_enqueue (queue, headers) VALUES ('mail', ?)", [json.dumps(longest)])
        db.execute("INSERT INTO pawl_enqueue (queue, headers) VALUES ('mail', ?)",
                   [json.dumps({f"h{n}": "" for n in range(64)})])
        self.assertEqual(db.execute("SELECT length(headers) FROM pawl_payload").fetchone(), (16384,))

    def test_headers_are_as_the_library_makes_them(self):
        db = self.connect()
        headers = {"tenant": "17", "X-Note": "two  words: \u00e4\u20ac \"\\", "!#$%&'*+-.^_`|~09": ""}
        for payload in ("work", None):
            db.execute("INSERT INTO pawl_enqueue (queue, payload, headers) VALUES ('mail', ?, ?)", [payload, json.dumps(headers)])
        for none in (None, "{}"):
            db.execute("INSERT INTO pawl_enqueue (queue, headers) VALUES ('other', ?)", [none])
        self.assertEqual(db.execute("SELECT count(*) FROM pawl_payload").fetchone(), (2,))
        for (job,) in db.execute("SELECT id FROM pawl_job ORDER BY number").fetchall():
            told = json.loads(self.run_in_folder(PAWL, "jobs", "show", str(uuid.UUID(bytes=job)), "--store", "sqlite:shop.db", "--json"))
            self.assertEqual(told.get("headers"), headers if told["queue"] == "mail" else None)
        line = [PAWL, "enqueue", "--store", "sqlite:shop.db", "mail", "work"]
        for name, value in headers.items():
            line += ["--header", f"{name}: {value}"]
        self.run_in_folder(*line)
        self.assertEqual(db.execute("SELECT count(DISTINCT headers) FROM pawl_payload").fetchone(), (1,))

    def test_ids_that_exist_or_have_existed_are_refused(self):
        db = self.connect()
        job = uuid.uuid4()
        db.execute("INSERT INTO pawl_enqueue (queue, payload, id) VALUES ('mail', 'once', ?)",
                   [job.bytes])
        self.refused(db, "a job with this id exists", queue="other", id=str(job))
        self.assertEqual(self.worked(), "mail: once\n")
        self.refused(db, "a job with this id exists", queue="mail", id=job.bytes)
        self.assertEqual(self.worked(), "")  # Q-NEVER-AGAIN

    def test_dedupe_keys_of_live_jobs_are_refused(self):
        db = self.connect()
        put = "INSERT INTO pawl_enqueue (queue, payload, dedupe_key) VALUES (?, ?, 'key')"
        db.execute(put, ["mail", "first"])
        self.refused(db, "a live job of this queue holds", queue="mail", dedupe_key="key")
        db.execute(put, ["other", "another queue's"])
        self.assertEqual(self.worked(), "mail: first\n")
        db.execute(put, ["mail", "second"])
        self.assertEqual(self.worked(), "mail: second\n")

    def test_order_is_that_of_the_inserts(self):
        db = self.connect()
        put = "INSERT INTO pawl_enqueue (queue, payload, priority) VALUES ('mail', ?, ?)"
        for text, priority in (("a", 5), ("b", 5), ("urgent", 0), ("c", None), ("last", 9)):
            db.execute(put, [text, priority])
        self.assertEqual(self.worked(), "".join(f"mail: {t}\n" for t in
                                                ("urgent", "a", "b", "c", "last")))

    def test_jobs_of_a_key_come_in_the_order_of_the_inserts(self):  # RES-7
        db = self.connect()
        put = "INSERT INTO pawl_enqueue (queue, payload, priority, ordering_key) VALUES (?, ?, ?, ?)"
        for text, priority, key in (("a", 9, "k"), ("b", 0, "k"), ("c", 5, None), ("d", 0, "k"),
                                    ("e", 5, "\u00e4"), ("f", 5, ""), ("g", 5, "")):
            db.execute(put, ["mail", text, priority, key])
        db.execute(put, ["other", "another queue's", 5, "k"])
        rows = db.execute("SELECT ordering_key, key_seq IS number, key_seq IS NULL, is_waiting "
                          "FROM pawl_job ORDER BY number").fetchall()
        none, first, behind = (None, 0, 1, 0), ("k", 1, 0, 0), ("k", 1, 0, 1)
        self.assertEqual(rows, [first, behind, none, behind, ("\u00e4", 1, 0, 0), none, none, first])
        self.assertEqual(self.worked(), "".join(f"mail: {t}\n" for t in "cefgabd"))

    def test_a_dedupe_key_is_one_within_its_ordering_key(self):
        db = self.connect()
        put = "INSERT INTO pawl_enqueue (queue, dedupe_key, ordering_key) VALUES ('mail', 'd', ?)"
        for key in ("k", "l", None):
            db.execute(put, [key])
        for key in ("k", "l", None, ""):
            self.refused(db, "a live job of this queue holds", queue="mail", dedupe_key="d",
                         ordering_key=key)

    def test_the_library_and_sql_agree_who_waits(self):
        db = self.connect()
        pawl = [PAWL, "enqueue", "--store", "sqlite:shop.db", "--key", "k", "mail"]
        put = "INSERT INTO pawl_enqueue (queue, payload, ordering_key) VALUES ('mail', ?, 'k')"
        self.run_in_folder(*pawl, "1")
        db.execute(put, ["2"])
        self.run_in_folder(*pawl, "3")
        db.execute(put, ["4"])
        waiting = db.execute("SELECT is_waiting FROM pawl_job ORDER BY number").fetchall()
        self.assertEqual(waiting, [(0,), (1,), (1,), (1,)])
        self.assertEqual(self.worked(), "".join(f"mail: {t}\n" for t in "1234"))
        db.execute(put, ["5"])
        self.assertEqual(self.worked(), "mail: 5\n")

    def test_a_job_is_as_the_library_makes_it(self):
        db = self.connect()
        before = time.time_ns() // 1000
        db.execute("INSERT INTO pawl_enqueue (queue, payload) VALUES ('mail', 'text')")
        db.execute("""INSERT INTO pawl_enqueue (queue, payload, delay_ms, start_within_ms, max_retries,
                      timeout_ms, backoff_base_ms, backoff_max_ms)
                      VALUES ('mail', x'00ff80', 1000, 5000, 0, 7, 8, 9)""")
        db.row_factory = sqlite3.Row
        first, second = db.execute("SELECT * FROM pawl_job ORDER BY number").fetchall()
        after = time.time_ns() // 1000
        for job in (first, second):
            made = uuid.UUID(bytes=job["id"])
            self.assertEqual((made.version, made.variant), (7, uuid.RFC_4122))
            self.assertEqual(int.from_bytes(job["id"][:6], "big") * 1000, job["created_at"])
            self.assertTrue(before - 1000 <= job["created_at"] <= after + 1000)
            self.assertEqual(job["state"], 0)
        self.assertEqual(first["next_attempt_at"], first["created_at"])
        self.assertEqual((first["rank"], first["timed_at"], first["priority"]), (2, 0, 5))
        self.assertIsNone(first["start_by"])
        self.assertEqual(second["next_attempt_at"], second["created_at"] + 1000000)
        self.assertEqual((second["rank"], second["timed_at"]), (1, second["next_attempt_at"]))
        self.assertEqual(second["start_by"], second["created_at"] + 5000000)
        self.assertEqual(second["deadline"], second["start_by"])
        self.assertEqual([second[c] for c in ("max_retries", "timeout_ms", "backoff_base_ms",
                                              "backoff_max_ms", "payload_len")], [0, 7, 8, 9, 3])
        payloads = [row[0] for row in db.execute("SELECT bytes FROM pawl_payload ORDER BY number")]
        self.assertEqual(payloads, [b"text", b"\x00\xff\x80"])

    def test_many_ids_differ(self):
        db = self.connect()
        db.execute("BEGIN IMMEDIATE")
        for _ in range(2000):
            db.execute("INSERT INTO pawl_enqueue (queue) VALUES ('bulk')")
        db.execute("COMMIT")
        self.assertEqual(db.execute("SELECT count(DISTINCT id) FROM pawl_job").fetchone(), (2000,))

    def test_a_crash_before_the_commit_leaves_nothing(self):
        self.worked()
        program = """if True:
            import os, sqlite3
            db = sqlite3.connect("shop.db", isolation_level=None)
            db.execute("BEGIN IMMEDIATE")
            db.execute("INSERT INTO pawl_enqueue (queue, payload) VALUES ('mail', 'never')")
            os._exit(0)
        """
        self.run_in_folder(sys.executable, "-c", program)
        self.assertEqual(self.worked(), "")


class CommandTest(InFolder):
    def test_work_takes_jobs_from_a_file(self):
        db = self.connect()
        db.execute("INSERT INTO pawl_enqueue (queue, payload) VALUES ('print', 'a page')")
        out = self.folder / "out"
        command = [PAWL, "work", "print", "--store", "sqlite:shop.db", "--poll", "20ms", "--",
                   "/bin/sh", "-c", "cat >> out"]
        with subprocess.Popen(command, cwd=self.folder, stderr=subprocess.PIPE) as worker:
            until = time.monotonic() + 30
            while db.execute("SELECT count(*) FROM pawl_ended").fetchone() == (0,):
                self.assertLess(time.monotonic(), until)
                self.assertIsNone(worker.poll())
            worker.terminate()
            worker.communicate(timeout=30)
            self.assertEqual(worker.returncode, 0)
        self.assertEqual(out.read_text(), "a page")
        self.assertEqual(db.execute("SELECT outcome FROM pawl_attempt").fetchall(), [(0,)])

    def test_the_default_file_is_made(self):
        done = subprocess.run([PAWL, "queues", "pause", "q", "--store", "sqlite:"], capture_output=True, text=True,
                              env={"XDG_STATE_HOME": str(self.folder)}, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertTrue((self.folder / "pawl" / "pawl.db").exists())

    def test_a_wrong_file_is_told(self):
        self.file.write_text("These are no jobs, but a recipe for bread.\n" * 20)
        done = subprocess.run([PAWL, "reap", "--store", "sqlite:shop.db"], cwd=self.folder,
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, os.EX_CONFIG)
        self.assertIn("shop.db: is not a SQLite database", done.stderr)


if __name__ == "__main__":
    tap.main()
