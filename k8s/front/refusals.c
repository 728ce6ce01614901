#include "k8s/front/refusals.h"
#include <stdlib.h>
#include "common/base/mem.h"

static void s_drop(front_refusals_t *self, size_t at)
{
    free((char *)(uintptr_t)self->list[at].words);
    free((char *)(uintptr_t)self->list[at].reason);
    self->list[at] = self->list[--self->count];
}

void front_allow(front_refusals_t *self, int group)
{
    for (size_t i = self->count; i-- > 0;)
        if (self->list[i].group == group)
            s_drop(self, i);
}

void front_refuse(front_refusals_t *self, const front_refusal_t *refusal)
{
    front_allow(self, refusal->group);
    self->list = tt_realloc(self->list, tt_mul(self->count + 1, sizeof *self->list));
    front_refusal_t *copy = &self->list[self->count++];
    *copy = *refusal;
    copy->words = tt_strdup(refusal->words);
    copy->reason = tt_strdup(refusal->reason);
}

int64_t front_refused_until(front_refusals_t *self, int64_t now_ms)
{
    int64_t next_ms = INT64_MAX;
    for (size_t i = self->count; i-- > 0;)
        if (self->list[i].until_ms <= now_ms)
            s_drop(self, i);
        else if (self->list[i].until_ms < next_ms)
            next_ms = self->list[i].until_ms;
    return next_ms;
}

bool front_is_refused(const front_view_t *view, int group)
{
    for (size_t i = 0; i < view->refusal_count; i++)
        if (view->refusals[i].group == group)
            return true;
    return false;
}

void front_refusals_clear(front_refusals_t *self)
{
    while (self->count)
        s_drop(self, self->count - 1);
    free(self->list);
    self->list = NULL;
}
