/*  slots - numbers for what comes and goes by the thousand. A number names a slot and how often slots were given away, so that looking
 *  it up costs an index and never finds a stranger.
 *
 *  Threads: an instance belongs to one thread. */
#pragma once
#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint64_t id; /* 0 = free                               */
    void *thing; /* NULL = free                            */
    size_t at;   /* what else its owner wants to find by it */
} tt_slot_t;

/*  All zero: empty. */
typedef struct {
    tt_slot_t *all; /* count of them, free ones among them */
    uint32_t *free;
    size_t count, room, free_count;
    uint64_t uses;
} tt_slots_t;

void tt_slots_free(tt_slots_t *self);
/*  A number that was never given before and is not 0. */
uint64_t tt_slots_add(tt_slots_t *self, void *thing);
/*  NULL: nothing has that number (any more). Borrowed until the next is added. */
tt_slot_t *tt_slots_find(const tt_slots_t *self, uint64_t id);
/*  It has that number. */
void tt_slots_remove(tt_slots_t *self, uint64_t id);
