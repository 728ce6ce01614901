/*  timers - a heap of calls to be made at a time.
 *
 *  A number names a slot and how often that slot was used, so that forgetting costs a look and never hits a stranger.
 *  Calls of the same time come in the order in which they were asked for. Threads: one. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "common/http/reactor.h"

typedef struct {
    uint64_t id;
    int64_t due_ns;
    uint64_t order;
    tt_timer_fn fn;
    void *ctx;
} tt_timer_t;

typedef struct {
    uint64_t uses; /* of this slot so far                  */
    size_t at;     /* where in the heap; SIZE_MAX = nowhere */
} tt_timer_slot_t;

/*  All zero: empty. */
typedef struct {
    tt_timer_t *heap; /* earliest first */
    size_t count, room;
    tt_timer_slot_t *slots;
    size_t slot_count, slot_room;
    uint32_t *free; /* slots that nobody uses */
    size_t free_count, free_room;
    uint64_t order;
} tt_timers_t;

void tt_timers_free(tt_timers_t *self);
uint64_t tt_timers_add(tt_timers_t *self, int64_t due_ns, tt_timer_fn fn, void *ctx);
void tt_timers_forget(tt_timers_t *self, uint64_t id);
/*  The earliest; NULL = none. Borrowed until the heap changes. */
const tt_timer_t *tt_timers_first(const tt_timers_t *self);
