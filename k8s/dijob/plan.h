/*  plan - what is to be done about a job, as a pure function of what is seen: no I/O, no clock of its own.
 *
 *  The operator looks (dijob_view_t), dijob_plan decides (dijob_plan_t), the operator does, and looks again. Everything
 *  that is decided, is decided here: counts, replacement, victims, phases, conditions, counters, cleanup. Rules:
 *  docs/internals/k8s.md. Planning twice on the same view gives the same plan, and a job in its wanted state an empty one
 *  (no writes in steady state). */
#pragma once
#include "k8s/dijob/build.h"
#include "k8s/front/front.h"

typedef struct {
    const dijob_t *job;
    const dijob_pod_t *const *pods; /* of this job's uid, any order                                 */
    size_t pod_count;
    const dijob_service_t *const *services;
    size_t service_count;
    bool curve;      /* the CURVE secret was made, or found, by this process (creating again is harmless) */
    int64_t now_s;   /* Unix time, for conditions and back-off                            */
    uint64_t random; /* for names; the same number, the same names                        */
    const front_refusal_t *refusals; /* one a role, or a task, at most (dijob_group): others are asked for */
    size_t refusal_count;
    front_admission_t admission; /* by Kueue; all zero: nothing holds it back */
} dijob_view_t;

typedef enum {
    DIJOB_DO_CREATE_POD,
    DIJOB_DO_DELETE_POD,
    DIJOB_DO_CREATE_SERVICE, /* of pod `name`; NULL = the job's one service (v2alpha1) */
    DIJOB_DO_DELETE_SERVICE,
    DIJOB_DO_CREATE_CURVE,
    DIJOB_DO_DELETE_JOB, /* its time after the end is over: the object, and with it all that it owns */
    DIJOB_DO_EVENT
} dijob_do_t;

typedef struct {
    dijob_do_t what;
    char *name;                /* of the pod or service; owned                                           */
    dijob_pod_want_t pod;      /* CREATE_POD: its strings are owned by the plan                          */
    char *asked;               /* what pod.resources points into; owned                                  */
    int grace_s;               /* DELETE_POD: -1 = the pod's own                                         */
    const char *type, *reason; /* EVENT: "Normal", "DIJobCreated"                                     */
    char *message;             /* EVENT; owned                                                           */
} dijob_action_t;

typedef struct {
    dijob_action_t *actions; /* in the order of importance: pods, services, the rest */
    size_t count, room;
    char *status; /* the whole new status object, JSON as kube_dump; NULL = as it is. Members that are not in it are to
                        go: a JSON patch that replaces /status, or a merge patch with nulls                    */
    int64_t again_s; /* look again after so many seconds though nothing changed; -1 = no */
} dijob_plan_t;

/*  `out` needs no preparation and is to be cleared. Events are about phases; those about single writes (SuccessfulCreate
 *  and so on) are of who does them. */
tt_status_t dijob_plan(dijob_plan_t *out, const dijob_view_t *view);
void dijob_plan_clear(dijob_plan_t *self);

/*  The n pods of a role that go first when fewer are wanted: unscheduled, not ready, newest, then by name; never one that is
 *  already going. Writes borrowed pointers; returns how many. Also what the replicas API's DELETE uses. */
size_t dijob_victims(
    const dijob_pod_t *const *pods, size_t pod_count, dijob_role_t role, size_t n, const dijob_pod_t **out);
/*  Of how many failed ones in a row the next takes the place: tt_plan_failures, without a clock. */
int dijob_failures(const dijob_pod_t *pod);
/*  Pods of a role that count as there: not deleting, not finished. Also what the replicas API's GET shows. */
bool dijob_pod_alive(const dijob_pod_t *pod);

/*  What a ddp learner is that takes the place of `pod` under the name `name`: its group's ranks, its aggregator. Strings are
 *  borrowed from the pods and `name`. False: it has no aggregator that is there. */
bool dijob_ddp_want(
    dijob_pod_want_t *want, const dijob_pod_t *const *pods, size_t pod_count, const dijob_pod_t *pod, const char *name);

/* ---- status.c: counters, conditions ------------------------------------------------------------------------------------ */

/*  How a pod counts: 'a'ctive, 's'ucceeded, 'f'ailed, 0 = nowhere. */
char dijob_pod_counts(const dijob_pod_t *pod);
/*  status.conditions after one more (docs/internals/k8s.md has the rule of each shape). `conditions` is changed in place. */
void dijob_condition_set(
    json_t *conditions, bool tasks_shape, const char *type, const char *reason, const char *message, int64_t now_s);
