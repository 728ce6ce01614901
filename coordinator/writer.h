/*  writer - appends to a file from memory: what was added goes out when it is due, in one write(2).
 *
 *  Threads: an instance belongs to one thread. */
#pragma once
#include <stdint.h>
#include "common/base/buf.h"

typedef struct {
    int fd;
    char *path; /* owned */
    tt_buf_t pending;
} writer_t;

enum { WRITER_FULL = 65536, WRITER_MAX = 1 << 20 };

/*  Append to path, made when missing. TT_IO. */
tt_status_t writer_open(writer_t *self, const char *path);
/*  Write what is pending and close; the first error is logged by the caller through the status. */
tt_status_t writer_close(writer_t *self);

/*  Write what is pending. TT_IO names the file; a full disk says so. */
tt_status_t writer_flush(writer_t *self);
/*  The same, when it has become much. */
tt_status_t writer_flush_full(writer_t *self);
