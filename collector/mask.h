/*  mask - which choices an env allows: bytes 0 or 1 for every choice of every discrete element of an action, in order.
 *
 *  Threads: pure. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "common/rl/columns.h"

/*  Make every byte 0 or 1. false: an element has no choice left; its action column and its number there. */
bool mask_settle(const tt_columns_t *columns, uint8_t *mask, uint32_t *column, uint32_t *element);
/*  Is the action (the rows of its columns, as stored and in range) allowed? false: the element at fault. */
bool mask_allows(
    const tt_columns_t *columns, const uint8_t *mask, const void *const *action, uint32_t *column, uint32_t *element);
