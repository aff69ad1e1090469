#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_program_test.py - the program `pawl-check` from outside: histories of the simulator, kept
and damaged.

Usage: check_program_test.py PATH-OF-PAWL-CHECK PATH-OF-PAWL-SIM
"""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TOP / "test" / "support"))
import tap  # noqa: E402

SIM = sys.argv.pop()
CHECK = sys.argv.pop()
USAGE, DATA_ERROR, NO_INPUT = 64, 65, 66  # sysexits
EXACT = ("--exact", "--complete", "--drained", "--drift-ppm", "20500", "--round-trip", "1s")


def check(*words):
    return subprocess.run([CHECK, *map(str, words)], capture_output=True, text=True, check=False,
                          stdin=subprocess.DEVNULL, timeout=60)


class ProgramTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.history = Path(cls.folder.name) / "history"
        cls.bad = Path(cls.folder.name) / "bad"
        subprocess.run([SIM, "--seed", "1", "--save", cls.history], check=True,
                       stdout=subprocess.DEVNULL, timeout=60)
        subprocess.run([SIM, "--seed", "1", "--mutant", "reap-unexpired", "--save", cls.bad],
                       check=False, stdout=subprocess.DEVNULL, timeout=60)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_a_run_in_order_is_ok(self):
        done = check(*EXACT, self.history)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        self.assertRegex(done.stdout, r"^ok: \d+ records, \d+ jobs, \d+ leases, \d+ expired, \d+ st")

    def test_a_broken_promise_is_named(self):
        done = check(*EXACT, self.bad)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"(?m)^C9 expired-only: at [\d.]+ job [0-9a-f-]{36} v\d+: reap")
        self.assertRegex(done.stdout, r"(?m)^FAILED: \d+ records")

    def test_a_run_in_order_is_in_order_for_its_callers_too(self):
        done = check("--drift-ppm", "20500", self.history)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_a_history_is_printed_a_line_per_row(self):
        done = check("--print", self.history)
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r"(?m)^[\d.]+ worker\S+ CLAIM of=\S+ store=\S+ \S{36} v1 OK ")
        self.assertRegex(done.stdout, r"(?m)^[\d.]+ worker\S+ START \S{36} v1")

    def test_what_was_cut_off_is_checked_as_far_as_it_goes(self):
        cut = Path(self.folder.name) / "cut"
        for end in (10, 1000, 3000, 5000, 8000, 20000, 40000):
            cut.write_bytes(self.history.read_bytes()[:-end])
            done = check("--exact", "--drift-ppm", "20500", cut)
            self.assertEqual(done.returncode, 0, (end, done.stdout))
            self.assertIn(", cut off\n", done.stdout)
        self.assertTrue(check("--print", cut).stdout.endswith("(cut off here)\n"))

    def test_what_is_no_history_is_refused_with_the_place(self):
        other = Path(self.folder.name) / "other"
        other.write_bytes(b"pawl-history-1\n\0" + b"\x7f" * 20)
        for words in ((other,), ("--print", other)):
            done = check(*words)
            self.assertEqual(done.returncode, DATA_ERROR)
            self.assertIn("offset 16: no such record", done.stderr)
        other.write_bytes(b"")
        self.assertEqual(check(other).returncode, DATA_ERROR)

    def test_wrong_words_are_refused(self):
        for words in ((), ("--nothing",), ("--reaper",), ("--reaper", "soon", "x"),
                      ("--drift-ppm", "-1", "x"), ("--print",)):
            done = check(*words)
            self.assertEqual(done.returncode, USAGE, words)
            self.assertIn("usage: pawl-check", done.stderr)
        self.assertEqual(check("/nowhere/at/all").returncode, NO_INPUT)

    def test_the_rules_are_listed(self):
        done = check("--rules")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r"(?m)^C1 +none-lost +an acknowledged job is never lost$")
        self.assertRegex(done.stdout, r"(?m)^C27 +paused +a paused queue gives nothing$")


if __name__ == "__main__":
    tap.main()
