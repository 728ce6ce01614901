/*  operator_bench - an operator of the namespace "n" and the small API server of ../api/watch_server.py. Nothing is done by
 *  itself: the queue stands (a test of rounds lets it go), so that a test calls what it is about. */
#pragma once
#include "k8s/dijob/plan.h"
#include "k8s/operator/parts.h"
#include "tests/k8s/api/watch_server.h"
#include "tests/test.h"

#define JOBS_PATH "/apis/" DIJOB_GROUP "/v1alpha1"
#define PODS      "/api/v1/namespaces/n/pods"
#define SERVICES  "/api/v1/namespaces/n/services"

typedef struct {
    world_t world;    /* its client is the test's own */
    char file[64];    /* kubeconfig */
    operator_t *op;   /* NULL = none */
    tt_clock_t clock; /* bench_setup_clock: the operator's, stands at BENCH_DAY_S till it is turned */
    bool elect;       /* bench_open_operator: it leads by a lease of the namespace "n"              */
} bench_t;

#define BENCH_DAY_S INT64_C(1800000000)

/*  DIJobs, with the pods and services of their roles. */
static inline kind_t *bench_kind(const operator_t *op)
{
    return cache_kind(op->cache, &dijob_front);
}

static inline kube_store_t *bench_pods(const operator_t *op)
{
    return bench_kind(op)->shapes[0].pods;
}

static inline kube_store_t *bench_services(const operator_t *op)
{
    return bench_kind(op)->shapes[0].services;
}

/*  The job "j"; NULL = it is not known. */
static inline job_t *bench_job(const operator_t *op)
{
    return cache_job(bench_kind(op), "n", "j");
}

/*  The same as its front end keeps it. */
static inline dijob_t *bench_dijob(const operator_t *op)
{
    const job_t *job = bench_job(op);
    return job ? job->own : NULL;
}

/*  For cmocka: *state is a bench_t that is synced, with nothing in the namespace; or the server alone, for bench_open_operator
 *  and bench_sync. One at a time; world_end when the last is gone. */
int bench_setup(void **state);
int bench_setup_server(void **state);
/*  As bench_setup, by bench_t's clock. */
int bench_setup_clock(void **state);
int bench_teardown(void **state);
/*  Its replicas API and its probes are at these addresses, "" = none. */
void bench_open_operator(bench_t *self, const char *listen, const char *probes);
/*  Until everything is known. */
void bench_sync(bench_t *self);
/*  The operator runs until done says so; fails the test after 60 s. */
void bench_until(bench_t *self, bool (*done)(void *ctx), void *ctx);
/*  One request to a server of the operator's; the code, and the body for the caller to free. */
int bench_ask(
    bench_t *self, const tt_server_t *server, const char *method, const char *path, const char *body, char **text);
/*  Make an object at the server; ' for " in its text. */
void bench_make(bench_t *self, const char *path, const char *text);
/*  Is it there? */
bool bench_has(bench_t *self, const char *path, const char *name);
/*  The next request of that kind ("write", "list"; watch_server.py says what there is) meets this. What the operator still
 *  had to tell is told before. */
void bench_fault(bench_t *self, const char *at, const char *what);
/*  The next write of a thing whose name has `part` in it. */
void bench_fault_of(bench_t *self, const char *part, const char *what);
