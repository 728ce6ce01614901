#include "collector/rollout.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "collector/vec.h"
#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/rl/dist.h"

enum { TIMED_STEPS = 4 }; /* of a batch, to see where the time goes */

/*  The truncations of the batch in hand: their number is known only at its end. */
typedef struct {
    uint32_t count, room;
    uint32_t *t, *env;
    float *obs; /* [room][D] */
} finals_t;

struct rollout {
    rollout_cfg_t cfg;
    uint32_t T, E, D, A; /* A: elements of a continuous action, 0 = discrete */
    uint32_t out;        /* logits or means                                  */
    size_t state_bytes;
    tt_vec_t *vec;
    uint32_t t;            /* steps played of the batch in hand                */
    void *block;           /* NULL = no batch in hand                         */
    uint32_t block_finals; /* for how many the block has room                  */
    tt_segment_t at;
    finals_t finals;
    float *scaled;             /* [E][D] normalised observations                   */
    const float **row;         /* [E] what the network reads                       */
    float *head;               /* [E][out]                                         */
    uint32_t *who;             /* [E] env ids                                      */
    uint64_t *clock;           /* [E]                                              */
    int64_t policy_ns, env_ns; /* of the timed steps; halved at each batch */
};

static tt_segment_shape_t s_shape(const rollout_t *self, uint32_t finals)
{
    return (tt_segment_shape_t){
        .T = self->T, .E = self->E, .D = self->D, .A = self->A, .K = finals, .S = (uint32_t)self->state_bytes};
}

static tt_status_t s_check(const rollout_cfg_t *cfg)
{
    const tt_net_spec_t *spec = tt_net_spec(cfg->net);
    const bool continuous = cfg->env->action.kind == TT_SPACE_BOX;
    if (spec->obs != cfg->env->obs.n || spec->out != cfg->env->action.n || spec->continuous != continuous)
        return tt_err(TT_INVALID, "the network (%u in, %u out) does not fit %s (%u observed, %u %s)", spec->obs,
            spec->out, cfg->env->id, cfg->env->obs.n, cfg->env->action.n, continuous ? "action elements" : "actions");
    return TT_OK;
}

