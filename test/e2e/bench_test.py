#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench_test.py - `pawl bench`: measures beside the store, touches nothing of it, and leaves nothing behind.

Usage: bench_test.py PATH-OF-PAWL
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import pg  # noqa: E402
import tap  # noqa: E402
from running import CLEAN, WAIT_SECONDS, wait_for  # noqa: E402

PAWL = sys.argv.pop()
USAGE, TEMPFAIL, CONFIG = 64, 75, 78
FEW = ("--jobs", "40", "--batch", "20", "--repeats", "1")
FIGURES = ["enqueue", "enqueue_one_by_one", "drain", "start_p50", "start_p99"]


def bench(*words, env=None):
    return subprocess.run([PAWL, "bench", *words], env=env or CLEAN, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                          timeout=2 * WAIT_SECONDS)


def endless(words, env):
    """A bench that is measuring and will not end by itself."""
    return subprocess.Popen([PAWL, "bench", "--jobs", "10000000", *words], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


class Figures(unittest.TestCase):
    """What all stores have in common."""

    def check_figures(self, done, store):
        self.assertEqual(done.returncode, 0, done.stderr)
        told = json.loads(done.stdout)
        self.assertEqual((told["store"], told["jobs"], told["batch"], told["repeats"]), (store, 40, 20, 1))
        self.assertEqual([figure["name"] for figure in told["figures"]], FIGURES)
        for figure in told["figures"]:
            self.assertGreater(figure["median"], 0, figure)
            self.assertEqual(figure["spread_percent"], 0, figure)  # of one turn

class Bench(Figures):
    def test_memory(self):
        self.check_figures(bench("--store", "memory:", "--json", *FEW), "memory")

    def test_text(self):
        done = bench("--store", "memory:", *FEW)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, re.compile(r"\Amemory, 40 jobs of 100 bytes in batches of 20, 1 turns\n(  .* (jobs/s|us) .*\n){5}\Z"))

    def test_sqlite_beside_the_file_and_in_a_folder(self):
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as other:
            file = Path(folder) / "jobs.db"
            subprocess.run([PAWL, "enqueue", "mail", "hello", "--store", f"sqlite:{file}"], env=CLEAN, check=True, stdout=subprocess.DEVNULL)
            before = file.read_bytes()
            self.check_figures(bench("--store", f"sqlite:{file}", "--json", *FEW), "SQLite")
            self.check_figures(bench("--store", f"sqlite:{file}", "--folder", other, "--json", *FEW), "SQLite")
            self.assertEqual(file.read_bytes(), before)
            self.assertEqual([name for name in os.listdir(folder) if not name.startswith("jobs.db")] + os.listdir(other), [])

    def test_sqlite_is_removed_when_it_is_told_to_stop(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with tempfile.TemporaryDirectory() as folder, endless(("--store", f"sqlite:{folder}/jobs.db"), CLEAN) as process:
                wait_for(lambda: list(Path(folder).glob("pawl-bench-*/bench.db")))
                process.send_signal(number)
                self.assertEqual(process.wait(WAIT_SECONDS), TEMPFAIL)
                self.assertIn("stopped", process.stderr.read())
                self.assertEqual(os.listdir(folder), [])

    def test_what_is_wrong(self):
        with tempfile.TemporaryDirectory() as home:
            env = {**CLEAN, "HOME": home, "XDG_CONFIG_HOME": home}
            done = bench(*FEW, env=env)
            self.assertEqual(done.returncode, CONFIG, done.stderr)
            self.assertIn("no file is named", done.stderr)
            self.assertEqual(bench("--jobs", "0", env=env).returncode, USAGE)
            done = bench("--store", f"sqlite:{home}/nowhere/jobs.db", env=env)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("no folder can be made", done.stderr)


class Postgres(Figures):
    @classmethod
    def setUpClass(cls):
        cls.world = pg.World(PAWL).__enter__()
        cls.database = cls.world.database()

    @classmethod
    def tearDownClass(cls):
        cls.world.__exit__(None, None, None)

    def databases(self):
        return [row[0] for row in self.world.sql("postgres", "select datname from pg_database where datname like 'pawl_bench_%'")]

    def url(self, user=None):
        return f"postgresql://?host={self.world.server.folder}&port=5432&user={user or self.world.server.user}&dbname={self.database}"

    def test_postgres(self):
        self.world.pawl(self.database, "enqueue", "mail", "hello", check=True)
        before = self.world.sql(self.database, "select * from pawl.job, pawl.queue")
        self.check_figures(bench("--store", self.url(), "--json", *FEW), "PostgreSQL")
        self.assertEqual(self.world.sql(self.database, "select * from pawl.job, pawl.queue"), before)
        self.assertEqual(self.databases(), [])

    def test_a_password_with_quotes_stays_one_word(self):
        url = f"host={self.world.server.folder} port=5432 user={self.world.server.user} dbname={self.database} password='it\\'s \\\\ here'"
        self.check_figures(bench("--store", url, "--json", *FEW), "PostgreSQL")

    def test_the_database_is_dropped_when_it_is_told_to_stop(self):
        with endless(("--store", self.url()), CLEAN) as process:
            wait_for(self.databases)
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(2 * WAIT_SECONDS), TEMPFAIL)
        self.assertEqual(self.databases(), [])

    def test_who_may_not_create_databases_is_told(self):
        self.world.sql("postgres", "drop role if exists plain; create role plain login")
        done = bench("--store", self.url("plain"), *FEW)
        self.assertEqual(done.returncode, CONFIG, done.stderr)
        self.assertIn("permission denied to create database: alter role ... createdb", done.stderr)
        self.assertEqual(self.databases(), [])


tap.main()
