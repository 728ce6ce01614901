#define TT_LOG_COMPONENT "update"
#include "learner/boundary.h"
#include "common/base/log.h"
#include "learner/core.h"

#define LONG_NS INT64_C(500000000) /* of an update */

void boundary_drop(boundary_t *self)
{
    if (self->there)
        state_release(&self->snapshot);
    *self = (boundary_t){0};
}

tt_status_t boundary_begin(core_t *self)
{
    const int64_t lasted_ns = self->boundary.lasted_ns;
    const bool joined = self->at.step > 0;
    boundary_drop(&self->boundary);
    self->boundary.begun_ns = joined ? 0 : tt_now_ns(self->clock);
    if (lasted_ns < LONG_NS || joined || self->data.memory)
        return TT_OK;
    TT_TRY(state_capture(self, STATE_REPLAY_NONE, 0, &self->boundary.snapshot));
    self->boundary.there = true;
    return TT_OK;
}

void boundary_end(core_t *self)
{
    const int64_t begun_ns = self->boundary.begun_ns;
    boundary_drop(&self->boundary);
    self->boundary.lasted_ns = begun_ns ? tt_now_ns(self->clock) - begun_ns : 0;
}

bool boundary_may(const core_t *self)
{
    return self->boundary.there && !self->boundary.left;
}

bool boundary_is_long(const core_t *self)
{
    return tt_now_ns(self->clock) - self->boundary.begun_ns >= LONG_NS;
}

void boundary_leave(core_t *self)
{
    self->boundary.left = true;
    log_info("update %llu is given up after %u of %u steps: %s", (unsigned long long)self->at.update, self->at.step,
        self->at.step_count, self->ending.reason);
}

/*  What is still to be evaluated may have become less. */
tt_snapshot_t boundary_snapshot(const core_t *self)
{
    tt_snapshot_t out = self->boundary.snapshot;
    if (self->evaluate)
        evaluate_capture(self->evaluate, &out);
    return out;
}
