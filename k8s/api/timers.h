/*  timers - a heap of calls to be made at a time.
 *
 *  A number names a slot and how often that slot was used, so that forgetting costs a look and never hits a stranger.
 *  Calls of the same time come in the order in which they were asked for. Threads: one. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "k8s/api/loop.h"

typedef struct {
    uint64_t id;
    int64_t due_ns;
    uint64_t order;
    kube_timer_fn fn;
    void *ctx;
} kube_timer_t;

typedef struct {
    uint64_t uses; /* of this slot so far                  */
    size_t at;     /* where in the heap; SIZE_MAX = nowhere */
} kube_timer_slot_t;

/*  All zero: empty. */
typedef struct {
    kube_timer_t *heap; /* earliest first */
    size_t count, room;
    kube_timer_slot_t *slots;
    size_t slot_count, slot_room;
    uint32_t *free; /* slots that nobody uses */
    size_t free_count, free_room;
    uint64_t order;
} kube_timers_t;

void kube_timers_free(kube_timers_t *self);
uint64_t kube_timers_add(kube_timers_t *self, int64_t due_ns, kube_timer_fn fn, void *ctx);
void kube_timers_forget(kube_timers_t *self, uint64_t id);
/*  The earliest; NULL = none. Borrowed until the heap changes. */
const kube_timer_t *kube_timers_first(const kube_timers_t *self);
