#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench_run_test.py - bench/run: what it says of turns, and the shape of its output in a try with few jobs. It measures nothing.

Usage: bench_run_test.py BUILD-FOLDER
"""

import json
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TOP / "test" / "support"))
sys.path.insert(0, str(TOP / "bench" / "harness"))
import ratios  # noqa: E402
import tap  # noqa: E402
import workloads  # noqa: E402

BUILD = sys.argv.pop()
TRIED = ("drain", "batch-10", "singles", "sqlite-drain")


def turns(*seconds):
    return [{"jobs": 100, "seconds": each} for each in seconds]


class Judging(unittest.TestCase):
    ROW = ratios.Row("drain", "ours", "other", least=0.9)

    def judge(self, ours, other, row=ROW):
        return ratios.judge(row, {"ours": turns(*ours), "other": turns(*other)})

    def test_the_median_of_the_ratios_counts(self):
        found = self.judge((1, 1, 1, 1, 9), (0.95, 0.95, 0.95, 0.95, 1))
        self.assertAlmostEqual(found["median"], 0.95)
        self.assertEqual((found["verdict"], found["why"]), (ratios.MET, None))
        self.assertEqual(self.judge((2,) * 5, (1,) * 5)["verdict"], ratios.MISSED)

    def test_ratios_are_of_turns_that_were_taken_together(self):
        # The machine was twice as slow in some rounds, for both.
        found = self.judge((1, 2, 1, 2, 1), (1, 2, 1, 2, 1))
        self.assertEqual((found["median"], found["spread"]), (1, 0))

    def test_a_wide_spread_is_not_reported(self):
        found = self.judge((1, 2, 3, 4, 5), (1, 1, 1, 1, 1))
        self.assertEqual((found["median"], found["verdict"], found["why"]), (None, ratios.NOT_SHOWN, "spread too wide"))
        self.assertIn("spread too wide", ratios.text_table([found]))

    def test_few_turns_show_nothing(self):
        found = self.judge((1,) * 4, (1,) * 4)
        self.assertEqual((found["median"], found["verdict"], found["why"]), (1, ratios.NOT_SHOWN, "too few repeats"))

    def test_less_may_be_better(self):
        row = ratios.Row("log", "ours", None, "wal", most=1000, unit="bytes")
        for size, verdict in ((999, ratios.MET), (1001, ratios.MISSED)):
            self.assertEqual(ratios.judge(row, {"ours": [{"wal": size}] * 5})["verdict"], verdict)

    def test_what_was_not_measured_is_told(self):
        self.assertEqual(ratios.judge(self.ROW, {"ours": [{"jobs": 1}], "other": turns(1)})["why"], "not measured")

    def test_rows_name_candidates_of_their_group(self):
        for group in (group for group in workloads.GROUPS if group.candidates):
            names = {candidate.name for candidate in group.candidates} | {"best", None}
            for row in group.rows:
                self.assertLessEqual({row.ours, row.other}, names, group.name)
        self.assertEqual(len({group.name for group in workloads.GROUPS}), len(workloads.GROUPS))


class Trying(unittest.TestCase):
    def test_a_try(self):
        with tempfile.TemporaryDirectory() as folder:
            results = Path(folder) / "results"
            words = ["--build", BUILD, "--scale", "0.002", "--repeats", "2", "--results", str(results), "--pg-setting", "fsync=off", *TRIED]
            done = subprocess.run([TOP / "bench" / "run", *words], capture_output=True, text=True, check=False, timeout=300)
            self.assertEqual(done.returncode, 0, done.stderr)
            lines = done.stdout.splitlines()
            self.assertEqual(re.split(r"  +", lines[0]), list(ratios.HEAD))
            rows = sum(len(group.rows) for group in workloads.GROUPS if group.name in TRIED)
            self.assertEqual(len(lines), rows + 2, done.stdout)
            self.assertEqual(sorted(path.stem for path in results.iterdir()), sorted(TRIED))
            found = json.loads((results / "drain.json").read_text())
            self.assertEqual({name: len(taken) for name, taken in found["turns"].items()}, {"pawl": 2, "bare SQL": 2})
            self.assertEqual([turn["jobs"] for turn in found["turns"]["pawl"]], [400, 400])
            self.assertEqual(found["about"]["postgres"]["settings"]["fsync"], "off")
            self.assertNotIn(folder, json.dumps(found))  # no path of the machine
            table = subprocess.run([TOP / "bench" / "run", "--results", str(results), "--table"], capture_output=True, text=True, check=True)
            self.assertEqual(len(table.stdout.splitlines()), rows + 2, table.stdout)

    def test_a_group_that_is_not_there(self):
        done = subprocess.run([TOP / "bench" / "run", "--build", BUILD, "darin"], capture_output=True, text=True, check=False, timeout=60)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("there is no group darin", done.stderr)


tap.main()
