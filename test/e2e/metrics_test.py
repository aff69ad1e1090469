#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""metrics_test.py - what `pawl work` and `pawl reap --watch` serve over HTTP: read by Prometheus's own parser, compared with
docs/metrics.md, asked in wrong ways, by many at once and by those who do not read.

Usage: metrics_test.py PATH-OF-PAWL
"""

import concurrent.futures
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

TOP = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TOP / "test" / "support"))
import running  # noqa: E402
import tap  # noqa: E402

PAWL = Path(sys.argv.pop()).resolve()
UNAVAILABLE, CONFIG = 69, 78  # sysexits
DOCUMENT = (TOP / "docs" / "metrics.md").read_text(encoding="utf-8")
LEASE = 4.0  # of jobs that run longer: on a busy machine, too


class OnStore(unittest.TestCase):
    """A SQLite file of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="pawl-metrics-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.env = {**running.CLEAN, "PAWL_STORE": f"sqlite:{self.folder}/jobs.db"}

    def pawl(self, *words):
        return subprocess.run([PAWL, *map(str, words)], env=self.env, capture_output=True, text=True, check=False,
                              timeout=60)

    def good(self, *words):
        done = self.pawl(*words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()

    def worker(self, *words, script="true", listen="0", poll="50ms", **more):
        words = ["work", "q", "--poll", poll, "--lease", f"{LEASE:.0f}s", "--metrics-listen", listen,
                 "--metrics-interval", "200ms", *words, "--", "sh", "-c", script]
        process = running.Running(PAWL, *words, env=self.env, **more)
        self.addCleanup(process.__exit__)
        return process


def families(text):
    return {family.name: family for family in text_string_to_metric_families(text)}


class FormatTest(OnStore):
    def a_full_text(self):
        for word in ("done", "fail"):
            self.good("enqueue", "q", word)
        worker = self.worker(script="grep -q done || exit 65")
        worker.wait_figure('pawl_jobs_total{queue="q",outcome="failed"}', 1)
        worker.wait_figure("pawl_queue_look_timestamp_seconds", 1)
        worker.wait_figure("pawl_reaper_runs_total", 1)
        return worker.metrics()

    def test_a_parser_reads_it(self):
        text = self.a_full_text()
        found = families(text)
        self.assertEqual(len(found), text.count("\n# TYPE "))
        self.assertEqual(found["pawl_build_info"].samples[0].labels["version"],
                         self.good("version").removeprefix("pawl "))
        series = [(s.name, tuple(sorted(s.labels.items()))) for f in found.values() for s in f.samples]
        self.assertEqual(len(series), len(set(series)), "a series stands there twice")
        for family in found.values():
            self.assertTrue(family.documentation)
            for sample in family.samples:
                self.assertTrue(sample.name.startswith(("pawl_", "process_")))
                self.assertGreaterEqual(sample.value, 0, sample)
                self.assertTrue(set(sample.labels) <= {"queue", "outcome", "reason", "result", "verb", "code", "state", "le",
                                                       "worker", "kind", "version", "answer"}, sample)
        histogram = [s for s in found["pawl_job_run_seconds"].samples if s.labels.get("queue") == "q"]
        buckets = [s for s in histogram if s.name.endswith("_bucket")]
        self.assertEqual([b.value for b in buckets], sorted(b.value for b in buckets))
        self.assertEqual(buckets[-1].labels["le"], "+Inf")
        self.assertEqual(buckets[-1].value, next(s.value for s in histogram if s.name.endswith("_count")))

    def test_names_follow_the_conventions(self):
        text = self.a_full_text()
        for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE):
            with self.subTest(name):
                self.assertEqual(kind == "counter", name.endswith("_total"))
                self.assertNotRegex(name, r"_(ms|us|minutes|kb|count|sum|bucket)$")
                if kind == "histogram":
                    self.assertTrue(name.endswith("_seconds"))
        promtool = shutil.which("promtool")
        if promtool:  # of Debian's package prometheus, which is heavy: not asked for
            done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))

    def test_figures_of_the_process(self):
        began = time.time()
        worker = self.worker("--no-reaper")
        worker.wait_event("WORKER-UP")
        self.good("enqueue", "q", "x")
        worker.wait_figure('pawl_jobs_total{queue="q",outcome="succeeded"}', 1)  # all that there is has been opened
        self.assertAlmostEqual(worker.figure("process_start_time_seconds"), began, delta=30)
        # A connection is open while it is asked.
        self.assertAlmostEqual(worker.figure("process_open_fds"), len(os.listdir(f"/proc/{worker.process.pid}/fd")), delta=2)
        self.assertEqual(worker.figure("process_threads"), len(os.listdir(f"/proc/{worker.process.pid}/task")))
        self.assertGreater(worker.figure("process_resident_memory_bytes"), 1e6)
        self.assertGreater(worker.figure("process_max_fds"), 10)
        self.assertIsNotNone(worker.figure("process_cpu_seconds_total"))

    def test_the_document_says_the_same(self):
        """Each family stands in docs/metrics.md with its type, labels and text, and nothing else does."""
        text = self.a_full_text()
        found = families(text)
        served = {}
        for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE):
            labels = {label for s in found[name.removesuffix("_total")].samples for label in s.labels} - {"le"}
            help_text = re.search(rf"^# HELP {name} (.*)$", text, re.MULTILINE).group(1)
            served[name] = (kind, labels, help_text)
        told = {}
        for name, kind, labels, help_text in re.findall(r"^\| `(\w+)` \| (\w+) \| (.*?) \| (.*?) \|$", DOCUMENT, re.MULTILINE):
            self.assertNotIn(name, told)
            told[name] = (kind, set(re.findall(r"`(\w+)`", labels)), help_text)
        rare = "pawl_store_call_failures_total"  # none of its series has happened here
        self.assertEqual(served[rare][1], set())
        served[rare] = (served[rare][0], {"verb", "code"}, served[rare][2])
        self.assertEqual(told, served)


