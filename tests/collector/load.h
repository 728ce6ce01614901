/*  load - a vec goes on from a saved state at once, as nobody else has it to.
 *  Threads: as the vec. */
#pragma once
#include "collector/vec.h"

static inline tt_status_t vec_load(tt_vec_t *self, uint32_t i, const void *bytes)
{
    uint64_t moves;
    tt_status_t status = tt_vec_begin_load(self, i, bytes);
    for (bool all = false; status == TT_OK && !all;)
        status = tt_vec_loaded(self, &all, &moves);
    return status;
}
