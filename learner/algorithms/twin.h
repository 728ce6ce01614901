/*  twin - what the steps of an actor and two critics share (SAC, TD3): the tables of a minibatch, the critics' objective, what is reported.
 *
 *  Groups:  the actor, and both critics. Set 1 follows.
 *  Threads: the learner's. */
#pragma once
#include <stddef.h>
#include "learner/algorithm.h"
#include "learner/algorithms/off_policy_options.h"
#include "learner/algorithms/twin_loss.h"

enum { TWIN_ACTOR, TWIN_CRITICS, TWIN_GROUPS };

#define TWIN_GROUPS_TEXT "actor: actor, critics: q1" /* actor.groups */

/*  An entry of a table of settings. */
#define TWIN_CRITIC_LEARNING_RATE(AT)                                                     \
    {                                                                                     \
        "algorithm.critic_learning_rate", TT_CFG_F32, AT, "0", 0, 1,                      \
            .help = "of the critics; 0 = algorithm.learning_rate", .resume = TT_CFG_GIVEN \
    }

/*  Of tt_net_soft_actor_critic or tt_net_twin_critics, in two sets: the critics at a row's action, and those of set 1 at what is drawn from the
 *  next row's actor, of set actor_set. Group TWIN_CRITICS is trained. */
tt_objective_t twin_critic_objective(
    const tt_net_spec_t *net, const char *name, uint8_t actor_set, tt_loss_fn loss, tt_draw_fn draw);

/*  The first member of an instance of each (TWIN_FIRST): optimiser, objectives, rates, a minibatch's tables, and sums of the steps of the
 *  update that were seen last. */
typedef struct {
    tt_opt_spec_t opt; /* of either group */
    tt_objective_t objective[TWIN_GROUPS];
    float rate[TWIN_GROUPS];

    const tt_columns_t *columns; /* borrowed */
    uint64_t seed;
    uint32_t units, numbers; /* of a minibatch, of an action */
    float *action, *noise;   /* [units][numbers] */
    float *stored;           /* [units] rows of an action column */

    double sums[TWIN_GROUPS][TT_LOSS_STATS];
    uint32_t seen[TWIN_GROUPS];
} twin_t;

#define TWIN_FIRST(type, member) _Static_assert(offsetof(type, member) == 0, "the hooks below find it there")

/*  critics_rate: 0 = the actor's. The objectives are the caller's to put there. */
void twin_init(twin_t *self, const tt_train_cfg_t *train, const tt_columns_t *columns, const off_policy_cfg_t *off,
    float critics_rate);
/*  A step of one of the groups: *out but for parameters and blends; and what the parameters begin with. Noise, of one that draws, is a function
 *  of the seed, at->total and position; actions are the critics' alone. */
twin_loss_t twin_describe(twin_t *self, const tt_at_t *at, uint32_t group, bool draws, tt_minibatch_t *out);

/*  The hooks of a tt_algorithm_t that do not depend on what else an instance has. */
#define TWIN_HOOKS \
    .destroy = twin_destroy, .head_gain = common_head_gain, .gamma = common_gamma, .opt = twin_opt, .after = twin_after

void twin_destroy(tt_algo_t **self_p);
const tt_opt_spec_t *twin_opt(const tt_algo_t *self, uint32_t group);
bool twin_after(tt_algo_t *self, uint32_t step, const tt_result_t *result);

typedef struct {
    uint32_t group, stat;
    const char *name;
} twin_metric_t;

#define TWIN_CRITICS_METRICS                                                                           \
    {TWIN_CRITICS, TWIN_CRITIC_LOSS, "losses/critic_loss"}, {TWIN_CRITICS, TWIN_Q, "losses/q_values"}, \
    {                                                                                                  \
        TWIN_CRITICS, TWIN_TARGET, "losses/target_q_values"                                            \
    }

/*  The actor's rate, and means over the update, of groups that took a step in it. */
void twin_metrics(const twin_t *self, const twin_metric_t *metric, size_t count, tt_metric_fn emit, void *ctx);
