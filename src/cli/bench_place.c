/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * bench_place.c - a place for measurements, made and removed again.
 * Owns:  a database, or a folder with a file, and their ends.
 * Never: opens the store that it was told; removes what it has not made.
 */
#include "cli/bench_place.h"

#include "base/error.h"
#include "base/text.h"
#include "store/open.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SQLITE_PREFIX "sqlite:"
#define FOLDER_BELOW  "/pawl-bench-XXXXXX"
#define FILE_BELOW    "/bench.db"

/* ---- a server */

static pawl_code make_database(const char *url, struct pawli_bench_place *place, pawl_err *err)
{
    pawl_migrate_options options;
    pawl_err later;
    size_t count = 0;
    place->kind = "PostgreSQL";
    pawl_code code = pawli_throwaway_make(url, &place->database, err);
    if (code != PAWL_OK)
        return code;
    pawl_migrate_options_init(&options);
    options.conninfo = place->database.conninfo;
    code = pawl_migrate_up(&options, &count, err);
    if (code != PAWL_OK)
        (void)pawli_throwaway_drop(url, &place->database, &later); /* the first one is told */
    return code;
}

/* ---- a file */

/* The folder of a path, "." where it names none. */
static pawl_code folder_of(const char *path, char folder[PATH_MAX], pawl_err *err)
{
    const char *slash = strrchr(path, '/');
    if (path[0] == '\0')
        return pawli_fail(err, PAWL_INVALID,
                          "no file is named: --store sqlite:PATH, or --folder for a folder on the "
                          "disk that is meant");
    if (slash == NULL)
        (void)pawli_text_copy(folder, PATH_MAX, "."); /* it fits */
    else if (slash == path)
        (void)pawli_text_copy(folder, PATH_MAX, "/"); /* likewise */
    else if (!pawli_text_copy(folder, PATH_MAX, path))
        return pawli_fail(err, PAWL_INVALID, "the path is too long");
    else
        folder[slash - path] = '\0';
    return PAWL_OK;
}

static pawl_code make_file(const char *path, const char *folder, struct pawli_bench_place *place,
                           pawl_err *err)
{
    char base[PATH_MAX];
    pawl_code code = PAWL_OK;
    place->kind = "SQLite";
    if (folder == NULL)
        code = folder_of(path, base, err);
    else if (!pawli_text_copy(base, sizeof(base), folder))
        code = pawli_fail(err, PAWL_INVALID, "--folder is too long");
    if (code != PAWL_OK)
        return code;
    int length = snprintf(place->folder, sizeof(place->folder), "%s" FOLDER_BELOW, base);
    if (length < 0 || (size_t)length + strlen(FILE_BELOW) >= sizeof(place->folder))
        code = pawli_fail(err, PAWL_INVALID, "the path of the folder is too long");
    else if (mkdtemp(place->folder) == NULL)
        code = pawli_fail(err, PAWL_DOWN, "no folder can be made in %.100s (%s)", base,
                          strerror(errno));
    if (code != PAWL_OK)
        place->folder[0] = '\0';
    else
        (void)snprintf(place->url, sizeof(place->url), SQLITE_PREFIX "%s" FILE_BELOW,
                       place->folder); /* fits */
    return code;
}

static pawl_code remove_folder(const char *path, pawl_err *err)
{
    char file[2 * PATH_MAX];
    DIR *folder = opendir(path);
    const struct dirent *entry;
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        (void)snprintf(file, sizeof(file), "%s/%s", path, entry->d_name); /* fits */
        (void)unlink(file); /* what is left keeps the folder from being removed */
    }
    if (folder != NULL)
        (void)closedir(folder); /* it was only read */
    return rmdir(path) == 0 ? PAWL_OK
                            : pawli_fail(err, PAWL_DOWN, "the folder %.150s is still there (%s)",
                                         path, strerror(errno));
}

/* ---- any of them */

pawl_code pawli_bench_place_make(const char *url, const char *folder,
                                 struct pawli_bench_place *ret_place, pawl_err *err)
{
    *ret_place = (struct pawli_bench_place){.kind = "memory", .url = "memory:"};
    if (url == NULL)
        return make_file("", folder, ret_place, err);
    pawl_code code = pawli_store_url_check(url, err);
    if (code != PAWL_OK)
        return code;
    switch (pawli_store_kind(url)) {
    case PAWLI_STORE_POSTGRES:
        return make_database(url, ret_place, err);
    case PAWLI_STORE_SQLITE:
        return make_file(url + strlen(SQLITE_PREFIX), folder, ret_place, err);
    case PAWLI_STORE_MEMORY:
    case PAWLI_STORE_NONE: /* was refused above */
        break;
    }
    return PAWL_OK;
}

const char *pawli_bench_place_url(const struct pawli_bench_place *place)
{
    return place->database.conninfo != NULL ? place->database.conninfo : place->url;
}

pawl_code pawli_bench_place_remove(const char *url, struct pawli_bench_place *place, pawl_err *err)
{
    pawl_code code = PAWL_OK;
    if (place->folder[0] != '\0')
        code = remove_folder(place->folder, err);
    if (place->database.conninfo != NULL)
        code = pawli_throwaway_drop(url, &place->database, err);
    return code;
}
