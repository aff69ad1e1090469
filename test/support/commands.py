# SPDX-License-Identifier: Apache-2.0
"""commands.py - runs the program's commands, for tests in Python."""

import atexit
import json
import os
import shutil
import subprocess
import tempfile

USAGE, DATA, NO_INPUT, UNAVAILABLE, TEMPFAIL, CONFIG = 64, 65, 66, 69, 75, 78  # sysexits

# Nothing of this machine's settings reaches the program.
CLEAN = {k: v for k, v in os.environ.items() if not k.startswith(("PG", "PAWL", "DATABASE_URL", "XDG"))}
# A folder of this run's own, for other programs may make one where there is none; readable to other users.
SETTINGS = tempfile.mkdtemp(prefix="pawl-settings-")
atexit.register(shutil.rmtree, SETTINGS, ignore_errors=True)
os.chmod(SETTINGS, 0o755)
CLEAN["XDG_CONFIG_HOME"] = SETTINGS


class Store:
    """What every case runs on: `env` names the store to the program."""

    env = CLEAN
    program = None

    def pawl(self, *words, env=None, **more):
        more.setdefault("input", "")
        more.setdefault("timeout", 60)
        return subprocess.run([self.program, *map(str, words)], env=env or self.env, capture_output=True, text=True,
                              check=False, **more)

    def good(self, *words, **more):
        done = self.pawl(*words, **more)
        self.assertEqual((done.returncode, done.stderr), (0, ""), (words, done.stdout))
        return done.stdout

    def json(self, *words, **more):
        return json.loads(self.good(*words, "--json", **more))

    def refused(self, code, complaint, *words, **more):
        done = self.pawl(*words, **more)
        self.assertEqual(done.returncode, code, (words, done.stdout, done.stderr))
        self.assertIn(complaint, done.stderr)
        return done

    def enqueue(self, *words, **more):
        return self.good("enqueue", *words, **more).strip()

    def make_tables(self):
        """Make the store ready, and put nothing in."""
        self.good("enqueue", "any", "--ndjson")

    def ids(self, *words):
        return [j["id"] for j in self.json("jobs", "list", *words)["jobs"]]
