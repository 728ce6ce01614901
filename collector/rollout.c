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

/*  The envs of one segment, and its block. */
typedef struct {
    uint32_t first, E; /* of the range                                    */
    void *block;       /* NULL = no batch in hand                         */
    tt_segment_t at;
    finals_t finals;
} part_t;

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
    uint32_t t;             /* steps played of the batch in hand                */
    part_t *part;           /* [parts] what the range is cut into               */
    uint32_t parts, widest; /* the most envs of one                            */
    uint32_t block_finals;  /* for how many each block has room                 */
    void *staged_block;
    tt_segment_t staged;       /* where there are several parts: what a step gave, for all envs of the range; T = 1 */
    float *head;               /* [E][policy.out]                                  */
    float *log_std;            /* [policy.log_std] of the batch in hand            */
    uint32_t *who;             /* [E] env ids                                      */
    uint64_t *clock;           /* [E]                                              */
    float *epsilon;            /* [E]                                              */
    bool finite;               /* every number of the policy in the batch in hand  */
    int64_t policy_ns, env_ns; /* of the timed steps; halved at each batch */
};

static tt_segment_shape_t s_shape(const rollout_t *self, uint32_t envs, uint32_t finals)
{
    return (tt_segment_shape_t){
        .columns = self->columns, .T = self->T, .E = envs, .K = finals, .S = (uint32_t)self->state_bytes};
}

static tt_segment_shape_t s_part_shape(const rollout_t *self, const part_t *part)
{
    return s_shape(self, part->E, part->finals.count);
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
        .clock = cfg->taken,
        .from = cfg->from};
    return tt_vec_new(vec, &of);
}

/*  Into how many segments, and where a step's rows wait for their places if there are several. */
static tt_status_t s_cut(rollout_t *self)
{
    const uint32_t most = self->cfg.segment_envs;
    self->parts = tt_segment_parts(self->E, most);
    self->part = tt_array0(self->parts, sizeof *self->part);
    for (uint32_t p = 0; p < self->parts; p++) {
        part_t *part = &self->part[p];
        tt_segment_part(self->E, most, p, &part->first, &part->E);
        self->widest = part->E > self->widest ? part->E : self->widest;
    }
    if (self->parts == 1)
        return TT_OK;
    const tt_segment_shape_t step = {.columns = self->columns, .T = 1, .E = self->E};
    size_t bytes;
    TT_TRY(tt_segment_size(&step, &bytes));
    self->staged_block = tt_aligned0(bytes);
    tt_segment_map(&step, self->staged_block, &self->staged);
    return TT_OK;
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
    self->cfg.from = NULL; /* the caller's, and soon gone */
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
    const tt_status_t status = s_cut(self);
    if (status != TT_OK)
        rollout_destroy(&self);
    *self_p = self;
    return status;
}

static void s_abandon(rollout_t *self)
{
    for (uint32_t p = 0; p < self->parts; p++) {
        if (self->part[p].block)
            blocks_give(self->cfg.blocks, self->part[p].block);
        self->part[p].block = NULL;
    }
}

static void s_free_finals(const rollout_t *self, finals_t *finals)
{
    free(finals->t);
    free(finals->env);
    for (uint32_t c = 0; c < self->seen; c++)
        free(finals->column[c]);
}

void rollout_destroy(rollout_t **self_p)
{
    rollout_t *self = *self_p;
    if (!self)
        return;
    s_abandon(self);
    tt_vec_destroy(&self->vec);
    for (uint32_t p = 0; p < self->parts; p++)
        s_free_finals(self, &self->part[p].finals);
    free(self->part);
    free(self->staged_block);
    frames_free(&self->frames);
    free(self->head);
    free(self->log_std);
    free(self->who);
    free(self->clock);
    free(self->epsilon);
    free(self);
    *self_p = NULL;
}

