/*  ppo_options - the settings of PPO, below "algorithm." in a config, and the rules between them.
 *
 *  Threads: read-only. */
#pragma once
#include "common/config/train.h"
#include "common/nn/nn.h"

typedef enum { PPO_NONE, PPO_LINEAR } ppo_anneal_t;           /* order of the choices of anneal and clip_anneal */
typedef enum { PPO_BOOTSTRAP, PPO_CLEANRL } ppo_truncation_t; /* order of the choices of truncation            */

typedef struct {
    float learning_rate;
    int anneal;            /* ppo_anneal_t                                          */
    float anneal_to;       /* fraction of the learning rate at the end              */
    uint64_t anneal_steps; /* env steps from start to end; 0 = stop.env_steps       */
    double gamma;
    float gae_lambda;
    uint32_t epochs, minibatches, minibatch_size; /* ppo_minibatch_rows */
    float clip;
    int clip_anneal; /* ppo_anneal_t, always to 0                             */
    bool clip_value;
    float entropy_coef, value_coef, max_grad_norm;
    bool normalize_advantage;
    double target_kl; /* NAN = off                                             */
    bool recompute;
    int truncation; /* ppo_truncation_t                                      */
    int optimizer;  /* tt_opt_kind_t                                         */
    float adam_beta1, adam_beta2, adam_eps, rmsprop_alpha, momentum;
    float head_gain, log_std0;
} ppo_cfg_t;

extern const tt_cfg_field_t ppo_fields[];

/*  Rows of a batch, and of one minibatch. */
uint32_t ppo_rows(const tt_train_cfg_t *train);
uint32_t ppo_minibatch_rows(const tt_train_cfg_t *train, const ppo_cfg_t *cfg);

/*  TT_CONFIG: the rows do not divide into minibatches of learner.shards equal parts (the text names the nearest value
 *  that works), or something anneals without an end. */
tt_status_t ppo_check(const tt_config_t *config, const tt_train_cfg_t *train, const ppo_cfg_t *cfg);

/*  The share of the run that is over before a batch, 0 .. 1, in steps of whole batches (CleanRL: (iteration - 1) /
 *  num_iterations). */
double ppo_progress(const tt_train_cfg_t *train, const ppo_cfg_t *cfg, uint64_t env_steps);

tt_opt_spec_t ppo_opt(const ppo_cfg_t *cfg);
