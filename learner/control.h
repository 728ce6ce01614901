/*  control - what the coordinator and signals say: WELCOME, ROSTER, STOP, DRAIN, SIGTERM.
 *
 *  control.c alone writes control_t and the view (core.h); everyone else reads.
 *  Threads: the learner's. */
#pragma once
#include "common/net/link.h"

typedef struct core core_t;

typedef struct {
    bool welcome;  /* the job is known: model, data path and statistics are open */
    char *run_dir; /* "" or a directory, maybe of another host; owned */
    int64_t start_ns;
    tt_packet_t roster; /* one that came and was not acted on yet */
    bool roster_new;
    bool again; /* another coordinator may not know what we told the one before */
} control_t;

tt_status_t control_on_link(void *ctx, int fd);
tt_status_t control_on_signal(void *ctx, int fd);
/*  Say DRAINED, and leave. */
tt_status_t control_leave(core_t *core, const char *reason);
/*  While draining: has it taken too long? Then leave. */
tt_status_t control_check_draining(core_t *core);
/*  Act on a roster that came, if one did: after the poll, so that no socket goes away under the loop. */
tt_status_t control_enter(core_t *core);
/*  Free what it keeps. */
void control_end(core_t *core);
