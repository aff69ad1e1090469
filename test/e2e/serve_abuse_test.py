#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""serve_abuse_test.py - clients of `pawl serve` that ask for much, or do not stay; and commands that change its tokens at once."""

import base64
import fcntl
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TOP / "test" / "support"))
import tap  # noqa: E402
from running import CLEAN, WAIT_SECONDS, wait_for  # noqa: E402
from serving import Server  # noqa: E402

PAWL = sys.argv[1]
HEAD = b"POST /v1/jobs/stream HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="pawl-abuse-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def server(self, *options):
        server = Server(PAWL, self.folder, *options)
        self.addCleanup(server.__exit__)
        return server.up()


class Streams(Case):
    def test_what_was_done_of_a_long_one_is_told(self):
        """The bound on what is read in vain begins where the answer is there, however much came before."""
        server = self.server()
        big = json.dumps({"queue": "q", "payload": "x" * 1000000}).encode() + b"\n"
        pieces = [big] * 14 + [b"\n" * 1200000] + [b" " * 100000] * 2
        status, _, got = server.call("POST", "/v1/jobs/stream", iter(pieces), {"Content-Type": "application/x-ndjson"})
        rows = [json.loads(line) for line in got.splitlines()]
        self.assertEqual((status, [row["verdict"] for row in rows]), (200, ["OK"] * 14 + ["FULL"]))
        self.assertEqual(server.stats()["ready"], 14)

    def seconds_for_single_bytes(self, server, before):
        """Of the server's time: how much a line takes whose last bytes come one by one, behind so many others."""
        def used():
            with open(f"/proc/{server.process.pid}/stat", encoding="ascii") as file:
                words = file.read().rpartition(")")[2].split()
            return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
        with socket.create_connection(server.host_port(), timeout=WAIT_SECONDS) as sock:
            sock.sendall(HEAD + b"%x\r\n%s\r\n" % (before, b" " * before))
            at = used()
            sock.sendall(b"1\r\n \r\n" * 40000 + b"1\r\n{\r\n0\r\n\r\n")
            got = b""
            while piece := sock.recv(65536):
                got += piece
        self.assertIn(b'"verdict":"INVALID"', got)
        return used() - at

    def test_single_bytes_cost_no_more_in_a_long_line(self):
        server = self.server("--head-timeout", "60s", "--body-timeout", "60s")
        short = self.seconds_for_single_bytes(server, 1)
        self.assertLess(self.seconds_for_single_bytes(server, 1500000), 5 * short + 1)


class Claims(Case):
    def test_what_is_mine_comes_in_pages_of_bytes(self):
        server = self.server()
        payload = base64.b64encode(b"x" * (1 << 19)).decode()
        for _ in range(2):
            server.good("POST", "/v1/jobs", {"jobs": [{"queue": "q", "payload_base64": payload}] * 20})
        held = set()
        while jobs := server.claim(max=1000):
            held |= {job["id"] for job in jobs}
        seen = []
        pages = 0
        ask = {"worker": "w", "limit": 1000}
        while "after" not in ask or ask["after"]:
            page = server.good("POST", "/v1/mine", ask)
            self.assertLess(sum(job["payload_len"] for job in page["jobs"]), 32 << 20)
            seen += [job["id"] for job in page["jobs"]]
            ask["after"] = page["next"]
            pages += 1
        self.assertEqual((len(seen), set(seen), pages), (40, held, 2))

    def test_who_goes_before_the_answer_leaves_nothing_behind(self):
        """The client's end is there before the server looks: it must not take the answer for sent."""
        server = self.server()
        server.good("POST", "/v1/jobs", {"jobs": [{"queue": "q", "payload": i} for i in range(10)]})
        body = json.dumps({"worker": "gone", "queues": [{"queue": "q", "lease": "1h"}]})
        ask = f"POST /v1/claim HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
        server.process.send_signal(signal.SIGSTOP)
        try:
            for _ in range(10):
                with socket.create_connection(server.host_port(), timeout=WAIT_SECONDS) as sock:
                    sock.sendall(ask)
        finally:
            server.process.send_signal(signal.SIGCONT)
        wait_for(lambda: server.figure('pawl_http_connections') == 1)
        wait_for(lambda: server.stats()["ready"] == 10)


