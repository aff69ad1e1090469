/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * first_job.c - the shortest way through Pawl: put a job into a queue, claim it, say that it is
 * done. README.md shows it. Build it against an installed Pawl with
 *
 *     cc first_job.c $(pkg-config --cflags --libs pawl) -o first_job
 */
#include <pawl/pawl.h>

#include <stdio.h>

static pawl_code work(pawl_store *store, pawl_err *err)
{
    pawl_enqueue_row row;
    pawl_enqueue_init(&row);
    row.queue = "mail";
    row.payload = "hello";
    row.payload_len = 5;
    pawl_enqueued enqueued;
    pawl_code rc = pawl_enqueue(store, &row, 1, &enqueued, err);
    if (rc != PAWL_OK)
        return rc;

    pawl_claim_line line = {.queue = "mail", .jobs_max = 1, .lease_ms = PAWL_DEFAULT};
    pawl_claim_args args = {
        .worker = "worker-1", .lines = &line, .lines_count = 1, .bytes_max = PAWL_DEFAULT};
    pawl_job job;
    size_t count;
    rc = pawl_claim(store, &args, &job, 1, &count, err);
    if (rc != PAWL_OK || count == 0)
        return rc;
    printf("claimed under lease version %lld: %.*s\n", (long long)job.lease_version,
           (int)job.payload_len, (const char *)job.payload);

    /* The lease proves that the job is ours: without it, or too late, the answer is STALE. */
    pawl_settle_row done;
    pawl_settle_init(&done);
    done.action = PAWL_SUCCEED;
    done.lease = (pawl_lease){.job = job.id, .token = job.token, .version = job.lease_version};
    pawl_job_clear(&job);
    pawl_settled settled;
    rc = pawl_settle(store, "worker-1", &done, 1, &settled, err);
    if (rc == PAWL_OK)
        printf("settled: %s, now %s\n", pawl_code_name(settled.code),
               pawl_state_name(settled.state));
    return rc;
}

int main(void)
{
    pawl_err err = {.code = PAWL_OK};
    pawl_memory *memory = NULL;
    pawl_store *store = NULL;
    pawl_code rc = pawl_memory_new(NULL, &memory, &err);
    if (rc == PAWL_OK)
        rc = pawl_memory_open(memory, &store, &err);
    if (rc == PAWL_OK)
        rc = work(store, &err);
    if (rc != PAWL_OK)
        fprintf(stderr, "%s: %s\n", pawl_code_name(rc), err.text);
    pawl_store_close(store);
    pawl_memory_free(memory);
    return rc == PAWL_OK ? 0 : 1;
}
