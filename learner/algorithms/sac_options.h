/*  sac_options - the settings of soft actor-critic, below "algorithm." and "replay." in a config, the rules between them, and what
 *  they say to the rest of the system.
 *
 *  Threads: read-only. */
#pragma once
#include "common/config/train.h"
#include "learner/algorithm.h"
#include "learner/algorithms/off_policy_options.h"

typedef struct {
    off_policy_cfg_t off;
    float critic_learning_rate; /* 0 = learning_rate                        */
    float entropy_coef;         /* at first, where it is tuned              */
    bool tune_entropy;
    double target_entropy; /* NAN: minus the numbers of an action      */
} sac_cfg_t;

COMMON_FIRST(sac_cfg_t, off.common);

extern const tt_cfg_field_t sac_fields[];

enum { SAC_STEPS = 2 }; /* of optimisers for a gradient step: the critics', then the actor's */

/*  TT_CONFIG: with the origin of the key at fault. */
tt_status_t sac_check(const tt_config_t *config, const tt_train_cfg_t *train, const sac_cfg_t *cfg);
/*  Collectors draw from the actor, whose numbers are squashed, and play at random before learning starts; steps come from a replay. */
void sac_shape(const tt_train_cfg_t *train, const sac_cfg_t *cfg, tt_algorithm_shape_t *out);
/*  Of an action of so many numbers. */
float sac_target_entropy(const sac_cfg_t *cfg, uint32_t numbers);
