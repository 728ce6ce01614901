/*  Jobs of every combination of identity, failure and completion rule in a world where anything happens at any time, from seeds. What
 *  must hold holds after every step; once it is quiet the job is as its rules say, and when its replicas end well it ends so. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "tests/draws.h"
#include "tests/job/world.h"

#ifdef __SANITIZE_ADDRESS__ /* slower by far */
enum { SEEDS = 8, STEPS = 120 };
#else
enum { SEEDS = 36, STEPS = 120 };
#endif

enum { FINAL_CODE = 78, CROWD = 40 }; /* CROWD: so many are there, and nobody asks for more */

typedef struct {
    world_t w;
    draws_t draws;
    tt_code_set_t listed;
    tt_stage_t final; /* NEW: not yet */
} sim_t;

static uint32_t s_below(sim_t *self, uint32_t n)
{
    return draws_below(&self->draws, n);
}

/* ---- what happens --------------------------------------------------------------------------------------------------------- */

static void s_replica_event(sim_t *self)
{
    world_t *w = &self->w;
    if (w->replica_count == 0)
        return;
    tt_replica_t *replica = &w->replicas[s_below(self, (uint32_t)w->replica_count)];
    const uint32_t what = s_below(self, 100);
    const bool alive = tt_replica_alive(replica);
    if (what < 50 && alive)
        world_run(w, replica);
    else if (what < 55 && alive)
        replica->ready = false;
    else if (what < 64 && alive && replica->state == TT_REPLICA_RUNNING)
        world_end(w, replica, (const int[]){0, 1, 137, 139, FINAL_CODE}[s_below(self, 5)]);
    else if (what < 68 && alive) { /* its host goes away */
        world_end(w, replica, 137);
        replica->disrupted = replica->lost = true;
    } else if (what < 70 && replica->state == TT_REPLICA_PENDING && alive) {
        world_end(w, replica, 255);
        replica->refused = true;
    } else if (what < 72 && alive && replica->state == TT_REPLICA_RUNNING) {
        replica->own_restarts++;
        replica->waits = s_below(self, 2);
        replica->exit_code = replica->waits ? (s_below(self, 4) ? 1 : FINAL_CODE) : -1;
        replica->ready &= !replica->waits;
    } else if (what < 76)
        replica->deleting = true;
    else if (what < 80 || (what < 95 && replica->deleting))
        world_remove(w, replica);
}

/*  A number that its other rules allow. */
static void s_scale(sim_t *self, tt_group_t *group)
{
    const int64_t want = 1 + (int64_t)s_below(self, 4);
    if (group->want < 0)
        return;
    group->want = want > group->deciding ? want : group->deciding + 1;
    group->min = group->min < group->want ? group->min : group->want;
}

/*  Somebody asks for one of a group without a number, or for one that belongs to another's. */
static void s_ask(sim_t *self)
{
    world_t *w = &self->w;
    char name[32];
    snprintf(name, sizeof name, "asked-%u", w->uids);
    for (size_t g = 2; g < w->rules.group_count && w->replica_count < CROWD; g++) {
        const tt_group_t *group = &w->groups[g];
        const tt_replica_t *owner = NULL;
        for (size_t i = 0; i < w->replica_count; i++)
            if (w->replicas[i].group == (size_t)group->owner && tt_replica_alive(&w->replicas[i]))
                owner = &w->replicas[i];
        if (s_below(self, 2) || (group->owner != TT_GROUP_NONE && !owner))
            continue;
        char *whose = owner ? tt_strdup(owner->name) : NULL;
        tt_replica_t *replica = world_add(w, g, name, -1);
        replica->owner = whose;
        replica->weight = 1 + (int32_t)s_below(self, 3);
        replica->leads = whose && s_below(self, 3) == 0;
        return;
    }
}

static void s_rule_event(sim_t *self)
{
    world_t *w = &self->w;
    const uint32_t what = s_below(self, 4);
    if (what == 0)
        w->rules.hold = s_below(self, 3) == 0;
    else if (what == 1)
        w->rules.watch_only = s_below(self, 6) == 0;
    else
        s_ask(self);
}

