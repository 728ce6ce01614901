/*  report - what the coordinator, and through it a person, hears of the training: STATS and EVENT.
 *
 *  report.c alone reads and writes report_t.
 *  Threads: the learner's. */
#pragma once
#include "learner/repeat.h"
#include "learner/stop.h"

typedef struct core core_t;

typedef struct {
    int64_t stats_ns; /* of the newest STATS, and its update */
    uint64_t stats_update;
    bool frozen;      /* that the learning rate is 0 has been said */
    repeat_t unsaved; /* why there is no snapshot                  */
} report_t;

/*  There are weights: what was spent before is no update's. */
void report_begin(core_t *core);
void report_stats(core_t *core);
void report_event(core_t *core, const char *kind, const char *text, double value);
/*  A file is in place; the training may be further than it. */
void report_snapshot(core_t *core, const char *path, double return_mean, uint64_t update, uint64_t env_steps);
/*  One could not be made. Each counts for the coordinator; the log and whoever watches hear of it once, and again after a while. */
void report_unsaved(core_t *core, const char *why);
/*  It is solved now: noted by every learner, said by the one that leads; and said again. */
void report_solved(core_t *core);
void report_solved_again(core_t *core);
void report_finished(core_t *core, const char *checkpoint);
stop_facts_t report_facts(const core_t *core);
