/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * demo_tell.h - how the demo is told: as text for people, or as one JSON document. What is told is
 * what the store answered; the teller adds nothing but words and columns.
 */
#ifndef PAWLI_CLI_DEMO_TELL_H
#define PAWLI_CLI_DEMO_TELL_H

#include "cli/json.h"
#include "pawl/pawl.h"

#include <stdbool.h>
#include <stdio.h>

struct pawli_teller {
    FILE *out; /* borrowed */
    bool is_json;
    pawl_wall began_at; /* times are told from here */
    struct pawli_json json;
};

/* One thing that was asked of the store, and its answer. What a step does not have stays empty. */
struct pawli_told {
    const char *step;     /* "enqueue", "claim", "settle", "reap", "turn" */
    const char *worker;   /* NULL: none */
    pawl_wall at;         /* the store's clock */
    const char *answer;   /* the verdict's name, or "none" where a claim gave nothing; NULL: none */
    const char *state;    /* what the job became; NULL: not said */
    const char *note;     /* what the answer means; NULL: it speaks for itself */
    int64_t version;      /* of the lease; 0: none */
    int64_t attempt_no;   /* of the ledger row; 0: none */
    int64_t turned_ms;    /* turn: by how much; otherwise 0 */
    pawl_wall expires_at; /* of the lease; 0: none */
    pawl_wall due_at;     /* 0: none */
};

/* Fill a teller that begins its story at `began_at`, and write the head of it. */
void pawli_tell_begin(struct pawli_teller *teller, FILE *out, bool is_json, pawl_wall began_at);

/* A story: its title, its steps, and last the job that it was about, with its ledger. */
void pawli_tell_story(struct pawli_teller *teller, const char *title);
void pawli_tell_step(struct pawli_teller *teller, const struct pawli_told *told);
void pawli_tell_job(struct pawli_teller *teller, const pawl_job *job, const pawl_attempt *rows,
                    size_t rows_count);

/* What the store counts in each queue, once every story is told; ends the whole. */
void pawli_tell_end(struct pawli_teller *teller, const pawl_stats *rows, size_t rows_count);

#endif
