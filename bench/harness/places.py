# SPDX-License-Identifier: Apache-2.0
"""places.py - where turns of the bench are taken: a PostgreSQL server of its own with a fresh database for each, files for SQLite."""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "test" / "support"))
from pg import _RUN_MODULE, World  # noqa: E402

# All that differs from what PostgreSQL does by default. Durability is as by default: fsync, synchronous_commit and full_page_writes are on.
SETTINGS = ("shared_buffers=512MB", "max_wal_size=8GB", "checkpoint_timeout=1h", "max_connections=200")
# For 10,000,000 jobs, which are 6 GB: as docs/performance.md says, they fit into the buffers; and there is no checkpoint in the middle either.
LONG_SETTINGS = ("shared_buffers=8GB", "max_wal_size=40GB", "min_wal_size=20GB")
TURN_SECONDS_MAX = 3600
TEMPLATE = "pawl_template"
PG_BIN = _RUN_MODULE.BIN


class Failed(Exception):
    """A turn that went wrong, with what it said."""


def run_json(words, env=None, cwd=None, seconds=TURN_SECONDS_MAX):
    """Run a program and read the one line of JSON that it prints last."""
    try:
        done = subprocess.run([str(word) for word in words], env=env, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              check=False, timeout=seconds)
    except subprocess.TimeoutExpired as late:
        raise Failed(f"{' '.join(str(word) for word in words[:2])}: no end after {seconds} s") from late
    except OSError as error:
        raise Failed(f"{words[0]} cannot be run: {error.strerror}") from error
    lines = done.stdout.strip().splitlines()
    if done.returncode != 0 or not lines:
        raise Failed(f"{' '.join(str(word) for word in words[:2])}: exit {done.returncode}: {(done.stderr or done.stdout).strip()[-2000:]}")
    return json.loads(lines[-1])


class Postgres:
    """A server, started when it is first needed."""

    def __init__(self, pawl, settings=SETTINGS):
        self.pawl = pawl
        self.settings = settings
        self.world = None
        self.templates = set()

    def __exit__(self, *_):
        if self.world:
            self.world.__exit__(None, None, None)

    def __enter__(self):
        return self

    def start(self):
        if self.world is None:
            self.world = World(self.pawl, settings=self.settings).__enter__()
            self.world.sql("postgres", f"create database {TEMPLATE}")
            self.world.pawl(TEMPLATE, "migrate", "up", check=True)
        return self.world

    def url(self, database):
        return f"postgresql://?host={self.start().server.folder}&port=5432&user={self.world.server.user}&dbname={database}"

    def sql(self, database, text):
        """Rows of the last statement, columns as text. It may take long: databases are copied by it."""
        env = self.start().environment(database, PGOPTIONS="-c client_min_messages=warning")
        done = subprocess.run([PG_BIN / "psql", "-XqAt", "-F", "\t", "-v", "ON_ERROR_STOP=1", "-f", "-"], env=env, input=text, capture_output=True,
                              text=True, check=False, timeout=TURN_SECONDS_MAX)
        if done.returncode != 0:
            raise Failed(f"{text[:200]}: {done.stderr.strip()[-500:]}")
        return [line.split("\t") for line in done.stdout.splitlines()]

    def version(self):
        return self.sql("postgres", "show server_version")[0][0].split()[0]

    def changed_settings(self):
        return {row[0]: row[1] for row in self.sql("postgres", "select name, current_setting(name) from pg_settings where source = 'command line' "
                                                   "and name not in ('unix_socket_directories', 'listen_addresses')")}

    def template(self, name, prepare):
        """A database that `prepare` has filled once, to be copied; the plain one where there is nothing to prepare."""
        self.start()
        if prepare is None:
            return TEMPLATE
        if name not in self.templates:
            self.sql("postgres", f"create database {name} template {TEMPLATE}")
            prepare(self.url(name))
            self.templates.add(name)
        return name

    def drop_templates(self):
        for name in self.templates:
            self.sql("postgres", f"drop database {name} with (force)")
        self.templates = set()

    def fresh(self, template):
        """A database for one turn."""
        copied = " strategy file_copy" if template != TEMPLATE and int(self.version().split(".")[0]) >= 15 else ""
        self.sql("postgres", "drop database if exists turn with (force)")
        self.sql("postgres", f"create database turn template {template}{copied}")
        self.sql("postgres", "checkpoint")
        return "turn"


class Files:
    """A folder for files of SQLite."""

    def __init__(self, folder=None):
        self.base = folder
        self.folder = None

    def __enter__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="pawl-bench-", dir=self.base))
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder, ignore_errors=True)

    def fresh(self):
        """A path for one turn, where nothing is."""
        for old in self.folder.glob("turn.db*"):
            old.unlink()
        return self.folder / "turn.db"


def version_of(*words):
    """The first number that a program's --version has; None where there is no such program."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=30)
    except OSError:
        return None
    found = re.search(r"\d+(\.\d+)+", done.stdout + done.stderr)
    return found[0] if found else None
