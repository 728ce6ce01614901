#include "collector/vec_self.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "collector/guard.h"
#include "collector/mask.h"
#include "collector/registry.h"
#include "common/base/mem.h"
#include "common/base/rng.h"

/*  --- randomness ---------------------------------------------------------------------------------------------- */

/*  One block of four words per count. The ENV stream has 2^8 blocks a step (rng.h); a step that draws more goes on in
 *  the counter's top 16 bits, which clocks never reach. */
static uint32_t s_next_word(tt_env_rng_t *rng)
{
    if (rng->left == 0) {
        tt_draw(rng->words, rng->seed, (tt_rng_stream_t)rng->stream, rng->who, rng->counter);
        const bool last = rng->stream == TT_STREAM_ENV && (rng->counter & 0xff) == 0xff;
        rng->counter += last ? (UINT64_C(1) << 48) - 0xff : 1;
        rng->left = 4;
    }
    return rng->words[4 - rng->left--];
}

static tt_env_rng_t s_rng_for(const tt_vec_t *self, uint32_t i, tt_rng_stream_t stream, uint64_t counter)
{
    return (tt_env_rng_t){
        .next = s_next_word, .seed = self->seed, .counter = counter, .stream = stream, .who = self->lo + i};
}

/*  --- checks --------------------------------------------------------------------------------------------------- */

static tt_status_t s_bad(const tt_vec_t *self, uint32_t i, const char *what, size_t at, double value, const char *must)
{
    return tt_err(TT_INTERNAL, "env %s: %s[%zu] of env %u is %.9g at its step %llu (episode %llu, step %u): %s",
        self->ops->id, what, at, self->lo + i, value, (unsigned long long)self->clock[i],
        (unsigned long long)self->episode[i], self->steps[i], must);
}

/*  Take what the env has written of `count` envs. */
static tt_status_t s_take_obs(tt_vec_t *self, uint32_t from, uint32_t count)
{
    for (uint32_t k = 0; k < self->columns->obs_count; k++) {
        const leaf_t *leaf = &self->obs_leaf[k];
        size_t bad;
        char text[64];
        if (leaf_take(leaf, self->obs[k], from, count, &bad))
            continue;
        const uint32_t elements = leaf->column->elements;
        const double value = leaf_written(leaf, self->raw[k], (size_t)from * elements + bad);
        return s_bad(
            self, from + (uint32_t)(bad / elements), leaf->name, bad % elements, value, leaf_must(leaf, bad, text));
    }
    return TT_OK;
}

/*  Nothing is chosen any more where an episode has ended for good: what the env says there is not asked for. */
static tt_status_t s_take_mask(tt_vec_t *self, uint32_t i, bool terminated)
{
    uint32_t column, element;
    if (!self->mask)
        return TT_OK;
    if (terminated)
        memset(vec_mask(self, i), 1, self->columns->mask_bits);
    else if (!mask_settle(self->columns, vec_mask(self, i), &column, &element))
        return tt_err(TT_INTERNAL,
            "env %s: the mask of env %u allows nothing for %s[%u] at its step %llu (episode %llu, step %u): one choice "
            "at "
            "least must be left unless the episode is terminated",
            self->ops->id, self->lo + i, self->columns->at[column].name, element, (unsigned long long)self->clock[i],
            (unsigned long long)self->episode[i], self->steps[i]);
    return TT_OK;
}

static tt_status_t s_check_reward(const tt_vec_t *self, const float *reward)
{
    size_t bad;
    if (!leaf_finite(reward, self->count, &bad))
        return s_bad(self, (uint32_t)bad, "reward", 0, (double)reward[bad], "not a number that one can learn from");
    return TT_OK;
}

/*  --- life ------------------------------------------------------------------------------------------------------ */

/*  Where env i writes its observation. */
static void s_rows_of(const tt_vec_t *self, uint32_t i, void **row)
{
    for (uint32_t k = 0; k < self->columns->obs_count; k++)
        row[k] = (char *)self->raw[k] + i * self->obs_leaf[k].bytes;
}

