/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * access.h - who may do what: tokens, each with scopes and patterns of queues. They are kept in a
 * file, a line each, with the SHA-256 of the token in the place of the token itself:
 *
 *     NAME SCOPES QUEUES EXPIRES HASH
 *     shop produce mail,news-* 2027-01-01T00:00:00Z 64 hexadecimal digits
 *     ops produce,work,read,admin * never 64 hexadecimal digits
 *
 * Lines that begin with # and empty ones are left alone. A token has 256 random bits, so that its
 * hash needs neither salt nor work.
 */
#ifndef PAWLI_SERVE_ACCESS_H
#define PAWLI_SERVE_ACCESS_H

#include "base/sha256.h"
#include "pawl/pawl.h"

#define PAWLI_TOKEN_PREFIX    "pawl_"
#define PAWLI_TOKEN_BYTES     32
#define PAWLI_TOKEN_TEXT_MAX  (sizeof(PAWLI_TOKEN_PREFIX) + 2 * PAWLI_TOKEN_BYTES) /* with a NUL */
#define PAWLI_GRANT_NAME_MAX  64
#define PAWLI_GRANT_QUEUE_MAX 512  /* bytes in the patterns of one token */
#define PAWLI_GRANTS_MAX      1000 /* tokens in a file */
#define PAWLI_GRANT_LINE_MAX  1024

/* What a token, or a route, is for. Bits. */
enum pawli_scope {
    PAWLI_SCOPE_NONE = 0, /* of a route: no token is needed */
    PAWLI_SCOPE_PRODUCE = 1,
    PAWLI_SCOPE_WORK = 2,
    PAWLI_SCOPE_READ = 4,
    PAWLI_SCOPE_ADMIN = 8
};
#define PAWLI_SCOPES_ALL 15u

extern const char *const pawli_scope_names[]; /* by their bits, lowest first; ended by NULL */
const char *pawli_scope_name(enum pawli_scope scope); /* of one bit; "none" of none */

/* What one token is for. */
struct pawli_grant {
    char name[PAWLI_GRANT_NAME_MAX + 1];
    unsigned scopes;
    char
        queues[PAWLI_GRANT_QUEUE_MAX + 1]; /* names or beginnings with a * behind; commas between */
    pawl_wall expires_at;                  /* 0: never */
    uint8_t hash[PAWLI_SHA256_LEN];
};

/* Everything: where no token is needed. */
void pawli_grant_all(struct pawli_grant *grant);

bool pawli_grant_has_queue(const struct pawli_grant *grant, const char *queue);
bool pawli_grant_has_all_queues(const struct pawli_grant *grant);

/* Whether a name, patterns or a list of scopes are good; the text names what is wrong. */
pawl_code pawli_grant_check(const struct pawli_grant *grant, pawl_err *err);

/* A token that nobody has had before, and what is kept of it. */
void pawli_token_make(const pawl_random *random, char ret_text[PAWLI_TOKEN_TEXT_MAX],
                      uint8_t ret_hash[PAWLI_SHA256_LEN]);

/* Whether two hashes are the same: the one comparison that there is. Looks at all bytes, whatever
 * they are. */
bool pawli_hash_is_same(const uint8_t a[PAWLI_SHA256_LEN], const uint8_t b[PAWLI_SHA256_LEN]);

/* A line of the file, without its newline. PAWL_INVALID names what is wrong with it. */
pawl_code pawli_grant_read(const char *line, struct pawli_grant *ret_grant, pawl_err *err);
/* The same the other way round. */
void pawli_grant_write(const struct pawli_grant *grant, char ret_line[PAWLI_GRANT_LINE_MAX]);

/* ---- a file of them */

struct pawli_grants {
    struct pawli_grant *rows; /* owned */
    size_t count;
};

/* Read a file. PAWL_INVALID: a line is wrong, or a name is there twice; PAWL_DOWN: it cannot be
 * read, or others than its owner's group may. The text names the file and the line. */
pawl_code pawli_grants_read(const char *path, struct pawli_grants *ret_grants, pawl_err *err);

/* Keep others from changing the file until the descriptor is closed: who reads it, to write it
 * again, would else undo what another has written meanwhile. PAWL_DOWN. */
pawl_code pawli_grants_lock(const char *path, int *ret_fd, pawl_err *err);

/* Write all of them: a new file takes the place of the old one as a whole, with its owner and its
 * mode, so that a server that may read the one may read the other. PAWL_DOWN. */
pawl_code pawli_grants_write(const char *path, const struct pawli_grants *grants, pawl_err *err);
void pawli_grants_clear(struct pawli_grants *grants); /* accepts an empty one */

/* Whose token it is: the time that it takes says nothing of how much of it was right. NULL:
 * nobody's. */
const struct pawli_grant *pawli_grants_find(const struct pawli_grants *grants, const char *token);

#endif
