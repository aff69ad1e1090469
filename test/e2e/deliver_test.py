#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""deliver_test.py - `pawl deliver` on a SQLite file and on PostgreSQL, against a real server that does what endpoints do, good ones
and bad ones.

Usage: deliver_test.py PATH-OF-PAWL
"""

import base64
import collections
import hashlib
import hmac
import json
import shutil
import signal
import socket
import sqlite3
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TOP / "test" / "support"))
import hostile  # noqa: E402
import pg  # noqa: E402
import tap  # noqa: E402
from commands import CLEAN, Store  # noqa: E402
from running import Running, wait_for  # noqa: E402

Store.program = sys.argv.pop()
HEADER_CANARY = "canary-of-a-header"
PAYLOAD_CANARY = "canary-of-a-payload"


def body(request):
    return base64.b64decode(request["body"])


def signatures(request):
    return request["headers"]["webhook-signature"].split(" ")


def signed(secret, request):
    """The v1 signature that Standard Webhooks demands of a request."""
    headers = request["headers"]
    what = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body(request)
    key = base64.b64decode(secret.removeprefix("whsec_"))
    return "v1," + base64.b64encode(hmac.new(key, what, hashlib.sha256).digest()).decode()


class Tunnels:
    """A proxy that makes a tunnel to wherever it is asked."""

    def __init__(self):
        self.count = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def stop(self):
        self.listener.close()

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(near,), daemon=True).start()

    def serve(self, near):
        request = b""
        while b"\r\n\r\n" not in request:
            request += near.recv(4096)
        verb, where, _ = request.decode().split(" ", 2)
        assert verb == "CONNECT"
        host, port = where.rsplit(":", 1)
        far = socket.create_connection((host, int(port)))
        self.count += 1
        near.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        threading.Thread(target=self.carry, args=(far, near), daemon=True).start()
        self.carry(near, far)

    @staticmethod
    def carry(one, other):
        try:
            while some := one.recv(65536):
                other.sendall(some)
            other.shutdown(socket.SHUT_WR)
        except OSError:
            pass


class Base(Store):
    """What all cases have: a server, a store, and the command."""

    server = None
    folder = None
    more = {}

    def start_server(self):
        self.server = hostile.Server()
        self.addCleanup(self.server.stop)
        self.env = {**self.env, **self.allowed(self.server), "http_proxy": "http://127.0.0.1:9", "all_proxy": "http://127.0.0.1:9"}

    @staticmethod
    def allowed(*servers):
        ports = ",".join(str(s.port) for s in servers)
        return {"PAWL_WEBHOOK_ALLOW": "127.0.0.1", "PAWL_WEBHOOK_HTTP": "true", "PAWL_WEBHOOK_PORTS": ports}

    def deliver(self, *words, env=None):
        words = ("--webhook-refresh", "200ms", "--poll", "200ms", *words)
        return Running(self.program, "deliver", *words, env=env or self.env)

    def add(self, name, path, *words, topics="*", server=None):
        done = self.pawl("endpoint", "add", name, "--url", (server or self.server).url(path), "--topics", topics, "--backoff-base",
                         "1ms", "--backoff-max", "1ms", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()

    def publish(self, *words, kind="order.created", payload='{"order": 17}'):
        return self.good("publish", kind, payload, *words).strip()

    def jobs(self, name):
        return self.json("jobs", "list", "--queue", f"webhook/{name}")["jobs"]

    def attempts(self, name):
        """Of the one job of an endpoint."""
        (job,) = self.jobs(name)
        return self.json("attempts", job["id"])["attempts"]

    def endpoint(self, name):
        return self.json("endpoint", "show", name)

    def wait_requests(self, path, count):
        wait_for(lambda: len(self.server.of(path)) >= count)
        return self.server.of(path)

    def wait_states(self, name, *states):
        wait_for(lambda: sorted(j["state"] for j in self.jobs(name)) == sorted(states))


class Cases(Base):
    """Run on each kind of store."""

    # ---- what is sent

    def test_an_event_is_delivered_and_signed(self):
        secret = self.add("crm", "/ok/crm", "--header", f"x-token: {HEADER_CANARY}")
        with self.deliver("--verbose", "--metrics-listen", "0") as run:
            event = self.publish("--header", "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "--header",
                                 "content-type: text/plain", payload=PAYLOAD_CANARY)
            (request,) = self.wait_requests("/ok/crm", 1)
            self.wait_states("crm", "Succeeded")
            metrics = run.metrics()
            words = Path(f"/proc/{run.process.pid}/cmdline").read_text()  # what ps shows
            log = "\n".join(run.log())
        lists = "".join(self.good(*words) for words in (
            ("endpoint", "list"), ("endpoint", "list", "--json"), ("endpoint", "show", "crm"), ("endpoint", "show", "crm", "--json"),
            ("jobs",), ("jobs", "--json"), ("queues", "--json"), ("workers", "--json"), ("attempts", self.jobs("crm")[0]["id"])))
        errors = "".join(self.pawl(*words).stderr for words in (
            ("endpoint", "add", "crm", "--url", self.server.url("/"), "--topics", "*"), ("endpoint", "remove", "nobody"),
            ("endpoint", "set", "crm", "--topics", "a b"), ("endpoint", "replay", "crm", "--event", "nobody")))
        self.assertIn("nobody", errors)
        headers = request["headers"]
        self.assertEqual(request["method"], "POST")
        self.assertEqual(body(request).decode(), PAYLOAD_CANARY)
        self.assertEqual((headers["webhook-id"], headers["content-type"]), (event, "text/plain"))
        self.assertEqual(headers["traceparent"], "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
        self.assertEqual(headers["x-token"], HEADER_CANARY)
        self.assertLess(abs(int(headers["webhook-timestamp"]) - time.time()), 120)
        self.assertEqual(signatures(request), [signed(secret, request)])
        self.assertNotIn("pawl-event-type", headers)
        (attempt,) = self.attempts("crm")
        self.assertEqual(attempt["outcome"], "DISPATCHED")
        self.assertIn("event=DELIVERY", log)
        for told in (metrics, log, words, lists, errors):  # NFR-003
            for canary in (HEADER_CANARY, PAYLOAD_CANARY, secret, signatures(request)[0], "whsec_", "v1,"):
                self.assertNotIn(canary, told)

    def test_one_by_hand(self):
        """pawl endpoint test: signed as any other; nothing is left at the store."""
        secret = self.add("crm", "/ok/crm", topics="never")
        self.add("bad", "/status/500", topics="never")
        self.good("endpoint", "disable", "crm")
        told = self.json("endpoint", "test", "crm")
        (request,) = self.server.of("/ok/crm")
        self.assertEqual((told["is_delivered"], told["answer"], told["sends"]), (True, "HTTP-200", 1))
        self.assertEqual(request["headers"]["webhook-id"], told["webhook_id"])
        self.assertEqual(signatures(request), [signed(secret, request)])
        self.assertEqual(body(request), b'{"test": true}')
        self.refused(69, "", "endpoint", "test", "bad")
        self.assertIn("HTTP-500", self.pawl("endpoint", "test", "bad").stdout)
        self.refused(65, "nobody", "endpoint", "test", "nobody")
        self.assertEqual(self.jobs("crm") + self.jobs("bad"), [])
        refused = self.pawl("endpoint", "test", "crm", env={**self.env, "PAWL_WEBHOOK_ALLOW": "10.0.0.1"})
        self.assertEqual((refused.returncode, len(self.server.of("/ok/crm"))), (78, 1), refused.stderr)

    def test_retries_have_the_same_id_and_body(self):
        secret = self.add("crm", "/first/2/500")
        with self.deliver():
            event = self.publish()
            self.wait_states("crm", "Succeeded")
        requests = self.server.of("/first/2/500")
        self.assertEqual([r["headers"]["webhook-id"] for r in requests], [event] * 3)
        self.assertEqual({body(r) for r in requests}, {b'{"order": 17}'})
        for request in requests:
            self.assertEqual(signatures(request), [signed(secret, request)])
        self.assertEqual([(a["outcome"], a.get("error_code")) for a in self.attempts("crm")],
                         [("RETRYABLE", "HTTP-500"), ("RETRYABLE", "HTTP-500"), ("DISPATCHED", None)])

    def test_several_secrets_sign_while_they_are_rotated(self):
        old = self.add("crm", "/ok/crm")
        with self.deliver():
            self.publish()
            self.wait_requests("/ok/crm", 1)
            new = self.json("endpoint", "rotate", "crm")["secret"]
            pair = self.json("endpoint", "rotate", "crm", "--key-pair")["secret"]
            self.assertRegex(pair, "^whsk_")

            def last():
                self.publish()
                time.sleep(0.1)
                request = self.server.of("/ok/crm")[-1]
                return len(signatures(request)) == 3 and request
            request = wait_for(last)
        self.assertEqual(signatures(request)[1:], [signed(new, request), signed(old, request)])
        self.assertRegex(signatures(request)[0], "^v1a,[A-Za-z0-9+/]{86}==$")

    def test_cloudevents(self):
        self.add("binary", "/ok/binary", "--format", "cloudevents-binary")
        secret = self.add("whole", "/ok/whole", "--format", "cloudevents-structured")
        with self.deliver("--webhook-source", "https://shop.example/orders"):
            event = self.publish("--key", "customer-4")
            (binary,) = self.wait_requests("/ok/binary", 1)
            (whole,) = self.wait_requests("/ok/whole", 1)
        headers = binary["headers"]
        self.assertEqual((headers["ce-id"], headers["ce-type"], headers["ce-source"], headers["ce-subject"], headers["ce-specversion"]),
                         (event, "order.created", "https://shop.example/orders", "customer-4", "1.0"))
        self.assertEqual(body(binary), b'{"order": 17}')
        told = json.loads(body(whole))
        self.assertEqual((told["id"], told["type"], told["data"]), (event, "order.created", {"order": 17}))
        self.assertIn("application/cloudevents+json", whole["headers"]["content-type"])
        self.assertEqual(signatures(whole), [signed(secret, whole)])

    def test_order_within_a_key(self):
        self.add("crm", "/first/2/500", "--ordering", "key")
        events = [self.publish("--key", "a") for _ in range(3)]
        with self.deliver():
            self.wait_states("crm", "Succeeded", "Succeeded", "Succeeded")
        ids = [r["headers"]["webhook-id"] for r in self.server.of("/first/2/500")]
        self.assertEqual(ids, [events[0]] * 3 + events[1:])

    # ---- what an answer does

    def test_410_disables_the_endpoint(self):
        self.add("crm", "/status/410")
        with self.deliver() as run:
            self.publish()
            told = wait_for(lambda: (e := self.endpoint("crm"))["state"] == "disabled" and e)
            self.wait_states("crm", "Failed")
            run.wait_event("ENDPOINT-DISABLED", endpoint="crm")
            worker = run.events("WORKER-UP")[0]["worker"]
        self.assertEqual((told["reason"], told["switched_by"]), ("HTTP-410", worker))
        self.assertEqual(self.attempts("crm")[0]["error_code"], "HTTP-410")

    def test_an_endpoint_that_asks_for_a_pause_gets_it(self):
        self.add("busy", "/status/503?Retry-After=1800")
        self.add("other", "/ok/other")
        with self.deliver() as run:
            self.publish()
            run.wait_event("ENDPOINT-PAUSED", endpoint="busy")
            for count in range(2, 6):
                self.publish()
                self.wait_requests("/ok/other", count)
            self.assertEqual(len(self.server.of("/status/503?Retry-After=1800")), 1)
            self.assertEqual(run.end(), 0)
        self.assertEqual(sorted(j["retries"] for j in self.jobs("busy")), [0, 0, 0, 0, 1])

    def test_the_breaker_opens_and_closes(self):
        self.add("crm", "/first/3/500")
        with self.deliver("--webhook-failures", "3", "--webhook-open", "500ms") as run:
            self.publish()
            run.wait_event("ENDPOINT-OPENED", endpoint="crm")
            run.wait_event("ENDPOINT-CLOSED", endpoint="crm")
            self.wait_states("crm", "Succeeded")
        times = [r["at"] for r in self.server.of("/first/3/500")]
        self.assertEqual(len(times), 4)
        self.assertGreaterEqual(times[3] - times[2], 0.45)

    def test_an_endpoint_that_fails_for_long_is_disabled(self):
        self.add("crm", "/status/500")
        with self.deliver("--webhook-failures", "2", "--webhook-open", "10ms", "--webhook-disable-after", "1ms"):
            self.publish()
            told = wait_for(lambda: (e := self.endpoint("crm"))["state"] == "disabled" and e)
            self.assertRegex(told["reason"], "^failing for .*HTTP-500")
            # Enabled by hand, it is as if it had never failed; what waits comes.
            self.good("endpoint", "set", "crm", "--url", self.server.url("/ok/crm"))
            self.good("endpoint", "enable", "crm")
            self.wait_states("crm", "Succeeded")

    def test_which_4xx_fail_at_once_is_a_setting(self):
        self.add("crm", "/status/404", "--fail-statuses", "404")
        self.add("erp", "/status/404", "--max-retries", "2")
        with self.deliver():
            self.publish()
            self.wait_states("crm", "Failed")
            self.wait_states("erp", "Failed")
        self.assertEqual([len(self.attempts(name)) for name in ("crm", "erp")], [1, 3])

    def test_a_connection_that_is_closed_when_it_is_used_again(self):
        """The silent second send is seen."""
        self.add("crm", "/reuse")
        with self.deliver("--verbose", "--metrics-listen", "0") as run:
            self.publish()
            self.wait_states("crm", "Succeeded")
            self.publish()
            self.wait_states("crm", "Succeeded", "Succeeded")
            run.wait_event("DELIVERY", sends="2", reason="delivered")
            self.assertEqual(run.figure("pawl_delivery_sends_total"), 3)
            self.assertEqual(run.figure('pawl_deliveries_total{answer="2xx"}'), 2)
        self.assertEqual(len(self.server.requests), 3)
        told = [self.json("attempts", job["id"])["attempts"][0]["wire_sends"] for job in self.jobs("crm")]
        self.assertEqual(sorted(told), [1, 2])  # on record, of the one that it is true of
        self.assertRegex(self.good("attempts", next(j["id"] for j in self.jobs("crm"))).splitlines()[0], "SENDS")

    # ---- again

    def test_an_event_is_replayed(self):
        """The same id and body, byte for byte, and a signature of its own; once for each name."""
        secret = self.add("crm", "/ok/crm", "--format", "cloudevents-structured", topics="replay.*")
        self.add("other", "/ok/other", topics="replay.*")
        with self.deliver():
            event = self.publish(kind="replay.a", payload='{"n":  1.0}')
            self.publish(kind="replay.b")
            self.wait_states("crm", "Succeeded", "Succeeded")
            self.assertEqual(self.json("endpoint", "replay", "crm", "--event", event)["jobs"], 1)
            self.assertEqual(self.good("endpoint", "replay", "crm", "--event", event, "--as", "r"), "1 events, 1 to be delivered\n")
            self.assertEqual(self.good("endpoint", "replay", "crm", "--since", "1h", "--as", "r"), "2 events, 1 to be delivered\n")
            self.assertEqual(self.good("endpoint", "replay", "crm", "--since", "1h", "--missed"), "2 events, 0 to be delivered\n")
            self.assertEqual(self.json("endpoint", "replay", "crm", "--since", "2h", "--until", "1h")["events"], 0)
            self.wait_states("crm", *["Succeeded"] * 5)
        requests = [r for r in self.server.of("/ok/crm") if r["headers"]["webhook-id"] == event]
        self.assertEqual(len(requests), 3)
        self.assertEqual(len({r["body"] for r in requests}), 1)
        self.assertIn(b'{"n":  1.0}', body(requests[0]))
        for request in requests:
            self.assertIn(signed(secret, request), signatures(request))
        self.assertEqual(len(self.server.of("/ok/other")), 2)  # to one endpoint, and no other
        self.refused(65, "not, or no longer, kept", "endpoint", "replay", "crm", "--event", "nobody")
        self.refused(64, "say --event, or --since", "endpoint", "replay", "crm")

    def test_enabling_sends_again_what_is_asked(self):
        self.add("crm", "/status/404", "--fail-statuses", "404", topics="missed")
        with self.deliver():
            first = self.publish(kind="missed")
            self.wait_states("crm", "Failed")
        self.good("endpoint", "disable", "crm")
        self.pawl("publish", "missed", "{}", "--id", "missed")
        self.pawl("publish", "missed", "{}", "--id", "not-kept", "--keep", "0s")
        self.good("endpoint", "set", "crm", "--url", self.server.url("/ok/crm"))
        self.assertEqual(self.good("endpoint", "enable", "crm"), "")
        self.assertEqual(self.good("endpoint", "disable", "crm"), "")
        self.assertEqual(self.good("endpoint", "enable", "crm", "--redrive"), "1 redriven, 0 replayed\n")
        self.assertEqual(self.good("endpoint", "replay", "crm", "--since", "1h", "--missed"), "2 events, 1 to be delivered\n")
        self.good("endpoint", "disable", "crm")
        self.pawl("publish", "missed", "{}", "--id", "missed-2")
        self.assertEqual(self.good("endpoint", "enable", "crm", "--redrive", "--missed"), "0 redriven, 1 replayed\n")
        with self.deliver():
            self.wait_states("crm", *["Succeeded"] * 3)
        self.assertEqual({r["headers"]["webhook-id"] for r in self.server.of("/ok/crm")}, {first, "missed", "missed-2"})

    def test_since_when_it_fails_outlives_the_process(self):
        """And is forgotten by a success."""
        self.add("crm", "/status/500", "--max-retries", "10000")
        with self.deliver("--webhook-failures", "3", "--webhook-open", "10ms") as run:
            self.publish()
            since = wait_for(lambda: self.endpoint("crm").get("failing_since"))
            self.assertEqual(run.end(), 0)
        self.assertEqual(self.endpoint("crm")["failing_since"], since)
        self.shift_failing_since()
        with self.deliver("--webhook-failures", "3", "--webhook-open", "10ms", "--webhook-disable-after", "5d") as run:
            told = wait_for(lambda: (e := self.endpoint("crm"))["state"] == "disabled" and e)
            self.assertRegex(told["reason"], "^failing for 5d .*HTTP-500")
            run.wait_event("ENDPOINT-DISABLED", endpoint="crm")
            self.good("endpoint", "enable", "crm")
            wait_for(lambda: self.endpoint("crm").get("failing_since"))
            self.good("endpoint", "set", "crm", "--url", self.server.url("/ok/crm"))
            self.wait_states("crm", "Succeeded")
            wait_for(lambda: not self.endpoint("crm").get("failing_since"))
            self.assertEqual(self.endpoint("crm")["state"], "enabled")

    def test_an_attempt_that_is_lost_says_nothing_of_sends(self):
        """Unknown, not 0. FR-004: what a crashed process held is delivered by another, and no retry was used for it."""
        self.add("crm", "/hang", "--lease", "12s", "--timeout", "5m")
        with self.deliver() as run:
            self.publish()
            self.wait_requests("/hang", 1)
            run.process.kill()
            run.process.wait()
        self.good("endpoint", "set", "crm", "--url", self.server.url("/ok/crm"))
        with self.deliver():
            self.wait_states("crm", "Succeeded")
        (job,) = self.jobs("crm")
        self.assertEqual((job["retries"], job["lost_leases"]), (0, 1))
        lost, well = self.attempts("crm")
        self.assertEqual((lost["outcome"], lost.get("wire_sends")), ("ZOMBIE_REQUEUE", None))
        self.assertEqual((well["outcome"], well["wire_sends"]), ("DISPATCHED", 1))

    def test_it_leaves_no_core_dump(self):
        """Its memory holds secrets."""
        with self.deliver() as run:
            run.wait_event("WORKER-UP")
            limits = Path(f"/proc/{run.process.pid}/limits").read_text()
            self.assertRegex(limits, r"Max core file size +0 +0 +bytes")

    # ---- leases

    def test_an_endpoint_that_is_slower_than_the_lease(self):
        """NFR-002, FR-001: renewed while it lasts, and delivered to once. FR-003: at an interval that comes from the lease, and lies
        between 0 and it. NFR-001: by one call for all of them."""
        count = 6
        self.add("slow", "/wait/14000", "--lease", "12s", "--timeout", "60s")
        self.sql_publish(count)
        began = time.monotonic()
        with self.deliver("--verbose") as run:
            self.wait_states("slow", *["Succeeded"] * count)
            wait_for(lambda: len(run.events("JOB-OVER")) == count)
            took = time.monotonic() - began
            renewals = [int(e["rows"]) for e in run.events("CALL") if e["verb"] == "renew"]
            self.assertGreaterEqual(len(renewals), 2)  # a quarter of 12 s: four, or fewer where this machine is slow
            self.assertLessEqual(len(renewals), took / 2 + 1)
            self.assertEqual(max(renewals), count)
            time.sleep(4)  # longer than a beat: FR-001, it stops with the final update
            self.assertEqual(len([e for e in run.events("CALL") if e["verb"] == "renew"]), len(renewals))
        self.assertEqual(len(self.server.requests), count)
        self.assertEqual({len(self.json("attempts", job["id"])["attempts"]) for job in self.jobs("slow")}, {1})

    def test_a_lease_that_leaves_no_interval_is_refused(self):
        """FR-003: at once, with the value and what is allowed."""
        done = self.pawl("endpoint", "add", "bad", "--url", self.server.url("/ok"), "--topics", "*", "--lease", "50ms")
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, "lease.*50.*100")

    def test_a_refused_renewal_stops_the_request_on_the_wire(self):
        """FR-002, FR-005: that one and no other, with the reason in the log. NFR-005: and with all that it takes to act on it."""
        self.add("hung", "/hang", "--lease", "12s", "--timeout", "5m")
        self.add("other", "/wait/8000", "--lease", "12s", "--timeout", "60s")
        with self.deliver() as run:
            self.publish()
            (request,) = self.wait_requests("/hang", 1)
            (job,) = self.jobs("hung")
            self.good("cancel", job["id"])
            wait_for(lambda: request.get("gone"))
            refused = run.wait_event("RENEW-REFUSED", job=job["id"], code="CANCELLED")
            worker = run.events("WORKER-UP")[0]["worker"]
            self.assertEqual((refused["worker"], refused["queue"], refused["level"]), (worker, "webhook/hung", "warn"))
            run.wait_event("JOB-ABORT", job=job["id"], reason="cancelled")
            self.wait_states("hung", "Failed")
            self.wait_states("other", "Succeeded")
            self.assertEqual(len(run.events("JOB-ABORT")), 1)
        self.assertEqual(len(self.server.requests), 2)

    # ---- while it runs

    def test_endpoints_are_followed(self):
        with self.deliver() as run:
            run.wait_event("WORKER-UP")
            self.add("crm", "/ok/a")
            self.publish()
            self.wait_requests("/ok/a", 1)
            self.good("endpoint", "set", "crm", "--url", self.server.url("/ok/b"))
            time.sleep(1)  # asked every 200 ms; an event that comes too early is the old one's
            wait_for(lambda: self.publish() and self.server.of("/ok/b"))
            self.wait_states("crm", *["Succeeded"] * len(self.jobs("crm")))
            self.good("endpoint", "disable", "crm", "--reason", "moving")
            self.assertEqual(self.pawl("publish", "order.created", "{}").returncode, 0)  # to nobody
            self.good("endpoint", "remove", "crm")
            self.add("crm", "/ok/c")
            wait_for(lambda: self.publish() and self.server.of("/ok/c"))

    def test_it_ends_in_order(self):
        """RULE-020-030: what is under way is finished, and settled."""
        self.add("slow", "/wait/2000")
        with self.deliver() as run:
            self.publish()
            self.wait_requests("/wait/2000", 1)
            self.assertEqual(run.end(), 0)
        self.wait_states("slow", "Succeeded")
        self.assertEqual(len(self.server.requests), 1)

    def test_a_second_signal_ends_it_at_once(self):
        self.add("hung", "/hang", "--timeout", "5m")
        with self.deliver() as run:
            self.publish()
            (request,) = self.wait_requests("/hang", 1)
            run.process.send_signal(signal.SIGTERM)
            run.wait_event("WORKER-STOPPING", reason="shutdown")
            self.assertIn(run.end(), (0, 75))
            wait_for(lambda: request.get("gone"))
        (job,) = self.jobs("hung")
        self.assertEqual((job["state"], job["retries"]), ("Ready", 0))  # that uses no retry

    def test_a_rate_is_kept(self):
        self.add("crm", "/ok/crm", "--rate", "60")
        for _ in range(4):
            self.publish()
        with self.deliver():
            self.wait_states("crm", *["Succeeded"] * 4)
        times = [r["at"] for r in self.server.of("/ok/crm")]
        self.assertEqual(len(times), 4)
        self.assertGreaterEqual(times[3] - times[0], 2.9)

    def test_no_more_at_once_than_a_host_may_have(self):
        """Whichever endpoints it has; none of them waits for the other, and nothing is put back for it."""
        names, events = ("one", "two"), 30
        for name in names:
            self.add(name, f"/wait/20/{name}")
        self.sql_publish(events)
        with self.deliver("--webhook-per-host", "3", "--verbose") as run:
            for name in names:
                self.wait_states(name, *["Succeeded"] * events)
            self.assertEqual(run.end(), 0)
            tries = [e["attempt"] for e in run.events("JOB-OVER")]
        self.assertEqual(self.server.most_serving, 3)
        first = [r["path"] for r in self.server.requests[:events]]
        self.assertEqual(len(self.server.requests), len(names) * events)
        for name in names:
            self.assertGreaterEqual(first.count(f"/wait/20/{name}"), events // 4, first)
        self.assertEqual(len(tries), len(names) * events)

    def test_only_public_addresses_unless_allowed(self):
        self.add("crm", "/ok/crm", "--max-retries", "0")
        env = {**self.env, "PAWL_WEBHOOK_ALLOW": "10.0.0.1"}
        with self.deliver(env=env) as run:
            self.publish()
            self.wait_states("crm", "Failed")
            run.wait_event("ENDPOINT-REFUSED", endpoint="crm")
        self.assertEqual(self.attempts("crm")[0]["error_code"], "ADDRESS")
        self.assertEqual(self.server.connections, 0)


class SqliteTest(Cases, unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.env = {**CLEAN, "PAWL_STORE": f"sqlite:{self.folder}/pawl.db"}
        self.start_server()

    # ---- hostile endpoints: each with the right outcome on record, and none delays another

    def test_hostile_endpoints(self):
        paths = {
            "slow-headers": "TIMEOUT", "drip": None, "endless": None, "gzip": None, "big-header": "TOO-LARGE",
            "many-headers": "TOO-LARGE", "cut-header": "HEADERS-CUT", "reset-after-200": None, "short-body": None, "long-body": None,
            "close": "RESET", "informing": "TOO-LARGE", "early": None, "redirect": "HTTP-307", "junk": "PROTOCOL", "hang": "TIMEOUT",
            "endless-error": "HTTP-500",
        }
        for path in paths:
            # As long as it takes a busy machine, but for those that are to run into it.
            limit = {"slow-headers": "5s", "hang": "5s", "drip": "15s"}.get(path, "2m")
            self.add(path, f"/{path}", "--max-retries", "0", "--timeout", limit)
        self.add("good", "/ok/good")
        with self.deliver() as run:
            self.publish()
            self.wait_states("good", "Succeeded")
            for path, error in paths.items():
                self.wait_states(path, "Failed" if error else "Succeeded")
            size = int(Path(f"/proc/{run.process.pid}/statm").read_text().split()[1]) * 4096
            self.assertEqual(run.end(), 0)
        for path, error in paths.items():
            (attempt,) = self.attempts(path)
            self.assertEqual(attempt.get("error_code"), error, path)
            self.assertEqual(len(self.server.of(f"/{path}")), 1, path)  # no redirect is followed, and nothing is sent again
        self.assertLess(size, 256 << 20)

    def test_endpoints_that_hang_delay_nobody_else(self):
        """The noisy neighbour: those that hang take half of the slots at the most."""
        for i in range(8):
            self.add(f"hung-{i}", f"/hang/{i}", "--timeout", "5m")
        for i in range(8):
            self.add(f"good-{i}", f"/ok/{i}")
        for _ in range(20):
            self.publish()
        with self.deliver("--webhook-parallel", "32", "--grace", "100ms") as run:
            for i in range(8):
                self.wait_requests(f"/ok/{i}", 20)
                self.wait_requests(f"/hang/{i}", 1)
            hung = sum(len(self.server.of(f"/hang/{i}")) for i in range(8))
            self.assertLessEqual(hung, 16 + 8)  # the first one was known before the others
            run.process.send_signal(signal.SIGTERM)
            run.wait_event("WORKER-STOPPING")
            run.end()

    def test_what_waits_for_its_host(self):
        """It can be cancelled, is sent when there is room, and is due again where there was none until the end."""
        self.add("hung", "/hang/1", "--timeout", "5m", topics="hung")
        self.add("other", "/ok/other", "--lease", "12s", topics="other")

        def wait(**states):
            wait_for(lambda: collections.Counter(j["state"] for j in self.jobs("other")) == states)

        def fill(hangs, **states):
            """One is delivered, so that the endpoint is known; then the host has no room, and the next one waits for it."""
            self.publish(kind="other")
            wait(**states)
            self.publish(kind="hung")
            self.wait_requests("/hang/1", hangs)
            self.publish(kind="other")
            wait(InFlight=1, **states)
        with self.deliver("--webhook-per-host", "1") as run:
            fill(1, Succeeded=1)
            self.good("cancel", next(j["id"] for j in self.jobs("other") if j["state"] == "InFlight"))
            wait(Succeeded=1, Failed=1)
            self.assertEqual(len(self.server.of("/ok/other")), 1)
            self.publish(kind="other")
            self.server.released = True
            wait(Succeeded=2, Failed=1)
            self.wait_states("hung", "Succeeded")
            self.assertEqual(run.end(), 0)
        self.server.released = False
        with self.deliver("--webhook-per-host", "1") as run:
            fill(2, Succeeded=3, Failed=1)
            run.process.send_signal(signal.SIGTERM)
            run.wait_event("WORKER-STOPPING", reason="shutdown")
            code = run.end()
        self.assertIn(code, (0, 75))
        if code == 0:  # else it had no time to say so, on a machine that stood still
            wait(Succeeded=3, Failed=1, Ready=1)
            self.assertEqual([j["retries"] for j in self.jobs("other") if j["state"] == "Ready"], [0])
        self.assertEqual(len(self.server.of("/ok/other")), 3)

    def test_endpoints_that_begin_to_hang_delay_nobody_else(self):
        """Although they have answered well so far, and are let send as much as any."""
        for i in range(4):
            self.add(f"hung-{i}", f"/until/20/{i}", "--timeout", "5m")
            self.add(f"good-{i}", f"/ok/{i}")
        self.sql_publish(100)
        with self.deliver("--webhook-parallel", "32", "--grace", "100ms") as run:
            for i in range(4):
                self.wait_requests(f"/ok/{i}", 100)
                wait_for(lambda i=i: len(self.server.of(f"/until/20/{i}")) > 20)
            self.assertLess(self.server.waiting, 32)
            run.process.send_signal(signal.SIGTERM)
            run.wait_event("WORKER-STOPPING")
            run.end()

    def test_many_that_are_slow_at_once(self):
        """Without a thread each: the window grows with successes, and then they hang."""
        self.add("slow", "/until/300", "--timeout", "5m", "--max-in-flight", "300")
        self.sql_publish(700)
        with self.deliver("--webhook-parallel", "1000") as run:
            wait_for(lambda: self.server.waiting >= 200)
            status = Path(f"/proc/{run.process.pid}/status").read_text()
            threads = int(next(line for line in status.splitlines() if line.startswith("Threads:")).split()[1])
            self.assertLess(threads, 16)
            self.server.released = True
            wait_for(lambda: len(self.server.requests) >= 700)
            self.assertEqual(run.end(), 0)

    def sql_publish(self, count):
        db = sqlite3.connect(f"{self.folder}/pawl.db", timeout=60)
        with db:
            db.executemany("INSERT INTO pawl_publish (type, payload) VALUES ('order.created', ?)", [(b"{}",)] * count)
        db.close()

    def shift_failing_since(self):
        db = sqlite3.connect(f"{self.folder}/pawl.db", timeout=60)
        with db:
            db.execute("UPDATE pawl_endpoint SET failing_since = failing_since - 6 * 86400 * 1000000")
        db.close()

    # ---- a lease that is another's

    def test_a_lost_lease_stops_the_request_on_the_wire(self):
        """FR-002: the row says that it is another's."""
        self.add("hung", "/hang", "--lease", "12s", "--timeout", "5m")
        with self.deliver() as run:
            self.publish()
            (request,) = self.wait_requests("/hang", 1)
            (job,) = self.jobs("hung")
            db = sqlite3.connect(f"{self.folder}/pawl.db", timeout=60)
            with db:
                self.assertEqual(db.execute("UPDATE pawl_job SET lease_token = randomblob(16) WHERE lease_token IS NOT NULL").rowcount, 1)
            db.close()
            wait_for(lambda: request.get("gone"))
            run.wait_event("RENEW-REFUSED", job=job["id"], code="STALE")
            run.wait_event("JOB-OVER", job=job["id"], reason="lease_lost")
        self.assertEqual(self.attempts("hung"), [])  # nothing is recorded by who has lost it

    # ---- TLS

    def certificate(self, name, subject, days):
        """A certificate of the test's own authority: its file and its key's."""
        folder = Path(self.folder)
        key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        quiet = {"check": True, "capture_output": True, "cwd": folder}
        if not (folder / "ca.pem").exists():
            subprocess.run(["openssl", "req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=ca", "-days", "2"],
                           **quiet)
        subprocess.run(["openssl", "req", *key, "-keyout", f"{name}.key", "-out", f"{name}.req", "-subj", "/CN=endpoint"], **quiet)
        (folder / f"{name}.ext").write_text(f"subjectAltName={subject}\n")
        subprocess.run(["openssl", "x509", "-req", "-in", f"{name}.req", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
                        "-days", str(days), "-extfile", f"{name}.ext", "-out", f"{name}.pem"], **quiet)
        return folder / f"{name}.pem", folder / f"{name}.key"

    def tls_server(self, pem, key):
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(pem, key)
        server = hostile.Server(ssl_context=context)
        self.addCleanup(server.stop)
        return server

    def test_certificates(self):
        good = self.tls_server(*self.certificate("good", "IP:127.0.0.1", 2))
        old = self.tls_server(*self.certificate("old", "IP:127.0.0.1", -1))
        other = self.tls_server(*self.certificate("other", "DNS:other.example", 2))
        alone = Path(self.folder) / "alone.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
                        "alone.key", "-out", alone, "-subj", "/CN=alone", "-addext", "subjectAltName=IP:127.0.0.1"], check=True,
                       capture_output=True, cwd=self.folder)
        alone = self.tls_server(alone, Path(self.folder) / "alone.key")
        self.env = {**self.env, **self.allowed(self.server, good, old, other, alone)}
        for name, server in {"good": good, "old": old, "other": other, "alone": alone}.items():
            self.add(name, "/ok", "--max-retries", "0", server=server)
        with self.deliver("--webhook-ca", f"{self.folder}/ca.pem"):
            self.publish()
            self.wait_states("good", "Succeeded")
            for name in ("old", "other", "alone"):
                self.wait_states(name, "Failed")
        for name in ("old", "other", "alone"):
            self.assertEqual(self.attempts(name)[0]["error_code"], "TLS", name)
        self.assertEqual([len(s.requests) for s in (good, old, other, alone)], [1, 0, 0, 0])

    def test_through_a_proxy(self):
        """What the endpoint answers counts; that the proxy has made a tunnel is no answer."""
        pem, key = self.certificate("good", "IP:127.0.0.1", 2)
        good = self.tls_server(pem, key)
        bad = self.tls_server(*self.certificate("other", "DNS:other.example", 2))
        proxy = Tunnels()
        self.addCleanup(proxy.stop)
        env = {**self.env, **self.allowed(good, bad), "PAWL_WEBHOOK_CA": str(Path(self.folder) / "ca.pem"),
               "PAWL_WEBHOOK_PROXY": proxy.url}
        self.env = env
        self.add("good", "/ok", server=good)
        self.add("bad", "/ok", "--max-retries", "0", server=bad)
        self.publish()
        with self.deliver(env=env):
            self.wait_states("good", "Succeeded")
            self.wait_states("bad", "Failed")
        self.assertEqual(self.attempts("bad")[0]["error_code"], "TLS")
        self.assertEqual(len(good.requests), 1)
        self.assertEqual(len(bad.requests), 0)
        self.assertGreaterEqual(proxy.count, 2)

    def test_words_that_are_refused(self):
        for complaint, *words in (("--webhook-ports", "--webhook-ports", "x"), ("--webhook-allow", "--webhook-allow", "10.0.0.1/8"),
                                  ("source", "--webhook-source", "a b"), ("descriptors", "--webhook-parallel", "9999999")):
            done = self.pawl("deliver", *words)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(complaint, done.stderr)


class PostgresTest(Cases, unittest.TestCase):
    world = None

    def sql_publish(self, count):
        self.world.sql(self.database, f"select pawl.publish('order.created', convert_to('{{}}', 'UTF8')) from generate_series(1, {count})")

    def shift_failing_since(self):
        self.world.sql(self.database, "update pawl.endpoint set failing_since = failing_since - interval '6 days'")

    def setUp(self):
        self.database = database = self.world.database(2)
        self.env = {**CLEAN, "DATABASE_URL": f"postgresql:///{database}?host={self.world.server.folder}"
                                             f"&user={self.world.server.user}"}
        self.start_server()


if __name__ == "__main__":
    with pg.World(Store.program) as PostgresTest.world:
        tap.main()
