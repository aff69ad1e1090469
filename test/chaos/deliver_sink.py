# SPDX-License-Identifier: Apache-2.0
"""deliver_sink.py - what the deliveries of the chaos test go to, and what stands between deliverers and PostgreSQL.

The sink is the proxy that each deliverer is told to use, at a port of its own: so it knows whose request it is. It has each request
with the time between which and which it came: `lo`, when nothing of it was there yet, and `hi`, when it was read. Whoever reads late,
because the machine is busy, cannot tell what came first; the rules take only those for late of which it is certain.
"""

import heapq
import os
import random
import selectors
import socket
import struct
import threading
import time

TURN_SECONDS = 0.05
OK = 200
GONE = 0  # the connection ends without an answer


class Connection:
    def __init__(self, sock, owner, lo):
        self.sock = sock
        self.owner = owner
        self.lo = lo  # the first request may have come with the connection
        self.data = b""
        self.is_open = True


class Sink:
    """A thread; `requests` is what has come."""

    def __init__(self, seed, lease_seconds):
        self.random = random.Random(seed)
        self.lease_seconds = lease_seconds
        self.is_calm = False  # from now on every answer is good, and at once
        self.first_fails = False  # the first request of each event fails, whatever else
        self.is_holding = False  # nothing is answered
        self.held = []
        self.requests = []
        self.seen = set()
        self.timers = []
        self.count = 0
        self.selector = selectors.DefaultSelector()
        self.is_ending = False
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def listen(self, owner):
        """A port for a deliverer, which says who it is by `owner`."""
        listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        listener.setblocking(False)
        self.selector.register(listener, selectors.EVENT_READ, owner)
        return listener.getsockname()[1]

    def stop(self):
        self.is_ending = True
        self.thread.join()

    def run(self):
        before = now = time.monotonic()
        while not self.is_ending:
            now, before = time.monotonic(), now
            for key, _ in self.selector.select(TURN_SECONDS):
                if isinstance(key.data, Connection):
                    self.read(key.data, before)
                else:
                    self.accept(key.fileobj, key.data, before)
            while self.held and not self.is_holding:
                self.answer(*self.held.pop(), OK)
            while self.timers and self.timers[0][0] <= time.monotonic():
                _, _, connection, request, status = heapq.heappop(self.timers)
                self.answer(connection, request, status)

    def accept(self, listener, owner, before):
        sock, _ = listener.accept()
        sock.setblocking(False)
        self.selector.register(sock, selectors.EVENT_READ, Connection(sock, owner, before))

    def close(self, connection):
        if connection.is_open:
            connection.is_open = False
            self.selector.unregister(connection.sock)
            connection.sock.close()

    def read(self, connection, before):
        try:
            part = connection.sock.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            part = b""
        if not part:
            self.close(connection)
            return
        connection.data += part
        head, found, rest = connection.data.partition(b"\r\n\r\n")
        if not found:
            return
        line, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.strip().lower(): value.strip() for name, _, value in (h.partition(":") for h in lines)}
        length = int(headers["content-length"])
        if len(rest) < length:
            return
        lo = connection.lo if connection.lo is not None else before
        connection.data, connection.lo = rest[length:], None
        request = {"owner": connection.owner, "endpoint": line.split(" ")[1].rpartition("/")[2], "id": headers["webhook-id"],
                   "time": headers["webhook-timestamp"], "signature": headers["webhook-signature"], "body": rest[:length], "lo": lo,
                   "hi": time.monotonic(), "status": None, "answered": None}
        self.requests.append(request)
        self.decide(connection, request)

    def decide(self, connection, request):
        """How an endpoint answers: mostly well, sometimes after longer than a lease, sometimes not at all."""
        if self.is_holding:
            self.held.append((connection, request))
            return
        what = (request["endpoint"], request["id"])
        is_first = what not in self.seen
        self.seen.add(what)
        chance = self.random.random()
        status, delay = OK, 0
        if self.first_fails:
            status = 500 if is_first else OK
        elif not self.is_calm:
            status = OK if chance < 0.85 else 500 if chance < 0.93 else GONE
            delay = self.random.uniform(0, 0.5) if chance > 0.5 else 0
            delay = self.random.uniform(1, 2) * self.lease_seconds if chance < 0.05 else delay
        self.count += 1
        heapq.heappush(self.timers, (time.monotonic() + delay, self.count, connection, request, status))

    def answer(self, connection, request, status):
        if not connection.is_open:
            return
        if status == GONE:
            connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close(connection)
            return
        # Before it is said: whoever hears it does so later.
        request["status"], request["answered"] = status, time.monotonic()
        try:
            connection.sock.sendall(f"HTTP/1.1 {status} Told\r\nContent-Length: 0\r\n\r\n".encode())
        except OSError:
            self.close(connection)


class Gap:
    """A network between deliverers and the server's socket, which breaks: nothing goes through, or all connections end."""

    def __init__(self, folder, server_socket):
        self.server_socket = str(server_socket)
        self.path = os.path.join(folder, ".s.PGSQL.5432")
        self.is_hole = False
        self.pairs = set()
        self.lock = threading.Lock()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        os.chmod(self.path, 0o777)
        self.listener.listen(64)
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            far = socket.socket(socket.AF_UNIX)
            try:
                far.connect(self.server_socket)
            except OSError:
                near.close()
                continue
            with self.lock:
                self.pairs.add((near, far))
            for source, target in ((near, far), (far, near)):
                threading.Thread(target=self.pump, args=(source, target), daemon=True).start()

    def pump(self, source, target):
        try:
            while part := source.recv(1 << 16):
                while self.is_hole:
                    time.sleep(0.02)
                target.sendall(part)
        except OSError:
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def cut(self):
        with self.lock:
            pairs, self.pairs = self.pairs, set()
        for pair in pairs:
            for end in pair:
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def stop(self):
        self.is_hole = False
        self.listener.close()
        self.cut()
