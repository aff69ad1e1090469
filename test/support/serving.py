# SPDX-License-Identifier: Apache-2.0
"""serving.py - `pawl serve` as a process that tests start, ask, and end."""

import json
import socket

from running import WAIT_SECONDS, Running

JSON = {"Content-Type": "application/json"}


class Server(Running):
    """A server on the store in a folder."""

    def __init__(self, pawl, folder, *options, listen=("0",), env=None, before=(), **more):
        words = [*before, pawl, "serve", "--store", self.store_of(folder)]
        for address in listen:
            words += ["--listen", str(address)]
        super().__init__(*words, *options, env=env, **more)  # these last: they may end with a program

    @staticmethod
    def store_of(folder):
        return f"sqlite:{folder}/jobs.db"

    def up(self):
        self.listens_at = self.wait_event("SERVER-UP")["text"]
        return self

    def call(self, method, path, body=None, headers=None, connection=None):
        """(status, headers, bytes) of one request."""
        own = connection or self.connection()
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
            headers = {**JSON, **(headers or {})}
        try:
            own.request(method, path, body=body, headers=headers or {})
            answer = own.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            if connection is None:
                own.close()

    def good(self, method, path, body=None, headers=None, status=200, connection=None):
        """The answer as JSON; fails where the status is another."""
        got, _, data = self.call(method, path, body, headers, connection)
        assert got == status, (method, path, got, data)
        return json.loads(data)

    def host_port(self):
        host, port = self.address().rsplit(":", 1)
        return host, int(port)

    def raw(self, data, seconds=WAIT_SECONDS):
        """What comes back for some bytes, until the connection ends."""
        with socket.create_connection(self.host_port(), timeout=seconds) as sock:
            got = b""
            try:
                sock.sendall(data)
                while piece := sock.recv(65536):
                    got += piece
            except ConnectionError:
                pass
            return got

    def claim(self, worker="w", queue="q", **more):
        return self.good("POST", "/v1/claim", {"worker": worker, "queues": [{"queue": queue}], **more})["jobs"]

    def stats(self, queue="q"):
        return self.good("GET", f"/v1/queues/{queue}/stats")
