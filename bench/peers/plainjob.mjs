// SPDX-License-Identifier: Apache-2.0
// plainjob in one process on better-sqlite3. It sets synchronous = NORMAL, which may lose what it has acknowledged when the power
// fails: here it is FULL, as with all others. WHERE is a file. Measures MODE: the drain, addMany of 1,000 (enqueue), add (singles).
import Database from "better-sqlite3";
import { better, defineQueue, defineWorker } from "plainjob";
import { jobs, now, payload, tell, where } from "./common.mjs";

const BATCH = 1000;
const connection = better(new Database(where));
const logger = { debug() {}, info() {}, warn() {}, error: console.error };
const queue = defineQueue({ connection, logger });
connection.pragma("synchronous = FULL");
const mode = process.argv[5] ?? "drain";
const adding = now();
for (let at = 0; mode !== "singles" && at < jobs; at += BATCH)
    queue.addMany("noop", Array.from({ length: Math.min(BATCH, jobs - at) }, () => payload));
for (let at = 0; mode === "singles" && at < jobs; at++) queue.add("noop", payload);
if (mode !== "drain") {
    tell("plainjob", now() - adding);
    process.exit(0);
}
let done = 0;
const began = now();
const seconds = await new Promise((resolve) => {
    const worker = defineWorker("noop", async () => {}, {
        queue,
        logger,
        pollIntervall: 1,
        onCompleted() {
            done++;
            if (done === jobs) resolve(now() - began);
        },
    });
    worker.start();
});
tell("plainjob", seconds);
process.exit(0);
