/*  plan - the whole of a plan: what is asked before any group is looked at, and the end of every job. */
#include "common/job/plan.h"
#include "common/job/plan_parts.h"

/* ---- the end ----------------------------------------------------------------------------------------------------------- */

static bool s_cleaned(const plan_t *self, const tt_replica_t *replica)
{
    return self->rules->clean == TT_CLEAN_ALL || (self->rules->clean == TT_CLEAN_RUNNING && replica->runs);
}

static void s_forget(plan_t *self)
{
    const int64_t ttl_s = self->rules->ttl_s, ended_s = self->before->ended_s;
    if (ttl_s < 0 || ended_s <= 0)
        return;
    const int64_t left_s = ended_s + ttl_s - self->seen->now_s;
    if (left_s > 0)
        plan_again(self, left_s);
    else
        plan_action(self, TT_DO_FORGET);
}

/*  Those who are left running may need the names of places still. */
static bool s_keeps_services(const plan_t *self)
{
    return self->rules->serve == TT_SERVE_PLACE && self->rules->clean == TT_CLEAN_NONE;
}

/*  The stage is final and has been written: what is left goes, as far as the rules say. */
static void s_clean(plan_t *self)
{
    for (size_t i = 0; i < self->seen->replica_count; i++)
        if (s_cleaned(self, &self->seen->replicas[i]))
            plan_delete(self, i, self->rules->clean_gently ? -1 : 0);
    for (size_t i = 0; i < self->seen->service_count; i++)
        if (!self->seen->services[i].deleting && !s_keeps_services(self))
            plan_action(self, TT_DO_UNSERVE)->service = i;
    s_forget(self);
}

/* ---- watching ---------------------------------------------------------------------------------------------------------- */

/*  Nobody is there, or what is there is what was left of those that are made anew: it says nothing of how the job ends. */
static bool s_is_between_lives(const plan_t *self)
{
    const tt_stage_t stage = self->out->state.stage;
    return self->seen->replica_count == 0 || stage == TT_STAGE_RESTARTING || stage == TT_STAGE_RESHAPING;
}

/*  Whose rules say nothing that could be kept: the stage tells how its replicas are, once nobody works any more. */
static void s_watch(plan_t *self)
{
    size_t going_on = 0, failed = 0;
    plan_find_first(self);
    if (self->out->first != TT_PLAN_NONE) {
        plan_decide(self);
        return;
    }
    if (s_is_between_lives(self))
        return;
    for (size_t i = 0; i < self->seen->replica_count; i++) {
        const tt_replica_t *replica = &self->seen->replicas[i];
        going_on += replica->deleting || tt_replica_alive(replica);
        failed += plan_failed(self, i);
    }
    if (going_on == 0)
        plan_stage(self, (tt_fact_t){failed ? TT_STAGE_FAILED : TT_STAGE_SUCCEEDED, TT_WHY_NOBODY_LEFT, TT_PLAN_NONE,
                             failed, self->seen->replica_count});
}

/* ---- what stands above the groups ------------------------------------------------------------------------------------------ */

/*  What ended well stays: it needs not be done again; where that was all of it the job is done. Nobody decides while it
 *  stands still, and the next who does is none that was made anew: that is no restart. */
static void s_suspend(plan_t *self)
{
    if (plan_done(self)) {
        plan_stage(self, (tt_fact_t){TT_STAGE_SUCCEEDED, TT_WHY_RULES, self->out->first, 0, 0});
        return;
    }
    for (size_t i = 0; i < self->seen->replica_count; i++)
        if (self->seen->replicas[i].state != TT_REPLICA_SUCCEEDED)
            plan_delete(self, i, -1);
    plan_stage(self, (tt_fact_t){TT_STAGE_SUSPENDED, TT_WHY_RULES, TT_PLAN_NONE, 0, 0});
    self->out->state.started_s = 0; /* its deadline begins anew with it */
    self->out->state.first = "";
    if (self->rules->serve == TT_SERVE_REPLICA)
        plan_serve(self);
}

/*  True: it has run for too long. */
static bool s_is_late(plan_t *self)
{
    const int64_t deadline_s = self->rules->deadline_s, started_s = self->before->started_s;
    if (deadline_s < 0 || started_s <= 0)
        return false;
    const int64_t left_s = started_s + deadline_s - self->seen->now_s;
    if (left_s > 0) {
        plan_again(self, left_s);
        return false;
    }
    plan_stage(self, (tt_fact_t){TT_STAGE_FAILED, TT_WHY_DEADLINE, TT_PLAN_NONE, 0, 0});
    return true;
}

static void s_groups(plan_t *self)
{
    for (size_t i = 0; i < self->rules->group_count; i++) {
        const tt_group_t *group = &self->rules->groups[i];
        if (group->on_failure == TT_FAILURE_RESTART_JOB)
            continue; /* plan_step has them all */
        if (group->owner != TT_GROUP_NONE)
            plan_owned(self, i);
        else if (group->identity == TT_ID_ORDINAL)
            plan_ordinal(self, i);
        else
            plan_number(self, i);
    }
}

/*  Of no group: the rules had one before. */
static void s_strays(plan_t *self)
{
    for (size_t i = 0; i < self->seen->replica_count; i++)
        if (self->seen->replicas[i].group >= self->rules->group_count)
            plan_delete(self, i, -1);
}

static void s_replicas(plan_t *self)
{
    s_groups(self);
    if (plan_is_in_step(self))
        plan_step(self);
    else
        s_strays(self);
}

static void s_begin(plan_t *self)
{
    const tt_stage_t stage = self->out->state.stage;
    if (!plan_is_in_step(self) && (stage == TT_STAGE_NEW || stage == TT_STAGE_SUSPENDED))
        plan_stage(self, (tt_fact_t){TT_STAGE_PENDING, TT_WHY_RULES, TT_PLAN_NONE, 0, 0});
}

static void s_go_on(plan_t *self)
{
    plan_find_first(self);
    if (self->rules->suspend) {
        s_suspend(self);
        return;
    }
    if (!plan_done(self) && s_is_late(self)) /* who is done in time may be looked at late */
        return;
    s_begin(self);
    plan_decide(self);
    if (tt_stage_final(self->out->state.stage))
        return; /* cleaned once the stage is written: a lost answer must not make the job run again */
    if (!self->rules->hold)
        s_replicas(self);
    if (!tt_stage_final(self->out->state.stage) && (!self->rules->hold || self->rules->serve == TT_SERVE_REPLICA))
        plan_serve(self);
}

void tt_plan(tt_plan_t *out, const tt_rules_t *rules, const tt_plan_state_t *state, const tt_seen_t *seen)
{
    plan_t plan;
    plan_open(&plan, out, rules, state, seen);
    if (tt_stage_final(state->stage))
        s_clean(&plan);
    else if (rules->watch_only)
        s_watch(&plan);
    else
        s_go_on(&plan);
    plan_close(&plan);
}
