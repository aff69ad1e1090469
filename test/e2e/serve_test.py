#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""serve_test.py - `pawl serve` from outside: curl, http.client, bare sockets, and what they must not do."""

import http.client
import http.server
import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

import yaml

TOP = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TOP / "test" / "support"))
import tap  # noqa: E402
from running import CLEAN, WAIT_SECONDS, wait_for  # noqa: E402
from serving import JSON, Server  # noqa: E402

PAWL = sys.argv[1]


class Receiver:
    """An endpoint of webhooks: takes what comes."""

    def __init__(self):
        got = self.got = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                got.append((self.headers, self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def end(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(WAIT_SECONDS)

    def url(self):
        return f"http://127.0.0.1:{self.server.server_port}/hook"

    def allowed(self):
        return ("--webhook-http", "--webhook-allow", "127.0.0.1", "--webhook-ports", self.server.server_port)


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="pawl-serve-")
        self.addCleanup(self.folder.cleanup)

    def server(self, *options, **more):
        server = Server(PAWL, self.folder.name, *options, **more)
        self.addCleanup(server.__exit__)
        return server.up()

    def receiver(self):
        receiver = Receiver()
        self.addCleanup(receiver.end)
        return receiver

    def token(self, name, *options):
        done = subprocess.run([PAWL, "token", "add", name, "--tokens", f"{self.folder.name}/tokens", *options],
                              env=CLEAN, capture_output=True, text=True, check=True)
        return done.stdout.strip()


class Protocol(Case):
    def curl(self, server, *words, status=200):
        done = subprocess.run(["curl", "-sS", "-w", "\n%{http_code}", *words[:-1], f"http://{server.address()}{words[-1]}"],
                              env=CLEAN, capture_output=True, text=True, check=True, timeout=WAIT_SECONDS)
        body, _, code = done.stdout.rpartition("\n")
        self.assertEqual(int(code), status, body)
        return json.loads(body)

    def test_a_worker_in_curl(self):
        server = self.server()
        made = self.curl(server, "-H", "Content-Type: text/plain", "--data-binary", "to: 17", "/v1/queues/mail/jobs?priority=1",
                         status=201)
        job = self.curl(server, "--json", '{"worker": "curl", "queues": [{"queue": "mail", "lease": "20s"}]}', "/v1/claim")["jobs"][0]
        self.assertEqual((job["id"], job["payload"], job["headers"]), (made["id"], "to: 17", {"content-type": "text/plain"}))
        proof = {"worker": "curl", "token": job["token"], "version": job["lease_version"]}
        at = f"/v1/jobs/{job['id']}"
        self.assertEqual(self.curl(server, "--json", json.dumps(proof), at + "/renew")["lease_ms"], 30000)
        done = {**proof, "action": "succeed"}
        self.assertEqual(self.curl(server, "--json", json.dumps(done), at + "/settle")["state"], "Succeeded")
        self.assertEqual(self.curl(server, "--json", json.dumps(done), at + "/settle")["state"], "Succeeded")  # repeated
        problem = self.curl(server, "--json", json.dumps({**proof, "action": "fail"}), at + "/settle", status=409)  # Q-STALE
        self.assertEqual(problem["type"], "urn:pawl:problem:stale")
        self.assertEqual(self.curl(server, at + "/attempts")["attempts"][0]["outcome"], "DISPATCHED")

    def test_a_worker_in_node(self):
        """Node's fetch: produces, listens, claims, renews, settles, and reads problems."""
        server = self.server()
        done = subprocess.run(["node", TOP / "test" / "e2e" / "serve_client.mjs", f"http://{server.address()}"], env=CLEAN,
                              capture_output=True, text=True, check=False, timeout=WAIT_SECONDS)
        self.assertEqual((done.returncode, done.stdout), (0, "done\n"), done.stderr)

    def test_one_connection_for_many_requests(self):
        server = self.server()
        connection = server.connection()
        self.addCleanup(connection.close)
        connection.connect()
        sock = connection.sock
        for i in range(5):
            server.good("POST", "/v1/queues/q/jobs", f"{i}", status=201, connection=connection)
        jobs = server.good("POST", "/v1/claim", {"worker": "w", "max": 9, "queues": [{"queue": "q"}]}, connection=connection)["jobs"]
        self.assertEqual([job["payload"] for job in jobs], list("01234"))
        self.assertIs(connection.sock, sock)

    def test_bytes_stay_as_they_are(self):
        server = self.server()
        payload = bytes(range(256)) * 4000
        made = server.good("POST", "/v1/queues/q/jobs", payload, {"Content-Type": "image/png"}, status=201)
        status, headers, got = server.call("GET", f"/v1/jobs/{made['id']}/payload")
        self.assertEqual((status, headers["Content-Type"], got), (200, "image/png", payload))
        self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
        self.assertIn("payload_base64", server.claim()[0])

    def test_lines_come_in_pieces(self):
        """More than is carried out at once, in chunks that cut lines anywhere."""
        server = self.server()
        lines = [json.dumps({"queue": "q", "payload": "x" * 400, "priority": i % 10}).encode() + b"\n" for i in range(5000)]
        lines[2500] = b'{"queue": \n'
        text = b"".join(lines)
        pieces = (text[at:at + 70001] for at in range(0, len(text), 70001))
        status, headers, got = server.call("POST", "/v1/jobs/stream", pieces, {"Content-Type": "application/x-ndjson"})
        self.assertEqual((status, headers["Content-Type"]), (200, "application/x-ndjson"))
        rows = [json.loads(line) for line in got.splitlines()]
        self.assertEqual([row["line"] for row in rows], list(range(1, 5001)))
        self.assertEqual([row["line"] for row in rows if row["verdict"] != "OK"], [2501])
        self.assertEqual(server.stats()["ready"], 4999)

    def test_lines_that_were_taken_are_told_whatever_comes_behind_them(self):
        """A line without an answer was not taken: where the server ends a stream, those before have theirs all the same."""
        server = self.server()
        line = json.dumps({"queue": "q", "payload": "x" * 1000}).encode() + b"\n"
        for name, lines, behind, text in (
                ("too long", line * 1500, b'"' + b"y" * (5 << 20), "bytes at most"),
                # And so many bytes that are of no use that a request which has done nothing is cut off for them.
                ("too many", b"x\n" * 100_000, (b"y" * 1023 + b"\n") * (20 << 10), "lines at most")):
            with self.subTest(name):
                status, headers, got = server.call("POST", "/v1/jobs/stream", iter((lines, behind)),
                                                   {"Content-Type": "application/x-ndjson"})
                self.assertEqual((status, headers["Content-Type"]), (200, "application/x-ndjson"), got[:200])
                rows = [json.loads(row) for row in got.splitlines()]
                self.assertEqual([row["line"] for row in rows], list(range(1, lines.count(b"\n") + 2)))
                self.assertIn(text, rows[-1]["detail"])
        self.assertEqual(server.stats()["ready"], 1500)

    def test_a_claim_waits_for_work(self):
        server = self.server()
        got = []
        thread = threading.Thread(target=lambda: got.extend(server.claim(wait="30s")))
        thread.start()
        wait_for(lambda: server.figure("pawl_http_claims_waiting") == 1)
        server.good("POST", "/v1/queues/q/jobs", "x", status=201)
        thread.join(WAIT_SECONDS)
        self.assertEqual([job["payload"] for job in got], ["x"])
        self.assertEqual(server.claim(wait="10ms"), [])  # its time is up

    def test_many_wait_behind_one_thread(self):
        server = self.server("--threads", "2")
        threads_before = server.figure("process_threads")
        got = []
        waiting = [threading.Thread(target=lambda: got.extend(server.claim(worker="w", wait="30s"))) for _ in range(40)]
        for thread in waiting:
            thread.start()
        wait_for(lambda: server.figure("pawl_http_claims_waiting") == 40)
        self.assertEqual(server.figure("process_threads"), threads_before)
        self.assertEqual(server.stats()["ready"], 0)  # others are answered meanwhile
        server.good("POST", "/v1/jobs", {"jobs": [{"queue": "q", "payload": i} for i in range(40)]})
        for thread in waiting:
            thread.join(WAIT_SECONDS)
        self.assertEqual(sorted(int(job["payload"]) for job in got), list(range(40)))

    def test_who_has_gone_gets_nothing(self):
        server = self.server()

        def version_after_one_has_gone(queue):
            body = json.dumps({"worker": "gone", "wait": "30s", "queues": [{"queue": queue}]})
            with socket.create_connection(server.host_port(), timeout=WAIT_SECONDS) as sock:
                sock.sendall(f"POST /v1/claim HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
                wait_for(lambda: server.figure("pawl_http_claims_waiting") == 1)
            server.good("POST", f"/v1/queues/{queue}/jobs", "x", status=201)
            wait_for(lambda: server.figure("pawl_http_claims_waiting") == 0)
            return wait_for(lambda: server.claim("here", queue))[0]["lease_version"]

        # A claim that was in the store's hands as its client went brings the job, which is given back: that is the second lease then.
        # It cannot be so each time.
        versions = []
        while len(versions) < 10 and 1 not in versions:
            versions.append(version_after_one_has_gone(f"q{len(versions)}"))
        self.assertIn(1, versions)
        self.assertLessEqual(set(versions), {1, 2})

    def test_figures_are_documented(self):
        server = self.server()
        document = (TOP / "docs" / "serve.md").read_text(encoding="utf-8")
        served = dict(re.findall(r"^# TYPE (pawl_http_\S+) (\S+)$", server.metrics(), re.MULTILINE))
        self.assertEqual(dict(re.findall(r"^\| `(pawl_http_\w+)` \| (\w+) \|", document, re.MULTILINE)), served)


DOCUMENT = yaml.safe_load((TOP / "docs" / "openapi.yaml").read_text(encoding="utf-8"))
EVENTS = DOCUMENT["paths"]["/v1/changes"]["get"]["responses"]["200"]["content"]["text/event-stream"]["x-pawl-events"]
ID = "01890a5d-ac96-774b-bcce-b302099a8057"


def resolve(schema):
    while "$ref" in schema:
        found = DOCUMENT
        for part in schema["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        schema = found
    return schema


def check_schema(schema, value, where):
    """A value against a schema: of the words of JSON Schema, those that the document uses."""
    schema = resolve(schema)
    kinds = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool, "null": type(None)}
    wanted = schema.get("type", [])
    wanted = [wanted] if isinstance(wanted, str) else wanted
    fits = [isinstance(value, kinds[kind]) and (kind == "boolean" or not isinstance(value, bool)) for kind in wanted]
    assert not wanted or any(fits), (where, value, wanted)
    assert "enum" not in schema or value in schema["enum"], (where, value)
    assert "pattern" not in schema or re.search(schema["pattern"], value), (where, value)
    if isinstance(value, dict) and "properties" in schema:
        assert set(schema.get("required", [])) <= set(value) <= set(schema["properties"]), (where, value)
        for name, member in value.items():
            check_schema(schema["properties"][name], member, f"{where}.{name}")
    if isinstance(value, list):
        for member in value:
            check_schema(schema["items"], member, where + "[]")


class OpenApi(Case):
    """docs/openapi.yaml and the program say the same."""

    def operations(self):
        for path, methods in DOCUMENT["paths"].items():
            for method, operation in methods.items():
                yield path, method.upper(), operation

    def resolve(self, schema):
        return resolve(schema)

    def check(self, schema, value, where):
        check_schema(schema, value, where)

    def test_it_has_the_routes_of_the_program(self):
        routes = {tuple(row.split()[:6]) for row in
                  subprocess.run([PAWL, "serve", "--routes"], capture_output=True, text=True, check=True).stdout.splitlines()}
        bodies = {"application/json": "json", "application/x-ndjson": "lines", "*/*": "bytes", None: "-"}
        told = set()
        for path, method, operation in self.operations():
            content = next(iter(operation.get("requestBody", {}).get("content", {None: 0})))
            reach = operation["x-pawl-queues"].replace("none", "-")
            told.add((operation["operationId"], method, path, operation["x-pawl-scope"], reach, bodies[content]))
            self.assertEqual(operation["x-pawl-scope"] == "none", operation.get("security") == [])
            captures = [p["name"] for p in operation.get("parameters", []) if p["in"] == "path"]
            self.assertEqual(captures, re.findall(r"{(\w+)}", path))
        self.assertEqual(told, routes)

    def known(self, text):
        """The names that a refusal lists."""
        found = re.search(r"is not known here; there (?:are: (.*)|is none)$", text)
        self.assertTrue(found, text)
        return set((found.group(1) or "").split(", ")) - {""}

    def test_it_has_the_parameters_and_fields_of_the_program(self):
        """Whoever asks for what there is not is told what there is."""
        server = self.server()
        for path, method, operation in self.operations():
            name = operation["operationId"]
            target = path.replace("{id}", ID).replace("{queue}", "q").replace("{domain}", "d").replace("{name}", "n").replace("{type}", "t")
            query = {p["name"] for p in operation.get("parameters", []) if p["in"] == "query"}
            body = operation.get("requestBody", {}).get("content", {})
            if operation["x-pawl-scope"] != "none" and name != "metrics":
                _, _, got = server.call(method, target + "?none=1", "{}" if body else None)
                self.assertEqual(self.known(json.loads(got)["detail"]), query, name)
            if "application/json" in body:
                status, _, got = server.call(method, target, {"none": 1})
                self.assertEqual(status, 400, name)
                schema = self.resolve(body["application/json"]["schema"])
                self.assertEqual(self.known(json.loads(got)["detail"]), set(schema["properties"]), name)

    def test_real_answers_are_as_it_says(self):
        receiver = self.receiver()
        server = self.server(*receiver.allowed())
        seen = set()

        def ask(route, body=None, query="", **captures):
            name = route
            path, method, operation = next(row for row in self.operations() if row[2]["operationId"] == name)
            status, headers, got = server.call(method, path.format(**captures) + query, body)
            self.assertIn(str(status), operation["responses"], (name, got))
            content = operation["responses"][str(status)]["content"]
            kind = headers["Content-Type"].partition(";")[0]
            self.assertTrue(kind in content or "*/*" in content, (name, kind))
            seen.add(name)
            if kind != "application/json" or name == "payload":
                return got
            self.check(content[kind]["schema"], json.loads(got), name)
            return json.loads(got)

        def proof(of, **more):
            return {"token": of["token"], "version": of["lease_version"], **more}
        for name in ("livez", "readyz", "metrics", "workers"):
            wait_for(lambda: server.call("GET", "/readyz")[0] == 200)
            ask(name)
        one = ask("enqueue", "x", "?ordering_key=k", queue="q")["id"]
        ask("enqueue-many", {"jobs": [{"queue": "q", "payload": i} for i in range(7)]})
        ask("enqueue-lines", '{"queue": "q"}\n')
        jobs = ask("claim", {"worker": "w", "max": 6, "queues": [{"queue": "q"}]})["jobs"]
        self.assertEqual(len(jobs), 6)
        ask("mine", {"worker": "w"})
        ask("renew", {"worker": "w", "leases": [proof(jobs[0], job=jobs[0]["id"]), proof(jobs[0], job=jobs[1]["id"])]})
        ask("settle", {"worker": "w", "leases": [proof(jobs[0], job=jobs[0]["id"], action="succeed")]})
        ask("release", {"worker": "w", "leases": [proof(jobs[1], job=jobs[1]["id"])]})
        ask("renew-one", proof(jobs[2], worker="w"), id=jobs[2]["id"])
        ask("settle-one", proof(jobs[2], worker="w", action="fail", error_code="E"), id=jobs[2]["id"])
        ask("release-one", proof(jobs[3], worker="w"), id=jobs[3]["id"])
        ask("settle-one", proof(jobs[4], worker="w", action="fail"), id=jobs[4]["id"])
        ask("jobs", query="?limit=3")
        for name in ("job", "payload", "attempts"):
            ask(name, id=jobs[2]["id"])
        ask("leases")
        ask("redrive-one", id=jobs[2]["id"])
        ask("cancel-one", id=jobs[2]["id"])
        ask("discard-one", id=jobs[2]["id"])
        ask("redrive", {"ids": [jobs[4]["id"], one]})
        ask("cancel", {"filter": {"queue": "q"}})
        ask("discard", {"filter": {"queue": "q"}})
        ask("queues")
        self.assertEqual([row["queue"] for row in ask("stats")["queues"]], ["q"])
        ask("queue", queue="q")
        ask("queue-set", {"keep_failed_ms": "forever"}, queue="q")
        ask("queue-stats", queue="q")
        ask("pause", queue="q")
        ask("resume", queue="q")
        first = ask("worklease-acquire", {"offset": 1, "owner": "a", "lease": "60s"}, domain="d")
        ask("worklease-acquire", {"offset": 2, "owner": "a"}, domain="d")
        hold = {"owner": "a", "token": first["token"]}
        ask("worklease-renew", {**hold, "lease": "90s"}, domain="d")
        ask("worklease-fail", hold, domain="d")
        for name in ("workleases", "worklease", "worklease-backlog"):
            ask(name, domain="d")
        ask("worklease-succeed", hold, domain="d")
        ask("worklease-terminal", domain="d")
        ask("endpoint-add", {"url": receiver.url(), "topics": "order.*", "headers": {"x-a": "b"}}, name="crm")
        self.assertEqual(ask("publish", "x", "?ordering_key=k", type="order.made")["jobs"], 1)
        ask("publish-many", {"events": [{"type": "order.paid", "payload": {"a": 1}}, {"type": "other"}]})
        ask("endpoints")
        ask("endpoint", name="crm")
        ask("endpoint-set", {"format": "cloudevents-binary", "fail_statuses": "404,400"}, name="crm")
        ask("endpoint-rotate", {"is_key_pair": True, "overlap": "1h"}, name="crm")
        self.assertTrue(ask("endpoint-test", name="crm")["is_delivered"])
        ask("endpoint-disable", {"reason": "why not"}, name="crm")
        ask("endpoint-enable", {}, name="crm")
        ask("cancel", {"filter": {"queue": "webhook/crm"}})
        ask("endpoint-remove", name="crm")
        seen.add("changes")  # which has no end: see Changes
        self.assertEqual(seen, {operation["operationId"] for _, _, operation in self.operations()})
        status, headers, got = server.call("GET", "/v1/jobs/x")
        self.assertEqual((status, headers["Content-Type"]), (400, "application/problem+json"))
        self.check(DOCUMENT["components"]["schemas"]["Problem"], json.loads(got), "problem")


class Settings(Case):
    def test_etags_of_all_forms(self):
        """RFC 9110: who reads takes a weak one, who changes does not; lists, and lines that make up a list."""
        server = self.server()
        etag = server.call("GET", "/v1/queues/q")[1]["ETag"]

        def status(method, name, *values):
            lines = "".join(f"{name}: {value}\r\n" for value in values)
            body = "{}" if method == "PUT" else ""
            answer = server.raw(f"{method} /v1/queues/q HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{lines}"
                                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
            return int(answer.split()[1])
        for values, known, is_same in (
                ((etag,), 304, 200), (("W/" + etag,), 304, 412), (("*",), 304, 200), (('"x"',), 200, 412), (('"x"', etag), 304, 200),
                ((etag, '"x"'), 304, 200), ((f'"x", {etag}',), 304, 200), ((f'"x" ,,W/{etag},{etag} ',), 304, 200),
                ((f'"{etag[1:-1]}x"',), 200, 412), ((f'"x{etag[1:-1]}"',), 200, 412), ((etag[1:-1],), 200, 412), (("",), 200, 412)):
            self.assertEqual(status("GET", "If-None-Match", *values), known, values)
            self.assertEqual(status("PUT", "If-Match", *values), is_same, values)
        self.assertEqual(status("PUT", "If-None-Match"), 200)

    def test_one_of_those_who_saw_the_same_wins(self):
        """At one server and at two."""
        servers = [self.server(), self.server()]
        body = '{"url": "https://hooks.example.com/", "topics": "*"}'
        self.assertEqual(servers[0].call("POST", "/v1/endpoints/e", body, JSON)[0], 201)
        for method, path, name in (("PUT", "/v1/queues/q", "lease_ms"), ("PATCH", "/v1/endpoints/e", "timeout_ms")):
            for turn in range(25):
                etag = servers[0].call("GET", path)[1]["ETag"]
                together = threading.Barrier(4)
                got = []

                def change(i, at=(method, path), field=name, match=etag, turn=turn, got=got, together=together):
                    together.wait()
                    got.append(servers[i % 2].call(*at, {field: 10_000 + 10 * turn + i}, {"If-Match": match})[0])
                threads = [threading.Thread(target=change, args=(i,)) for i in range(4)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join(WAIT_SECONDS)
                self.assertEqual(sorted(got), [200, 412, 412, 412], path)


class Once(Case):
    """Idempotency-Key: see ADR 0022."""

    STATEMENTS = {
        "under way": "update pawl_once set answer = null, held_until = held_until * 2",
        "died": "update pawl_once set answer = null, held_until = 0",
        "expired": "update pawl_once set expires_at = 1",
        "gone": "delete from pawl_once",
        "there": "update pawl_once set seed = seed",
    }

    def change(self, what):
        """Let the keys that are there be so; gives how many there were."""
        with sqlite3.connect(f"{self.folder.name}/jobs.db", timeout=WAIT_SECONDS) as file:
            changed = file.execute(self.STATEMENTS[what]).rowcount
        file.close()
        return changed

    def test_a_request_is_carried_out_once(self):
        server = self.server()
        key = {"Idempotency-Key": "order 17", "Content-Type": "text/plain"}
        first = server.call("POST", "/v1/queues/q/jobs?priority=3", "x", key)
        self.assertEqual((first[0], first[1]["Idempotency-Replayed"]), (201, None))
        server.end()
        server = self.server()  # it is the store that remembers
        again = server.call("POST", "/v1/queues/q/jobs?priority=3", "x", key)
        self.assertEqual((again[0], again[2], again[1]["Idempotency-Replayed"]), (201, first[2], "true"))
        for path, body, more in (("/v1/queues/q/jobs?priority=3", "y", {}), ("/v1/queues/q/jobs?priority=4", "x", {}),
                                 ("/v1/queues/r/jobs?priority=3", "x", {}),
                                 ("/v1/queues/q/jobs?priority=3", "x", {"Pawl-Header-A": "b"})):
            status, _, body = server.call("POST", path, body, {**key, **more})
            self.assertEqual((status, json.loads(body)["type"]), (422, "urn:pawl:problem:key-used"))
        self.assertEqual(server.stats()["ready"], 1)
        self.assertEqual(server.call("POST", "/v1/jobs/stream", '{"queue": "q"}', {"Idempotency-Key": "s"})[0], 400)

    def test_while_the_first_is_under_way_and_when_it_has_died(self):
        server = self.server()
        key = {"Idempotency-Key": "k"}
        jobs = {"jobs": [{"queue": "q", "payload": i} for i in range(3)]}
        first = server.good("POST", "/v1/jobs", jobs, key)
        self.assertEqual(self.change("under way"), 1)
        status, headers, body = server.call("POST", "/v1/jobs", jobs, key)
        self.assertEqual((status, json.loads(body)["type"], headers["Retry-After"]), (409, "urn:pawl:problem:under-way", "1"))
        self.assertEqual(self.change("died"), 1)
        self.assertEqual(server.good("POST", "/v1/jobs", jobs, key), first)  # the same ids, and nothing twice
        self.assertEqual(server.stats()["ready"], 3)
        self.assertEqual(self.change("expired"), 1)
        self.assertNotEqual(server.good("POST", "/v1/jobs", jobs, key), first)  # it was forgotten
        self.assertEqual((server.stats()["ready"], self.change("gone")), (6, 1))

    def test_the_reaper_clears_old_keys_away(self):
        server = self.server("--reaper-interval", "1s")
        for key in ("old", "older"):
            server.good("POST", "/v1/queues/q/jobs", "x", {"Idempotency-Key": key}, status=201)
        self.change("expired")
        wait_for(lambda: self.change("there") == 0)  # although nobody begins another one

    def test_what_is_refused_is_not_kept(self):
        server = self.server()
        key = {"Idempotency-Key": "k"}
        self.assertEqual(server.call("POST", "/v1/queues/q/jobs?priority=99", "x", key)[0], 400)
        self.assertEqual(server.call("POST", "/v1/queues/q/jobs?priority=9", "x", key)[0], 201)
        self.assertEqual(server.call("POST", "/v1/queues/q/jobs", "x", {"Idempotency-Key": 256 * "k"})[0], 400)

    def test_an_event_is_published_once(self):
        receiver = self.receiver()
        server = self.server(*receiver.allowed())
        server.good("POST", "/v1/endpoints/crm", {"url": receiver.url(), "topics": "*"}, status=201)
        key = {"Idempotency-Key": "k"}
        first = server.good("POST", "/v1/events/a", "x", key, status=201)
        self.assertEqual(server.good("POST", "/v1/events/a", "x", key, status=201), first)
        self.change("died")
        self.assertEqual(server.good("POST", "/v1/events/a", "x", key, status=201), first)
        self.assertEqual(server.stats("webhook%2Fcrm")["ready"], 1)


class Together(Case):
    def test_a_hundred_producers_at_once(self):
        """How many share a transaction is counted in test/unit/serve_carriers_test.c, where nothing hangs on time."""
        server = self.server("--connections-per-address", "0")
        connections = [server.connection() for _ in range(100)]
        for i, connection in enumerate(connections):
            self.addCleanup(connection.close)
            connection.request("POST", f"/v1/queues/q/jobs{'?priority=99' if i == 50 else ''}", f"{i}")
        statuses = [connection.getresponse().status for connection in connections]
        self.assertEqual(statuses, [400 if i == 50 else 201 for i in range(100)])  # one that is wrong spoils nobody's
        self.assertEqual(server.stats()["ready"], 99)
        self.assertEqual(server.figure("pawl_http_enqueues_total"), 100)
        self.assertLessEqual(server.figure("pawl_http_enqueue_transactions_total"), 99)


class Listener:
    """Reads events of a stream as they come."""

    def __init__(self, server, path="/v1/changes", last_id=None, headers=None):
        self.connection = server.connection()
        self.connection.request("GET", path, headers={**({"Last-Event-ID": last_id} if last_id else {}), **(headers or {})})
        self.answer = self.connection.getresponse()

    def line(self):
        return self.answer.readline().decode().rstrip("\n")

    def event(self):
        """(kind, id, data) of the next event; beats are passed over. None: it has ended."""
        fields = {}
        while True:
            raw = self.answer.readline()
            if not raw:
                return None
            name, _, value = raw.decode().rstrip("\n").partition(": ")
            if not name and fields:
                data = json.loads(fields["data"])
                check_schema(EVENTS[fields["event"]], data, fields["event"])
                return fields["event"], fields["id"], data
            if name and not name.startswith(":"):
                fields[name] = value


class Changes(Case):
    def listener(self, *words, **more):
        listener = Listener(*words, **more)
        self.addCleanup(listener.connection.close)
        self.assertEqual(listener.answer.status, 200)
        return listener

    def next_of(self, listener, job):
        """(queue, state) of the next event about a job."""
        while True:
            kind, _, data = listener.event()
            if kind == "job" and data["id"] == job:
                return data["queue"], data["state"]

    def test_changes_are_told_as_they_happen(self):
        server = self.server()
        listener = self.listener(server)
        self.assertEqual((listener.answer.status, listener.answer.headers["Content-Type"]), (200, "text/event-stream"))
        self.assertEqual(listener.event()[0], "hello")
        one = server.good("POST", "/v1/queues/q/jobs", "x", status=201)["id"]
        job = server.claim()[0]
        proof = {"worker": "w", "token": job["token"], "version": job["lease_version"], "action": "fail"}
        server.good("POST", f"/v1/jobs/{one}/settle", proof)
        server.good("POST", f"/v1/jobs/{one}/redrive")
        got = [listener.event() for _ in range(4)]
        self.assertEqual([data["state"] for _, _, data in got], ["Ready", "InFlight", "Failed", "Ready"])
        self.assertEqual({data["queue"] for _, _, data in got}, {"q"})
        self.assertEqual({data["id"] for _, _, data in got}, {one})
        again = self.listener(server, last_id=got[1][1])  # from where it had been
        self.assertEqual(again.event()[0], "hello")
        self.assertEqual([again.event()[2]["state"] for _ in range(2)], ["Failed", "Ready"])
        self.assertEqual(server.figure("pawl_http_listeners"), 2)
        self.assertEqual(server.end(), 0)  # which ends them
        self.assertIsNone(listener.event())

    def test_what_workers_do_is_told(self):
        server = self.server("q", "--", "sh", "-c", "exit 0")
        listener = self.listener(server, "/v1/changes?queue=q")
        self.assertEqual(listener.event()[0], "hello")
        one = server.good("POST", "/v1/queues/q/jobs", "x", status=201)["id"]
        got = []  # the worker may have it before its producer is told that it is there
        while set(got) != {"Ready", "InFlight", "Succeeded"}:
            got.append(self.next_of(listener, one)[1])
        self.assertFalse(server.events("JOB-START"))  # which is for the log at another level

    def test_a_gap_is_told(self):
        server = self.server()
        first = self.listener(server).event()
        for last in ("0123456789abcdef-1", "what is this", first[1].replace("-0", "-99")):
            self.assertEqual(self.listener(server, last_id=last).event()[0], "lost", last)
        for _ in range(9):  # more than the window holds
            server.good("POST", "/v1/jobs", {"jobs": [{"queue": "q"} for _ in range(1000)]})
        behind = self.listener(server, last_id=first[1])
        self.assertEqual(behind.event()[0], "lost")

    def test_who_does_not_read_is_cut_off(self):
        server = self.server("--body-timeout", "300ms", "--idle-timeout", "1h")
        sock = socket.socket()
        self.addCleanup(sock.close)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.settimeout(WAIT_SECONDS)
        sock.connect(server.host_port())
        sock.sendall(b"GET /v1/changes HTTP/1.1\r\nHost: localhost\r\n\r\n")
        wait_for(lambda: server.figure("pawl_http_listeners") == 1)
        # So much that no buffer of the system takes it.
        def more():
            server.good("POST", "/v1/jobs", {"jobs": [{"queue": "q"} for _ in range(1000)]})
            return server.figure("pawl_http_listeners") == 0
        wait_for(more)
        self.assertGreaterEqual(server.figure("pawl_http_connections_cut_total"), 1)

    def test_beats_and_bounds(self):
        server = self.server("--stream-heartbeat", "100ms", "--listeners", "1")
        listener = self.listener(server)
        listener.event()
        self.assertEqual([listener.line() for _ in range(4)], [":", "", ":", ""])
        status, headers, body = server.call("GET", "/v1/changes")
        self.assertEqual((status, json.loads(body)["type"], headers["Retry-After"]), (503, "urn:pawl:problem:busy", "1"))
        listener.connection.close()
        listener.answer.close()
        wait_for(lambda: server.figure("pawl_http_listeners") == 0)
        self.assertEqual(self.listener(server).event()[0], "hello")

    def test_a_token_hears_of_its_queues(self):
        token = self.token("some", "--scopes", "read,produce", "--queues", "q*")
        server = self.server("--tokens", f"{self.folder.name}/tokens")
        mine = {"Authorization": f"Bearer {token}"}
        all_of_them = {"Authorization": f"Bearer {self.token('all', '--scopes', 'produce,work,read,admin')}"}
        server.process.send_signal(signal.SIGHUP)
        wait_for(lambda: server.call("GET", "/v1/workers", headers=all_of_them)[0] == 200)
        self.assertEqual(server.call("GET", "/v1/changes?queue=r", headers=mine)[0], 403)
        one = self.listener(server, "/v1/changes?queue=q2", headers=mine)
        patterns = self.listener(server, headers=mine)  # of all queues, those that the token is for
        self.assertEqual((one.event()[0], patterns.event()[0]), ("hello", "hello"))
        ids = {queue: server.good("POST", f"/v1/queues/{queue}/jobs", "x", all_of_them, status=201)["id"]
               for queue in ("r1", "q1", "q2")}
        for queue in ("r1", "q1", "q2"):  # whoever settles or cancels names the job alone
            server.good("POST", f"/v1/jobs/{ids[queue]}/cancel", headers=all_of_them)
        told = [("q1", "Ready"), ("q2", "Ready"), ("q1", "Failed"), ("q2", "Failed")]
        got = [patterns.event()[2] for _ in told]
        self.assertEqual([(data["queue"], data["state"]) for data in got], told)
        self.assertEqual([one.event()[2]["state"] for _ in range(2)], ["Ready", "Failed"])

    def test_what_others_do_is_told(self):
        """Another server on the same store, and programs beside: /v1/changes."""
        server, other = self.server(), self.server()
        listener = self.listener(server)
        self.assertEqual(listener.event()[0], "hello")
        one = other.good("POST", "/v1/queues/a/jobs", "x", status=201)["id"]
        self.assertEqual(self.next_of(listener, one), ("a", "Ready"))
        job = other.claim(queue="a")[0]
        self.assertEqual(self.next_of(listener, one), ("a", "InFlight"))
        proof = {"worker": "w", "token": job["token"], "version": job["lease_version"]}
        other.good("POST", f"/v1/jobs/{one}/settle", {**proof, "action": "retry", "delay": "1h"})
        self.assertEqual(self.next_of(listener, one), ("a", "Ready"))
        other.good("POST", f"/v1/jobs/{one}/cancel")
        self.assertEqual(self.next_of(listener, one), ("a", "Failed"))
        other.good("POST", f"/v1/jobs/{one}/discard")
        two = subprocess.run([PAWL, "enqueue", "b", "y", "--store", server.store_of(self.folder.name)], env=CLEAN,
                             capture_output=True, text=True, check=True, timeout=WAIT_SECONDS).stdout.split()[0]
        self.assertEqual(self.next_of(listener, two), ("b", "Ready"))
        job = other.claim(queue="b")[0]
        done = {"worker": "w", "token": job["token"], "version": job["lease_version"], "action": "succeed"}
        server.good("POST", f"/v1/jobs/{two}/settle", done)  # which this one knows of by its lookout alone
        while (state := self.next_of(listener, two)) == ("b", "InFlight"):
            pass
        self.assertEqual(state, ("b", "Succeeded"))

    def test_who_comes_back_has_missed_nothing(self):
        """Neither of this server's changes nor of others', while nobody listened."""
        server, other = self.server("--stream-heartbeat", "100ms"), self.server()  # by which it finds that one has gone
        listener = self.listener(server)
        _, last, _ = listener.event()
        listener.answer.close()
        listener.connection.close()
        wait_for(lambda: server.figure("pawl_http_listeners") == 0)
        made = {owner.good("POST", "/v1/queues/q/jobs", "x", status=201)["id"] for owner in (server, other, server, other)}
        again = self.listener(server, last_id=last)
        self.assertEqual(again.event()[0], "hello")
        got = [again.event() for _ in made]
        self.assertEqual({(kind, data["id"]) for kind, _, data in got}, {("job", one) for one in made})

    def test_what_names_no_job_is_told_of_its_queue(self):
        server = self.server()
        listener = self.listener(server)
        self.assertEqual(listener.event()[0], "hello")
        one = server.good("POST", "/v1/queues/q/jobs", "x", status=201)["id"]
        self.assertEqual(listener.event()[2]["id"], one)
        self.assertEqual(server.good("POST", "/v1/cancel", {"filter": {"queue": "q"}})["changed"], 1)
        got = [listener.event() for _ in range(2)]  # the job is found, all the same, before or after
        self.assertEqual(sorted((kind, data["queue"], data.get("state")) for kind, _, data in got),
                         [("job", "q", "Failed"), ("queue", "q", None)])
        self.assertEqual(server.good("POST", "/v1/discard", {"filter": {"state": "Failed"}})["changed"], 1)
        while listener.event()[0] != "lost":  # of which queue is not known
            pass

    def test_a_release_is_told_as_it_ended(self):
        server = self.server()
        listener = self.listener(server)
        one = server.good("POST", "/v1/queues/q/jobs", "x", status=201)["id"]
        two = server.good("POST", "/v1/queues/q/jobs", "x", status=201)["id"]
        jobs = server.claim(max=2)
        server.good("POST", f"/v1/jobs/{one}/cancel")  # which only marks it
        for job in jobs:
            server.good("POST", f"/v1/jobs/{job['id']}/release",
                        {"worker": "w", "token": job["token"], "version": job["lease_version"]})
        got = {one: [], two: []}
        while len(got[one]) < 3 or len(got[two]) < 3:
            kind, _, data = listener.event()
            if kind == "job" and data["state"] not in got[data["id"]][-1:]:
                got[data["id"]].append(data["state"])
        self.assertEqual(got, {one: ["Ready", "InFlight", "Failed"], two: ["Ready", "InFlight", "Ready"]})


class Webhooks(Case):
    def test_an_endpoint_from_its_beginning_to_its_end(self):
        receiver = self.receiver()
        server = self.server("--deliver", *receiver.allowed())
        status, _, _ = server.call("POST", "/v1/endpoints/crm", {"url": "http://10.0.0.1/", "topics": "*"})
        self.assertEqual(status, 400)  # not allowed to be called
        made = server.good("POST", "/v1/endpoints/crm", {"url": receiver.url(), "topics": "order.*",
                                                         "headers": {"Authorization": "hidden"}}, status=201)
        self.assertRegex(made["secret"], "^whsec_")
        self.assertEqual(server.call("POST", "/v1/endpoints/crm", {"url": receiver.url(), "topics": "*"})[0], 409)
        status, headers, shown = server.call("GET", "/v1/endpoints/crm")
        self.assertNotIn(made["secret"].encode(), shown)
        self.assertNotIn(b"hidden", shown)
        self.assertEqual(json.loads(shown)["header_names"], "Authorization")
        listed = server.good("GET", "/v1/endpoints")["endpoints"][0]
        self.assertEqual(listed["origin"], receiver.url().removesuffix("/hook"))  # a path may be a secret
        self.assertEqual(server.call("GET", "/v1/endpoints/crm", headers={"If-None-Match": headers["ETag"]})[0], 304)
        changed = server.good("PATCH", "/v1/endpoints/crm", {"max_retries": 3}, {"If-Match": headers["ETag"]})
        self.assertEqual((changed["max_retries"], changed["topics"]), (3, "order.*"))
        self.assertEqual(server.call("PATCH", "/v1/endpoints/crm", {"max_retries": 4}, {"If-Match": headers["ETag"]})[0], 412)
        event = server.good("POST", "/v1/events/order.made?id=evt_1", b"\x00payload", {"Content-Type": "image/png"}, status=201)
        self.assertEqual((event["id"], event["endpoints"], event["jobs"]), ("evt_1", 1, 1))
        self.assertEqual(server.good("POST", "/v1/events/order.made?id=evt_1", b"\x00payload")["verdict"], "EXISTS")
        self.assertEqual(server.good("POST", "/v1/events/other", "x")["endpoints"], 0)
        wait_for(lambda: receiver.got)
        headers, body = receiver.got[0]
        self.assertEqual((body, headers["content-type"], headers["Authorization"]), (b"\x00payload", "image/png", "hidden"))
        self.assertIn("webhook-signature", {name.lower() for name in headers})
        self.assertEqual(server.good("POST", "/v1/endpoints/crm/disable", {"reason": "holidays"})["reason"], "holidays")
        self.assertEqual(server.good("POST", "/v1/events/order.made", "x")["endpoints"], 0)
        self.assertTrue(server.good("POST", "/v1/endpoints/crm/enable", {})["is_enabled"])
        rotated = server.good("POST", "/v1/endpoints/crm/rotate", {"is_key_pair": True})
        self.assertRegex(rotated["public_key"], "^whpk_")
        self.assertEqual(server.good("GET", "/v1/endpoints/crm")["secrets"], 2)
        wait_for(lambda: server.stats("webhook%2Fcrm")["in_flight"] == 0)
        self.assertTrue(server.good("DELETE", "/v1/endpoints/crm")["is_removed"])
        self.assertEqual(server.call("GET", "/v1/endpoints/crm")[0], 404)

    def test_an_endpoint_with_jobs_stays(self):
        receiver = self.receiver()
        server = self.server(*receiver.allowed())
        server.good("POST", "/v1/endpoints/crm", {"url": receiver.url(), "topics": "*", "secret": "whsec_" + 8 * "MDAw"}, status=201)
        server.good("POST", "/v1/events", {"events": [{"type": "a", "payload": 1}, {"type": "b", "payload_base64": "AA=="}]})
        status, _, body = server.call("DELETE", "/v1/endpoints/crm")
        self.assertEqual((status, json.loads(body)["type"]), (409, "urn:pawl:problem:has-jobs"))
        self.assertEqual(server.stats("webhook%2Fcrm")["ready"], 2)


class Workers(Case):
    def test_jobs_are_run_and_end_with_the_server(self):
        """Requests, jobs and deliveries end in one drain."""
        out = f"{self.folder.name}/out"
        server = self.server("q", "--", "sh", "-c", f'read x; echo begun >> {out}; while [ ! -e {out}.go ]; do sleep 0.05; done; echo "$x" >> {out}')
        server.good("POST", "/v1/queues/q/jobs", "first\n", status=201)
        wait_for(lambda: os.path.exists(out))
        server.process.send_signal(signal.SIGTERM)
        server.wait_event("SERVER-STOPPING")
        Path(out + ".go").touch()
        self.assertEqual(server.process.wait(WAIT_SECONDS), 0)
        self.assertEqual(Path(out).read_text(encoding="utf-8"), "begun\nfirst\n")
        again = self.server()
        self.assertEqual(again.good("GET", "/v1/jobs?state=Succeeded")["jobs"][0]["queue"], "q")

    def test_queues_and_a_program_go_together(self):
        for words in (["q"], ["--", "true"]):
            done = subprocess.run([PAWL, "serve", "--store", "memory:", *words], env=CLEAN, capture_output=True, text=True,
                                  timeout=WAIT_SECONDS, check=False)
            self.assertEqual(done.returncode, 64, done.stderr)


class Ending(Case):
    def test_what_is_under_way_is_finished(self):
        server = self.server()
        with socket.create_connection(server.host_port(), timeout=WAIT_SECONDS) as sock:
            sock.sendall(b"POST /v1/queues/q/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n12345")
            wait_for(lambda: server.figure("pawl_http_requests_in_flight") == 2)
            server.process.send_signal(signal.SIGTERM)
            server.wait_event("SERVER-STOPPING")
            status, headers, body = server.call("GET", "/v1/queues")
            self.assertEqual((status, json.loads(body)["type"]), (503, "urn:pawl:problem:draining"))
            self.assertEqual(headers["Retry-After"], "5")
            self.assertEqual(server.call("GET", "/readyz")[0], 503)
            self.assertEqual(server.call("GET", "/livez")[0], 200)
            sock.sendall(b"67890")
            self.assertIn(b"201 Created", sock.recv(65536))
        self.assertEqual(server.process.wait(WAIT_SECONDS), 0)
        self.assertTrue(server.events("SERVER-STOPPED"))

    def test_claims_that_wait_are_answered(self):
        server = self.server()
        got = []
        thread = threading.Thread(target=lambda: got.append(server.claim(wait="30s")))
        thread.start()
        wait_for(lambda: server.figure("pawl_http_claims_waiting") == 1)
        self.assertEqual(server.end(), 0)
        thread.join(WAIT_SECONDS)
        self.assertEqual(got, [[]])

    def test_the_second_signal_ends_it_at_once(self):
        server = self.server("--shutdown", "1h")
        with socket.create_connection(server.host_port(), timeout=WAIT_SECONDS) as sock:
            sock.sendall(b"POST /v1/queues/q/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n12345")
            wait_for(lambda: server.figure("pawl_http_requests_in_flight") == 2)
            server.process.send_signal(signal.SIGTERM)
            server.wait_event("SERVER-STOPPING")
            self.assertIsNone(server.process.poll())
            self.assertEqual(server.end(), 0)

    def test_the_service_manager_is_told(self):
        path = f"{self.folder.name}/notify"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(path)
            manager.settimeout(WAIT_SECONDS)
            server = self.server(env={**CLEAN, "NOTIFY_SOCKET": path, "WATCHDOG_USEC": "200000"})
            self.assertEqual(manager.recv(100), b"READY=1")
            self.assertEqual(manager.recv(100), b"WATCHDOG=1")
            self.assertEqual(manager.recv(100), b"WATCHDOG=1")
            server.end()
            said = b""
            while said != b"STOPPING=1":
                said = manager.recv(100)
                self.assertIn(said, (b"WATCHDOG=1", b"STOPPING=1"))


class Sockets(Case):
    def test_a_unix_socket_and_an_address_at_once(self):
        path = f"{self.folder.name}/pawl.sock"
        server = self.server(listen=[path, "0"])
        self.assertEqual(server.address(), f"unix:{path}")
        server.good("POST", "/v1/queues/q/jobs", "x", {"Host": "anything"}, status=201)
        server.listens_at = wait_for(lambda: server.events("SERVER-UP")[1:])[0]["text"]
        self.assertEqual(server.stats()["ready"], 1)
        self.assertEqual(server.end(), 0)
        self.assertFalse(os.path.exists(path))

    def test_an_inherited_socket(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            fd = listener.fileno()
            server = Server(PAWL, self.folder.name, listen=(), pass_fds=[fd],
                            before=("sh", "-c", f'exec 3<&{fd}; LISTEN_PID=$$ LISTEN_FDS=1 exec "$@"', "sh"))
            self.addCleanup(server.__exit__)
            server.up()
            self.assertEqual(server.address(), "%s:%d" % listener.getsockname())
            self.assertEqual(server.call("GET", "/livez")[0], 200)

    def test_an_abstract_socket_needs_tokens(self):
        """No file's mode says who may open it: whoever is on this machine may."""
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind("\0pawl-" + os.path.basename(self.folder.name))
            listener.listen()
            fd = listener.fileno()
            before = ("sh", "-c", f'exec 3<&{fd}; LISTEN_PID=$$ LISTEN_FDS=1 exec "$@"', "sh")
            done = subprocess.run([*before, PAWL, "serve", "--store", "memory:"], env=CLEAN, capture_output=True, text=True,
                                  timeout=WAIT_SECONDS, check=False, pass_fds=[fd])
            self.assertEqual(done.returncode, 78, done.stderr)
            self.assertIn("--tokens", done.stderr)
            self.token("a", "--scopes", "read")
            server = Server(PAWL, self.folder.name, "--tokens", f"{self.folder.name}/tokens", listen=(), pass_fds=[fd], before=before)
            self.addCleanup(server.__exit__)
            server.up()
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(WAIT_SECONDS)
                client.connect(listener.getsockname())
                client.sendall(b"GET /v1/queues HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                self.assertIn(b" 401 ", client.recv(65536).partition(b"\r\n")[0])

    def test_other_machines_need_tokens(self):
        for address in ("0.0.0.0:0", "[::]:0"):
            done = subprocess.run([PAWL, "serve", "--store", "memory:", "--listen", address], env=CLEAN, capture_output=True,
                                  text=True, timeout=WAIT_SECONDS, check=False)
            self.assertEqual(done.returncode, 78, done.stderr)
            self.assertIn("--tokens", done.stderr)
        (Path(self.folder.name) / "tokens").touch(mode=0o600)
        done = subprocess.run([PAWL, "serve", "--store", "memory:", "--tokens", f"{self.folder.name}/tokens", "--listen", "0.0.0.0:0"],
                              env=CLEAN, capture_output=True, text=True, timeout=WAIT_SECONDS, check=False)
        self.assertEqual(done.returncode, 78)
        self.assertIn("no token", done.stderr)
        self.token("a", "--scopes", "read")
        self.server("--tokens", f"{self.folder.name}/tokens", listen=["0.0.0.0:0"])


class Access(Case):
    def test_pages_in_a_browser_do_not_get_here(self):
        server = self.server()
        port = server.host_port()[1]
        for headers in ({"Host": "evil.example"}, {"Host": f"localhost.evil.example:{port}"}, {"Host": "127.evil.example"},
                        {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": f"http://localhost:{port}"},
                        {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {"Host": ""}):
            status, _, body = server.call("POST", "/v1/queues/q/jobs", "x", headers)
            self.assertEqual((status, json.loads(body)["type"]), (403, "urn:pawl:problem:wrong-host"), headers)
        for headers in ({"Host": "localhost"}, {"Host": f"[::1]:{port}"}, {"Sec-Fetch-Site": "none"},
                        {"Origin": f"http://127.0.0.1:{port}"}):
            self.assertEqual(server.call("POST", "/v1/queues/q/jobs", "x", headers)[0], 201, headers)
        self.assertEqual(server.stats()["ready"], 4)
        two = b"GET /v1/queues HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n"
        self.assertRegex(server.raw(two), rb"^HTTP/1.1 40[03]")

    def test_every_route_asks_for_its_token(self):
        scopes = ["produce", "work", "read", "admin"]
        tokens = {scope: self.token(scope, "--scopes", scope) for scope in scopes}
        one_queue = self.token("one", "--scopes", ",".join(scopes), "--queues", "none")
        expired = self.token("old", "--scopes", ",".join(scopes))
        file = Path(self.folder.name) / "tokens"
        text = file.read_text(encoding="utf-8")
        file.write_text(re.sub(r"^(old \S+ \S+) never", r"\1 2020-01-01T00:00:00Z", text, flags=re.MULTILINE), encoding="utf-8")
        self.assertNotIn(expired, text)
        server = self.server("--tokens", file)
        routes = subprocess.run([PAWL, "serve", "--routes"], capture_output=True, text=True, check=True).stdout.splitlines()
        self.assertGreater(len(routes), 30)
        connection = None
        for row in routes:
            name, method, path, scope, reach, body, _ = row.split()
            path = re.sub(r"\{\w+\}", "x", path)
            data = "{}" if body in ("json", "lines") else None

            def status(token, kind="Bearer"):
                headers = {"Authorization": f"{kind} {token}"} if token is not None else {}
                return server.call(method, path, data, headers, connection)[0]
            if scope == "none":
                self.assertIn(status(None), (200, 503), name)
                continue
            if name == "changes":
                path += "?queue="  # an answer that ends: no queue has that name
            self.assertEqual(status(None), 401, name)
            self.assertEqual(status(tokens[scope][:-1]), 401, name)
            self.assertEqual(status("pawl_" + 64 * "0"), 401, name)
            self.assertEqual(status(tokens[scope], "Basic"), 401, name)
            self.assertEqual(status(expired), 401, name)
            for other in scopes:
                if other != scope:
                    self.assertEqual(status(tokens[other]), 403, (name, other))
            if reach == "all":
                self.assertEqual(status(one_queue), 403, name)
            self.assertNotIn(status(tokens[scope]), (401, 403), name)
        status, headers, _ = server.call("GET", "/v1/queues")
        self.assertEqual((status, headers["WWW-Authenticate"]), (401, "Bearer"))
        log = "\n".join(server.log())
        for token in (*tokens.values(), one_queue, expired):
            self.assertNotIn(token, log)

    def test_tokens_change_while_it_runs(self):
        token = self.token("a", "--scopes", "read")
        file = f"{self.folder.name}/tokens"
        server = self.server("--tokens", file)

        def status(of):
            return server.call("GET", "/v1/queues", headers={"Authorization": f"Bearer {of}"})[0]
        self.assertEqual(status(token), 200)
        other = self.token("b", "--scopes", "read")
        wait_for(lambda: status(other) == 200)
        subprocess.run([PAWL, "token", "remove", "a", "--tokens", file], env=CLEAN, check=True)
        wait_for(lambda: status(token) == 401)
        self.assertEqual(status(other), 200)
        Path(file).write_text("what is this\n", encoding="utf-8")
        self.assertIn("line 1", server.wait_event("TOKENS-REFUSED")["text"])
        self.assertEqual(status(other), 200)  # as before
        listed = subprocess.run([PAWL, "token", "list", "--json", "--tokens", file], env=CLEAN, capture_output=True, check=False)
        self.assertEqual(listed.returncode, 78)


class Limits(Case):
    def test_bad_requests_are_refused(self):
        server = self.server()
        head = b"POST /v1/claim HTTP/1.1\r\nHost: localhost\r\n"
        bad = {
            "two lengths": head + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
            "length and chunks": head + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "another encoding": head + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
            "bad chunk": head + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n{}\r\n0\r\n\r\n",
            "huge chunk": head + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n{}\r\n0\r\n\r\n",
            "negative length": head + b"Content-Length: -1\r\n\r\n",
            "no length": head + b"Content-Length: x\r\n\r\n",
            "too large": head + b"Content-Length: 70000\r\n\r\n",
            "bad percent": b"GET /v1/%zz HTTP/1.1\r\nHost: localhost\r\n\r\n",
            "NUL by percent": b"GET /v1/queues/%00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
            "NUL": b"GET /v1/queues/\0 HTTP/1.1\r\nHost: localhost\r\n\r\n",
            "NUL in a header": b"GET /v1/queues HTTP/1.1\r\nHost: local\0host\r\n\r\n",
            "no method": b"\r\n\r\n\r\n",
            "garbage": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
            "no host": b"GET /v1/queues HTTP/1.1\r\n\r\n",
            "many headers": b"GET /livez HTTP/1.1\r\nHost: localhost\r\n" + b"".join(b"a%d: b\r\n" % i for i in range(101)) + b"\r\n",
            "long target": b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
            "10 MB of headers": b"GET /livez HTTP/1.1\r\nHost: localhost\r\n" + b"x: %s\r\n" % (b"y" * 1000) * 10000 + b"\r\n",
        }
        for name, data in bad.items():
            # What is not answered at once is cut off: see --head-timeout below.
            with socket.create_connection(server.host_port(), timeout=WAIT_SECONDS) as sock:
                got = b""
                try:
                    sock.sendall(data)
                    sock.shutdown(socket.SHUT_WR)
                    while piece := sock.recv(65536):
                        got += piece
                except OSError:  # it has ended already
                    pass
            self.assertRegex(got, rb"^(HTTP/1\.[01] 4\d\d |$)", name)
            self.assertNotIn(b" 200 ", got, name)
        self.assertEqual(server.call("GET", "/livez")[0], 200)
        self.assertEqual(server.good("GET", "/v1/queues")["queues"], [])

    def test_bodies_are_bounded_without_a_length_too(self):
        server = self.server()
        pieces = (b"x" * 65536 for _ in range(40))
        try:
            status, _, body = server.call("POST", "/v1/queues/q/jobs", pieces)
            self.assertEqual((status, json.loads(body)["type"]), (413, "urn:pawl:problem:too-large"))
        except ConnectionError:
            pass  # it was cut off while it was still sending
        self.assertEqual(server.stats()["ready"], 0)

    def test_who_is_slow_is_cut_off(self):
        server = self.server("--head-timeout", "500ms", "--body-timeout", "500ms")
        host = b"Host: localhost\r\n"
        for data in (b"", b"GET /li", b"GET /livez HTTP/1.1\r\n" + host,
                     b"POST /v1/queues/q/jobs HTTP/1.1\r\nContent-Length: 100\r\n" + host + b"\r\nabc"):
            self.assertNotIn(b"201", server.raw(data))  # comes to its end
        self.assertGreaterEqual(server.figure("pawl_http_connections_cut_total"), 4)
        self.assertEqual(server.stats()["ready"], 0)

    def test_who_does_nothing_is_cut_off(self):
        server = self.server("--idle-timeout", "1s")
        answer = server.raw(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")  # until the connection ends
        self.assertIn(b"200 OK", answer)

    def test_connections_are_bounded(self):
        server = self.server("--connections", "20", "--connections-per-address", "10", "--head-timeout", "60s")
        held = [socket.create_connection(server.host_port(), timeout=WAIT_SECONDS) for _ in range(30)]
        for sock in held:
            self.addCleanup(sock.close)
        gone = 0
        for sock in held[10:]:
            try:
                gone += sock.recv(1) == b""
            except ConnectionError:
                gone += 1
        self.assertEqual(gone, 20)
        held[0].sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        self.assertIn(b"200 OK", held[0].recv(1000))

    def test_memory_is_bounded_under_half_open_requests(self):
        server = self.server("--connections-per-address", "0", "--connections", "500", "--head-timeout", "1h")
        before = server.figure("process_resident_memory_bytes")
        held = []
        for _ in range(400):
            sock = socket.create_connection(server.host_port(), timeout=WAIT_SECONDS)
            self.addCleanup(sock.close)
            sock.sendall(b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 20000)
            held.append(sock)
        wait_for(lambda: server.figure("pawl_http_connections") > 400)
        self.assertLess(server.figure("process_resident_memory_bytes") - before, 128e6)
        server.good("POST", "/v1/queues/q/jobs", "x", status=201)

    def test_claims_that_wait_are_bounded(self):
        server = self.server("--waiting", "1")
        thread = threading.Thread(target=lambda: server.claim(wait="30s"))
        thread.start()
        wait_for(lambda: server.figure("pawl_http_claims_waiting") == 1)
        status, headers, body = server.call("POST", "/v1/claim", {"worker": "v", "wait": "30s", "queues": [{"queue": "q"}]})
        self.assertEqual((status, json.loads(body)["type"]), (503, "urn:pawl:problem:busy"))
        self.assertEqual(headers["Retry-After"], "1")
        server.good("POST", "/v1/queues/q/jobs", "x", status=201)
        thread.join(WAIT_SECONDS)
        wait_for(lambda: server.figure("pawl_http_claims_waiting") == 0)


if __name__ == "__main__":
    tap.main()
