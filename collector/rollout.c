#include "collector/rollout.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "collector/frames.h"
#include "collector/vec.h"
#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/rl/policy.h"

enum { TIMED_STEPS = 4 }; /* of a batch, to see where the time goes */

/*  The truncations of the batch in hand: their number is known only at its end. */
typedef struct {
    uint32_t count, room;
    uint32_t *t, *env;
    char *column[TT_COLUMNS_MAX]; /* [room] rows of each column that an env gives: the observation's, the mask */
} finals_t;

struct rollout {
    rollout_cfg_t cfg;
    const tt_columns_t *columns;
    uint32_t T, E;
    uint32_t seen; /* columns that an env gives, from the first on: the observation's, the mask */
    tt_policy_t policy;
    uint32_t actor, critic; /* towers */
    size_t state_bytes;
    tt_vec_t *vec;
    frames_t frames;
    uint32_t t;            /* steps played of the batch in hand                */
    void *block;           /* NULL = no batch in hand                         */
    uint32_t block_finals; /* for how many the block has room                  */
    tt_segment_t at;
    finals_t finals;
    float *head;               /* [E][policy.out]                                  */
    float *log_std;            /* [policy.log_std] of the batch in hand            */
    uint32_t *who;             /* [E] env ids                                      */
    uint64_t *clock;           /* [E]                                              */
    float *epsilon;            /* [E]                                              */
    bool finite;               /* every number of the policy in the batch in hand  */
    int64_t policy_ns, env_ns; /* of the timed steps; halved at each batch */
};

static tt_segment_shape_t s_shape(const rollout_t *self, uint32_t finals)
{
    return (tt_segment_shape_t){
        .columns = self->columns, .T = self->T, .E = self->E, .K = finals, .S = (uint32_t)self->state_bytes};
}

static tt_status_t s_check(const rollout_cfg_t *cfg, const tt_policy_t *policy)
{
    const tt_net_spec_t *spec = tt_net_spec(tt_inference_net(cfg->net));
    const bool samples = cfg->actor.kind == TT_ACT_SAMPLE;
    const char *head = tt_actor_head(&cfg->actor);
    if (tt_net_tower(spec, head) == spec->towers || (samples && tt_net_tower(spec, "critic") == spec->towers))
        return tt_err(TT_INVALID, "the network lacks '%s'%s", head, samples ? " or 'critic'" : "");
    const tt_tower_t *actor = &spec->tower[tt_net_tower(spec, head)];
    if (tt_net_row_bytes(spec) != cfg->columns->row || spec->obs != cfg->columns->flat || actor->out != policy->out ||
        actor->log_std != policy->log_std)
        return tt_err(TT_INVALID, "the network (%u in, %u out, %u deviations) does not fit %s (%u observed, %u, %u)",
            spec->obs, actor->out, actor->log_std, cfg->env->id, cfg->columns->flat, policy->out, policy->log_std);
    const bool can = samples || tt_policy_one_choice(policy);
    TT_CHECK(can && samples == (cfg->columns->value >= 0));
    return TT_OK;
}

static tt_status_t s_new_vec(tt_vec_t **vec, const rollout_cfg_t *cfg)
{
    const tt_vec_cfg_t of = {.ops = cfg->env,
        .args = cfg->args,
        .columns = cfg->columns,
        .seed = cfg->seed,
        .lo = cfg->env_lo,
        .count = cfg->env_count,
        .clock = cfg->taken};
    return tt_vec_new(vec, &of);
}

tt_status_t rollout_new(rollout_t **self_p, const rollout_cfg_t *cfg)
{
    tt_policy_t policy;
    tt_vec_t *vec;
    tt_policy_of(&policy, cfg->columns);
    TT_TRY(s_check(cfg, &policy));
    TT_TRY(s_new_vec(&vec, cfg));
    rollout_t *self = tt_new0(sizeof *self);
    self->cfg = *cfg;
    self->cfg.clock = tt_clock_or_real(cfg->clock);
    self->columns = cfg->columns;
    self->policy = policy;
    self->actor = tt_net_tower(tt_net_spec(tt_inference_net(cfg->net)), tt_actor_head(&cfg->actor));
    self->critic = tt_net_tower(tt_net_spec(tt_inference_net(cfg->net)), "critic");
    self->vec = vec;
    self->T = cfg->steps;
    self->E = cfg->env_count;
    self->seen = cfg->columns->action; /* the actions come after them */
    self->state_bytes = tt_vec_save_size(cfg->env, cfg->columns->stack.frames);
    frames_init(&self->frames, cfg->columns, cfg->norm != NULL, cfg->clip_obs);
    self->head = tt_array0(tt_mul(self->E, policy.out), sizeof *self->head);
    self->log_std = tt_array0(policy.log_std, sizeof *self->log_std);
    self->who = tt_array0(self->E, sizeof *self->who);
    self->clock = tt_array0(self->E, sizeof *self->clock);
    self->epsilon = tt_array0(self->E, sizeof *self->epsilon);
    /* draws are keyed by the env's id in the job, so that it does not matter who plays it, nor beside which others */
    for (uint32_t i = 0; i < self->E; i++)
        self->who[i] = cfg->env_lo + i;
    *self_p = self;
    return TT_OK;
}

