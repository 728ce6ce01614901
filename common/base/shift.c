#include "common/base/shift.h"
#include <string.h>

/*  `count` times a place, side by side; it may be one of them. */
static void s_repeat(char *to, const char *place, uint32_t count, uint32_t bytes)
{
    if (bytes == 1)
        memset(to, *place, count);
    else
        for (uint32_t i = 0; i < count; i++)
            memmove(to + (size_t)i * bytes, place, bytes);
}

/*  A line of another's places, or of its own: those at its edges are still what they were when they are repeated. */
static void s_line(const tt_shift_t *self, int by, const char *from, char *to)
{
    const uint32_t far = (uint32_t)(by < 0 ? -by : by), gone = far < self->width ? far : self->width;
    const size_t edge = (size_t)(self->width - 1) * self->place, cut = (size_t)gone * self->place;
    const size_t kept = (size_t)self->width * self->place - cut;
    if (by >= 0) {
        memmove(to, from + cut, kept);
        s_repeat(to + kept, from + edge, gone, self->place);
    } else {
        memmove(to + cut, from, kept);
        s_repeat(to, from, gone, self->place);
    }
}

/*  Lines in the order in which none is written before it was read. */
static void s_plane(const tt_shift_t *self, const int8_t by[2], char *plane)
{
    const size_t line = (size_t)self->width * self->place;
    for (uint32_t i = 0; i < self->height; i++) {
        const uint32_t y = by[0] < 0 ? self->height - 1 - i : i;
        s_line(self, by[1], plane + tt_shifted(y, by[0], self->height) * line, plane + y * line);
    }
}

void tt_shift_row(const tt_shift_t *self, size_t i, void *row)
{
    const int8_t *by = self->by[i];
    const size_t plane = (size_t)self->height * self->width * self->place;
    for (uint32_t p = 0; (by[0] || by[1]) && p < self->planes; p++)
        s_plane(self, by, (char *)row + self->at + p * plane);
}