static tt_status_t s_begin_episode(tt_vec_t *self, uint32_t i)
{
    tt_env_rng_t rng = s_rng_for(self, i, TT_STREAM_RESET, self->episode[i] << 32);
    void *row[TT_COLUMNS_MAX];
    tt_env_out_t out = {.obs = row, .mask = vec_mask(self, i)};
    s_rows_of(self, i, row);
    if (out.mask)
        memset(out.mask, 1, self->columns->mask_bits);
    self->steps[i] = 0;
    guard_enter(self->ops->id, "reset");
    self->ops->reset(vec_state(self, i), &rng, &out);
    guard_leave();
    TT_TRY(s_take_obs(self, i, 1));
    return s_take_mask(self, i, false);
}

/*  The reason that an env gives is its own text: one line of it, and no bytes that a terminal would act on. */
static void s_copy_reason(char *to, size_t room, const char *reason)
{
    size_t i = 0;
    for (; reason[i] && i + 1 < room; i++)
        to[i] = (unsigned char)reason[i] < 0x20 || reason[i] == 0x7f ? ' ' : reason[i];
    to[i] = 0;
}

static tt_status_t s_init(tt_vec_t *self, uint32_t i, const tt_env_arg_t *args)
{
    static const tt_env_arg_t none[] = {{0}};
    char text[256];
    guard_enter_within(self->ops->id, "init");
    const char *reason = self->ops->init(vec_state(self, i), args ? args : none);
    if (reason)
        s_copy_reason(text, sizeof text, reason);
    guard_leave();
    return reason ? tt_err(TT_INTERNAL, "env %s: init of env %u failed: %s", self->ops->id, self->lo + i, text) : TT_OK;
}

static tt_status_t s_prepare(tt_vec_t *self, const tt_env_arg_t *args)
{
    TT_TRY(tt_env_check_args(self->ops, args));
    for (; self->ops->init && self->ready < self->count; self->ready++)
        TT_TRY(s_init(self, self->ready, args));
    for (uint32_t i = 0; i < self->count; i++)
        TT_TRY(s_begin_episode(self, i));
    return TT_OK;
}

/*  FNV-1a. */
static uint32_t s_hash(uint32_t h, const char *text)
{
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 16777619u;
    return h;
}

/*  Bytes of another env of the same size, or of one with other arguments, must not pass. */
static uint32_t s_identity(const tt_env_ops_t *ops, const tt_env_arg_t *args)
{
    uint32_t h = s_hash(2166136261u, ops->id);
    for (; args && args->key; args++)
        h += s_hash(s_hash(s_hash(2166136261u, args->key), "="), args->value); /* in whatever order */
    return h;
}

static void *s_array(const tt_vec_t *self, size_t bytes)
{
    return tt_aligned0(tt_mul(self->count, bytes));
}

static void s_alloc_columns(tt_vec_t *self)
{
    const tt_columns_t *columns = self->columns;
    const tt_space_t *leaf[TT_COLUMNS_MAX];
    self->obs_leaf = tt_array0(columns->obs_count, sizeof *self->obs_leaf);
    self->action_leaf = tt_array0(columns->action_count, sizeof *self->action_leaf);
    uint32_t leaves = tt_space_leaves(&self->ops->obs, leaf, TT_COLUMNS_MAX);
    TT_CHECK(leaves == columns->obs_count);
    for (uint32_t k = 0; k < columns->obs_count; k++) {
        leaf_init(&self->obs_leaf[k], leaf[k], columns, k, self->count);
        self->obs[k] = s_array(self, columns->at[k].bytes);
        self->final[k] = s_array(self, columns->at[k].bytes);
        self->raw[k] = self->obs_leaf[k].scratch ? self->obs_leaf[k].scratch : self->obs[k];
    }
    leaves = tt_space_leaves(&self->ops->action, leaf, TT_COLUMNS_MAX);
    TT_CHECK(leaves == columns->action_count);
    for (uint32_t k = 0; k < columns->action_count; k++)
        leaf_init(&self->action_leaf[k], leaf[k], columns, columns->action + k, self->count);
    if (columns->mask >= 0) {
        self->mask = s_array(self, columns->mask_bits);
        self->final[columns->mask] = s_array(self, columns->mask_bits);
    }
}

