#include "collector/rollout.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "collector/carry.h"
#include "collector/frames.h"
#include "collector/parts.h"
#include "collector/shares.h"
#include "collector/vec.h"
#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/rl/policy.h"
#define TT_LOG_COMPONENT "env"
#include "common/base/log.h"

enum { TIMED_STEPS = 4 }; /* of a batch, to see where the time goes */

struct rollout {
    rollout_cfg_t cfg;
    const tt_columns_t *columns;
    uint32_t T, E;
    tt_policy_t policy;
    uint32_t actor, critic; /* towers */
    tt_vec_t *vec;
    frames_t frames;
    carry_t carry;
    shares_t shares;
    parts_t parts;
    uint32_t t;      /* steps of the batch in hand that all have made    */
    float *head;     /* [E][policy.out]                                  */
    float *log_std;  /* [policy.log_std] of the batch in hand            */
    uint32_t *who;   /* [E] env ids                                      */
    uint64_t *clock; /* [E]                                              */
    float *epsilon;  /* [E]                                              */
    bool finite;     /* every number of the policy in the batch in hand  */
    bool noisy;      /* noise was drawn in it, for the steps of: */
    uint64_t noise_clock;
    int64_t policy_ns, env_ns; /* of the timed steps; halved at each batch */
};

static tt_status_t s_check(const rollout_cfg_t *cfg, const tt_policy_t *policy)
{
    const tt_net_spec_t *spec = tt_net_spec(tt_inference_net(cfg->net));
    const bool samples = cfg->actor.kind == TT_ACT_SAMPLE;
    const char *head = tt_actor_head(&cfg->actor);
    if (tt_net_tower(spec, head) == spec->towers || (samples && tt_net_tower(spec, "critic") == spec->towers))
        return tt_err(TT_INVALID, "the network lacks '%s'%s", head, samples ? " or 'critic'" : "");
    const tt_tower_t *actor = &spec->tower[tt_net_tower(spec, head)];
    if (tt_net_row_bytes(spec) != cfg->columns->row || spec->obs != cfg->columns->flat || actor->out != policy->out ||
        tt_tower_deviations(actor) != policy->log_std)
        return tt_err(TT_INVALID, "the network (%u in, %u out, %u deviations) does not fit %s (%u observed, %u, %u)",
            spec->obs, actor->out, tt_tower_deviations(actor), cfg->env->id, cfg->columns->flat, policy->out,
            policy->log_std);
    TT_TRY(carry_check(cfg->columns, spec));
    const bool can = cfg->actor.kind != TT_ACT_ARGMAX || tt_policy_one_choice(policy);
    TT_CHECK(can && samples == (cfg->columns->value >= 0));
    return TT_OK;
}

static tt_status_t s_new_vec(tt_vec_t **vec, const rollout_cfg_t *cfg)
{
    const tt_vec_cfg_t of = {.ops = cfg->env,
        .args = cfg->args,
        .columns = cfg->columns,
        .squash = cfg->actor.squash,
        .seed = cfg->seed,
        .lo = cfg->env_lo,
        .count = cfg->env_count,
        .clock = cfg->taken,
        .from = cfg->from};
    return tt_vec_new(vec, &of);
}

static tt_status_t s_init_parts(rollout_t *self)
{
    const parts_cfg_t cfg = {.columns = self->columns,
        .vec = self->vec,
        .carry = &self->carry,
        .blocks = self->cfg.blocks,
        .T = self->T,
        .E = self->E,
        .most = self->cfg.segment_envs,
        .env_bytes = tt_vec_save_size(self->cfg.env, self->columns->stack.frames)};
    return parts_init(&self->parts, &cfg);
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
    frames_init(&self->frames, cfg->columns, cfg->norm != NULL, cfg->clip_obs);
    carry_init(&self->carry, cfg->columns, self->E);
    self->head = tt_array0(tt_mul(self->E, policy.out), sizeof *self->head);
    self->log_std = tt_array0(policy.log_std, sizeof *self->log_std);
    self->who = tt_array0(self->E, sizeof *self->who);
    self->clock = tt_array0(self->E, sizeof *self->clock);
    self->epsilon = tt_array0(self->E, sizeof *self->epsilon);
    /* draws are keyed by the env's id in the job, so that it does not matter who plays it, nor beside which others */
    for (uint32_t i = 0; i < self->E; i++)
        self->who[i] = cfg->env_lo + i;
    shares_init(&self->shares, vec, self->T);
    const tt_status_t status = s_init_parts(self);
    if (status != TT_OK)
        rollout_destroy(&self);
    *self_p = self;
    return status;
}

