#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""config_test.py - where settings come from: the command line, the environment, a file; and what `pawl config` says of it.

Usage: config_test.py PATH-OF-PAWL
"""

import datetime
import fcntl
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
import time
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TOP / "test" / "support"))
import running  # noqa: E402
import tap  # noqa: E402
from commands import CLEAN, CONFIG, NO_INPUT, USAGE, Store  # noqa: E402

Store.program = sys.argv.pop()
CANARY = "canary-51c7"
SECONDS_MAX = 60
IDS = set(re.findall(r"^\| `([A-Z-]+)` \|", (TOP / "docs" / "logs.md").read_text(encoding="utf-8"), re.MULTILINE))


def when(text):
    """Seconds since 1970."""
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


class ConfigBase(Store):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.env = {**CLEAN, "XDG_CONFIG_HOME": str(self.folder / "home"), "XDG_STATE_HOME": str(self.folder / "state")}
        self.make_tables()

    def file(self, text, name="pawl.conf"):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path


class ConfigTest(ConfigBase, unittest.TestCase):
    def settings(self, *words, **more):
        told = self.json("config", *words, env={**self.env, **more})
        return {s["name"]: (s["value"], s["origin"], s["from"]) for s in told["settings"]}

    # ---- who is heard

    def test_command_line_over_environment_over_file_over_default(self):
        file = self.file("store = sqlite:%s/file.db\n" % self.folder)
        words = ("--config", file)

        def queue(*more, **env):
            return [q["queue"] for q in self.json("queues", *more, env={**self.env, **env})["queues"]]

        for name in ("line", "variable", "url", "file"):
            self.good("enqueue", name, "x", "--store", f"sqlite:{self.folder}/{name}.db")
        self.good("enqueue", "usual", "x")
        variable, url = f"sqlite:{self.folder}/variable.db", f"sqlite:{self.folder}/url.db"
        self.assertEqual(queue(*words, "--store", f"sqlite:{self.folder}/line.db", PAWL_STORE=variable), ["line"])
        self.assertEqual(queue(*words, PAWL_STORE=variable, DATABASE_URL=url), ["variable"])
        self.assertEqual(queue(*words, DATABASE_URL=url, PGHOST="/none/such"), ["url"])
        self.refused(69, "no such socket", "queues", *words, env={**self.env, "PGHOST": "/none/such"})
        self.assertEqual(queue(*words), ["file"])
        self.assertEqual(queue(*words, PAWL_STORE="", DATABASE_URL="", PGHOST=""), ["file"])
        self.assertEqual(queue(), ["usual"])

    def test_a_flag_can_be_taken_back(self):
        file = self.file("no-reaper = yes\n")
        self.assertEqual(self.settings("--config", file)["no-reaper"], ("yes", "file", f"{file}:1"))
        self.assertEqual(self.settings("--config", file, PAWL_NO_REAPER="no")["no-reaper"],
                         ("no", "environment", "PAWL_NO_REAPER"))
        self.refused(USAGE, '--no-reaper is "maybe"; it must be yes or no', "work", "q", "--no-reaper=maybe", "--", "true")
        self.refused(USAGE, "--json takes no value", "queues", "--json=yes")
        self.refused(CONFIG, 'PAWL_NO_REAPER is "1"; it must be yes or no', "work", "q", "--", "true",
                     env={**self.env, "PAWL_NO_REAPER": "1"})

    def test_where_the_file_is_looked_for(self):
        def poll(*words, **env):
            return self.settings(*words, **env)["poll"]

        self.assertEqual(poll()[1], "default")
        home = self.file("poll = 1s\n", "home/pawl/pawl.conf")
        self.assertEqual(poll(), ("1s", "file", f"{home}:1"))
        named = self.file("poll = 2s\n", "named.conf")
        self.assertEqual(poll(PAWL_CONFIG=str(named)), ("2s", "file", f"{named}:1"))
        option = self.file("\n# a comment\n\tpoll=3s \n", "option.conf")
        self.assertEqual(poll("--config", option, PAWL_CONFIG=str(named)), ("3s", "file", f"{option}:3"))
        dotted = self.file("poll = 4s\n", "house/.config/pawl/pawl.conf")
        self.assertEqual(poll(XDG_CONFIG_HOME="", HOME=str(self.folder / "house")), ("4s", "file", f"{dotted}:1"))
        self.assertEqual(poll(XDG_CONFIG_HOME="relative", HOME=str(self.folder / "house"))[0], "4s")
        self.assertEqual(poll("--config", option, PAWL_POLL="9s"), ("9s", "environment", "PAWL_POLL"))

    def test_a_file_that_cannot_be_read(self):
        self.refused(NO_INPUT, "none.conf: No such file", "queues", "--config", self.folder / "none.conf")
        self.refused(NO_INPUT, "none.conf: No such file", "queues", env={**self.env, "PAWL_CONFIG": str(self.folder / "none.conf")})
        self.refused(CONFIG, "Is a directory", "queues", "--config", self.folder)
        (self.folder / "home" / "pawl" / "pawl.conf").mkdir(parents=True)
        self.refused(CONFIG, "Is a directory", "queues")

    # ---- what is refused

    def test_a_line_that_is_wrong_is_named(self):
        for text, line, complaint in (
                ("parralel = 4", 1, 'unknown setting "parralel"; did you mean parallel?'),
                ("reaper_interval = 4s", 1, "did you mean reaper-interval?"),
                ("colour = red", 1, 'unknown setting "colour"; pawl config lists them all'),
                ("--parallel = 4", 1, "did you mean parallel?"),
                ("queue = mail", 1, 'unknown setting "queue"'),
                ("json = yes", 1, 'unknown setting "json"'),
                ("\n\nparallel = many", 3, 'parallel is "many"; it must be a whole number from 0 on'),
                ("poll = 5", 1, 'poll: duration "5"'), ("poll =", 1, "poll has no value"),
                ("verbose = on", 1, 'verbose is "on"; it must be yes or no'),
                ("poll = 5s\npoll = 6s", 2, "poll is given twice: first in line 1"),
                ("poll = 5s # soon", 1, "poll: a comment must have a line of its own"),
                ("poll", 1, "this is no setting; write: name = value"), ("= 5", 1, "this is no setting"),
                ("[work]", 1, "this is no setting"), (" = 5", 1, "this is no setting"), ("name = a\x1bb", 1, "a control character")):
            file = self.file(text + "\n")
            # Refused by every command that reads it, also by those that have no such option.
            for words in (("queues",), ("work", "q"), ("config",)):
                done = self.refused(CONFIG, f"{file}:{line}: ", *words, "--config", file)
                self.assertIn(complaint, done.stderr)

    def test_files_are_bounded_texts(self):
        self.refused(CONFIG, "65536 bytes at most", "queues", "--config", self.file("#" * 65537))
        self.good("queues", "--config", self.file("#" * 65536))
        self.refused(CONFIG, "this is no text", "queues", "--config", self.file(b"poll = 1s\0\n"))
        self.assertEqual(self.settings("--config", self.file("poll = 5s\r\ngrace = 1s\r\n"))["grace"][0], "1s")
        self.assertEqual(self.settings("--config", self.file("poll = 5s"))["poll"][0], "5s")  # no end of line

    def test_a_variable_that_is_wrong_is_named(self):
        env = {**self.env, "PAWL_PARALLEL": "many"}
        complaint = 'PAWL_PARALLEL is "many"; it must be a whole number from 0 on'
        self.refused(CONFIG, complaint, "work", "q", "--", "true", env=env)
        self.refused(CONFIG, complaint, "config", env=env)
        self.good("queues", env=env)  # it is no setting of this command
        done = self.pawl("config", env={**self.env, "PAWL_PARRALEL": "4", "PAWL_QUEUE": "q", "PAWL_JOB_ID": "x",
                                         "PAWL_HEADER_TENANT": "acme"})
        self.assertEqual(done.stderr, "pawl config: nothing reads the variable PAWL_PARRALEL\n")
        self.assertEqual(done.returncode, 0)

    def test_what_a_handler_is_told_is_no_setting(self):
        """A program that `pawl work` runs has PAWL_QUEUE and the like in its environment: a command that it calls must not
        take them for its own."""
        self.good("enqueue", "mail", "x")
        handler = {**self.env, "PAWL_QUEUE": "other", "PAWL_JOB_ID": "x", "PAWL_ATTEMPT": "1", "PAWL_DEADLINE": "1",
                   "PAWL_LEASE_VERSION": "1", "PAWL_ID": "x", "PAWL_ALL": "yes", "PAWL_LIMIT": "x"}
        self.assertEqual(len(self.json("jobs", env=handler)["jobs"]), 1)
        self.refused(USAGE, "say ids, or --queue", "cancel", env=handler)

    # ---- what is shown

    def test_secrets_are_hidden(self):
        for url in (f"postgres://u:{CANARY}@h/d", f"postgresql://u:{CANARY}@h:5/d?sslmode=require&password={CANARY}",
                    f"host=h password={CANARY} dbname=d", f"host=h password='{CANARY} x'", f"mysql://u:{CANARY}@h",
                    f"postgres://u:{CANARY}/{CANARY}@h/d", CANARY):
            file = self.file(f"store = {url}\n")
            for words, env in ((("config", "--config", file), {}), (("config", "--json"), {"PAWL_STORE": url}),
                               (("config",), {"DATABASE_URL": url}), (("config",), {"PGHOST": "h", "PGPASSWORD": CANARY})):
                told = self.good(*words, env={**self.env, **env})
                self.assertNotIn(CANARY, told)
        # Also where it stands in the wrong place.
        for line in (f"store: postgres://u:{CANARY}@h/d?sslmode=require", f"postgres://u:{CANARY}@h/d?sslmode=require",
                     f"store postgres://u:{CANARY}@h/d", f"store = postgres://u:{CANARY}@h/d #x"):
            done = self.refused(CONFIG, ":1: ", "config", "--config", self.file(line + "\n"))
            self.assertNotIn(CANARY, done.stdout + done.stderr)
        shown = self.settings(PAWL_STORE=f"postgres://u:{CANARY}@h:5/d?sslmode=require")["store"]
        self.assertEqual(shown, ("postgres://u:***@h:5/d?sslmode=require", "environment", "PAWL_STORE"))
        self.assertEqual(self.settings(PGHOST="h")["store"][2], "PGHOST")

    def test_every_setting_is_told_with_its_default(self):
        told = self.settings()
        self.assertEqual(list(told), sorted(told))
        for name, (value, origin, source) in told.items():
            self.assertEqual((origin, source), ("default", "default"), name)
            self.assertNotEqual(value, "", name)
        self.assertEqual(told["parallel"][0], "10")
        self.assertEqual(told["store"][0], "sqlite:")
        text = self.good("config")
        self.assertEqual(re.findall(r"(?m)^([a-z-]+) ", text), list(told))

    def test_settings_reach_the_command(self):
        """What the file says is what the worker does: its name is the one of the file."""
        file = self.file("name = from-file\nparallel = 1\nbuffer = 0\nverbose = yes\n")
        self.good("enqueue", "q", "x")
        done = self.pawl("work", "q", "--config", file, "--", "sh", "-c", "kill -TERM $(ps -o ppid= -p $PPID)")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("worker=from-file", done.stderr)
        self.assertIn("level=debug", done.stderr)


class ReadAgainTest(ConfigBase, unittest.TestCase):
    """SIGHUP makes a worker and a reaper read what may change while they run: RULE-020-002."""

    def start(self, *words, **more):
        log = open(self.folder / "log", "w", encoding="utf-8")
        process = subprocess.Popen([self.program, *map(str, words)], env=self.env, stderr=log, stdout=subprocess.DEVNULL, **more)
        log.close()
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def log(self):
        return (self.folder / "log").read_text()

    def events(self):
        """Every line of the log, whole ones, as an event."""
        lines = self.log().rpartition("\n")[0].splitlines()
        return [json.loads(line) if line.startswith("{") else running.fields(line) for line in lines]

    def told(self, event, **parts):
        return [e for e in self.events() if e["event"] == event and all(part in e.get(k, "") for k, part in parts.items())]

    def wait_for(self, what):
        end = time.monotonic() + SECONDS_MAX
        while not (found := what()):
            self.assertLess(time.monotonic(), end, self.log())
            time.sleep(0.02)
        return found

    def started(self):
        path = self.folder / "started"
        return len(path.read_text().split()) if path.exists() else 0

    def worker(self, text):
        file = self.file("buffer = 5\npoll = 50ms\n" + text)
        handler = f"echo $PAWL_JOB_ID >> {self.folder}/started; while [ ! -e {self.folder}/gate ]; do sleep 0.02; done"
        worker = self.start("work", "q", "--config", file, "--", "sh", "-c", handler)
        self.wait_for(lambda: "event=WORKER-UP" in self.log())
        return worker

    def end(self, worker):
        (self.folder / "gate").touch()
        worker.terminate()
        self.assertEqual(worker.wait(SECONDS_MAX), 0)

    def test_a_worker_runs_more_at_once(self):
        for _ in range(5):
            self.good("enqueue", "q", "x")
        worker = self.worker("parallel = 1\n")
        self.wait_for(lambda: self.started() == 1)
        # The first change is for handlers that are not there yet: that it holds shows with the second.
        self.file("buffer = 3\npoll = 50ms\nparallel = 3\n")
        worker.send_signal(signal.SIGHUP)
        self.wait_for(lambda: self.started() == 3)
        self.assertIn("event=SETTINGS", self.log())
        self.assertIn("parallel_max 3, buffer_max 3", self.log())
        self.assertNotIn("SETTINGS-", self.log())
        self.file("buffer = 3\npoll = 50ms\nparallel = 4\n")  # beyond what it was started with
        worker.send_signal(signal.SIGHUP)
        self.wait_for(lambda: self.told("SETTINGS-REFUSED", text="parallel_max is 4"))
        self.file("parallel = several\n")
        worker.send_signal(signal.SIGHUP)
        self.wait_for(lambda: self.told("SETTINGS-REFUSED", text="pawl.conf:1: parallel is"))
        (self.folder / "pawl.conf").unlink()
        worker.send_signal(signal.SIGHUP)
        self.wait_for(lambda: self.told("SETTINGS-REFUSED", text="pawl.conf: No such file"))
        self.assertEqual(self.started(), 3)
        self.end(worker)

    def test_another_lease(self):
        self.good("enqueue", "q", "x")
        worker = self.worker("parallel = 1\nlease = 20s\nheartbeat = 2s\n")

        def lease():
            return [j["lease_ms"] for j in self.json("jobs", "--state", "in_flight")["jobs"]]

        self.wait_for(lambda: lease() == [20000])
        self.file("buffer = 5\nparallel = 1\nlease = 40s\nheartbeat = 2s\n")
        worker.send_signal(signal.SIGHUP)
        self.wait_for(lambda: "smallest lease_ms 40000" in self.log())
        # By the next renewal it has the longer lease; a shorter one never shortens what was granted.
        def left():
            row = self.json("leases")["leases"][0]
            return when(row["expires_at"]) - time.time()

        self.wait_for(lambda: left() > 25)
        self.file("buffer = 5\nparallel = 1\nlease = 10s\nheartbeat = 4s\n")  # 3 x heartbeat must be below it
        worker.send_signal(signal.SIGHUP)
        self.wait_for(lambda: self.told("SETTINGS-REFUSED", text="heartbeat_ms"))
        self.end(worker)

    def test_the_level_of_the_log(self):
        worker = self.worker("")
        self.assertNotIn("level=debug", self.log())
        self.file("verbose = yes\nbuffer = 5\n")
        worker.send_signal(signal.SIGHUP)
        self.wait_for(lambda: "level=debug" in self.log())
        self.file("log-level = error\nbuffer = 5\n")
        worker.send_signal(signal.SIGHUP)
        self.wait_for(lambda: self.log().count("event=SETTINGS ") == 2)
        self.end(worker)
        self.assertNotIn("WORKER-STOPPED", self.log())

    def test_what_needs_a_start(self):
        worker = self.worker("")
        self.file("buffer = 5\npoll = 1s\nname = other\nno-reaper = yes\n")
        worker.send_signal(signal.SIGHUP)
        self.wait_for(lambda: self.told("SETTINGS-FIXED", setting="no-reaper"))
        self.end(worker)
        self.assertEqual(sorted(e["setting"] for e in self.told("SETTINGS-FIXED")), ["name", "no-reaper"])

    def test_a_log_stays_in_its_format(self):
        """Whatever is told of settings is an event like any other: no line is for people alone, in either format."""
        for form in ("logfmt", "json"):
            for path in ("pawl.conf", "d" * 200 + "/" + "f" * 200):  # a long one is cut where it says least
                file = self.file("poll = 50ms\n", path)
                worker = self.start("work", "q", "--config", file, "--log-format", form, "--", "true")
                self.wait_for(lambda: self.told("WORKER-UP"))
                name = self.told("WORKER-UP")[0]["worker"]
                file.write_text("parallel = several\n")
                worker.send_signal(signal.SIGHUP)
                self.wait_for(lambda: self.told("SETTINGS-REFUSED", text=":1: parallel is \"several\"; it must be a whole number"))
                file.write_text("lease = 1m\nname = other\nstore = postgres://u:%s@h/d\n" % CANARY)
                worker.send_signal(signal.SIGHUP)
                self.wait_for(lambda: len(self.told("SETTINGS-FIXED")) == 2)
                worker.terminate()
                self.assertEqual(worker.wait(SECONDS_MAX), 0)
                events = self.events()  # each line parses
                self.assertEqual({e["worker"] for e in events}, {name})
                self.assertEqual([(e["level"], e["setting"]) for e in self.told("SETTINGS-FIXED")],
                                 [("warn", "name"), ("warn", "store")])
                self.assertNotIn(CANARY, self.log())
                self.assertTrue(all(e["event"] in IDS for e in events))

    def test_a_word_of_the_command_line_stays(self):
        file = self.file("poll = 3s\nbuffer = 1\n")
        worker = self.start("work", "q", "--poll", "70ms", "--config", file, "--", "true")
        self.wait_for(lambda: "event=WORKER-UP" in self.log())
        self.file("poll = 5s\nbuffer = 0\n")
        worker.send_signal(signal.SIGHUP)
        self.wait_for(lambda: "buffer_max 0, poll_ms 70," in self.log())
        worker.terminate()
        self.assertEqual(worker.wait(SECONDS_MAX), 0)

    def test_a_reaper(self):
        file = self.file("interval = 9s\n")
        reaper = self.start("reap", "--watch", "--config", file)
        self.wait_for(lambda: "event=REAPER-UP" in self.log())
        self.file("interval = 50ms\nverbose = yes\n")
        reaper.send_signal(signal.SIGHUP)
        self.wait_for(lambda: self.log().count("event=REAP-RUN") >= 3)
        self.assertIn("interval_ms 50, level debug", self.log())
        self.file("interval = 30s\n")  # not below the lease
        reaper.send_signal(signal.SIGHUP)
        self.wait_for(lambda: self.told("SETTINGS-REFUSED", text="interval_ms"))
        self.file("interval = 1s\npresence = 1s\n")
        reaper.send_signal(signal.SIGHUP)
        self.wait_for(lambda: self.told("SETTINGS-FIXED", setting="presence"))
        reaper.terminate()
        self.assertEqual(reaper.wait(SECONDS_MAX), 0)

    def test_the_interval_comes_from_the_leases(self):  # RULE-020-022
        self.good("queues", "set", "q", "--lease", "2s")
        self.refused(CONFIG, "interval_ms", "reap", "--watch", "--interval", "2s")
        reaper = self.start("reap", "--watch")
        self.wait_for(lambda: "event=REAPER-UP" in self.log())
        reaper.send_signal(signal.SIGHUP)
        self.wait_for(lambda: "interval_ms 1000, level info" in self.log())
        reaper.terminate()
        self.assertEqual(reaper.wait(SECONDS_MAX), 0)

    def test_a_terminal_that_goes_away_ends_it(self):
        master, slave = pty.openpty()
        worker = self.start("work", "q", "--", "true", stdin=slave, start_new_session=True,
                            preexec_fn=lambda: fcntl.ioctl(slave, termios.TIOCSCTTY, 0))
        os.close(slave)
        self.wait_for(lambda: "event=WORKER-UP" in self.log())
        os.close(master)
        self.assertEqual(worker.wait(SECONDS_MAX), 0)
        self.assertIn("event=WORKER-STOPPED", self.log())


if __name__ == "__main__":
    tap.main()