struct tt_vec *rollout_leave(rollout_t **self_p)
{
    tt_vec_t *vec = NULL;
    if (*self_p) {
        vec = (*self_p)->vec;
        (*self_p)->vec = NULL;
    }
    rollout_destroy(self_p);
    return vec;
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

/*  A block with room for so many finals, as large for each part, so that any may have it next; what lay before the finals in the old
 *  one is kept. */
static void s_take_block(rollout_t *self, part_t *part, uint32_t finals)
{
    size_t size = 0;
    const tt_segment_shape_t shape = s_shape(self, part->E, 0), widest = s_shape(self, self->widest, finals);
    const tt_status_t fits = tt_segment_size(&widest, &size);
    TT_CHECK(fits == TT_OK); /* the caller checked it for the job */
    void *block = blocks_take(self->cfg.blocks, size);
    tt_segment_t at;
    tt_segment_map(&shape, block, &at);
    if (part->block) {
        memcpy(block, part->block, (size_t)((char *)at.final_t - (char *)block));
        blocks_give(self->cfg.blocks, part->block);
    }
    part->block = block;
    part->at = at;
}

/*  Frames that the learners need of the batch before; zeros where they are another episode's. */
static void s_put_before(rollout_t *self, part_t *part)
{
    const uint32_t before = self->columns->before;
    for (uint32_t k = 1; k <= before; k++) {
        void *column[TT_COLUMNS_MAX];
        tt_vec_before(self->vec, k, column);
        for (uint32_t c = 0; c < self->columns->obs_count; c++) {
            const size_t bytes = self->columns->at[c].bytes;
            char *to = (char *)part->at.before[c] + (size_t)(before - k) * part->E * bytes;
            memcpy(to, (char *)column[c] + part->first * bytes, part->E * bytes);
            for (uint32_t i = 0; i < part->E; i++)
                if (tt_vec_age(self->vec, part->first + i) < k)
                    memset(to + i * bytes, 0, bytes);
        }
    }
}

static void s_begin_part(rollout_t *self, part_t *part)
{
    part->finals.count = 0;
    if (!part->block)
        s_take_block(self, part, self->block_finals);
    for (uint32_t i = 0; i < part->E; i++)
        part->at.age[i] = tt_vec_age(self->vec, part->first + i);
    s_put_before(self, part);
}

tt_status_t rollout_begin(rollout_t *self)
{
    self->t = 0;
    self->finite = true;
    self->policy_ns /= 2;
    self->env_ns /= 2;
    for (uint32_t p = 0; p < self->parts; p++)
        s_begin_part(self, &self->part[p]);
    return tt_inference_log_std(self->cfg.net, self->actor, self->log_std);
}

bool rollout_in_hand(const rollout_t *self)
{
    return self->part[0].block != NULL; /* they are taken together, and given away together */
}

uint32_t rollout_segments(const rollout_t *self)
{
    return self->parts;
}

double rollout_env_share(const rollout_t *self)
{
    const int64_t both = self->policy_ns + self->env_ns;
    return both > 0 ? (double)self->env_ns / (double)both : 0.5;
}

uint32_t rollout_played(const rollout_t *self)
{
    return rollout_in_hand(self) ? self->t : 0;
}

/*  The current rows of a column that an env gives. */
static const void *s_current(const rollout_t *self, uint32_t column)
{
    return (int)column == self->columns->mask ? (const void *)tt_vec_mask(self->vec) : tt_vec_obs(self->vec)[column];
}

static void s_see(const rollout_t *self, void **seen)
{
    for (uint32_t c = 0; c < self->seen; c++)
        seen[c] = (void *)(uintptr_t)s_current(self, c); /* nobody writes there */
}

static void s_room_for_final(const rollout_t *self, finals_t *finals)
{
    if (finals->count < finals->room)
        return;
    finals->room = 2 * finals->room + 16;
    finals->t = tt_realloc(finals->t, finals->room * sizeof *finals->t);
    finals->env = tt_realloc(finals->env, finals->room * sizeof *finals->env);
    for (uint32_t c = 0; c < self->seen; c++)
        finals->column[c] = tt_realloc(finals->column[c], tt_mul(finals->room, self->columns->at[c].bytes));
}

static void s_add_final(const rollout_t *self, part_t *part, uint32_t env)
{
    finals_t *finals = &part->finals;
    s_room_for_final(self, finals);
    finals->t[finals->count] = self->t;
    finals->env[finals->count] = env;
    for (uint32_t c = 0; c < self->seen; c++) {
        const size_t bytes = self->columns->at[c].bytes;
        memcpy(finals->column[c] + finals->count * bytes, tt_vec_final(self->vec, part->first + env, c), bytes);
    }
    finals->count++;
}

/*  Where the rows of this step lie in the block. */
static void *s_place(const rollout_t *self, const part_t *part, uint32_t column)
{
    return (char *)part->at.column[column] + (size_t)self->t * part->E * self->columns->at[column].bytes;
}

/*  Where what a step gives is written, for all envs of the range: at once to its place if there is one block. */
static void *s_row(const rollout_t *self, uint32_t column)
{
    return self->parts == 1 ? s_place(self, &self->part[0], column) : self->staged.column[column];
}

/*  Rows of a column, one for each env of the range, to the places of this step. */
static void s_spread(const rollout_t *self, uint32_t column, const void *rows)
{
    const size_t bytes = self->columns->at[column].bytes;
    for (uint32_t p = 0; p < self->parts; p++) {
        const part_t *part = &self->part[p];
        memcpy(s_place(self, part, column), (const char *)rows + part->first * bytes, part->E * bytes);
    }
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
    float *value = s_row(self, (uint32_t)self->columns->value);
    float *log_prob = s_row(self, (uint32_t)self->columns->log_prob);
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

/*  What the step gave goes to its places, if it is not there. */
static void s_put_step(const rollout_t *self)
{
    for (uint32_t c = self->columns->action; self->parts > 1 && c < self->columns->count; c++)
        s_spread(self, c, self->staged.column[c]);
}

static void s_put_finals(const rollout_t *self, part_t *part)
{
    const uint8_t *truncated = s_place(self, part, self->columns->truncated);
    if (memchr(truncated, 1, part->E))
        for (uint32_t i = 0; i < part->E; i++)
            if (truncated[i])
                s_add_final(self, part, i);
}

static tt_status_t s_step(rollout_t *self)
{
    const uint32_t every = self->T / TIMED_STEPS + 1;
    const bool timed = self->t % every == every / 2;
    const int64_t start_ns = timed ? s_now_ns(self) : 0;
    const tt_columns_t *columns = self->columns;
    void *seen[TT_COLUMNS_MAX], *action[TT_COLUMNS_MAX];
    s_see(self, seen);
    for (uint32_t c = 0; c < self->seen; c++)
        s_spread(self, c, seen[c]);
    for (uint32_t a = 0; a < columns->action_count; a++)
        action[a] = s_row(self, columns->action + a);
    TT_TRY(s_act(self, seen, action));
    const int64_t acted_ns = timed ? s_now_ns(self) : 0;
    TT_TRY(tt_vec_step(self->vec, (const void *const *)action, s_row(self, columns->reward),
        s_row(self, columns->terminated), s_row(self, columns->truncated)));
    if (timed) {
        self->policy_ns += acted_ns - start_ns;
        self->env_ns += s_now_ns(self) - acted_ns;
    }
    s_put_step(self);
    for (uint32_t p = 0; p < self->parts; p++)
        s_put_finals(self, &self->part[p]);
    self->t++;
    return TT_OK;
}

tt_status_t rollout_play(rollout_t *self, uint32_t max_steps, bool *done)
{
    TT_CHECK(self->part[0].block);
    for (uint32_t i = 0; i < max_steps && self->t < self->T; i++)
        TT_TRY(s_step(self));
    *done = self->t == self->T;
    return TT_OK;
}

/* ---- the end of a batch ------------------------------------------------------------------------------------------ */

/*  What the observations after the last step are estimated at, of all envs of the range. */
static tt_status_t s_estimate_last(rollout_t *self)
{
    void *seen[TT_COLUMNS_MAX];
    float *value = self->parts == 1 ? self->part[0].at.last_value : self->staged.last_value;
    s_see(self, seen);
    TT_TRY(s_evaluate(self, frames_now(&self->frames, self->vec, self->E, self->cfg.norm, seen), self->E, NULL, value));
    for (uint32_t p = 0; self->parts > 1 && p < self->parts; p++)
        memcpy(self->part[p].at.last_value, value + self->part[p].first, self->part[p].E * sizeof *value);
    return TT_OK;
}

/*  What the finals are estimated at; and whether all estimates are numbers. */
static tt_status_t s_estimate_part(rollout_t *self, part_t *part)
{
    const tt_segment_shape_t shape = s_part_shape(self, part);
    const tt_segment_t *at = &part->at;
    const uint32_t K = shape.K;
    const size_t rows = (size_t)self->T * part->E;
    if (K)
        TT_TRY(s_evaluate(self, frames_finals(&self->frames, &shape, at, self->cfg.norm), K, NULL, at->final_value));
    self->finite = self->finite && s_finite(at->log_prob, rows) && s_finite(at->value, rows) &&
                   s_finite(at->last_value, part->E) && s_finite(at->final_value, K);
    return TT_OK;
}

static tt_status_t s_estimate(rollout_t *self)
{
    TT_TRY(s_estimate_last(self));
    for (uint32_t p = 0; p < self->parts; p++)
        TT_TRY(s_estimate_part(self, &self->part[p]));
    return TT_OK;
}

/*  A little more than there are now, so that a block is rarely taken anew; never more than there can be. */
static uint32_t s_room_for(const rollout_t *self, uint32_t finals)
{
    const uint64_t most = (uint64_t)self->T * self->widest, room = (uint64_t)finals + finals / 4 + 4;
    return (uint32_t)(room < most ? room : most);
}

/*  What was seen after the last step, and at the truncations. */
static void s_put_ends(const rollout_t *self, part_t *part)
{
    const finals_t *finals = &part->finals;
    for (uint32_t c = 0; c < self->seen; c++) {
        const size_t bytes = self->columns->at[c].bytes;
        memcpy(part->at.last[c], (const char *)s_current(self, c) + part->first * bytes, part->E * bytes);
    }
    if (finals->count == 0)
        return;
    memcpy(part->at.final_t, finals->t, finals->count * sizeof *finals->t);
    memcpy(part->at.final_env, finals->env, finals->count * sizeof *finals->env);
    for (uint32_t c = 0; c < self->seen; c++)
        memcpy(part->at.final[c], finals->column[c], finals->count * (size_t)self->columns->at[c].bytes);
}

/*  The blocks get as much room as the most finals of one of them need. */
static void s_make_room(rollout_t *self)
{
    uint32_t most = 0;
    for (uint32_t p = 0; p < self->parts; p++)
        most = self->part[p].finals.count > most ? self->part[p].finals.count : most;
    if (most <= self->block_finals)
        return;
    self->block_finals = s_room_for(self, most);
    for (uint32_t p = 0; p < self->parts; p++)
        s_take_block(self, &self->part[p], self->block_finals);
}

static tt_status_t s_put_states(const rollout_t *self, const part_t *part)
{
    for (uint32_t i = 0; self->state_bytes && i < part->E; i++)
        TT_TRY(tt_vec_save(self->vec, part->first + i, part->at.states + i * self->state_bytes));
    return TT_OK;
}

static void s_wrap(rollout_t *self, part_t *part, rollout_segment_t *out)
{
    size_t size = 0;
    *out = (rollout_segment_t){.first = part->first, .shape = s_part_shape(self, part)};
    const tt_status_t fits = tt_segment_size(&out->shape, &size);
    TT_CHECK(fits == TT_OK);
    blocks_wrap(self->cfg.blocks, part->block, size, &out->frame);
    part->block = NULL;
}

tt_status_t rollout_finish(rollout_t *self, rollout_segment_t *out)
{
    TT_CHECK(self->part[0].block && self->t == self->T);
    s_make_room(self);
    for (uint32_t p = 0; p < self->parts; p++) {
        const tt_segment_shape_t shape = s_part_shape(self, &self->part[p]);
        tt_segment_map(&shape, self->part[p].block, &self->part[p].at);
        s_put_ends(self, &self->part[p]);
    }
    if (self->cfg.actor.kind == TT_ACT_SAMPLE)
        TT_TRY(s_estimate(self));
    for (uint32_t p = 0; p < self->parts; p++)
        TT_TRY(s_put_states(self, &self->part[p]));
    if (!self->finite)
        return tt_err(TT_INTERNAL, "the policy gives log-probabilities or values that are not finite: "
                                   "training has diverged; try a smaller algorithm.learning_rate");
    for (uint32_t p = 0; p < self->parts; p++)
        s_wrap(self, &self->part[p], &out[p]);
    return TT_OK;
}
