/*  plan_service - services: one a replica, from when it is there till it is gone, one a place, or one for the whole job. */
#include <stdlib.h>
#include "common/base/mem.h"
#include "common/job/plan_parts.h"

static void s_each(plan_t *self)
{
    const tt_seen_t *seen = self->seen;
    bool *served = tt_array0(seen->replica_count, sizeof *served);
    for (size_t i = 0; i < seen->service_count; i++) {
        const size_t replica = plan_find(self, seen->services[i].name);
        if (replica != TT_PLAN_NONE)
            served[replica] = true;
        else if (!seen->services[i].deleting)
            plan_action(self, TT_DO_UNSERVE)->service = i;
    }
    for (size_t i = 0; i < seen->replica_count; i++)
        if (plan_stays(self, i) && !served[i] && seen->replicas[i].servable)
            plan_action(self, TT_DO_SERVE)->replica = i;
    free(served);
}

/*  Before who takes the place is there: it is found as soon as it runs. One that goes is waited for, its name is taken. */
static void s_group(plan_t *self, size_t group)
{
    const tt_group_t *rule = &self->rules->groups[group];
    const size_t want = rule->identity == TT_ID_ORDINAL ? (size_t)rule->want : 0;
    bool *served = tt_array0(want, sizeof *served);
    for (size_t i = 0; i < self->seen->service_count; i++) {
        const tt_service_t *service = &self->seen->services[i];
        if (service->group != group)
            continue;
        if (service->index >= 0 && (size_t)service->index < want)
            served[service->index] = true;
        else if (!service->deleting)
            plan_action(self, TT_DO_UNSERVE)->service = i;
    }
    for (size_t place = 0; place < want; place++)
        if (!served[place]) {
            tt_action_t *action = plan_action(self, TT_DO_SERVE);
            action->group = group;
            action->index = (int32_t)place;
        }
    free(served);
}

static void s_places(plan_t *self)
{
    for (size_t i = 0; i < self->rules->group_count; i++)
        s_group(self, i);
    for (size_t i = 0; i < self->seen->service_count; i++)
        if (self->seen->services[i].group >= self->rules->group_count && !self->seen->services[i].deleting)
            plan_action(self, TT_DO_UNSERVE)->service = i;
}

static void s_one(plan_t *self)
{
    size_t count = 0;
    for (size_t i = 0; i < self->seen->service_count; i++) {
        count += self->seen->services[i].of_job;
        if (!self->seen->services[i].of_job && !self->seen->services[i].deleting)
            plan_action(self, TT_DO_UNSERVE)->service = i;
    }
    if (count == 0 && self->rules->servable)
        plan_action(self, TT_DO_SERVE);
}

void plan_serve(plan_t *self)
{
    if (self->rules->serve == TT_SERVE_REPLICA)
        s_each(self);
    else if (self->rules->serve == TT_SERVE_PLACE)
        s_places(self);
    else if (self->rules->serve == TT_SERVE_JOB)
        s_one(self);
}
