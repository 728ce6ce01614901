/*  world - experience made up for tests: environments whose every frame says which one it is.
 *
 *  A frame is (env, episode, index in it). Episodes end at random, by termination or truncation, and now and then an env
 *  breaks: it goes on in another episode, sometimes in its middle. */
#pragma once
#include "learner/replay/replay.h"

enum { WORLD_ENVS = 16, WORLD_CLOCKS = 4096 };

typedef struct {
    uint32_t episode, index, steps_behind; /* of the frame that the env is at     */
    float reward;
    bool terminated, truncated;
} world_row_t;

typedef struct {
    uint32_t N, T, seed;
    uint32_t carry;      /* floats that a policy carries; before anything is played    */
    double ends, breaks; /* chances: of either end at a row, of a break at a batch's start */
    uint64_t batches;
    tt_columns_t *columns;
    uint32_t vector, image, action; /* columns */
    world_row_t row[WORLD_ENVS][WORLD_CLOCKS];
    uint32_t episode[WORLD_ENVS], index[WORLD_ENVS]; /* where each env is   */
    bool broken[WORLD_ENVS];
    /* the newest batch, cut into segments as collectors would */
    replay_part_t part[WORLD_ENVS];
    tt_segment_t segment[WORLD_ENVS];
    uint32_t parts;
    uint8_t broke[WORLD_ENVS];
} world_t;

/*  Show the newest `frames` in every column of the observation: before anything is played. */
void world_stack(world_t *self, uint32_t frames, tt_pad_t pad);
world_t *world_new(uint32_t N, uint32_t T, uint32_t seed);
void world_destroy(world_t **self_p);

/*  Play the next batch. */
void world_play(world_t *self);
tt_status_t world_insert(const world_t *self, replay_t *replay);

/*  The values of a frame: float32[3] and uint8[2, 2]. */
void world_vector(uint32_t env, uint32_t episode, uint32_t index, float out[3]);
void world_image(uint32_t env, uint32_t episode, uint32_t index, uint8_t out[4]);

/*  What an env carries into a batch, [carry]: none of it is like another, and zeros where an episode begins. */
void world_carry(const world_t *self, uint64_t batch, uint32_t env, float *out);

/*  A setup for its batches: everything an observation and an action is, room for `batches`. */
replay_cfg_t world_cfg(const world_t *self, uint32_t batches, uint32_t stripes, uint32_t ahead);
/*  Logical bytes of a row, of a final, and of a batch without finals. */
uint64_t world_row_bytes(void);
uint64_t world_batch_bytes(const world_t *self);
uint64_t world_final_bytes(void);

/*  [0, 1) of test randomness. */
double world_unit(uint32_t seed, uint64_t k);