static void s_other_event(sim_t *self)
{
    world_t *w = &self->w;
    const uint32_t what = s_below(self, 10);
    tt_group_t *group = &w->groups[s_below(self, (uint32_t)w->rules.group_count)];
    if (what < 3)
        w->now_s += s_below(self, 30);
    else if (what == 3)
        s_scale(self, group);
    else if (what == 4)
        group->blocked = s_below(self, 4) == 0;
    else if (what == 5)
        w->rules.suspend = s_below(self, 3) == 0;
    else if (what == 6)
        w->rules.deadline_s = s_below(self, 8) == 0 ? (int64_t)s_below(self, 600) : -1;
    else if (what >= 8)
        s_rule_event(self);
    else if (w->service_count > 0)
        world_unserve(w, s_below(self, (uint32_t)w->service_count));
}

/* ---- what must hold -------------------------------------------------------------------------------------------------------- */

static void s_check_twice(const sim_t *self, const tt_plan_t *plan)
{
    tt_plan_t again;
    world_plan(&self->w, &again);
    assert_int_equal(plan->count, again.count);
    assert_int_equal(plan->fact_count, again.fact_count);
    assert_int_equal(plan->again_s, again.again_s);
    assert_memory_equal(plan->facts, again.facts, sizeof again.facts);
    for (size_t i = 0; i < plan->count; i++)
        assert_memory_equal(&plan->actions[i], &again.actions[i], sizeof again.actions[i]);
    tt_plan_clear(&again);
}

static const tt_fact_t *s_last(const tt_plan_t *plan)
{
    assert_true(plan->fact_count > 0);
    return &plan->facts[plan->fact_count - 1];
}

/*  It failed by itself, soon, that often, and none of its group that was there when it came is ready. */
static void s_check_row(const world_t *w, const tt_fact_t *fact)
{
    const tt_replica_t *failed = &w->replicas[fact->replica];
    assert_true(failed->state == TT_REPLICA_FAILED || (failed->waits && tt_replica_alive(failed)));
    assert_false(failed->disrupted || failed->lost || failed->refused || failed->deleting);
    assert_true(w->groups[failed->group].fail_after > 0);
    assert_in_range(fact->count, failed->failures + 1, failed->failures + failed->own_restarts + 1);
    assert_true((int64_t)fact->count >= w->groups[failed->group].fail_after);
    assert_true(failed->ended_s - failed->created_s < (failed->own_restarts + 1) * (int64_t)TT_PLAN_RESET_S);
    for (size_t i = 0; i < w->replica_count; i++)
        if (w->replicas[i].group == failed->group && tt_replica_alive(&w->replicas[i]) && w->replicas[i].ready)
            assert_true(w->replicas[i].created_s > failed->created_s ||
                        w->replicas[i].failures + w->replicas[i].own_restarts >= w->groups[failed->group].fail_after);
}

static bool s_is_final(const tt_group_t *group, const tt_replica_t *replica)
{
    const int code = replica->exit_code;
    const bool failed = replica->state == TT_REPLICA_FAILED;
    const bool told = (failed || replica->waits) && code == FINAL_CODE; /* also of one that is to be started again */
    return group->final_codes == TT_CODES_TUTTI || group->final_codes == TT_CODES_LISTED ? told
           : group->final_codes == TT_CODES_PLAIN  ? failed && (code == 1 || code == FINAL_CODE)
           : group->final_codes == TT_CODES_SIGNAL ? failed && (code == 1 || code == 139 || code == FINAL_CODE)
                                                   : false;
}

static void s_check_failed(const world_t *w, const tt_fact_t *fact)
{
    size_t failed = 0, inside = 0;
    for (size_t i = 0; i < w->replica_count; i++) {
        const tt_replica_t *replica = &w->replicas[i];
        inside += tt_replica_alive(replica) ? (size_t)replica->own_restarts : 0;
        failed += replica->state == TT_REPLICA_FAILED && !replica->deleting && !replica->lost && !replica->refused;
    }
    if (fact->why == TT_WHY_DEADLINE)
        assert_true(w->state.started_s > 0 && w->now_s >= w->state.started_s + w->rules.deadline_s);
    else if (fact->why == TT_WHY_IN_A_ROW)
        s_check_row(w, fact);
    else if (fact->why == TT_WHY_CODE)
        assert_true(s_is_final(&w->groups[w->replicas[fact->replica].group], &w->replicas[fact->replica]));
    else
        assert_true(failed > 0 || (w->rules.backoff_limit >= 0 && inside >= (size_t)w->rules.backoff_limit));
}