static void s_abandon(rollout_t *self)
{
    if (self->block)
        blocks_give(self->cfg.blocks, self->block);
    self->block = NULL;
}

void rollout_destroy(rollout_t **self_p)
{
    rollout_t *self = *self_p;
    if (!self)
        return;
    s_abandon(self);
    tt_vec_destroy(&self->vec);
    free(self->finals.t);
    free(self->finals.env);
    for (uint32_t c = 0; c < self->seen; c++)
        free(self->finals.column[c]);
    frames_free(&self->frames);
    free(self->head);
    free(self->log_std);
    free(self->who);
    free(self->clock);
    free(self->epsilon);
    free(self);
    *self_p = NULL;
}

size_t rollout_state_bytes(const rollout_t *self)
{
    return self->state_bytes;
}

tt_status_t rollout_load(rollout_t *self, const void *states, size_t bytes)
{
    if (self->state_bytes == 0 || bytes != self->E * self->state_bytes)
        return tt_err(TT_DATA, "%zu bytes of env states, expected %u x %zu", bytes, self->E, self->state_bytes);
    s_abandon(self);
    for (uint32_t i = 0; i < self->E; i++)
        TT_TRY(tt_vec_load(self->vec, i, (const char *)states + i * self->state_bytes));
    return TT_OK;
}

/* ---- playing ----------------------------------------------------------------------------------------------------- */

/*  A block with room for so many finals; what lay before them in the old one is kept. */
static void s_take_block(rollout_t *self, uint32_t finals)
{
    size_t size = 0;
    const tt_segment_shape_t shape = s_shape(self, finals);
    const tt_status_t fits = tt_segment_size(&shape, &size);
    TT_CHECK(fits == TT_OK); /* the caller checked it for the job */
    void *block = blocks_take(self->cfg.blocks, size);
    tt_segment_t at;
    tt_segment_map(&shape, block, &at);
    if (self->block) {
        memcpy(block, self->block, (size_t)((char *)at.final_t - (char *)block));
        blocks_give(self->cfg.blocks, self->block);
    }
    self->block = block;
    self->block_finals = finals;
    self->at = at;
}

/*  Frames that the learners need of the batch before; zeros where they are another episode's. */
static void s_put_before(rollout_t *self)
{
    const uint32_t before = self->columns->before;
    for (uint32_t k = 1; k <= before; k++) {
        void *column[TT_COLUMNS_MAX];
        tt_vec_before(self->vec, k, column);
        for (uint32_t c = 0; c < self->columns->obs_count; c++) {
            const size_t bytes = self->columns->at[c].bytes;
            char *to = (char *)self->at.before[c] + (size_t)(before - k) * self->E * bytes;
            memcpy(to, column[c], self->E * bytes);
            for (uint32_t i = 0; i < self->E; i++)
                if (tt_vec_age(self->vec, i) < k)
                    memset(to + i * bytes, 0, bytes);
        }
    }
}

tt_status_t rollout_begin(rollout_t *self)
{
    self->t = 0;
    self->finite = true;
    self->policy_ns /= 2;
    self->env_ns /= 2;
    self->finals.count = 0;
    if (!self->block)
        s_take_block(self, self->block_finals);
    for (uint32_t i = 0; i < self->E; i++)
        self->at.age[i] = tt_vec_age(self->vec, i);
    s_put_before(self);
    return tt_inference_log_std(self->cfg.net, self->actor, self->log_std);
}

bool rollout_in_hand(const rollout_t *self)
{
    return self->block != NULL;
}

double rollout_env_share(const rollout_t *self)
{
    const int64_t both = self->policy_ns + self->env_ns;
    return both > 0 ? (double)self->env_ns / (double)both : 0.5;
}

uint32_t rollout_played(const rollout_t *self)
{
    return self->block ? self->t : 0;
}

/*  The current rows of a column that an env gives. */
static const void *s_current(const rollout_t *self, uint32_t column)
{
    return (int)column == self->columns->mask ? (const void *)tt_vec_mask(self->vec) : tt_vec_obs(self->vec)[column];
}

