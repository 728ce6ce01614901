#include "collector/shares.h"
#include <stdlib.h>
#include "common/base/mem.h"

void shares_init(shares_t *self, tt_vec_t *vec, uint32_t T)
{
    *self = (shares_t){.vec = vec, .T = T, .count = tt_vec_shares(vec)};
    self->share = tt_array0(self->count, sizeof *self->share);
    for (uint32_t k = 0; k < self->count; k++)
        tt_vec_share(vec, k, &self->share[k].at.first, &self->share[k].at.E);
}

void shares_free(shares_t *self)
{
    free(self->share);
    *self = (shares_t){0};
}

void shares_begin(shares_t *self)
{
    for (uint32_t k = 0; k < self->count; k++) {
        TT_CHECK(!self->share[k].plays);
        self->share[k].at.t = 0;
    }
}

uint32_t shares_least(const shares_t *self)
{
    uint32_t t = self->share[0].at.t;
    for (uint32_t k = 1; k < self->count; k++)
        t = self->share[k].at.t < t ? self->share[k].at.t : t;
    return t;
}

/* ---- runs -------------------------------------------------------------------------------------------------------- */

/*  Share a, and b behind it, can be seen at once. */
static bool s_are_together(const shares_t *self, uint32_t a, uint32_t b)
{
    return b < self->count && self->share[a].at.t == self->share[b].at.t &&
           tt_vec_moves(self->vec, a) == tt_vec_moves(self->vec, b);
}

static bool s_is_idle(const shares_t *self, uint32_t k)
{
    return !self->share[k].plays && self->share[k].at.t < self->T;
}

bool shares_idle(const shares_t *self, uint32_t *from, uint32_t *end)
{
    while (*from < self->count && !s_is_idle(self, *from))
        ++*from;
    if (*from == self->count)
        return false;
    *end = *from + 1;
    while (s_are_together(self, *from, *end) && s_is_idle(self, *end))
        ++*end;
    return true;
}

uint32_t shares_end(const shares_t *self, uint32_t from)
{
    uint32_t end = from + 1;
    while (s_are_together(self, from, end))
        end++;
    return end;
}

run_t shares_run(const shares_t *self, uint32_t from, uint32_t end)
{
    const run_t *first = &self->share[from].at, *last = &self->share[end - 1].at;
    return (run_t){first->first, last->first + last->E - first->first, first->t};
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

tt_status_t shares_send(shares_t *self, uint32_t from, uint32_t end, const void *const *action, float *reward,
    uint8_t *terminated, uint8_t *truncated)
{
    for (uint32_t k = from; k < end; k++) {
        TT_TRY(tt_vec_send(self->vec, k, action, reward, terminated, truncated));
        self->share[k].plays = true;
    }
    return TT_OK;
}

tt_status_t shares_recv(shares_t *self, bool waits, run_t *out)
{
    uint32_t k = 0;
    TT_TRY(tt_vec_recv(self->vec, waits, &k));
    self->share[k].plays = false;
    *out = self->share[k].at;
    self->share[k].at.t++;
    return TT_OK;
}

static bool s_any_plays(const shares_t *self)
{
    for (uint32_t k = 0; k < self->count; k++)
        if (self->share[k].plays)
            return true;
    return false;
}

tt_status_t shares_settle(shares_t *self)
{
    run_t run;
    while (s_any_plays(self))
        TT_TRY(shares_lost(self, shares_recv(self, true, &run)));
    return TT_OK;
}

tt_status_t shares_lost(shares_t *self, tt_status_t status)
{
    for (uint32_t k = 0; status != TT_OK && k < self->count; k++)
        self->share[k].plays = false;
    return status;
}
