/*  vtrace - advantages and targets for one batch that other policies have acted: each step weighs as likely as the policy that is
 *  trained makes it.
 *
 *  Source:  Espeholt et al. 2018, arXiv:1802.01561, equation 1 and section 4.2, with lambda as in its remark 2:
 *             rho_t = min(rho, pi/mu), c_t = lambda min(c, pi/mu), delta_t = rho_t (r_t + gamma V'(t) - V(s_t)),
 *             v_t = V(s_t) + delta_t + gamma c_t (v_{t+1} - V(s_{t+1})), the last term 0 after an episode's end,
 *             A_t = r_t + gamma v_{t+1} - V(s_t), where v_{t+1} is V'(t) after an episode's end or the batch's;
 *           A_t weighs rho_t in the policy's gradient, which is for who takes it to say
 *  Numbers: float32; one order, so the bits are fixed by shape alone.
 *  Threads: pure. */
#pragma once
#include "common/rl/trajectories.h"

/*  rho_t or c_t / lambda; of what is no number: none. */
static inline float tt_vtrace_cut(float ratio, float most)
{
    return ratio > most ? most : ratio;
}

typedef struct {
    const float *ratio; /* [T][N] pi/mu of the actions that were taken; NULL = all 1 */
    float lambda, rho, c;
} tt_vtrace_t;

/*  Fill advantage[T][N] = A and target[T][N] = v. Errors: tt_next_values; the outputs are then unspecified. */
tt_status_t tt_vtrace(const tt_trajectories_t *in, const tt_vtrace_t *how, float *advantage, float *target);
