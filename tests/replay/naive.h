/*  naive - a replay as one would write it on a blackboard: every row ever played is there, and everything is looked up by
 *  going through them. What it says of the content of frames comes from the world, not from what was copied: also whether an env
 *  broke is seen from its episodes. */
#pragma once
#include "tests/replay/world.h"

enum { NAIVE_LATE = 64, NAIVE_UNITS = 512 };

typedef struct {
    uint64_t total;
    uint32_t units;
    uint64_t unit[NAIVE_UNITS];
    float p[NAIVE_UNITS];
} naive_late_t;

typedef struct {
    const world_t *world;
    replay_cfg_t cfg;
    uint64_t first; /* oldest living batch */
    float max;
    bool born[WORLD_ENVS][WORLD_CLOCKS]; /* units by their first row */
    float p[WORLD_ENVS][WORLD_CLOCKS];
    naive_late_t late[NAIVE_LATE];
    uint32_t lates;
} naive_t;

naive_t *naive_new(const world_t *world, const replay_cfg_t *cfg);
/*  The world's newest batch. */
void naive_insert(naive_t *self);

typedef struct {
    uint32_t env;
    uint64_t clock;
    float ret, discount;
    uint32_t episode, at, next;  /* indices in the episode of the frames AT and NEXT */
    uint32_t at_back, next_back; /* frames of it before them that are held           */
    uint32_t rows;               /* that count                                       */
    bool over, cut;              /* how they end                                     */
} naive_row_t;

/*  Does the unit live whose first row this is? */
bool naive_lives(const naive_t *self, uint64_t clock, uint32_t env);
/*  Of a row that is held, or of what came after the newest. What is ahead is only set where all of it is there: then true. */
bool naive_row(const naive_t *self, uint64_t clock, uint32_t env, naive_row_t *out);
/*  Where NEXT of row k of a sequence is (replay_sample_t). */
uint32_t naive_next(const naive_row_t *row, uint32_t k);
uint64_t naive_living(const naive_t *self);
uint64_t naive_bytes(const naive_t *self);
uint32_t naive_stripe(const naive_t *self, uint64_t clock, uint32_t env);
/*  The stack that ends with frame `index`, of which so many before it are held, oldest first. */
void naive_stack(const naive_t *self, uint32_t env, uint32_t episode, uint32_t index, uint32_t back, uint8_t (*out)[4]);

/*  false: a stripe is empty. */
bool naive_sample(naive_t *self, uint64_t total, uint32_t units, float beta, uint64_t *unit, float *weight);
void naive_priorities(naive_t *self, uint64_t total, const uint64_t *unit, const float *x, uint32_t units);