/*  All that decide are satisfied, and there is one. */
static void s_check_succeeded(const world_t *w)
{
    size_t succeeded = 0;
    for (size_t g = 0; g < w->rules.group_count; g++) {
        const tt_group_t *group = &w->groups[g];
        size_t first = 0;
        for (size_t i = 0; i < w->replica_count; i++)
            first += w->replicas[i].group == g && w->replicas[i].index == group->deciding &&
                     w->replicas[i].state == TT_REPLICA_SUCCEEDED;
        succeeded += group->decides != TT_DECIDES_NONE ? world_succeeded(w, g) : 0;
        if (group->decides == TT_DECIDES_ANY)
            assert_true(world_succeeded(w, g) > 0);
        if (group->decides == TT_DECIDES_ALL)
            assert_true(world_succeeded(w, g) >= (size_t)group->want);
        if (group->decides == TT_DECIDES_FIRST)
            assert_true(first > 0);
    }
    assert_true(succeeded > 0);
}

/*  Nobody works any more, and nobody was to be made: as those ended that are left. */
static void s_check_nobody_left(const world_t *w, const tt_fact_t *fact)
{
    size_t failed = 0;
    assert_true(w->rules.watch_only);
    for (size_t i = 0; i < w->replica_count; i++) {
        assert_false(tt_replica_alive(&w->replicas[i]));
        failed += w->replicas[i].state == TT_REPLICA_FAILED;
    }
    assert_int_equal(fact->stage, failed ? TT_STAGE_FAILED : TT_STAGE_SUCCEEDED);
}

/*  No end without its reason. */
static void s_check_end(const sim_t *self, const tt_plan_t *plan)
{
    const world_t *w = &self->w;
    if (!tt_stage_final(plan->state.stage))
        return;
    if (s_last(plan)->why == TT_WHY_NOBODY_LEFT)
        s_check_nobody_left(w, s_last(plan));
    else if (plan->state.stage == TT_STAGE_FAILED)
        s_check_failed(w, s_last(plan));
    else
        s_check_succeeded(w);
}

static bool s_is_in_step(const world_t *w)
{
    bool step = false;
    for (size_t g = 0; g < w->rules.group_count; g++)
        step |= w->groups[g].on_failure == TT_FAILURE_RESTART_JOB;
    return step;
}

static bool s_is_replaced(const world_t *w, const tt_replica_t *replica)
{
    for (size_t i = 0; i < w->replica_count; i++)
        if (w->replicas[i].replaces && strcmp(w->replicas[i].replaces, replica->name) == 0)
            return true;
    return false;
}

/*  One that failed by itself, where that ends the job, has ended it: in step and with codes once all of it was begun. */
static void s_check_fault(const sim_t *self, const tt_plan_t *plan)
{
    const world_t *w = &self->w;
    for (size_t i = 0; i < w->replica_count; i++) {
        const tt_replica_t *replica = &w->replicas[i];
        const tt_group_t *group = &w->groups[replica->group];
        const bool failed = replica->state == TT_REPLICA_FAILED && group->on_failure == TT_FAILURE_FAIL;
        if (replica->deleting || replica->lost || replica->refused || s_is_replaced(w, replica))
            continue;
        if (failed || (!s_is_in_step(w) && s_is_final(group, replica)))
            assert_true(tt_stage_final(plan->state.stage));
    }
}

