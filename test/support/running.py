# SPDX-License-Identifier: Apache-2.0
"""running.py - `pawl work` and `pawl reap --watch` as processes that tests start, look at, and end."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import time

WAIT_SECONDS = 60
CLEAN = {k: v for k, v in os.environ.items() if not k.startswith(("PG", "PAWL", "DATABASE_URL", "XDG"))}


def wait_for(what, seconds=WAIT_SECONDS):
    """Wait until what() is true, and give it. Fails where it does not come."""
    until = time.monotonic() + seconds
    while True:
        found = what()
        if found:
            return found
        if time.monotonic() > until:
            raise AssertionError(f"waited in vain for {what}")
        time.sleep(0.02)


FIELD = re.compile(r'([a-z_]+)=("(?:[^"\\]|\\.)*"|[^\s"=]*)(?: |$)')


def fields(line):
    """The fields of a logfmt line. Fails where it is none."""
    found = {}
    at = 0
    while at < len(line):
        field = FIELD.match(line, at)
        assert field, f"not logfmt: {line!r}"
        name, value = field.groups()
        found[name] = json.loads(value) if value.startswith('"') else value
        at = field.end()
    return found


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path):
        super().__init__("localhost", timeout=WAIT_SECONDS)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(WAIT_SECONDS)
        self.sock.connect(self.path)


class Running:
    """A process; its standard error goes to a file, unless `stderr` says otherwise."""

    def __init__(self, *words, env=None, **more):
        self.log_file = tempfile.NamedTemporaryFile(prefix="pawl-log-")
        self.out_file = tempfile.NamedTemporaryFile(prefix="pawl-out-")
        self.listens_at = None
        more.setdefault("stderr", self.log_file)
        self.process = subprocess.Popen([str(word) for word in words], env=env or CLEAN, stdin=subprocess.DEVNULL,
                                        stdout=self.out_file, **more)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        if self.process.stderr:
            self.process.stderr.close()
        self.log_file.close()
        self.out_file.close()

    def log(self):
        """What it has logged so far: whole lines."""
        with open(self.log_file.name, encoding="utf-8") as file:
            return file.read().rpartition("\n")[0].splitlines()

    def out(self):
        with open(self.out_file.name, encoding="utf-8") as file:
            return file.read()

    def events(self, event=None):
        """Its events, of one id or all, in either format."""
        rows = [json.loads(line) if line.startswith("{") else fields(line) for line in self.log()]
        return [row for row in rows if event in (None, row.get("event"))]

    def wait_event(self, event, **wanted):
        def found():
            if self.process.poll() is not None:
                raise AssertionError(f"it has ended with {self.process.returncode}: {self.log()}")
            return [e for e in self.events(event) if all(str(e.get(k)) == v for k, v in wanted.items())]
        return wait_for(found)[0]

    def end(self, number=signal.SIGTERM):
        """Ask it to end, and give its exit code."""
        self.process.send_signal(number)
        return self.process.wait(WAIT_SECONDS)

    # ---- metrics

    def address(self):
        """Where it serves metrics: as its log says, unless somebody set it."""
        self.listens_at = self.listens_at or self.wait_event("METRICS-UP")["text"]
        return self.listens_at

    def listens(self, path):
        """Its metrics are to be had there: its log may not be read. The file is there a moment before anybody listens."""
        def connects():
            connection = self.connection()
            try:
                connection.connect()
            except (ConnectionRefusedError, FileNotFoundError):
                return False
            finally:
                connection.close()
            return True
        self.listens_at = f"unix:{path}"
        wait_for(connects)

    def connection(self):
        address = self.address()
        if address.startswith("unix:"):
            return UnixConnection(address.removeprefix("unix:"))
        host, port = re.fullmatch(r"\[?([^\]]*)\]?:(\d+)", address).groups()
        return http.client.HTTPConnection(host, int(port), timeout=WAIT_SECONDS)

    def ask(self, method="GET", path="/metrics", body=None):
        """(status, headers, text) of one request."""
        connection = self.connection()
        try:
            connection.request(method, path, body=body)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read().decode()
        finally:
            connection.close()

    def metrics(self):
        status, _, text = self.ask()
        assert status == 200, (status, text)
        return text

    def figure(self, name):
        """The value of a series, written as in the text; None where it is not there."""
        for line in self.metrics().splitlines():
            if line.startswith(name + " "):
                return float(line.rpartition(" ")[2])
        return None

    def wait_figure(self, name, least):
        return wait_for(lambda: (self.figure(name) or 0) >= least)
