#include "common/http/timers.h"
#include <stdbool.h>
#include <stdlib.h>
#include "common/base/mem.h"
#include "common/base/status.h"

enum { SLOT_BITS = 24 }; /* the rest of a number counts the uses of its slot: 2^40 of them */

void tt_timers_free(tt_timers_t *self)
{
    free(self->heap);
    free(self->slots);
    free(self->free);
    *self = (tt_timers_t){0};
}

static uint32_t s_slot(uint64_t id)
{
    return (uint32_t)(id & ((UINT64_C(1) << SLOT_BITS) - 1)) - 1;
}

static void s_put(tt_timers_t *self, size_t at, const tt_timer_t *timer)
{
    self->heap[at] = *timer;
    self->slots[s_slot(timer->id)].at = at;
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

static size_t s_room(size_t count, size_t room)
{
    return count < room ? room : room ? 2 * room : 16;
}

static uint32_t s_take_slot(tt_timers_t *self)
{
    if (self->free_count)
        return self->free[--self->free_count];
    TT_CHECK(self->slot_count < (1u << SLOT_BITS) - 1);
    self->slot_room = s_room(self->slot_count, self->slot_room);
    self->slots = tt_realloc(self->slots, tt_mul(self->slot_room, sizeof *self->slots));
    self->slots[self->slot_count] = (tt_timer_slot_t){.at = SIZE_MAX};
    return (uint32_t)self->slot_count++;
}

uint64_t tt_timers_add(tt_timers_t *self, int64_t due_ns, tt_timer_fn fn, void *ctx)
{
    const uint32_t slot = s_take_slot(self);
    const uint64_t id = self->slots[slot].uses++ << SLOT_BITS | (slot + 1);
    self->room = s_room(self->count, self->room);
    self->heap = tt_realloc(self->heap, tt_mul(self->room, sizeof *self->heap));
    const tt_timer_t timer = {.id = id, .due_ns = due_ns, .order = self->order++, .fn = fn, .ctx = ctx};
    s_rise(self, self->count++, timer);
    return id;
}

static void s_give_slot(tt_timers_t *self, uint32_t slot)
{
    self->slots[slot].at = SIZE_MAX;
    self->free_room = s_room(self->free_count, self->free_room);
    self->free = tt_realloc(self->free, tt_mul(self->free_room, sizeof *self->free));
    self->free[self->free_count++] = slot;
}

void tt_timers_forget(tt_timers_t *self, uint64_t id)
{
    const uint32_t slot = s_slot(id);
    const size_t at = id && slot < self->slot_count ? self->slots[slot].at : SIZE_MAX;
    if (at == SIZE_MAX || self->heap[at].id != id)
        return;
    s_give_slot(self, slot);
    const tt_timer_t last = self->heap[--self->count];
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
