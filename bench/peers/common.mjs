// SPDX-License-Identifier: Apache-2.0
// What all drivers of peers share: node DRIVER WHERE JOBS [BYTES]; one line of JSON at the end.
import { readFileSync } from "node:fs";

export const [where, jobs, bytes] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4] ?? 100)];
if (!where || !(jobs > 0)) {
    console.error("usage: node DRIVER WHERE JOBS [BYTES]");
    process.exit(64);
}

// The payload of a job, as JSON: as many bytes as the others' payloads have.
export const payload = { data: "x".repeat(Math.max(1, bytes - '{"data":""}'.length)) };

export function versionOf(name) {
    const file = new URL(`node_modules/${name}/package.json`, import.meta.url);
    return JSON.parse(readFileSync(file, "utf8")).version;
}

export function now() {
    return Number(process.hrtime.bigint()) / 1e9;
}

export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export function tell(peer, seconds, more = {}) {
    console.log(JSON.stringify({ turn: peer, version: versionOf(peer), node: process.versions.node, jobs, seconds, ...more }));
}

// "postgresql://?host=/folder&..." as the options of node-postgres.
export function postgres() {
    const words = new URL(where.replace("postgresql://?", "postgresql://localhost/?")).searchParams;
    return { host: words.get("host"), port: Number(words.get("port")), user: words.get("user"), database: words.get("dbname") };
}
