#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""example_workers_test.py - examples/worker.sh and examples/worker.py against a real `pawl serve`."""

import os
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TOP / "test" / "support"))
import tap  # noqa: E402
from running import CLEAN, WAIT_SECONDS, Running, wait_for  # noqa: E402
from serving import Server  # noqa: E402

PAWL = sys.argv[1]

# What both kinds of worker run for a job, each in its language: tells its process, keeps the payload, and goes on
# when the test says so.
SHELL_JOB = """
cat >payload.new
[ "$(cat payload.new)" != never ] || exit 65
[ "$(cat payload.new)" != "not now" ] || exit 3
mv payload.new payload
echo $$ >pid.new
mv pid.new pid
until [ -e go ]; do sleep 0.05; done
"""
PYTHON_JOB = """
import os, time
from worker import GiveUp
def handle(payload, job):
    if payload == b"never":
        raise GiveUp("it cannot be done")
    if payload == b"not now":
        raise ValueError("some other time")
    with open("payload", "wb") as file:
        file.write(payload)
    with open("pid.new", "w") as file:
        file.write(str(os.getpid()))
    os.rename("pid.new", "pid")
    while not os.path.exists("go"):
        time.sleep(0.05)
"""


def is_alive(pid):
    """Whether it runs: what is dead and not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


class Workers:
    """The cases; below, for each kind of worker."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="pawl-workers-", ignore_cleanup_errors=True)
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.server = self.serve("0")
        (self.folder / "job.sh").write_text(SHELL_JOB, encoding="utf-8")
        (self.folder / "job.py").write_text(PYTHON_JOB, encoding="utf-8")

    def serve(self, listen, *options):
        server = Server(PAWL, self.folder, *options, listen=[listen])
        self.addCleanup(server.__exit__)
        return server.up()

    def worker(self, lease="20s", **env):
        worker = Running(*self.words, cwd=self.folder, start_new_session=True, env={
            **CLEAN, "PAWL_URL": f"http://{self.server.address()}", "PAWL_LEASE": lease, "TMPDIR": str(self.folder), **env})
        self.addCleanup(worker.__exit__)
        return worker

    def enqueue(self, payload="x", **query):
        path = "/v1/queues/q/jobs?" + "&".join(f"{k}={v}" for k, v in query.items())
        return self.server.good("POST", path, payload, status=201)["id"]

    def job(self, job):
        return self.server.good("GET", f"/v1/jobs/{job}")

    def wait_state(self, job, state):
        wait_for(lambda: self.job(job)["state"] == state)

    def attempts(self, job):
        return [row["outcome"] for row in self.server.good("GET", f"/v1/jobs/{job}/attempts")["attempts"]]

    def wait_started(self):
        """The process that works on the job."""
        wait_for((self.folder / "pid").exists)
        pid = int((self.folder / "pid").read_text(encoding="utf-8"))
        (self.folder / "pid").unlink()
        return pid

    def go(self):
        (self.folder / "go").touch()

    def wait_said(self, worker, text):
        wait_for(lambda: any(text in line for line in worker.log()))

    def take_away(self, job):
        """End the attempt under its worker, with its own lease, as if it had been somebody else's all the time."""
        worker = self.job(job)["worker"]
        held = self.server.good("POST", "/v1/mine", {"worker": worker})["jobs"][0]
        self.assertEqual(held["id"], job)
        self.server.good("POST", f"/v1/jobs/{job}/settle", {
            "worker": worker, "token": held["token"], "version": held["lease_version"], "action": "fail"})

    def test_jobs_are_done_one_after_the_other(self):
        self.go()
        payloads = [b"plain text", bytes(range(256)), b'{"token": "no", "jobs": [1]}', b""]
        worker = self.worker()
        for payload in payloads:
            job = self.enqueue(payload, **{"max_retries": 0})
            self.wait_state(job, "Succeeded")
            self.assertEqual((self.folder / "payload").read_bytes(), payload)
            self.assertEqual(self.attempts(job), ["DISPATCHED"])
        self.assertEqual(worker.end(), 0)  # while it waits for work
        self.assertIn("ended", worker.log()[-1])
        self.assertEqual([p.name for p in self.folder.glob("tmp.*")], [])

    def test_failures_are_told(self):
        self.worker()
        job = self.enqueue("never")
        self.wait_state(job, "Failed")
        self.assertEqual(self.attempts(job), ["FAILED"])
        job = self.enqueue("not now", max_retries=1, backoff_base="1ms")
        self.wait_state(job, "Failed")
        self.assertEqual(self.attempts(job), ["RETRYABLE", "FAILED"])

    def test_the_lease_is_extended_while_it_works(self):
        """RULE-020-010"""
        worker = self.worker(lease="12s")
        job = self.enqueue()
        self.wait_started()
        ends = {self.job(job)["expires_at"]}
        wait_for(lambda: ends.add(self.job(job)["expires_at"]) or len(ends) >= 3)
        self.go()
        self.wait_state(job, "Succeeded")
        self.assertEqual(self.attempts(job), ["DISPATCHED"])
        self.assertEqual(worker.end(), 0)

    def test_it_finishes_what_it_has_when_it_ends(self):
        """RULE-020-030"""
        worker = self.worker()
        job = self.enqueue()
        other = self.enqueue()
        self.wait_started()
        worker.process.send_signal(signal.SIGTERM)
        self.go()
        self.assertEqual(worker.process.wait(WAIT_SECONDS), 0)
        self.assertEqual((self.job(job)["state"], self.job(other)["state"]), ("Succeeded", "Ready"))

    def test_another_takes_over_where_one_is_killed(self):
        """RULE-020-052: what it ran for the job ends too, and nobody extends the lease any more."""
        worker = self.worker(lease="4s")
        job = self.enqueue()
        handler = self.wait_started()
        worker.process.kill()
        wait_for(lambda: not is_alive(handler))
        self.go()
        other = self.worker()
        self.wait_state(job, "Succeeded")
        self.assertEqual(self.attempts(job), ["ZOMBIE_REQUEUE", "DISPATCHED"])
        self.assertEqual(other.end(), 0)

    def test_work_stops_where_a_renewal_is_refused(self):
        """RULE-020-012"""
        worker = self.worker(lease="12s")
        job = self.enqueue()
        handler = self.wait_started()
        self.take_away(job)
        wait_for(lambda: not is_alive(handler))
        self.wait_said(worker, f"{job}: the lease was lost: stopped")
        self.assertEqual(self.attempts(job), ["FAILED"])
        self.go()
        self.wait_state(self.enqueue(), "Succeeded")  # it goes on

    def test_work_stops_where_nobody_answers(self):
        """RES-10"""
        worker = self.worker(lease="12s")
        job = self.enqueue()
        handler = self.wait_started()
        self.server.process.send_signal(signal.SIGSTOP)
        wait_for(lambda: not is_alive(handler))
        self.wait_said(worker, f"{job}: the lease was lost: stopped")
        self.go()
        self.server.process.send_signal(signal.SIGCONT)
        self.wait_state(job, "Succeeded")
        self.assertEqual((self.attempts(job)[0], self.attempts(job)[-1]), ("ZOMBIE_REQUEUE", "DISPATCHED"))

    def test_a_refused_end_is_understood(self):
        """Q-STALE"""
        worker = self.worker(lease="10m")
        job = self.enqueue()
        self.wait_started()
        self.take_away(job)
        self.go()
        self.wait_said(worker, f"{job}: the lease was lost: what became of it is no longer mine to say")
        self.assertEqual(self.attempts(job), ["FAILED"])
        self.wait_state(self.enqueue(), "Succeeded")

    def test_the_end_is_told_once_the_server_is_back(self):
        worker = self.worker(lease="60s")
        job = self.enqueue()
        self.wait_started()
        address = self.server.address()
        self.assertEqual(self.server.end(), 0)
        self.go()
        self.server = self.serve(address)
        self.wait_state(job, "Succeeded")
        self.assertEqual(self.attempts(job), ["DISPATCHED"])
        self.assertEqual(worker.end(), 0)

    def test_tokens(self):
        tokens = self.folder / "tokens"
        token = subprocess.run([PAWL, "token", "add", "w", "--tokens", tokens, "--scopes", "work", "--queues", "q"],
                               env=CLEAN, capture_output=True, text=True, check=True).stdout.strip()
        self.enqueue()
        self.server.end()
        self.server = self.serve("0", "--tokens", tokens)
        self.go()
        self.assertEqual(self.worker().process.wait(WAIT_SECONDS), 1)
        worker = self.worker(PAWL_TOKEN=token)
        self.wait_said(worker, ": succeed")
        self.assertNotIn(token.encode(), Path(f"/proc/{worker.process.pid}/cmdline").read_bytes())


class Shell(Workers, unittest.TestCase):
    words = (TOP / "examples" / "worker.sh", "q", "sh", "job.sh")


class Python(Workers, unittest.TestCase):
    words = (sys.executable, TOP / "examples" / "worker.py", "q", "job:handle")


if __name__ == "__main__":
    os.umask(0o077)
    tap.main()
