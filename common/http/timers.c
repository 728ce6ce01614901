#include "common/http/timers.h"
#include <stdbool.h>
#include <stdlib.h>
#include "common/base/mem.h"

void tt_timers_free(tt_timers_t *self)
{
    free(self->heap);
    tt_slots_free(&self->slots);
    *self = (tt_timers_t){0};
}

static void s_put(tt_timers_t *self, size_t at, const tt_timer_t *timer)
{
    self->heap[at] = *timer;
    tt_slots_find(&self->slots, timer->id)->at = at;
}

static bool s_before(const tt_timer_t *a, const tt_timer_t *b)
{
    return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->order < b->order;
}

/* Find the place of a timer that belongs at `at` or above it. */
static void s_rise(tt_timers_t *self, size_t at, tt_timer_t timer)
{
    for (; at > 0 && s_before(&timer, &self->heap[(at - 1) / 2]); at = (at - 1) / 2)
        s_put(self, at, &self->heap[(at - 1) / 2]);
    s_put(self, at, &timer);
}

/* The same at `at` or below it. */
static void s_sink(tt_timers_t *self, size_t at, tt_timer_t timer)
{
    for (size_t child; (child = 2 * at + 1) < self->count; at = child) {
        if (child + 1 < self->count && s_before(&self->heap[child + 1], &self->heap[child]))
            child++;
        if (!s_before(&self->heap[child], &timer))
            break;
        s_put(self, at, &self->heap[child]);
    }
    s_put(self, at, &timer);
}

uint64_t tt_timers_add(tt_timers_t *self, int64_t due_ns, tt_timer_fn fn, void *ctx)
{
    const uint64_t id = tt_slots_add(&self->slots, self);
    if (self->count == self->room) {
        self->room = self->room ? 2 * self->room : 16;
        self->heap = tt_realloc(self->heap, tt_mul(self->room, sizeof *self->heap));
    }
    const tt_timer_t timer = {.id = id, .due_ns = due_ns, .order = self->order++, .fn = fn, .ctx = ctx};
    s_rise(self, self->count++, timer);
    return id;
}

void tt_timers_forget(tt_timers_t *self, uint64_t id)
{
    const tt_slot_t *slot = tt_slots_find(&self->slots, id);
    if (!slot)
        return;
    const size_t at = slot->at;
    const tt_timer_t last = self->heap[--self->count];
    tt_slots_remove(&self->slots, id);
    if (at == self->count)
        return;
    if (at > 0 && s_before(&last, &self->heap[(at - 1) / 2]))
        s_rise(self, at, last);
    else
        s_sink(self, at, last);
}

const tt_timer_t *tt_timers_first(const tt_timers_t *self)
{
    return self->count ? &self->heap[0] : NULL;
}
