#include "collector/vec.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "collector/guard.h"
#include "common/base/limits.h"
#include "common/base/mem.h"
#include "common/base/rng.h"

struct tt_vec {
    const tt_env_ops_t *ops; /* borrowed; lives as long as the process */
    uint64_t seed;
    uint32_t lo, count;
    uint32_t ready;        /* envs whose init has run             */
    size_t stride;         /* bytes from one state to the next    */
    unsigned char *states; /* [count][stride]                     */
    float *obs, *finals;   /* [count][obs.n]                      */
    float *clipped;        /* [count][action.n], NULL if discrete */
    uint64_t *clock;       /* [count] steps since the run began   */
    uint64_t *episode;     /* [count] number of this episode      */
    uint32_t *steps;       /* [count] steps into this episode     */
};

/*  What stands before an env's own bytes in its saved form; obs follows, then the state. Little-endian, as the wire. */
typedef struct {
    uint32_t magic, env; /* "TTE1", and a hash of the env's id */
    uint64_t clock, episode;
    uint32_t steps, obs_n;
} saved_t;

enum { MAGIC = 0x31455454 };

/*  --- randomness ---------------------------------------------------------------------------------------------- */

/*  One block of four words per count. The ENV stream has 2^8 blocks a step (rng.h); a step that draws more goes on in
 *  the counter's top 16 bits, which clocks never reach. */
static uint32_t s_next_word(tt_env_rng_t *rng)
{
    if (rng->left == 0) {
        tt_draw(rng->words, rng->seed, (tt_stream_t)rng->stream, rng->who, rng->counter);
        const bool last = rng->stream == TT_STREAM_ENV && (rng->counter & 0xff) == 0xff;
        rng->counter += last ? (UINT64_C(1) << 48) - 0xff : 1;
        rng->left = 4;
    }
    return rng->words[4 - rng->left--];
}

static tt_env_rng_t s_rng_for(const tt_vec_t *self, uint32_t i, tt_stream_t stream, uint64_t counter)
{
    return (tt_env_rng_t){
        .next = s_next_word, .seed = self->seed, .counter = counter, .stream = stream, .who = self->lo + i};
}

/*  --- checks --------------------------------------------------------------------------------------------------- */

static bool s_all_finite(const float *x, size_t n)
{
    uint32_t bad = 0;
    for (size_t i = 0; i < n; i++) {
        int32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        bad |= (uint32_t)((bits & 0x7fffffff) >= 0x7f800000);
    }
    return bad == 0;
}

static tt_status_t s_not_finite(const tt_vec_t *self, uint32_t i, const char *what, uint32_t at, float value)
{
    return tt_err(TT_INTERNAL,
        "env %s: %s[%u] of env %u is %g at its step %llu (episode %llu, step %u): not a number "
        "that one can learn from",
        self->ops->id, what, at, self->lo + i, (double)value, (unsigned long long)self->clock[i],
        (unsigned long long)self->episode[i], self->steps[i]);
}

static tt_status_t s_check_obs(const tt_vec_t *self, uint32_t from, uint32_t count)
{
    const size_t n = self->ops->obs.n;
    if (s_all_finite(self->obs + from * n, count * n))
        return TT_OK;
    for (uint32_t i = from; i < from + count; i++) {
        for (uint32_t k = 0; k < n; k++) {
            if (!isfinite(self->obs[i * n + k]))
                return s_not_finite(self, i, "observation", k, self->obs[i * n + k]);
        }
    }
    return TT_OK;
}

static tt_status_t s_check_reward(const tt_vec_t *self, const float *reward)
{
    if (s_all_finite(reward, self->count))
        return TT_OK;
    for (uint32_t i = 0; i < self->count; i++) {
        if (!isfinite(reward[i]))
            return s_not_finite(self, i, "reward", 0, reward[i]);
    }
    return TT_OK;
}