static void s_room_for_final(rollout_t *self)
{
    finals_t *finals = &self->finals;
    if (finals->count < finals->room)
        return;
    finals->room = 2 * finals->room + 16;
    finals->t = tt_realloc(finals->t, finals->room * sizeof *finals->t);
    finals->env = tt_realloc(finals->env, finals->room * sizeof *finals->env);
    for (uint32_t c = 0; c < self->seen; c++)
        finals->column[c] = tt_realloc(finals->column[c], tt_mul(finals->room, self->columns->at[c].bytes));
}

static void s_add_final(rollout_t *self, uint32_t env)
{
    finals_t *finals = &self->finals;
    s_room_for_final(self);
    finals->t[finals->count] = self->t;
    finals->env[finals->count] = env;
    for (uint32_t c = 0; c < self->seen; c++) {
        const size_t bytes = self->columns->at[c].bytes;
        memcpy(finals->column[c] + finals->count * bytes, tt_vec_final(self->vec, env, c), bytes);
    }
    finals->count++;
}

/*  Where the rows of this step lie in the block, of the columns from `first` on. */
static void s_rows(const rollout_t *self, uint32_t first, uint32_t count, void **out)
{
    const size_t at = (size_t)self->t * self->E;
    for (uint32_t c = 0; c < count; c++)
        out[c] = (char *)self->at.column[first + c] + at * self->columns->at[first + c].bytes;
}

/*  One for each step, the same for all envs of the job: it does not depend on who plays them. */
static tt_status_t s_draw_noise(rollout_t *self)
{
    const tt_noise_t noise = {.seed = self->cfg.seed, .stream = TT_STREAM_NOISE, .clock = self->clock[0]};
    return tt_inference_noise(self->cfg.net, &noise);
}

/*  What the policy makes of rows: heads and values, either may be NULL. */
static tt_status_t s_evaluate(rollout_t *self, const void *const *row, uint32_t rows, float *head, float *value)
{
    float *out[TT_TOWERS_MAX] = {NULL};
    out[self->actor] = head;
    if (value)
        out[self->critic] = value;
    return tt_inference_run(self->cfg.net, row, rows, out);
}

/*  NaN and infinity survive in the sum of absolute values. */
static bool s_finite(const float *x, size_t count)
{
    float sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += fabsf(x[i]) * 0x1p-40f;
    return isfinite(sum);
}

/*  Drawn from the distributions of the head, with what that was estimated at. */
static tt_status_t s_sample(
    rollout_t *self, const void *const *row, const uint8_t *mask, const tt_dist_draw_t *draw, void *const *action)
{
    const size_t at = (size_t)self->t * self->E;
    float *value = self->at.value + at, *log_prob = self->at.log_prob + at;
    TT_TRY(s_evaluate(self, row, self->E, self->head, value));
    tt_policy_sample(&self->policy, self->head, self->log_std, mask, self->E, draw, action, log_prob);
    return TT_OK;
}

/*  The best choice by the head, or any. */
static tt_status_t s_explore(
    rollout_t *self, const void *const *row, const uint8_t *mask, const tt_dist_draw_t *draw, void *const *action)
{
    for (uint32_t i = 0; i < self->E; i++)
        self->epsilon[i] = (float)tt_epsilon(&self->cfg.actor, self->clock[i] * self->cfg.num_envs + self->who[i]);
    TT_TRY(s_draw_noise(self));
    TT_TRY(s_evaluate(self, row, self->E, self->head, NULL));
    self->finite = self->finite && s_finite(self->head, (size_t)self->E * self->policy.out);
    tt_policy_explore(&self->policy, self->head, mask, self->E, self->epsilon, draw, action[0]);
    return TT_OK;
}

static tt_status_t s_act(rollout_t *self, void *const *seen, void *const *action)
{
    const uint8_t *mask = self->columns->mask >= 0 ? seen[self->columns->mask] : NULL;
    for (uint32_t i = 0; i < self->E; i++)
        self->clock[i] = tt_vec_clock(self->vec, i);
    const tt_dist_draw_t draw = {self->cfg.seed, TT_STREAM_ACTION, self->who, self->clock};
    const void *const *row = frames_now(&self->frames, self->vec, self->E, self->cfg.norm, seen);
    return self->cfg.actor.kind == TT_ACT_SAMPLE ? s_sample(self, row, mask, &draw, action)
                                                 : s_explore(self, row, mask, &draw, action);
}

static int64_t s_now_ns(const rollout_t *self)
{
    return tt_now_ns(self->cfg.clock);
}

