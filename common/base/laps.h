/*  laps - what a thread's time goes to: one clock read where one stage ends and the next begins.
 *
 *  The stages are the owner's; those that only wait have names that begin with "wait_" (messages.def, HEARTBEAT). What a
 *  clock says goes into no decision of the training.
 *
 *  Threads: plain data; its owner's. */
#pragma once
#include <stddef.h>
#include <stdint.h>

enum { TT_LAPS_MAX = 16 };

typedef struct {
    int64_t lap_ns;                /* when the last lap ended           */
    int64_t spent_ns[TT_LAPS_MAX]; /* by stage, since the process started */
} tt_laps_t;

/*  The time since the lap before went to this stage. */
static inline void tt_lap(tt_laps_t *self, size_t stage, int64_t now_ns)
{
    self->spent_ns[stage] += now_ns - self->lap_ns;
    self->lap_ns = now_ns;
}
