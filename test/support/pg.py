# SPDX-License-Identifier: Apache-2.0
"""pg.py - a PostgreSQL server for tests in Python: databases that `pawl migrate up` has set up, and SQL."""

import importlib.machinery
import importlib.util
import os
import subprocess
from pathlib import Path

_HERE = Path(__file__).resolve().parent
_RUN = _HERE.parent / "pgtap" / "run"
_SPEC = importlib.util.spec_from_loader("pgtap_run", importlib.machinery.SourceFileLoader("pgtap_run", str(_RUN)))
_RUN_MODULE = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(_RUN_MODULE)


class World:
    """A server with databases that were migrated."""

    def __init__(self, pawl, **more):
        self.pawl_program = pawl
        self.server = _RUN_MODULE.Server(**more)
        self.ready = set()

    def __enter__(self):
        self.server.__enter__()
        return self

    def __exit__(self, *details):
        self.server.__exit__(*details)

    def environment(self, database, **more):
        keep = {k: v for k, v in os.environ.items() if not k.startswith(("PG", "PAWL_", "DATABASE_URL"))}
        return {**keep, "PGHOST": str(self.server.folder), "PGPORT": "5432", "PGUSER": self.server.user,
                "PGDATABASE": database, **more}

    def database(self, shards=1, name="test"):
        """A database with so many shards, as it is after the migration; gives its name."""
        name = f"{name}_{shards}"
        if name not in self.ready:
            self.sql("postgres", f"create database {name}")
            self.pawl(name, "migrate", "up", "--shards", str(shards), check=True)
            self.sql(name, (_HERE / "pg_tools.sql").read_text())
            self.ready.add(name)
        self.sql(name, "select pawl_test.reset()")
        return name

    def pawl(self, database, *words, check=False, role=None, **more):
        """Run the program; as another role where one is named."""
        env = self.environment(database, **({"PGUSER": role} if role else {}))
        more.setdefault("input", "")
        return subprocess.run([self.pawl_program, *map(str, words)], env=env, capture_output=True, text=True,
                              check=check, timeout=120, **more)

    def sql(self, database, text, role=None):
        """Run SQL; gives the rows of its last statement, columns as text. Fails where it does."""
        env = self.environment(database, PGOPTIONS="-c client_min_messages=warning")
        env["PGUSER"] = role or env["PGUSER"]
        done = subprocess.run([_RUN_MODULE.BIN / "psql", "-XqAt", "-F", "\t", "-v", "ON_ERROR_STOP=1", "-f", "-"], env=env, input=text,
                              capture_output=True, text=True, check=False, timeout=120)
        if done.returncode != 0:
            raise AssertionError(f"{text}: {done.stderr}")
        return [line.split("\t") for line in done.stdout.splitlines()]

    def session(self, database):
        """A session of psql that stays, for what must happen between two steps of others."""
        return Session(self.environment(database, PGOPTIONS="-c client_min_messages=warning"))

    def dump(self, database):
        """Everything in a database, as text."""
        done = subprocess.run([_RUN_MODULE.BIN / "pg_dump"], env=self.environment(database), capture_output=True,
                              text=True, check=True, timeout=120)
        # Numbers that were drawn from a sequence stay drawn. Newer versions put a random word around it all.
        noise = ("\\restrict", "\\unrestrict", "SELECT pg_catalog.setval(")
        return "".join(line for line in done.stdout.splitlines(True) if not line.startswith(noise))


class Session:
    """psql, statement by statement."""

    def __init__(self, env):
        self.process = subprocess.Popen(["stdbuf", "-oL", _RUN_MODULE.BIN / "psql", "-XqAt"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True)

    def run(self, text):
        """Run a statement and wait for its end; gives what was printed."""
        self.process.stdin.write(text + ";\n\\echo <end>\n")
        self.process.stdin.flush()
        lines = []
        for line in self.process.stdout:
            if line == "<end>\n":
                return "".join(lines)
            lines.append(line)
        raise AssertionError("psql has ended: " + "".join(lines))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
