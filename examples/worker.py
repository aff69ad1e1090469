#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""worker.py QUEUE MODULE:FUNCTION - a worker in Python, with its standard library alone: claims jobs from a
`pawl serve`, calls FUNCTION(payload, job) for each, and says how it went. What it raises is a failed attempt;
GiveUp is a failure for good.

From the environment: PAWL_URL (http://127.0.0.1:7295), PAWL_TOKEN (with the scope "work"), PAWL_LEASE (30s).
SIGTERM and SIGINT let it finish the job that it has, and end.
"""

import base64
import http.client
import importlib
import json
import multiprocessing
import os
import secrets
import signal
import socket
import sys
import threading
import time
import urllib.parse

WAIT_SECONDS = 20  # that a claim waits for work
fork = multiprocessing.get_context("fork")


class GiveUp(Exception):
    """The job can never succeed: no more tries."""


class Server:
    """One connection to the server, of one thread."""

    def __init__(self):
        self.url = urllib.parse.urlsplit(os.environ.get("PAWL_URL", "http://127.0.0.1:7295"))
        self.headers = {"Content-Type": "application/json"}
        if "PAWL_TOKEN" in os.environ:
            self.headers["Authorization"] = "Bearer " + os.environ["PAWL_TOKEN"]
        self.connection = None

    def post(self, path, body, seconds):
        """(status, answer); (None, why) where no answer came, and nobody knows what was done."""
        kind = http.client.HTTPSConnection if self.url.scheme == "https" else http.client.HTTPConnection
        try:
            if self.connection is None:
                self.connection = kind(self.url.hostname, self.url.port, timeout=seconds)
            if self.connection.sock is not None:
                self.connection.sock.settimeout(seconds)
            self.connection.timeout = seconds
            self.connection.request("POST", self.url.path.rstrip("/") + path, json.dumps(body), self.headers)
            answer = self.connection.getresponse()
            return answer.status, json.loads(answer.read() or b"null")
        except (OSError, http.client.HTTPException, ValueError) as problem:
            self.close()
            return None, str(problem)

    def cut(self):
        """End the connection under whoever waits for an answer."""
        if self.connection is not None and self.connection.sock is not None:
            try:
                self.connection.sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # it has ended already

    def close(self):
        if self.connection is not None:
            self.connection.close()
        self.connection = None


def comes_again(status):
    """Whether to ask once more: there was no answer, or the store is away. Repeating does no harm."""
    return status in (None, 503, 504)


class Heartbeat(threading.Thread):
    """Extends a lease until it is told to stop; calls `lost` where that fails."""

    def __init__(self, job_id, proof, interval, lost):
        super().__init__(daemon=True)
        self.path = f"/v1/jobs/{job_id}/renew"
        self.proof = proof
        self.interval = interval
        self.lost = lost
        self.told = threading.Event()
        self.server = Server()

    def run(self):
        while not self.told.wait(self.interval):
            if not self.renew():
                self.lost()
                return

    def renew(self):
        """Without an answer it is asked again, for one interval: three of them are less than the lease, so the work
        stops before somebody else can have the job."""
        until = time.monotonic() + self.interval
        while not self.told.is_set() and (left := until - time.monotonic()) > 0:
            status, _ = self.server.post(self.path, self.proof, left)
            if not comes_again(status):
                return status == 200
            self.told.wait(0.1)
        return self.told.is_set()

    def stop(self):
        self.told.set()
        self.join()
        self.server.close()


def run_handler(handle, payload, job, result):
    """In a process of its own, which can be stopped at any moment."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def end_with_parent():
        multiprocessing.parent_process().join()
        os._exit(70)  # nobody renews the lease any more
    threading.Thread(target=end_with_parent, daemon=True).start()
    try:
        handle(payload, job)
        result.send(("succeed", "", ""))
    except GiveUp as problem:
        result.send(("fail", "GiveUp", str(problem)))
    except Exception as problem:  # whatever it is: this attempt has failed
        result.send(("retry", type(problem).__name__, str(problem)))


class Worker:
    def __init__(self, queue, handle):
        self.queue = queue
        self.handle = handle
        self.name = f"{socket.gethostname()}/{os.getpid()}/{secrets.token_hex(8)}"  # no other has or had it
        self.lease = os.environ.get("PAWL_LEASE", "30s")
        self.server = Server()
        self.ending = threading.Event()
        self.is_working = False

    def end(self, *_):
        """A signal: no more jobs. A claim that waits is given up; the server sees it, and gives nothing out."""
        self.ending.set()
        if not self.is_working:
            self.server.cut()

    def say(self, text):
        print(f"worker.py: {text}", file=sys.stderr, flush=True)

    def run(self):
        self.say(f"{self.name} works on {self.queue}")
        while not self.ending.is_set():
            status, answer = self.server.post("/v1/claim", {
                "worker": self.name, "wait": f"{WAIT_SECONDS}s",
                "queues": [{"queue": self.queue, "lease": self.lease}]}, 2 * WAIT_SECONDS)
            if status == 200:
                for job in answer["jobs"]:
                    self.is_working = True
                    self.work_on(job)
                self.is_working = False
            elif not comes_again(status):
                self.say(f"refused: {answer}")
                return 1
            elif not self.ending.is_set():
                self.say(f"no answer: {answer}")
                self.ending.wait(1)
        self.say("ended")
        return 0

    def work_on(self, job):
        payload = base64.b64decode(job["payload_base64"]) if "payload_base64" in job else job["payload"].encode()
        proof = {"worker": self.name, "token": job["token"], "version": job["lease_version"]}
        result, sender = fork.Pipe(duplex=False)
        process = fork.Process(target=run_handler, args=(self.handle, payload, job, sender))
        process.start()
        sender.close()
        is_lost = threading.Event()

        def lost():
            is_lost.set()
            process.kill()  # at once: the job may be somebody else's at any moment
        beat = Heartbeat(job["id"], proof, job["lease_ms"] / 4000, lost)
        beat.start()
        try:
            action, code, text = result.recv()
        except EOFError:  # it ended without a word
            action, code, text = "retry", "died", ""
        process.join()
        if not is_lost.is_set():
            self.settle(job["id"], {**proof, "action": action, **({"error_code": code, "error_text": text[:500]} if code else {})},
                        is_lost)
        else:
            self.say(f"{job['id']}: the lease was lost: stopped")
        beat.stop()
        result.close()

    def settle(self, job_id, body, is_lost):
        """Until it is answered; the heartbeat goes on meanwhile."""
        while not is_lost.is_set():
            status, answer = self.server.post(f"/v1/jobs/{job_id}/settle", body, 10)
            if status == 200:
                self.say(f"{job_id}: {body['action']}")
                return
            if status == 409:
                self.say(f"{job_id}: the lease was lost: what became of it is no longer mine to say")
                return
            if not comes_again(status):
                self.say(f"{job_id}: {answer}")
                return
            is_lost.wait(0.2)
        self.say(f"{job_id}: the lease was lost before the end was told")


def main():
    if len(sys.argv) != 3 or ":" not in sys.argv[2]:
        print(__doc__, file=sys.stderr)
        return 64
    module, _, function = sys.argv[2].partition(":")
    sys.path.insert(0, os.getcwd())
    sys.modules["worker"] = sys.modules["__main__"]  # its GiveUp is this one
    worker = Worker(sys.argv[1], getattr(importlib.import_module(module), function))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, worker.end)
    return worker.run()


if __name__ == "__main__":
    sys.exit(main())
