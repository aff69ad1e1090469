#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run_tests_test.py - whether tools/run-tests counts right, and cannot pass by doing nothing."""

import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import sys
import tempfile
import threading
import unittest
from pathlib import Path
from unittest import mock

sys.dont_write_bytecode = True
TOP = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TOP / "test" / "support"))
import tap  # noqa: E402


def load():
    path = str(TOP / "tools" / "run-tests")
    loader = importlib.machinery.SourceFileLoader("run_tests", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("run_tests", loader))
    loader.exec_module(module)
    return module


run_tests = load()


class RunTestsTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="pawl-run-tests-")
        self.addCleanup(self.folder.cleanup)
        self.top = Path(self.folder.name)

    def run_steps(self, steps, names=None):
        """Gives (whether it passed, its output)."""
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            is_ok = run_tests.run_all(names or list(steps), steps, self.top)
        summary = (self.top / "build" / "logs" / "summary").read_text()
        self.assertEqual(output.getvalue().splitlines()[-1] + "\n", summary)
        return is_ok, output.getvalue()

    # ---- counting

    def test_tap_lines_are_counted(self):
        output = ("1..5\nok 1 - a\nnot ok 2 - b\n# why\nok 3 # SKIP no c\nok 4 - skipping ropes\n"
                  "    ok indented\nokay\nnothing ok 1\n")
        self.assertEqual(run_tests.tap_counts(output), (2, 1, 1))

    def test_program_without_tests_fails(self):
        is_ok, output = self.run_steps({"a": (lambda s: s.count_tap("x", "1..0\n", True), [])})
        self.assertFalse(is_ok)
        self.assertIn("x: reported no test", output)
        self.assertTrue(output.endswith("\n0 passed, 2 failed\n"))

    def test_program_that_crashes_after_its_tests_fails(self):
        is_ok, output = self.run_steps({"a": (lambda s: s.count_tap("x", "ok 1\n", False), [])})
        self.assertFalse(is_ok)
        self.assertTrue(output.endswith("\n1 passed, 2 failed\n"))

    def test_failing_test_fails_its_step(self):
        is_ok, output = self.run_steps(
            {"a": (lambda s: s.count_tap("x", "ok 1\nnot ok 2\n", False), [])})
        self.assertFalse(is_ok)
        self.assertTrue(output.endswith("\n1 passed, 2 failed\n"))

    def test_results_of_meson(self):
        protocols = {"unit one": "tap", "script": "exitcode", "slow": "exitcode", "off": "exitcode"}
        entries = [
            {"name": "pawl:unit / unit one", "result": "OK", "stdout": "1..2\nok 1\nok 2\n"},
            {"name": "pawl:e2e / script", "result": "OK"},
            {"name": "pawl:e2e / slow", "result": "TIMEOUT", "stdout": "so far"},
            {"name": "pawl:e2e / off", "result": "SKIP"},
        ]

        def step(s):
            for entry in entries:
                run_tests.count_meson_test(s, entry, protocols)
            self.assertEqual((s.passed, s.failed, s.skipped), (3, 1, 1))

        is_ok, output = self.run_steps({"a": (step, [])})
        self.assertFalse(is_ok)
        self.assertIn("slow: TIMEOUT", output)
        self.assertIn("so far", output)

    def test_what_failed_is_shown_however_much_follows_it(self):
        entries = [{"name": "pawl:unit / early", "result": "FAIL",
                    "stdout": "ok 1\n# the reason\nnot ok 2\n" + "ok 3\n" * 500}]
        entries += [{"name": f"pawl:unit / t{i}", "result": "OK", "stdout": "ok 1\n"}
                    for i in range(500)]

        def step(s):
            for entry in entries:
                run_tests.count_meson_test(s, entry, {e["name"].split()[-1]: "tap" for e in entries})

        is_ok, output = self.run_steps({"a": (step, [])})
        self.assertFalse(is_ok)
        self.assertIn("| # the reason\n", output)
        self.assertIn("failed: a: early: 1 failed\n", output)
        self.assertLess(output.count("\n"), 60)

    # ---- suites

    def test_what_failed_is_shown_first_and_what_went_well_is_not(self):
        lines = run_tests.failure_excerpt("# C3: two at once\nok 1 - a\nok 2 - b\nnot ok 3 - c\nok 4 - d\n1..4\n")
        self.assertEqual(lines, ["not ok 3 - c", "# C3: two at once", "1..4"])

    def run_suites(self, tests, is_wanted, forgotten=(), with_smoke=False):
        """run_suites() over a meson that is made up: it lists `tests` and passes each, or forgets it."""
        step = run_tests.Step("a", self.top)
        self.addCleanup(step.log.close)
        logs = self.top / "b" / "meson-logs"
        logs.mkdir(parents=True)

        def run(*command, **_):
            if command[1] == "introspect":
                return 0, json.dumps([{"name": n, "suite": [f"pawl:{s}"], "protocol": "tap"}
                                      for n, s in tests])
            (logs / "testlog-a.json").write_text("".join(
                json.dumps({"name": f"pawl:{s} / {n}", "result": "OK", "stdout": "ok 1\n"}) + "\n"
                for n, s in tests if n in command and n not in forgotten))
            return 0, ""

        step.run = run
        run_tests.run_suites(step, "b", is_wanted, with_smoke=with_smoke)
        return step

    def test_required_suite_that_is_missing_fails(self):
        step = self.run_suites([("t", "unit")], lambda suite: suite in ("unit", "store"))
        self.assertEqual((step.passed, step.failed), (1, 1))
        self.assertEqual(step.problems, ["there is no suite store"])

    def test_test_that_meson_does_not_report_fails(self):
        step = self.run_suites([("t", "unit"), ("u", "unit")], lambda suite: suite == "unit",
                               forgotten=["u"])
        self.assertEqual((step.passed, step.failed), (1, 1))
        self.assertEqual(step.problems, ["meson ran 1 of 2 tests"])

    def test_two_tests_of_one_name_fail(self):
        step = self.run_suites([("t", "unit"), ("t", "store")], lambda suite: True)
        self.assertIn("two tests have the same name", step.problems)

    def test_suites_that_nobody_asked_about_run_too(self):
        tests = [(s, s) for s in run_tests.REQUIRED_SUITES] + [("n", "new"), ("m", "model")]
        step = self.run_suites(tests, lambda suite: suite not in run_tests.OWN_STEP_SUITES)
        self.assertEqual(step.problems, [])
        wanted = set(run_tests.REQUIRED_SUITES) - set(run_tests.OWN_STEP_SUITES)
        self.assertEqual(step.passed, len(wanted) + 1)

    def test_quick_test_of_a_long_suite_runs_where_it_is_asked_for(self):
        tests = [("u", "unit"), ("all", "sim"), ("sim-smoke", "sim")]
        step = self.run_suites(tests, lambda suite: suite == "unit", with_smoke=True)
        self.assertEqual((step.passed, step.problems), (2, []))

    def test_what_is_built_is_what_the_tests_of_a_suite_need(self):
        step = run_tests.Step("a", self.top)
        self.addCleanup(step.log.close)
        (self.top / "b").mkdir()
        (self.top / "b" / "build.ninja").touch()
        top = (self.top / "b").resolve()
        built = []

        def run(*command, **_):
            if command[1:3] == ("introspect", "--targets"):
                return 0, json.dumps([{"id": i, "filename": [f"{top}/{i}.out"]} for i in "pqrs"])
            if command[1] == "introspect":
                return 0, json.dumps([
                    {"name": n, "suite": [f"pawl:{s}"], "protocol": "tap", "depends": list(d)}
                    for n, s, d in (("t", "unit", "pq"), ("u", "unit", "r"), ("v", "e2e", "s"))])
            built.extend(command[3:])
            return 0, ""

        step.run = run
        run_tests.build_tests(step, "b", lambda suite: suite == "unit", without=["u"])
        self.assertEqual(built, ["build.ninja", "p.out", "q.out"])
        with self.assertRaises(run_tests.Failed):
            run_tests.build_tests(step, "b", lambda suite: suite == "none")

    # ---- where tests keep their files

    def quick_scratch(self, folder, bytes_min=1, environment=None):
        with mock.patch.object(run_tests, "QUICK_FOLDER", folder), \
                mock.patch.object(run_tests, "QUICK_BYTES_MIN", bytes_min), \
                mock.patch.dict(os.environ, environment or {}):
            if environment is None:
                os.environ.pop("TMPDIR", None)
            return run_tests.quick_scratch()

    def test_files_are_kept_in_memory_where_there_is_enough(self):
        self.assertEqual(self.quick_scratch(self.top), {"TMPDIR": str(self.top)})
        self.assertEqual(self.quick_scratch(self.top, bytes_min=1 << 60), {})

    def test_files_are_kept_where_the_caller_says(self):
        self.assertEqual(self.quick_scratch(self.top, environment={"TMPDIR": "/elsewhere"}), {})

    def test_files_are_kept_as_usual_without_such_a_folder(self):
        self.assertEqual(self.quick_scratch(self.top / "none"), {})
        (self.top / "file").touch()
        self.assertEqual(self.quick_scratch(self.top / "file"), {})

    def test_files_are_kept_as_usual_where_none_can_be_made_or_run(self):
        with mock.patch.object(os, "access", return_value=False):
            self.assertEqual(self.quick_scratch(self.top), {})
        room = os.statvfs(self.top)
        no_exec = mock.Mock(f_bavail=room.f_bavail, f_frsize=room.f_frsize, f_flag=os.ST_NOEXEC)
        with mock.patch.object(os, "statvfs", return_value=no_exec):
            self.assertEqual(self.quick_scratch(self.top), {})

    # ---- steps

    def test_steps_count_too(self):
        is_ok, output = self.run_steps({"a": (lambda s: None, []), "b": (lambda s: None, [])})
        self.assertTrue(is_ok)
        self.assertTrue(output.endswith("\n2 passed, 0 failed\n"))

    def test_failing_command_fails_its_step_and_shows_its_log(self):
        is_ok, output = self.run_steps(
            {"a": (lambda s: s.run("sh", "-c", "echo the reason; exit 3"), [])})
        self.assertFalse(is_ok)
        self.assertIn("| the reason", output)
        self.assertIn("exit 3", output)

    def test_missing_command_is_named(self):
        is_ok, output = self.run_steps({"a": (lambda s: s.run("no-such-program"), [])})
        self.assertFalse(is_ok)
        self.assertIn("no-such-program cannot be run: ", output)

    def test_bug_in_a_step_counts_as_a_failure(self):
        is_ok, output = self.run_steps({"a": (lambda s: 1 // 0, []), "b": (lambda s: None, [])})
        self.assertFalse(is_ok)
        self.assertIn("ZeroDivisionError", output)
        self.assertTrue(output.endswith("\n1 passed, 1 failed\n"))

    def test_step_after_a_failed_one_is_not_run(self):
        ran = []

        def fails(_):
            raise run_tests.Failed("no")

        is_ok, output = self.run_steps({"b": (lambda s: ran.append("b"), ["a"]), "a": (fails, [])})
        self.assertFalse(is_ok)
        self.assertEqual(ran, [])
        self.assertIn("not run, since a failed", output)
        self.assertTrue(output.endswith("\n0 passed, 2 failed\n"))

    def test_one_step_brings_what_it_needs(self):
        ran = []
        steps = {name: (lambda s: ran.append(s.name), needs)
                 for name, needs in (("a", []), ("b", ["a"]), ("c", ["b"]), ("d", []))}
        is_ok, _ = self.run_steps(steps, ["c"])
        self.assertTrue(is_ok)
        self.assertEqual(ran, ["a", "b", "c"])

    def test_a_step_that_mostly_waits_runs_beside_the_others(self):
        beside = run_tests.BESIDE_STEPS[0]
        names = [beside] + [f"s{i}" for i in range(run_tests.PARALLEL_STEPS_MAX)]
        meeting = threading.Barrier(len(names))  # broken, unless all are there at once
        steps = {name: (lambda s: meeting.wait(60), []) for name in names}
        is_ok, _ = self.run_steps(steps)
        self.assertTrue(is_ok)

    def test_every_step_needs_only_steps(self):
        self.assertLessEqual(set(run_tests.BESIDE_STEPS), set(run_tests.STEPS))
        for function, needs in run_tests.STEPS.values():
            self.assertTrue(function.__doc__)
            self.assertLessEqual(set(needs), set(run_tests.STEPS))


if __name__ == "__main__":
    tap.main()
