/*  view - what a replica sees of the file system, as a container: volumes where their mounts say, its working directory, and
 *  names of others in /etc/hosts.
 *
 *  With a mount namespace (steps.h) a folder appears exactly where its mount says: in a copy of the root made of mounts,
 *  which the process enters. Where a place is not on this machine, the nearest folder above it that is there is shown as such
 *  a copy too, with the new folder in it: nothing is ever made or left outside the run directory. Without one, paths that lie in a volume are translated where we know them
 *  (working_dir), and notes say what the program will not find.
 *
 *  Pure but for looking at the file system. Threads: an instance belongs to one thread. */
#pragma once
#include "common/base/status.h"
#include "controller/steps.h"

typedef struct {
    const char *source, *target; /* a folder or file of this machine; absolute path in the container */
    const char *tmpfs;           /* NULL = source; else options of a file system in memory */
    bool read_only;
} view_mount_t;

typedef struct {
    const view_mount_t *mounts; /* any order */
    size_t count;
    const char *working_dir; /* NULL = where we are, or / where a mount hides that                                   */
    const char *scratch;     /* an empty folder of our own: for the copies, and the working directory that is nowhere */
    char kind;               /* 'r', 'u' or 0: tt_steps_allowed                     */
} view_want_t;

/*  Adds to steps (nothing for kind 0). *working_dir (caller frees; NULL = as it is) is where the process is to begin. note
 *  (may be NULL) is told, one line each, what will differ. TT_INVALID: a path is not absolute or has ".."; TT_UNSUPPORTED: a
 *  place that cannot be made (a folder of more than 4096 entries would have to be copied). */
tt_status_t view_plan(tt_steps_t *steps, char **working_dir, const view_want_t *want,
    void (*note)(void *ctx, const char *text), void *ctx);
