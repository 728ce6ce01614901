/*  ppo_options - the settings of PPO, below "algorithm." in a config, and the rules between them; those that A2C has too are
 *  written once.
 *
 *  Threads: read-only. */
#pragma once
#include <stddef.h>
#include "common/config/train.h"
#include "learner/algorithm.h"
#include "learner/algorithms/common_options.h"

typedef enum { PPO_NONE, PPO_LINEAR } ppo_anneal_t;           /* order of the choices of anneal and clip_anneal */
typedef enum { PPO_BOOTSTRAP, PPO_CLEANRL } ppo_truncation_t; /* order of the choices of truncation            */

typedef struct {
    common_cfg_t common;
    int anneal;            /* ppo_anneal_t                                          */
    float anneal_to;       /* fraction of the learning rate at the end              */
    uint64_t anneal_steps; /* env steps from start to end; 0 = stop.env_steps       */
    float gae_lambda;
    bool vtrace; /* advantages by common/rl/vtrace and not by gae */
    float vtrace_rho, vtrace_c;
    uint32_t epochs, minibatches, minibatch_size; /* ppo_minibatch_rows */
    float clip;
    int clip_anneal; /* ppo_anneal_t, always to 0                             */
    bool clip_value;
    float entropy_coef, value_coef;
    bool normalize_advantage;
    double target_kl; /* NAN = off                                             */
    bool recompute;
    int truncation; /* ppo_truncation_t                                      */
    float log_std0;
    bool squash, state_std; /* tt_actor_t */
    bool plain;             /* no setting: ppo_plain */
} ppo_cfg_t;

COMMON_FIRST(ppo_cfg_t, common);

extern const tt_cfg_field_t ppo_fields[];

#define PPO_AT(member) offsetof(ppo_cfg_t, member)

/*  Entries of a table of settings that a ppo_cfg_t holds, with the defaults that differ. */
#define PPO_SHARED_FIELDS(LEARNING_RATE, GAE_LAMBDA, ENTROPY_COEF, VALUE_COEF, NORMALIZE_ADVANTAGE, OPTIMIZER)    \
    COMMON_LEARNING_RATE(LEARNING_RATE),                                                                          \
        {"algorithm.anneal", TT_CFG_ENUM, PPO_AT(anneal), "none", .choices = "none|linear",                       \
            .help = "how the learning rate falls over the run", .resume = TT_CFG_GIVEN},                          \
        {"algorithm.anneal_to", TT_CFG_F32, PPO_AT(anneal_to), "0", 0, 1,                                         \
            .help = "fraction of the learning rate left at the end", .resume = TT_CFG_GIVEN},                     \
        {"algorithm.anneal_steps", TT_CFG_U64, PPO_AT(anneal_steps), "0", 0, 1e15,                                \
            .help = "env steps until the end of annealing; 0 = stop.env_steps", .resume = TT_CFG_GIVEN},          \
        COMMON_GAMMA(TT_CFG_GIVEN),                                                                               \
        {"algorithm.gae_lambda", TT_CFG_F32, PPO_AT(gae_lambda), GAE_LAMBDA, 0, 1,                                \
            .help = "lambda of generalised advantage estimation, or of V-trace", .resume = TT_CFG_GIVEN},         \
        COMMON_ENTROPY_COEF(PPO_AT(entropy_coef), ENTROPY_COEF, TT_CFG_GIVEN),                                    \
        {"algorithm.value_coef", TT_CFG_F32, PPO_AT(value_coef), VALUE_COEF, 0, 100,                              \
            .help = "weight of half the squared error", .resume = TT_CFG_GIVEN},                                  \
        COMMON_MAX_GRAD_NORM("0.5"),                                                                              \
        {"algorithm.normalize_advantage", TT_CFG_BOOL, PPO_AT(normalize_advantage), NORMALIZE_ADVANTAGE,          \
            .help = "mean 0 and deviation 1 in every minibatch", .resume = TT_CFG_GIVEN},                         \
        {"algorithm.truncation", TT_CFG_ENUM, PPO_AT(truncation), "bootstrap", .choices = "bootstrap|cleanrl",    \
            .help = "value at a time limit: of the final observation, or 0 as CleanRL", .resume = TT_CFG_GIVEN},  \
        COMMON_OPTIMIZER(OPTIMIZER, "1e-5"), COMMON_HEAD_GAIN("0.01"),                                            \
        {"algorithm.log_std0", TT_CFG_F32, PPO_AT(log_std0), "0", -20, 5,                                         \
            .help = "first log standard deviation of continuous actions"},                                        \
        {"algorithm.state_std", TT_CFG_BOOL, PPO_AT(state_std), "false",                                          \
            .help = "deviations of continuous actions come from the network, another for each observation; off: " \
                    "they are weights of their own"},                                                             \
    {                                                                                                             \
        "algorithm.squash", TT_CFG_BOOL, PPO_AT(squash), "false",                                                 \
            .help = "continuous actions go through tanh onto their bounds; off: they are cut there"               \
    }

#define PPO_VTRACE_FIELDS                                                                                          \
    {"algorithm.vtrace_rho", TT_CFG_F32, PPO_AT(vtrace_rho), "1", 1e-6, 1e6,                                       \
        .help = "V-trace: how much a step may weigh", .resume = TT_CFG_GIVEN},                                     \
    {                                                                                                              \
        "algorithm.vtrace_c", TT_CFG_F32, PPO_AT(vtrace_c), "1", 0, 1e6,                                           \
            .help = "V-trace: how much of what follows a step may count, times gae_lambda", .resume = TT_CFG_GIVEN \
    }

/*  A hook of PPO and of what is made of it: how collectors act. */
void ppo_shape(const tt_train_cfg_t *train, const void *cfg, tt_algorithm_shape_t *out);

/*  What an algorithm that makes one step of the plain loss on each batch adds to its settings. cfg: a ppo_cfg_t, zeros before it was filled
 *  in: with PPO_VTRACE_FIELDS in its table it is one by V-trace. */
ppo_cfg_t ppo_plain(const void *cfg);

/*  Rows of a batch, and of one minibatch. */
uint32_t ppo_rows(const tt_train_cfg_t *train);
uint32_t ppo_minibatch_rows(const tt_train_cfg_t *train, const ppo_cfg_t *cfg);

/*  TT_CONFIG: the rows do not divide into minibatches of learner.shards equal parts, or with network.rnn the envs into minibatches (the
 *  text names the nearest value that works), or something anneals without an end. */
tt_status_t ppo_check(const tt_config_t *config, const tt_train_cfg_t *train, const ppo_cfg_t *cfg);

/*  The share of the run that is over before a batch, 0 .. 1, in steps of whole batches (CleanRL: (iteration - 1) /
 *  num_iterations). */
double ppo_progress(const tt_train_cfg_t *train, const ppo_cfg_t *cfg, uint64_t env_steps);