class HttpTest(OnStore):
    def test_what_is_answered(self):
        worker = self.worker()
        status, headers, text = worker.ask()
        self.assertEqual((status, headers["Content-Type"]), (200, "text/plain; version=0.0.4; charset=utf-8"))
        status, headers, body = worker.ask("HEAD")
        self.assertEqual((status, body), (200, ""))
        self.assertGreater(int(headers["Content-Length"]), len(text) // 2)
        self.assertEqual(worker.ask(path="/metrics?name=x")[0], 200)
        for path in ("/", "/metrics/", "/metricsx", "/../metrics", "/%6detrics/.."):
            self.assertEqual(worker.ask(path=path)[0], 404, path)
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH", "BREW"):
            status, headers, _ = worker.ask(method, body="x" * 100000 if method in ("POST", "PUT") else None)
            self.assertEqual((status, headers["Allow"]), (405, "GET, HEAD"), method)
        self.assertEqual(worker.ask("POST", path="/other")[0], 404)
        self.assertEqual(worker.end(), 0)

    def test_a_connection_is_used_again(self):
        worker = self.worker()
        connection = worker.connection()
        self.addCleanup(connection.close)
        connection.connect()
        sock = connection.sock
        for method, body in (("GET", None), ("HEAD", None), ("GET", "a body that nobody reads"), ("GET", None)):
            connection.request(method, "/metrics", body=body)
            answer = connection.getresponse()
            answer.read()
            self.assertEqual(answer.status, 200)
            self.assertIs(connection.sock, sock)

    def test_nonsense_ends_a_connection_and_nothing_else(self):
        worker = self.worker()
        host, port = worker.address().split(":")
        for words in (b"\0\1\2\3\r\n\r\n", b"GET\r\n\r\n", b"GET /metrics HTTP/9.9\r\n\r\n", b"A" * 100000,
                      b"GET /metrics HTTP/1.1\r\n" + b"X: y\r\n" * 10000 + b"\r\n"):
            with socket.create_connection((host, int(port)), timeout=60) as sock:
                try:
                    sock.sendall(words)
                    sock.shutdown(socket.SHUT_WR)
                    while sock.recv(65536):
                        pass
                except OSError:
                    pass  # cut off
        self.assertEqual(worker.ask()[0], 200)

    def test_many_at_once(self):
        worker = self.worker(script="cat >/dev/null")
        for i in range(20):
            self.good("enqueue", "q", i)
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            texts = list(pool.map(lambda _: worker.metrics(), range(200)))
        for text in texts:
            self.assertTrue(text.endswith("\n"))
            self.assertIn("\n# TYPE process_threads gauge\nprocess_threads ", text)
        families(texts[-1])
        worker.wait_figure('pawl_jobs_total{queue="q",outcome="succeeded"}', 20)

    def test_those_who_do_not_read_hurt_nobody(self):
        """Neither those who scrape, nor the lease of a job that runs."""
        self.good("enqueue", "q", "long")
        worker = self.worker(script=f"sleep {1.5 * LEASE}")
        worker.wait_figure("pawl_slots_in_use", 1)
        host, port = worker.address().split(":")
        idle = []
        for i in range(100):
            sock = socket.create_connection((host, int(port)), timeout=60)
            self.addCleanup(sock.close)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
            # Half a request, a whole one whose answer nobody takes, or nothing at all.
            sock.sendall((b"GET /metrics HTTP/1.1\r\nHost: x\r\n", b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 20, b"")[i % 3])
            idle.append(sock)
        for _ in range(5):
            self.assertEqual(worker.ask()[0], 200)
        worker.wait_figure('pawl_jobs_total{queue="q",outcome="succeeded"}', 1)
        self.assertEqual(worker.figure('pawl_jobs_total{queue="q",outcome="lost"}'), 0)
        self.assertGreater(worker.figure('pawl_renewals_total{result="ok"}'), 2)
        self.assertEqual(worker.end(), 0)  # with all of them still there

    def test_more_than_it_takes_at_once_are_served_in_the_end(self):
        worker = self.worker()
        host, port = worker.address().split(":")
        for _ in range(150):  # that do nothing: cut off after a while
            self.addCleanup(socket.create_connection((host, int(port)), timeout=60).close)
        self.assertEqual(worker.ask()[0], 200)


class ListenTest(OnStore):
    def refused(self, address, code, complaint):
        done = self.pawl("work", "q", "--metrics-listen", address, "--", "true")
        self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
        self.assertIn("--metrics-listen", done.stderr)
        self.assertIn(complaint, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1)

    def test_a_port_alone_is_on_this_machine(self):
        self.assertTrue(self.worker(listen="0").address().startswith("127.0.0.1:"))
        self.assertTrue(self.worker(listen="localhost:0").address().startswith(("127.0.0.1:", "[::1]:")))
        self.assertTrue(self.worker(listen="0.0.0.0:0").address().startswith("0.0.0.0:"))

    @unittest.skipUnless(Path("/proc/net/if_inet6").exists() and Path("/proc/net/if_inet6").read_text(), "no IPv6 here")
    def test_ipv6(self):
        worker = self.worker(listen="[::1]:0")
        self.assertTrue(worker.address().startswith("[::1]:"))
        self.assertEqual(worker.ask()[0], 200)

    def test_an_address_that_is_none(self):
        for address in ("", ":", "x", ":9100", "1.2.3.4", "1.2.3.4:", "127.0.0.1:99999", "127.0.0.1:-1", "::1:80", "[::1]", "[::1]x:1",
                        "0x50", "a:b:c", "localhost:http", "x" * 300):
            with self.subTest(address):
                self.refused(address, CONFIG, "is no address to listen at")
        self.refused("no.such.host.invalid:0", UNAVAILABLE, "cannot listen at no.such.host.invalid:0")
        self.refused("192.0.2.1:9100", UNAVAILABLE, "cannot listen at 192.0.2.1:9100: Cannot assign requested address")
        self.refused("unix:" + "/x" * 100, CONFIG, "the path of a Unix socket has 200 bytes")
        self.refused(f"{self.folder}/no/such", UNAVAILABLE, "No such file or directory")

    def test_a_port_that_is_taken(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = "127.0.0.1:%d" % taken.getsockname()[1]
            self.refused(address, UNAVAILABLE, f"cannot listen at {address}: Address already in use")
        # It listens before it works: nothing was claimed, and no worker was shown.
        self.assertEqual(self.good("workers", "--json").count("name"), 0)

    def test_a_port_can_be_had_again_at_once(self):
        worker = self.worker()
        address = worker.address()
        self.assertEqual(worker.ask()[0], 200)
        self.assertEqual(worker.end(), 0)
        self.assertEqual(self.worker(listen=address).ask()[0], 200)

    def test_a_unix_socket(self):
        path = self.folder / "metrics.sock"
        worker = self.worker(listen=str(path))
        self.assertEqual(worker.address(), f"unix:{path}")
        self.assertEqual(worker.ask()[0], 200)
        self.refused(str(path), UNAVAILABLE, "Address already in use")
        self.assertEqual(worker.ask()[0], 200)
        worker.end(9)
        self.assertTrue(path.exists())  # what it left behind is replaced
        worker = self.worker(listen=f"unix:{path}")
        self.assertEqual(worker.ask()[0], 200)
        self.assertEqual(worker.end(), 0)
        self.assertFalse(path.exists())
        path.write_text("precious")
        self.refused(str(path), UNAVAILABLE, "Address already in use")
        self.assertEqual(path.read_text(), "precious")

    def test_a_bad_interval(self):
        done = self.pawl("work", "q", "--metrics-listen", "0", "--metrics-interval", "1ms", "--", "true")
        self.assertEqual(done.returncode, CONFIG)
        self.assertIn("--metrics-interval: look_ms is 1", done.stderr)


class ReaperTest(OnStore):
    def test_a_reaper_serves_too(self):
        """RULE-020-023: with all queues' depths, and nothing of jobs, which are not its work."""
        self.good("enqueue", "q", "x")
        self.good("enqueue", "elsewhere", "x", "--delay", "1h")
        reaper = running.Running(PAWL, "reap", "--watch", "--interval", "200ms", "--metrics-listen", "0", "--metrics-interval",
                                 "200ms", env=self.env)
        self.addCleanup(reaper.__exit__)
        reaper.wait_figure("pawl_reaper_runs_total", 2)
        reaper.wait_figure('pawl_queue_ready_jobs{queue="q"}', 1)
        reaper.wait_figure('pawl_queue_delayed_jobs{queue="elsewhere"}', 1)
        self.assertIsNone(reaper.figure('pawl_jobs_total{queue="q",outcome="succeeded"}'))
        self.assertEqual(reaper.figure("pawl_slots_max"), 0)
        families(reaper.metrics())
        self.assertEqual(reaper.end(), 0)
        self.assertEqual([e["event"] for e in reaper.events()], ["METRICS-UP", "REAPER-UP", "REAPER-STOPPED"])


class LogDroppedTest(OnStore):
    def test_a_log_that_nobody_reads_costs_lines_and_no_lease(self):
        self.good("enqueue", "q", "long", "--priority", "0")
        for _ in range(5):
            self.good("enqueue", "q", "x")
        reading, writing = os.pipe()
        self.addCleanup(os.close, reading)
        path = self.folder / "metrics.sock"
        worker = self.worker("--verbose", "--parallel", "2", poll="1ms", listen=str(path), stderr=writing,
                             script=f'read -r x; [ "$x" != long ] || sleep {1.5 * LEASE}')
        os.close(writing)
        worker.listens(path)
        worker.wait_figure("pawl_log_dropped_total", 1)
        worker.wait_figure('pawl_jobs_total{queue="q",outcome="succeeded"}', 6)
        self.assertEqual(worker.figure('pawl_jobs_total{queue="q",outcome="lost"}'), 0)
        self.assertGreater(worker.figure('pawl_renewals_total{result="ok"}'), 2)
        # Somebody reads again: the next line says how many are missing, and why.
        lines = []
        reader = threading.Thread(target=lambda: lines.extend(os.fdopen(os.dup(reading), encoding="utf-8").read().splitlines()))
        reader.start()
        running.wait_for(lambda: worker.figure("pawl_store_call_seconds_count{verb=\"claim\"}"))
        self.assertEqual(worker.end(), 0)
        reader.join()
        dropped = [running.fields(line) for line in lines if "event=DROPPED" in line]
        self.assertTrue(dropped)
        reasons = {d["reason"] for d in dropped}
        self.assertTrue("output_blocked" in reasons and reasons <= {"output_blocked", "callback_slow"}, reasons)
        self.assertGreater(sum(int(d["events"]) for d in dropped), 0)
        for line in lines:
            self.assertIn("event", running.fields(line), line)  # none is torn

    def test_it_ends_although_nobody_reads(self):
        reading, writing = os.pipe()
        self.addCleanup(os.close, reading)
        path = self.folder / "metrics.sock"
        worker = self.worker("--verbose", poll="1ms", listen=str(path), stderr=writing)
        os.close(writing)
        worker.listens(path)
        worker.wait_figure("pawl_log_dropped_total", 1)
        self.assertEqual(worker.end(), 0)

    def test_a_log_that_cannot_be_written_costs_nothing_else(self):
        with open("/dev/full", "wb") as full:
            worker = self.worker("--verbose", listen=str(self.folder / "metrics.sock"), stderr=full)
        worker.listens(self.folder / "metrics.sock")
        self.good("enqueue", "q", "x")
        worker.wait_figure('pawl_jobs_total{queue="q",outcome="succeeded"}', 1)
        worker.wait_figure("pawl_log_dropped_total", 5)
        self.assertEqual(worker.end(), 0)


if __name__ == "__main__":
    tap.main()
