#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""http_bench.py PAWL [SECONDS] - what the HTTP interface costs, on a SQLite file below TMPDIR.

Enqueues per second, one job in each request, by 1, 16 and 128 connections (wrk); the same in batches of 1,000 over HTTP; the store's own
batch rate beside it (pawl enqueue --ndjson, without HTTP); and the time from an enqueue to the answer of a claim that waits for it.
"""

import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "test" / "support"))
from running import CLEAN, WAIT_SECONDS, wait_for  # noqa: E402
from serving import Server  # noqa: E402

PAYLOAD = "a payload of about sixty-four bytes, which is what many jobs have"
CONNECTIONS = (1, 16, 128)
BATCH = 1000
LATENCIES = 200
SCRIPT = f"""
wrk.method = "POST"
wrk.body = "{PAYLOAD}"
wrk.headers["Content-Type"] = "text/plain"
function done(summary, latency, requests)
    local errors = summary.errors
    io.write(string.format("RESULT %d %d %d %d %d\\n", summary.requests, summary.duration,
        errors.status, errors.connect + errors.read + errors.write + errors.timeout, latency:percentile(99)))
end
"""


def singles(server, folder, connections, seconds):
    """(requests per second, milliseconds of which 99 % take less)"""
    script = Path(folder) / "enqueue.lua"
    script.write_text(SCRIPT, encoding="utf-8")
    done = subprocess.run(["wrk", "-t", str(min(connections, 2)), "-c", str(connections), "-d", f"{seconds}s", "--timeout", "60s", "-s", script,
                           f"http://{server.address()}/v1/queues/single/jobs"], capture_output=True, text=True, check=True)
    count, took_us, refused, broken, slow_us = map(int, re.search(r"^RESULT (.*)$", done.stdout, re.MULTILINE).group(1).split())
    if refused or broken or not count:
        raise SystemExit(f"http-bench: {count} requests, {refused} refused, {broken} broken off:\n{done.stdout}")
    ready = server.stats("single")["ready"]
    return count * 1e6 / took_us, slow_us / 1000, ready


def batches(server, seconds):
    connection = server.connection()
    body = json.dumps({"jobs": [{"queue": "batch", "payload": PAYLOAD}] * BATCH})
    count = 0
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        server.good("POST", "/v1/jobs", body, {"Content-Type": "application/json"}, connection=connection)
        count += BATCH
    connection.close()
    return count / (time.monotonic() - began)


def store_alone(pawl, folder, seconds):
    """The same in the same size of batches, by a program that needs no server: so many lines that it takes about as long."""
    count = 20 * BATCH
    while True:
        lines = (json.dumps({"payload": PAYLOAD}) + "\n") * count
        began = time.monotonic()
        subprocess.run([pawl, "enqueue", "alone", "--ndjson", "--store", f"sqlite:{folder}/alone.db"], input=lines, text=True, env=CLEAN,
                       stdout=subprocess.DEVNULL, check=True)
        took = time.monotonic() - began
        if took >= seconds / 2 or count >= 1_000_000:
            return count / took
        count *= 4


def latencies(server, count):
    """Milliseconds from sending an enqueue to the answer of a claim that was waiting."""
    found = []
    for i in range(count):
        got = []

        def claim():
            connection = server.connection()
            connection.request("POST", "/v1/claim", json.dumps({"worker": f"w{i}", "queues": [{"queue": "quick"}], "wait": "30s"}),
                               {"Content-Type": "application/json"})
            jobs = json.loads(connection.getresponse().read())["jobs"]
            got.append((time.monotonic(), jobs))
            connection.close()
        thread = threading.Thread(target=claim)
        thread.start()
        wait_for(lambda: server.figure("pawl_http_claims_waiting") == 1)
        began = time.monotonic()
        server.good("POST", "/v1/queues/quick/jobs", PAYLOAD, status=201)
        thread.join(WAIT_SECONDS)
        assert got and len(got[0][1]) == 1, got
        found.append((got[0][0] - began) * 1000)
        wait_for(lambda: server.figure("pawl_http_claims_waiting") == 0)
    return found


def main():
    if len(sys.argv) not in (2, 3):
        print(__doc__, file=sys.stderr)
        return 64
    pawl = sys.argv[1]
    seconds = int(sys.argv[2]) if len(sys.argv) == 3 else 5
    if shutil.which("wrk") is None:
        print("http-bench: there is no wrk: tools/install-deps test", file=sys.stderr)
        return 69
    with tempfile.TemporaryDirectory(prefix="pawl-bench-") as folder, \
            Server(pawl, folder, "--connections-per-address", "0") as server:
        server.up()
        print(f"HTTP interface, SQLite file in {folder}, payloads of {len(PAYLOAD)} bytes")
        before = 0
        for connections in CONNECTIONS:
            rate, slow_ms, ready = singles(server, folder, connections, seconds)
            print(f"  enqueue, one a request, {connections:4} connections  {rate:10.0f} jobs/s   99 % within {slow_ms:.1f} ms")
            if ready <= before:
                raise SystemExit("http-bench: what was answered with 201 is not there")
            before = ready
        over_http = batches(server, seconds)
        alone = store_alone(pawl, folder, seconds)
        print(f"  enqueue, {BATCH} a request                    {over_http:10.0f} jobs/s")
        print(f"  the store alone, {BATCH} a transaction        {alone:10.0f} jobs/s   HTTP has {over_http / alone:.2f} of it")
        found = latencies(server, LATENCIES if seconds >= 5 else 10)
        cuts = statistics.quantiles(found, n=20)
        print(f"  from enqueue to the answer of a waiting claim: half within {statistics.median(found):.1f} ms, 95 % within {cuts[-1]:.1f} ms")
        return server.end()


if __name__ == "__main__":
    sys.exit(main())
