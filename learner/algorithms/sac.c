/*  sac - soft actor-critic, for numbers within bounds: units from a replay, an actor whose deviations are its own in each state, two
 *  critics with targets, and a weight of the entropy that is tuned.
 *
 *  A gradient step is two steps by turns: of the critics (odd), then of the actor and the weight. Each draws units of its own.
 *  Source:  Haarnoja et al. 2018, arXiv:1812.05905 (sac_loss.h). Defaults as Stable-Baselines3's SAC. docs/internals/sac.md.
 *  Parts:   sac_options (settings, rules, what it asks of collectors and of the replay), sac_objective and sac_loss (the losses and the
 *           draw), twin (tables and what else is the same with TD3), learner/replay (units, returns). */
#include "common/base/mem.h"
#include "common/base/vmath.h"
#include "common/job/fit.h"
#include "learner/algorithm.h"
#include "learner/algorithms/sac_objective.h"
#include "learner/algorithms/sac_options.h"
#include "learner/algorithms/twin.h"

struct tt_algo {
    twin_t twin;
    sac_cfg_t cfg;
    sac_loss_t loss; /* of the step in hand */
};

TWIN_FIRST(struct tt_algo, twin);

/* ---- settings ------------------------------------------------------------------------------------------------------- */

static tt_status_t s_check(const tt_config_t *config, const tt_train_cfg_t *train, const void *cfg)
{
    return sac_check(config, train, cfg);
}

static void s_shape(const tt_train_cfg_t *train, const void *cfg, tt_algorithm_shape_t *out)
{
    sac_shape(train, cfg, out);
}

/*  What stands beside the actor is no deviation but log alpha. */
static float s_log_std0(const void *cfg)
{
    return tt_logf(((const sac_cfg_t *)cfg)->entropy_coef);
}

/* ---- life ----------------------------------------------------------------------------------------------------------- */

static tt_status_t s_create(
    tt_algo_t **self_p, const tt_train_cfg_t *train, const tt_columns_t *columns, const void *cfg)
{
    const tt_net_spec_t net = tt_train_net(train, columns);
    tt_algo_t *self = tt_new0(sizeof *self);
    self->cfg = *(const sac_cfg_t *)cfg;
    twin_init(&self->twin, train, columns, &self->cfg.off, self->cfg.critic_learning_rate);
    self->twin.objective[TWIN_CRITICS] = sac_critic_objective(&net);
    self->twin.objective[TWIN_ACTOR] = sac_actor_objective(&net);
    *self_p = self;
    return TT_OK;
}

/* ---- optimiser steps ------------------------------------------------------------------------------------------------ */

static tt_status_t s_minibatch(tt_algo_t *self, const tt_at_t *at, tt_minibatch_t *out)
{
    const bool critics = at->total % SAC_STEPS == 0;
    const twin_loss_t of = twin_describe(&self->twin, at, critics ? TWIN_CRITICS : TWIN_ACTOR, true, out);
    self->loss = (sac_loss_t){
        .of = of, .target_entropy = sac_target_entropy(&self->cfg, of.numbers), .tuned = self->cfg.tune_entropy};
    out->params = &self->loss;
    out->params_size = sizeof self->loss;
    out->blends = critics;
    out->blend[0] = (tt_blend_t){.to = 1, .from = 0, .groups = 1u << TWIN_CRITICS, .tau = self->cfg.off.tau};
    return TT_OK;
}

/*  Means over the steps of the update. */
static void s_metrics(const tt_algo_t *self, tt_metric_fn emit, void *ctx)
{
    static const twin_metric_t known[] = {
        TWIN_CRITICS_METRICS,
        {TWIN_ACTOR, SAC_ACTOR_LOSS, "losses/actor_loss"},
        {TWIN_ACTOR, SAC_ALPHA_LOSS, "losses/entropy_coef_loss"},
        {TWIN_ACTOR, SAC_ALPHA, "losses/entropy_coef"},
        {TWIN_ACTOR, SAC_ENTROPY, "losses/entropy"},
    };
    twin_metrics(&self->twin, known, TT_COUNT(known), emit, ctx);
}

const tt_algorithm_t tt_algorithm_sac = {
    .name = "sac",
    .summary = "soft actor-critic (off-policy, from a replay; actions of numbers within bounds)",
    .fields = sac_fields,
    .cfg_size = sizeof(sac_cfg_t),
    .check = s_check,
    .shape = s_shape,
    .create = s_create,
    .log_std0 = s_log_std0,
    .minibatch = s_minibatch,
    .metrics = s_metrics,
    TWIN_HOOKS,
};
