/*  stop - the rules that end a run, looked at after batch n and before update n.
 *
 *  All but wall_s depend on nothing but the experience, so that every learner comes to the same end.
 *  Threads: pure. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "common/config/train.h"

enum { STOP_EPISODES = 100 }; /* the mean counts from so many episodes on */

typedef struct {
    uint64_t env_steps; /* with batch n                                          */
    uint64_t episodes;  /* that ended up to and with batch n                     */
    double return_mean; /* of the last STOP_EPISODES; NAN = none                 */
    double wall_s;      /* since the run's process started; NAN = do not look    */
} stop_facts_t;

/*  The name of the first rule that holds ("return_mean", "env_steps", "wall_s"), NULL when the run goes on. */
const char *stop_reason(const tt_train_cfg_t *cfg, const stop_facts_t *facts);

/*  Has the mean of the last 100 episodes reached the env's threshold? */
bool stop_solved(const tt_train_cfg_t *cfg, const stop_facts_t *facts);
