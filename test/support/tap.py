# SPDX-License-Identifier: Apache-2.0
"""tap.py - runs the unittest cases of a program and reports them as TAP, for meson and run-tests."""

import sys
import unittest


class _Result(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.number = 0

    def _say(self, verdict, test, note="", details=""):
        self.number += 1
        print(f"{verdict} {self.number} - {test.id().removeprefix('__main__.')}{note}")
        for line in details.rstrip().split("\n") if details else []:
            print(f"# {line}")
        sys.stdout.flush()

    def addSuccess(self, test):
        super().addSuccess(test)
        self._say("ok", test)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._say("not ok", test, details=self.failures[-1][1])

    def addError(self, test, err):
        super().addError(test, err)
        self._say("not ok", test, details=self.errors[-1][1])

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._say("not ok", subtest, details=(self.failures + self.errors)[-1][1])

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._say("ok", test, note=f" # SKIP {reason}")


def main():
    """Run every case of the main module. Never returns."""
    tests = unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"])
    print(f"1..{tests.countTestCases()}")
    result = _Result()
    tests.run(result)
    sys.exit(0 if result.wasSuccessful() and result.number > 0 else 1)
