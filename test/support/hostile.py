# SPDX-License-Identifier: Apache-2.0
"""hostile.py - an HTTP server that does what endpoints of webhooks do, good ones and bad ones. The path of a request says how it is
answered; each request that has come is told as a line of JSON.

As a program (hostile.py LOG [CERT KEY]) it prints its port, and serves until its standard input ends.
"""

import asyncio
import base64
import json
import os
import sys
import threading
import time
import zlib

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Server:
    """Serves on 127.0.0.1, in a thread of its own; `requests` is what has come."""

    def __init__(self, log=None, ssl_context=None):
        self.requests = []
        self.connections = 0
        self.open = 0
        self.most_open = 0
        self.serving = 0  # requests that are not answered yet
        self.most_serving = 0
        self.released = False  # what hangs may go on
        self.waiting = 0  # requests that hang so
        self.log = log
        self.ssl_context = ssl_context
        self.counts = {}
        self.port = None
        self.loop = asyncio.new_event_loop()
        self.ready = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()
        self.ready.wait()

    def run(self):
        asyncio.set_event_loop(self.loop)
        server = self.loop.run_until_complete(
            asyncio.start_server(self.serve, "127.0.0.1", 0, ssl=self.ssl_context, backlog=8192, limit=1 << 24))
        self.port = server.sockets[0].getsockname()[1]
        self.ready.set()
        self.loop.run_forever()
        server.close()
        left = asyncio.all_tasks(self.loop)
        for task in left:
            task.cancel()
        self.loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        self.loop.close()

    def stop(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()

    def url(self, path, host="127.0.0.1"):
        return f"{'https' if self.ssl_context else 'http'}://{host}:{self.port}{path}"

    def of(self, path):
        """The requests for a path."""
        return [r for r in list(self.requests) if r["path"] == path]

    # ---- one connection

    async def serve(self, reader, writer):
        self.connections += 1
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        number = self.connections
        served = 0
        try:
            while True:
                request = await self.read(reader)
                if request is None:
                    break
                served += 1
                request.update(connection=number, nth=served)
                self.requests.append(request)
                if self.log:
                    self.log.write(json.dumps(request) + "\n")
                    self.log.flush()
                self.serving += 1
                self.most_serving = max(self.most_serving, self.serving)
                try:
                    goes_on = await self.answer(request, reader, writer)
                finally:
                    self.serving -= 1
                if not goes_on:
                    break
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError, TimeoutError):
            pass
        finally:
            self.open -= 1
            writer.close()

    async def read(self, reader):
        head = await reader.readuntil(b"\r\n\r\n")
        line, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.strip().lower(): value.strip() for name, _, value in (h.partition(":") for h in lines if h)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        method, path, _ = line.split(" ")
        return {"method": method, "path": path, "headers": headers, "body": base64.b64encode(body).decode(), "at": time.time()}

    # ---- answers: true where the connection goes on

    async def answer(self, request, reader, writer):
        path, _, rest = request["path"].partition("?")
        words = path.strip("/").split("/")
        name = "do_" + words[0].replace("-", "_")
        count = self.counts[path] = self.counts.get(path, 0) + 1
        call = {"request": request, "reader": reader, "writer": writer, "words": words[1:], "count": count, "query": rest}
        return await getattr(self, name, self.do_ok)(**call)

    async def say(self, writer, what):
        writer.write(what)
        await writer.drain()
        return True

    async def do_ok(self, writer, **_):
        return await self.say(writer, OK)

    async def do_status(self, writer, words, query, **_):
        more = f"{query.replace('=', ': ')}\r\n" if query else ""
        return await self.say(writer, f"HTTP/1.1 {words[0]} Told\r\n{more}Content-Length: 0\r\n\r\n".encode())

    async def do_first(self, writer, words, count, **_):
        """first/N/STATUS: that status N times, then well."""
        if count <= int(words[0]):
            return await self.say(writer, f"HTTP/1.1 {words[1]} Told\r\nContent-Length: 0\r\n\r\n".encode())
        return await self.say(writer, OK)

    async def do_hang(self, request, writer, reader, **_):
        """Nothing, until the other side goes or it is released."""
        gone = asyncio.ensure_future(reader.read(1))
        while not self.released and not gone.done():
            await asyncio.wait([gone], timeout=0.05)
        if gone.done():
            request["gone"] = True
            return False
        gone.cancel()
        await self.say(writer, OK)
        return False

    async def do_until(self, writer, words, count, **_):
        """until/N: well, N times; then nothing until it is released."""
        if count > int(words[0]):
            self.waiting += 1
            while not self.released:
                await asyncio.sleep(0.05)
        return await self.say(writer, OK)

    async def do_wait(self, writer, words, **_):
        """wait/MS: well, after so long."""
        await asyncio.sleep(int(words[0]) / 1000)
        return await self.say(writer, OK)

    async def do_slow_headers(self, writer, **_):
        await self.say(writer, b"HTTP/1.1 200 OK\r\n")
        for i in range(10000):
            await asyncio.sleep(0.05)
            await self.say(writer, f"x-{i}: slow\r\n".encode())

    async def do_drip(self, writer, **_):
        await self.say(writer, b"HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n")
        for _ in range(10000):
            await asyncio.sleep(1)
            await self.say(writer, b"x")

    async def do_endless(self, writer, **_):
        await self.say(writer, b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            await self.say(writer, b"x" * 65536)

    async def do_endless_error(self, writer, **_):
        await self.say(writer, b"HTTP/1.1 500 No\r\n\r\n")
        while True:
            await self.say(writer, b"x" * 65536)

    async def do_gzip(self, writer, **_):
        packed = zlib.compress(b"\0" * (8 << 20), 1)
        head = f"HTTP/1.1 200 OK\r\nContent-Encoding: deflate\r\nContent-Length: {len(packed)}\r\n\r\n"
        return await self.say(writer, head.encode() + packed)

    async def do_big_header(self, writer, **_):
        return await self.say(writer, b"HTTP/1.1 200 OK\r\nx-big: " + b"x" * 102400 + b"\r\nContent-Length: 0\r\n\r\n")

    async def do_many_headers(self, writer, **_):
        return await self.say(writer, b"HTTP/1.1 200 OK\r\n" + b"x-many: 0123456789\r\n" * 50000 + b"Content-Length: 0\r\n\r\n")

    async def do_cut_header(self, writer, **_):
        await self.say(writer, b"HTTP/1.1 200 OK\r\nContent-Le")
        return False

    async def do_cut_status(self, writer, **_):
        await self.say(writer, b"HTTP/1.1 2")
        return False

    async def do_reset_after_200(self, writer, **_):
        await self.say(writer, b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf")
        await asyncio.sleep(0.1)
        writer.transport.abort()
        return False

    async def do_short_body(self, writer, **_):
        await self.say(writer, b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf")
        return False

    async def do_long_body(self, writer, **_):
        await self.say(writer, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" + b"x" * 1000)
        return False

    async def do_bad_length(self, writer, **_):
        await self.say(writer, b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nok")
        return False

    async def do_close(self, **_):
        return False

    async def do_reuse(self, request, writer, **_):
        """Well, the first time on a connection; the second time it is closed, with the request read and not a byte said."""
        if request["nth"] > 1:
            return False
        return await self.say(writer, OK)

    async def do_informing(self, writer, **_):
        while True:
            await self.say(writer, b"HTTP/1.1 103 Early Hints\r\nx-hint: 1\r\n\r\n" * 100)
            await asyncio.sleep(0.001)

    async def do_early(self, writer, **_):
        return await self.say(writer, b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nx-hint: 1\r\n\r\n" + OK)

    async def do_redirect(self, request, writer, **_):
        head = f"HTTP/1.1 307 Elsewhere\r\nLocation: {request['path']}\r\nContent-Length: 0\r\n\r\n"
        return await self.say(writer, head.encode())

    async def do_junk(self, writer, **_):
        await self.say(writer, b"SSH-2.0-OpenSSH_9.2\r\n")
        return False


def main():
    context = None
    if len(sys.argv) > 2:
        import ssl
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(sys.argv[2], sys.argv[3])
    with open(sys.argv[1], "w", encoding="ascii") as log:
        server = Server(log, context)
        print(server.port, flush=True)
        sys.stdin.read()
        os._exit(0)  # connections end as they are


if __name__ == "__main__":
    main()
