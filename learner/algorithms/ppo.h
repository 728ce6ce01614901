/*  ppo - what PPO is made of, for an algorithm that is a special case of it (a2c.c). Contracts: tt_algorithm_t.
 *
 *  Threads: as there. */
#pragma once
#include "learner/algorithm.h"
#include "learner/algorithms/ppo_options.h"

/*  cfg: a ppo_cfg_t. */
tt_status_t ppo_create(tt_algo_t **self_p, const tt_train_cfg_t *train, const tt_columns_t *columns, const void *cfg);
void ppo_destroy(tt_algo_t **self_p);
float ppo_log_std0(const void *cfg);
const tt_opt_spec_t *ppo_opt(const tt_algo_t *self, uint32_t group);
uint32_t ppo_steps(const tt_algo_t *self);
tt_status_t ppo_begin(tt_algo_t *self, const tt_batch_t *batch, const tt_evaluator_t *net);
tt_status_t ppo_minibatch(tt_algo_t *self, const tt_at_t *at, tt_minibatch_t *out);
bool ppo_after(tt_algo_t *self, uint32_t step, const tt_result_t *result);
void ppo_metrics(const tt_algo_t *self, tt_metric_fn emit, void *ctx);

/*  The same of one that makes one step of the plain loss on each batch (ppo_plain). */
tt_status_t ppo_plain_check(const tt_config_t *config, const tt_train_cfg_t *train, const void *cfg);
tt_status_t ppo_plain_create(
    tt_algo_t **self_p, const tt_train_cfg_t *train, const tt_columns_t *columns, const void *cfg);

/*  The part of a tt_algorithm_t that does not depend on the settings' table. */
#define PPO_HOOKS                                                                                              \
    .sequences = true, .destroy = ppo_destroy, .head_gain = common_head_gain, .log_std0 = ppo_log_std0,        \
    .gamma = common_gamma, .opt = ppo_opt, .steps = ppo_steps, .begin = ppo_begin, .minibatch = ppo_minibatch, \
    .after = ppo_after, .metrics = ppo_metrics

/*  All of it but name, summary and table. */
#define PPO_PLAIN_HOOKS \
    .cfg_size = sizeof(ppo_cfg_t), .check = ppo_plain_check, .shape = ppo_shape, .create = ppo_plain_create, PPO_HOOKS
