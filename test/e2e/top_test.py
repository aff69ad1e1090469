#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""top_test.py - `pawl top` on a terminal: what it shows, how it ends, and that the terminal is then as it was; progress of
long work.

Usage: top_test.py PATH-OF-PAWL
"""

import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TOP / "test" / "support"))
import tap  # noqa: E402
from commands import CLEAN, CONFIG, UNAVAILABLE, USAGE, Store  # noqa: E402

Store.program = sys.argv.pop()
SECONDS_MAX = 60
TAKEN, GIVEN = "\033[?1049h\033[?25l", "\033[?25h\033[?1049l"


class Terminal:
    """A terminal with the program on it."""

    def __init__(self, env, *words, columns=80, rows=24, stdout=None):
        self.master, slave = pty.openpty()
        self.size(columns, rows)
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        self.text = ""
        self.process = subprocess.Popen(words, env={**env, "TERM": "xterm"}, stdin=slave, stdout=stdout or slave,
                                        stderr=slave, preexec_fn=self.own)

    @staticmethod
    def own():
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def size(self, columns, rows):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, seconds):
        while select.select([self.master], [], [], seconds)[0]:
            try:
                data = os.read(self.master, 65536)
            except OSError:
                return
            self.text += data.decode()
            seconds = 0

    def wait_for(self, what):
        """Until `what(self)` gives something."""
        end = time.monotonic() + SECONDS_MAX
        while not (found := what(self)):
            if time.monotonic() > end:
                raise AssertionError(f"it does not come: {self.text!r}")
            self.read(0.1)
        return found

    def pictures(self):
        """The lines of each picture that is whole."""
        pictures = re.findall(r"\033\[1;1H(.*?)\033\[J", self.text, re.DOTALL)
        return [[re.sub(r"\033\[[0-9;]*[mK]", "", line) for line in re.split(r"\033\[\d+;1H", p)] for p in pictures]

    def press(self, keys):
        os.write(self.master, keys.encode())

    def end(self):
        """Gives the exit code, once all was read."""
        self.wait_for(lambda _: self.process.poll() is not None)
        self.read(0.2)
        return self.process.returncode

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.slave)
        os.close(self.master)


class TopTest(Store, unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.env = {**CLEAN, "PAWL_STORE": f"sqlite:{self.folder}/pawl.db"}
        self.make_tables()
        self.env.pop("NO_COLOR", None)

    def terminal(self, *words, env=None, **more):
        terminal = Terminal(env or self.env, self.program, *words, **more)
        self.addCleanup(terminal.close)
        return terminal

    def assertGivenBack(self, terminal):
        self.assertEqual(termios.tcgetattr(terminal.slave), terminal.before)
        self.assertTrue(terminal.text.startswith(TAKEN), terminal.text[:40])
        self.assertTrue(terminal.text.rstrip().endswith(GIVEN), terminal.text[-40:])

    def test_what_it_shows(self):
        for _ in range(3):
            self.enqueue("mail", "x")
        self.enqueue("other", "x", "--delay", "1h")
        self.good("queues", "pause", "other")
        terminal = self.terminal("top", "--refresh", "100ms")
        picture = terminal.wait_for(lambda t: t.pictures())[0]
        self.assertRegex(picture[0], r"^pawl top  20\S+Z  queues 2  workers 0  reapers 0  sqlite:")
        self.assertEqual(picture[1], "ready 4 (1 delayed)  in flight 0 (0 expired)  succeeded 0  failed 0")
        self.assertRegex(picture[2], r"^per second: in -  done -  failed -   oldest due \d")
        self.assertRegex(picture[4], r"^QUEUE +STATE +READY +IN FLIGHT +OLDEST +IN/S +DONE/S +FAIL/S +FAILED")
        self.assertRegex(picture[5], r"^mail +open +3 +0 +\d")
        self.assertRegex(picture[6], r"^other +paused +1 +0 +- ")
        self.assertRegex(picture[8], r"^HOST +KIND +LEASES")
        # What happens shows.
        worker = subprocess.Popen([self.program, "work", "mail", "--name", "busy", "--", "sleep", "600"], env=self.env,
                                  stderr=subprocess.DEVNULL)
        self.addCleanup(worker.wait)
        self.addCleanup(worker.kill)
        # A worker claims before it has said that it is there.
        terminal.wait_for(lambda t: [p for p in t.pictures() if "in flight 3" in p[1] and "workers 1  reapers 1" in p[0]
                                     and re.search(r" worker +3 .* busy/", p[9])])
        self.good("cancel", "--queue", "mail")
        terminal.wait_for(lambda t: [p for p in t.pictures() if "failed 3" in p[1]])
        # Three failed between two looks, whatever the time between them: 0.1 of a second, or many.
        self.assertTrue([p for p in terminal.pictures() if re.search(r"  failed [0-9.]*[1-9][0-9.]*   oldest", p[2])])
        worker.terminate()
        worker.wait()
        self.good("enqueue", "mail", "y")
        terminal.wait_for(lambda t: [p for p in t.pictures() if re.match(r"per second: in [0-9.]*[1-9]", p[2])])
        terminal.press("q")
        self.assertEqual(terminal.end(), 0)
        self.assertGivenBack(terminal)

    def test_ways_to_end(self):
        for end in (lambda t: t.press("q"), lambda t: t.press("Q"), lambda t: t.press("\x03"), lambda t: t.press("xyzq"),
                    lambda t: t.process.send_signal(signal.SIGTERM), lambda t: t.process.send_signal(signal.SIGHUP),
                    lambda t: t.process.send_signal(signal.SIGINT), lambda t: t.process.send_signal(signal.SIGQUIT)):
            terminal = self.terminal("top", "--refresh", "1h")
            terminal.wait_for(lambda t: t.pictures())
            end(terminal)
            self.assertEqual(terminal.end(), 0)
            self.assertGivenBack(terminal)

    def test_a_blank_looks_at_once(self):
        terminal = self.terminal("top", "--refresh", "1h")
        terminal.wait_for(lambda t: t.pictures())
        self.enqueue("mail", "x")
        terminal.press("x ")
        terminal.wait_for(lambda t: "ready 1" in t.pictures()[-1][1])
        terminal.press("q")
        self.assertEqual(terminal.end(), 0)

    def test_another_size(self):
        for number in range(30):
            self.enqueue(f"queue-with-a-name-{number}", "x")
        terminal = self.terminal("top", "--refresh", "1h", columns=80, rows=24)
        picture = terminal.wait_for(lambda t: t.pictures())[0]
        self.assertEqual(len(picture), 24)
        self.assertIn("FAILED", picture[4])
        for columns, rows in ((40, 10), (200, 50), (20, 3), (1, 1), (120, 24)):
            count = len(terminal.pictures())
            terminal.size(columns, rows)
            picture = terminal.wait_for(lambda t, n=count: t.pictures()[n:])[-1]
            self.assertLessEqual(len(picture), rows)
            self.assertLessEqual(max(map(len, picture)), columns)
            if rows >= 50:
                self.assertIn("SUCCEEDED", picture[4])
                self.assertEqual(sum(line.startswith("queue-with") for line in picture), 30)
            elif rows >= 10:
                shown = sum(line.startswith("queue-with") for line in picture)
                self.assertIn(f"... and {30 - shown} queues more", picture)
        terminal.press("q")
        self.assertEqual(terminal.end(), 0)

    def test_stopped_and_going_on(self):
        terminal = self.terminal("top", "--refresh", "1h")
        terminal.wait_for(lambda t: t.pictures())
        terminal.press("\x1a")
        os.waitid(os.P_PID, terminal.process.pid, os.WSTOPPED | os.WNOWAIT)
        terminal.read(0.1)
        self.assertGivenBack(terminal)
        count = len(terminal.pictures())
        terminal.process.send_signal(signal.SIGCONT)
        terminal.wait_for(lambda t: len(t.pictures()) > count)
        self.assertEqual(terminal.text.count(TAKEN), 2)
        terminal.press("q")
        self.assertEqual(terminal.end(), 0)
        self.assertGivenBack(terminal)

    def test_the_terminal_goes_away(self):
        terminal = self.terminal("top", "--refresh", "100ms")
        terminal.wait_for(lambda t: t.pictures())
        master, terminal.master = terminal.master, os.open("/dev/null", os.O_RDWR)
        os.close(master)
        terminal.process.wait(SECONDS_MAX)

    def test_without_colours(self):
        self.enqueue("mail", "x")
        for env, is_styled in (({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True)):
            terminal = self.terminal("top", env={**self.env, **env})
            terminal.wait_for(lambda t: t.pictures())
            self.assertEqual("\033[7m" in terminal.text, is_styled)
            terminal.press("q")
            terminal.end()

    def test_once(self):
        self.enqueue("mail", "x")
        plain = self.good("top")
        self.assertNotIn("\033", plain)
        self.assertRegex(plain, r"(?m)^mail +open +1 ")
        terminal = self.terminal("top", "--once")
        self.assertEqual(terminal.end(), 0)
        self.assertNotIn("\033", terminal.text)
        dumb = Terminal({**self.env}, "env", "TERM=dumb", self.program, "top")
        self.addCleanup(dumb.close)
        self.assertEqual(dumb.end(), 0)
        self.assertNotIn("\033", dumb.text)
        told = self.json("top")
        self.assertEqual((told["all"]["ready"], told["queues"][0]["queue"], told["workers"]), (1, "mail", []))
        self.assertEqual(set(self.json("queues")["queues"][0]), set(told["queues"][0]))

    def test_more_queues_than_are_shown(self):
        lines = "".join(json.dumps({"payload": 1, "queue": f"q{n:05}"}) + "\n" for n in range(1203))
        self.good("enqueue", "x", "--ndjson", input=lines)
        text = self.good("top")
        self.assertIn("queues 1203 ", text)
        self.assertIn("ready 1203 ", text)
        self.assertIn("... and 203 queues more", text)

    def test_a_store_that_cannot_be_reached(self):
        self.refused(UNAVAILABLE, "", "top", "--store", "postgres:///x?host=/none/such")
        self.refused(USAGE, "--refresh must be at least 100ms", "top", "--refresh", "99ms")
        self.refused(CONFIG, "PAWL_REFRESH", "top", env={**self.env, "PAWL_REFRESH": "x"})

    def test_secrets_are_hidden(self):
        terminal = self.terminal("top", "--store", "memory:")
        terminal.wait_for(lambda t: t.pictures())
        terminal.press("q")
        self.assertEqual(terminal.end(), 0)
        self.assertIn("memory:", terminal.text)


class ProgressTest(Store, unittest.TestCase):
    """Long work shows how far it is on a terminal, takes that away at its end, and is quiet in a pipe."""

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.env = {**CLEAN, "PAWL_STORE": f"sqlite:{self.folder}/pawl.db"}
        self.make_tables()
        self.lines = self.folder / "lines"
        self.lines.write_text("".join(json.dumps({"payload": n}) + "\n" for n in range(3000)))

    def check(self, word, *words):
        terminal = Terminal(self.env, self.program, *words, stdout=subprocess.DEVNULL)
        self.addCleanup(terminal.close)
        self.assertEqual(terminal.end(), 0)
        self.assertRegex(terminal.text, rf"\r{word}: \d+")
        self.assertLess(terminal.text.count(word), 1000)  # not one for each job
        self.assertIn("\r\033[K", terminal.text)
        return terminal.text

    def test_on_a_terminal(self):
        self.check("enqueued", "enqueue", "mail", "--ndjson", "--file", str(self.lines))
        self.check("verified", "verify")
        self.check("cancelled", "cancel", "--all")
        self.check("redriven", "redrive", "--all")
        self.check("cancelled", "cancel", "--all")
        self.check("discarded", "discard", "--queue", "mail", "--limit", "100")
        self.good("queues", "set", "mail", "--keep-failed", "1ms")
        self.check("pruned", "prune")
        self.assertEqual(self.ids(), [])

    def test_rows_on_the_same_terminal_are_enough(self):
        terminal = Terminal(self.env, self.program, "enqueue", "mail", "--ndjson", "--file", str(self.lines))
        self.addCleanup(terminal.close)
        self.assertEqual(terminal.end(), 0)
        self.assertNotIn("enqueued:", terminal.text)
        self.assertEqual(len(terminal.text.split()), 3000)

    def test_in_a_pipe(self):
        for words in (("enqueue", "mail", "--ndjson", "--file", self.lines), ("verify",), ("cancel", "--all"),
                      ("redrive", "--all"), ("prune",)):
            self.assertEqual(self.pawl(*words).stderr, "")


if __name__ == "__main__":
    tap.main()
