/*  planner - what the parts of a plan share: the view, what has been decided so far, and the status that is being made.
 *
 *  Internal to k8s/dijob. Threads: an instance lives in one call of dijob_plan. */
#pragma once
#include "common/base/dict.h"
#include "k8s/front/draft.h"
#include "k8s/front/object.h"
#include "k8s/dijob/plan.h"

/*  status.reason and the condition's, as batch/v1's Job has it. */
#define PLAN_LATE "DeadlineExceeded"
/*  status.reason and the condition of one that waits in a queue. */
#define PLAN_WAITS "AwaitingAdmission"

typedef struct {
    draft_t draft;
    const front_view_t *view;
    const dijob_t *job;
    const dijob_pod_t *const *pods;         /* view->pods     */
    const dijob_service_t *const *services; /* view->services */
    dijob_phase_t phase;                    /* as decided so far                                  */
    bool ended;                             /* it was final before                                */
    const char *reason;                     /* status.reason, in one word; borrowed; NULL = all is well   */
    bool *going;                            /* [pod_count] this plan deletes it                   */
    bool *replaced;                         /* [pod_count] another pod, seen or planned, names it */
    tt_dict_t names;                        /* of pods -> where in `pods` */
    uint64_t random;
    size_t creates;
} planner_t;

/* ---- planner.c: what every shape needs --------------------------------------------------------------------------------- */

void planner_open(planner_t *self, front_plan_t *out, const front_view_t *view);
/*  Frees all but the plan, and puts the new status into it where it differs. */
void planner_close(planner_t *self);

/*  `want` is copied with its strings. */
void planner_create(planner_t *self, const dijob_pod_want_t *want);
/*  FRONT_NEEDS_* of a pod of that role. */
int planner_needs(const dijob_t *job, dijob_role_t role);
/*  A name for a new pod of a role that no pod has. Caller frees. */
char *planner_name(planner_t *self, dijob_role_t role);
/*  The same for one in the place of `old`: always the same, so that asking again after a lost answer makes no second. */
char *planner_name_for(planner_t *self, dijob_role_t role, const dijob_pod_t *old);
/*  Once a pod; never one that is already going. */
void planner_delete(planner_t *self, size_t pod, int grace_s);
/*  The secret of a job of ours comes before its pods, which mount it. */
void planner_curve(planner_t *self);
/*  Index of a pod by name; pod_count = none. */
size_t planner_find(const planner_t *self, const char *name);
/*  Neither on its way out nor put there by this plan. */
bool planner_stays(const planner_t *self, size_t pod);

/*  A phase with its condition and, with type "Normal" or "Warning", its event. The same phase again: its condition, were it gone. */
void planner_phase(planner_t *self, dijob_phase_t phase, const char *reason, const char *type, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
/*  A condition that is not a phase. Returns whether it changed. */
bool planner_condition(planner_t *self, const char *type, bool on, const char *reason, const char *message);

void planner_set(planner_t *self, const char *key, json_t *value); /* takes value; NULL removes */
const char *planner_text(const planner_t *self, const char *key);  /* "" = absent               */

/* ---- the parts --------------------------------------------------------------------------------------------------------- */

/*  plan_trouble.c: how a pod ended, or what keeps it from running, in words. Caller frees. */
char *plan_words(const planner_t *self, const dijob_pod_t *pod);
/*  Condition PodTrouble; before anything is planned. */
void plan_trouble(planner_t *self);
/*  Conditions TemplateRefused, QuotaExceeded and PodForbidden; after it. */
void plan_refusals(planner_t *self);
/*  plan_queue.c: is it to have no pods for now: it waits in a queue? */
bool plan_waits(const planner_t *self);
/*  Conditions AwaitingAdmission and AdmissionExceeded. */
void plan_queue(planner_t *self);
/*  counters.c: status.replicaStatus and the replica counts of the role shape; status.taskStatus etc. of the other. */
void plan_count_roles(planner_t *self);
void plan_count_tasks(planner_t *self);

/* ---- status.c ---------------------------------------------------------------------------------------------------------- */

/*  When a pod ended: its main container's end, else its creation. */
int64_t plan_ended_s(const dijob_pod_t *pod);
