/*  dqn - deep Q-networks, for one choice at a time: units from a replay, a target network; double, n-step returns and
 *  prioritised replay, a dueling network and quantiles of returns as switches.
 *
 *  Source:  Mnih et al. 2015; van Hasselt et al. 2016 (double); Schaul et al. 2016 (priorities); Wang et al. 2016
 *           (dueling); Dabney et al. 2017 (quantiles). Defaults as Stable-Baselines3's DQN. docs/internals/dqn.md.
 *  Parts:   dqn_options (settings, rules, what it asks of collectors and of the replay), dqn_loss and dqn_quantile_loss (the losses),
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

    /* the minibatch in hand */
    int32_t *action; /* [batch_size]                             */
    uint8_t *mask;   /* [batch_size][mask_bits], NULL: no mask   */
    dqn_loss_t loss;

    double sums[DQN_STATS]; /* over the steps of the update that were seen */
    uint32_t steps_seen;
};

/* ---- settings ------------------------------------------------------------------------------------------------------- */

static tt_status_t s_check(const tt_config_t *config, const tt_train_cfg_t *train, const void *cfg)
{
    return dqn_check(config, train, cfg);
}

static void s_shape(const tt_train_cfg_t *train, const void *cfg, tt_shape_t *out)
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
    self->action = tt_array0(self->cfg.off.batch_size, sizeof *self->action);
    if (columns->mask >= 0)
        self->mask = tt_array0(self->cfg.off.batch_size, columns->mask_bits);
    *self_p = self;
    return TT_OK;
}

static void s_destroy(tt_algo_t **self_p)
{
    tt_algo_t *self = *self_p;
    if (!self)
        return;
    free(self->action);
    free(self->mask);
    free(self);
    *self_p = NULL;
}

static const tt_opt_spec_t *s_opt(const tt_algo_t *self, uint32_t group)
{
    (void)group;
    return &self->opt;
}

/* ---- optimiser steps ------------------------------------------------------------------------------------------------ */

static void s_gather(tt_algo_t *self, const tt_at_t *at)
{
    const replay_sample_t *sample = at->sample;
    const tt_columns_t *columns = self->columns;
    TT_CHECK(sample->units == self->cfg.off.batch_size);
    replay_gather(at->replay, sample->unit, sample->units, REPLAY_AT, columns->action, self->action);
    if (self->mask)
        replay_gather(at->replay, sample->unit, sample->units, REPLAY_NEXT, (uint32_t)columns->mask, self->mask);
    self->loss = (dqn_loss_t){
        .choices = columns->choices[columns->at[columns->action].first],
        .quantiles = self->cfg.quantiles,
        .scale = 1 / (float)sample->units,
        .squared = self->cfg.loss == DQN_MSE,
    };
}

static tt_status_t s_minibatch(tt_algo_t *self, const tt_at_t *at, tt_minibatch_t *out)
{
    const replay_sample_t *sample = at->sample;
    s_gather(self, at);
    *out = (tt_minibatch_t){
        .rows = sample->units,
        .objective = &self->objective,
        .params = &self->loss,
        .params_size = sizeof self->loss,
        .inputs = DQN_INPUTS,
        .input = {[DQN_IN_ACTION] = {self->action, sizeof *self->action, false},
            [DQN_IN_RETURN] = {sample->ret, sizeof *sample->ret, false},
            [DQN_IN_DISCOUNT] = {sample->discount, sizeof *sample->discount, false},
            [DQN_IN_WEIGHT] = {sample->weight, sizeof *sample->weight, false},
            [DQN_IN_MASK] = {self->mask, self->mask ? self->columns->mask_bits : 0, false}},
        .train = 1,
        .lr = {self->cfg.off.common.learning_rate},
        .blends = dqn_follows(&self->train, &self->cfg, at),
        .blend = {{.to = 1, .from = 0, .groups = 1, .tau = self->cfg.off.tau}},
        .priorities = self->cfg.replay.prioritized,
    };
    return TT_OK;
}

static bool s_after(tt_algo_t *self, uint32_t step, const float *stats, const float *norm)
{
    (void)norm;
    if (step == 0)
        self->steps_seen = 0;
    for (int i = 0; i < DQN_STATS; i++)
        self->sums[i] = (self->steps_seen ? self->sums[i] : 0) + (double)stats[i];
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
