/*  launch - the process of a worker, made without a copy of this one (vfork), which may have threads and much memory.
 *
 *  Threads: any; the child dies with the thread that calls. */
#pragma once
#include <sys/types.h>
#include "common/base/status.h"

typedef struct {
    const char *program;
    char *const *argv;
    char *mark;              /* "NAME=value", in its environment beside ours */
    int out, socket, memory; /* become 1 and 2, 3, 4; memory -1 = none */
} gym_launch_t;

/*  TT_OS, TT_NOT_FOUND: it cannot be executed. */
tt_status_t gym_launch(pid_t *out, const gym_launch_t *how);
