/*  ppo - proximal policy optimisation, for every space of actions: the algorithm's table and life. A2C and IMPALA are made
 *  of the same functions (ppo.h).
 *
 *  Source:  Schulman et al. 2017, arXiv:1707.06347; details as in CleanRL's ppo.py and ppo_continuous_action.py.
 *  Parts:   ppo_options (settings, rules), ppo_loss (the loss), common/rl/gae and vtrace (advantages). */
#include <math.h>
#include <stdlib.h>
#include "common/base/mem.h"
#include "common/base/rng.h"
#include "common/base/vmath.h"
#include "common/job/fit.h"
#include "common/rl/gae.h"
#include "common/rl/vtrace.h"
#include "learner/algorithms/ppo.h"
#include "learner/algorithms/ppo_objective.h"
#include "learner/algorithms/ppo_options.h"

struct tt_algo {
    ppo_cfg_t cfg;
    tt_train_cfg_t train;
    tt_opt_spec_t opt;
    uint32_t rows, minibatch_rows, minibatches; /* of a batch; of a minibatch; in a pass  */
    uint32_t units, length; /* what a pass shuffles: rows, length 0; or envs, each with its `length` steps */
    tt_policy_t policy;
    ppo_policy_t *head_parts; /* the same as the loss reads it, owned */
    size_t head_parts_bytes;

    /* the update in hand */
    const tt_batch_t *batch; /* borrowed                                    */
    float lr, clip;
    ppo_row_t *row;                  /* [rows]                                      */
    float *advantage, *target;       /* [rows]                                      */
    float *head, *value, *log_prob;  /* [rows][out], [rows], [rows]: recomputed ones */
    float *last_value, *final_value; /* [N], [rows]                                 */
    float *ratio;                    /* [rows] of V-trace                           */
    float *log_std;                  /* [policy.log_std]                            */
    uint32_t *order;                 /* [rows] the permutation of `order_epoch`     */
    uint32_t order_epoch;            /* UINT32_MAX = none yet                       */
    tt_objective_t objective;
    ppo_loss_t loss; /* of the minibatch in hand                    */
    double explained_variance, rho;
    double sums[PPO_STATS]; /* over the optimiser steps seen since begin   */
    uint32_t steps_seen;
};

/* ---- life ----------------------------------------------------------------------------------------------------------- */

static tt_status_t s_check(const tt_config_t *config, const tt_train_cfg_t *train, const void *cfg)
{
    return ppo_check(config, train, cfg);
}

tt_status_t ppo_create(tt_algo_t **self_p, const tt_train_cfg_t *train, const tt_columns_t *columns, const void *cfg)
{
    tt_algo_t *self = tt_new0(sizeof *self);
    self->cfg = *(const ppo_cfg_t *)cfg;
    self->train = *train;
    self->opt = common_opt_spec(&self->cfg.common);
    self->rows = ppo_rows(train);
    self->minibatch_rows = ppo_minibatch_rows(train, cfg);
    self->minibatches = self->rows / self->minibatch_rows;
    self->length = columns->carry ? train->num_steps : 0;
    self->units = self->length ? train->num_envs : self->rows;
    tt_policy_of(&self->policy, columns);
    TT_CHECK(self->policy.out > 0 && self->minibatches > 0);
    const tt_net_spec_t net = tt_train_net(train, columns);
    self->objective = ppo_objective(&net);
    self->head_parts = ppo_policy_new(&self->policy, &self->head_parts_bytes);

    self->row = tt_array0(self->rows, sizeof *self->row);
    self->order = tt_array0(self->rows, sizeof *self->order);
    self->advantage = tt_array0(self->rows, sizeof(float));
    self->target = tt_array0(self->rows, sizeof(float));
    self->head = tt_array0(tt_mul(self->rows, self->policy.out), sizeof(float));
    self->value = tt_array0(self->rows, sizeof(float));
    self->log_prob = tt_array0(self->rows, sizeof(float));
    self->last_value = tt_array0(train->num_envs, sizeof(float));
    self->final_value = tt_array0(self->rows, sizeof(float));
    self->log_std = tt_array0(self->policy.log_std, sizeof(float));
    self->ratio = tt_array0(self->cfg.vtrace ? self->rows : 0, sizeof(float));
    *self_p = self;
    return TT_OK;
}

tt_status_t ppo_plain_check(const tt_config_t *config, const tt_train_cfg_t *train, const void *cfg)
{
    const ppo_cfg_t plain = ppo_plain(cfg);
    return ppo_check(config, train, &plain);
}

