#include "learner/ending.h"
#include <stddef.h>
#include "common/base/text.h"

void ending_reset(ending_t *self)
{
    self->reason = NULL;
    self->reported = false;
}

void ending_rule(ending_t *self, const char *rule)
{
    if (!self->reason)
        self->reason = rule;
}

void ending_retract(ending_t *self)
{
    if (self->reason != self->asked)
        self->reason = NULL;
}

void ending_ask(ending_t *self, const char *reason, bool finish)
{
    tt_text_copy(self->asked, sizeof self->asked, reason && reason[0] ? reason : "stop");
    if (finish) /* without weights yet: as soon as we have them, so that there is a last checkpoint */
        self->finish = true;
    else
        self->leave = true;
}

void ending_boundary(ending_t *self)
{
    if (self->finish)
        ending_rule(self, self->asked);
}

void ending_report(ending_t *self)
{
    self->reported = true;
}

bool ending_leave(ending_t *self)
{
    const bool first = !self->leave;
    self->leave = true;
    return first;
}

void ending_drain(ending_t *self, int64_t now_ns, bool alone)
{
    self->draining = true;
    self->draining_ns = now_ns;
    self->farewell = alone;
}

void ending_bid(ending_t *self)
{
    self->farewell = false;
}
