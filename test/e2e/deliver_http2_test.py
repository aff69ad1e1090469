#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""deliver_http2_test.py - `pawl deliver` and endpoints that speak HTTP/2, among them those that say farewell (GOAWAY).

Usage: deliver_http2_test.py PATH-OF-PAWL
"""

import json
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import deliver_test  # noqa: E402  (takes the program off the words)
import tap  # noqa: E402
from commands import CLEAN  # noqa: E402
from running import wait_for  # noqa: E402

SERVER = deliver_test.TOP / "test" / "support" / "http2_server.js"


class Http2Server:
    """The server as a process."""

    def __init__(self, log, pem, key):
        self.log = log
        with open(log, "wb") as out:
            self.process = subprocess.Popen(["node", SERVER, pem, key], stdin=subprocess.PIPE, stdout=out)
        self.port = wait_for(lambda: self.lines() and int(self.lines()[0]))

    def lines(self):
        return self.log.read_text(encoding="utf-8").rpartition("\n")[0].splitlines()

    @property
    def requests(self):
        return [json.loads(line) for line in self.lines()[1:]]

    def of(self, path):
        return [r for r in self.requests if r["path"] == path]

    def url(self, path):
        return f"https://127.0.0.1:{self.port}{path}"

    def release(self):
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def stop(self):
        self.process.stdin.close()
        self.process.wait()


class Http2Test(deliver_test.Base, unittest.TestCase):
    certificate = deliver_test.SqliteTest.certificate

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.env = {**CLEAN, "PAWL_STORE": f"sqlite:{self.folder}/pawl.db", "PAWL_WEBHOOK_CA": f"{self.folder}/ca.pem"}

    def serve(self, *names):
        """A server for each, for endpoints of one server share a connection; and an endpoint that is told nothing but its name."""
        pem, key = self.certificate("good", "IP:127.0.0.1", 2)
        servers = {}
        for name in names:
            servers[name] = Http2Server(Path(self.folder) / f"{name}.log", pem, key)
            self.addCleanup(servers[name].stop)
        self.env = {**self.env, **self.allowed(*servers.values())}
        return servers

    def deliver_one_by_one(self, servers, count):
        """So many events, each when the one before it is over; gives how often requests were sent, as the log says."""
        with self.deliver("--verbose") as run:
            for number in range(1, count + 1):
                self.publish()
                for name in servers:
                    wait_for(lambda: len([j for j in self.jobs(name) if j["state"] in ("Succeeded", "Failed")]) == number)
            size = int(Path(f"/proc/{run.process.pid}/statm").read_text().split()[1]) * 4096
            self.assertEqual(run.end(), 0)
            told = run.events("DELIVERY")
        self.assertLess(size, 256 << 20)
        return {name: sum(int(e["sends"]) for e in told if e["queue"] == f"webhook/{name}") for name in servers}

    def test_a_connection_is_used_again(self):
        servers = self.serve("ok")
        secret = self.add("ok", "/ok", server=servers["ok"])
        self.assertEqual(self.deliver_one_by_one(servers, 3), {"ok": 3})
        requests = servers["ok"].requests
        self.assertEqual([(r["connection"], r["nth"]) for r in requests], [(1, 1), (1, 2), (1, 3)])
        for request in requests:
            self.assertEqual(request["headers"][":method"], "POST")
            self.assertEqual(deliver_test.signatures(request), [deliver_test.signed(secret, request)])

    def test_farewells(self):
        """GOAWAY after an answer, GOAWAY instead of one, and a request that is refused: each event arrives, and all sends count."""
        servers = self.serve("leave", "late", "refuse")
        for name, server in servers.items():
            self.add(name, f"/{name}", server=server)
        sends = self.deliver_one_by_one(servers, 3)
        for name, server in servers.items():
            self.assertEqual({j["state"] for j in self.jobs(name)}, {"Succeeded"}, name)
            self.assertEqual(len({r["headers"]["webhook-id"] for r in server.requests}), 3, name)
            self.assertEqual(sends[name], len(server.requests), name)
        self.assertEqual([r["connection"] for r in servers["leave"].requests], [1, 2, 3])  # nothing was sent twice
        self.assertGreater(len(servers["late"].requests), 3)
        self.assertGreater(len(servers["refuse"].requests), 3)

    def test_a_farewell_to_many(self):
        """What is under way on the connection ends well on it."""
        servers = self.serve("hang")
        self.add("hang", "/hang", "--timeout", "5m", server=servers["hang"])
        with self.deliver():
            self.publish()
            wait_for(lambda: servers["hang"].requests)  # the others find a connection
            for _ in range(3):
                self.publish()
            wait_for(lambda: len(servers["hang"].requests) == 4)
            servers["hang"].release()
            self.wait_states("hang", *["Succeeded"] * 4)
        self.assertEqual({r["connection"] for r in servers["hang"].requests}, {1})
        self.assertEqual(len(servers["hang"].requests), 4)

    def test_hostile_endpoints(self):
        paths = {"calm": {"RESET"}, "broken": {"RESET"}, "broken-body": {None}, "endless": {None}, "informing": {"TOO-LARGE"},
                 "many-headers": {"RESET", "TOO-LARGE"}}  # the server may find that it is too much before libcurl does
        servers = self.serve(*paths)
        for name, server in servers.items():
            self.add(name, f"/{name}", "--max-retries", "0", "--timeout", "2m", server=server)
        sends = self.deliver_one_by_one(servers, 2)
        for name, errors in paths.items():
            for job in self.jobs(name):
                (attempt,) = self.json("attempts", job["id"])["attempts"]
                self.assertIn(attempt.get("error_code"), errors, name)
            self.assertEqual(sends[name], len(servers[name].requests), name)


if __name__ == "__main__":
    tap.main()
