#include "cli/gif.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"

enum {
    COLOURS = 256,
    LEVELS = 6,      /* of each of three colours, where there are too many */
    CODES = 4095,    /* LZW codes are 12 bits at most                     */
    SLOTS = 1 << 14, /* of the table of strings                           */
    SUB_BLOCK = 255,
    SHORTEST = 2,    /* hundredths that a picture stays at least */
    AT_THE_END = 100 /* of the last of an episode                */
};

struct gif {
    uint32_t width, height;
    double fps;
    uint64_t pictures;
    uint64_t shown; /* when the newest that was written begins, in hundredths */
    uint64_t begun; /* when this episode did, and its pictures before */
    uint64_t before;
    size_t delay_at; /* where its delay stands in `out`; 0: none was written */
    uint8_t *now;    /* what a viewer sees                                   */
    uint8_t *index;  /* of a box                                             */
    tt_buf_t out;
    tt_status_t status;
    uint32_t key[SLOTS]; /* 1 + (string << 8 | pixel)                        */
    uint16_t code[SLOTS];
    uint32_t bits, bit_count; /* codes on their way */
    uint8_t block[SUB_BLOCK];
    uint32_t block_size;
};

typedef struct {
    uint32_t left, top, width, height;
} box_t;

typedef struct {
    uint8_t colour[COLOURS][3];
    uint32_t colours;
} palette_t;

/* ---- bytes ----------------------------------------------------------------------------------------------------------- */

static void s_add(gif_t *self, const void *data, size_t size)
{
    if (self->status == TT_OK)
        self->status = tt_buf_add(&self->out, data, size);
}

static void s_byte(gif_t *self, uint32_t value)
{
    const uint8_t byte = (uint8_t)value;
    s_add(self, &byte, 1);
}

static void s_word(gif_t *self, uint32_t value)
{
    s_byte(self, value & 0xff);
    s_byte(self, value >> 8);
}

gif_t *gif_new(uint32_t width, uint32_t height, double fps)
{
    gif_t *self = tt_new0(sizeof *self);
    self->width = width;
    self->height = height;
    self->fps = fps;
    self->now = tt_array0((size_t)width * height, 3);
    self->index = tt_array0(width, height);
    tt_buf_init(&self->out, GIF_BYTES_MAX);
    s_add(self, "GIF89a", 6);
    s_word(self, width);
    s_word(self, height);
    s_add(self, "\x70\0\0", 3); /* no palette for all; background, aspect */
    s_add(self, "\x21\xff\x0bNETSCAPE2.0\x03\x01\0\0\0", 19);
    return self;
}

void gif_destroy(gif_t **self_p)
{
    gif_t *self = *self_p;
    if (!self)
        return;
    free(self->now);
    free(self->index);
    tt_buf_free(&self->out);
    free(self);
    *self_p = NULL;
}

/* ---- LZW ------------------------------------------------------------------------------------------------------------- */

static void s_flush_block(gif_t *self)
{
    if (!self->block_size)
        return;
    s_byte(self, self->block_size);
    s_add(self, self->block, self->block_size);
    self->block_size = 0;
}

static void s_put_byte(gif_t *self)
{
    self->block[self->block_size++] = (uint8_t)self->bits;
    self->bits >>= 8;
    if (self->block_size == SUB_BLOCK)
        s_flush_block(self);
}

static void s_put_code(gif_t *self, uint32_t code, uint32_t size)
{
    self->bits |= code << self->bit_count;
    for (self->bit_count += size; self->bit_count >= 8; self->bit_count -= 8)
        s_put_byte(self);
}

/*  Where the string goes on with that pixel, or is to be put. */
static uint32_t s_slot(const gif_t *self, uint32_t string, uint8_t pixel)
{
    const uint32_t key = 1 + (string << 8 | pixel);
    uint32_t slot = key * 2654435761u >> 18;
    while (self->key[slot] && self->key[slot] != key)
        slot = (slot + 1) % SLOTS;
    return slot;
}

