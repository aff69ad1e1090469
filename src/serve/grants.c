/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * grants.c - a file of tokens: read, and written as a whole.
 * Owns:  the file; whom it may belong to.
 * Never: leaves half of a file behind; reads one that all on the machine may write.
 */
#include "serve/access.h"

#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_MAX_LEN 4000
#define HEAD                                                                                 \
    "# Tokens of pawl serve: name, scopes, queues, when it expires, SHA-256 of the token.\n" \
    "# Made by pawl token; the tokens themselves are kept nowhere.\n"

void pawli_grants_clear(struct pawli_grants *grants)
{
    free(grants->rows);
    *grants = (struct pawli_grants){0};
}

/* ---------------------------------------------------------------- reading */

static pawl_code add_line(struct pawli_grants *grants, const char *line, pawl_err *err)
{
    struct pawli_grant grant;
    size_t blanks = strspn(line, " \t\r");
    if (line[blanks] == '\0' || line[blanks] == '#')
        return PAWL_OK;
    pawl_code code = pawli_grant_read(line, &grant, err);
    if (code != PAWL_OK)
        return code;
    for (size_t i = 0; i < grants->count; i++)
        if (strcmp(grants->rows[i].name, grant.name) == 0)
            return pawli_fail(err, PAWL_INVALID, "the name %s is there twice", grant.name);
    if (grants->count == PAWLI_GRANTS_MAX)
        return pawli_fail(err, PAWL_INVALID, "there are more than %d tokens", PAWLI_GRANTS_MAX);
    struct pawli_grant *rows = realloc(grants->rows, (grants->count + 1) * sizeof(*rows));
    if (rows == NULL)
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    grants->rows = rows;
    grants->rows[grants->count++] = grant;
    return PAWL_OK;
}

static pawl_code read_lines(const char *path, FILE *file, struct pawli_grants *grants,
                            pawl_err *err)
{
    pawl_code code = PAWL_OK;
    pawl_err inner = {.text = ""};
    char *line = NULL;
    size_t size = 0;
    ssize_t len;
    size_t number = 0;
    while (code == PAWL_OK && (len = getline(&line, &size, file)) > 0) {
        number++;
        if (line[len - 1] == '\n')
            line[len - 1] = '\0';
        code = strlen(line) + 1 >= (size_t)len
                   ? add_line(grants, line, &inner)
                   : pawli_fail(&inner, PAWL_INVALID, "there is a NUL in it");
    }
    free(line);
    if (code != PAWL_OK)
        return pawli_fail(err, code, "%.100s, line %zu: %.120s", path, number, inner.text);
    if (ferror(file) != 0)
        return pawli_fail(err, PAWL_DOWN, "%.100s cannot be read to its end", path);
    return PAWL_OK;
}

pawl_code pawli_grants_read(const char *path, struct pawli_grants *ret_grants, pawl_err *err)
{
    struct stat status;
    struct pawli_grants grants = {0};
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return pawli_fail(err, PAWL_DOWN, "%.100s: %s", path, strerror(errno));
    pawl_code code = PAWL_OK;
    if (fstat(fileno(file), &status) != 0 || !S_ISREG(status.st_mode))
        code = pawli_fail(err, PAWL_DOWN, "%.100s is no file", path);
    else if ((status.st_mode & (S_IWOTH | S_IWGRP)) != 0)
        code = pawli_fail(
            err, PAWL_DOWN,
            "%.100s: others than its owner may write to it, and so let themselves in: "
            "chmod go-w",
            path);
    if (code == PAWL_OK)
        code = read_lines(path, file, &grants, err);
    (void)fclose(file); /* only read from */
    if (code == PAWL_OK)
        *ret_grants = grants;
    else
        pawli_grants_clear(&grants);
    return code;
}

/* ---------------------------------------------------------------- writing */

/* The folder is what is locked: the file itself is another one after each change. */
pawl_code pawli_grants_lock(const char *path, int *ret_fd, pawl_err *err)
{
    char folder[PATH_MAX_LEN + 1];
    const char *slash = strrchr(path, '/');
    size_t len = slash != NULL ? (size_t)(slash - path) : 0;
    if (len > PATH_MAX_LEN)
        return pawli_fail(err, PAWL_INVALID, "the path has more than %d bytes", PATH_MAX_LEN);
    (void)snprintf(folder, sizeof(folder), "%.*s", (int)len, path); /* fits */
    const char *name = slash == NULL ? "." : len == 0 ? "/" : folder;
    int fd = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = -1;
    while (fd >= 0 && (rc = flock(fd, LOCK_EX)) != 0 && errno == EINTR)
        ;
    if (rc == 0) {
        *ret_fd = fd;
        return PAWL_OK;
    }
    int error = errno;
    if (fd >= 0)
        (void)close(fd); /* nothing was done */
    return pawli_fail(err, PAWL_DOWN, "%.100s: %s", path, strerror(error));
}

/* Whose the file at the path is, and who may read it, is so of the new one, too. */
static bool keep_owner(int fd, const char *path)
{
    struct stat status;
    struct stat own;
    if (stat(path, &status) != 0)
        return errno == ENOENT; /* it is the first */
    if (fstat(fd, &own) != 0)
        return false;
    bool is_same = own.st_uid == status.st_uid && own.st_gid == status.st_gid;
    return (is_same || fchown(fd, status.st_uid, status.st_gid) == 0) &&
           fchmod(fd, status.st_mode & (S_IRWXU | S_IRGRP | S_IROTH)) == 0;
}

static bool write_lines(int fd, const struct pawli_grants *grants)
{
    char line[PAWLI_GRANT_LINE_MAX];
    FILE *file = fdopen(fd, "w");
    if (file == NULL) {
        (void)close(fd); /* nothing was written */
        return false;
    }
    (void)fputs(HEAD, file); /* here and below: asked for at the end */
    for (size_t i = 0; i < grants->count; i++) {
        pawli_grant_write(&grants->rows[i], line);
        (void)fprintf(file, "%s\n", line);
    }
    bool is_good = fflush(file) == 0 && ferror(file) == 0 && fsync(fd) == 0;
    return fclose(file) == 0 && is_good;
}

pawl_code pawli_grants_write(const char *path, const struct pawli_grants *grants, pawl_err *err)
{
    char beside[PATH_MAX_LEN + 16];
    if (strlen(path) > PATH_MAX_LEN)
        return pawli_fail(err, PAWL_INVALID, "the path has more than %d bytes", PATH_MAX_LEN);
    (void)snprintf(beside, sizeof(beside), "%s.XXXXXX", path); /* fits */
    int fd = mkstemp(beside);                                  /* for its owner only */
    if (fd < 0)
        return pawli_fail(err, PAWL_DOWN, "%.100s: %s", path, strerror(errno));
    if (!keep_owner(fd, path)) {
        int why = errno;
        (void)close(fd);      /* nothing was written */
        (void)unlink(beside); /* likewise */
        return pawli_fail(err, PAWL_DOWN, "%.100s: its owner or its mode cannot be kept: %s", path,
                          strerror(why));
    }
    if (write_lines(fd, grants) && rename(beside, path) == 0)
        return PAWL_OK;
    int error = errno;
    (void)unlink(beside); /* one that stays is nobody's */
    return pawli_fail(err, PAWL_DOWN, "%.100s: %s", path, strerror(error));
}