static tt_status_t s_check_choice(const tt_vec_t *self, const int32_t *action)
{
    const uint32_t n = self->ops->action.n;
    uint32_t bad = 0;
    for (uint32_t i = 0; i < self->count; i++)
        bad |= (uint32_t)((uint32_t)action[i] >= n);
    if (!bad)
        return TT_OK;
    for (uint32_t i = 0; i < self->count; i++) {
        if ((uint32_t)action[i] >= n)
            return tt_err(TT_INVALID, "action %d for env %u of %s: must be 0 to %u", action[i], self->lo + i,
                self->ops->id, n - 1);
    }
    return TT_OK;
}

static tt_status_t s_clip(tt_vec_t *self, const float *action)
{
    const tt_space_t *box = &self->ops->action;
    for (uint32_t i = 0; i < self->count; i++) {
        for (uint32_t k = 0; k < box->n; k++) {
            float a = action[(size_t)i * box->n + k];
            a = a < box->low[k] ? box->low[k] : a;
            a = a > box->high[k] ? box->high[k] : a;
            if (!isfinite(a))
                return tt_err(
                    TT_INVALID, "action[%u] for env %u of %s is %g", k, self->lo + i, self->ops->id, (double)a);
            self->clipped[(size_t)i * box->n + k] = a;
        }
    }
    return TT_OK;
}

/*  --- life ------------------------------------------------------------------------------------------------------ */

static void *s_state_of(const tt_vec_t *self, uint32_t i)
{
    return self->states + i * self->stride;
}

static tt_status_t s_begin_episode(tt_vec_t *self, uint32_t i)
{
    tt_env_rng_t rng = s_rng_for(self, i, TT_STREAM_RESET, self->episode[i] << 32);
    self->steps[i] = 0;
    guard_enter(self->ops->id, "reset");
    self->ops->reset(s_state_of(self, i), &rng, self->obs + (size_t)i * self->ops->obs.n);
    guard_leave();
    return s_check_obs(self, i, 1);
}

static tt_status_t s_prepare(tt_vec_t *self)
{
    for (; self->ops->init && self->ready < self->count; self->ready++) {
        guard_enter_within(self->ops->id, "init");
        const int rc = self->ops->init(s_state_of(self, self->ready));
        guard_leave();
        if (rc != 0)
            return tt_err(TT_INTERNAL, "env %s: init of env %u failed: it returned %d", self->ops->id,
                self->lo + self->ready, rc);
    }
    for (uint32_t i = 0; i < self->count; i++)
        TT_TRY(s_begin_episode(self, i));
    return TT_OK;
}

tt_status_t tt_vec_new(
    tt_vec_t **self_p, const tt_env_ops_t *ops, uint64_t seed, uint32_t lo, uint32_t count, uint64_t clock)
{
    TT_CHECK(count >= 1 && lo <= UINT32_MAX - count);
    TT_AUTO(tt_vec) self = tt_new0(sizeof *self);
    self->ops = ops;
    self->seed = seed;
    self->lo = lo;
    self->count = count;
    self->stride = tt_align(ops->state_size, 16); /* = state_size when there is step_many */
    self->states = tt_aligned0(tt_mul(count, self->stride));
    self->obs = tt_aligned0(tt_mul(tt_mul(count, ops->obs.n), sizeof(float)));
    self->finals = tt_aligned0(tt_mul(tt_mul(count, ops->obs.n), sizeof(float)));
    if (ops->action.kind == TT_SPACE_BOX)
        self->clipped = tt_aligned0(tt_mul(tt_mul(count, ops->action.n), sizeof(float)));
    self->clock = tt_array0(count, sizeof(uint64_t));
    self->episode = tt_array0(count, sizeof(uint64_t));
    self->steps = tt_array0(count, sizeof(uint32_t));
    for (uint32_t i = 0; i < count; i++)
        self->clock[i] = self->episode[i] = clock; /* so many episodes cannot have been */
    TT_TRY(s_prepare(self));
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
        self->ops->fini(s_state_of(self, i));
        guard_leave();
    }
    free(self->states);
    free(self->obs);
    free(self->finals);
    free(self->clipped);
    free(self->clock);
    free(self->episode);
    free(self->steps);
    free(self);
    *self_p = NULL;
}

