/*  progress - what the coordinator knows of the training: the newest STATS and the moments that a summary names.
 *
 *  Threads: plain data; the coordinator's. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "common/wire/msg.h"

enum { PROGRESS_WINDOW = 16 };

/*  Where in the training a STATS stands. */
typedef struct {
    bool any; /* there was one */
    uint32_t era;
    uint64_t update, env_steps;
} progress_at_t;

/*  Does this one go on from there? Not when it is of an older era, or of neither a newer update nor more env steps (those of the
 *  batch that ends the run): then it is from who led before, or said again after our restart. */
bool progress_newer(const progress_at_t *than, const tt_msg_STATS_t *stats);
progress_at_t progress_at(const tt_msg_STATS_t *stats);

typedef struct {
    progress_at_t at; /* of the newest STATS */
    uint64_t episodes, lag_max, dropped, broken_trajectories;
    double return_mean, length_mean;
    int64_t time_ns;       /* of the newest STATS, CLOCK_MONOTONIC of its sender     */
    int64_t first_step_ns; /* 0 = not yet                                            */
    int64_t solved_ns;     /* 0 = not in this session                                */
    uint64_t solved_steps; /* 0 = not yet                                            */
    uint64_t first_steps;  /* env steps that earlier lives had trained               */
    struct {
        int64_t time_ns;
        uint64_t env_steps;
    } window[PROGRESS_WINDOW]; /* a ring of samples, for the present speed                */
    size_t samples;
} progress_t;

/*  A STATS of rank 0. false: it is not newer; nothing is changed then. */
bool progress_stats(progress_t *self, const tt_msg_STATS_t *stats);
/*  EVENT first_step or solved. true: the first such. */
bool progress_first_step(progress_t *self, int64_t time_ns);
bool progress_solved(progress_t *self, int64_t time_ns, uint64_t env_steps);
/*  A run that another coordinator led is ours from a STATS on: what this life does counts from there. */
void progress_count_from(progress_t *self, uint64_t env_steps, int64_t time_ns);
/*  A new era goes on from a snapshot made after env_steps: what came later is void. true: the solution with it. */
bool progress_roll_back(progress_t *self, uint64_t env_steps);

/*  Env steps a second over the last seconds; 0 = not known. */
double progress_sps(const progress_t *self);
/*  Env steps a second from the first step until end_ns; 0 = not known. */
double progress_sps_overall(const progress_t *self, uint64_t env_steps, int64_t end_ns);
