/*  twin - what the steps of an actor and two critics share (SAC, TD3): the tables of a minibatch, the critics' objective, what is reported.
 *
 *  Groups:  the actor, and both critics. Set 1 follows.
 *  Threads: the learner's. */
#pragma once
#include "learner/algorithm.h"
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

/*  A minibatch's actions and noise, by position. */
typedef struct {
    const tt_columns_t *columns; /* borrowed */
    uint64_t seed;
    uint32_t units, numbers; /* of a minibatch, of an action */
    float *action, *noise;   /* [units][numbers] */
    float *stored;           /* [units] rows of an action column */
} twin_tables_t;

void twin_tables_init(
    twin_tables_t *self, const tt_columns_t *columns, uint64_t seed, uint32_t units, uint32_t numbers);
void twin_tables_free(twin_tables_t *self);
/*  A step of one of the groups, critics or the actor: tables, the group and its rate. Noise, of one that draws, is a function of seed, at->total and
 *  position; actions are the critics' alone. What else is in *out stays. */
void twin_describe(twin_tables_t *self, const tt_at_t *at, uint32_t group, float rate, bool draws, tt_minibatch_t *out);

/*  Statistics over the steps of the update that were seen last, by group. */
typedef struct {
    double sums[TWIN_GROUPS][TT_LOSS_STATS];
    uint32_t seen[TWIN_GROUPS];
} twin_sums_t;

typedef struct {
    uint32_t group, stat;
    const char *name;
} twin_metric_t;

#define TWIN_CRITICS_METRICS                                                                           \
    {TWIN_CRITICS, TWIN_CRITIC_LOSS, "losses/critic_loss"}, {TWIN_CRITICS, TWIN_Q, "losses/q_values"}, \
    {                                                                                                  \
        TWIN_CRITICS, TWIN_TARGET, "losses/target_q_values"                                            \
    }

/*  step: of the update; 0 begins a new one. */
void twin_sums_add(twin_sums_t *self, uint32_t step, uint32_t group, const float *stats);
/*  Means, of groups that were seen. */
void twin_sums_emit(const twin_sums_t *self, const twin_metric_t *metric, size_t count, tt_metric_fn emit, void *ctx);
