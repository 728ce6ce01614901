/*  gae - generalised advantage estimates for one batch.
 *
 *  Source:  Schulman et al. 2016, arXiv:1506.02438, equations 11 and 16:
 *             delta_t = r_t + gamma V'(t) - V(s_t),  A_t = delta_t + gamma lambda A_{t+1} (0 after an episode's end)
 *           V'(t): 0 when terminated; the value of the observation the episode was cut at when truncated; otherwise the
 *           value of the next observation. Terminated wins when both are set.
 *  Shapes:  T steps, N envs, row-major [T][N]; row number = t * N + env.
 *  Numbers: float32, as the reference implementations; one order, so the bits are fixed by shape alone.
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
    float gamma, lambda;
    bool or_flags; /* CleanRL's ppo.py: a truncation counts as a termination (finals are not read)   */
} tt_gae_t;

/*  Fill advantage[T][N] and target[T][N] = advantage + value.
 *  TT_INVALID: a truncated row is missing from final_row; the outputs are then unspecified. */
tt_status_t tt_gae(const tt_gae_t *in, float *advantage, float *target);
