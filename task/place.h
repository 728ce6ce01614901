/*  place - where a task's files stand: <volume>/<task>/, made by us and marked as a task's.
 *
 *      .tutti-task                whose it is; only a marked directory is ever removed
 *      <data set>                 a link to each data set that the task uses
 *      job_configId_<i>/          of job i: its working directory, and where %OUT leads; of an earlier attempt: ....attempt<n>,
 *                                 of an earlier pod of one: ....attempt<n>.<k>
 *      logs/job_configId_<i>.log  what the job wrote, of all attempts
 *      logs/...-<n>.exit          the exit code of attempt n, written by its shell when it has ended
 *
 *  Threads: pure but for the file system. */
#pragma once
#include <stdint.h>
#include "common/base/status.h"

enum { PLACE_MAX = 4096 };

typedef struct {
    const char *name, *target;
} place_link_t;

/*  Make it, unfinished until place_finish. TT_EXISTS: something is there, other than an empty directory or what an unfinished
 *  creation of the same task left behind. On errors nothing stays. */
tt_status_t place_make(const char *dir, const char *task, const place_link_t *links, size_t count);
tt_status_t place_finish(const char *dir, const char *task);
/*  Remove it with all that it holds; links are removed, not followed. Without it, all is well. TT_DENIED: not this task's. */
tt_status_t place_remove(const char *dir, const char *task);
/*  The same in two steps, of which the second may take long: what stands there now is removed, and nothing that comes to
 *  stand there meanwhile. *fd: -1 = there is nothing. */
tt_status_t place_open(const char *dir, const char *task, int *fd);
/*  Takes fd. */
tt_status_t place_empty(int fd, const char *dir);

/*  A new, empty working directory for an attempt (1, 2, ...); the one of the attempt before is put aside. */
tt_status_t place_attempt(const char *dir, uint32_t config_id, uint32_t attempt);
/*  Did the attempt end by itself? *code is its exit code then. */
bool place_exit(const char *dir, uint32_t config_id, uint32_t attempt, int *code);

/*  Paths, in out[PLACE_MAX]. */
void place_job_path(char *out, const char *dir, uint32_t config_id);
void place_log_path(char *out, const char *dir, uint32_t config_id);
void place_exit_path(char *out, const char *dir, uint32_t config_id, uint32_t attempt);
