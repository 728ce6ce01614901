/*  trajectories - steps of envs side by side as a batch has them, and what the return of each goes on with: V'(t), 0 when
 *  terminated; the value of the observation the episode was cut at when truncated; otherwise the value of the next
 *  observation. Terminated wins when both are set.
 *
 *  Shapes:  T steps, N envs, row-major [T][N]; row number = t * N + env.
 *  Threads: pure. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/base/status.h"

typedef struct {
    uint32_t T, N;
    const float *reward, *value;           /* [T][N]                                            */
    const uint8_t *terminated, *truncated; /* [T][N]                                            */
    const float *last_value;               /* [N] of the observation after step T               */
    uint32_t finals;                       /* truncations                                       */
    const uint32_t *final_row;             /* [finals] ascending row numbers                    */
    const float *final_value;              /* [finals] of the observations they were cut at     */
    float gamma;
    bool or_flags; /* CleanRL's ppo.py: a truncation counts as a termination (finals are not read)   */
} tt_trajectories_t;

/*  next[N] = V'(t). For t = T - 1 .. 0 in turn: *left is in->finals before the first call and walks down with them.
 *  TT_INVALID: a truncated row is missing from final_row. */
tt_status_t tt_next_values(const tt_trajectories_t *in, uint32_t t, uint32_t *left, float *next);