static void s_compress(gif_t *self, const uint8_t *pixel, size_t count, uint32_t least)
{
    const uint32_t clear = 1u << least, end = clear + 1;
    uint32_t size = least + 1, next = end + 1, string = pixel[0];
    self->bits = self->bit_count = 0;
    memset(self->key, 0, sizeof self->key);
    s_put_code(self, clear, size);
    for (size_t i = 1; i < count; i++) {
        const uint32_t slot = s_slot(self, string, pixel[i]);
        if (self->key[slot]) {
            string = self->code[slot];
            continue;
        }
        s_put_code(self, string, size);
        if (next < CODES) {
            self->key[slot] = 1 + (string << 8 | pixel[i]);
            self->code[slot] = (uint16_t)next;
            size += next == 1u << size;
            next++;
        } else {
            s_put_code(self, clear, size);
            memset(self->key, 0, sizeof self->key);
            size = least + 1;
            next = end + 1;
        }
        string = pixel[i];
    }
    s_put_code(self, string, size);
    size += next == 1u << size; /* the reader has made one more of it, too */
    s_put_code(self, end, size);
    if (self->bit_count)
        s_put_byte(self);
    s_flush_block(self);
}

/* ---- colours --------------------------------------------------------------------------------------------------------- */

static uint32_t s_hash(const uint8_t *rgb)
{
    return ((uint32_t)rgb[0] << 16 | (uint32_t)rgb[1] << 8 | rgb[2]) * 2654435761u >> 22; /* of 1024 */
}

/*  The number of a colour, a new one where it is unknown; COLOURS: there are too many. */
static uint32_t s_find(palette_t *palette, uint16_t *place, const uint8_t *rgb)
{
    uint32_t at = s_hash(rgb);
    for (; place[at]; at = (at + 1) % 1024)
        if (memcmp(palette->colour[place[at] - 1], rgb, 3) == 0)
            return place[at] - 1u;
    if (palette->colours == COLOURS)
        return COLOURS;
    memcpy(palette->colour[palette->colours], rgb, 3);
    place[at] = (uint16_t)++palette->colours;
    return palette->colours - 1;
}

static const uint8_t *s_at(const gif_t *self, const uint8_t *rgb, const box_t *box, size_t i)
{
    const size_t x = box->left + i % box->width, y = box->top + i / box->width;
    return rgb + (y * self->width + x) * 3;
}

/*  The box's pixels as numbers of colours; false: there are too many. */
static bool s_exact(gif_t *self, const uint8_t *rgb, const box_t *box, palette_t *palette)
{
    uint16_t place[1024] = {0};
    palette->colours = 0;
    for (size_t i = 0; i < (size_t)box->width * box->height; i++) {
        const uint32_t number = s_find(palette, place, s_at(self, rgb, box, i));
        if (number == COLOURS)
            return false;
        self->index[i] = (uint8_t)number;
    }
    return true;
}

static uint32_t s_nearest(uint8_t level)
{
    return (level * (LEVELS - 1u) + 127) / 255;
}

static void s_cube(gif_t *self, const uint8_t *rgb, const box_t *box, palette_t *palette)
{
    palette->colours = LEVELS * LEVELS * LEVELS;
    for (uint32_t i = 0; i < palette->colours; i++) {
        const uint32_t level[3] = {i / (LEVELS * LEVELS), i / LEVELS % LEVELS, i % LEVELS};
        for (int c = 0; c < 3; c++)
            palette->colour[i][c] = (uint8_t)(level[c] * 255 / (LEVELS - 1));
    }
    for (size_t i = 0; i < (size_t)box->width * box->height; i++) {
        const uint8_t *pixel = s_at(self, rgb, box, i);
        self->index[i] = (uint8_t)((s_nearest(pixel[0]) * LEVELS + s_nearest(pixel[1])) * LEVELS + s_nearest(pixel[2]));
    }
}