/*  Enough of each group are there, where no first decides alone. */
static void s_check_running(const world_t *w, const tt_plan_t *plan)
{
    bool first = s_is_in_step(w), runs = false;
    for (size_t i = 0; i < plan->fact_count; i++)
        runs |= plan->facts[i].stage == TT_STAGE_RUNNING;
    for (size_t g = 0; g < w->rules.group_count; g++)
        first |= w->groups[g].decides == TT_DECIDES_FIRST;
    for (size_t g = 0; g < w->rules.group_count && runs && !first; g++) {
        const int64_t need = w->groups[g].min >= 0 ? w->groups[g].min : w->groups[g].want;
        int64_t there = (int64_t)world_succeeded(w, g);
        for (size_t i = 0; i < w->replica_count; i++)
            there += w->replicas[i].group == g && w->replicas[i].ready && tt_replica_alive(&w->replicas[i]);
        assert_true(there >= need);
    }
}

/*  What is missing is waited for, and who is only watched is left alone. */
static void s_check_still(const world_t *w, const tt_plan_t *plan)
{
    if (w->rules.watch_only)
        assert_int_equal(plan->count, 0);
    for (size_t i = 0; i < plan->count && w->rules.hold && !w->rules.suspend; i++)
        assert_true(plan->actions[i].what == TT_DO_SERVE || plan->actions[i].what == TT_DO_UNSERVE);
}

/*  Nobody is made, whoever works goes, its deadline begins anew. */
static void s_check_suspended(const sim_t *self, const tt_plan_t *plan)
{
    size_t going = 0, alive = 0;
    for (size_t i = 0; i < plan->count; i++) {
        assert_int_not_equal(plan->actions[i].what, TT_DO_CREATE);
        going += plan->actions[i].what == TT_DO_DELETE && tt_replica_alive(&self->w.replicas[plan->actions[i].replica]);
    }
    for (size_t i = 0; i < self->w.replica_count; i++)
        alive += tt_replica_alive(&self->w.replicas[i]);
    if (plan->state.stage == TT_STAGE_SUCCEEDED)
        return;
    assert_int_equal(plan->state.stage, TT_STAGE_SUSPENDED);
    assert_int_equal(going, alive);
    assert_int_equal(plan->state.started_s, 0);
    assert_int_equal(plan->again_s, -1);
}

/*  Who belongs to another goes with it, and not before: neither where that one works nor where one took its place. */
static void s_check_owned(const world_t *w, const tt_plan_t *plan)
{
    for (size_t i = 0; i < plan->count; i++) {
        const tt_replica_t *gone =
            plan->actions[i].what == TT_DO_DELETE ? &w->replicas[plan->actions[i].replica] : NULL;
        if (!gone || !gone->owner || s_is_replaced(w, gone))
            continue;
        for (size_t k = 0; k < w->replica_count; k++) {
            const tt_replica_t *other = &w->replicas[k];
            const bool owner = strcmp(other->name, gone->owner) == 0,
                       follows = other->replaces && strcmp(other->replaces, gone->owner) == 0;
            bool goes = other->deleting;
            for (size_t m = 0; m < plan->count; m++)
                goes |= plan->actions[m].what == TT_DO_DELETE && plan->actions[m].replica == k;
            const bool soon =
                other->state == TT_REPLICA_FAILED && w->groups[other->group].want < 0; /* it will be replaced */
            assert_false(!goes && ((owner && (soon || tt_replica_alive(other))) || follows));
        }
    }
}

static void s_check_plan(sim_t *self, const tt_plan_t *plan)
{
    const tt_plan_state_t *before = &self->w.state;
    s_check_twice(self, plan);
    if (self->w.rules.suspend && !self->w.rules.watch_only && self->final == TT_STAGE_NEW)
        s_check_suspended(self, plan);
    assert_true(plan->state.restarts >= before->restarts && plan->state.restarts <= before->restarts + 2);
    assert_true(plan->state.reshapes >= before->reshapes && plan->state.reshapes <= before->reshapes + 1);
    if (self->final != TT_STAGE_NEW) { /* an end is for good, and nothing is made after it */
        assert_int_equal(plan->state.stage, self->final);
        for (size_t i = 0; i < plan->count; i++) {
            assert_true(plan->actions[i].what == TT_DO_DELETE || plan->actions[i].what == TT_DO_UNSERVE);
            assert_int_equal(plan->actions[i].grace_s,
                plan->actions[i].what == TT_DO_UNSERVE || self->w.rules.clean_gently ? -1 : 0);
        }
        return;
    }
    s_check_end(self, plan);
    s_check_still(&self->w, plan);
    s_check_running(&self->w, plan);
    if (!self->w.rules.suspend && !self->w.rules.watch_only) {
        s_check_fault(self, plan);
        s_check_owned(&self->w, plan);
    }
}

