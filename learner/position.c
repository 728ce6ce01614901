#include "learner/position.h"
#include "common/base/status.h"

void position_reset(position_t *self)
{
    *self = (position_t){.held_era = self->held_era};
}

void position_join(position_t *self, const position_mark_t *mark)
{
    TT_CHECK(!self->holds && !self->begun);
    self->update = self->batches_counted = mark->update;
    self->step = mark->step;
    self->steps = mark->steps;
    self->made = mark->made;
    self->trained = mark->trained;
    self->lag_max = mark->lag_max;
}

void position_hold(position_t *self, uint32_t era)
{
    TT_CHECK(!self->holds);
    self->holds = true;
    self->held_era = era;
}

void position_count(position_t *self)
{
    TT_CHECK(self->holds && self->batches_counted == self->update);
    self->batches_counted = self->update + 1;
}

void position_plan(position_t *self, uint32_t steps)
{
    TT_CHECK(self->holds && !self->begun);
    self->step_count = steps;
}

void position_owe(position_t *self, uint32_t steps)
{
    position_plan(self, steps ? steps : 1);
    self->owed = steps;
}

void position_begin(position_t *self, uint64_t oldest)
{
    TT_CHECK(self->holds && !self->begun && self->batches_counted == self->update + 1);
    const uint64_t staleness = self->update - oldest;
    self->lag_max = staleness > self->lag_max ? staleness : self->lag_max;
    self->begun = true;
}

void position_uncount(position_t *self)
{
    TT_CHECK(self->begun && self->batches_counted == self->update + 1);
    self->batches_counted = self->update;
}

void position_retract(position_t *self)
{
    TT_CHECK(self->holds && self->step == 0 && self->batches_counted == self->update + 1);
    self->begun = false;
    self->batches_counted = self->update;
}

void position_step(position_t *self, bool made)
{
    TT_CHECK(self->begun && self->step < self->step_count);
    self->step++;
    self->steps++;
    self->made += made;
}

void position_end(position_t *self)
{
    TT_CHECK(self->begun && self->step > 0);
    self->step = self->step_count;
}

/*  What a joiner was told is not ours to vouch for: more steps may be done than its algorithm has planned. */
void position_finish(position_t *self, uint64_t transitions)
{
    TT_CHECK(self->begun && self->step >= self->step_count);
    self->trained += transitions;
    self->update++;
    self->step = 0;
    self->begun = false;
}
