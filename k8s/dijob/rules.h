/*  rules - a DIJob, its pods and its services in the words of the one job model (common/job/plan.h).
 *
 *  Internal to k8s/dijob. What is made here is borrowed from the planner's view and status. */
#pragma once
#include "common/job/plan.h"
#include "k8s/dijob/planner.h"

typedef struct {
    tt_rules_t rules;
    tt_group_t *groups;
    tt_replica_t *replicas;
    tt_service_t *services;
    tt_seen_t seen;
    tt_plan_state_t state;
    char *service; /* name of the job's one service (tasks) */
} rules_t;

void rules_open(rules_t *self, const planner_t *planner);
void rules_close(rules_t *self);
/*  How many of a role the spec asks for; of one that cannot be made, or for which somebody asks over HTTP, none. */
int64_t rules_wanted(const dijob_t *job, dijob_role_t role);
/*  So many of them are enough to begin: its minReplicas, else all. */
int64_t rules_least(const dijob_t *job, dijob_role_t role);
/*  A pod of the roles' shape; its group is its role. */
tt_replica_t rules_replica(const dijob_pod_t *pod);
/*  Is the job one of tasks that can be read? A broken spec is only watched, whatever its shape. */
bool rules_by_tasks(const dijob_t *job);

/*  facts.c: what was decided, as phases, conditions and counts of the status. */
void rules_facts(planner_t *self, const tt_plan_t *plan);
/*  apply.c: what is to be done, as actions on pods and services. */
void rules_actions(planner_t *self, const rules_t *rules, const tt_plan_t *plan);
