/*  local - a job of Kubernetes (a DIJob; front.h has the kinds) on this machine, without a cluster: the manifest that kubectl takes, its pods as processes.
 *
 *  What is to be done is decided by the same plan as in the operator, on pods of a local kubelet; the replicas API is
 *  served to the job's processes; phases, conditions, counters, cleanup policy and exit code are those of the cluster.
 *
 *  The run directory holds job.json (the job with its status), pods.json, logs/<pod without the job's name>.log, pods/ and
 *  claims/ (volumes), hosts.
 *
 *  Threads: local_run blocks in the main thread; ZeroMQ's own thread carries the control socket. */
#pragma once
#include <jansson.h>
#include "common/base/clock.h"
#include "common/job/job.h"
#include "controller/rundir.h"
#include "k8s/front/front.h"
#include "local/place.h"

/*  What a manifest file holds that can be run here. */
typedef struct {
    const front_t *front;
    json_t *job;     /* its status left out                           */
    json_t *config;  /* of front_t.config: an AggregatorConfig; NULL = none */
    json_t *objects; /* array: its ConfigMaps and Secrets             */
    bool lacks;      /* something that the job wants, and was told, is not on this machine */
} local_manifest_t;

/*  Read and check: exactly one job, types, the schema's rules in the schema's words. say is told which fields mean nothing
 *  on one machine, in one line, and what the job wants that this machine has not (needs.h). TT_CONFIG: "file:line: what"; TT_NOT_FOUND, TT_IO: the file. */
tt_status_t local_read(local_manifest_t *out, const char *path, local_say_fn say, void *ctx);
void local_manifest_clear(local_manifest_t *self);

typedef struct {
    const tt_rundir_t *run;
    local_manifest_t *manifest; /* borrowed; its job is written to                          */
    bool no_namespaces, no_limits;
    local_say_fn say;           /* phases as they change, events, notes                 */
    void (*started)(void *ctx); /* the coordinator runs, or every task; may be NULL     */
    void *ctx;
    const tt_clock_t *clock; /* NULL = real                                         */
} local_opts_t;

typedef struct {
    tt_job_phase_t phase; /* SUCCEEDED, FAILED, STOPPED                                             */
    int exit_code;        /* of `tutti run`: 0; the coordinator's own; 75 (late); 128 + signal where stopped */
    char reason[1024];
} local_outcome_t;

/*  The run's sockets folder must be open and its lock held (controller/rundir.h). */
tt_status_t local_run(local_outcome_t *out, const local_opts_t *opts);

/*  The folder `checkpoints` of a run of ours below its pods' volumes and claims, the newest of several; NULL: there is none. Caller
 *  frees. */
char *local_checkpoints(const char *run_dir);
