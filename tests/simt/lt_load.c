/*  lt_load - the stand-in for cuBLASLt in place of NVIDIA's. */
#include <stdlib.h>
#include <string.h>
#include "common/nn/cuda/lt.h"

tt_status_t cuda_lt_load(const cuda_lt_t **out)
{
    static const cuda_lt_t calls = {
#define LT_SLOT(name) .name = name,
        LT_CALLS(LT_SLOT)
#undef LT_SLOT
    };
    const char *wish = getenv("TT_SIMT_LT");
    if (wish && strcmp(wish, "missing") == 0)
        return tt_err(TT_UNSUPPORTED, "there is no cuBLASLt, for TT_SIMT_LT is missing; say learner.precision: exact");
    *out = &calls;
    return TT_OK;
}
