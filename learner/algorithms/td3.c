/*  td3 - twin delayed deep deterministic policy gradient, for numbers within bounds: units from a replay, an actor that gives one action, two
 *  critics, and targets of all of them, whose actions are drawn with noise.
 *
 *  Steps by turns: policy_delay of the critics, then one of the actor, behind which the targets follow. Each draws units of its own.
 *  Source:  Fujimoto et al. 2018, arXiv:1802.09477 (td3_loss.h). Defaults as Stable-Baselines3's TD3. docs/internals/td3.md.
 *  Parts:   td3_options (settings, rules, what it asks of collectors and of the replay), td3_objective and td3_loss (the losses and the
 *           draws), twin (tables and what else is the same with SAC), learner/replay (units, returns). */
#include "common/base/mem.h"
#include "common/job/fit.h"
#include "learner/algorithm.h"
#include "learner/algorithms/td3_objective.h"
#include "learner/algorithms/td3_options.h"
#include "learner/algorithms/twin.h"

struct tt_algo {
    twin_t twin;
    td3_cfg_t cfg;
    td3_loss_t loss; /* of the step in hand */
};

TWIN_FIRST(struct tt_algo, twin);

/* ---- settings ------------------------------------------------------------------------------------------------------- */

static tt_status_t s_check(const tt_config_t *config, const tt_train_cfg_t *train, const void *cfg)
{
    return td3_check(config, train, cfg);
}

static void s_shape(const tt_train_cfg_t *train, const void *cfg, tt_algorithm_shape_t *out)
{
    td3_shape(train, cfg, out);
}

/*  There are no deviations. */
static float s_log_std0(const void *cfg)
{
    (void)cfg;
    return 0;
}

/* ---- life ----------------------------------------------------------------------------------------------------------- */

static tt_status_t s_create(
    tt_algo_t **self_p, const tt_train_cfg_t *train, const tt_columns_t *columns, const void *cfg)
{
    const tt_net_spec_t net = tt_train_net(train, columns);
    tt_algo_t *self = tt_new0(sizeof *self);
    self->cfg = *(const td3_cfg_t *)cfg;
    twin_init(&self->twin, train, columns, &self->cfg.off, self->cfg.critic_learning_rate);
    self->twin.objective[TWIN_CRITICS] = td3_critic_objective(&net);
    self->twin.objective[TWIN_ACTOR] = td3_actor_objective(&net);
    *self_p = self;
    return TT_OK;
}

/* ---- optimiser steps ------------------------------------------------------------------------------------------------ */

static tt_status_t s_minibatch(tt_algo_t *self, const tt_at_t *at, tt_minibatch_t *out)
{
    const bool critics = at->total % (self->cfg.policy_delay + 1) < self->cfg.policy_delay;
    self->loss = (td3_loss_t){.of = twin_describe(&self->twin, at, critics ? TWIN_CRITICS : TWIN_ACTOR, critics, out),
        .noise = self->cfg.target_noise,
        .clip = self->cfg.target_noise_clip};
    out->params = &self->loss;
    out->params_size = sizeof self->loss;
    out->blends = !critics;
    out->blend[0] =
        (tt_blend_t){.to = 1, .from = 0, .groups = 1u << TWIN_ACTOR | 1u << TWIN_CRITICS, .tau = self->cfg.off.tau};
    return TT_OK;
}

/*  Means over the steps of the update. */
static void s_metrics(const tt_algo_t *self, tt_metric_fn emit, void *ctx)
{
    static const twin_metric_t known[] = {TWIN_CRITICS_METRICS, {TWIN_ACTOR, TD3_ACTOR_LOSS, "losses/actor_loss"}};
    twin_metrics(&self->twin, known, TT_COUNT(known), emit, ctx);
}

const tt_algorithm_t tt_algorithm_td3 = {
    .name = "td3",
    .summary = "twin delayed DDPG (off-policy, from a replay; actions of numbers within bounds)",
    .fields = td3_fields,
    .cfg_size = sizeof(td3_cfg_t),
    .check = s_check,
    .shape = s_shape,
    .create = s_create,
    .log_std0 = s_log_std0,
    .minibatch = s_minibatch,
    .metrics = s_metrics,
    TWIN_HOOKS,
};
