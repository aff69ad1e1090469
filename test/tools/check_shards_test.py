# SPDX-License-Identifier: Apache-2.0
"""The hot path names the shard of every table, and check-shards sees where one does not."""

import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TOP / "test/support"))
import tap  # noqa: E402  pylint: disable=wrong-import-position

# Everything but tables, looks, the functions for single jobs, views and roles.
HOT = sorted(path for path in (TOP / "src/store/postgres/sql").glob("*.sql")
             if 20 <= int(path.name[:3]) <= 80 or path.name == "140_worklease.sql")


def check(*files):
    done = subprocess.run([TOP / "tools/check-shards", *files], stdout=subprocess.PIPE, text=True, check=False)
    return done.returncode, done.stdout


def check_text(text):
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as file:
        file.write(text)
        file.flush()
        return check(file.name)


class CheckShards(unittest.TestCase):
    def test_the_hot_path_names_every_shard(self):
        code, out = check(*HOT)
        self.assertEqual((code, out), (0, ""))
        self.assertGreaterEqual(len(HOT), 8)

    def test_each_predicate_is_missed_where_it_is_taken_away(self):
        """Take every `x.shard = ...` of every file away, one at a time."""
        taken = 0
        for path in HOT:
            text = path.read_text(encoding="utf-8")
            for match in re.finditer(r"\b(\w+)\.shard = \w+(?:\.\w+)?", text):
                broken = text[:match.start()] + "true" + text[match.end():]
                code, _ = check_text(broken)
                self.assertEqual(code, 1, f"{path.name}: {match[0]} at {match.start()} is not missed")
                taken += 1
        self.assertGreater(taken, 50)

    def test_an_insert_without_its_shard(self):
        self.assertEqual(check_text("insert into pawl.job (line_id) values (1);")[0], 1)
        self.assertEqual(check_text("insert into pawl.job values (1);")[0], 1)
        self.assertEqual(check_text("insert into pawl.job (shard, line_id) values (0, 1);")[0], 0)

    def test_a_join_and_a_subquery(self):
        self.assertEqual(check_text("select from pawl.job j join pawl.attempt a on a.job_id = j.id where j.shard = 1;")[0], 1)
        self.assertEqual(check_text("select from pawl.queue q where exists (select from pawl.job j);")[0], 1)
        self.assertEqual(check_text("update pawl.job set state = 0 where id = 1;")[0], 1)

    def test_a_comment_proves_nothing(self):
        self.assertEqual(check_text("delete from pawl.job j where true -- j.shard = p_shard\n;")[0], 1)


if __name__ == "__main__":
    tap.main()
