/*  sac - soft actor-critic, for numbers within bounds: units from a replay, an actor whose deviations are its own in each state, two
 *  critics with targets, and a weight of the entropy that is tuned.
 *
 *  A gradient step is two steps by turns: of the critics (odd), then of the actor and the weight. Each draws units of its own.
 *  Source:  Haarnoja et al. 2018, arXiv:1812.05905 (sac_loss.h). Defaults as Stable-Baselines3's SAC. docs/internals/sac.md.
 *  Parts:   sac_options (settings, rules, what it asks of collectors and of the replay), sac_objective and sac_loss (the losses and the
 *           draw), learner/replay (units, returns). */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/base/rng.h"
#include "common/base/vmath.h"
#include "common/job/fit.h"
#include "common/nn/math/activation.h"
#include "learner/algorithm.h"
#include "learner/algorithms/sac_objective.h"
#include "learner/algorithms/sac_options.h"

enum { ACTOR, CRITICS, GROUPS }; /* actor.groups */

struct tt_algo {
    sac_cfg_t cfg;
    uint64_t seed;
    const tt_columns_t *columns; /* borrowed */
    tt_opt_spec_t opt;
    tt_objective_t objective[GROUPS];
    uint32_t numbers; /* of an action */

    /* the minibatch in hand */
    float *action, *noise; /* [batch_size][numbers] */
    float *stored;         /* [batch_size] rows of an action column */
    sac_loss_t loss;
    uint32_t trains; /* the group of that step */

    double sums[GROUPS][TT_LOSS_STATS]; /* over the steps of the update that were seen */
    uint32_t steps_seen[GROUPS];
};

/* ---- settings ------------------------------------------------------------------------------------------------------- */

static tt_status_t s_check(const tt_config_t *config, const tt_train_cfg_t *train, const void *cfg)
{
    return sac_check(config, train, cfg);
}

static void s_shape(const tt_train_cfg_t *train, const void *cfg, tt_shape_t *out)
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
    self->seed = train->seed;
    self->columns = columns;
    self->opt = common_opt_spec(&self->cfg.off.common);
    self->objective[CRITICS] = sac_critic_objective(&net);
    self->objective[ACTOR] = sac_actor_objective(&net);
    self->numbers = net.action;
    self->action = tt_array0(tt_mul(self->cfg.off.batch_size, self->numbers), sizeof *self->action);
    self->noise = tt_array0(tt_mul(self->cfg.off.batch_size, self->numbers), sizeof *self->noise);
    self->stored = tt_array0(tt_mul(self->cfg.off.batch_size, self->numbers), sizeof *self->stored);
    *self_p = self;
    return TT_OK;
}

static void s_destroy(tt_algo_t **self_p)
{
    tt_algo_t *self = *self_p;
    if (!self)
        return;
    free(self->action);
    free(self->noise);
    free(self->stored);
    free(self);
    *self_p = NULL;
}

static const tt_opt_spec_t *s_opt(const tt_algo_t *self, uint32_t group)
{
    (void)group;
    return &self->opt;
}

/* ---- optimiser steps ------------------------------------------------------------------------------------------------ */

/*  Columns of the units' actions side by side, as the critics know them: what is stored is not yet squashed. */
static void s_gather_actions(tt_algo_t *self, const tt_at_t *at)
{
    const replay_sample_t *sample = at->sample;
    for (uint32_t c = 0, first = 0; c < self->columns->action_count; c++) {
        const tt_column_t *column = &self->columns->at[self->columns->action + c];
        replay_gather(at->replay, sample->unit, sample->units, REPLAY_AT, self->columns->action + c, self->stored);
        for (uint32_t u = 0; u < sample->units; u++)
            for (uint32_t e = 0; e < column->elements; e++)
                self->action[(size_t)u * self->numbers + first + e] =
                    tt_tanhf(self->stored[(size_t)u * column->elements + e]);
        first += column->elements;
    }
}