/*  Nobody has more than are wanted, but in step, where it takes a stage, and numbers of one job are no two's. */
static void s_check_world(const sim_t *self)
{
    const world_t *w = &self->w;
    const bool still = w->rules.hold || w->rules.watch_only; /* then nobody goes either */
    for (size_t g = 0; g < w->rules.group_count && self->final == TT_STAGE_NEW && w->lose == 0 && !still; g++)
        if (w->groups[g].on_failure != TT_FAILURE_RESTART_JOB && w->groups[g].want >= 0)
            assert_true(world_alive(w, g) <= (size_t)w->groups[g].want);
    for (size_t i = 0; i < w->replica_count && w->lose == 0; i++)
        for (size_t k = 0; k < i; k++)
            if (w->replicas[i].rank >= 0 && !w->replicas[i].deleting && !w->replicas[k].deleting)
                assert_int_not_equal(w->replicas[i].rank, w->replicas[k].rank);
}

static void s_round(sim_t *self)
{
    tt_plan_t plan;
    world_plan(&self->w, &plan);
    s_check_plan(self, &plan);
    world_do(&self->w, &plan);
    tt_plan_clear(&plan);
    if (tt_stage_final(self->w.state.stage)) /* and written */
        self->final = self->w.state.stage;
    s_check_world(self);
}

/* ---- quiet ------------------------------------------------------------------------------------------------------------------ */

static size_t s_places(const world_t *w)
{
    size_t count = 0;
    for (size_t g = 0; g < w->rules.group_count; g++)
        count += w->groups[g].identity == TT_ID_ORDINAL ? (size_t)w->groups[g].want : 0;
    return count;
}

static void s_check_services(const world_t *w)
{
    if (w->rules.serve == TT_SERVE_PLACE)
        assert_int_equal(w->service_count, s_places(w));
    if (w->rules.serve == TT_SERVE_NONE)
        assert_int_equal(w->service_count, 0);
    if (w->rules.serve == TT_SERVE_JOB)
        assert_int_equal(w->service_count, 1);
    if (w->rules.serve == TT_SERVE_REPLICA)
        assert_int_equal(w->service_count, w->replica_count);
}

static void s_check_ended(const world_t *w)
{
    if (w->rules.serve != TT_SERVE_PLACE || w->rules.clean != TT_CLEAN_NONE)
        assert_int_equal(w->service_count, 0);
    if (w->rules.clean == TT_CLEAN_ALL)
        assert_int_equal(w->replica_count, 0);
    for (size_t i = 0; i < w->replica_count && w->rules.clean == TT_CLEAN_RUNNING; i++)
        assert_false(w->replicas[i].runs);
}

/*  Of a group without a number: who failed has a successor and is gone, and who belongs to another has one that works, or ended well. */
static void s_check_asked(const world_t *w, size_t group)
{
    for (size_t i = 0; i < w->replica_count; i++) {
        const tt_replica_t *replica = &w->replicas[i], *owner = NULL;
        if (replica->group != group)
            continue;
        assert_int_not_equal(replica->state, TT_REPLICA_FAILED);
        for (size_t k = 0; k < w->replica_count && replica->owner; k++)
            owner = strcmp(w->replicas[k].name, replica->owner) == 0 ? &w->replicas[k] : owner;
        if (replica->owner)
            assert_true(owner && owner->state != TT_REPLICA_FAILED);
    }
}

