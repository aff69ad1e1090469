/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * problem.h - what is answered, and how a failure is told: application/problem+json (RFC 9457) with
 * a `type` for each thing that can be wrong, which never changes its meaning.
 */
#ifndef PAWLI_SERVE_PROBLEM_H
#define PAWLI_SERVE_PROBLEM_H

#include "base/buffer.h"
#include "pawl/pawl.h"

#define PAWLI_PROBLEM_PREFIX "urn:pawl:problem:"
#define PAWLI_ETAG_MAX       40
#define PAWLI_ALLOW_MAX      64
#define PAWLI_MEDIA_TYPE_MAX 256

/* An answer, as it is put together. Zeroed: none yet. */
struct pawli_answer {
    unsigned status;
    const char *type; /* of the content; constant. NULL: there is none */
    struct pawli_buffer body;
    char etag[PAWLI_ETAG_MAX];
    char allow[PAWLI_ALLOW_MAX];             /* the methods that a 405 names; empty: not told */
    char payload_type[PAWLI_MEDIA_TYPE_MAX]; /* a payload's own, instead of `type`; empty: none */
    int retry_after_s;                       /* 0: not told */
    bool is_replayed;                        /* it was given before: see once.h */
    bool is_closing;                         /* the connection ends with it */
    pawl_code code;                          /* what the store or the check of arguments said */
    const char *problem;                     /* the end of the problem's type; NULL: it is none */
};

void pawli_answer_clear(struct pawli_answer *answer);

/* What is wrong with a request, beyond what a pawl_code tells. */
enum pawli_problem {
    PAWLI_PROBLEM_BAD_REQUEST = 0,
    PAWLI_PROBLEM_NOT_FOUND,    /* no such path */
    PAWLI_PROBLEM_METHOD,       /* the path has other methods */
    PAWLI_PROBLEM_UNAUTHORIZED, /* no token, or one that is not known or has expired */
    PAWLI_PROBLEM_FORBIDDEN,    /* the token is not for this */
    PAWLI_PROBLEM_WRONG_HOST,   /* Host or Origin: a browser was led here */
    PAWLI_PROBLEM_TOO_LARGE,    /* the body */
    PAWLI_PROBLEM_MEDIA_TYPE,   /* of the body */
    PAWLI_PROBLEM_CHANGED,      /* If-Match does not match */
    PAWLI_PROBLEM_KEY_USED,     /* an Idempotency-Key, for another request */
    PAWLI_PROBLEM_UNDER_WAY,    /* the same request is being carried out */
    PAWLI_PROBLEM_BUSY,         /* a limit of the server is reached; try later */
    PAWLI_PROBLEM_DRAINING,     /* the server is about to end */
    PAWLI_PROBLEM_NOT_READY,
    PAWLI_PROBLEMS
};

/* Make the answer a problem, with what `format` says as its detail; what was in it goes. */
void pawli_answer_problem(struct pawli_answer *answer, enum pawli_problem problem,
                          const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The same for a code of the library, with err->text as its detail. `err` may be NULL. */
void pawli_answer_code(struct pawli_answer *answer, pawl_code code, const pawl_err *err);

/* The status that a code is answered with. */
unsigned pawli_code_status(pawl_code code);

/* Go through all there are, for documents and tests: type (without prefix) and status of the n-th.
 * False: there is none. */
bool pawli_problem_at(size_t n, const char **ret_type, unsigned *ret_status);

#endif
