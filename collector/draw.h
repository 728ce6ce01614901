/*  draw - shapes into a picture of bytes: discs, polygons, lines; no antialiasing, so that colours are few and files small.
 *
 *  Coordinates are pixels, x to the right, y down; what lies outside is left out.
 *  Threads: pure. */
#pragma once
#include <stdint.h>

typedef struct {
    uint32_t width, height;
    uint8_t *rgb; /* [height][width][3] */
} draw_canvas_t;

typedef struct {
    uint8_t red, green, blue;
} draw_colour_t;

typedef struct {
    double x, y;
} draw_point_t;

enum { DRAW_POINTS_MAX = 16 };

void draw_rectangle(draw_canvas_t *self, double x, double y, double width, double height, draw_colour_t colour);
/*  What lies inside by the even-odd rule; 3 to DRAW_POINTS_MAX points. */
void draw_polygon(draw_canvas_t *self, const draw_point_t *point, uint32_t points, draw_colour_t colour);
void draw_disc(draw_canvas_t *self, double x, double y, double radius, draw_colour_t colour);
void draw_line(draw_canvas_t *self, draw_point_t from, draw_point_t to, double thickness, draw_colour_t colour);
