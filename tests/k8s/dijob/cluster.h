/*  cluster - a job and its pods in memory: what a plan says is done, what a kubelet would do the test does. */
#pragma once
#include "k8s/dijob/plan.h"
#include "tests/test.h"

enum { CLUSTER_PODS = 512 };

typedef struct {
    dijob_t job;
    dijob_pod_t *pods[CLUSTER_PODS];
    size_t pod_count;
    dijob_service_t *services[CLUSTER_PODS];
    size_t service_count;
    bool curve;
    front_admission_t admission;
    bool gone; /* the job itself was deleted */
    int64_t now_s;
    uint64_t random;
    const char *refused_reason; /* NULL: "Invalid" */
    const char *refused;        /* the server's words about pods of refused_role (task 0); NULL = it takes all */
    dijob_role_t refused_role;
    unsigned uids;      /* given out so far                                                */
    size_t writes;      /* of the status                                                   */
    char events[65536]; /* "Normal DIJobCreated DIJob x created\n" ...                     */
    size_t event_size;
    unsigned lose;   /* of 100 actions are lost on the way                              */
    unsigned repeat; /* of 100 pods made are not seen to be made until cluster_watch    */
    dijob_pod_t *unseen[CLUSTER_PODS];
    size_t unseen_count;
    uint32_t (*draw)(void *ctx);
    void *ctx;
} cluster_t;

/*  A job of roles: coordinator, collector, learner have templates; no counts. */
void cluster_roles(cluster_t *self, const char *name);
/*  A job of tasks: "collector:2 learner:1". */
void cluster_tasks(cluster_t *self, const char *name, const char *tasks);
void cluster_set_tasks(cluster_t *self, const char *tasks);
void cluster_free(cluster_t *self);
int cluster_teardown(void **state); /* of cmocka: the state is a cluster */

dijob_pod_t *cluster_add(cluster_t *self, dijob_role_t role, const char *name);
void cluster_add_service(cluster_t *self, const char *name);
void cluster_remove_service(cluster_t *self, size_t at);
void cluster_remove(cluster_t *self, dijob_pod_t *pod);
dijob_pod_t *cluster_get(const cluster_t *self, const char *name);            /* NULL */
dijob_pod_t *cluster_nth(const cluster_t *self, dijob_role_t role, size_t n); /* NULL */
/*  What was made and not seen is seen. */
void cluster_watch(cluster_t *self);

void cluster_plan(const cluster_t *self, front_plan_t *out);
void cluster_do(cluster_t *self, const front_plan_t *plan);
/*  Plan and do. False: there was nothing to do. */
bool cluster_round(cluster_t *self);
/*  Rounds, and the time that is waited for, till there is nothing to do; fails after `most` of them. */
void cluster_settle(cluster_t *self, int most);

/*  All that are pending run, and it settles within `most` rounds. */
void cluster_run_all(cluster_t *self, int most);
void pod_run(cluster_t *self, dijob_pod_t *pod);
void pod_end(cluster_t *self, dijob_pod_t *pod, int exit_code);

/*  "Created", and a member of the status as text; "" = absent. The latter is static. */
const char *cluster_phase(const cluster_t *self);
const char *cluster_status(const cluster_t *self, const char *path);
/*  "True DIJobRunning message", "" = absent. Static. */
const char *cluster_condition(const cluster_t *self, const char *type);
size_t cluster_count(const cluster_t *self, dijob_role_t role);
size_t cluster_alive(const cluster_t *self, dijob_role_t role);