static tt_status_t s_step(rollout_t *self)
{
    const uint32_t every = self->T / TIMED_STEPS + 1;
    const bool timed = self->t % every == every / 2;
    const int64_t start_ns = timed ? s_now_ns(self) : 0;
    const size_t at = (size_t)self->t * self->E;
    void *seen[TT_COLUMNS_MAX], *action[TT_COLUMNS_MAX];
    s_rows(self, 0, self->seen, seen);
    s_rows(self, self->columns->action, self->columns->action_count, action);
    for (uint32_t c = 0; c < self->seen; c++)
        memcpy(seen[c], s_current(self, c), (size_t)self->E * self->columns->at[c].bytes);
    TT_TRY(s_act(self, seen, action));
    const int64_t acted_ns = timed ? s_now_ns(self) : 0;
    TT_TRY(tt_vec_step(self->vec, (const void *const *)action, self->at.reward + at, self->at.terminated + at,
        self->at.truncated + at));
    if (timed) {
        self->policy_ns += acted_ns - start_ns;
        self->env_ns += s_now_ns(self) - acted_ns;
    }
    if (memchr(self->at.truncated + at, 1, self->E))
        for (uint32_t i = 0; i < self->E; i++)
            if (self->at.truncated[at + i])
                s_add_final(self, i);
    self->t++;
    return TT_OK;
}

tt_status_t rollout_play(rollout_t *self, uint32_t max_steps, bool *done)
{
    TT_CHECK(self->block);
    for (uint32_t i = 0; i < max_steps && self->t < self->T; i++)
        TT_TRY(s_step(self));
    *done = self->t == self->T;
    return TT_OK;
}

/* ---- the end of a batch ------------------------------------------------------------------------------------------ */

/*  What the steps were estimated at, and the observations after them. */
static tt_status_t s_estimate(rollout_t *self, const tt_segment_shape_t *shape)
{
    const tt_segment_t *at = &self->at;
    const uint32_t K = shape->K;
    const size_t rows = (size_t)self->T * self->E;
    TT_TRY(s_evaluate(
        self, frames_now(&self->frames, self->vec, self->E, self->cfg.norm, at->last), self->E, NULL, at->last_value));
    if (K)
        TT_TRY(s_evaluate(self, frames_finals(&self->frames, shape, at, self->cfg.norm), K, NULL, at->final_value));
    self->finite = s_finite(at->log_prob, rows) && s_finite(at->value, rows) && s_finite(at->last_value, self->E) &&
                   s_finite(at->final_value, K);
    return TT_OK;
}

/*  A little more than there are now, so that a block is rarely taken anew; never more than there can be. */
static uint32_t s_room_for(const rollout_t *self, uint32_t finals)
{
    const uint64_t most = (uint64_t)self->T * self->E, room = (uint64_t)finals + finals / 4 + 4;
    return (uint32_t)(room < most ? room : most);
}

/*  What was seen after the last step, and at the truncations. */
static void s_put_ends(rollout_t *self)
{
    const finals_t *finals = &self->finals;
    for (uint32_t c = 0; c < self->seen; c++)
        memcpy(self->at.last[c], s_current(self, c), (size_t)self->E * self->columns->at[c].bytes);
    if (finals->count == 0)
        return;
    memcpy(self->at.final_t, finals->t, finals->count * sizeof *finals->t);
    memcpy(self->at.final_env, finals->env, finals->count * sizeof *finals->env);
    for (uint32_t c = 0; c < self->seen; c++)
        memcpy(self->at.final[c], finals->column[c], finals->count * (size_t)self->columns->at[c].bytes);
}

tt_status_t rollout_finish(rollout_t *self, tt_segment_shape_t *shape, zmq_msg_t *frame)
{
    TT_CHECK(self->block && self->t == self->T);
    const uint32_t K = self->finals.count;
    if (K > self->block_finals)
        s_take_block(self, s_room_for(self, K));
    *shape = s_shape(self, K);
    tt_segment_map(shape, self->block, &self->at);
    s_put_ends(self);
    if (self->cfg.actor.kind == TT_ACT_SAMPLE)
        TT_TRY(s_estimate(self, shape));
    for (uint32_t i = 0; self->state_bytes && i < self->E; i++)
        TT_TRY(tt_vec_save(self->vec, i, self->at.states + i * self->state_bytes));
    if (!self->finite)
        return tt_err(TT_INTERNAL, "the policy gives log-probabilities or values that are not finite: "
                                   "training has diverged; try a smaller algorithm.learning_rate");
    size_t size = 0;
    const tt_status_t fits = tt_segment_size(shape, &size);
    TT_CHECK(fits == TT_OK);
    blocks_wrap(self->cfg.blocks, self->block, size, frame);
    self->block = NULL;
    return TT_OK;
}
