#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""install_deps_test.py - runs tools/install-deps against a package system that is made up."""

import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TOP / "test" / "support"))
import tap  # noqa: E402

BUILD = ["gcc", "libc6-dev", "pkg-config", "meson", "ninja-build", "libbsd-dev",
         "libcurl4-openssl-dev", "libjansson-dev", "libmicrohttpd-dev", "libpq-dev", "libsqlite3-dev",
         "libssl-dev", "scdoc"]


class InstallDepsTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="pawl-deps-")
        self.addCleanup(self.folder.cleanup)
        self.path = Path(self.folder.name)
        for tool in ("env", "grep", "sed", "cat"):
            (self.path / tool).symlink_to(shutil.which(tool))
        self.installed(BUILD)
        self.user("0")
        self.fake("apt-get", 'echo "apt-get $* [$DEBIAN_FRONTEND]" >>"$CALLS"\n'
                             'if read -r answer; then echo "read an answer" >>"$CALLS"; fi')

    def fake(self, name, script):
        (self.path / name).write_text(f"#!/bin/sh\n{script}\n")
        (self.path / name).chmod(0o755)

    def installed(self, packages, removed=()):
        """A dpkg that knows these packages; `removed` ones have left their configuration behind."""
        self.fake("dpkg", 'case "$2" in\n' + "".join(
            f'{p}) echo "Status: {status}" ;;\n'
            for status, group in (("install ok installed", packages),
                                  ("deinstall ok config-files", removed)) for p in group
        ) + '*) echo "not installed" >&2; exit 1 ;;\nesac')

    def user(self, number):
        self.fake("id", f"echo {number}")

    def run_it(self, *words):
        calls = self.path / "calls"
        calls.write_text("")
        done = subprocess.run(["/bin/sh", str(TOP / "tools" / "install-deps"), *words],
                              env={"PATH": str(self.path), "CALLS": str(calls)}, input="yes\n",
                              capture_output=True, text=True, check=False, timeout=60)
        return done, calls.read_text()

    def test_nothing_missing_is_one_line_and_no_call(self):
        done, calls = self.run_it("build")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count("\n"), 1)
        self.assertEqual(done.stderr, "")
        self.assertEqual(calls, "")

    def test_missing_ones_are_named_with_reasons_and_installed(self):
        self.installed([p for p in BUILD if p not in ("meson", "gcc")])
        done, calls = self.run_it("build")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("  gcc  (the compiler)", done.stdout)
        self.assertIn("  meson  (describes the build)", done.stdout)
        self.assertNotIn("ninja", done.stdout)
        self.assertEqual(calls, "apt-get -q update [noninteractive]\n"
                                "apt-get -q install --yes --no-install-recommends gcc meson "
                                "[noninteractive]\n")

    def test_removed_package_counts_as_missing(self):
        self.installed([p for p in BUILD if p != "meson"], removed=["meson"])
        _, calls = self.run_it("build")
        self.assertIn("recommends meson ", calls)

    def test_both_sets(self):
        _, calls = self.run_it("build", "test")
        self.assertIn("libcmocka-dev", calls)
        self.assertIn("clang-format", calls)
        self.assertNotIn("meson", calls)

    def test_no_package_is_named_twice(self):
        self.installed([])
        done, _ = self.run_it("build", "test")
        named = [line.split()[0] for line in done.stdout.splitlines() if line.startswith("  ")]
        self.assertEqual(sorted(named), sorted(set(named)))
        self.assertIn("postgresql-15", named)

    def test_npm_from_elsewhere_will_do(self):
        self.installed([])
        _, calls = self.run_it("test")
        self.assertIn(" npm ", calls)
        self.fake("npm", "exit 0")
        _, calls = self.run_it("test")
        self.assertIn("apt-get", calls)
        self.assertNotIn(" npm ", calls)

    def test_not_root_goes_through_sudo(self):
        self.installed([])
        self.user("1000")
        self.fake("sudo", 'echo "sudo" >>"$CALLS"; exec "$@"')
        done, calls = self.run_it("build")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("through sudo", done.stdout)
        self.assertEqual(calls.count("sudo\napt-get"), 2)

    def test_neither_root_nor_sudo(self):
        self.installed([p for p in BUILD if p != "gcc"])
        self.user("1000")
        done, calls = self.run_it("build")
        self.assertEqual(done.returncode, 1)
        self.assertIn("needs to be root, or sudo, to run: apt-get install gcc", done.stderr)
        self.assertEqual(calls, "")

    def test_no_apt(self):
        (self.path / "apt-get").unlink()
        done, _ = self.run_it("build")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no apt", done.stderr)
        self.assertIn("libbsd-dev", done.stderr)
        self.assertIn("SKIP_DEPS=1", done.stderr)

    def test_failing_update_and_install(self):
        self.installed([])
        for verb in ("update", "install"):
            self.fake("apt-get", f'[ "$2" != {verb} ]')
            done, _ = self.run_it("build")
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"apt-get {verb} failed", done.stderr)

    def test_check_installs_nothing(self):
        done, calls = self.run_it("--check", "build")
        self.assertEqual((done.returncode, calls), (0, ""))
        self.installed([])
        done, calls = self.run_it("--check", "build")
        self.assertEqual((done.returncode, calls), (1, ""))
        self.assertIn("tools/install-deps build", done.stderr)

    def test_wrong_words(self):
        for words, complaint in (((), "say which set"), (("biuld",), 'unknown set "biuld"')):
            done, calls = self.run_it(*words)
            self.assertEqual((done.returncode, calls), (1, ""))
            self.assertIn(complaint, done.stderr)


if __name__ == "__main__":
    tap.main()
