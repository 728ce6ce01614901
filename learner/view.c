#include "learner/view.h"
#include <stdio.h>
#include <stdlib.h>
#include "common/base/mem.h"

void view_clear(view_t *self)
{
    free(self->restore);
    free(self->learner);
    free(self->aggregator);
    free(self->collector);
    *self = (view_t){0};
}

static void s_peer(view_peer_t *out, const tt_rec_MEMBER_t *member, const tt_location_t *location)
{
    const char *endpoint = "";
    if (tt_location_reach(location, member->data_ipc, member->data_tcp, &endpoint) != TT_OK)
        endpoint = "";
    out->index = member->index;
    out->instance = member->instance;
    snprintf(out->data, sizeof out->data, "%s", endpoint);
    const bool here = *endpoint && endpoint == member->data_ipc;
    out->pid = member->pid;
    out->memory = here ? (int)member->memory - 1 : -1;
}

static int s_by_index(const void *a, const void *b)
{
    const view_peer_t *x = a, *y = b;
    return (x->index > y->index) - (x->index < y->index);
}

/*  Learners stand in the order of their ranks, whatever the order in the message. */
static void s_learners(view_t *self, const tt_msg_ROSTER_t *roster, uint64_t instance, const tt_location_t *location)
{
    for (size_t i = 0; i < roster->members_count; i++) {
        const tt_rec_MEMBER_t *member = &roster->members[i];
        if (member->role != TT_PEER_LEARNER || member->rank >= self->learners)
            continue;
        s_peer(&self->learner[member->rank], member, location);
        if (member->instance == instance) {
            self->member = true;
            self->rank = member->rank;
        }
    }
}

void view_take(view_t *self, const tt_msg_ROSTER_t *roster, uint64_t instance, const tt_location_t *location)
{
    view_clear(self);
    self->era = roster->era;
    self->epoch = roster->epoch;
    self->generation = roster->generation;
    self->restore = roster->restore && roster->restore[0] ? tt_strdup(roster->restore) : NULL;
    self->fresh = roster->fresh;
    const size_t room = roster->members_count;
    self->learner = tt_array0(room, sizeof *self->learner);
    self->aggregator = tt_array0(room, sizeof *self->aggregator);
    self->collector = tt_array0(room, sizeof *self->collector);
    for (size_t i = 0; i < room; i++) {
        const tt_rec_MEMBER_t *member = &roster->members[i];
        if (member->role == TT_PEER_LEARNER)
            self->learners++;
        else if (member->role == TT_PEER_AGGREGATOR)
            s_peer(&self->aggregator[self->aggregators++], member, location);
        else if (member->role == TT_PEER_COLLECTOR)
            self->collector[self->collectors++] = (view_range_t){member->instance, member->env_lo, member->env_count};
    }
    /* chunk c goes to aggregator c modulo their number, so every learner has to count them alike */
    qsort(self->aggregator, self->aggregators, sizeof *self->aggregator, s_by_index);
    s_learners(self, roster, instance, location);
}

bool view_has_collector(const view_t *self, uint64_t instance)
{
    for (uint32_t i = 0; i < self->collectors; i++)
        if (self->collector[i].instance == instance)
            return true;
    return false;
}

bool view_has_range(const view_t *self, uint64_t instance, uint32_t env_lo, uint32_t env_count)
{
    for (uint32_t i = 0; i < self->collectors; i++) {
        const view_range_t *range = &self->collector[i];
        if (range->instance == instance && range->env_lo == env_lo && range->env_count == env_count)
            return true;
    }
    return false;
}
