// SPDX-License-Identifier: Apache-2.0
// pg-boss drains jobs in one process: fetch and complete in batches of 1,000, two such loops at a time, without the pause of its
// polling workers (half a second at least), which would only make it slower. Maintenance is off while it is measured.
import pg from "pg";
import PgBoss from "pg-boss";
import { jobs, now, payload, postgres, tell } from "./common.mjs";

const BATCH = 1000;
const LOOPS = 2;
const boss = new (PgBoss.PgBoss ?? PgBoss)({ ...postgres(), max: 10, supervise: false, schedule: false });
boss.on("error", (error) => {
    console.error(error);
    process.exit(70);
});
await boss.start();
await boss.createQueue("bench");
for (let at = 0; at < jobs; at += BATCH) {
    const rows = Array.from({ length: Math.min(BATCH, jobs - at) }, () => ({ name: "bench", data: payload }));
    await (boss.insert.length > 1 ? boss.insert("bench", rows) : boss.insert(rows));
}
const client = new pg.Client(postgres());
await client.connect();
await client.query("vacuum analyze"); // without statistics it is slower by chance
await client.end();
let done = 0;
async function drain() {
    for (;;) {
        const taken = await boss.fetch("bench", { batchSize: BATCH });
        if (!taken?.length) return;
        await boss.complete("bench", taken.map((job) => job.id));
        done += taken.length;
    }
}
const began = now();
await Promise.all(Array.from({ length: LOOPS }, drain));
const seconds = now() - began;
await boss.stop({ graceful: false });
if (done !== jobs) {
    console.error(`pg-boss: ${done} of ${jobs}`);
    process.exit(70);
}
tell("pg-boss", seconds, { batch: BATCH, loops: LOOPS });
process.exit(0);
