#include "common/base/stack.h"
#include <string.h>

void tt_stack_row(const tt_stack_t *self, const void *const *frame, void *row)
{
    for (uint32_t p = 0; p < self->parts; p++) {
        const size_t bytes = self->part[p].bytes;
        char *to = (char *)row + self->part[p].to;
        for (uint32_t k = 0; k < self->frames; k++)
            memcpy(to + k * bytes, (const char *)frame[k] + self->part[p].from, bytes);
    }
}

void tt_stack_pad(const tt_stack_t *self, const void **frame, uint32_t back, const void *zero)
{
    const uint32_t first = self->frames - 1 - back;
    for (uint32_t k = 0; k < first; k++)
        frame[k] = self->pad == TT_PAD_ZERO ? zero : frame[first];
}
