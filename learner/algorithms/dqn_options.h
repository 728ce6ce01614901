/*  dqn_options - the settings of DQN, below "algorithm." and "replay." in a config, the rules between them, and what they
 *  say to the rest of the system.
 *
 *  Threads: read-only. */
#pragma once
#include "common/config/train.h"
#include "learner/algorithm.h"
#include "learner/algorithms/off_policy_options.h"

enum { DQN_USUAL = -1 };
typedef enum { DQN_HUBER, DQN_MSE } dqn_error_t; /* order of the choices of loss */

typedef struct {
    off_policy_cfg_t off;
    bool double_q, dueling, noisy;
    uint32_t quantiles;                /* of a choice; 0 = it has one value, or atoms   */
    uint32_t atoms;                    /* the same                                      */
    float v_min, v_max;                /* the first and the last atom                   */
    uint32_t sequence_length, burn_in; /* rows; with network.rnn only, as replay.eta */
    float rescale;                     /* epsilon of value rescaling; 0 = off   */
    float noisy_sigma;
    int loss;                          /* dqn_error_t                                   */
    uint64_t target_every;             /* env steps                                     */
    double epsilon_start, epsilon_end; /* DQN_USUAL: dqn_epsilon_start, dqn_epsilon_end */
    uint64_t epsilon_steps;            /* env steps; 0 = a tenth of stop.env_steps      */
    float epsilon_power;               /* tt_actor_t */
    struct {
        bool prioritized;
        float alpha, epsilon, beta, beta_end, eta;
        uint64_t beta_steps; /* env steps; 0 = stop.env_steps                 */
        uint32_t priority_delay;
    } replay;
} dqn_cfg_t;

COMMON_FIRST(dqn_cfg_t, off.common);

extern const tt_cfg_field_t dqn_fields[];

/*  TT_CONFIG: with the origin of the key at fault. */
tt_status_t dqn_check(const tt_config_t *config, const tt_train_cfg_t *train, const dqn_cfg_t *cfg);

/*  What a step trains on: rows, or with network.rnn sequences. */
off_policy_form_t dqn_form(const tt_train_cfg_t *train, const dqn_cfg_t *cfg);
/*  Rows of a minibatch that are trained on. */
uint32_t dqn_rows(const tt_train_cfg_t *train, const dqn_cfg_t *cfg);

/*  Collectors act by the best choice with epsilon, at random before learning starts; steps come from a replay. Its bytes are
 *  `capacity` rows of what is stored of one: observation, mask, action, reward and both flags. */
void dqn_shape(const tt_train_cfg_t *train, const dqn_cfg_t *cfg, tt_algorithm_shape_t *out);

/*  What epsilon comes to: the usual where it is not given, or 0 where noise explores. */
double dqn_epsilon_start(const dqn_cfg_t *cfg);
double dqn_epsilon_end(const dqn_cfg_t *cfg);

/*  Is the target network to follow after this step? It does after the first step that is made once another multiple of
 *  target_every was inserted. A pure function of the settings and of where the run stands. */
bool dqn_follows(const tt_train_cfg_t *train, const dqn_cfg_t *cfg, const tt_at_t *at);
