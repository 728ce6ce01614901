/*  plan - a TFJob seen -> what is to be done, and its new status; pure, as every front end's.
 *
 *  Decided by the one planner (common/job/plan.h): rules.c says the job in its words, status.c words what it decided, plan.c does
 *  it to pods and services. Internal to k8s/tfjob. Threads: an instance lives in one call of tfjob_plan. */
#pragma once
#include "common/job/plan.h"
#include "k8s/front/draft.h"
#include "k8s/tfjob/tfjob.h"

typedef struct {
    draft_t draft;
    const front_view_t *view;
    const tfjob_t *job;
    const tfjob_pod_t *const *pods; /* view->pods          */
    tfjob_phase_t phase;            /* as decided so far         */
} planner_t;

/*  Kubeflow's words of these two ends, which share one reason: by them they are told apart again (front.c). */
#define PLAN_LATE  "it was active longer than specified deadline"
#define PLAN_LIMIT "it has reached the specified backoff limit"

/* ---- plan.c ------------------------------------------------------------------------------------------------------------- */

tt_status_t tfjob_plan(front_plan_t *out, const front_view_t *view);

/* ---- rules.c ------------------------------------------------------------------------------------------------------------ */

typedef struct {
    tt_rules_t rules;
    tt_group_t groups[TFJOB_TYPES]; /* a type each; one that is not there wants nobody */
    tt_replica_t *replicas;
    tt_service_t *services;
    tt_seen_t seen;
    tt_plan_state_t state;
} rules_t;

/*  Borrows from the planner's view and status. */
void tfjob_rules_open(rules_t *self, const planner_t *planner);
void tfjob_rules_close(rules_t *self);

/* ---- status.c ----------------------------------------------------------------------------------------------------------- */

/*  The job cannot be run: Failed, reason InvalidTFJobSpec. */
void tfjob_status_invalid(planner_t *self);
/*  Of one that has pods: somebody else's operator took it, or it was edited. Nothing is done but to say so. */
void tfjob_status_refused(planner_t *self);
/*  What was decided, as conditions, times and counts; the whole of it where the job had not ended before. */
void tfjob_status_facts(planner_t *self, const rules_t *rules, const tt_plan_t *plan);
/*  Conditions TemplateRefused and PodForbidden. */
void tfjob_status_refusals(planner_t *self);
/*  status.replicaStatuses: of a job that had ended only who is active changes. */
void tfjob_status_count(planner_t *self, bool ended);

/* ---- status_old.c ------------------------------------------------------------------------------------------------------- */

/*  The same of a job of v1alpha1, and what else a status had then. */
void tfjob_status_old(planner_t *self, bool ended);
