/*  Segments made by formula: every number says which (batch, env, step) it belongs to. */
#pragma once
#include <stdlib.h>
#include <string.h>
#include <zmq.h>
#include "common/base/mem.h"
#include "common/wire/msg.h"
#include "common/wire/segment.h"

typedef struct {
    uint64_t batch, version, instance;
    uint32_t env_lo, env_count;
} made_t;

static inline float made_obs(uint64_t batch, uint32_t env, uint32_t t, uint32_t d)
{
    return (float)(batch * 10000 + env * 100 + t * 10 + d);
}

/*  Env e is truncated at step e % T in every batch, and never else. */
static inline bool made_truncated(uint32_t env, uint32_t t, uint32_t T)
{
    return env % T == t;
}

/*  Header and body for T steps of D numbers with S bytes of state; the caller closes *frame. */
static inline tt_msg_SEGMENT_t made_segment(const made_t *made, uint32_t T, uint32_t D, uint32_t S, zmq_msg_t *frame)
{
    const uint32_t E = made->env_count;
    const tt_segment_shape_t shape = {.T = T, .E = E, .D = D, .A = 0, .K = E, .S = S};
    size_t bytes = 0;
    TT_CHECK(tt_segment_size(&shape, &bytes) == TT_OK);
    void *block = tt_aligned0(bytes);
    tt_segment_t at;
    tt_segment_map(&shape, block, &at);
    uint32_t k = 0;
    for (uint32_t t = 0; t < T; t++)
        for (uint32_t e = 0; e < E; e++) {
            const uint32_t env = made->env_lo + e, i = t * E + e;
            for (uint32_t d = 0; d < D; d++)
                at.obs[i * D + d] = made_obs(made->batch, env, t, d);
            ((int32_t *)at.action)[i] = (int32_t)((env + t) % 2);
            at.reward[i] = (float)(env + 1);
            at.log_prob[i] = -(float)(env * 100 + t);
            at.value[i] = (float)(env * 100 + t);
            at.truncated[i] = made_truncated(env, t, T);
            if (at.truncated[i]) {
                at.final_t[k] = t;
                at.final_env[k] = e;
                at.final_value[k] = (float)(1000 + env);
                for (uint32_t d = 0; d < D; d++)
                    at.final_obs[k * D + d] = -made_obs(made->batch, env, t, d);
                k++;
            }
        }
    for (uint32_t e = 0; e < E; e++) {
        at.last_value[e] = (float)(made->env_lo + e) + 0.5f;
        at.age[e] = made->batch ? T - 1 - (made->env_lo + e) % T : 0;
        for (uint32_t d = 0; d < D; d++)
            at.last_obs[e * D + d] = made_obs(made->batch, made->env_lo + e, T, d);
        memset(at.states + (size_t)e * S, (int)(made->batch * 16 + made->env_lo + e) & 255, S);
    }
    zmq_msg_init_size(frame, bytes);
    memcpy(zmq_msg_data(frame), block, bytes);
    free(block);
    return TT_MSG(SEGMENT, .era = 1, .instance = made->instance, .batch = made->batch, .version = made->version,
        .env_lo = made->env_lo, .env_count = E, .steps = T, .obs = D, .finals = E, .state_bytes = S);
}