const float *tt_vec_obs(const tt_vec_t *self)
{
    return self->obs;
}

uint64_t tt_vec_clock(const tt_vec_t *self, uint32_t i)
{
    return self->clock[i];
}

uint32_t tt_vec_age(const tt_vec_t *self, uint32_t i)
{
    return self->steps[i];
}

const float *tt_vec_final_obs(const tt_vec_t *self, uint32_t i)
{
    return self->finals + (size_t)i * self->ops->obs.n;
}

/*  --- step ------------------------------------------------------------------------------------------------------ */

static void s_move_each(tt_vec_t *self, const void *action, float *reward, uint8_t *terminated)
{
    const tt_env_ops_t *ops = self->ops;
    const size_t size = ops->action.kind == TT_SPACE_BOX ? ops->action.n * sizeof(float) : sizeof(int32_t);
    for (uint32_t i = 0; i < self->count; i++) {
        tt_env_rng_t rng = s_rng_for(self, i, TT_STREAM_ENV, self->clock[i] << 8);
        double r = NAN; /* an env that forgets to write it is found out */
        terminated[i] = ops->step(
            s_state_of(self, i), (const char *)action + i * size, &rng, self->obs + (size_t)i * ops->obs.n, &r);
        reward[i] = (float)r;
    }
}

static void s_move_all(tt_vec_t *self, const void *action, float *reward, uint8_t *terminated)
{
    guard_enter(self->ops->id, "step");
    if (self->ops->step_many)
        self->ops->step_many(self->states, self->count, action, self->obs, reward, terminated);
    else
        s_move_each(self, action, reward, terminated);
    guard_leave();
}

/*  Count the step; true if any env has ended. */
static bool s_count_step(tt_vec_t *self, const uint8_t *terminated, uint8_t *truncated)
{
    const uint32_t limit = self->ops->max_episode_steps;
    uint8_t any = 0;
    for (uint32_t i = 0; i < self->count; i++) {
        self->clock[i]++;
        self->steps[i]++;
        truncated[i] = limit != 0 && self->steps[i] >= limit;
        any |= (uint8_t)(truncated[i] | terminated[i]);
    }
    return any != 0;
}

static tt_status_t s_end_episodes(tt_vec_t *self, uint8_t *terminated, const uint8_t *truncated)
{
    const size_t n = self->ops->obs.n;
    for (uint32_t i = 0; i < self->count; i++) {
        terminated[i] = terminated[i] != 0; /* a plug-in's true may be any byte */
        if (!(terminated[i] | truncated[i]))
            continue;
        if (truncated[i])
            memcpy(self->finals + i * n, self->obs + i * n, n * sizeof(float));
        self->episode[i]++;
        TT_TRY(s_begin_episode(self, i));
    }
    return TT_OK;
}

tt_status_t tt_vec_step(tt_vec_t *self, const void *action, float *reward, uint8_t *terminated, uint8_t *truncated)
{
    if (self->clipped) {
        TT_TRY(s_clip(self, action));
        action = self->clipped;
    } else {
        TT_TRY(s_check_choice(self, action));
    }
    s_move_all(self, action, reward, terminated);
    TT_TRY(s_check_obs(self, 0, self->count));
    TT_TRY(s_check_reward(self, reward));
    if (s_count_step(self, terminated, truncated))
        TT_TRY(s_end_episodes(self, terminated, truncated));
    return TT_OK;
}

/*  --- save and load --------------------------------------------------------------------------------------------- */

/*  FNV-1a: bytes of another env of the same size must not pass. */
static uint32_t s_hash(const char *text)
{
    uint32_t h = 2166136261u;
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 16777619u;
    return h;
}