/*  Standard normals of step `total`, by position alone: every learner has the same. */
static void s_draw_noise(tt_algo_t *self, uint64_t total, uint32_t units)
{
    for (uint32_t u = 0; u < units; u++)
        for (uint32_t a = 0; a < self->numbers; a += 4) {
            uint32_t word[4];
            float z[4];
            tt_draw(word, self->seed, TT_STREAM_DRAW, u, total << 16 | a / 4);
            tt_normals(word, z);
            for (uint32_t k = a; k < a + 4 && k < self->numbers; k++)
                self->noise[(size_t)u * self->numbers + k] = z[k - a];
        }
}

static tt_status_t s_minibatch(tt_algo_t *self, const tt_at_t *at, tt_minibatch_t *out)
{
    const common_cfg_t *common = &self->cfg.off.common;
    const replay_sample_t *sample = at->sample;
    const size_t row = self->numbers * sizeof(float);
    TT_CHECK(sample->units == self->cfg.off.batch_size);
    self->trains = at->total % SAC_STEPS ? ACTOR : CRITICS;
    const bool critics = self->trains == CRITICS;
    s_draw_noise(self, at->total, sample->units);
    if (critics)
        s_gather_actions(self, at);
    self->loss = (sac_loss_t){.numbers = self->numbers,
        .scale = 1 / (float)sample->units,
        .target_entropy = sac_target_entropy(&self->cfg, self->numbers),
        .tuned = self->cfg.tune_entropy};
    *out = (tt_minibatch_t){
        .rows = sample->units,
        .objective = &self->objective[self->trains],
        .params = &self->loss,
        .params_size = sizeof self->loss,
        .inputs = SAC_INPUTS,
        .input = {[SAC_IN_ACTION] = {self->action, critics ? row : 0, false},
            [SAC_IN_NOISE] = {self->noise, row, false},
            [SAC_IN_RETURN] = {sample->ret, sizeof *sample->ret, false},
            [SAC_IN_DISCOUNT] = {sample->discount, sizeof *sample->discount, false},
            [SAC_IN_WEIGHT] = {sample->weight, sizeof *sample->weight, false}},
        .train = 1u << self->trains,
        .lr = {[ACTOR] = common->learning_rate,
            [CRITICS] = self->cfg.critic_learning_rate > 0 ? self->cfg.critic_learning_rate : common->learning_rate},
        .blends = critics,
        .blend = {{.to = 1, .from = 0, .groups = 1u << CRITICS, .tau = self->cfg.off.tau}},
    };
    return TT_OK;
}

static bool s_after(tt_algo_t *self, uint32_t step, const float *stats, const float *norm)
{
    const uint32_t group = self->trains;
    (void)norm;
    if (step == 0)
        memset(self->steps_seen, 0, sizeof self->steps_seen);
    for (int i = 0; i < TT_LOSS_STATS; i++)
        self->sums[group][i] = (self->steps_seen[group] ? self->sums[group][i] : 0) + (double)stats[i];
    self->steps_seen[group]++;
    return false;
}

/*  Means over the steps of the update. */
static void s_metrics(const tt_algo_t *self, tt_metric_fn emit, void *ctx)
{
    static const struct {
        uint32_t group, stat;
        const char *name;
    } known[] = {
        {CRITICS, SAC_CRITIC_LOSS, "losses/critic_loss"},
        {CRITICS, SAC_Q, "losses/q_values"},
        {CRITICS, SAC_TARGET, "losses/target_q_values"},
        {ACTOR, SAC_ACTOR_LOSS, "losses/actor_loss"},
        {ACTOR, SAC_ALPHA_LOSS, "losses/entropy_coef_loss"},
        {ACTOR, SAC_ALPHA, "losses/entropy_coef"},
        {ACTOR, SAC_ENTROPY, "losses/entropy"},
    };
    emit(ctx, "charts/learning_rate", (double)self->cfg.off.common.learning_rate);
    for (size_t i = 0; i < TT_COUNT(known); i++)
        if (self->steps_seen[known[i].group])
            emit(ctx, known[i].name, self->sums[known[i].group][known[i].stat] / self->steps_seen[known[i].group]);
}

const tt_algorithm_t tt_algorithm_sac = {
    .name = "sac",
    .summary = "soft actor-critic (off-policy, from a replay; actions of numbers within bounds)",
    .fields = sac_fields,
    .cfg_size = sizeof(sac_cfg_t),
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