tt_status_t ppo_plain_create(
    tt_algo_t **self_p, const tt_train_cfg_t *train, const tt_columns_t *columns, const void *cfg)
{
    const ppo_cfg_t plain = ppo_plain(cfg);
    return ppo_create(self_p, train, columns, &plain);
}

void ppo_destroy(tt_algo_t **self_p)
{
    tt_algo_t *self = *self_p;
    if (!self)
        return;
    free(self->head_parts);
    free(self->row);
    free(self->order);
    free(self->advantage);
    free(self->target);
    free(self->head);
    free(self->value);
    free(self->log_prob);
    free(self->last_value);
    free(self->final_value);
    free(self->log_std);
    free(self->ratio);
    free(self);
    *self_p = NULL;
}

float ppo_log_std0(const void *cfg)
{
    return ((const ppo_cfg_t *)cfg)->log_std0;
}

const tt_opt_spec_t *ppo_opt(const tt_algo_t *self, uint32_t group)
{
    (void)group;
    return &self->opt;
}

uint32_t ppo_steps(const tt_algo_t *self)
{
    return self->cfg.epochs * self->minibatches;
}

/* ---- an update begins: advantages, targets, schedules --------------------------------------------------------------- */

/*  What gae and the loss read, from the behaviour version or recomputed with the version being trained. */
typedef struct {
    const float *value, *last_value, *final_value, *log_prob;
} estimates_t;

static tt_status_t s_evaluate(
    const tt_algo_t *self, const tt_evaluator_t *net, tt_batch_rows_t which, float *head, float *value)
{
    float *out[TT_TOWERS_MAX] = {NULL};
    out[self->objective.stage[PPO_ACTOR].tower] = head;
    out[self->objective.stage[PPO_CRITIC].tower] = value;
    return net->forward(net->ctx, which, out);
}

static tt_status_t s_recompute(
    tt_algo_t *self, const tt_batch_t *batch, const tt_evaluator_t *net, estimates_t *estimates)
{
    TT_TRY(s_evaluate(self, net, TT_ROWS_OBS, self->head, self->value));
    TT_TRY(s_evaluate(self, net, TT_ROWS_LAST, NULL, self->last_value));
    if (batch->finals)
        TT_TRY(s_evaluate(self, net, TT_ROWS_FINAL, NULL, self->final_value));
    TT_TRY(net->log_std(net->ctx, self->objective.stage[PPO_ACTOR].tower, self->log_std));
    tt_policy_log_prob(
        &self->policy, self->head, self->log_std, batch->mask, self->rows, batch->action, self->log_prob);
    *estimates = (estimates_t){self->value, self->last_value, self->final_value, self->log_prob};
    return TT_OK;
}

/*  Mean and 1 / (deviation + 1e-8) of the advantages of these rows, NULL: the first ones; the deviation as torch.std: divided by
 *  rows - 1. */
static void s_moments(const tt_algo_t *self, const uint32_t *row, uint32_t rows, float *mean_of, float *scale_of)
{
    double mean = 0, square = 0;
    for (uint32_t i = 0; i < rows; i++)
        mean += (double)self->advantage[row ? row[i] : i];
    mean /= rows;
    for (uint32_t i = 0; i < rows; i++) {
        const double off = (double)self->advantage[row ? row[i] : i] - mean;
        square += off * off;
    }
    *mean_of = (float)mean;
    *scale_of = (float)(1 / (sqrt(square / (rows - 1)) + 1e-8));
}

/*  How likely each action is, beside how likely it was to who took it; held as the loss holds it. */
static void s_ratios(tt_algo_t *self, const float *now, const float *then)
{
    for (uint32_t i = 0; i < self->rows; i++) {
        const float off = now[i] - then[i];
        self->ratio[i] = tt_expf(off > 20 ? 20 : off < -20 ? -20 : off);
    }
}

/*  Each advantage times rho. They are normalised before, over the batch: a step that weighs nothing is to have none. */
static void s_weigh(tt_algo_t *self)
{
    float mean = 0, scale = 1;
    double sum = 0;
    if (self->cfg.normalize_advantage && self->rows > 1)
        s_moments(self, NULL, self->rows, &mean, &scale);
    for (uint32_t i = 0; i < self->rows; i++) {
        const float rho = tt_vtrace_cut(self->ratio[i], self->cfg.vtrace_rho);
        self->advantage[i] = rho * ((self->advantage[i] - mean) * scale);
        sum += (double)rho;
    }
    self->rho = sum / self->rows;
}