class Tokens(Case):
    def token(self, *words):
        return subprocess.Popen([PAWL, "token", *words, "--tokens", f"{self.folder}/tokens"], env=CLEAN, stdout=subprocess.DEVNULL)

    def names(self):
        lines = Path(self.folder, "tokens").read_text(encoding="utf-8").splitlines()
        return {line.split()[0] for line in lines if not line.startswith("#")}

    def test_those_who_change_them_at_once_undo_nothing(self):
        """A token that was removed must not come back with one that is added at the same time: each waits for the other."""
        self.assertEqual(self.token("add", "leaked", "--scopes", "read").wait(WAIT_SECONDS), 0)
        folder = os.open(self.folder, os.O_RDONLY)
        self.addCleanup(os.close, folder)
        fcntl.flock(folder, fcntl.LOCK_EX)
        adding = self.token("add", "other", "--scopes", "read")
        wait_for(lambda: adding.poll() is not None or f" {adding.pid} " in Path("/proc/locks").read_text(encoding="ascii"))
        Path(self.folder, "tokens").write_text("", encoding="utf-8")
        fcntl.flock(folder, fcntl.LOCK_UN)
        self.assertEqual(adding.wait(WAIT_SECONDS), 0)
        self.assertEqual(self.names(), {"other"})

    def test_who_may_read_them_may_go_on(self):
        """A server under another user must see that a token was removed."""
        self.assertEqual(self.token("add", "a", "--scopes", "read").wait(WAIT_SECONDS), 0)
        path = Path(self.folder, "tokens")
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)
        path.chmod(0o640)
        if os.getuid() == 0:
            os.chown(path, 12345, 23456)
        before = path.stat()
        self.assertEqual(self.token("add", "b", "--scopes", "read").wait(WAIT_SECONDS), 0)
        after = path.stat()
        self.assertEqual((after.st_mode, after.st_uid, after.st_gid), (before.st_mode, before.st_uid, before.st_gid))

    def test_names_of_queues_are_not_told_to_others(self):
        made = {}
        for name, queues in (("a", "*"), ("b", "open-*")):
            made[name] = {"Authorization": "Bearer " + subprocess.run(
                [PAWL, "token", "add", name, "--scopes", "produce,read,admin", "--queues", queues, "--tokens", f"{self.folder}/tokens"],
                env=CLEAN, capture_output=True, text=True, check=True).stdout.strip()}
        server = self.server("--tokens", f"{self.folder}/tokens")
        job = server.good("POST", "/v1/queues/hidden/jobs", "x", made["a"], status=201)["id"]
        for method, path in (("GET", ""), ("GET", "/payload"), ("GET", "/attempts"), ("POST", "/cancel"), ("POST", "/discard")):
            status, _, got = server.call(method, f"/v1/jobs/{job}{path}", None, made["b"])
            self.assertEqual(status, 403, got)
            self.assertNotIn(b"hidden", got)

    def test_pages_name_nothing_of_others(self):
        """Neither in a row nor in `next`, and each row comes once."""
        mine = {}
        for name, queues in (("a", "*"), ("b", "open-*,webhook/open-*")):
            mine[name] = {"Authorization": "Bearer " + subprocess.run(
                [PAWL, "token", "add", name, "--scopes", "produce,read,admin", "--queues", queues, "--tokens", f"{self.folder}/tokens"],
                env=CLEAN, capture_output=True, text=True, check=True).stdout.strip()}
        server = self.server("--tokens", f"{self.folder}/tokens", "--webhook-http", "--webhook-allow", "127.0.0.1")
        names = [f"{kind}{i}" for i in range(5) for kind in ("a-hidden-", "open-", "z-hidden-")]
        server.good("POST", "/v1/jobs", {"jobs": [{"queue": name} for name in names]}, mine["a"])
        for name in names:
            server.good("POST", f"/v1/endpoints/{name}", {"url": "http://127.0.0.1/", "topics": "none"}, mine["a"], status=201)
        for path, title, member in (("/v1/queues", "queues", "queue"), ("/v1/stats", "queues", "queue"),
                                    ("/v1/endpoints", "endpoints", "name")):
            for limit in (1, 2, 5, 100):
                got, after = [], ""
                while after is not None:
                    status, _, body = server.call("GET", f"{path}?limit={limit}{after}", None, mine["b"])
                    self.assertEqual(status, 200, body)
                    self.assertNotIn(b"hidden", body)
                    page = json.loads(body)
                    got += [row[member] for row in page[title] if not row[member].startswith("webhook/")]
                    after = page["next"] and f"&after={page['next'].replace('/', '%2F')}"
                self.assertEqual(got, [f"open-{i}" for i in range(5)], (path, limit))
        for path in ("/v1/queues", "/v1/stats"):  # all of it, for whoever may see it
            rows = server.good("GET", path, None, mine["a"])["queues"]
            self.assertEqual([row["queue"] for row in rows if "/" not in row["queue"]], sorted(names))

    def test_who_listens_hears_no_more_when_its_token_is_removed(self):
        done = subprocess.run([PAWL, "token", "add", "a", "--scopes", "read", "--tokens", f"{self.folder}/tokens"],
                              env=CLEAN, capture_output=True, text=True, check=True)
        self.assertEqual(self.token("add", "b", "--scopes", "read").wait(WAIT_SECONDS), 0)
        server = self.server("--tokens", f"{self.folder}/tokens")
        with socket.create_connection(server.host_port(), timeout=WAIT_SECONDS) as sock:
            sock.sendall(f"GET /v1/changes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {done.stdout.strip()}\r\n\r\n".encode())
            got = b""
            while b"event: hello" not in got:
                got += sock.recv(65536)
            self.assertEqual(self.token("remove", "a").wait(WAIT_SECONDS), 0)
            while piece := sock.recv(65536):
                got += piece
                self.assertLess(got.count(b":\n\n"), 4)  # heartbeats: a minute
                if got.endswith(b"0\r\n\r\n"):
                    break
        self.assertTrue(got.endswith(b"0\r\n\r\n"), got)


if __name__ == "__main__":
    tap.main()