/* ---- pictures -------------------------------------------------------------------------------------------------------- */

/*  What has changed, at least a pixel. */
static box_t s_changed(const gif_t *self, const uint8_t *rgb)
{
    const size_t row = (size_t)self->width * 3;
    uint32_t top = 0, bottom = self->height, left = self->width, right = 0;
    if (!self->delay_at)
        return (box_t){0, 0, self->width, self->height};
    while (top < bottom && memcmp(rgb + top * row, self->now + top * row, row) == 0)
        top++;
    while (bottom > top && memcmp(rgb + (bottom - 1) * row, self->now + (bottom - 1) * row, row) == 0)
        bottom--;
    for (uint32_t y = top; y < bottom; y++) {
        const uint8_t *a = rgb + y * row, *b = self->now + y * row;
        for (uint32_t x = 0; x < left; x++)
            left = memcmp(a + 3 * x, b + 3 * x, 3) ? x : left;
        for (uint32_t x = self->width; x > right; x--)
            right = memcmp(a + 3 * (x - 1), b + 3 * (x - 1), 3) ? x : right;
    }
    return top < bottom ? (box_t){left, top, right - left, bottom - top} : (box_t){0, 0, 1, 1};
}

static void s_set_delay(gif_t *self, uint64_t hundredths)
{
    const uint64_t delay = hundredths > UINT16_MAX ? UINT16_MAX : hundredths;
    if (!self->delay_at || self->status != TT_OK)
        return;
    self->out.data[self->delay_at] = (char)(delay & 0xff);
    self->out.data[self->delay_at + 1] = (char)(delay >> 8);
}

static void s_write(gif_t *self, const uint8_t *rgb)
{
    const box_t box = s_changed(self, rgb);
    palette_t palette = {.colours = 0};
    uint32_t depth = 1;
    if (!s_exact(self, rgb, &box, &palette))
        s_cube(self, rgb, &box, &palette);
    while (1u << depth < palette.colours)
        depth++;
    s_add(self, "\x21\xf9\x04\x04", 4); /* it stays where the next one has nothing to say */
    self->delay_at = self->out.size;
    s_word(self, AT_THE_END);
    s_add(self, "\0\0\x2c", 3);
    s_word(self, box.left);
    s_word(self, box.top);
    s_word(self, box.width);
    s_word(self, box.height);
    s_byte(self, 0x80 | (depth - 1));
    s_add(self, palette.colour, ((size_t)3) << depth);
    s_byte(self, depth < 2 ? 2 : depth);
    s_compress(self, self->index, (size_t)box.width * box.height, depth < 2 ? 2 : depth);
    s_byte(self, 0);
    memcpy(self->now, rgb, (size_t)self->width * self->height * 3);
}

tt_status_t gif_add(gif_t *self, const uint8_t *rgb, bool last)
{
    const uint64_t when = self->begun + (uint64_t)(100.0 * (double)(self->pictures - self->before) / self->fps);
    const bool first = self->pictures == self->before;
    self->pictures++;
    if (!first && !last && when < self->shown + SHORTEST)
        return TT_OK;
    const uint64_t now = first || when >= self->shown + SHORTEST ? when : self->shown + SHORTEST;
    s_set_delay(self, now - self->shown);
    self->shown = now;
    s_write(self, rgb);
    if (last) {
        self->begun = self->shown + AT_THE_END;
        self->before = self->pictures;
    }
    if (self->status != TT_OK)
        return tt_err(
            TT_INVALID, "an animation of more than %d MiB: fewer episodes, or --max-steps", GIF_BYTES_MAX >> 20);
    return TT_OK;
}

tt_status_t gif_finish(gif_t *self, const tt_buf_t **out)
{
    s_byte(self, 0x3b);
    *out = &self->out;
    return self->status;
}