static tt_status_t s_advantages(tt_algo_t *self, const tt_batch_t *batch, const estimates_t *estimates)
{
    const tt_trajectories_t all = {
        .T = batch->T,
        .N = batch->N,
        .reward = batch->reward,
        .value = estimates->value,
        .terminated = batch->terminated,
        .truncated = batch->truncated,
        .last_value = estimates->last_value,
        .finals = batch->finals,
        .final_row = batch->final_row,
        .final_value = estimates->final_value,
        .gamma = (float)self->cfg.common.gamma,
        .or_flags = self->cfg.truncation == PPO_CLEANRL,
    };
    if (!self->cfg.vtrace)
        return tt_gae(&all, self->cfg.gae_lambda, self->advantage, self->target);
    s_ratios(self, estimates->log_prob, batch->log_prob);
    const tt_vtrace_t how = {self->ratio, self->cfg.gae_lambda, self->cfg.vtrace_rho, self->cfg.vtrace_c};
    TT_TRY(tt_vtrace(&all, &how, self->advantage, self->target));
    s_weigh(self);
    return TT_OK;
}

/*  1 - Var(target - value) / Var(target); NAN when the targets are all equal. */
static double s_explained_variance(const float *target, const float *value, uint32_t rows)
{
    double mean = 0, mean_off = 0, var = 0, var_off = 0;
    for (uint32_t i = 0; i < rows; i++) {
        mean += (double)target[i];
        mean_off += (double)target[i] - (double)value[i];
    }
    mean /= rows;
    mean_off /= rows;
    for (uint32_t i = 0; i < rows; i++) {
        const double a = (double)target[i] - mean, b = (double)target[i] - (double)value[i] - mean_off;
        var += a * a;
        var_off += b * b;
    }
    return var > 0 ? 1 - var_off / var : NAN;
}

static void s_fill_rows(tt_algo_t *self, const estimates_t *estimates)
{
    for (uint32_t i = 0; i < self->rows; i++)
        self->row[i] = (ppo_row_t){
            .advantage = self->advantage[i],
            .target = self->target[i],
            .log_prob = estimates->log_prob[i],
            .value = estimates->value[i],
        };
}

tt_status_t ppo_begin(tt_algo_t *self, const tt_batch_t *batch, const tt_evaluator_t *net)
{
    TT_CHECK((uint64_t)batch->T * batch->N == self->rows && batch->finals <= self->rows);
    estimates_t estimates = {batch->value, batch->last_value, batch->final_value, batch->log_prob};
    if (batch->stale && self->cfg.recompute)
        TT_TRY(s_recompute(self, batch, net, &estimates));
    TT_TRY(s_advantages(self, batch, &estimates));

    self->batch = batch;
    s_fill_rows(self, &estimates);
    self->explained_variance = s_explained_variance(self->target, estimates.value, self->rows);
    const float done = (float)ppo_progress(&self->train, &self->cfg, batch->env_steps);
    const float share = self->cfg.anneal == PPO_LINEAR ? 1 - done * (1 - self->cfg.anneal_to) : 1;
    self->lr = self->cfg.common.learning_rate * share;
    self->clip = self->cfg.clip * (self->cfg.clip_anneal == PPO_LINEAR ? 1 - done : 1);
    self->order_epoch = UINT32_MAX;
    self->steps_seen = 0;
    for (int i = 0; i < PPO_STATS; i++)
        self->sums[i] = 0;
    return TT_OK;
}

/* ---- optimiser steps ------------------------------------------------------------------------------------------------ */

/*  All steps of each env in the place of its number; from behind, where there is room. */
static void s_spread(tt_algo_t *self)
{
    const uint32_t T = self->length, N = self->units;
    for (uint32_t i = N; T && i-- > 0;) {
        const uint32_t env = self->order[i];
        for (uint32_t t = 0; t < T; t++)
            self->order[i * T + t] = t * N + env;
    }
}

/*  Fisher and Yates; draw k of (update, epoch) is word k % 4 of counter epoch * 2^32 + k / 4. */
static void s_shuffle(tt_algo_t *self, uint32_t epoch)
{
    uint32_t word[4];
    for (uint32_t i = 0; i < self->units; i++)
        self->order[i] = i;
    for (uint32_t left = self->units, k = 0; left > 1; left--, k++) {
        if (k % 4 == 0)
            tt_draw(word, self->train.seed, TT_STREAM_SHUFFLE, (uint32_t)self->batch->update,
                (uint64_t)epoch << 32 | k / 4);
        const uint32_t pick = tt_below(word[k % 4], left), other = self->order[left - 1];
        self->order[left - 1] = self->order[pick];
        self->order[pick] = other;
    }
    s_spread(self);
    self->order_epoch = epoch;
}

