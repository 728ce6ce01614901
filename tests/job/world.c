#include "tests/job/world.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"

void world_init(world_t *self)
{
    *self = (world_t){.now_s = 1000,
        .rules = {.backoff_limit = -1, .deadline_s = -1, .ttl_s = -1, .serve = TT_SERVE_REPLICA, .servable = true}};
    self->rules.groups = self->groups;
    self->state.first = self->first;
}

tt_group_t *world_group(world_t *self, tt_identity_t identity, tt_failure_t on_failure, tt_decides_t decides, int want)
{
    static const char *const names[WORLD_GROUPS] = {"a", "b", "c", "d"};
    tt_group_t *group = &self->groups[self->rules.group_count];
    *group = (tt_group_t){.name = names[self->rules.group_count++],
        .identity = identity,
        .on_failure = on_failure,
        .decides = decides,
        .want = want,
        .min = -1,
        .after = TT_GROUP_NONE,
        .owner = TT_GROUP_NONE,
        .keep_failed = 3};
    return group;
}

tt_replica_t *world_add(world_t *self, size_t group, const char *name, int index)
{
    assert_true(self->replica_count < WORLD_REPLICAS);
    tt_replica_t *replica = &self->replicas[self->replica_count++];
    *replica = (tt_replica_t){.name = tt_strdup(name),
        .uid = tt_sprintf("u%u", ++self->uids),
        .group = group,
        .index = index,
        .rank = -1,
        .exit_code = -1,
        .created_s = self->now_s,
        .ended_s = self->now_s,
        .runs = true,
        .servable = true,
        .weight = 1};
    return replica;
}

static void s_free(tt_replica_t *replica)
{
    free((void *)(uintptr_t)replica->name);
    free((void *)(uintptr_t)replica->uid);
    free((void *)(uintptr_t)replica->replaces);
    free((void *)(uintptr_t)replica->owner);
}

void world_remove(world_t *self, tt_replica_t *replica)
{
    const size_t at = (size_t)(replica - self->replicas);
    s_free(replica);
    memmove(replica, replica + 1, (--self->replica_count - at) * sizeof *replica);
}

void world_unserve(world_t *self, size_t at)
{
    free((void *)(uintptr_t)self->services[at].name);
    memmove(&self->services[at], &self->services[at + 1], (--self->service_count - at) * sizeof *self->services);
}

void world_free(world_t *self)
{
    while (self->replica_count > 0)
        world_remove(self, self->replicas);
    while (self->service_count > 0)
        world_unserve(self, 0);
}

tt_replica_t *world_get(world_t *self, const char *name)
{
    for (size_t i = 0; i < self->replica_count; i++)
        if (strcmp(self->replicas[i].name, name) == 0)
            return &self->replicas[i];
    return NULL;
}

void world_run(world_t *self, tt_replica_t *replica)
{
    (void)self;
    replica->state = TT_REPLICA_RUNNING;
    replica->waits = false;
    replica->exit_code = -1;
    replica->scheduled = replica->ready = true;
}

void world_end(world_t *self, tt_replica_t *replica, int exit_code)
{
    replica->state = exit_code == 0 ? TT_REPLICA_SUCCEEDED : TT_REPLICA_FAILED;
    replica->exit_code = exit_code;
    replica->ended_s = self->now_s;
    replica->ready = replica->runs = replica->waits = false;
    replica->over = true;
}

size_t world_alive(const world_t *self, size_t group)
{
    size_t count = 0;
    for (size_t i = 0; i < self->replica_count; i++)
        count += self->replicas[i].group == group && tt_replica_alive(&self->replicas[i]);
    return count;
}

size_t world_succeeded(const world_t *self, size_t group)
{
    size_t count = 0;
    for (size_t i = 0; i < self->replica_count; i++)
        count += self->replicas[i].group == group && !self->replicas[i].deleting &&
                 self->replicas[i].state == TT_REPLICA_SUCCEEDED;
    return count;
}

/* ---- doing ------------------------------------------------------------------------------------------------------------------ */

void world_plan(const world_t *self, tt_plan_t *out)
{
    const tt_seen_t seen = {self->replicas, self->replica_count, self->services, self->service_count, self->now_s};
    tt_plan(out, &self->rules, &self->state, &seen);
}

/*  What the plan says by index, by names: the world changes while it is done. */
typedef struct {
    tt_action_t action;
    char *name, *replaces, *owner;
} task_t;

static char *s_name_of(const world_t *self, size_t replica)
{
    return replica == TT_PLAN_NONE ? NULL : tt_strdup(self->replicas[replica].name);
}

