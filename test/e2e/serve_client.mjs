// SPDX-License-Identifier: Apache-2.0
// serve_client.mjs - `pawl serve` as a program in JavaScript uses it, with what Node has: fetch.
import assert from "node:assert/strict";

const server = process.argv[2];

async function ask(method, path, body, headers = {}) {
    const isBytes = body === undefined || typeof body === "string" || body instanceof Uint8Array;
    const answer = await fetch(server + path, {
        method,
        body: isBytes ? body : JSON.stringify(body),
        headers: isBytes ? headers : {"content-type": "application/json", ...headers},
    });
    return answer;
}

async function good(method, path, body, headers) {
    const answer = await ask(method, path, body, headers);
    const text = await answer.text();
    assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${text}`);
    return JSON.parse(text);
}

// Events of the stream, as they come.
async function* changes(answer) {
    let text = "";
    for await (const piece of answer.body.pipeThrough(new TextDecoderStream())) {
        text += piece;
        for (let end; (end = text.indexOf("\n\n")) >= 0; text = text.slice(end + 2)) {
            const fields = Object.fromEntries(text.slice(0, end).split("\n").map((line) => line.split(/: (.*)/s)));
            if (fields.event)
                yield {...fields, data: JSON.parse(fields.data)};
        }
    }
}

const stop = new AbortController();
const listening = changes(await fetch(server + "/v1/changes?queue=node", {signal: stop.signal}));
assert.equal((await listening.next()).value.event, "hello");

const waiting = good("POST", "/v1/claim", {worker: "node/1", queues: [{queue: "node", lease: "10m"}], wait: "30s"});
const payload = new Uint8Array([0, 255, 1, 254]);
const key = {"idempotency-key": "node-1", "content-type": "application/octet-stream"};
const made = await good("POST", "/v1/queues/node/jobs", payload, key);
const again = await ask("POST", "/v1/queues/node/jobs", payload, key);
assert.equal(again.headers.get("idempotency-replayed"), "true");
assert.deepEqual(await again.json(), made);
assert.equal((await ask("POST", "/v1/queues/node/jobs", "other", key)).status, 422);

const [job] = (await waiting).jobs;
assert.equal(job.id, made.id);
assert.deepEqual(new Uint8Array(Buffer.from(job.payload_base64, "base64")), payload);
const proof = {worker: "node/1", token: job.token, version: job.lease_version};
assert.equal((await good("POST", `/v1/jobs/${job.id}/renew`, proof)).verdict, "OK");
assert.equal((await good("POST", `/v1/jobs/${job.id}/settle`, {...proof, action: "succeed"})).state, "Succeeded");
const stale = await ask("POST", `/v1/jobs/${job.id}/settle`, {...proof, action: "fail"});
assert.equal(stale.status, 409);
assert.equal(stale.headers.get("content-type"), "application/problem+json");
assert.equal((await stale.json()).type, "urn:pawl:problem:stale");

// Whoever waits may have it before its producer is told that it is there.
const told = new Set();
while (!["Ready", "InFlight", "Succeeded"].every((state) => told.has(state)))
    told.add((await listening.next()).value.data.state);
stop.abort();
console.log("done");
process.exit(0);
