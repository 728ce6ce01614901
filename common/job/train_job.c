#include "common/job/train_job.h"
#include "common/base/limits.h"
#include "common/base/mem.h"
#include <stdlib.h>

enum {
    GRACE_S = 10, /* a role writes its last snapshot in that time                     */
    RESTARTS = 5  /* in a row; then the program, the journal or the host is at fault  */
};

uint32_t tt_train_aggregators(const tt_train_cfg_t *cfg, uint32_t learners)
{
    if (cfg->aggregator.replicas)
        return cfg->aggregator.replicas;
    return cfg->learner.shards > 1 && learners > 1;
}

/*  A role that starts after the coordinator and comes back whenever it ends, be it well (somebody sent it SIGTERM), while
 *  it is wanted: the roster goes on without it meanwhile. */
static tt_role_t s_role(const char *name, uint32_t replicas, uint32_t min, uint32_t max)
{
    tt_role_t role = {.name = tt_strdup(name),
        .replicas = replicas,
        .min_replicas = min,
        .max_replicas = max,
        .restart = TT_RESTART_ALWAYS,
        .backoff_limit = RESTARTS,
        .template_.grace_s = GRACE_S};
    role.depends_on = tt_array0(2, sizeof *role.depends_on);
    role.depends_on[0] = tt_strdup("coordinator");
    role.template_.args = tt_array0(2, sizeof *role.template_.args);
    role.template_.args[0] = tt_strdup(name);
    return role;
}

static tt_role_t s_coordinator(void)
{
    tt_role_t role = s_role("coordinator", 1, 1, 1);
    free(role.depends_on[0]);
    free(role.depends_on);
    role.depends_on = NULL;
    role.decides_job = true;
    role.restart = TT_RESTART_ON_FAILURE;
    return role;
}

tt_job_t *tt_train_job(const tt_train_cfg_t *cfg)
{
    tt_job_t *job = tt_new0(sizeof *job);
    job->name = tt_strdup(cfg->name);
    job->role_count = 4;
    job->roles = tt_array0(job->role_count, sizeof *job->roles);
    job->roles[0] = s_coordinator();
    job->roles[1] = s_role("aggregator", tt_train_aggregators(cfg, cfg->learner.replicas), 0, TT_AGGREGATORS_MAX);
    job->roles[2] = s_role("learner", cfg->learner.replicas, 1, cfg->learner.shards);
    job->roles[3] = s_role("collector", cfg->collector.replicas, 1, cfg->num_envs);
    return job;
}
