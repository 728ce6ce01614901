#include "cli/canvas.h"
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>

enum { TEXT_MAX = 1 << 20, LEAST = 2, WIDTH = 80, HEIGHT = 24 };

/* ---- the terminal ------------------------------------------------------------------------------------------------ */

static bool s_speaks_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < TT_COUNT(names); i++) {
        const char *value = getenv(names[i]);
        if (value && value[0])
            return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
    }
    return false;
}

screen_t screen_look(int fd)
{
    struct winsize size = {0};
    const char *no_color = getenv("NO_COLOR");
    if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0)
        size = (struct winsize){.ws_col = WIDTH, .ws_row = HEIGHT};
    return (screen_t){.width = size.ws_col < LEAST ? LEAST : size.ws_col,
        .height = size.ws_row < LEAST ? LEAST : size.ws_row,
        .colour = !(no_color && no_color[0]),
        .unicode = s_speaks_utf8()};
}

/* ---- characters and their cells ---------------------------------------------------------------------------------- */

/*  One character of well-formed UTF-8 (RFC 3629); 0: it is none. */
static size_t s_decode(const char *text, uint32_t *code)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *byte = (const unsigned char *)text;
    const size_t length = byte[0] < 0x80 ? 1 : byte[0] >= 0xf0 ? 4 : byte[0] >= 0xe0 ? 3 : 2;
    if (length == 1) {
        *code = byte[0];
        return 1;
    }
    if (byte[0] < 0xc2 || byte[0] > 0xf4)
        return 0;
    *code = byte[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((byte[i] & 0xc0) != 0x80)
            return 0;
        *code = *code << 6 | (byte[i] & 0x3fu);
    }
    return *code < least[length] || *code > 0x10ffff || (*code >= 0xd800 && *code < 0xe000) ? 0 : length;
}

typedef struct {
    uint32_t first, last;
} range_t;

static bool s_in(const range_t *ranges, size_t count, uint32_t code)
{
    for (size_t i = 0; i < count; i++)
        if (code >= ranges[i].first && code <= ranges[i].last)
            return true;
    return false;
}

/*  Good enough for names: combining marks and joiners take no cell, East Asian wide characters and emoji two (Unicode
 *  TR11). */
static unsigned s_cells_of(uint32_t code)
{
    static const range_t none[] = {{0x300, 0x36f}, {0x483, 0x489}, {0x591, 0x5bd}, {0x610, 0x61a}, {0x64b, 0x65f},
        {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff}, {0x200b, 0x200f}, {0x202a, 0x202e}, {0x2060, 0x206f}, {0x20d0, 0x20ff},
        {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0xfeff, 0xfeff}, {0xe0000, 0xe01ef}};
    static const range_t wide[] = {{0x1100, 0x115f}, {0x231a, 0x231b}, {0x2e80, 0x303e}, {0x3041, 0xa4cf},
        {0xa960, 0xa97f}, {0xac00, 0xd7a3}, {0xf900, 0xfaff}, {0xfe30, 0xfe6f}, {0xff00, 0xff60}, {0xffe0, 0xffe6},
        {0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff}, {0x1f900, 0x1faff}, {0x20000, 0x3fffd}};
    if (s_in(none, TT_COUNT(none), code))
        return 0;
    return s_in(wide, TT_COUNT(wide), code) ? 2 : 1;
}

/*  The next character as it may be shown: its bytes and cells; what may not becomes "?". */
static size_t s_next(const screen_t *screen, const char *text, const char **shown, size_t *bytes, unsigned *cells)
{
    uint32_t code = 0;
    const size_t length = s_decode(text, &code);
    const bool ascii = length == 1 && code >= 0x20 && code < 0x7f;
    const bool other = length > 1 && screen->unicode && code >= 0xa0 && (code < 0x200b || code > 0x200f) &&
                       (code < 0x2028 || code > 0x202e) && (code < 0x2060 || code > 0x206f);
    *shown = ascii || other ? text : "?";
    *bytes = ascii || other ? length : 1;
    *cells = ascii || !other ? 1 : s_cells_of(code);
    return length ? length : 1;
}

unsigned canvas_cells(const screen_t *screen, const char *text)
{
    unsigned all = 0;
    while (*text) {
        const char *shown;
        size_t bytes;
        unsigned cells;
        text += s_next(screen, text, &shown, &bytes, &cells);
        all += cells;
    }
    return all;
}

/* ---- drawing ----------------------------------------------------------------------------------------------------- */

void canvas_init(canvas_t *self, const screen_t *screen)
{
    *self = (canvas_t){.screen = *screen};
    tt_buf_init(&self->text, TEXT_MAX);
}

void canvas_free(canvas_t *self)
{
    tt_buf_free(&self->text);
}

unsigned canvas_room(const canvas_t *self)
{
    const unsigned width = self->screen.width - 1;
    return self->full || self->column >= width ? 0 : width - self->column;
}

/*  A text for which there is no room any more is not drawn: a megabyte is no block on a screen. */
static void s_add(canvas_t *self, const char *bytes, size_t size)
{
    (void)tt_buf_add(&self->text, bytes, size);
}

static void s_ink(canvas_t *self, ink_t ink)
{
    static const char *const codes[INK_COUNT] = {"\033[0m", "\033[2m", "\033[1m", "\033[32m", "\033[33m", "\033[36m"};
    if (self->screen.colour)
        s_add(self, codes[ink], strlen(codes[ink]));
}

static void s_ellipsis(canvas_t *self)
{
    const char *sign = self->screen.unicode ? "…" : "~";
    s_add(self, sign, strlen(sign));
    self->column++;
    self->full = true;
}

void canvas_put(canvas_t *self, ink_t ink, const char *text)
{
    if (!*text || canvas_room(self) == 0)
        return;
    if (ink != INK_PLAIN)
        s_ink(self, ink);
    unsigned left = canvas_cells(&self->screen, text);
    while (*text && !self->full) {
        const char *shown;
        size_t bytes;
        unsigned cells;
        const unsigned room = canvas_room(self);
        text += s_next(&self->screen, text, &shown, &bytes, &cells);
        if (left > room && cells >= room) { /* there is more to come than fits, and this would take the sign's place */
            s_ellipsis(self);
            break;
        }
        s_add(self, shown, bytes);
        self->column += cells;
        left -= cells;
    }
    if (ink != INK_PLAIN)
        s_ink(self, INK_PLAIN);
}

void canvas_tab(canvas_t *self, unsigned column)
{
    while (self->column < column && canvas_room(self))
        canvas_put(self, INK_PLAIN, " ");
}

void canvas_bar(canvas_t *self, ink_t ink, unsigned cells, double part)
{
    const unsigned filled = part > 0 ? (unsigned)lround(fmin(part, 1) * cells) : 0;
    const char *full = self->screen.unicode ? "━" : "#", *empty = self->screen.unicode ? "─" : "-";
    for (unsigned i = 0; i < cells && canvas_room(self); i++) {
        if (i == 0 && filled)
            s_ink(self, ink);
        if (i == filled)
            s_ink(self, INK_PLAIN), s_ink(self, INK_DIM);
        s_add(self, i < filled ? full : empty, strlen(i < filled ? full : empty));
        self->column++;
    }
    s_ink(self, INK_PLAIN);
}

void canvas_end_line(canvas_t *self)
{
    s_add(self, "\n", 1);
    self->widest = self->column > self->widest ? self->column : self->widest;
    self->lines++;
    self->column = 0;
    self->full = false;
}
