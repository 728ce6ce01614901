/*  gather - rows of a table, and what a tower that reads the observation as one vector sees of them. */
#include <string.h>
#include "common/nn/cpu/cpu.h"
#include "common/nn/spec.h"

/*  One part to `to`: the plain numbers, whatever an encoder would divide them by. Returns its bytes in the row. */
static size_t s_part(const tt_part_t *part, const char *from, float *to)
{
    const uint8_t *bytes = (const uint8_t *)from;
    for (size_t i = 0; part->bytes && i < part->elements; i++)
        to[i] = (float)bytes[i];
    if (!part->bytes)
        memcpy(to, from, part->elements * sizeof *to);
    return tt_spec_part_bytes(part);
}

/*  Zeros stand behind a row since its memory was taken. */
static void s_parts(const tt_net_spec_t *spec, const char *from, float *to)
{
    for (uint32_t p = 0; p < spec->parts; p++) {
        from += s_part(&spec->part[p], from, to);
        to += spec->part[p].elements;
    }
}

static void s_flatten(const cpu_block_t *block)
{
    const cpu_net_t *self = block->net;
    float *x = block->lane->x;
    if (!self->parts)
        self->kernels->gather(block->rows, self->spec->obs, (const float *const *)block->from, x, self->obs16);
    for (size_t r = 0; self->parts && r < block->rows; r++)
        s_parts(self->spec, block->from[r], x + r * self->obs16);
}

/*  Row k of a table that lists frames: put together in the lane's memory. */
static const void *s_stacked(const cpu_block_t *block, size_t r, const tt_table_t *obs, size_t k)
{
    char *to = (char *)block->lane->stacked + r * block->net->stacked;
    tt_stack_row(obs->stack, obs->row + k * obs->stack->frames, to);
    return to;
}

static void s_find_stacked(cpu_block_t *block, const tt_table_t *obs, const uint32_t *row, size_t at)
{
    TT_CHECK(block->lane->stacked);
    for (size_t r = 0; r < block->rows; r++)
        block->from[r] = s_stacked(block, r, obs, row ? row[r] : at + r);
}

static void s_find(cpu_block_t *block, const tt_table_t *obs, const uint32_t *row, size_t at)
{
    for (size_t r = 0; r < block->rows; r++) {
        const size_t k = row ? row[r] : at + r;
        block->from[r] = obs->row ? obs->row[k] : obs->rows + k * obs->bytes;
    }
}

void cpu_gather(cpu_block_t *block, const tt_table_t *obs, const uint32_t *row, size_t at)
{
    if (obs->stack)
        s_find_stacked(block, obs, row, at);
    else
        s_find(block, obs, row, at);
    if (block->lane->x)
        s_flatten(block);
}
