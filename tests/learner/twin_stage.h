/*  twin_stage - an instance of an algorithm with an actor and two critics (SAC, TD3), and a replay with actions by formula, of two columns.
 *  Threads: none. */
#pragma once
#include "learner/algorithm.h"
#include "learner/algorithms/sac_options.h"
#include "learner/algorithms/td3_options.h"

enum { TWIN_ARM = 2, TWIN_LEG = 3, TWIN_NUMBERS = TWIN_ARM + TWIN_LEG }; /* elements of the columns, of an action */

typedef struct {
    const tt_algorithm_t *algorithm;
    tt_train_cfg_t train;
    union {
        off_policy_cfg_t off; /* what each begins with */
        sac_cfg_t sac;
        td3_cfg_t td3;
    } cfg;
    tt_columns_t *columns;
    replay_t *replay;
    tt_algo_t *algo;
    replay_sample_t sample; /* units that were drawn last */
} twin_stage_t;

/*  What a job says beside the algorithm's own keys: float32[4], and an action of two numbers. */
tt_train_cfg_t twin_train(tt_actor_t actor);
/*  Settings from words, checked; cfg: the algorithm's. */
tt_status_t twin_read(const char *algorithm, const char *yaml, const tt_train_cfg_t *train, void *cfg);
/*  They are refused, and the text has both words. */
void twin_refused(
    const char *algorithm, const char *yaml, const tt_train_cfg_t *train, const char *first, const char *second);

void twin_stage_open(twin_stage_t *self, const char *algorithm, tt_actor_t actor, const char *yaml);
void twin_stage_close(twin_stage_t *self);
/*  Number e of action column c of a unit, as stored. */
float twin_stored(uint64_t unit, uint32_t c, uint32_t e);
/*  Step `total` of the run, which is number `step` of its update, with the units that were drawn last; or with units of its own. */
tt_minibatch_t twin_describe_again(const twin_stage_t *self, uint64_t total, uint32_t step);
tt_minibatch_t twin_describe_step(twin_stage_t *self, uint64_t total, uint32_t step);
/*  Its tables are those of the units, and of an action or noise where the step reads one. */
void twin_assert_inputs(const twin_stage_t *self, const tt_minibatch_t *m, bool actions, bool noise);
