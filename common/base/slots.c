#include "common/base/slots.h"
#include <stdlib.h>
#include "common/base/mem.h"
#include "common/base/status.h"

enum { SLOT_BITS = 24 }; /* the rest of a number counts: 2^40 uses */

void tt_slots_free(tt_slots_t *self)
{
    free(self->all);
    free(self->free);
    *self = (tt_slots_t){0};
}

/*  There is room for all of them to be free. */
static size_t s_fresh(tt_slots_t *self)
{
    TT_CHECK(self->count < (1u << SLOT_BITS) - 1);
    if (self->count == self->room) {
        self->room = self->room ? 2 * self->room : 16;
        self->all = tt_realloc(self->all, tt_mul(self->room, sizeof *self->all));
        self->free = tt_realloc(self->free, tt_mul(self->room, sizeof *self->free));
    }
    return self->count++;
}

uint64_t tt_slots_add(tt_slots_t *self, void *thing)
{
    const size_t slot = self->free_count ? self->free[--self->free_count] : s_fresh(self);
    self->all[slot] = (tt_slot_t){.id = ++self->uses << SLOT_BITS | (slot + 1), .thing = thing};
    return self->all[slot].id;
}

tt_slot_t *tt_slots_find(const tt_slots_t *self, uint64_t id)
{
    const size_t slot = (size_t)(id & ((UINT64_C(1) << SLOT_BITS) - 1)) - 1;
    return slot < self->count && self->all[slot].id == id ? &self->all[slot] : NULL;
}

void tt_slots_remove(tt_slots_t *self, uint64_t id)
{
    tt_slot_t *slot = tt_slots_find(self, id);
    TT_CHECK(slot != NULL);
    *slot = (tt_slot_t){0};
    self->free[self->free_count++] = (uint32_t)(slot - self->all);
}
