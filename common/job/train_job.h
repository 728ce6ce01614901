/*  train_job - the job of a native config: which roles, how many replicas, who restarts, who decides.
 *
 *  The templates name no image and no command: a replica is tutti itself with the role's name, and whoever runs the job
 *  adds the arguments that depend on the place ("--run DIR", "--index N"). */
#pragma once
#include "common/config/train.h"
#include "common/job/job.h"

/*  Aggregators to run while `learners` learners are asked for: aggregator.replicas when that is set (they idle while a
 *  single learner works); 0 = automatic: one from two learners on, none before, as a lone learner sums in place. Asked
 *  again at every scaling of the learners, so that the aggregator comes with the second one. A job that can never have
 *  two learners (learner.shards 1) never has an aggregator by itself. */
uint32_t tt_train_aggregators(const tt_train_cfg_t *cfg, uint32_t learners);

/*  Make the job. cfg has passed tt_train_check. The caller owns it. Roles: coordinator (1, decides the job), aggregator
 *  (maybe 0 now), learner (1 .. shards), collector (1 .. num_envs); the last three start after the coordinator. */
tt_job_t *tt_train_job(const tt_train_cfg_t *cfg);
