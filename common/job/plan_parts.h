/*  plan_parts - what the parts of the planner share; internal to common/job. An instance lives in one call of tt_plan. */
#pragma once
#include "common/base/backoff.h"
#include "common/job/plan.h"

/*  Name -> index; open addressing, names borrowed. */
typedef struct {
    const char **names;
    size_t *values;
    size_t room;
} plan_index_t;

typedef struct {
    const tt_rules_t *rules;
    const tt_seen_t *seen;
    const tt_plan_state_t *before;
    tt_plan_t *out;
    bool *going;    /* [replica_count] this plan deletes it                   */
    bool *replaced; /* [replica_count] another one, seen or planned, names it */
    plan_index_t names;
    size_t creates;
} plan_t;

/* ---- plan_act.c -------------------------------------------------------------------------------------------------------- */

void plan_open(
    plan_t *self, tt_plan_t *out, const tt_rules_t *rules, const tt_plan_state_t *state, const tt_seen_t *seen);
void plan_close(plan_t *self);
/*  An action with nothing but its kind. */
tt_action_t *plan_action(plan_t *self, tt_do_t what);
/*  One of a group, place and rank open; NULL: enough for this round. */
tt_action_t *plan_create(plan_t *self, size_t group);
/*  Once a replica; never one that is going already. */
void plan_delete(plan_t *self, size_t replica, int grace_s);
/*  Once it is time; till then it stays for reading. */
void plan_delete_after(plan_t *self, size_t replica, int64_t delay_s);
void plan_again(plan_t *self, int64_t seconds);
/*  By name; TT_PLAN_NONE. */
size_t plan_find(const plan_t *self, const char *name);
/*  Neither on its way out nor put there by this plan. */
bool plan_stays(const plan_t *self, size_t replica);
bool plan_failed(const plan_t *self, size_t replica); /* and stays */
void plan_stage(plan_t *self, tt_fact_t fact);
/*  May one of the group be made now? */
bool plan_may_create(const plan_t *self, size_t group);
bool plan_older(const tt_replica_t *a, const tt_replica_t *b);

/* ---- the rest ---------------------------------------------------------------------------------------------------------- */

/*  plan_decide.c: who decides, and what has been decided of it. */
void plan_find_first(plan_t *self);
void plan_decide(plan_t *self);
bool plan_done(const plan_t *self); /* all that decide are satisfied                          */
bool plan_code(plan_t *self);       /* somebody's exit code ended it: the job has failed, true */
/*  plan_number.c: a group of random identity. plan_ordinal.c: one of places, each for itself. plan_owned.c: one that
 *  belongs to another group's. */
void plan_number(plan_t *self, size_t group);
void plan_ordinal(plan_t *self, size_t group);
void plan_owned(plan_t *self, size_t group);
/*  plan_step.c: the groups that restart the job, together, one stage a round. */
void plan_step(plan_t *self);
bool plan_is_in_step(const plan_t *self);
/*  plan_service.c */
void plan_serve(plan_t *self);
