/*  area - pictures made smaller: each new pixel is the mean of the area that it covers, parts of pixels by their share. Bit for
 *  bit what OpenCV's resize makes with INTER_AREA, in its order of single-precision sums.
 *
 *  Threads: an instance belongs to one thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint32_t width, height;
} area_size_t;

typedef struct area area_t;

/*  From pictures of one size to another one, which is not larger in either direction. */
area_t *area_new(area_size_t from, area_size_t to);
/*  Grey pictures of bytes, row by row. */
void area_shrink(area_t *self, const uint8_t *from, uint8_t *to);
void area_destroy(area_t *self);
