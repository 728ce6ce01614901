/*  job - what is to run: roles, replicas, templates, policies. Front ends (native config, DIJob, TFJob) make one;
 *  the controller keeps it. It knows nothing of where replicas run, nor of reinforcement learning.
 *
 *  Everything in a job is owned by it (tt_job_destroy frees all). Threads: an instance belongs to one thread. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "common/base/status.h"

typedef struct {
    char *name, *value;
} tt_env_var_t;

/*  How one replica of a role is started. */
typedef struct {
    char **command, **args; /* NULL-terminated; command NULL = tutti itself */
    char *working_dir;      /* NULL = ours                                  */
    tt_env_var_t *env;
    size_t env_count;
    int grace_s; /* from "please stop" to kill                    */
} tt_template_t;

typedef enum { TT_RESTART_NEVER, TT_RESTART_ON_FAILURE, TT_RESTART_ALWAYS } tt_restart_t;
/*  Which replicas are removed when a job has ended. */
typedef enum { TT_CLEAN_NONE, TT_CLEAN_RUNNING, TT_CLEAN_ALL } tt_clean_t;
typedef enum {
    TT_JOB_PENDING, /* nothing has been begun */
    TT_JOB_RUNNING,
    TT_JOB_SUCCEEDED,
    TT_JOB_FAILED,
    TT_JOB_STOPPED
} tt_job_phase_t;

typedef struct {
    char *name;        /* "coordinator", "collector", "learner", "aggregator", "worker", ...          */
    uint32_t replicas; /* desired                                                                     */
    uint32_t min_replicas, max_replicas;
    tt_restart_t restart;
    uint32_t backoff_limit; /* restarts before the job fails; UINT32_MAX = no limit                         */
    bool decides_job;       /* the job succeeds / fails with the replicas of this role (coordinator, chief) */
    char **depends_on;      /* roles that start first; NULL-terminated, may be NULL                         */
    tt_template_t template_;
} tt_role_t;

typedef struct {
    char *name;
    tt_role_t *roles;
    size_t role_count;
} tt_job_t;

void tt_job_destroy(tt_job_t **self_p);
/*  TT_CONFIG: no role, a name twice, replicas outside min..max, an unknown or circular depends_on (text says which). */
tt_status_t tt_job_check(const tt_job_t *self);
/*  How a job that is over has ended: "succeeded", "stopped" or "failed". */
const char *tt_job_end_name(tt_job_phase_t phase);
/*  "500m" -> 0.5, "2Gi" -> 2147483648. TT_INVALID otherwise. */
tt_status_t tt_quantity(double *out, const char *text);

/*  Kubernetes' rule for commands, arguments and values: $(NAME) is replaced when `lookup` knows NAME (its first `length` bytes;
 *  NULL = it does not), $$ stands for $, anything else stays. Cut at 1 MiB. Caller frees. */
typedef const char *(*tt_lookup_fn)(const void *ctx, const char *name, size_t length);
char *tt_expand(const char *text, tt_lookup_fn lookup, const void *ctx);
/*  The text that tt_expand makes this of, whatever names there are. Caller frees. */
char *tt_expand_literal(const char *text);
