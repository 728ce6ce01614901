#include "collector/carry.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"

void carry_init(carry_t *self, const tt_columns_t *columns, uint32_t envs)
{
    *self = (carry_t){.floats = columns->carry};
    if (self->floats)
        self->at = tt_aligned0(tt_mul(envs, carry_bytes(self)));
}

void carry_free(carry_t *self)
{
    free(self->at);
    *self = (carry_t){0};
}

tt_status_t carry_check(const tt_columns_t *columns, const tt_net_spec_t *spec)
{
    const uint32_t floats = tt_net_carry(spec);
    if (floats == columns->carry)
        return TT_OK;
    return tt_err(TT_INVALID, "the network carries %u numbers from step to step, the job's %u", floats, columns->carry);
}

void carry_end(const carry_t *self, uint32_t i, uint32_t count, const uint8_t *terminated, const uint8_t *truncated)
{
    if (!self->at)
        return;
    for (uint32_t k = 0; k < count; k++)
        if (terminated[k] | truncated[k])
            memset(carry_row(self, i + k), 0, carry_bytes(self));
}

tt_status_t carry_load(const carry_t *self, uint32_t i, const void *bytes, bool begins)
{
    float *row = carry_row(self, i);
    if (!row)
        return TT_OK;
    memcpy(row, bytes, carry_bytes(self));
    for (uint32_t k = 0; k < self->floats; k++)
        if (!isfinite(row[k]))
            return tt_err(TT_DATA, "what the policy carries into a saved env is not a number");
    if (begins)
        memset(row, 0, carry_bytes(self));
    return TT_OK;
}