static void s_check_quiet(const sim_t *self)
{
    const world_t *w = &self->w;
    if (tt_stage_final(w->state.stage)) {
        s_check_ended(w);
        return;
    }
    assert_int_equal(w->state.stage, TT_STAGE_RUNNING);
    for (size_t g = 0; g < w->rules.group_count; g++) {
        const tt_group_t *group = &w->groups[g];
        if (group->want < 0) {
            s_check_asked(w, g);
            continue;
        }
        const bool stays =
            group->decides != TT_DECIDES_NONE || group->once || group->on_failure == TT_FAILURE_RESTART_JOB;
        assert_int_equal(world_alive(w, g) + (stays ? world_succeeded(w, g) : 0), group->want);
    }
    s_check_services(w);
}

/*  Who decides ends well: so does the job, unless nobody decides. */
static void s_check_well(sim_t *self)
{
    world_t *w = &self->w;
    bool nobody = true;
    for (size_t g = 0; g < w->rules.group_count; g++)
        nobody &= w->groups[g].decides == TT_DECIDES_NONE;
    if (tt_stage_final(w->state.stage) || nobody)
        return;
    for (size_t i = 0; i < w->replica_count; i++)
        if (w->groups[w->replicas[i].group].decides != TT_DECIDES_NONE && w->replicas[i].state == TT_REPLICA_RUNNING)
            world_end(w, &w->replicas[i], 0);
    world_settle(w, 1000);
    assert_int_equal(w->state.stage, TT_STAGE_SUCCEEDED);
    s_check_ended(w);
}

/* ---- every combination ------------------------------------------------------------------------------------------------------ */

typedef struct {
    tt_identity_t identity;
    tt_failure_t on_failure;
    tt_codes_t codes;
    tt_decides_t decides;
} combination_t;

/*  A group beside the one that the combination is about: it helps, or decides as well, and may have others that belong to it; those and
 *  the third are of no number. */
static void s_make_others(sim_t *self)
{
    world_t *w = &self->w;
    tt_group_t *group = &w->groups[0];
    const bool places = group->identity == TT_ID_ORDINAL;
    const tt_decides_t says =
        (const tt_decides_t[]){TT_DECIDES_NONE, TT_DECIDES_NONE, TT_DECIDES_ALL, TT_DECIDES_ANY}[s_below(self, 4)];
    tt_group_t *helper = world_group(w, s_below(self, 3) ? TT_ID_RANDOM : TT_ID_ORDINAL, TT_FAILURE_REPLACE, says, 2);
    const bool ordinal = helper->identity == TT_ID_ORDINAL;
    helper->fail_after = !ordinal && s_below(self, 2) ? 1 + s_below(self, 3) : 0;
    helper->min = (int64_t)s_below(self, 4) - 1;
    helper->min = helper->min > helper->want ? helper->want : helper->min;
    helper->final_codes = s_below(self, 4) ? TT_CODES_NONE : group->final_codes;
    helper->listed = &self->listed;
    helper->after = places ? 0 : TT_GROUP_NONE;
    if (s_below(self, 2))
        return;
    tt_group_t *asked = world_group(w, TT_ID_RANDOM, TT_FAILURE_REPLACE, TT_DECIDES_NONE, -1);
    asked->after = places && s_below(self, 2) ? 0 : TT_GROUP_NONE;
    asked->fail_after = s_below(self, 3) ? 0 : 2;
    tt_group_t *owned = world_group(w, TT_ID_RANDOM, TT_FAILURE_REPLACE, TT_DECIDES_NONE, -1);
    owned->owner = ordinal || s_below(self, 2) ? 2 : 1;
}

/*  False: the rules exclude each other. */
static bool s_make(sim_t *self, const combination_t *of, unsigned lose)
{
    world_t *w = &self->w;
    world_init(w);
    tt_group_t *group = world_group(w, of->identity, of->on_failure, of->decides, 3);
    group->final_codes = of->codes;
    group->listed = &self->listed;
    tt_code_set_put(&self->listed, FINAL_CODE, true);
    group->min = s_below(self, 3) ? -1 : (int64_t)s_below(self, 4);
    if (of->decides == TT_DECIDES_FIRST)
        group->deciding = (int32_t)s_below(self, 3);
    group->once = of->identity == TT_ID_ORDINAL && s_below(self, 2);
    group->fail_after = of->identity == TT_ID_RANDOM && s_below(self, 2) ? 2 : 0;
    s_make_others(self);
    w->lose = w->lose_writes = lose;
    w->draw = draws_word;
    w->ctx = &self->draws;
    w->rules.clean = (const tt_clean_t[]){TT_CLEAN_NONE, TT_CLEAN_RUNNING, TT_CLEAN_ALL}[s_below(self, 3)];
    w->rules.serve = (tt_serve_t)s_below(self, TT_SERVE_RULES);
    w->rules.backoff_limit = s_below(self, 2) ? 3 : -1;
    w->rules.whole = s_below(self, 2);
    w->rules.clean_gently = s_below(self, 2);
    return rules_check(&w->rules) == TT_OK;
}

