#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""doctor_test.py - what `pawl doctor` finds: each finding is provoked on a real server, or a real file.

Usage: doctor_test.py PATH-OF-PAWL PATH-OF-BENT-WORLD
"""

import contextlib
import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TOP / "test" / "support"))
import pg  # noqa: E402
import tap  # noqa: E402
from commands import CLEAN, CONFIG, UNAVAILABLE, USAGE, Store  # noqa: E402

BENT = sys.argv.pop()
Store.program = sys.argv.pop()
CANARY = "canary-0d0c"
SECONDS_MAX = 60
PGBOUNCER = next((p for p in ("/usr/sbin/pgbouncer", "/usr/bin/pgbouncer") if os.access(p, os.X_OK)), None)


def bent(**answers):
    """An environment in which the system tells something else."""
    sanitizer = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
    return {"LD_PRELOAD": BENT, "ASAN_OPTIONS": sanitizer, **{k: str(v) for k, v in answers.items()}}


class Cases(Store):
    """Run on each kind of store."""

    def findings(self, *words, code=None, **env):
        done = self.pawl("doctor", "--json", *words, env={**self.env, **env})
        told = json.loads(done.stdout)
        self.assertEqual(done.stderr, "")
        levels = [f["level"] for f in told["findings"]]
        self.assertEqual((told["errors"], told["warnings"]), (levels.count("error"), levels.count("warning")))
        self.assertEqual(done.returncode, code if code is not None else CONFIG if "error" in levels else 0, told)
        for finding in told["findings"]:
            self.assertEqual("advice" in finding, finding["level"] != "ok", finding)
        return {f["name"]: (f["level"], f["text"]) for f in told["findings"]}

    def assertFound(self, level, name, text, *words, **env):
        found = self.findings(*words, **env)
        self.assertEqual(found[name][0], level, found)
        self.assertIn(text, found[name][1])

    @contextlib.contextmanager
    def running(self, *words, **more):
        process = subprocess.Popen([self.program, *words], env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                   text=True, **more)
        try:
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.terminate()
            process.communicate(timeout=SECONDS_MAX)

    def wait_for(self, what):
        """Until `what` gives something; waits for real processes."""
        end = time.monotonic() + SECONDS_MAX
        while not (found := what()):
            self.assertLess(time.monotonic(), end, "it does not come")
            time.sleep(0.05)
        return found

    def seen(self, kind):
        return [w["name"] for w in self.json("workers")["workers"] if w["kind"] == kind]

    # ---- reapers

    def test_no_reaper(self):  # RULE-020-020
        self.assertFound("error", "reaper", "no reaper runs")
        self.pawl("reap")  # once is not continuously
        self.assertFound("error", "reaper", "no reaper runs")
        with self.running("work", "mail", "--no-reaper", "--", "true"):
            self.wait_for(lambda: self.seen("worker"))
            self.assertFound("error", "reaper", "no reaper runs")

    def test_all_is_well(self):
        for words in (("reap", "--watch"), ("work", "mail", "--", "true")):
            with self.running(*words):
                self.wait_for(lambda: self.seen("reaper"))
                found = self.findings(*self.well_words)
                self.assertEqual({n: f for n, f in found.items() if f[0] != "ok"}, {})
                text = self.good("doctor", *self.well_words)
                self.assertIn("0 errors, 0 warnings", text)
                self.assertNotIn("->", text)

    def test_a_reaper_that_has_stopped_working(self):  # RULE-020-020
        """Its process is there; its runs are not."""
        with self.running("reap", "--watch") as reaper:
            name = self.wait_for(lambda: self.seen("reaper"))[0]
            reaper.send_signal(signal.SIGSTOP)
            found = self.wait_for(lambda: (f := self.findings("--reaper-interval", "1s")["reaper"])[0] == "error" and f)
            self.assertIn("no reaper has finished a run for ", found[1])
            self.assertIn("more than three intervals of 1s", found[1])
            self.assertIn(name, found[1])
            reaper.send_signal(signal.SIGCONT)
            self.wait_for(lambda: self.findings("--reaper-interval", "1s")["reaper"][0] == "ok")

    def test_the_interval_derives_from_the_smallest_lease(self):  # RULE-020-022
        with self.running("reap", "--watch"):
            self.wait_for(lambda: self.seen("reaper"))
            self.assertIn("the interval is 10s", self.findings()["reaper"][1])
            self.good("queues", "set", "quick", "--lease", "6s")
            self.assertIn("the interval is 3s", self.findings()["reaper"][1])
            self.assertIn("the interval is 7s", self.findings("--reaper-interval", "7s")["reaper"][1])
            self.assertIn("the interval is 8s", self.findings(PAWL_REAPER_INTERVAL="8s")["reaper"][1])

    def test_leases_that_nobody_recovers(self):
        job = self.enqueue("mail", CANARY)
        self.good("queues", "set", "mail", "--lease", "1s")
        with self.running("work", "mail", "--no-reaper", "--", "sleep", "600", start_new_session=True) as worker:
            self.wait_for(lambda: self.json("leases")["leases"])
            self.assertIn("1 held, none", self.findings()["leases"][1])
            os.killpg(worker.pid, signal.SIGKILL)
            found = self.wait_for(lambda: (f := self.findings("--reaper-interval", "500ms")["leases"])[0] == "error" and f)
            self.assertIn("1 of 1 leases are long past their end", found[1])
            self.assertIn(job, found[1])
            self.assertNotIn(CANARY, self.pawl("doctor").stdout)
        self.good("reap")
        self.assertEqual(self.findings()["leases"][0], "ok")

    def test_words(self):
        self.refused(USAGE, "--reaper-interval", "doctor", "--reaper-interval", "soon")
        text = self.pawl("doctor").stdout
        self.assertIn("error    reaper              no reaper runs\n", text)
        self.assertIn("-> start a worker", text)


class SqliteTest(Cases, unittest.TestCase):
    well_words = ()

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(dir="/var/tmp"))  # doctor warns of files in memory, where others may be
        self.addCleanup(shutil.rmtree, self.folder)
        self.file = self.folder / "pawl.db"
        self.env = {**CLEAN, "PAWL_STORE": f"sqlite:{self.file}"}
        self.make_tables()

    def test_file_systems(self):
        self.findings()
        for kind, level, name in ((0x6969, "error", "nfs"), (0xff534d42, "error", "cifs"), (0x65735546, "warning", "fuse"),
                                  (0x01021994, "warning", "tmpfs"), (0xef53, "ok", "a disk")):
            self.assertFound(level, "file_system", f"is on {name}", **bent(BENT_FS_TYPE=kind))

    def test_room_on_the_disk(self):
        self.assertFound("error", "disk", "31 MiB are free", **bent(BENT_DISK_FREE=(32 << 20) - 1))
        self.assertFound("warning", "disk", "32 MiB are free", **bent(BENT_DISK_FREE=32 << 20))
        self.assertFound("warning", "disk", "255 MiB are free", **bent(BENT_DISK_FREE=(256 << 20) - 1))
        self.assertFound("ok", "disk", "256 MiB are free", **bent(BENT_DISK_FREE=256 << 20))

    def test_a_damaged_file(self):
        lines = "".join(json.dumps({"payload": "x" * 200}) + "\n" for _ in range(500))
        self.good("enqueue", "mail", "--ndjson", input=lines)
        self.assertEqual(self.findings()["integrity"], ("ok", "quick_check finds nothing"))
        db = sqlite3.connect(self.file)
        db.execute("pragma wal_checkpoint(truncate)")  # nothing is left that hides the damage
        db.close()
        size = self.file.stat().st_size
        with open(self.file, "r+b") as file:
            file.seek(size - 8 * 4096)
            file.write(os.urandom(4 * 4096))
        found = self.findings()
        self.assertEqual(found["integrity"][0], "error", found)
        self.assertIn("quick_check: ", found["integrity"][1])

    def test_a_file_whose_journal_mode_was_changed(self):
        """Whoever opens it puts it right: there is nothing to find."""
        self.findings()
        db = sqlite3.connect(self.file)
        self.assertEqual(db.execute("pragma journal_mode = delete").fetchone(), ("delete",))
        db.close()
        self.assertEqual(self.findings()["journal_mode"], ("ok", "journal_mode is wal"))

    def test_a_file_that_cannot_be_used(self):
        self.findings()
        no_file = self.folder / "no.db"
        no_file.write_text("this is no database, however long one may look at it" * 100)
        for path, code in ((no_file, CONFIG), (self.folder, UNAVAILABLE), ("/none/such/x.db", UNAVAILABLE)):
            found = self.findings("--store", f"sqlite:{path}", code=code)
            self.assertEqual(found["store"][0], "error")
            self.assertIn(str(path), found["store"][1])

    def test_a_store_that_is_none(self):
        """A path alone, as a slip of the pen: told once, by what is wrong with it."""
        for name in (str(self.folder / "pawl.db"), "pawl.db", "mysql://h/d", "sqlite"):
            found = self.findings(PAWL_STORE=name, code=CONFIG)
            self.assertEqual(list(found), ["store"], found)
            self.assertIn("names no kind of store; it must be postgres://..., postgresql://..., sqlite:PATH", found["store"][1])
            for words in (("migrate", "status"), ("adopt", "x.json"), ("queues",)):
                self.refused(CONFIG, "names no kind of store", *words, env={**self.env, "PAWL_STORE": name})

    def test_a_file_that_must_not_be_written(self):
        self.findings()
        user = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
        program = self.folder / "pawl"
        shutil.copy(self.program, program)
        os.chmod(self.folder, 0o555)
        for file in self.folder.glob("pawl.db*"):
            os.chmod(file, 0o444)
        done = subprocess.run([program, "doctor", "--json"], env=self.env, capture_output=True, text=True, check=False, **user)
        os.chmod(self.folder, 0o755)
        self.assertEqual(done.returncode, UNAVAILABLE, done)
        self.assertEqual([f["name"] for f in json.loads(done.stdout)["findings"]], ["store"])


class Muffler(threading.Thread):
    """Between the program and the server: whoever listens hears nothing any more once he has begun to."""

    def __init__(self, folder, server):
        super().__init__(daemon=True)
        self.server = server
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(f"{folder}/.s.PGSQL.5432")
        self.listener.listen()
        self.start()

    def run(self):
        while True:
            client = self.listener.accept()[0]
            server = socket.socket(socket.AF_UNIX)
            server.connect(self.server)
            listens = threading.Event()
            threading.Thread(target=self.forward, args=(client, server, listens), daemon=True).start()
            threading.Thread(target=self.back, args=(server, client, listens), daemon=True).start()

    @staticmethod
    def forward(client, server, listens):
        with contextlib.suppress(OSError):
            while data := client.recv(65536):
                if b"listen pawl_test" in data:
                    listens.set()
                server.sendall(data)
        server.close()

    @staticmethod
    def back(server, client, listens):
        is_deaf = False
        with contextlib.suppress(OSError):
            while data := server.recv(65536):
                # Asked before the answer goes on: the next question may follow it at once.
                has_asked = listens.is_set()
                if not is_deaf:
                    client.sendall(data)
                # Up to the answer to it, which ends by ReadyForQuery.
                is_deaf = is_deaf or (has_asked and data[-6:-1] == b"Z\0\0\0\5")


class PostgresTest(Cases, unittest.TestCase):
    world = None
    well_words = ()

    def setUp(self):
        self.database = self.world.database(2)
        self.server = self.world.server
        self.env = self.url()

    def url(self, user=None, port=5432, database=None):
        return {**CLEAN, "PAWL_STORE": f"postgresql:///{database or self.database}?host={self.server.folder}&port={port}"
                                       f"&user={user or self.server.user}"}

    def set(self, name, value):
        self.world.sql("postgres", f"alter system set {name} = {value}")
        self.world.sql("postgres", "select pg_reload_conf()")
        self.wait_for(lambda: self.world.sql("postgres", f"show {name}") == [[value]])

    def test_durability(self):
        for name, level in (("fsync", "error"), ("full_page_writes", "warning"), ("autovacuum", "warning"),
                            ("synchronous_commit", "error")):
            self.assertFound("ok", name, f"{name} is on")
            self.set(name, "off")
            self.assertFound(level, name, f"{name} is off")
            self.set(name, "on")
        for value in ("local", "remote_apply"):
            self.world.sql(self.database, f"alter database {self.database} set synchronous_commit = {value}")
            self.assertFound("ok", "synchronous_commit", value)
        # Of this role and database, it is what counts.
        self.world.sql(self.database, f"alter database {self.database} set synchronous_commit = off")
        self.assertFound("error", "synchronous_commit", "synchronous_commit is off")
        self.world.sql(self.database, f"alter database {self.database} reset synchronous_commit")

    def test_read_only(self):
        self.world.sql(self.database, f"alter database {self.database} set default_transaction_read_only = on")
        found = self.findings()
        self.world.sql(self.database, f"set default_transaction_read_only = off; "
                                      f"alter database {self.database} reset default_transaction_read_only")
        self.assertEqual(found["read_only"], ("error", "read_only is on"))

    def workers(self, count, kind=0, suffix=""):
        self.world.sql(self.database, f"select pawl.worker_seen('w{kind}-' || n || '{suffix}', {kind}::int2, 'h', '1') "
                                      f"from generate_series(1, {count}) n")

    def test_connections(self):  # RULE-020-041
        budget = int(self.world.sql("postgres", "select current_setting('max_connections')::int - "
                                                "current_setting('superuser_reserved_connections')::int - "
                                                "coalesce(current_setting('reserved_connections', true)::int, 0)")[0][0])
        self.workers(budget // 5)
        self.workers(budget // 5, 1, "/reaper")  # those of the workers: counted already
        self.assertFound("ok", "connections", f"need up to {budget // 5 * 5} connections; there may be {budget}")
        self.workers(budget - budget // 5 * 5, 1)
        self.assertFound("ok", "connections", f"need up to {budget} connections")
        self.workers(budget - budget // 5 * 5 + 1, 1)
        self.assertFound("error", "connections", f"need up to {budget + 1} connections; there may be {budget}")
        # Who has not shown himself for a minute is not there.
        self.world.sql(self.database, "update pawl.worker set last_seen = now() - interval '61 seconds'")
        self.assertFound("ok", "connections", "need up to 0 connections")

    def test_connections_of_a_role_and_of_a_database(self):  # RULE-020-041
        self.workers(3)
        role = "pawl_few"
        self.world.sql(self.database, f"drop role if exists {role}; create role {role} login connection limit 14; "
                                      f"select pawl.grant_runtime('{role}')")
        self.assertFound("error", "connections", "need up to 15 connections; there may be 14", **self.url(user=role))
        self.assertFound("ok", "connections", "there may be 97")
        self.world.sql(self.database, f"alter role {role} connection limit -1; alter database {self.database} connection limit 13")
        self.assertFound("error", "connections", "there may be 13", **self.url(user=role))
        self.world.sql(self.database, f"alter database {self.database} connection limit -1; drop owned by {role}; drop role {role}")

    def test_connections_in_use_by_others(self):
        with contextlib.ExitStack() as stack:
            for _ in range(90):
                process = stack.enter_context(self.world.session("postgres"))
                process.run("select 1")
            self.assertFound("warning", "connections", "in use by all clients: 9")

    def test_behind_a_pooler(self):
        """Whose own limits count: however many connect to it, the server has few."""
        self.assertIsNotNone(PGBOUNCER, "install it: tools/install-deps test")
        self.workers(1000)
        folder = Path(self.server.folder)
        users, settings = folder / "bouncer.users", folder / "bouncer.ini"
        users.write_text(f'"{self.server.user}" ""\n')
        settings.write_text(f"[databases]\n* = host={folder} port=5432\n[pgbouncer]\nlisten_addr =\nlisten_port = 6543\n"
                            f"unix_socket_dir = {folder}\nauth_type = trust\nauth_file = {users}\npool_mode = transaction\n")
        for file in (users, settings):
            file.chmod(0o644)
        pooler = subprocess.Popen([PGBOUNCER, "-q", settings], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                  cwd="/", **self.server.as_user())
        self.addCleanup(pooler.wait)
        self.addCleanup(pooler.terminate)
        env = self.url(port=6543)
        self.wait_for(lambda: self.pawl("queues", env=env).returncode == 0)
        found = self.findings(**env)
        self.assertEqual(found["connections"][0], "ok")
        self.assertIn("a pooler is in between", found["connections"][1])
        self.assertEqual(found["notifications"][0], "ok")
        self.assertIn("do not pass the pooler", found["notifications"][1])

    def test_notifications(self):
        self.assertFound("ok", "notifications", "they arrive")
        with tempfile.TemporaryDirectory() as folder:
            Muffler(folder, f"{self.server.folder}/.s.PGSQL.5432")
            url = f"postgresql:///{self.database}?host={folder}&user={self.server.user}"
            self.assertFound("warning", "notifications", "they do not arrive", PAWL_STORE=url)

    def test_the_clock(self):
        self.assertFound("ok", "clock", "0.000 s")
        self.assertFound("warning", "clock", "behind this machine's", **bent(BENT_CLOCK_S=5))
        self.assertFound("warning", "clock", "ahead of this machine's", **bent(BENT_CLOCK_S=-5))
        self.assertFound("error", "clock", "behind this machine's", **bent(BENT_CLOCK_S=60))

    def test_a_schema_that_is_not_current(self):
        for statement in ("drop database if exists bare", "create database bare"):
            self.world.sql("postgres", statement)
        env = self.url(database="bare")
        found = self.findings(code=CONFIG, **env)
        self.assertEqual(found["schema"][0], "error")
        self.assertIn("steps are missing, from 001_tables on", found["schema"][1])
        self.assertIn("migrate up", found["store"][1])
        self.good("migrate", "up", "--no-plain", env=env)
        self.assertFound("warning", "schema", "the step for plain PostgreSQL is missing", **env)
        self.good("migrate", "up", env=env)
        self.assertFound("ok", "schema", "it is current", **env)
        last = self.world.sql("bare", "select max(name) from pawl.migration where name < '900'")[0][0]
        self.world.sql("bare", f"update pawl.migration set name = '899_later' where name = '{last}'")
        found = self.findings(code=CONFIG, **env)
        self.assertEqual(found["schema"][0], "error")
        self.assertIn("newer", found["schema"][1])
        self.world.sql("postgres", "drop database bare")

    def test_a_server_that_is_away(self):
        url = f"postgresql://u:{CANARY}@/d?host=/none/such"
        found = self.findings("--store", url, code=UNAVAILABLE)
        self.assertEqual(list(found), ["store"])
        self.assertNotIn(CANARY, self.pawl("doctor", "--store", url).stdout)

    def test_the_runtime_role_is_enough(self):
        self.world.sql(self.database, "drop role if exists pawl_plain; create role pawl_plain login; "
                                      "select pawl.grant_runtime('pawl_plain')")
        env = self.url(user="pawl_plain")
        found = self.findings(**env)
        self.assertEqual(set(found), set(self.findings()))
        self.assertEqual({n for n, f in found.items() if f[0] != "ok"}, {"reaper"})
        self.world.sql(self.database, "drop owned by pawl_plain; drop role pawl_plain")


if __name__ == "__main__":
    with pg.World(Store.program, settings=()) as PostgresTest.world:
        tap.main()
