/*  dqn - deep Q-networks, for one choice at a time: units from a replay, a target network; double, n-step returns and
 *  prioritised replay, a dueling network, quantiles or atoms of returns, noisy layers and rescaled values as switches; and networks that
 *  remember, trained on sequences.
 *
 *  Source:  Mnih et al. 2015; van Hasselt et al. 2016 (double); Schaul et al. 2016 (priorities); Wang et al. 2016
 *           (dueling); Dabney et al. 2017 (quantiles); Bellemare et al. 2017 (atoms); Hessel et al. 2018 (Rainbow, all
 *           of it but quantiles); Kapturowski et al. 2019, "Recurrent Experience Replay in Distributed Reinforcement
 *           Learning" (sequences, with what was stored and a burn-in). Defaults as Stable-Baselines3's DQN. docs/internals/dqn.md.
 *  Parts:   dqn_options (settings, rules, what it asks of collectors and of the replay), dqn_loss, dqn_quantile_loss and dqn_atoms_loss (the
 *           losses),
 *           learner/replay (units, returns, weights). */
#include <stdlib.h>
#include "common/base/mem.h"
#include "common/job/fit.h"
#include "learner/algorithm.h"
#include "learner/algorithms/dqn_objective.h"
#include "learner/algorithms/dqn_options.h"

struct tt_algo {
    dqn_cfg_t cfg;
    tt_train_cfg_t train;
    const tt_columns_t *columns; /* borrowed */
    tt_opt_spec_t opt;
    tt_objective_t objective;
    off_policy_form_t form;

    /* the minibatch in hand */
    uint32_t rows;   /* trained on, of batch_size units          */
    uint64_t *row;   /* [rows] of sequences: their numbers       */
    int32_t *action; /* [rows]                                   */
    uint8_t *mask;   /* [rows][mask_bits], NULL: no mask         */
    float *weight;   /* [rows] of sequences: those of their unit */
    dqn_loss_t loss;

    double sums[DQN_STATS]; /* over the steps of the update that were seen */
    uint32_t steps_seen;
};

/* ---- settings ------------------------------------------------------------------------------------------------------- */

static tt_status_t s_check(const tt_config_t *config, const tt_train_cfg_t *train, const void *cfg)
{
    return dqn_check(config, train, cfg);
}

static void s_shape(const tt_train_cfg_t *train, const void *cfg, tt_algorithm_shape_t *out)
{
    dqn_shape(train, cfg, out);
}

static float s_log_std0(const void *cfg)
{
    (void)cfg;
    return 0;
}

/* ---- life ----------------------------------------------------------------------------------------------------------- */

static tt_status_t s_create(
    tt_algo_t **self_p, const tt_train_cfg_t *train, const tt_columns_t *columns, const void *cfg)
{
    const tt_column_t *action = &columns->at[columns->action];
    TT_CHECK(columns->action_count == 1 && action->choice && action->elements == 1 && action->dtype == TT_I32);
    tt_algo_t *self = tt_new0(sizeof *self);
    self->cfg = *(const dqn_cfg_t *)cfg;
    self->train = *train;
    self->columns = columns;
    self->opt = common_opt_spec(&self->cfg.off.common);
    const tt_net_spec_t net = tt_train_net(train, columns);
    self->objective = dqn_objective(&net, self->cfg.double_q);
    self->form = dqn_form(train, &self->cfg);
    self->rows = dqn_rows(train, &self->cfg);
    self->action = tt_array0(self->rows, sizeof *self->action);
    if (columns->mask >= 0)
        self->mask = tt_array0(self->rows, columns->mask_bits);
    if (self->form.length) {
        self->row = tt_array0(self->rows, sizeof *self->row);
        self->weight = tt_array0(self->rows, sizeof *self->weight);
    }
    *self_p = self;
    return TT_OK;
}

static void s_destroy(tt_algo_t **self_p)
{
    tt_algo_t *self = *self_p;
    if (!self)
        return;
    free(self->row);
    free(self->action);
    free(self->mask);
    free(self->weight);
    free(self);
    *self_p = NULL;
}

static const tt_opt_spec_t *s_opt(const tt_algo_t *self, uint32_t group)
{
    (void)group;
    return &self->opt;
}

/* ---- optimiser steps ------------------------------------------------------------------------------------------------ */