static void s_quiet(sim_t *self)
{
    world_t *w = &self->w;
    w->lose = w->lose_writes = 0;
    w->rules.suspend = w->rules.hold = w->rules.watch_only = false;
    w->rules.deadline_s = -1;
    for (size_t g = 0; g < w->rules.group_count; g++)
        w->groups[g].blocked = false;
    world_settle(w, 3000);
    s_check_quiet(self);
}

/*  Nobody is left but who ended well, and it goes on afterwards as if nothing had been. */
static void s_rest(sim_t *self)
{
    world_t *w = &self->w;
    const int64_t restarts = w->state.restarts;
    if (tt_stage_final(w->state.stage))
        return;
    w->rules.suspend = true;
    world_settle(w, 1000);
    if (tt_stage_final(w->state.stage))
        return; /* it was done */
    assert_int_equal(w->state.stage, TT_STAGE_SUSPENDED);
    for (size_t i = 0; i < w->replica_count; i++)
        assert_int_equal(w->replicas[i].state, TT_REPLICA_SUCCEEDED);
    w->rules.suspend = false;
    world_settle(w, 3000);
    s_check_quiet(self);
    assert_int_equal(w->state.restarts, restarts);
}

/*  What is over is forgotten when its time has come, and not before. */
static void s_forget(sim_t *self)
{
    world_t *w = &self->w;
    if (!tt_stage_final(w->state.stage))
        return;
    w->rules.ttl_s = (int64_t)s_below(self, 1000);
    world_settle(w, 1000);
    assert_true(w->forgotten);
    assert_true(w->now_s >= w->state.ended_s + w->rules.ttl_s);
}

static bool s_run(uint64_t seed, const combination_t *of, unsigned lose)
{
    sim_t sim = {.draws.seed = seed};
    const bool valid = s_make(&sim, of, lose);
    for (int i = 0; i < STEPS && valid; i++) {
        if (s_below(&sim, 4) == 0)
            s_other_event(&sim);
        else
            s_replica_event(&sim);
        s_round(&sim);
    }
    if (valid) {
        s_quiet(&sim);
        s_rest(&sim);
        s_check_well(&sim);
        s_forget(&sim);
    }
    world_free(&sim.w);
    return valid;
}

static void s_run_all(uint64_t seed, unsigned lose)
{
    int valid = 0;
    for (int n = 0; n < 2 * TT_FAILURE_RULES * TT_CODES_RULES * TT_DECIDES_RULES; n++) {
        const combination_t of = {n % 2 ? TT_ID_ORDINAL : TT_ID_RANDOM, (tt_failure_t)(n / 2 % TT_FAILURE_RULES),
            (tt_codes_t)(n / 2 / TT_FAILURE_RULES % TT_CODES_RULES),
            (tt_decides_t)(n / 2 / TT_CODES_RULES / TT_FAILURE_RULES)};
        bool ran = false;
        for (uint64_t i = 0; i < SEEDS; i++)
            ran = s_run(seed + 100 * (uint64_t)n + i, &of, lose);
        valid += ran;
    }
    assert_int_equal(valid, 100); /* of 120: the first decides of places only, and not in step */
}

static void test_every_combination_when_no_answer_is_lost(void **state)
{
    (void)state;
    s_run_all(0, 0);
}

static void test_every_combination_when_answers_are_lost(void **state)
{
    (void)state;
    s_run_all(100000, 15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_combination_when_no_answer_is_lost),
        cmocka_unit_test(test_every_combination_when_answers_are_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
