#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""serve_fuzz_test.py - spoilt requests over the wire, against a real server; under the sanitizers in `make test`.

PAWL_FUZZ_SEED gives the same requests again, PAWL_FUZZ_SECONDS more of them.
"""

import collections
import concurrent.futures
import os
import random
import re
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TOP / "test" / "support"))
import tap  # noqa: E402
from running import WAIT_SECONDS  # noqa: E402
from serving import Server  # noqa: E402

PAWL = sys.argv[1]
SECONDS = float(os.environ.get("PAWL_FUZZ_SECONDS", "6"))
CLIENTS = 16
REQUESTS_MIN = 20  # of each of them, whatever the machine does besides
SEED = int(os.environ.get("PAWL_FUZZ_SEED", random.SystemRandom().randrange(1 << 32)))

ID = b"01890a5d-ac96-774b-bcce-b302099a8057"
# What stands at such places in the requests of people who mean no good.
PIECES = [
    b"\r\n", b"\n", b"\r", b"\0", b" ", b"\t", b":", b";", b",", b"%", b"%00", b"%zz", b"%2e%2e%2f", b"/../", b"?", b"#", b"&",
    b"{", b"}", b"[", b"]", b'"', b"\\", b"\\u0000", b"\\ud800", b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"1e999", b"-0", b"0x10",
    b"9223372036854775808", b"-9223372036854775809", b"18446744073709551616", b"4294967296", b"[" * 200, b'{"a":' * 100,
    b"Content-Length: 5\r\n", b"Content-Length: 0\r\n", b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: gzip\r\n",
    b"Connection: close\r\n", b"Expect: 100-continue\r\n", b"Upgrade: h2c\r\n", b"Host: evil\r\n", b" folded\r\n", b"A" * 5000,
    b"0\r\n\r\n", b"5\r\nabcde\r\n", b"ffffffffffffffff\r\n", b"1;a=b\r\nx\r\n", b"HTTP/1.0", b"HTTP/9.9", b"GET / HTTP/1.1\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"30s", b"never", b"null", b"true", b"\xef\xbb\xbf", b"Authorization: Bearer pawl_0\r\n",
]
BODIES = [
    b'{"worker": "w", "queues": [{"queue": "q", "lease": "20s"}], "max": 3}',
    b'{"jobs": [{"queue": "q", "payload": {"a": [1, 2.5, null]}, "priority": 3, "headers": {"k": "v"}}]}',
    b'{"worker": "w", "leases": [{"job": "%s", "token": "%s", "version": 1, "action": "succeed"}]}' % (ID, b"0" * 32),
    b'{"worker": "w", "token": "%s", "version": 1, "action": "retry", "delay": "1s"}' % (b"0" * 32),
    b'{"queue": "q", "payload_base64": "AAEC"}\n{"queue": "q"}\n', b'{"filter": {"queue": "q", "state": "Failed"}, "max": 10}',
    b'{"offset": 1, "owner": "a", "lease": "60s"}', b'{"max_retries": 3, "keep_failed_ms": "forever"}', b"{}", b"",
]


class Spoiler:
    """Requests that are nearly good, from a seed."""

    def __init__(self, seed, routes):
        self.random = random.Random(seed)
        self.routes = routes

    def good(self):
        method, path, body_kind = self.random.choice(self.routes)
        path = re.sub(rb"\{id\}", ID, path)
        path = re.sub(rb"\{\w+\}", self.random.choice([b"q", b"other", b"a%2Fb"]), path)
        query = self.random.choice([b"", b"", b"?limit=5", b"?queue=q&state=Ready", b"?delay=5s&dedupe_key=k", b"?after=" + ID])
        body = self.random.choice(BODIES) if body_kind != b"-" else b""
        kind = {b"json": b"application/json", b"lines": b"application/x-ndjson"}.get(body_kind, b"text/plain")
        head = b"%s %s%s HTTP/1.1\r\nHost: localhost\r\nContent-Type: %s\r\n" % (method, path, query, kind)
        if body and self.random.random() < 0.4:
            cut = self.random.randrange(len(body) + 1)
            chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:cut], body[cut:]) if part)
            return head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"
        return head + b"Content-Length: %d\r\n\r\n" % len(body) + body

    def spoil(self, data):
        at = self.random.randrange(len(data) + 1)
        to = min(len(data), at + self.random.choice([0, 1, 1, 2, 8, 40]))
        way = self.random.randrange(7)
        if way == 0:  # something else in its place
            return data[:at] + self.random.choice(PIECES) + data[to:]
        if way == 1:
            return data[:at] + self.random.choice(PIECES) + data[at:]
        if way == 2:
            return data[:at] + data[to:]
        if way == 3 and at < len(data):
            return data[:at] + bytes([data[at] ^ 1 << self.random.randrange(8)]) + data[at + 1:]
        if way == 4:  # a line twice, or elsewhere
            lines = data.split(b"\r\n")
            lines.insert(self.random.randrange(len(lines) + 1), self.random.choice(lines))
            return b"\r\n".join(lines)
        if way == 5:  # another one behind it
            return data + self.good()
        return data[:at] + self.random.randbytes(self.random.randrange(64)) + data[at:]

    def next(self):
        data = self.good()
        for _ in range(self.random.choice([0, 1, 1, 1, 2, 3, 6])):
            data = self.spoil(data)
        return data


class Wire(unittest.TestCase):
    def exchange(self, server, data, cut):
        """Send it, in two parts; what comes back until the connection ends, or a stream has begun."""
        got = b""
        with socket.create_connection(server.host_port(), timeout=WAIT_SECONDS) as sock:
            try:
                sock.sendall(data[:cut])
                sock.sendall(data[cut:])
                sock.shutdown(socket.SHUT_WR)
                while b"text/event-stream" not in got and (piece := sock.recv(65536)):  # which would go on
                    got += piece
            except TimeoutError:
                raise
            except OSError:  # it has ended already
                pass
        return got

    def fuzz(self, server, spoiler, until):
        """One client of many. Gives the statuses it saw; raises where something is wrong."""
        seen = collections.Counter()
        while time.monotonic() < until or sum(seen.values()) < REQUESTS_MIN:
            data = spoiler.next()
            where = f"seed {SEED}: {data!r}"
            try:
                answer = self.exchange(server, data, spoiler.random.randrange(len(data) + 1))
            except OSError as problem:
                raise AssertionError(f"{problem}: {where}: {server.log()[-20:]}") from problem
            self.assertRegex(answer, rb"^(HTTP/1\.[01] [1-5]\d\d |$)", where)
            statuses = re.findall(rb"HTTP/1\.1 (\d\d\d) ", answer) or [b"cut"]
            self.assertNotIn(b"500", statuses, where)
            self.assertIsNone(server.process.poll(), where)
            seen.update(statuses)
        return seen

    def test_every_request_is_answered_or_cut_off(self):
        rows = subprocess.run([PAWL, "serve", "--routes"], capture_output=True, check=True).stdout.splitlines()
        routes = [(row.split()[1], row.split()[2], row.split()[5]) for row in rows]
        # Many of them end only by being cut off: the bounds are small, and the clients are many.
        bounds = ("--connections-per-address", "0", "--head-timeout", "300ms", "--body-timeout", "300ms", "--idle-timeout", "1s")
        with tempfile.TemporaryDirectory(prefix="pawl-fuzz-") as folder, Server(PAWL, folder, *bounds) as server:
            server.up()
            until = time.monotonic() + SECONDS
            with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
                running = [pool.submit(self.fuzz, server, Spoiler(SEED + i, routes), until) for i in range(CLIENTS)]
            seen = sum((client.result() for client in running), collections.Counter())
            self.assertEqual(server.call("GET", "/livez")[0], 200)
            self.assertEqual(server.end(), 0, server.log()[-20:])
        print(f"# seed {SEED}: " + ", ".join(f"{k.decode()}: {v}" for k, v in sorted(seen.items())))
        self.assertIn(b"200", seen)  # else the generator spoils all of them
        self.assertIn(b"400", seen)


if __name__ == "__main__":
    tap.main()