static task_t s_task(const world_t *self, const tt_action_t *action, size_t at)
{
    task_t task = {.action = *action};
    if (action->what == TT_DO_UNSERVE) {
        task.name = tt_strdup(self->services[action->service].name);
    } else if (action->what == TT_DO_SERVE && action->index >= 0) {
        task.name = tt_sprintf("%s-%d", self->groups[action->group].name, action->index);
    } else if (action->what != TT_DO_CREATE) {
        task.name = s_name_of(self, action->replica);
    } else {
        const bool ordinal = self->groups[action->group].identity == TT_ID_ORDINAL;
        const char *group = self->groups[action->group].name;
        task.replaces = s_name_of(self, action->replica);
        task.owner = s_name_of(self, action->owner);
        assert_int_equal(ordinal, action->index >= 0);
        if (ordinal)
            task.name = tt_sprintf("%s-%d", group, action->index);
        else if (task.replaces) /* always the same, so that asking again after a lost answer makes no second */
            task.name = tt_sprintf("%s-for-%s", group, self->replicas[action->replica].uid);
        else
            task.name = tt_sprintf("%s-new-%u-%zu", group, self->uids, at);
    }
    return task;
}

static void s_create(world_t *self, task_t *task)
{
    const tt_action_t *action = &task->action;
    assert_null(world_get(self, task->name)); /* who plans sees everything: it never asks for what is there */
    tt_replica_t *replica = world_add(self, action->group, task->name, action->index);
    replica->rank = action->rank;
    replica->restarts = action->restarts;
    replica->reshapes = action->reshapes;
    replica->backoff_s = action->backoff_s;
    replica->failures = action->failures;
    replica->replaces = tt_strdup(task->replaces);
    replica->owner = tt_strdup(task->owner);
}

static void s_delete(world_t *self, const char *name)
{
    tt_replica_t *replica = world_get(self, name);
    assert_non_null(replica);
    assert_false(replica->deleting);
    if (replica->state == TT_REPLICA_RUNNING)
        replica->deleting = true;
    else
        world_remove(self, replica);
}

static void s_unserve(world_t *self, const char *name)
{
    for (size_t i = self->service_count; i-- > 0;)
        if (strcmp(self->services[i].name, name) == 0)
            world_unserve(self, i);
}

static void s_do(world_t *self, task_t *task)
{
    switch (task->action.what) {
    case TT_DO_CREATE:
        s_create(self, task);
        break;
    case TT_DO_DELETE:
        s_delete(self, task->name);
        break;
    case TT_DO_SERVE:
        assert_true(self->service_count < WORLD_REPLICAS);
        self->services[self->service_count++] = (tt_service_t){.name = tt_strdup(task->name ? task->name : "job"),
            .of_job = !task->name,
            .group = task->action.group,
            .index = task->action.index};
        break;
    case TT_DO_UNSERVE:
        s_unserve(self, task->name);
        break;
    case TT_DO_FORGET:
        self->forgotten = true;
        break;
    }
    free(task->name);
    free(task->replaces);
    free(task->owner);
}

static void s_write(world_t *self, const tt_plan_t *plan)
{
    char first[sizeof self->first];
    snprintf(first, sizeof first, "%s", plan->state.first);
    memcpy(self->first, first, sizeof first);
    self->state = plan->state;
    self->state.first = self->first;
    if (plan->fact_count > 0)
        self->last = plan->facts[plan->fact_count - 1];
}

void world_do(world_t *self, const tt_plan_t *plan)
{
    if (self->lose_writes && self->draw(self->ctx) % 100 < self->lose_writes)
        return;
    task_t *tasks = tt_array0(plan->count, sizeof *tasks);
    for (size_t i = 0; i < plan->count; i++)
        tasks[i] = s_task(self, &plan->actions[i], i);
    s_write(self, plan);
    for (size_t i = 0; i < plan->count; i++)
        if (!self->lose || self->draw(self->ctx) % 100 >= self->lose) {
            s_do(self, &tasks[i]);
        } else {
            free(tasks[i].name);
            free(tasks[i].replaces);
            free(tasks[i].owner);
        }
    free(tasks);
}

/*  Every replica gets what it waits for. */
static bool s_serve_all(world_t *self)
{
    bool changed = false;
    for (size_t i = self->replica_count; i-- > 0;) {
        tt_replica_t *replica = &self->replicas[i];
        if (replica->deleting)
            world_remove(self, replica);
        else if (tt_replica_alive(replica) && !replica->ready)
            world_run(self, replica);
        else
            continue;
        changed = true;
    }
    return changed;
}

void world_settle(world_t *self, int most)
{
    for (int i = 0; i < most && !self->forgotten; i++) {
        tt_plan_t plan;
        const bool changed = s_serve_all(self), written = self->state.stage != TT_STAGE_NEW;
        const tt_plan_state_t before = self->state;
        world_plan(self, &plan);
        const bool nothing = plan.count == 0 && plan.state.stage == before.stage &&
                             plan.state.restarts == before.restarts && plan.state.reshapes == before.reshapes;
        const int64_t again_s = plan.again_s;
        world_do(self, &plan);
        tt_plan_clear(&plan);
        if (nothing && written && !changed && again_s < 0)
            return;
        if (nothing && again_s > 0)
            self->now_s += again_s;
    }
    if (!self->forgotten)
        fail_msg("no rest after %d rounds: stage %d, %zu replicas", most, (int)self->state.stage, self->replica_count);
}
