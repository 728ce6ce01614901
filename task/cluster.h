/*  cluster - jobs as Jobs (batch/v1) of a Kubernetes: a substrate of its own.
 *
 *  An attempt is one Job, whose name says the registry, the job and the attempt: asking for it twice makes one, so an engine that was killed
 *  asks again, whatever it had come to. Jobs go on when their engine ends. One that is stopped is not begun any more, is deleted wherever it
 *  is seen, and has ended (LOST) when a list shows that it is gone. A volume claim is mounted at /volume, and has to hold the directory in
 *  which the tasks stand: what a job's shell leaves there, we find here.
 *
 *  Threads: one. Calls to the API server block, ten seconds at most; when one has had no answer, no other is made for a
 *  second. */
#pragma once
#include "controller/substrate.h"
#include "k8s/api/kubeconfig.h"

#define CLUSTER_VOLUME "/volume"

enum { CLUSTER_DEADLINE_S = 5 * 24 * 3600, CLUSTER_TTL_S = 3600, CLUSTER_TTL_MIN_S = 60 };

/*  What is said of every Job. */
typedef struct {
    const char *queue;             /* of Kueue: a Job is suspended till it is admitted; NULL = of none               */
    const char *requests, *limits; /* "cpu=1,memory=4Gi"; NULL = a processor, none                                   */
    int64_t deadline_s;            /* it has failed when it has run so long                                          */
    int64_t ttl_s;                 /* it is deleted so long after its end, if no engine has done so, but not before  */
} cluster_rules_t;                 /*     one could see it: CLUSTER_TTL_MIN_S                                        */

typedef struct {
    kube_config_opts_t kube;
    cluster_rules_t rules;
    const char *claim;    /* name of the PersistentVolumeClaim                */
    const char *registry; /* a word of [a-z0-9] that no other registry has    */
} cluster_opts_t;

typedef struct {
    int64_t job;
    uint32_t attempt;
    const char *task, *image;
    const tt_template_t *template_; /* command, env, working_dir */
    bool gpu;                       /* limit and request nvidia.com/gpu: 1 */
} cluster_job_t;

/*  opts is copied. TT_USAGE: the rules; TT_NOT_FOUND, TT_CONFIG: the kubeconfig; TT_UNAVAILABLE, TT_DENIED: the API server; TT_NOT_FOUND: the claim. */
tt_status_t cluster_new(tt_substrate_t **self_p, const cluster_opts_t *opts);
/*  As start of the substrate, whose own is not to be used. Its event comes by poll: FAILED when the Job has, LOST when somebody has
 *  deleted it. TT_INVALID: there is something wrong with it. Where the server does not answer, or has other reasons to refuse it (credentials, a
 *  quota), it is asked again by poll. */
tt_status_t cluster_start(tt_substrate_t *self, const cluster_job_t *job, tt_replica_id_t *out);
/*  Look after an attempt that was started by an engine before us, and is not to be begun where it is not. */
void cluster_adopt(tt_substrate_t *self, int64_t job, uint32_t attempt, tt_replica_id_t *out);
