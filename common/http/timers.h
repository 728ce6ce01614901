/*  timers - a heap of calls to be made at a time.
 *
 *  Numbers are those of slots.h, so that forgetting costs a look and never hits a stranger. Calls of the same time come in the order in which they were asked for. Threads: one. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "common/base/slots.h"
#include "common/http/reactor.h"

typedef struct {
    uint64_t id;
    int64_t due_ns;
    uint64_t order;
    tt_timer_fn fn;
    void *ctx;
} tt_timer_t;

/*  All zero: empty. */
typedef struct {
    tt_timer_t *heap; /* earliest first */
    size_t count, room;
    tt_slots_t slots; /* `at`: where in the heap */
    uint64_t order;
} tt_timers_t;

void tt_timers_free(tt_timers_t *self);
uint64_t tt_timers_add(tt_timers_t *self, int64_t due_ns, tt_timer_fn fn, void *ctx);
void tt_timers_forget(tt_timers_t *self, uint64_t id);
/*  The earliest; NULL = none. Borrowed until the heap changes. */
const tt_timer_t *tt_timers_first(const tt_timers_t *self);
