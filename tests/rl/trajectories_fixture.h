/*  trajectories_fixture - random trajectories with ends of both kinds, and what their returns go on with, by the definition. */
#pragma once
#include "common/rl/trajectories.h"

enum { TRAJECTORY_ROWS_MAX = 400, TRAJECTORY_ENVS_MAX = 64 };

typedef struct {
    float reward[TRAJECTORY_ROWS_MAX], value[TRAJECTORY_ROWS_MAX], last[TRAJECTORY_ENVS_MAX],
        final_value[TRAJECTORY_ROWS_MAX];
    uint8_t terminated[TRAJECTORY_ROWS_MAX], truncated[TRAJECTORY_ROWS_MAX];
    uint32_t final_row[TRAJECTORY_ROWS_MAX];
    tt_trajectories_t in; /* of the arrays above */
} trajectories_t;

/*  Even within 0 and 1. */
float trajectories_random(uint32_t who, uint64_t k);
void trajectories_fill(trajectories_t *self, uint32_t T, uint32_t N, uint32_t seed);
/*  V'(t) in double. */
double trajectories_next_value(const trajectories_t *self, uint32_t t, uint32_t env);
