/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * path.c - where the file is.
 * Owns:  the default path, after the rules for state folders, and the making of its folders.
 * Never: makes a folder that a caller has named himself.
 */
#include "store/sqlite/sqlite.h"

#include "base/error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FILE_BELOW "/pawl/pawl.db"

/* Put three texts together. NULL: no memory. */
static char *joined(const char *first, const char *second, const char *third)
{
    size_t first_len = strlen(first), second_len = strlen(second), third_len = strlen(third);
    char *text = malloc(first_len + second_len + third_len + 1);
    if (text == NULL)
        return NULL;
    memcpy(text, first, first_len);
    memcpy(text + first_len, second, second_len);
    memcpy(text + first_len + second_len, third, third_len + 1);
    return text;
}

/* Make the folders of a path that are missing, for this user alone. */
static pawl_code make_folders(char *path, pawl_err *err)
{
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        bool is_made = mkdir(path, S_IRWXU) == 0 || errno == EEXIST;
        int why = errno;
        if (!is_made)
            (void)pawli_fail(err, PAWL_DOWN,
                             "%s: this folder cannot be made (%s); make it, or give a path", path,
                             strerror(why));
        *slash = '/';
        if (!is_made)
            return PAWL_DOWN;
    }
    return PAWL_OK;
}

static pawl_code default_path(bool is_made, char **ret_path, pawl_err *err)
{
    const char *state = getenv("XDG_STATE_HOME");
    const char *home = getenv("HOME");
    bool is_state = state != NULL && state[0] == '/'; /* a relative one is to be ignored */
    bool is_home = home != NULL && home[0] == '/';
    if (!is_state && !is_home)
        return pawli_fail(err, PAWL_INVALID,
                          "path is missing (NULL), and neither XDG_STATE_HOME nor HOME says where "
                          "the file is to be");
    char *path = is_state ? joined(state, "", FILE_BELOW)
                          : joined(home, "/.local/state", FILE_BELOW);
    if (path == NULL)
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    pawl_code rc = is_made ? make_folders(path, err) : PAWL_OK;
    if (rc == PAWL_OK)
        *ret_path = path;
    else
        free(path);
    return rc;
}

static pawl_code find_path(const char *path, bool is_made, char **ret_path, pawl_err *err)
{
    if (path == NULL)
        return default_path(is_made, ret_path, err);
    /* SQLite has names of its own for stores that end with the process. */
    if (path[0] == '\0' || strcmp(path, ":memory:") == 0)
        return pawli_fail(err, PAWL_INVALID, "path is \"%s\"; it must be the path of a file", path);
    /* And takes what begins like this for an address with options. */
    *ret_path = joined(strncmp(path, "file:", 5) == 0 ? "./" : "", path, "");
    return *ret_path != NULL ? PAWL_OK : pawli_fail_plain(err, PAWL_NO_MEMORY);
}

pawl_code pawli_sqlite_path(const char *path, bool is_made, char **ret_path, pawl_err *err)
{
    struct stat seen;
    char *found = NULL;
    pawl_code rc = find_path(path, is_made, &found, err);
    if (rc == PAWL_OK && !is_made && stat(found, &seen) != 0 &&
        (errno == ENOENT || errno == ENOTDIR)) {
        rc = pawli_fail(err, PAWL_DOWN,
                        "%s: there is no such file; what enqueues or works makes it", found);
        free(found);
        return rc;
    }
    if (rc == PAWL_OK)
        *ret_path = found;
    return rc;
}
