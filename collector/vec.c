#include "collector/vec_self.h"
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "collector/mask.h"
#include "collector/patience.h"
#include "collector/registry.h"
#include "common/base/mem.h"

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

tt_env_rng_t vec_rng(const tt_vec_t *self, uint32_t i, tt_rng_stream_t stream, uint64_t counter)
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
static tt_status_t s_take_mask(tt_vec_t *self, uint32_t i, uint8_t *mask, bool terminated)
{
    uint32_t column, element;
    if (!mask)
        return TT_OK;
    if (terminated)
        memset(mask, 1, self->columns->mask_bits);
    else if (!mask_settle(self->columns, mask, &column, &element))
        return tt_err(TT_INTERNAL,
            "env %s: the mask of env %u allows nothing for %s[%u] at its step %llu (episode %llu, step %u): one choice "
            "at "
            "least must be left unless the episode is terminated",
            self->ops->id, self->lo + i, self->columns->at[column].name, element, (unsigned long long)self->clock[i],
            (unsigned long long)self->episode[i], self->steps[i]);
    return TT_OK;
}

static tt_status_t s_check_reward(const tt_vec_t *self, const vec_share_t *share)
{
    const float *reward = share->out.reward + share->first;
    size_t bad;
    if (!leaf_finite(reward, share->count, &bad))
        return s_bad(self, share->first + (uint32_t)bad, "reward", 0, (double)reward[bad],
            "not a number that one can learn from");
    return TT_OK;
}

/* ---- waiting -------------------------------------------------------------------------------------------------- */

/*  Rows that have come, of whichever share. */
static tt_status_t s_come(tt_vec_t *self)
{
    uint32_t first, came;
    TT_TRY(self->mover->recv(self, &first, &came));
    vec_share_t *share = vec_share_of(self, first);
    share->left -= came < share->left ? came : share->left;
    return share->steps ? s_take_obs(self, first, came) : TT_OK;
}

/*  For all of a share; what comes of others meanwhile is taken as well. */
static tt_status_t s_await(tt_vec_t *self, const vec_share_t *share)
{
    while (share->left)
        TT_TRY(s_come(self));
    return TT_OK;
}

/*  --- life ------------------------------------------------------------------------------------------------------ */

void vec_one_line(char *to, size_t room, const char *text)
{
    size_t i = 0;
    for (; text[i] && i + 1 < room; i++)
        to[i] = (unsigned char)text[i] < 0x20 || text[i] == 0x7f ? ' ' : text[i];
    to[i] = 0;
}

/*  The next episode of each that is in `ending`. */
static tt_status_t s_begin_episodes(tt_vec_t *self)
{
    TT_TRY(self->mover->begin(self));
    for (uint32_t k = 0; k < self->shares; k++)
        if (!self->share[k].steps)
            TT_TRY(s_await(self, &self->share[k]));
    for (uint32_t k = 0; k < self->endings; k++) {
        const uint32_t i = self->ending[k];
        TT_TRY(s_take_obs(self, i, 1));
        TT_TRY(s_take_mask(self, i, vec_mask(self, i), false));
    }
    return TT_OK;
}

