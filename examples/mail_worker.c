/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * mail_worker.c - works on jobs that another program has put into a file of SQLite: takes what
 * there is in the queue "mail", shows it, and says that it is done. Makes the file where there is
 * none.
 * docs/sqlite.md shows it. Usage: mail_worker FILE
 */
#include <pawl/pawl.h>

#include <stdio.h>

static pawl_code work(pawl_store *store, pawl_err *err)
{
    pawl_claim_line line = {.queue = "mail", .jobs_max = 1, .lease_ms = PAWL_DEFAULT};
    pawl_claim_args args = {
        .worker = "worker-1", .lines = &line, .lines_count = 1, .bytes_max = PAWL_DEFAULT};
    for (;;) {
        pawl_job job;
        size_t count;
        pawl_code rc = pawl_claim(store, &args, &job, 1, &count, err);
        if (rc != PAWL_OK || count == 0)
            return rc;
        printf("mail: %.*s\n", (int)job.payload_len, (const char *)job.payload);
        pawl_settle_row done;
        pawl_settle_init(&done);
        done.lease = (pawl_lease){.job = job.id, .token = job.token, .version = job.lease_version};
        pawl_job_clear(&job);
        pawl_settled settled;
        rc = pawl_settle(store, "worker-1", &done, 1, &settled, err);
        if (rc != PAWL_OK)
            return rc;
    }
}

int main(int argc, char **argv)
{
    pawl_err err = {.code = PAWL_OK};
    pawl_sqlite_options options;
    pawl_sqlite *sqlite = NULL;
    pawl_store *store = NULL;
    pawl_sqlite_options_init(&options);
    options.path = argc > 1 ? argv[1] : NULL;
    pawl_code rc = pawl_sqlite_new(&options, &sqlite, &err);
    if (rc == PAWL_OK)
        rc = pawl_sqlite_open(sqlite, &store, &err);
    if (rc == PAWL_OK)
        rc = work(store, &err);
    if (rc != PAWL_OK)
        fprintf(stderr, "%s: %s\n", pawl_code_name(rc), err.text);
    pawl_store_close(store);
    pawl_sqlite_free(sqlite);
    return rc == PAWL_OK ? 0 : 1;
}
