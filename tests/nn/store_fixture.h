/*  store_fixture - rows that a device makes of stored frames, held to those that are made here.
 *  Threads: one. */
#pragma once
#include "tests/nn/fixture.h"

/*  Frames of bytes and floats, stacked and not, floats scaled and not, pictures shifted and not, all orders of places, puts between rows; and what is refused. */
void store_check(const place_t *place);
