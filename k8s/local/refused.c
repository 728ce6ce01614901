/*  refused - pods that could not be made. Without a memory of them a plan that fails would be made again and again, at once. */
#include <stdint.h>
#include <stdlib.h>
#include "common/base/clock.h"
#include "common/base/mem.h"
#include "k8s/local/run.h"

enum { AGAIN_MS = 1000 };

static void s_drop(run_t *self, size_t at)
{
    free((char *)(uintptr_t)self->refused[at].words);
    self->refused[at] = self->refused[--self->refused_count];
}

void run_refuse(run_t *self, int group, tt_status_t status)
{
    for (size_t i = self->refused_count; i-- > 0;)
        if (self->refused[i].group == group)
            s_drop(self, i);
    self->refused = tt_realloc(self->refused, tt_mul(self->refused_count + 1, sizeof *self->refused));
    self->refused[self->refused_count++] = (front_refusal_t){.group = group,
        .words = tt_strdup(tt_err_text()),
        .reason = "Invalid",
        .until_ms = status == TT_NOT_FOUND ? INT64_MAX : tt_now_ms(self->clock) + AGAIN_MS};
}

int64_t run_refused_until(run_t *self)
{
    const int64_t now_ms = tt_now_ms(self->clock), generation = run_info(self).generation;
    int64_t next_ms = -1;
    for (size_t i = self->refused_count; i-- > 0;) {
        const int64_t until_ms = self->refused[i].until_ms;
        if (until_ms <= now_ms || self->refused_generation != generation)
            s_drop(self, i);
        else if (until_ms < INT64_MAX && (next_ms < 0 || until_ms < next_ms))
            next_ms = until_ms;
    }
    self->refused_generation = generation;
    return next_ms;
}

void run_refused_free(run_t *self)
{
    while (self->refused_count)
        s_drop(self, self->refused_count - 1);
    free(self->refused);
}