/*  Which rows of the replay are trained on: [length][units], each weighs what its unit does. */
static void s_unfold(tt_algo_t *self, const replay_sample_t *sample)
{
    for (uint32_t t = 0, i = 0; t < self->form.length; t++)
        for (uint32_t u = 0; u < sample->units; u++, i++) {
            self->row[i] = sample->unit[u] + (uint64_t)(self->form.burn + t) * self->train.num_envs;
            self->weight[i] = sample->weight[u];
        }
}

static void s_gather(tt_algo_t *self, const tt_at_t *at)
{
    const replay_sample_t *sample = at->sample;
    const tt_columns_t *columns = self->columns;
    TT_CHECK(sample->units == self->cfg.off.batch_size);
    if (self->form.length)
        s_unfold(self, sample);
    const uint64_t *row = self->form.length ? self->row : sample->unit;
    replay_gather(at->replay, row, self->rows, REPLAY_AT, columns->action, self->action);
    if (self->mask)
        replay_gather(at->replay, row, self->rows, REPLAY_NEXT, (uint32_t)columns->mask, self->mask);
    self->loss = (dqn_loss_t){
        .choices = columns->choices[columns->at[columns->action].first],
        .quantiles = self->cfg.quantiles,
        .atoms = self->cfg.atoms,
        .low = self->cfg.v_min,
        .high = self->cfg.v_max,
        .scale = 1 / (float)self->rows,
        .rescale = self->cfg.rescale,
        .squared = self->cfg.loss == DQN_MSE,
    };
}

static tt_status_t s_minibatch(tt_algo_t *self, const tt_at_t *at, tt_minibatch_t *out)
{
    const replay_sample_t *sample = at->sample;
    s_gather(self, at);
    *out = (tt_minibatch_t){
        .rows = self->rows,
        .length = self->form.length,
        .objective = &self->objective,
        .params = &self->loss,
        .params_size = sizeof self->loss,
        .inputs = DQN_INPUTS,
        .input = {[DQN_IN_ACTION] = {self->action, sizeof *self->action, false},
            [DQN_IN_RETURN] = {sample->ret, sizeof *sample->ret, false},
            [DQN_IN_DISCOUNT] = {sample->discount, sizeof *sample->discount, false},
            [DQN_IN_WEIGHT] = {self->form.length ? self->weight : sample->weight, sizeof(float), false},
            [DQN_IN_MASK] = {self->mask, self->mask ? self->columns->mask_bits : 0, false}},
        .train = 1,
        .lr = {self->cfg.off.common.learning_rate},
        .blends = dqn_follows(&self->train, &self->cfg, at),
        .blend = {{.to = 1, .from = 0, .groups = 1, .tau = self->cfg.off.tau}},
    };
    return TT_OK;
}

static bool s_after(tt_algo_t *self, uint32_t step, const tt_result_t *result)
{
    if (step == 0)
        self->steps_seen = 0;
    for (int i = 0; i < DQN_STATS; i++)
        self->sums[i] = (self->steps_seen ? self->sums[i] : 0) + (double)result->stats[i];
    self->steps_seen++;
    return false;
}

/*  Means over the steps of the update. */
static void s_metrics(const tt_algo_t *self, tt_metric_fn emit, void *ctx)
{
    static const char *const names[DQN_STATS] = {
        [DQN_LOSS] = "losses/td_loss",
        [DQN_ERROR] = "losses/td_error",
        [DQN_Q] = "losses/q_values",
        [DQN_TARGET] = "losses/target_q_values",
    };
    emit(ctx, "charts/learning_rate", (double)self->cfg.off.common.learning_rate);
    for (int i = 0; self->steps_seen && i < DQN_STATS; i++)
        emit(ctx, names[i], self->sums[i] / self->steps_seen);
}

const tt_algorithm_t tt_algorithm_dqn = {
    .name = "dqn",
    .summary = "deep Q-network (off-policy, from a replay; one discrete action)",
    .fields = dqn_fields,
    .cfg_size = sizeof(dqn_cfg_t),
    .sequences = true,
    .check = s_check,
    .shape = s_shape,
    .create = s_create,
    .destroy = s_destroy,
    .head_gain = common_head_gain,
    .log_std0 = s_log_std0,
    .gamma = common_gamma,
    .opt = s_opt,
    .minibatch = s_minibatch,
    .after = s_after,
    .metrics = s_metrics,
};
