#include "collector/area.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"

/*  What one old pixel adds to a new one, along one direction. */
typedef struct {
    uint32_t to, from;
    float share;
} part_t;

typedef struct {
    part_t *part;
    uint32_t count;
} side_t;

struct area {
    area_size_t from, to;
    side_t across, down;
    float *row, *sum; /* [to.width] of one old row, and of those that make a new one */
    uint32_t step[2]; /* old pixels for a new one, where that is a whole number both ways; else 0 */
};

static void s_add(side_t *side, uint32_t to, uint32_t from, double share)
{
    side->part[side->count++] = (part_t){.to = to, .from = from, .share = (float)share};
}

/*  In double, as OpenCV's tables; what is less than a thousandth of a pixel is left out. */
static side_t s_side(uint32_t from, uint32_t to)
{
    side_t side = {.part = tt_array0((size_t)from + 2 * (size_t)to, sizeof(part_t))};
    const double scale = 1.0 / ((double)to / from), least = 1e-3;
    for (uint32_t i = 0; i < to; i++) {
        const double begin = i * scale, end = begin + scale, width = fmin(scale, from - begin);
        uint32_t last = (uint32_t)floor(end), first = (uint32_t)ceil(begin);
        last = last > from - 1 ? from - 1 : last;
        first = first > last ? last : first;
        if (first - begin > least)
            s_add(&side, i, first - 1, (first - begin) / width);
        for (uint32_t k = first; k < last; k++)
            s_add(&side, i, k, 1.0 / width);
        if (end - last > least)
            s_add(&side, i, last, fmin(fmin(end - last, 1.0), width) / width);
    }
    return side;
}

area_t *area_new(area_size_t from, area_size_t to)
{
    area_t *self = tt_new0(sizeof *self);
    self->from = from;
    self->to = to;
    self->across = s_side(from.width, to.width);
    self->down = s_side(from.height, to.height);
    self->row = tt_array0(to.width, sizeof *self->row);
    self->sum = tt_array0(to.width, sizeof *self->sum);
    if (from.width % to.width == 0 && from.height % to.height == 0) {
        self->step[0] = from.width / to.width;
        self->step[1] = from.height / to.height;
    }
    return self;
}

void area_destroy(area_t *self)
{
    if (!self)
        return;
    free(self->across.part);
    free(self->down.part);
    free(self->row);
    free(self->sum);
    free(self);
}

static void s_round(const float *sum, uint32_t count, uint8_t *to)
{
    for (uint32_t i = 0; i < count; i++) {
        const float whole = rintf(sum[i]);
        to[i] = whole > 255 ? 255 : (uint8_t)whole;
    }
}

/*  Sums of whole numbers, then one product; four pixels are rounded upwards. */
static void s_shrink_whole(const area_t *self, const uint8_t *from, uint8_t *to)
{
    const uint32_t across = self->step[0], down = self->step[1];
    const float share = 1.0f / (float)(across * down);
    for (uint32_t y = 0; y < self->to.height; y++)
        for (uint32_t x = 0; x < self->to.width; x++) {
            const uint8_t *corner = from + (size_t)y * down * self->from.width + (size_t)x * across;
            uint32_t sum = 0;
            for (uint32_t i = 0; i < down; i++)
                for (uint32_t k = 0; k < across; k++)
                    sum += corner[(size_t)i * self->from.width + k];
            const bool four = across == 2 && down == 2;
            *to++ = four ? (uint8_t)((sum + 2) >> 2) : (uint8_t)rintf((float)sum * share);
        }
}

static void s_across(const area_t *self, const uint8_t *from)
{
    const part_t *part = self->across.part;
    memset(self->row, 0, self->to.width * sizeof *self->row);
    for (uint32_t k = 0; k < self->across.count; k++)
        self->row[part[k].to] += (float)from[part[k].from] * part[k].share;
}

/*  `first`: of those that make a new row. */
static void s_down(area_t *self, float share, bool first)
{
    if (first)
        memset(self->sum, 0, self->to.width * sizeof *self->sum);
    for (uint32_t x = 0; x < self->to.width; x++)
        self->sum[x] += share * self->row[x];
}

/*  A row between two new ones counts for both, and is looked at once. */
void area_shrink(area_t *self, const uint8_t *from, uint8_t *to)
{
    const part_t *part = self->down.part;
    const uint32_t parts = self->down.count, width = self->to.width;
    if (self->step[0]) {
        s_shrink_whole(self, from, to);
        return;
    }
    for (uint32_t k = 0; k < parts; k++) {
        if (k == 0 || part[k].from != part[k - 1].from)
            s_across(self, from + (size_t)part[k].from * self->from.width);
        s_down(self, part[k].share, k == 0 || part[k].to != part[k - 1].to);
        if (k + 1 == parts || part[k + 1].to != part[k].to)
            s_round(self->sum, width, to + (size_t)part[k].to * width);
    }
}
