#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""worklease_test.py - the orchestrator of examples/ on a partitioned log, and `pawl worklease` on what it leaves.

Usage: worklease_test.py PATH-OF-EXAMPLE PATH-OF-PAWL
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TOP / "test" / "support"))
import tap  # noqa: E402

PAWL = os.path.abspath(sys.argv.pop())
READER = os.path.abspath(sys.argv.pop())
CLEAN = {k: v for k, v in os.environ.items() if not k.startswith(("PG", "PAWL", "DATABASE_URL", "XDG"))}
SECONDS_MAX = 120
CRASHED = 3


class WorkLease(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.store = f"sqlite:{self.folder}/log.db"

    def log(self, *lines):
        path = self.folder / "log"
        path.write_text("".join(line + "\n" for line in lines))
        return path

    def reader(self, log, name="reader-1"):
        return subprocess.Popen([READER, self.store, log, name], env=CLEAN, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def read(self, log, name="reader-1", code=0):
        with self.reader(log, name) as process:
            out, err = process.communicate(timeout=SECONDS_MAX)
        self.assertEqual((process.returncode, err), (code, ""), out)
        return [tuple(line.split()) for line in out.splitlines()]

    def pawl(self, *words):
        return subprocess.run([PAWL, "worklease", *words, "--store", self.store], env=CLEAN, capture_output=True, text=True,
                              check=False, timeout=SECONDS_MAX)

    def json(self, *words):
        done = self.pawl(*words, "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertNotIn("token", done.stdout)
        return json.loads(done.stdout)

    def terminal(self, domain):
        return [(t["first"], t["last"], t["outcome"]) for t in self.json("show", domain)["terminal"]]

    def test_each_partition_in_order_with_retries(self):
        out = self.read(self.log("p0 0 ok", "p1 0 flaky", "p0 1 bad", "p1 1 ok", "p0 2 ok", "p1 2 ok"))
        retry = "RETRY_SCHEDULED"
        self.assertEqual([o[1:] for o in out if o[0] == "p1"][:3], [("0", retry), ("0", retry), ("0", "NEXT_HINT")])
        self.assertEqual([o[1] for o in out if o[0] == "p1" and o[2] != retry], ["0", "1", "2"])
        p0 = [o[1:] for o in out if o[0] == "p0"]
        self.assertEqual([o for o in p0 if o[1] == retry], [("1", retry)] * 3)
        self.assertIn("GIVE_UP", next(o[1] for o in p0 if o[0] == "1" and o[1] != retry))
        self.assertEqual([o[0] for o in p0 if o[1] != retry], ["0", "1", "2"])
        self.assertEqual(self.terminal("p0"), [(0, 0, "processed"), (1, 1, "failed"), (2, 2, "processed")])
        self.assertEqual(self.terminal("p1"), [(0, 2, "processed")])
        domains = self.json("list")["domains"]
        self.assertEqual([(d["domain"], d["state"], d["backlog_count"]) for d in domains], [("p0", "idle", 0), ("p1", "idle", 0)])

    def test_a_second_run_does_nothing_again(self):
        log = self.log("p 0 ok", "p 1 bad", "p 2 ok")
        self.read(log)
        self.assertEqual(self.read(log, "reader-2"), [])

    def test_another_process_takes_over_from_one_that_crashed(self):
        log = self.log("p 0 ok", "p 1 crash", "p 2 ok")
        out = self.read(log, "crasher", CRASHED)
        self.assertEqual(out[-1], ("p", "1", "crashed"))
        shown = self.json("show", "p")
        self.assertEqual((shown["offset"], shown["owner"]), (1, "crasher"))
        out = self.read(log, "heir")
        self.assertEqual([o[1] for o in out], ["1", "2"])
        self.assertEqual(self.terminal("p"), [(0, 2, "processed")])

    def test_a_lease_that_was_over_too_early_is_acquired_again(self):
        out = self.read(self.log("p 0 slow", "q 0 ok"))
        self.assertIn(("p", "0", "NO_BACKLOG"), out)
        self.assertEqual(self.terminal("p"), [(0, 0, "processed")])

    def test_two_processes_share_the_work(self):
        log = self.log(*(f"p{i % 4} {i // 4} ok" for i in range(80)))
        readers = [self.reader(log, f"reader-{i}") for i in range(2)]
        done = []
        for process in readers:
            out, err = process.communicate(timeout=SECONDS_MAX)
            self.assertEqual((process.returncode, err), (0, ""))
            done += [tuple(line.split()[:2]) for line in out.splitlines()]
        self.assertEqual(len(done), len(set(done)), "no record is done twice")
        self.assertEqual(len(done), 80)
        for i in range(4):
            self.assertEqual(self.terminal(f"p{i}"), [(0, 19, "processed")])

    def test_what_is_shown(self):
        self.read(self.log("p 0 ok", "p 1 crash"), "crasher", CRASHED)
        done = self.pawl("show", "p")
        self.assertEqual(done.returncode, 0)
        for word in ("domain    p", "offset    1", "owner     crasher", "backlog   0", "processed 0"):
            self.assertIn(word, done.stdout)
        done = self.pawl()
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r"(leased|expired) +1 +0 .* crasher +p\n")
        done = self.pawl("show", "nobody/1")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("nobody has asked for an offset of domain nobody/1", done.stderr)
        self.assertEqual(self.pawl("show").returncode, 64)

    def test_domains_are_listed_in_pages(self):
        self.read(self.log(*(f"p{i} 0 ok" for i in range(5))))
        self.assertEqual(len(self.json("list")["domains"]), 5)
        page = self.json("list", "--limit", "2")
        self.assertEqual(([d["domain"] for d in page["domains"]], page["next_after"]), (["p0", "p1"], "p1"))
        page = self.json("list", "--after", "p1")
        self.assertEqual([d["domain"] for d in page["domains"]], ["p2", "p3", "p4"])
        self.assertNotIn("next_after", page)
        done = self.pawl("list", "--limit", "2")
        self.assertEqual((len(done.stdout.splitlines()), done.stderr), (3, "There may be more: --after 'p1'\n"))

    def test_not_more_domains_than_can_be_read(self):
        self.read(self.log(*(f"p{i:03} 0 ok" for i in range(101))))
        self.assertEqual([len(self.json("list")["domains"]), self.json("list")["next_after"]], [100, "p099"])
        self.assertEqual(len(self.json("list", "--limit", "1000")["domains"]), 101)

    def test_a_domain_is_shown_in_pages(self):
        self.read(self.log(*(f"p {2 * i} ok" for i in range(4))))
        first = self.json("show", "p", "--limit", "3")
        self.assertEqual(([t["first"] for t in first["terminal"]], first["next_skip"]), ([0, 2, 4], 3))
        rest = self.json("show", "p", "--limit", "3", "--skip", "3")
        self.assertEqual([t["first"] for t in rest["terminal"]], [6])
        self.assertNotIn("next_skip", rest)
        self.assertEqual(self.pawl("show", "p", "--limit", "3").stderr, "There may be more: --skip 3\n")

    def test_settings_come_from_the_configuration_too(self):
        self.read(self.log("p 0 ok"))
        settings = self.folder / "pawl.conf"
        settings.write_text(f"store = {self.store}\n")
        for words in (["list"], ["show", "p"]):
            done = subprocess.run([PAWL, "worklease", *words, "--config", settings], env=CLEAN, capture_output=True, text=True,
                                  check=False, timeout=SECONDS_MAX)
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_the_manual_shows_what_happens(self):
        manual = (TOP / "docs" / "worklease.md").read_text(encoding="utf-8")
        shown = manual.split("```console\n")[1].split("```")[0]
        programs = {"partition_reader": READER, "pawl": PAWL}
        for command, wanted in ((part.split("\n", 1)) for part in shown.split("$ ")[1:]):
            words = command.split()
            if words[0] == "cat":
                (self.folder / words[1]).write_text(wanted)
                continue
            done = subprocess.run([programs[words[0]], *words[1:]], env=CLEAN, cwd=self.folder, capture_output=True, text=True,
                                  check=False, timeout=SECONDS_MAX)
            self.assertEqual((done.stdout, done.stderr), (wanted, ""), command)


if __name__ == "__main__":
    tap.main()