tt_status_t vec_begin_anew(tt_vec_t *self, uint32_t i, uint64_t clock)
{
    self->clock[i] = self->episode[i] = clock;
    self->steps[i] = 0;
    self->ending[0] = i;
    self->endings = 1;
    return s_begin_episodes(self);
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

/*  An observation is stored where the env writes it, if that is the stored form. */
static void s_alloc_obs(tt_vec_t *self, uint32_t k, const tt_space_t *leaf)
{
    void *lent = self->lent ? self->rows.obs[k] : NULL;
    leaf_init(&self->obs_leaf[k], leaf, self->columns, k, self->count, lent);
    self->final[k] = s_array(self, self->columns->at[k].bytes);
    if (self->obs_leaf[k].scratch || !lent)
        self->obs[k] = s_array(self, self->columns->at[k].bytes);
    else
        self->obs[k] = lent;
    self->raw[k] = self->obs_leaf[k].scratch ? self->obs_leaf[k].scratch : self->obs[k];
    if (self->columns->stack.frames > 1)
        self->past[k] = s_array(self, tt_mul(self->columns->stack.frames - 1, self->columns->at[k].bytes));
}

static void s_alloc_columns(tt_vec_t *self)
{
    const tt_columns_t *columns = self->columns;
    const tt_space_t *leaf[TT_COLUMNS_MAX];
    self->obs_leaf = tt_array0(columns->obs_count, sizeof *self->obs_leaf);
    self->action_leaf = tt_array0(columns->action_count, sizeof *self->action_leaf);
    uint32_t leaves = tt_space_leaves(&self->ops->obs, leaf, TT_COLUMNS_MAX);
    TT_CHECK(leaves == columns->obs_count);
    for (uint32_t k = 0; k < columns->obs_count; k++)
        s_alloc_obs(self, k, leaf[k]);
    leaves = tt_space_leaves(&self->ops->action, leaf, TT_COLUMNS_MAX);
    TT_CHECK(leaves == columns->action_count);
    for (uint32_t k = 0; k < columns->action_count; k++) {
        leaf_init(&self->action_leaf[k], leaf[k], columns, columns->action + k, self->count,
            self->lent ? self->rows.action[k] : NULL);
        self->action_leaf[k].squash = self->squash;
    }
    if (columns->mask >= 0) {
        self->mask = self->lent ? self->rows.mask : s_array(self, columns->mask_bits);
        self->final[columns->mask] = s_array(self, columns->mask_bits);
    }
}

/*  Those that a batch has asked for, or all as one. */
static void s_share_out(tt_vec_t *self)
{
    const uint32_t shares = self->rows.shares;
    self->shares = shares ? shares : 1;
    self->share = tt_array0(self->shares, sizeof *self->share);
    self->share_of = tt_array0(self->count, sizeof *self->share_of);
    for (uint32_t k = 0, first = 0; k < self->shares; k++) {
        const uint32_t end = shares ? self->rows.share_end[k] : self->count;
        self->share[k] = (vec_share_t){.first = first, .count = end - first};
        for (; first < end; first++)
            self->share_of[first] = k;
    }
}

tt_status_t tt_vec_check_squash(const tt_env_ops_t *ops)
{
    const tt_space_t *leaf[TT_COLUMNS_MAX];
    const uint32_t leaves = tt_space_leaves(&ops->action, leaf, TT_COLUMNS_MAX);
    uint32_t boxes = 0, bad = 0;
    for (uint32_t k = 0; k < leaves; k++) {
        if (leaf[k]->kind != TT_SPACE_BOX)
            continue;
        boxes++;
        if (!leaf_is_bounded(leaf[k], &bad))
            return tt_err(TT_CONFIG, "element %u of a box of %s's action has no bounds that it could be squashed onto",
                bad, ops->id);
    }
    return boxes ? TT_OK : tt_err(TT_CONFIG, "there is no box in %s's action that could be squashed", ops->id);
}

static tt_status_t s_open(tt_vec_t *self, const tt_vec_cfg_t *cfg)
{
    static const tt_env_arg_t none[] = {{0}};
    TT_TRY(self->mover->open(self, cfg->args ? cfg->args : none, cfg->from));
    s_share_out(self);
    s_alloc_columns(self);
    return cfg->from && self->batch ? TT_OK : s_begin_episodes(self);
}

/*  One of ours begins in no time, and one that plays elsewhere says itself what it waits for. */
static bool s_may_take_long(const tt_vec_t *self, const char **name)
{
    Dl_info object = {0}, ours = {0};
    dladdr(&vec_each, &ours);
    const bool known = dladdr(self->ops, &object) != 0;
    *name = known ? object.dli_fname : self->ops->id;
    return !(known && object.dli_fbase == ours.dli_fbase) && !(self->batch && self->batch->outside);
}

static tt_status_t s_open_aloud(tt_vec_t *self, const tt_vec_cfg_t *cfg)
{
    const char *name;
    patience_t patience;
    if (!s_may_take_long(self, &name))
        return s_open(self, cfg);
    patience_begin(&patience, name, "%s and first reset of %u env%s", self->batch ? "open" : "init", self->count,
        self->count == 1 ? "" : "s");
    const tt_status_t status = s_open(self, cfg);
    patience_end(&patience);
    return status;
}

tt_status_t tt_vec_new(tt_vec_t **self_p, const tt_vec_cfg_t *cfg)
{
    TT_CHECK(cfg->count >= 1 && cfg->lo <= UINT32_MAX - cfg->count);
    TT_CHECK(cfg->ops->mask == (cfg->columns->mask >= 0));
    TT_AUTO(tt_vec) self = tt_new0(sizeof *self);
    self->ops = cfg->ops;
    self->columns = cfg->columns;
    self->squash = cfg->squash;
    self->seed = cfg->seed;
    self->lo = cfg->lo;
    self->count = cfg->count;
    self->identity = s_identity(cfg->ops, cfg->args);
    self->batch = tt_env_batch(cfg->ops);
    self->mover = self->batch ? &vec_batch : &vec_each;
    self->clock = tt_array0(cfg->count, sizeof(uint64_t));
    self->episode = tt_array0(cfg->count, sizeof(uint64_t));
    self->steps = tt_array0(cfg->count, sizeof(uint32_t));
    self->ending = tt_array0(cfg->count, sizeof(uint32_t));
    for (uint32_t i = 0; i < cfg->count; i++) {
        self->clock[i] = self->episode[i] = cfg->clock; /* so many episodes cannot have been */
        self->ending[self->endings++] = i;
    }
    TT_TRY(tt_env_check_args(cfg->ops, cfg->args));
    if (cfg->squash)
        TT_TRY(tt_vec_check_squash(cfg->ops));
    TT_TRY(s_open_aloud(self, cfg));
    *self_p = self;
    self = NULL;
    return TT_OK;
}

void tt_vec_destroy(tt_vec_t **self_p)
{
    tt_vec_t *self = *self_p;
    if (!self)
        return;
    for (uint32_t k = 0; self->obs_leaf && k < self->columns->obs_count; k++) {
        if (!self->lent || self->obs[k] != self->rows.obs[k])
            free(self->obs[k]);
        leaf_free(&self->obs_leaf[k]);
        free(self->past[k]);
    }
    for (uint32_t k = 0; self->action_leaf && k < self->columns->action_count; k++)
        leaf_free(&self->action_leaf[k]);
    for (uint32_t k = 0; k < TT_COLUMNS_MAX; k++)
        free(self->final[k]);
    if (!self->lent)
        free(self->mask);
    self->mover->close(self); /* the arrays that it lent are not looked at any more */
    free(self->obs_leaf);
    free(self->action_leaf);
    free(self->clock);
    free(self->episode);
    free(self->steps);
    free(self->ending);
    free(self->share);
    free(self->share_of);
    free(self);
    *self_p = NULL;
}

uint32_t tt_vec_shares(const tt_vec_t *self)
{
    return self->shares;
}

void tt_vec_share(const tt_vec_t *self, uint32_t share, uint32_t *first, uint32_t *count)
{
    TT_CHECK(share < self->shares);
    *first = self->share[share].first;
    *count = self->share[share].count;
}

uint64_t tt_vec_moves(const tt_vec_t *self, uint32_t share)
{
    TT_CHECK(share < self->shares);
    return self->share[share].moves;
}

void *const *tt_vec_obs(const tt_vec_t *self)
{
    return self->obs;
}

const uint8_t *tt_vec_mask(const tt_vec_t *self)
{
    return self->mask;
}

void tt_vec_before(const tt_vec_t *self, uint32_t i, uint32_t k, void *column[TT_COLUMNS_MAX])
{
    for (uint32_t c = 0; c < self->columns->obs_count; c++)
        column[c] = vec_past(self, i, k, c);
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

static tt_status_t s_check_allowed(const tt_vec_t *self, const vec_share_t *share, const void *const *action)
{
    const tt_columns_t *columns = self->columns;
    for (uint32_t i = share->first; i < share->first + share->count; i++) {
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
static tt_status_t s_give(tt_vec_t *self, const vec_share_t *share, const void *const *action)
{
    for (uint32_t k = 0; k < self->columns->action_count; k++) {
        const leaf_t *leaf = &self->action_leaf[k];
        const uint32_t elements = leaf->column->elements;
        size_t bad;
        if (leaf_give(leaf, action[k], share->first, share->count, &self->given[k], &bad))
            continue;
        bad += (size_t)share->first * elements;
        const uint32_t env = self->lo + (uint32_t)(bad / elements);
        if (leaf->n)
            return tt_err(TT_INVALID, "%s[%zu] for env %u of %s is choice %.0f of %u", leaf->name, bad % elements, env,
                self->ops->id, leaf_written(leaf, action[k], bad), leaf->n[bad % elements]);
        return tt_err(
            TT_INVALID, "%s[%zu] for env %u of %s is not a number", leaf->name, bad % elements, env, self->ops->id);
    }
    return self->mask ? s_check_allowed(self, share, action) : TT_OK;
}

/*  What is seen now will be what was seen. */
static void s_keep_frames(tt_vec_t *self, vec_share_t *share)
{
    share->moves++;
    for (uint32_t c = 0; c < self->columns->obs_count; c++) {
        const size_t bytes = self->columns->at[c].bytes;
        memcpy(vec_past(self, share->first, 1, c), (char *)self->obs[c] + share->first * bytes, share->count * bytes);
    }
}

/*  Count the step; true if any env has ended. */
static bool s_count_step(tt_vec_t *self, const vec_share_t *share)
{
    const uint32_t limit = self->ops->max_episode_steps;
    uint8_t *terminated = share->out.terminated, *truncated = share->out.truncated, any = 0;
    for (uint32_t i = share->first; i < share->first + share->count; i++) {
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

static bool s_has_begun(const tt_vec_t *self, uint32_t i)
{
    return self->rows.begun && self->rows.begun[i];
}

/*  What an episode was cut at that is not to be seen any more: the env has gone on to the next one. */
static tt_status_t s_take_final(tt_vec_t *self, uint32_t i, bool terminated)
{
    const tt_columns_t *columns = self->columns;
    for (uint32_t k = 0; k < columns->obs_count; k++) {
        const leaf_t *leaf = &self->obs_leaf[k];
        const void *from = (const char *)self->rows.final[k] + i * leaf->bytes;
        size_t bad;
        char text[64];
        if (!leaf_read(leaf, from, (char *)self->final[k] + (size_t)i * columns->at[k].bytes, 1, &bad))
            return s_bad(self, i, leaf->name, bad, leaf_written(leaf, from, bad), leaf_must(leaf, bad, text));
    }
    if (!self->mask)
        return TT_OK;
    uint8_t *mask = (uint8_t *)self->final[columns->mask] + (size_t)i * columns->mask_bits;
    memcpy(mask, self->rows.final_mask + (size_t)i * columns->mask_bits, columns->mask_bits);
    return s_take_mask(self, i, mask, terminated);
}

static tt_status_t s_end_episodes(tt_vec_t *self, const vec_share_t *share)
{
    const uint8_t *terminated = share->out.terminated, *truncated = share->out.truncated;
    self->endings = 0;
    for (uint32_t i = share->first; i < share->first + share->count; i++) {
        if (!(terminated[i] | truncated[i]))
            continue;
        const bool begun = s_has_begun(self, i);
        const tt_status_t final = begun ? s_take_final(self, i, terminated[i] != 0) : TT_OK;
        if (truncated[i]) /* nobody learns from what a terminated one ended in; it may be looked at */
            TT_TRY(final);
        if (!begun) {
            s_keep_final(self, i);
            self->ending[self->endings++] = i;
        }
        self->episode[i]++;
        self->steps[i] = 0;
    }
    return self->endings ? s_begin_episodes(self) : TT_OK;
}

/*  Its actions are given. */
static tt_status_t s_send(tt_vec_t *self, vec_share_t *share, float *reward, uint8_t *terminated, uint8_t *truncated)
{
    share->out.reward = reward;
    share->out.terminated = terminated;
    share->out.truncated = truncated;
    if (self->columns->stack.frames > 1)
        s_keep_frames(self, share);
    share->sent = share->steps = true;
    share->left = share->count;
    return self->mover->send(self, share);
}

/*  All rows of its step are there. */
static tt_status_t s_finish(tt_vec_t *self, vec_share_t *share)
{
    share->sent = false;
    TT_TRY(s_check_reward(self, share));
    for (uint32_t i = share->first; self->mask && i < share->first + share->count; i++)
        TT_TRY(s_take_mask(self, i, vec_mask(self, i), share->out.terminated[i] != 0 && !s_has_begun(self, i)));
    return s_count_step(self, share) ? s_end_episodes(self, share) : TT_OK;
}

tt_status_t tt_vec_send(
    tt_vec_t *self, uint32_t share, const void *const *action, float *reward, uint8_t *terminated, uint8_t *truncated)
{
    TT_CHECK(share < self->shares && !self->share[share].sent);
    TT_TRY(s_give(self, &self->share[share], action));
    return s_send(self, &self->share[share], reward, terminated, truncated);
}

/*  One whose rows have all come, after the one that was the last; any: one at least is under way. */
static bool s_find_whole(tt_vec_t *self, uint32_t *share, bool *any)
{
    *any = false;
    for (uint32_t n = 0; n < self->shares; n++) {
        const uint32_t k = (self->turn + n) % self->shares;
        *any = *any || self->share[k].sent;
        if (!self->share[k].sent || self->share[k].left)
            continue;
        self->turn = (k + 1) % self->shares;
        *share = k;
        return true;
    }
    return false;
}

tt_status_t tt_vec_recv(tt_vec_t *self, bool waits, uint32_t *share)
{
    bool any;
    while (!s_find_whole(self, share, &any)) {
        TT_CHECK(any || !waits);
        if (!any || (!waits && !self->mover->ready(self)))
            return TT_AGAIN;
        TT_TRY(s_come(self));
    }
    return s_finish(self, &self->share[*share]);
}

tt_status_t tt_vec_step(
    tt_vec_t *self, const void *const *action, float *reward, uint8_t *terminated, uint8_t *truncated)
{
    for (uint32_t k = 0; k < self->shares; k++)
        TT_TRY(s_give(self, &self->share[k], action));
    for (uint32_t k = 0; k < self->shares; k++)
        TT_TRY(s_send(self, &self->share[k], reward, terminated, truncated));
    for (uint32_t k = 0, which; k < self->shares; k++)
        TT_TRY(tt_vec_recv(self, true, &which));
    return TT_OK;
}
