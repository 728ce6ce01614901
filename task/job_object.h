/*  job_object - what an attempt is on a Kubernetes: a Job (batch/v1), made.
 *
 *  Threads: pure. */
#pragma once
#include <jansson.h>
#include <sys/types.h>
#include "task/cluster.h"

#define JOB_OBJECT_CONTAINER "job"
#define JOB_OBJECT_REGISTRY  "tutti-tasks" /* label: whose it is */

/*  What is the same for all of an engine; strings are borrowed. */
typedef struct {
    const char *claim, *registry, *queue; /* queue: NULL = none        */
    json_t *requests, *limits;            /* of job_object_resources   */
    int64_t deadline_s, ttl_s;
    uid_t user; /* as whom it runs: what it writes is to be ours */
    gid_t group;
} job_object_rules_t;

/*  "cpu=1,memory=4Gi" of rules, as objects: new references. TT_USAGE: which word is wrong. */
tt_status_t job_object_resources(json_t **requests, json_t **limits, const cluster_rules_t *rules);
/*  A new reference. */
json_t *job_object(const job_object_rules_t *self, const cluster_job_t *job, const char *name);
