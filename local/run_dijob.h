/*  run_dijob - what the files of a local run share that know DIJobs: their addresses and the replicas API. */
#pragma once
#include "k8s/dijob/plan.h"
#include "local/run.h"

static inline const dijob_t *run_dijob(const run_t *self)
{
    return self->seen;
}

/*  make_dijob.c: a pod that the replicas API was asked for. */
tt_status_t run_make_dijob(run_t *self, const dijob_pod_want_t *want);
/*  "<pod>.<namespace>:<port>", with gpu_port added; caller frees. */
char *run_url(const run_t *self, const dijob_pod_t *pod, int gpu_port);
