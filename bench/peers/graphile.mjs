// SPDX-License-Identifier: Apache-2.0
// graphile-worker drains jobs in one process, with the settings that its page on performance gives as the fastest: 24 jobs at
// once, a local queue of 500, completions in batches without delay. Its jobs are added by one call of add_jobs, not measured.
import pg from "pg";
import { Logger, run, runMigrations } from "graphile-worker";
import { jobs, now, pause, payload, postgres, tell } from "./common.mjs";

const pool = new pg.Pool({ ...postgres(), max: 30 });
const logger = new Logger(() => () => {});
const preset = {
    worker: {
        concurrentJobs: 24,
        maxPoolSize: 25,
        localQueue: { size: 500 },
        completeJobBatchDelay: 0,
        failJobBatchDelay: 0,
    },
};
await runMigrations({ pgPool: pool, logger });
await pool.query(
    `select graphile_worker.add_jobs(array(select json_populate_record(null::graphile_worker.job_spec,
         json_build_object('identifier', 'noop', 'payload', $2::json)) from generate_series(1, $1)))`,
    [jobs, JSON.stringify(payload)],
);
await pool.query("vacuum analyze"); // without statistics it is slower by chance
let done = 0;
const began = now();
const runner = await run({ pgPool: pool, logger, preset, taskList: { noop: () => void done++ }, noHandleSignals: true });
while (done < jobs) await pause(1);
while ((await pool.query("select 1 from graphile_worker.jobs limit 1")).rowCount > 0) await pause(1);
const seconds = now() - began;
await runner.stop();
await pool.end();
tell("graphile-worker", seconds);
process.exit(0);
