#include "collector/draw.h"
#include <math.h>
#include "common/base/status.h"

/*  The first pixel whose middle is not before x; 0 .. limit. */
static uint32_t s_pixel(double x, uint32_t limit)
{
    const double first = ceil(x - 0.5);
    return first <= 0 ? 0 : first >= limit ? limit : (uint32_t)first;
}

/*  Pixels of a row whose middles lie in from .. to. */
static void s_run(draw_canvas_t *self, uint32_t row, double from, double to, draw_colour_t colour)
{
    const uint32_t end = s_pixel(to, self->width);
    for (uint32_t i = s_pixel(from, self->width); i < end; i++) {
        uint8_t *pixel = self->rgb + ((uint64_t)row * self->width + i) * 3;
        pixel[0] = colour.red;
        pixel[1] = colour.green;
        pixel[2] = colour.blue;
    }
}

void draw_rectangle(draw_canvas_t *self, double x, double y, double width, double height, draw_colour_t colour)
{
    const uint32_t end = s_pixel(y + height, self->height);
    for (uint32_t row = s_pixel(y, self->height); row < end; row++)
        s_run(self, row, x, x + width, colour);
}

/*  Where the polygon's border crosses a row's middle, ascending. */
static uint32_t s_crossings(const draw_point_t *point, uint32_t points, double y, double *out)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < points; i++) {
        const draw_point_t a = point[i], b = point[(i + 1) % points];
        if ((a.y <= y) == (b.y <= y))
            continue;
        const double x = a.x + (y - a.y) / (b.y - a.y) * (b.x - a.x);
        uint32_t at = count++;
        for (; at && out[at - 1] > x; at--)
            out[at] = out[at - 1];
        out[at] = x;
    }
    return count;
}

void draw_polygon(draw_canvas_t *self, const draw_point_t *point, uint32_t points, draw_colour_t colour)
{
    double top = point->y, bottom = point->y, x[DRAW_POINTS_MAX];
    TT_CHECK(points <= DRAW_POINTS_MAX);
    for (uint32_t i = 1; i < points; i++) {
        top = fmin(top, point[i].y);
        bottom = fmax(bottom, point[i].y);
    }
    const uint32_t end = s_pixel(bottom, self->height);
    for (uint32_t row = s_pixel(top, self->height); row < end; row++) {
        const uint32_t count = s_crossings(point, points, row + 0.5, x);
        for (uint32_t i = 0; i + 1 < count; i += 2)
            s_run(self, row, x[i], x[i + 1], colour);
    }
}

void draw_disc(draw_canvas_t *self, double x, double y, double radius, draw_colour_t colour)
{
    const uint32_t end = s_pixel(y + radius, self->height);
    for (uint32_t row = s_pixel(y - radius, self->height); row < end; row++) {
        const double off = row + 0.5 - y, half = sqrt(fmax(radius * radius - off * off, 0));
        s_run(self, row, x - half, x + half, colour);
    }
}

void draw_line(draw_canvas_t *self, draw_point_t from, draw_point_t to, double thickness, draw_colour_t colour)
{
    const double length = hypot(to.x - from.x, to.y - from.y);
    if (length <= 0)
        return;
    const double x = (to.y - from.y) / length * thickness / 2, y = (from.x - to.x) / length * thickness / 2;
    const draw_point_t corner[4] = {
        {from.x + x, from.y + y}, {to.x + x, to.y + y}, {to.x - x, to.y - y}, {from.x - x, from.y - y}};
    draw_polygon(self, corner, 4, colour);
}
