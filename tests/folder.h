/*  folder - a folder of a test's own below /tmp, with all that comes to lie in it.
 *
 *  Threads: any; nothing is kept here. */
#pragma once
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { FOLDER_MAX = 64 };

/*  path: room for FOLDER_MAX. name: whose it is, at most 32 characters. 0, or -1 with errno. */
static inline int folder_make(char path[FOLDER_MAX], const char *name)
{
    snprintf(path, FOLDER_MAX, "/tmp/tt-%.32s-XXXXXX", name);
    return mkdtemp(path) ? 0 : -1;
}

static inline int folder_remove_entry(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    (void)info, (void)kind, (void)at;
    return remove(path) == 0 || errno == ENOENT ? 0 : -1; /* a socket goes with the thread that had it */
}

/*  0, or -1 with errno: something of it is still there. */
static inline int folder_remove(const char *path)
{
    return nftw(path, folder_remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}
