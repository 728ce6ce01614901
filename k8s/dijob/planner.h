/*  planner - what the parts of a plan share: the view, what has been decided so far, and the status that is being made.
 *
 *  Internal to k8s/dijob. Threads: an instance lives in one call of dijob_plan. */
#pragma once
#include "k8s/dijob/plan.h"

enum {
    PLAN_CREATES_MAX = 500, /* pods a round: the next round makes the rest          */
    PLAN_FAILED_KEPT = 3,   /* newest failed pods of a role that are kept for reading */
    PLAN_BACKOFF_MAX_S = 60,
    PLAN_RESET_S = 600,  /* who lived so long begins its back-off anew */
    PLAN_SUCCESS_S = 10, /* first back-off of a replica that ended well though it is still wanted */
    PLAN_REFUSED_S = 5,  /* tasks: a pod that its node refused waits so long                */
};

/*  Name -> index; open addressing, names borrowed. */
typedef struct {
    const char **names;
    uint32_t *values;
    size_t room;
} plan_names_t;

typedef struct {
    const dijob_view_t *view;
    const dijob_t *job;
    dijob_plan_t *out;
    json_t *status;      /* of the job, being changed                          */
    dijob_phase_t phase; /* as decided so far                                  */
    bool ended;          /* it was final before                                */
    const char *reason;  /* status.reason, in one word; borrowed; NULL = all is well   */
    bool *going;         /* [pod_count] this plan deletes it                   */
    bool *replaced;      /* [pod_count] another pod, seen or planned, names it */
    plan_names_t pods, services;
    uint64_t random;
    size_t creates;
} planner_t;

/* ---- planner.c: what every shape needs --------------------------------------------------------------------------------- */

void planner_open(planner_t *self, dijob_plan_t *out, const dijob_view_t *view);
/*  Frees all but the plan, and puts the new status into it where it differs. */
void planner_close(planner_t *self);

/*  `want` is copied with its strings; false: enough for this round. */
bool planner_create(planner_t *self, const dijob_pod_want_t *want);
/*  A name for a new pod of a role that no pod has. Caller frees. */
char *planner_name(planner_t *self, dijob_role_t role);
/*  The same for one in the place of `old`: always the same, so that asking again after a lost answer makes no second. */
char *planner_name_for(planner_t *self, dijob_role_t role, const dijob_pod_t *old);
/*  The server refused such a pod; task: -1 = no task's. */
bool planner_refused(const planner_t *self, dijob_role_t role, int task);
/*  Once a pod; never one that is already going. */
void planner_delete(planner_t *self, size_t pod, int grace_s);
void planner_service(planner_t *self, dijob_do_t what, const char *name);
/*  The secret of a job of ours comes before its pods, which mount it. False: wait for it. */
bool planner_curve(planner_t *self);
void planner_event(planner_t *self, const char *type, const char *reason, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/*  Look again in so many seconds, or earlier. */
void planner_again(planner_t *self, int64_t seconds);
/*  Index of a pod by name; pod_count = none. */
size_t planner_find(const planner_t *self, const char *name);
bool planner_has_service(const planner_t *self, const char *name);
/*  Can a service have it (a DNS label of RFC 1035)? Pods may have names that no service can have. */
bool planner_may_serve(const char *name);
/*  Neither on its way out nor put there by this plan. */
bool planner_stays(const planner_t *self, size_t pod);

/*  A phase with its condition and, with type "Normal" or "Warning", its event. The same phase again: its condition, were it gone. */
void planner_phase(planner_t *self, dijob_phase_t phase, const char *reason, const char *type, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
/*  A condition that is not a phase. Returns whether it changed. */
bool planner_condition(planner_t *self, const char *type, bool on, const char *reason, const char *message);

void planner_set(planner_t *self, const char *key, json_t *value); /* takes value; NULL removes */
int64_t planner_int(const planner_t *self, const char *key);       /* of the status; 0 = absent, never below */
const char *planner_text(const planner_t *self, const char *key);  /* "" = absent               */

/* ---- the shapes -------------------------------------------------------------------------------------------------------- */

void plan_roles(planner_t *self);
void plan_tasks(planner_t *self);
/*  plan_left.c: a job with pods whose spec is not one of ours: nothing is made or removed, only the phase follows. */
void plan_left(planner_t *self);
/*  plan_roles.c: the coordinator's pod as the phase has it; pod_count = there is none. */
size_t plan_coordinator(planner_t *self);

/*  plan_trouble.c: a pod of ours ended in a way that can only come again: the job has failed (true). */
bool plan_final(planner_t *self);
/*  How a pod ended, as an event. */
void plan_say_end(planner_t *self, const dijob_pod_t *pod);
/*  Condition PodTrouble; before anything is planned. */
void plan_trouble(planner_t *self);
/*  Conditions TemplateRefused, QuotaExceeded and PodForbidden; after it. */
void plan_refusals(planner_t *self);
/*  plan_replicas.c: the pods of one role beside the coordinator. `may_create`: the coordinator is there. */
void plan_replicas(planner_t *self, dijob_role_t role, bool may_create);
int64_t plan_want(const dijob_t *job, dijob_role_t role); /* pods of a role; -1 = as they are */
/*  plan_ddp.c: ddp learners go with their aggregator, and follow it to the one that takes its place. */
void plan_ddp(planner_t *self, bool may_create);
/*  counters.c: status.replicaStatus and the replica counts of the role shape; status.taskStatus etc. of the other. */
void plan_count_roles(planner_t *self);
void plan_count_tasks(planner_t *self);

/* ---- status.c ---------------------------------------------------------------------------------------------------------- */

/*  Unix time -> "2026-11-21T13:44:31Z". */
json_t *plan_time(int64_t unix_s);
/*  NULL = none. Borrowed. */
json_t *plan_condition(const json_t *conditions, const char *type);
/*  Has a condition this text in a member? NULL: no. */
bool plan_is(const json_t *condition, const char *key, const char *text);
/*  When a pod ended: its main container's end, else its creation. */
int64_t plan_ended_s(const dijob_pod_t *pod);
/*  victims.c: seconds from then till another one may take its place, and those that are left of them (0 = now). */
int64_t plan_delay_s(const dijob_pod_t *pod);
int64_t plan_wait_s(const dijob_pod_t *pod, int64_t delay_s, int64_t now_s);
