/*  canvas - lines of text for a terminal that never wrap: clipped to its width, counted in cells (UTF-8, wide and combining
 *  characters), without control characters, with or without colour.
 *
 *  Threads: plain data. */
#pragma once
#include <stdbool.h>
#include "common/base/buf.h"

typedef struct {
    unsigned width, height; /* cells; nothing is drawn in the last column, where terminals differ */
    bool colour, unicode;
} screen_t;

typedef enum { INK_PLAIN, INK_DIM, INK_BOLD, INK_GOOD, INK_WARN, INK_HINT, INK_COUNT } ink_t;

/*  What the terminal behind a descriptor is like now: its size is asked for each time, so that a change is followed.
 *  Colours unless NO_COLOR is set (no-color.org); UTF-8 when LC_ALL, LC_CTYPE or LANG says so. */
screen_t screen_look(int fd);

typedef struct {
    screen_t screen;
    tt_buf_t text;
    unsigned column; /* of the line in hand, cells          */
    unsigned lines;  /* ended                               */
    unsigned widest; /* line, cells                         */
    unsigned indent; /* where a line that goes on begins     */
    bool full;       /* of this line nothing more fits       */
} canvas_t;

void canvas_init(canvas_t *self, const screen_t *screen);
void canvas_free(canvas_t *self);
/*  Cells that the line in hand has left. */
unsigned canvas_room(const canvas_t *self);
/*  Append to the line in hand; what does not fit ends in an ellipsis. */
void canvas_put(canvas_t *self, ink_t ink, const char *text);
/*  Blanks up to a column. */
void canvas_tab(canvas_t *self, unsigned column);
/*  A bar of so many cells, filled to a part of 0 .. 1. */
void canvas_bar(canvas_t *self, ink_t ink, unsigned cells, double part);
void canvas_end_line(canvas_t *self);

/*  Cells that a text takes. */
unsigned canvas_cells(const screen_t *screen, const char *text);
