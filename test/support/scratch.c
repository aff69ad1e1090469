/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * scratch.c - folders for the files of tests.
 * Owns:  their names, and their end.
 * Never: removes a folder within the folder, nor anything that it has not made room for.
 */
#include "support/scratch.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Tests end processes, never the machine: files in memory are as good, and need no disk. */
static const char *top_folder(void)
{
    const char *top = getenv("TMPDIR");
    if (top != NULL && top[0] != '\0')
        return top;
    return access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" : "/tmp";
}

bool scratch_make(struct scratch *scratch)
{
    (void)snprintf(scratch->folder, sizeof(scratch->folder), "%s/pawl-test-XXXXXX",
                   top_folder()); /* if cut, mkdtemp refuses */
    if (mkdtemp(scratch->folder) == NULL) {
        perror(scratch->folder);
        return false;
    }
    (void)snprintf(scratch->path, sizeof(scratch->path), "%s/pawl.db", scratch->folder); /* fits */
    return true;
}

void scratch_remove(struct scratch *scratch)
{
    DIR *folder = opendir(scratch->folder);
    if (folder == NULL)
        return;
    const struct dirent *entry;
    while ((entry = readdir(folder)) != NULL)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            (void)unlinkat(dirfd(folder), entry->d_name, 0); /* what stays keeps the folder */
    (void)closedir(folder);
    if (rmdir(scratch->folder) != 0)
        perror(scratch->folder);
}