/*  For the last time: false, and a line in the log, where an env has failed in that step. Nobody has use for it, but for the env. */
static bool s_rests(rollout_t *self)
{
    if (shares_settle(&self->shares) == TT_OK)
        return true;
    log_info("envs %u..%u were let go in a step that failed: %s", self->cfg.env_lo,
        self->cfg.env_lo + self->cfg.env_count - 1, tt_err_text());
    return false;
}

void rollout_destroy(rollout_t **self_p)
{
    rollout_t *self = *self_p;
    if (!self)
        return;
    s_rests(self); /* an env that plays could not be closed */
    parts_free(&self->parts);
    shares_free(&self->shares);
    tt_vec_destroy(&self->vec);
    frames_free(&self->frames);
    carry_free(&self->carry);
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
    rollout_t *self = *self_p;
    tt_vec_t *vec = NULL;
    if (self && s_rests(self)) {
        vec = self->vec;
        self->vec = NULL;
    }
    rollout_destroy(self_p);
    return vec;
}

size_t rollout_state_bytes(const rollout_t *self)
{
    return parts_state_bytes(&self->parts);
}

/*  An env that could not be saved begins anew, and nothing is carried into that. */
static tt_status_t s_load(rollout_t *self, uint32_t i, const char *state)
{
    TT_TRY(tt_vec_begin_load(self->vec, i, state));
    return carry_load(&self->carry, i, state + self->parts.cfg.env_bytes, tt_vec_age(self->vec, i) == 0);
}

tt_status_t rollout_load(rollout_t *self, const void *states, size_t bytes)
{
    const size_t each = rollout_state_bytes(self);
    if (each == 0 || bytes != self->E * each)
        return tt_err(TT_DATA, "%zu bytes of env states, expected %u x %zu", bytes, self->E, each);
    TT_TRY(shares_settle(&self->shares));
    parts_abandon(&self->parts);
    for (uint32_t i = 0; i < self->E; i++)
        TT_TRY(s_load(self, i, (const char *)states + i * each));
    return TT_OK;
}

tt_status_t rollout_loaded(rollout_t *self, bool *all, uint64_t *moves)
{
    return tt_vec_loaded(self->vec, all, moves);
}

/* ---- playing ----------------------------------------------------------------------------------------------------- */

tt_status_t rollout_begin(rollout_t *self)
{
    TT_TRY(shares_settle(&self->shares));
    shares_begin(&self->shares);
    self->t = 0;
    self->finite = true;
    self->noisy = false;
    self->policy_ns /= 2;
    self->env_ns /= 2;
    parts_begin(&self->parts);
    return tt_inference_log_std(self->cfg.net, self->actor, self->log_std);
}

bool rollout_in_hand(const rollout_t *self)
{
    return parts_in_hand(&self->parts);
}

