/*  common_options - the settings that algorithms share, below "algorithm." in a config: each is written once, and an algorithm takes
 *  the rows it has into its table, where they belong among its own, with the defaults that differ.
 *
 *  A key means the same in every algorithm, whatever its default is; whether a resumed run may change it is the algorithm's to
 *  say where it depends on what the algorithm keeps.
 *  Threads: read-only. */
#pragma once
#include <stddef.h>
#include "common/config/train.h"
#include "common/nn/nn.h"

/*  The first member of an algorithm's settings: COMMON_FIRST. */
typedef struct {
    float learning_rate, max_grad_norm;
    double gamma;
    int optimizer; /* tt_opt_kind_t */
    float adam_beta1, adam_beta2, adam_eps, rmsprop_alpha, momentum;
    float head_gain;
} common_cfg_t;

#define COMMON_FIRST(type, member) _Static_assert(offsetof(type, member) == 0, "the rows below fill it in from there")

/*  Entries of a table of settings. */
#define COMMON_LEARNING_RATE(DEFAULT)                                                                \
    {                                                                                                \
        "algorithm.learning_rate", TT_CFG_F32, offsetof(common_cfg_t, learning_rate), DEFAULT, 0, 1, \
            .help = "optimizer step size", .resume = TT_CFG_GIVEN                                    \
    }

#define COMMON_GAMMA(RESUME)                                                        \
    {                                                                               \
        "algorithm.gamma", TT_CFG_F64, offsetof(common_cfg_t, gamma), "0.99", 0, 1, \
            .help = "discount of a reward one step later", .resume = RESUME         \
    }

#define COMMON_MAX_GRAD_NORM(DEFAULT)                                                                  \
    {                                                                                                  \
        "algorithm.max_grad_norm", TT_CFG_F32, offsetof(common_cfg_t, max_grad_norm), DEFAULT, 0, 1e6, \
            .help = "clip the gradient's norm; 0 = off", .resume = TT_CFG_GIVEN                        \
    }

#define COMMON_OPTIMIZER(DEFAULT, EPS)                                                                              \
    {"algorithm.optimizer", TT_CFG_ENUM, offsetof(common_cfg_t, optimizer), DEFAULT, .choices = "adam|sgd|rmsprop", \
        .help = "update rule"},                                                                                     \
        {"algorithm.adam_beta1", TT_CFG_F32, offsetof(common_cfg_t, adam_beta1), "0.9", 0, 0.99999,                 \
            .help = "Adam: decay of the mean"},                                                                     \
        {"algorithm.adam_beta2", TT_CFG_F32, offsetof(common_cfg_t, adam_beta2), "0.999", 0, 0.9999999,             \
            .help = "Adam: decay of the square"},                                                                   \
        {"algorithm.adam_eps", TT_CFG_F32, offsetof(common_cfg_t, adam_eps), EPS, 1e-30, 1,                         \
            .help = "Adam and RMSProp: epsilon beside the root", .resume = TT_CFG_GIVEN},                           \
        {"algorithm.rmsprop_alpha", TT_CFG_F32, offsetof(common_cfg_t, rmsprop_alpha), "0.99", 0, 0.9999999,        \
            .help = "RMSProp: decay of the square"},                                                                \
    {                                                                                                               \
        "algorithm.momentum", TT_CFG_F32, offsetof(common_cfg_t, momentum), "0", 0, 0.99999,                        \
            .help = "SGD and RMSProp: momentum"                                                                     \
    }

/*  Of rows whose place in an algorithm's own settings differs: what the key is. */
#define COMMON_ENTROPY_COEF(AT, DEFAULT, RESUME)                                                         \
    {                                                                                                    \
        "algorithm.entropy_coef", TT_CFG_F32, AT, DEFAULT, 0, 10, .help = "weight of the entropy bonus", \
                                                                  .resume = RESUME                       \
    }

#define COMMON_HEAD_GAIN(DEFAULT)                                                              \
    {                                                                                          \
        "algorithm.head_gain", TT_CFG_F32, offsetof(common_cfg_t, head_gain), DEFAULT, 0, 100, \
            .help = "gain of the first weights of the head that is acted by"                   \
    }

/*  TT_CONFIG: "file:1:2: key: " and what is wrong with it, in printf's words, said once. For rules between keys. */
#define COMMON_BAD(config, key, ...) common_bad(config, key, tt_err(TT_CONFIG, __VA_ARGS__))
tt_status_t common_bad(const tt_config_t *config, const char *key, tt_status_t status);

/*  A minibatch of sequences: how many there are, of how many steps (which the user says by steps_key), through how many towers that recur. */
typedef struct {
    uint32_t sequences, steps;
    const char *steps_key;
    uint32_t towers;
} common_sequences_t;
/*  TT_CONFIG: what a learner's threads keep of it (common/nn/cpu/sequences.c), all that gradients go back through, is more than TT_SEQUENCES_MAX_MIB. */
tt_status_t common_check_sequences(const tt_config_t *config, const tt_train_cfg_t *train, common_sequences_t of);

tt_opt_spec_t common_opt_spec(const common_cfg_t *cfg);

/*  Hooks of a tt_algorithm_t. cfg: what begins with a common_cfg_t. */
float common_head_gain(const void *cfg);
double common_gamma(const void *cfg);