_Static_assert(sizeof(saved_t) + TT_UNITS_MAX * sizeof(float) + TT_ENV_MAX_STATE <= TT_ENV_STATE_MAX,
    "every env that is taken can be sent");

static size_t s_own_size(const tt_env_ops_t *ops)
{
    if (ops->save)
        return ops->save_size;
    return ops->init ? 0 : ops->state_size; /* what init made may point elsewhere */
}

size_t tt_vec_save_size(const tt_env_ops_t *ops)
{
    const size_t own = s_own_size(ops);
    return own ? sizeof(saved_t) + ops->obs.n * sizeof(float) + own : 0;
}

void tt_vec_save(const tt_vec_t *self, uint32_t i, void *bytes)
{
    const tt_env_ops_t *ops = self->ops;
    const size_t own = s_own_size(ops), obs_size = ops->obs.n * sizeof(float);
    TT_CHECK(own > 0 && i < self->count);
    const saved_t head = {.magic = MAGIC,
        .env = s_hash(ops->id),
        .clock = self->clock[i],
        .episode = self->episode[i],
        .steps = self->steps[i],
        .obs_n = ops->obs.n};
    unsigned char *to = bytes;
    memcpy(to, &head, sizeof head);
    memcpy(to + sizeof head, self->obs + (size_t)i * ops->obs.n, obs_size);
    to += sizeof head + obs_size;
    if (!ops->save) {
        memcpy(to, s_state_of(self, i), own);
        return;
    }
    memset(to, 0, own); /* save may write less: equal states have equal bytes */
    guard_enter(ops->id, "save");
    ops->save(s_state_of(self, i), to);
    guard_leave();
}

static tt_status_t s_check_saved(const tt_vec_t *self, const saved_t *head, const unsigned char *obs)
{
    const tt_env_ops_t *ops = self->ops;
    if (head->magic != MAGIC || head->env != s_hash(ops->id) || head->obs_n != ops->obs.n)
        return tt_err(TT_DATA, "env %s: these bytes are not a saved state of it", ops->id);
    float first[64];
    bool finite = true;
    for (size_t at = 0; at < ops->obs.n; at += TT_COUNT(first)) { /* bytes need not be aligned */
        const size_t n = ops->obs.n - at < TT_COUNT(first) ? ops->obs.n - at : TT_COUNT(first);
        memcpy(first, obs + at * sizeof(float), n * sizeof(float));
        finite = finite && s_all_finite(first, n);
    }
    if (!finite || (ops->max_episode_steps && head->steps >= ops->max_episode_steps) || head->clock < head->steps ||
        head->clock < head->episode || head->clock >> 40 != 0)
        return tt_err(TT_DATA, "env %s: a saved state is damaged", ops->id);
    return TT_OK;
}

tt_status_t tt_vec_load(tt_vec_t *self, uint32_t i, const void *bytes)
{
    const tt_env_ops_t *ops = self->ops;
    const size_t own = s_own_size(ops), obs_size = ops->obs.n * sizeof(float);
    TT_CHECK(own > 0 && i < self->count);
    saved_t head;
    memcpy(&head, bytes, sizeof head);
    const unsigned char *obs = (const unsigned char *)bytes + sizeof head, *state = obs + obs_size;
    TT_TRY(s_check_saved(self, &head, obs));
    if (ops->load) {
        guard_enter_within(ops->id, "load");
        const int rc = ops->load(s_state_of(self, i), state);
        guard_leave();
        if (rc != 0)
            return tt_err(TT_DATA, "env %s: load refused a saved state: it returned %d", ops->id, rc);
    } else {
        memcpy(s_state_of(self, i), state, own);
    }
    memcpy(self->obs + (size_t)i * ops->obs.n, obs, obs_size);
    self->clock[i] = head.clock;
    self->episode[i] = head.episode;
    self->steps[i] = head.steps;
    return TT_OK;
}
