/*  rounds - a job that is looked at until there is nothing to do, at the bench's small API server: for the tests of rounds and of who
 *  leads. */
#pragma once
#include "tests/k8s/operator/operator_bench.h"

#define JOBS      JOBS_PATH "/namespaces/n/dijobs"
#define SECRETS   "/api/v1/namespaces/n/secrets"
#define GROUPS    "/apis/scheduling.volcano.sh/v1beta1/namespaces/n/podgroups"
#define WORKLOADS "/apis/kueue.x-k8s.io/v1beta2/namespaces/n/workloads"

/*  For cmocka: `setup` (bench_setup, or one that does more), and a job "j" of which the operator knows; it is not looked at before
 *  rounds_run. The second is of the queue "q". */
int rounds_setup_by(int (*setup)(void **state), void **state);
int rounds_setup_queue_by(int (*setup)(void **state), void **state);
/*  `setup`, and the job's kind makes the secret "j-key", and removes it from a job that is suspended: a DIJob in all else. */
int rounds_setup_object_by(int (*setup)(void **state), void **state);
/*  `setup`, and pods come in Volcano's groups. */
int rounds_setup_gang_by(int (*setup)(void **state), void **state);

/*  What that kind was asked last: of which job (only its address is good for anything), front_view_t.made and removed. */
typedef struct {
    const dijob_t *job;
    uint32_t made, removed;
} rounds_plan_t;
extern rounds_plan_t rounds_planned;

/*  The job "j", of that kind too. */
job_t *rounds_job(const operator_t *op);
/*  The operator looks at jobs from now on, until this is so. */
void rounds_run(bench_t *bench, bool (*until)(void *ctx));

/*  For that, and for bench_until; ctx: the operator. */
bool rounds_know_job(void *ctx);
/*  It has a status, and nothing is under way. */
bool rounds_rest(void *ctx);
/*  One pod, and then as rounds_rest. */
bool rounds_have_coordinator(void *ctx);
/*  The secret is made, by our notes. */
bool rounds_made_object(void *ctx);
/*  The Workload, too; and then as rounds_rest. */
bool rounds_made_workload(void *ctx);

/*  For bench_until: the coordinator's pod is another one than that. */
typedef struct {
    const operator_t *op;
    char *uid; /* owned */
} rounds_pod_t;
rounds_pod_t rounds_coordinator(const operator_t *op);
bool rounds_have_another(void *ctx); /* a rounds_pod_t */