tt_status_t rollout_new(rollout_t **self_p, const rollout_cfg_t *cfg)
{
    TT_TRY(s_check(cfg));
    tt_vec_t *vec;
    TT_TRY(tt_vec_new(&vec, cfg->env, cfg->seed, cfg->env_lo, cfg->env_count, cfg->taken));
    rollout_t *self = tt_new0(sizeof *self);
    self->cfg = *cfg;
    self->cfg.clock = tt_clock_or_real(cfg->clock);
    self->vec = vec;
    self->T = cfg->steps;
    self->E = cfg->env_count;
    self->D = cfg->env->obs.n;
    self->out = cfg->env->action.n;
    self->A = cfg->env->action.kind == TT_SPACE_BOX ? self->out : 0;
    self->state_bytes = tt_vec_save_size(cfg->env);
    self->scaled = tt_array0(tt_mul(self->E, self->D), sizeof *self->scaled);
    self->row = tt_array0(self->E, sizeof *self->row);
    self->head = tt_array0(tt_mul(self->E, self->out), sizeof *self->head);
    self->who = tt_array0(self->E, sizeof *self->who);
    self->clock = tt_array0(self->E, sizeof *self->clock);
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
    free(self->finals.obs);
    free(self->scaled);
    free(self->row);
    free(self->head);
    free(self->who);
    free(self->clock);
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

void rollout_begin(rollout_t *self)
{
    self->t = 0;
    self->policy_ns /= 2;
    self->env_ns /= 2;
    self->finals.count = 0;
    if (!self->block)
        s_take_block(self, self->block_finals);
    for (uint32_t i = 0; i < self->E; i++)
        self->at.age[i] = tt_vec_age(self->vec, i);
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

/*  Point row[] at `rows` observations as the network sees them. scaled must have room for them. */
static void s_look(rollout_t *self, const float *obs, uint32_t rows, float *scaled, const float **row)
{
    if (self->cfg.norm) {
        tt_norm_scale(self->cfg.norm, obs, rows, self->cfg.clip_obs, scaled);
        obs = scaled;
    }
    for (uint32_t i = 0; i < rows; i++)
        row[i] = obs + (size_t)i * self->D;
}

static void s_add_final(rollout_t *self, uint32_t env)
{
    finals_t *finals = &self->finals;
    if (finals->count == finals->room) {
        finals->room = 2 * finals->room + 16;
        finals->t = tt_realloc(finals->t, finals->room * sizeof *finals->t);
        finals->env = tt_realloc(finals->env, finals->room * sizeof *finals->env);
        finals->obs = tt_realloc(finals->obs, tt_mul(finals->room, self->D * sizeof *finals->obs));
    }
    finals->t[finals->count] = self->t;
    finals->env[finals->count] = env;
    memcpy(
        finals->obs + (size_t)finals->count * self->D, tt_vec_final_obs(self->vec, env), self->D * sizeof *finals->obs);
    finals->count++;
}

static tt_status_t s_act(rollout_t *self, size_t at, void *action)
{
    for (uint32_t i = 0; i < self->E; i++)
        self->clock[i] = tt_vec_clock(self->vec, i);
    const tt_dist_draw_t draw = {self->cfg.seed, TT_STREAM_ACTION, self->who, self->clock};
    TT_TRY(tt_net_forward(self->cfg.net, 0, self->row, self->E, self->head, self->at.value + at));
    if (self->A)
        tt_gauss_sample(
            self->head, tt_net_log_std(self->cfg.net), self->E, self->A, &draw, action, self->at.log_prob + at);
    else
        tt_cat_sample(self->head, self->E, self->out, &draw, action, self->at.log_prob + at);
    return TT_OK;
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
    float *obs = self->at.obs + at * self->D;
    void *action =
        self->A ? (void *)((float *)self->at.action + at * self->A) : (void *)((int32_t *)self->at.action + at);
    memcpy(obs, tt_vec_obs(self->vec), (size_t)self->E * self->D * sizeof *obs);
    s_look(self, obs, self->E, self->scaled, self->row);
    TT_TRY(s_act(self, at, action));
    const int64_t acted_ns = timed ? s_now_ns(self) : 0;
    TT_TRY(tt_vec_step(self->vec, action, self->at.reward + at, self->at.terminated + at, self->at.truncated + at));
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

static tt_status_t s_values(rollout_t *self, const float *obs, uint32_t rows, float *value)
{
    if (rows == 0)
        return TT_OK;
    float *scaled = tt_array0(tt_mul(rows, self->D), sizeof *scaled);
    const float **row = tt_array0(rows, sizeof *row);
    s_look(self, obs, rows, scaled, row);
    const tt_status_t status = tt_net_forward(self->cfg.net, 0, row, rows, NULL, value);
    free(scaled);
    free(row);
    return status;
}

/*  NaN and infinity survive in the sum of absolute values. */
static bool s_finite(const float *x, size_t count)
{
    float sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += fabsf(x[i]) * 0x1p-40f;
    return isfinite(sum);
}

/*  A little more than there are now, so that a block is rarely taken anew; never more than there can be. */
static uint32_t s_room_for(const rollout_t *self, uint32_t finals)
{
    const uint64_t most = (uint64_t)self->T * self->E, room = (uint64_t)finals + finals / 4 + 4;
    return (uint32_t)(room < most ? room : most);
}

tt_status_t rollout_finish(rollout_t *self, tt_segment_shape_t *shape, zmq_msg_t *frame)
{
    TT_CHECK(self->block && self->t == self->T);
    const finals_t *finals = &self->finals;
    const uint32_t K = finals->count;
    const size_t rows = (size_t)self->T * self->E;
    if (K > self->block_finals)
        s_take_block(self, s_room_for(self, K));
    *shape = s_shape(self, K);
    tt_segment_map(shape, self->block, &self->at);
    memcpy(self->at.last_obs, tt_vec_obs(self->vec), (size_t)self->E * self->D * sizeof(float));
    if (K) {
        memcpy(self->at.final_t, finals->t, K * sizeof *finals->t);
        memcpy(self->at.final_env, finals->env, K * sizeof *finals->env);
        memcpy(self->at.final_obs, finals->obs, (size_t)K * self->D * sizeof(float));
    }
    TT_TRY(s_values(self, self->at.last_obs, self->E, self->at.last_value));
    TT_TRY(s_values(self, self->at.final_obs, K, self->at.final_value));
    for (uint32_t i = 0; self->state_bytes && i < self->E; i++)
        tt_vec_save(self->vec, i, self->at.states + i * self->state_bytes);
    if (!s_finite(self->at.log_prob, rows) || !s_finite(self->at.value, rows) ||
        !s_finite(self->at.last_value, self->E) || !s_finite(self->at.final_value, K))
        return tt_err(TT_INTERNAL, "the policy gives log-probabilities or values that are not finite: "
                                   "training has diverged; try a smaller algorithm.lr");
    size_t size = 0;
    const tt_status_t fits = tt_segment_size(shape, &size);
    TT_CHECK(fits == TT_OK);
    blocks_wrap(self->cfg.blocks, self->block, size, frame);
    self->block = NULL;
    return TT_OK;
}