uint32_t rollout_segments(const rollout_t *self)
{
    return self->parts.count;
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

/*  From row `first` of a column on. */
static void *s_from(const rollout_t *self, uint32_t column, void *rows, uint32_t first)
{
    return (char *)rows + (size_t)first * self->columns->at[column].bytes;
}

/*  One for each step, the same for all envs of the job: it does not depend on who plays them, nor on which step others are at. */
static tt_status_t s_draw_noise(rollout_t *self, uint64_t clock)
{
    const tt_noise_t noise = {.seed = self->cfg.seed, .stream = TT_STREAM_NOISE, .clock = clock};
    if (self->noisy && self->noise_clock == clock)
        return TT_OK;
    self->noisy = true;
    self->noise_clock = clock;
    return tt_inference_noise(self->cfg.net, &noise);
}

/*  What the policy makes of rows: heads and values, either may be NULL. carry: of these rows, without addresses where nothing is carried. */
static tt_status_t s_evaluate(
    rollout_t *self, const void *const *row, uint32_t rows, const tt_carry_t *carry, float *head, float *value)
{
    float *out[TT_TOWERS_MAX] = {NULL};
    out[self->actor] = head;
    if (value)
        out[self->critic] = value;
    return tt_inference_run(self->cfg.net, row, rows, carry->in ? carry : NULL, out);
}

/*  NaN and infinity survive in the sum of absolute values. */
static bool s_finite(const float *x, size_t count)
{
    float sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += fabsf(x[i]) * 0x1p-40f;
    return isfinite(sum);
}

static tt_status_t s_check_finite(const rollout_t *self)
{
    return self->finite ? TT_OK : tt_err(TT_DIVERGED, "the policy gives numbers that are not finite");
}

/*  What is acted upon, and where the actions go. */
typedef struct {
    const run_t *run;
    const void *const *row;
    const tt_carry_t *carry;
    const uint8_t *mask;
    tt_dist_draw_t draw;
    void *action[TT_COLUMNS_MAX];
} act_t;

/*  Drawn from the distributions of the head, with what that was estimated at. */
static tt_status_t s_sample(rollout_t *self, const act_t *act)
{
    const run_t *run = act->run;
    float *value = (float *)parts_row(&self->parts, run->t, (uint32_t)self->columns->value) + run->first;
    float *log_prob = (float *)parts_row(&self->parts, run->t, (uint32_t)self->columns->log_prob) + run->first;
    TT_TRY(s_evaluate(self, act->row, run->E, act->carry, self->head, value));
    tt_policy_sample(&self->policy, self->head, self->log_std, act->mask, run->E, &act->draw, act->action, log_prob);
    self->finite = self->finite && s_finite(log_prob, run->E);
    return TT_OK;
}

/*  The same of one row of the head, or with noise, at random before learning starts. */
static void s_draw_squashed(rollout_t *self, const act_t *act, uint32_t i)
{
    const uint64_t row = act->draw.clock[i] * self->cfg.num_envs + act->draw.who[i];
    const tt_dist_draw_t draw = {act->draw.seed, act->draw.stream, act->draw.who + i, act->draw.clock + i};
    void *action[TT_COLUMNS_MAX];
    for (uint32_t a = 0; a < self->columns->action_count; a++)
        action[a] = (char *)act->action[a] + (size_t)i * self->columns->at[self->columns->action + a].bytes;
    const float *head = self->head + (size_t)i * self->policy.out;
    if (row < self->cfg.actor.random_rows)
        tt_policy_any_squashed(&self->policy, 1, &draw, action);
    else if (self->cfg.actor.kind == TT_ACT_MEAN)
        tt_policy_noisy_mean(&self->policy, head, 1, self->cfg.actor.sigma, &draw, action);
    else
        tt_policy_sample(&self->policy, head, NULL, NULL, 1, &draw, action, NULL);
}

/*  Nothing is estimated. */
static tt_status_t s_squashed(rollout_t *self, const act_t *act)
{
    const uint32_t rows = act->run->E;
    TT_TRY(s_evaluate(self, act->row, rows, act->carry, self->head, NULL));
    self->finite = self->finite && s_finite(self->head, (size_t)rows * self->policy.out);
    for (uint32_t i = 0; i < rows; i++)
        s_draw_squashed(self, act, i);
    return TT_OK;
}

/*  The best choice by the head, or any. */
static tt_status_t s_explore(rollout_t *self, const act_t *act)
{
    const uint32_t rows = act->run->E;
    for (uint32_t i = 0; i < rows; i++) {
        const uint64_t row = act->draw.clock[i] * self->cfg.num_envs + act->draw.who[i];
        self->epsilon[i] = (float)tt_epsilon(&self->cfg.actor, row, self->cfg.num_envs);
    }
    TT_TRY(s_draw_noise(self, act->draw.clock[0]));
    TT_TRY(s_evaluate(self, act->row, rows, act->carry, self->head, NULL));
    self->finite = self->finite && s_finite(self->head, (size_t)rows * self->policy.out);
    tt_policy_explore(&self->policy, self->head, act->mask, rows, self->epsilon, &act->draw, act->action[0]);
    return TT_OK;
}

/*  action: of all envs of the range. */
static tt_status_t s_act(rollout_t *self, const run_t *run, void *const *seen, void *const *action)
{
    const tt_columns_t *columns = self->columns;
    const uint32_t first = run->first;
    for (uint32_t i = first; i < first + run->E; i++)
        self->clock[i] = tt_vec_clock(self->vec, i);
    const tt_carry_t carry = carry_step(&self->carry, first);
    act_t act = {.run = run,
        .row = frames_now(&self->frames, self->vec, first, run->E, self->cfg.norm, seen),
        .carry = &carry,
        .draw = {self->cfg.seed, TT_STREAM_ACTION, self->who + first, self->clock + first}};
    if (columns->mask >= 0)
        act.mask = (const uint8_t *)seen[columns->mask] + (size_t)first * columns->mask_bits;
    for (uint32_t a = 0; a < columns->action_count; a++)
        act.action[a] = s_from(self, columns->action + a, action[a], first);
    static tt_status_t (*const acts[])(rollout_t * self, const act_t *act) = {[TT_ACT_SAMPLE] = s_sample,
        [TT_ACT_ARGMAX] = s_explore,
        [TT_ACT_SQUASHED] = s_squashed,
        [TT_ACT_MEAN] = s_squashed};
    return acts[self->cfg.actor.kind](self, &act);
}

static int64_t s_now_ns(const rollout_t *self)
{
    return tt_now_ns(self->cfg.clock);
}

/*  The next step begins of shares from .. end - 1, which are at the same one. timed: what the policy takes is counted. */
static tt_status_t s_start(rollout_t *self, uint32_t from, uint32_t end, bool timed)
{
    const tt_columns_t *columns = self->columns;
    const int64_t start_ns = timed ? s_now_ns(self) : 0;
    const parts_t *parts = &self->parts;
    const run_t run = shares_run(&self->shares, from, end);
    void *seen[TT_COLUMNS_MAX], *action[TT_COLUMNS_MAX];
    frames_current(columns, self->vec, seen);
    parts_put_seen(parts, &run, seen);
    for (uint32_t a = 0; a < columns->action_count; a++)
        action[a] = parts_row(parts, run.t, columns->action + a);
    TT_TRY(s_act(self, &run, seen, action));
    TT_TRY(s_check_finite(self)); /* an env would be blamed for what it makes of them */
    if (timed)
        self->policy_ns += s_now_ns(self) - start_ns;
    return shares_send(&self->shares, from, end, (const void *const *)action, parts_row(parts, run.t, columns->reward),
        parts_row(parts, run.t, columns->terminated), parts_row(parts, run.t, columns->truncated));
}

/*  Nobody rests who has steps to make. */
static tt_status_t s_start_all(rollout_t *self, bool timed)
{
    for (uint32_t from = 0, end; shares_idle(&self->shares, &from, &end); from = end)
        TT_TRY(s_start(self, from, end, timed));
    return TT_OK;
}

/*  Waits for one to be over, and takes all that are by then. */
static tt_status_t s_end_some(rollout_t *self)
{
    run_t run;
    tt_status_t status = shares_recv(&self->shares, true, &run);
    while (status == TT_OK) {
        parts_put_step(&self->parts, &run);
        status = shares_recv(&self->shares, false, &run);
    }
    return status == TT_AGAIN ? TT_OK : status;
}

/*  One step more of everybody. Of several shares none rests when it is over: they play while nobody looks. */
static tt_status_t s_step(rollout_t *self, bool timed)
{
    const uint32_t t = self->t;
    TT_TRY(s_start_all(self, timed));
    while (self->t == t) {
        TT_TRY(s_end_some(self));
        self->t = shares_least(&self->shares);
        if (self->shares.count > 1)
            TT_TRY(s_start_all(self, timed));
    }
    return TT_OK;
}

/*  What is not the policy's of a step is the envs'. */
static tt_status_t s_timed_step(rollout_t *self)
{
    const int64_t start_ns = s_now_ns(self), policy_ns = self->policy_ns;
    TT_TRY(s_step(self, true));
    self->env_ns += s_now_ns(self) - start_ns - (self->policy_ns - policy_ns);
    return TT_OK;
}

tt_status_t rollout_play(rollout_t *self, uint32_t max_steps, bool *done)
{
    const uint32_t every = self->T / TIMED_STEPS + 1;
    const bool begun = parts_in_hand(&self->parts);
    TT_CHECK(begun);
    for (uint32_t i = 0; i < max_steps && self->t < self->T; i++)
        TT_TRY(shares_lost(&self->shares, self->t % every == every / 2 ? s_timed_step(self) : s_step(self, false)));
    *done = self->t == self->T;
    return TT_OK;
}

/* ---- the end of a batch ------------------------------------------------------------------------------------------ */

/*  What the observations after the last step are estimated at, of all envs of the range. */
static tt_status_t s_estimate_last(rollout_t *self)
{
    void *seen[TT_COLUMNS_MAX];
    float *value = parts_last_value(&self->parts);
    frames_current(self->columns, self->vec, seen);
    for (uint32_t k = 0, end; k < self->shares.count; k = end) {
        end = shares_end(&self->shares, k);
        const run_t run = shares_run(&self->shares, k, end);
        const void *const *row = frames_now(&self->frames, self->vec, run.first, run.E, self->cfg.norm, seen);
        const tt_carry_t carry = {.in = carry_row(&self->carry, run.first)};
        TT_TRY(s_evaluate(self, row, run.E, &carry, NULL, value + run.first));
    }
    parts_put_last_value(&self->parts);
    return TT_OK;
}

/*  What the finals are estimated at; and whether all estimates are numbers. */
static tt_status_t s_estimate_part(rollout_t *self, const part_t *part)
{
    const tt_segment_shape_t shape = parts_shape(&self->parts, part);
    const tt_segment_t *at = &part->at;
    const tt_carry_t carry = {.in = part->finals.carried};
    const uint32_t K = shape.K;
    const size_t rows = (size_t)self->T * part->E;
    if (K)
        TT_TRY(s_evaluate(
            self, frames_finals(&self->frames, &shape, at, self->cfg.norm), K, &carry, NULL, at->final_value));
    self->finite =
        self->finite && s_finite(at->value, rows) && s_finite(at->last_value, part->E) && s_finite(at->final_value, K);
    return TT_OK;
}

static tt_status_t s_estimate(rollout_t *self)
{
    TT_TRY(s_estimate_last(self));
    for (uint32_t p = 0; p < self->parts.count; p++)
        TT_TRY(s_estimate_part(self, &self->parts.part[p]));
    return TT_OK;
}

tt_status_t rollout_finish(rollout_t *self, rollout_segment_t *out)
{
    const bool begun = parts_in_hand(&self->parts);
    TT_CHECK(begun && self->t == self->T);
    parts_put_ends(&self->parts);
    if (self->cfg.actor.kind == TT_ACT_SAMPLE)
        TT_TRY(s_estimate(self));
    TT_TRY(parts_put_states(&self->parts));
    TT_TRY(s_check_finite(self));
    parts_wrap(&self->parts, out);
    return TT_OK;
}
