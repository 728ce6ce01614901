/*  td3_options - the settings of twin delayed DDPG, below "algorithm." and "replay." in a config, the rules between them, and what
 *  they say to the rest of the system.
 *
 *  Threads: read-only. */
#pragma once
#include "common/config/train.h"
#include "learner/algorithm.h"
#include "learner/algorithms/off_policy_options.h"

typedef struct {
    off_policy_cfg_t off;
    float critic_learning_rate;            /* 0 = learning_rate                                   */
    uint32_t policy_delay;                 /* steps of the critics to one of the actor            */
    float target_noise, target_noise_clip; /* of numbers within -1 and 1                          */
    float exploration_noise;               /* the same, of collectors                             */
} td3_cfg_t;

COMMON_FIRST(td3_cfg_t, off.common);

extern const tt_cfg_field_t td3_fields[];

enum { TD3_DELAY_MAX = 1000 };

/*  TT_CONFIG: with the origin of the key at fault. */
tt_status_t td3_check(const tt_config_t *config, const tt_train_cfg_t *train, const td3_cfg_t *cfg);
/*  Collectors add noise to what the actor says, and play at random before learning starts; steps come from a replay. */
void td3_shape(const tt_train_cfg_t *train, const td3_cfg_t *cfg, tt_algorithm_shape_t *out);
