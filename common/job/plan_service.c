/*  plan_service - services: one a replica, from when it is there till it is gone, or one for the whole job. */
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
    else if (self->rules->serve == TT_SERVE_JOB)
        s_one(self);
}