/*  What the loss reads, the same all through an update. */
static void s_inputs(const tt_algo_t *self, tt_minibatch_t *out)
{
    const tt_batch_t *batch = self->batch;
    out->inputs = PPO_IN_ACTION + self->policy.parts;
    out->input[PPO_IN_ROW] = (tt_input_t){self->row, sizeof *self->row, false};
    out->input[PPO_IN_POLICY] = (tt_input_t){self->head_parts, self->head_parts_bytes, true};
    if (batch->mask)
        out->input[PPO_IN_MASK] = (tt_input_t){batch->mask, self->policy.mask_bits, false};
    for (uint32_t i = 0; i < self->policy.parts; i++) {
        const tt_policy_part_t *part = &self->policy.part[i];
        out->input[PPO_IN_ACTION + i] =
            (tt_input_t){batch->action[part->number], batch->columns->at[part->column].bytes, false};
    }
}

tt_status_t ppo_minibatch(tt_algo_t *self, const tt_at_t *at, tt_minibatch_t *out)
{
    const uint32_t epoch = at->step / self->minibatches, index = at->step % self->minibatches;
    if (self->order_epoch != epoch)
        s_shuffle(self, epoch);
    const uint32_t *row = self->order + (size_t)index * self->minibatch_rows;
    self->loss = (ppo_loss_t){
        .mean = 0,
        .scale = 1,
        .weight = 1 / (float)self->minibatch_rows,
        .clip = self->clip,
        .entropy_coef = self->cfg.entropy_coef,
        .value_coef = self->cfg.value_coef,
        .clip_value = self->cfg.clip_value,
        .plain = self->cfg.plain,
    };
    if (self->cfg.normalize_advantage && !self->cfg.vtrace && self->minibatch_rows > 1)
        s_moments(self, row, self->minibatch_rows, &self->loss.mean, &self->loss.scale);
    *out = (tt_minibatch_t){
        .row = row,
        .rows = self->minibatch_rows,
        .length = self->length,
        .objective = &self->objective,
        .params = &self->loss,
        .params_size = sizeof self->loss,
        .train = 1,
        .lr = {self->lr},
        .ends = index + 1 == self->minibatches && !isnan(self->cfg.target_kl),
    };
    s_inputs(self, out);
    return TT_OK;
}

/*  target_kl as CleanRL: looked at after a whole pass. Depends on this step alone, so that a learner that joined in the
 *  middle of an update decides the same. */
bool ppo_after(tt_algo_t *self, uint32_t step, const tt_result_t *result)
{
    for (int i = 0; i < PPO_STATS; i++)
        self->sums[i] += (double)result->stats[i];
    self->steps_seen++;
    const bool pass_ends = (step + 1) % self->minibatches == 0;
    return pass_ends && (double)result->stats[PPO_KL] > self->cfg.target_kl; /* false when it is off: NAN */
}

/*  Means over the optimiser steps of the update. */
void ppo_metrics(const tt_algo_t *self, tt_metric_fn emit, void *ctx)
{
    static const char *const names[PPO_STATS] = {
        [PPO_POLICY_LOSS] = "losses/policy_loss",
        [PPO_VALUE_LOSS] = "losses/value_loss",
        [PPO_ENTROPY] = "losses/entropy",
        [PPO_KL] = "losses/approx_kl",
        [PPO_OLD_KL] = "losses/old_approx_kl",
        [PPO_CLIPPED] = "losses/clipfrac",
    };
    emit(ctx, "charts/learning_rate", (double)self->lr);
    if (!self->steps_seen)
        return;
    const int known = self->cfg.plain ? PPO_KL : PPO_STATS; /* those behind tell of ratios */
    for (int i = 0; i < known; i++)
        emit(ctx, names[i], self->sums[i] / self->steps_seen);
    emit(ctx, "losses/explained_variance", self->explained_variance);
    if (self->cfg.vtrace)
        emit(ctx, "losses/rho", self->rho);
}

const tt_algorithm_t tt_algorithm_ppo = {
    .name = "ppo",
    .summary = "proximal policy optimisation (on-policy; any actions)",
    .fields = ppo_fields,
    .cfg_size = sizeof(ppo_cfg_t),
    .check = s_check,
    .shape = ppo_shape,
    .create = ppo_create,
    PPO_HOOKS,
};
