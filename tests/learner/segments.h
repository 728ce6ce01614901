/*  Segments made by formula: every number says which (batch, env, step) it belongs to. */
#pragma once
#include <stdlib.h>
#include <string.h>
#include <zmq.h>
#include "common/base/mem.h"
#include "common/rl/columns.h"
#include "common/wire/msg.h"
#include "common/wire/segment.h"

typedef struct {
    uint64_t batch, version, instance;
    uint32_t env_lo, env_count;
} made_t;

/*  The list for spaces in words. Caller owns. */
static inline tt_columns_t *made_columns_stacked(
    const char *obs_words, const char *action_words, bool mask, bool estimates, uint32_t frames, tt_pad_t pad)
{
    tt_space_t *obs = NULL, *action = NULL;
    tt_columns_t *columns = NULL;
    TT_CHECK(tt_space_parse(&obs, obs_words) == TT_OK && tt_space_parse(&action, action_words) == TT_OK);
    TT_CHECK(tt_space_check(obs, "obs", false) == TT_OK && tt_space_check(action, "action", true) == TT_OK);
    TT_CHECK(tt_columns_new_stacked(&columns, obs, action, mask, estimates, frames, pad) == TT_OK);
    tt_space_free(&obs);
    tt_space_free(&action);
    return columns;
}

static inline tt_columns_t *made_columns_of(const char *obs_words, const char *action_words, bool mask, bool estimates)
{
    return made_columns_stacked(obs_words, action_words, mask, estimates, 1, TT_PAD_RESET);
}

static inline tt_columns_t *made_columns(const char *obs_words, const char *action_words, bool mask)
{
    return made_columns_of(obs_words, action_words, mask, true);
}

static inline float made_obs(uint64_t batch, uint32_t env, uint32_t t, uint32_t d)
{
    return (float)(batch * 10000 + env * 100 + t * 10 + d);
}

/*  Env e is truncated at step e % T in every batch, and never else. */
static inline bool made_truncated(uint32_t env, uint32_t t, uint32_t T)
{
    return env % T == t;
}

/*  What env e carries into a batch; nothing where an episode begins with it. */
static inline float made_carry(uint64_t batch, uint32_t env, uint32_t age, uint32_t k)
{
    return age ? (float)((batch * 5 + env * 7 + k * 3) % 16) / 16 - 0.4f : 0;
}

/*  Choice of element d where there are n: the one after it is forbidden when there is a mask. */
static inline uint32_t made_choice(uint32_t env, uint32_t t, uint32_t d, uint32_t n)
{
    return (env + t + d) % n;
}

/*  A number of an observation or of an action: floats negative in a final, integers what fits. */
static inline void made_number(
    const tt_columns_t *columns, uint32_t c, void *at, size_t i, uint32_t d, float value, uint32_t choice, bool final)
{
    const tt_column_t *column = &columns->at[c];
    const uint32_t whole = column->choice ? choice % columns->choices[column->first + d] : (uint32_t)value;
    if (column->dtype == TT_F32)
        ((float *)at)[i] = final ? -value : value;
    else if (column->dtype == TT_U8)
        ((uint8_t *)at)[i] = (uint8_t)whole;
    else if (column->dtype == TT_I32)
        ((int32_t *)at)[i] = (int32_t)whole;
    else
        ((int64_t *)at)[i] = whole;
}

static inline void made_mask(const tt_columns_t *columns, uint8_t *bit, uint32_t env, uint32_t t)
{
    for (uint32_t c = columns->action; c < columns->action + columns->action_count; c++)
        for (uint32_t e = 0; columns->at[c].choice && e < columns->at[c].elements; e++) {
            const uint32_t n = columns->choices[columns->at[c].first + e];
            for (uint32_t a = 0; a < n; a++)
                *bit++ = n == 1 || a != (made_choice(env, t, e, n) + 1) % n;
        }
}

/*  What the columns of observations, mask and actions say of (batch, env, t), as row `row` of at[]. */
static inline void made_row(
    const tt_columns_t *columns, void *const *at, size_t row, const made_t *made, uint32_t env, uint32_t t, bool final)
{
    for (uint32_t c = 0; c < columns->reward; c++) {
        const uint32_t elements = columns->at[c].elements;
        for (uint32_t d = 0; at[c] && (int)c != columns->mask && d < elements; d++)
            made_number(columns, c, at[c], row * elements + d, d, made_obs(made->batch, env, t, d), env + t + d, final);
    }
    if (columns->mask >= 0)
        made_mask(columns, (uint8_t *)at[columns->mask] + row * columns->mask_bits, env, t);
}

/*  Header and body for T steps with S bytes of state; the caller closes *frame. */
static inline tt_msg_SEGMENT_t made_segment(
    const made_t *made, const tt_columns_t *columns, uint32_t T, uint32_t S, zmq_msg_t *frame)
{
    const uint32_t E = made->env_count;
    const tt_segment_shape_t shape = {.columns = columns, .T = T, .E = E, .K = E, .S = S};
    size_t bytes = 0;
    TT_CHECK(tt_segment_size(&shape, &bytes) == TT_OK);
    void *block = tt_aligned0(bytes);
    tt_segment_t at;
    tt_segment_map(&shape, block, &at);
    uint32_t k = 0;
    for (uint32_t t = 0; t < T; t++)
        for (uint32_t e = 0; e < E; e++) {
            const uint32_t env = made->env_lo + e, i = t * E + e;
            made_row(columns, at.column, i, made, env, t, false);
            at.reward[i] = (float)(env + 1);
            if (at.value) {
                at.log_prob[i] = -(float)(env * 100 + t);
                at.value[i] = (float)(env * 100 + t);
            }
            at.truncated[i] = made_truncated(env, t, T);
            if (at.truncated[i]) {
                at.final_t[k] = t;
                at.final_env[k] = e;
                if (at.final_value)
                    at.final_value[k] = (float)(1000 + env);
                made_row(columns, at.final, k++, made, env, t, true);
            }
        }
    for (uint32_t e = 0; e < E; e++) {
        if (at.last_value)
            at.last_value[e] = (float)(made->env_lo + e) + 0.5f;
        at.age[e] = made->batch ? T - 1 - (made->env_lo + e) % T : 0;
        made_row(columns, at.last, e, made, made->env_lo + e, T, false);
        for (uint32_t c = 0; c < columns->carry; c++)
            at.carry[e * columns->carry + c] = made_carry(made->batch, made->env_lo + e, at.age[e], c);
        for (uint32_t b = 1; b <= columns->before && b <= at.age[e]; b++)
            made_row(columns, at.before, (size_t)(columns->before - b) * E + e, &(made_t){.batch = made->batch - 1},
                made->env_lo + e, T - b, false);
        memset(at.states + (size_t)e * S, (int)(made->batch * 16 + made->env_lo + e) & 255, S);
    }
    zmq_msg_init_size(frame, bytes);
    memcpy(zmq_msg_data(frame), block, bytes);
    free(block);
    return TT_MSG(SEGMENT, .era = 1, .instance = made->instance, .batch = made->batch, .version = made->version,
        .env_lo = made->env_lo, .env_count = E, .steps = T, .columns = columns->hash, .finals = E, .state_bytes = S);
}