tt_status_t tt_vec_new(tt_vec_t **self_p, const tt_vec_cfg_t *cfg)
{
    TT_CHECK(cfg->count >= 1 && cfg->lo <= UINT32_MAX - cfg->count);
    TT_CHECK(cfg->ops->mask == (cfg->columns->mask >= 0));
    TT_AUTO(tt_vec) self = tt_new0(sizeof *self);
    self->ops = cfg->ops;
    self->columns = cfg->columns;
    self->seed = cfg->seed;
    self->lo = cfg->lo;
    self->count = cfg->count;
    self->identity = s_identity(cfg->ops, cfg->args);
    self->stride = tt_align(cfg->ops->state_size, 16); /* = state_size when there is step_many */
    self->states = s_array(self, self->stride);
    s_alloc_columns(self);
    self->clock = tt_array0(cfg->count, sizeof(uint64_t));
    self->episode = tt_array0(cfg->count, sizeof(uint64_t));
    self->steps = tt_array0(cfg->count, sizeof(uint32_t));
    for (uint32_t i = 0; i < cfg->count; i++)
        self->clock[i] = self->episode[i] = cfg->clock; /* so many episodes cannot have been */
    TT_TRY(s_prepare(self, cfg->args));
    *self_p = self;
    self = NULL;
    return TT_OK;
}

void tt_vec_destroy(tt_vec_t **self_p)
{
    tt_vec_t *self = *self_p;
    if (!self)
        return;
    for (uint32_t i = 0; self->ops->fini && i < self->ready; i++) {
        guard_enter_within(self->ops->id, "fini");
        self->ops->fini(vec_state(self, i));
        guard_leave();
    }
    for (uint32_t k = 0; k < self->columns->obs_count; k++)
        leaf_free(&self->obs_leaf[k]);
    for (uint32_t k = 0; k < self->columns->action_count; k++)
        leaf_free(&self->action_leaf[k]);
    for (uint32_t k = 0; k < TT_COLUMNS_MAX; k++) {
        free(self->obs[k]);
        free(self->final[k]);
    }
    free(self->obs_leaf);
    free(self->action_leaf);
    free(self->mask);
    free(self->states);
    free(self->clock);
    free(self->episode);
    free(self->steps);
    free(self);
    *self_p = NULL;
}

void *const *tt_vec_obs(const tt_vec_t *self)
{
    return self->obs;
}

const uint8_t *tt_vec_mask(const tt_vec_t *self)
{
    return self->mask;
}

uint64_t tt_vec_clock(const tt_vec_t *self, uint32_t i)
{
    return self->clock[i];
}

uint32_t tt_vec_age(const tt_vec_t *self, uint32_t i)
{
    return self->steps[i];
}

const void *tt_vec_final(const tt_vec_t *self, uint32_t i, uint32_t column)
{
    return (const char *)self->final[column] + (size_t)i * self->columns->at[column].bytes;
}

/*  --- step ------------------------------------------------------------------------------------------------------ */

static tt_status_t s_check_allowed(const tt_vec_t *self, const void *const *action)
{
    const tt_columns_t *columns = self->columns;
    for (uint32_t i = 0; i < self->count; i++) {
        const void *row[TT_COLUMNS_MAX];
        uint32_t column, element;
        for (uint32_t k = 0; k < columns->action_count; k++)
            row[k] = (const char *)action[k] + (size_t)i * columns->at[columns->action + k].bytes;
        if (!mask_allows(columns, vec_mask(self, i), row, &column, &element))
            return tt_err(TT_INVALID, "%s[%u] for env %u of %s is a choice that its mask does not allow",
                columns->at[column].name, element, self->lo + i, self->ops->id);
    }
    return TT_OK;
}

/*  The actions in the env's form. */
static tt_status_t s_give(tt_vec_t *self, const void *const *action)
{
    for (uint32_t k = 0; k < self->columns->action_count; k++) {
        const leaf_t *leaf = &self->action_leaf[k];
        const uint32_t elements = leaf->column->elements;
        size_t bad;
        if (leaf_give(leaf, action[k], self->count, &self->given[k], &bad))
            continue;
        const uint32_t env = self->lo + (uint32_t)(bad / elements);
        if (leaf->n)
            return tt_err(TT_INVALID, "%s[%zu] for env %u of %s is choice %.0f of %u", leaf->name, bad % elements, env,
                self->ops->id, leaf_written(leaf, action[k], bad), leaf->n[bad % elements]);
        return tt_err(
            TT_INVALID, "%s[%zu] for env %u of %s is not a number", leaf->name, bad % elements, env, self->ops->id);
    }
    return self->mask ? s_check_allowed(self, action) : TT_OK;
}

