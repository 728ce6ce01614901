/*  buf - a growable byte buffer with a hard maximum set at creation.
 *
 *  Threads: an instance belongs to one thread. */
#pragma once
#include <stddef.h>
#include "common/base/status.h"

typedef struct {
    char *data;  /* owned; always followed by a 0 byte once anything was added; NULL when new */
    size_t size; /* bytes in use, without that 0 */
    size_t room; /* bytes allocated */
    size_t max;  /* never grows beyond */
} tt_buf_t;

/*  An empty buffer that never grows over max bytes. Nothing is allocated yet. */
void tt_buf_init(tt_buf_t *self, size_t max);
/*  Free the memory; the buffer is empty and usable again. */
void tt_buf_free(tt_buf_t *self);
/*  Empty it and keep the memory. */
void tt_buf_clear(tt_buf_t *self);
/*  Keep the first size bytes. */
void tt_buf_cut(tt_buf_t *self, size_t size);
/*  Append. TT_INVALID (with text): it would grow over max; nothing is appended then. */
tt_status_t tt_buf_add(tt_buf_t *self, const void *data, size_t size);
tt_status_t tt_buf_str(tt_buf_t *self, const char *text);
tt_status_t tt_buf_printf(tt_buf_t *self, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/*  The text, never NULL; borrowed. */
const char *tt_buf_text(const tt_buf_t *self);
/*  Append a whole ordinary file. TT_NOT_FOUND, TT_DENIED, TT_IO, TT_DATA (a FIFO, a device: tt_file_open), TT_INVALID
 *  (larger than the room left). */
tt_status_t tt_buf_read_file(tt_buf_t *self, const char *path);
/*  The same of what a person names as input, which may be a pipe, a terminal or "-", standard input, as well. It is read to
 *  its end; TT_TIMEOUT: nothing came for patience_ms, or nobody writes to it (a terminal's user may think for ever). */
tt_status_t tt_buf_read_input(tt_buf_t *self, const char *path, int patience_ms);
enum {
    TT_INPUT_PATIENCE_MS = 10000
}; /* for what is not a terminal; a generator at the other end has to begin by then */
