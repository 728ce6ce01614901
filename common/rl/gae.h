/*  gae - generalised advantage estimates for one batch.
 *
 *  Source:  Schulman et al. 2016, arXiv:1506.02438, equations 11 and 16:
 *             delta_t = r_t + gamma V'(t) - V(s_t),  A_t = delta_t + gamma lambda A_{t+1} (0 after an episode's end)
 *  Numbers: float32, as the reference implementations; one order, so the bits are fixed by shape alone.
 *  Threads: pure. */
#pragma once
#include "common/rl/trajectories.h"

/*  Fill advantage[T][N] and target[T][N] = advantage + value. Errors: tt_next_values; the outputs are then unspecified. */
tt_status_t tt_gae(const tt_trajectories_t *in, float lambda, float *advantage, float *target);