/*  The next env's rows. */
static void s_next_rows(const tt_vec_t *self, void **row, const void **action)
{
    for (uint32_t k = 0; k < self->columns->obs_count; k++)
        row[k] = (char *)row[k] + self->obs_leaf[k].bytes;
    for (uint32_t k = 0; k < self->columns->action_count; k++)
        action[k] = (const char *)action[k] + self->action_leaf[k].bytes;
}

static void s_move_each(tt_vec_t *self, float *reward, uint8_t *terminated, uint8_t *truncated)
{
    const tt_env_ops_t *ops = self->ops;
    void *row[TT_COLUMNS_MAX];
    const void *action[TT_COLUMNS_MAX];
    memcpy(row, self->raw, self->columns->obs_count * sizeof *row);
    memcpy(action, self->given, self->columns->action_count * sizeof *action);
    for (uint32_t i = 0; i < self->count; i++) {
        tt_env_rng_t rng = s_rng_for(self, i, TT_STREAM_ENV, self->clock[i] << 8);
        /* an env that forgets to write the reward is found out */
        tt_env_out_t out = {.obs = row, .mask = vec_mask(self, i), .reward = NAN};
        ops->step(vec_state(self, i), action, &rng, &out);
        reward[i] = (float)out.reward;
        terminated[i] = out.terminated;
        truncated[i] = out.truncated;
        s_next_rows(self, row, action);
    }
}

static void s_move_all(tt_vec_t *self, float *reward, uint8_t *terminated, uint8_t *truncated)
{
    const tt_env_many_t out = {self->raw, self->mask, reward, terminated, truncated};
    if (self->mask)
        memset(self->mask, 1, (size_t)self->count * self->columns->mask_bits);
    memset(terminated, 0, self->count);
    memset(truncated, 0, self->count);
    guard_enter(self->ops->id, "step");
    if (self->ops->step_many)
        self->ops->step_many(self->states, self->count, self->given, &out);
    else
        s_move_each(self, reward, terminated, truncated);
    guard_leave();
}

/*  Count the step; true if any env has ended. */
static bool s_count_step(tt_vec_t *self, uint8_t *terminated, uint8_t *truncated)
{
    const uint32_t limit = self->ops->max_episode_steps;
    uint8_t any = 0;
    for (uint32_t i = 0; i < self->count; i++) {
        self->clock[i]++;
        self->steps[i]++;
        terminated[i] = terminated[i] != 0; /* a plug-in's true may be any byte */
        truncated[i] = (truncated[i] != 0) | (limit != 0 && self->steps[i] >= limit);
        any |= (uint8_t)(truncated[i] | terminated[i]);
    }
    return any != 0;
}

static void s_keep_final(tt_vec_t *self, uint32_t i)
{
    const tt_columns_t *columns = self->columns;
    for (uint32_t k = 0; k < columns->obs_count; k++) {
        const size_t bytes = columns->at[k].bytes, at = i * bytes;
        memcpy((char *)self->final[k] + at, (char *)self->obs[k] + at, bytes);
    }
    if (self->mask)
        memcpy(
            (char *)self->final[columns->mask] + (size_t)i * columns->mask_bits, vec_mask(self, i), columns->mask_bits);
}

static tt_status_t s_end_episodes(tt_vec_t *self, const uint8_t *terminated, const uint8_t *truncated)
{
    for (uint32_t i = 0; i < self->count; i++) {
        if (!(terminated[i] | truncated[i]))
            continue;
        if (truncated[i])
            s_keep_final(self, i);
        self->episode[i]++;
        TT_TRY(s_begin_episode(self, i));
    }
    return TT_OK;
}

tt_status_t tt_vec_step(
    tt_vec_t *self, const void *const *action, float *reward, uint8_t *terminated, uint8_t *truncated)
{
    TT_TRY(s_give(self, action));
    s_move_all(self, reward, terminated, truncated);
    TT_TRY(s_take_obs(self, 0, self->count));
    TT_TRY(s_check_reward(self, reward));
    for (uint32_t i = 0; self->mask && i < self->count; i++)
        TT_TRY(s_take_mask(self, i, terminated[i] != 0));
    if (s_count_step(self, terminated, truncated))
        TT_TRY(s_end_episodes(self, terminated, truncated));
    return TT_OK;
}
