#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""readme_test.py - whether README.md and the documents beside it show what is really there.

Usage: readme_test.py PATH-OF-PAWL
"""

import re
import subprocess
import sys
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TOP / "test" / "support"))
import tap  # noqa: E402

PAWL = sys.argv.pop()
DOCUMENTS = sorted(list(TOP.glob("*.md")) + list((TOP / "docs").glob("**/*.md")))


def blocks(kind):
    text = (TOP / "README.md").read_text()
    return re.findall(rf"^```{kind}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


class ReadmeTest(unittest.TestCase):
    def test_example_is_the_one_that_is_built(self):
        source = (TOP / "examples" / "first_job.c").read_text()
        self.assertEqual(len(blocks("c")), 1)
        self.assertIn(blocks("c")[0], source)

    def test_demo_is_shown_as_it_is(self):
        done = subprocess.run([PAWL, "demo"], capture_output=True, text=True, check=True)
        self.assertEqual(len(blocks("text")), 1)
        self.assertIn(blocks("text")[0], done.stdout)

    def test_targets_of_make_exist(self):
        makefile = (TOP / "Makefile").read_text()
        for document in DOCUMENTS:
            for target in re.findall(r"(?:`|^ {4})make ([a-z]+)", document.read_text(), re.MULTILINE):
                self.assertRegex(makefile, rf"(?m)^{target}:", document.name)

    def test_links_lead_somewhere(self):
        for document in DOCUMENTS:
            for target in re.findall(r"\]\(([^)#]+)[^)]*\)", document.read_text()):
                if not target.startswith("https://"):
                    self.assertTrue((document.parent / target).exists(), f"{document}: {target}")

    def test_files_that_are_named_exist(self):
        for document in DOCUMENTS:
            # Paths in backquotes below the folders of the tree; a star stands for any name.
            pattern = r"`((?:src|include|test|model|tools|docs|examples)/[\w./*-]*)`"
            for path in re.findall(pattern, document.read_text()):
                self.assertTrue(list(TOP.glob(path.rstrip("/"))), f"{document}: {path}")

    def test_every_decision_is_listed(self):
        listed = (TOP / "docs" / "adr" / "README.md").read_text()
        for path in (TOP / "docs" / "adr").glob("[0-9]*.md"):
            title = path.read_text().split("\n")[0].removeprefix("# ")
            number, text = title.split(": ", 1)
            self.assertIn(f"[{number}]({path.name}) | {text} |", listed)


if __name__ == "__main__":
    tap.main()
