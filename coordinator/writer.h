/*  writer - appends whole records to a file from memory: what was added goes out when it is due, in one write(2).
 *
 *  When not all of it could be written (a full disk, a limit), the file is cut back to where it was and everything stays
 *  pending: a reader never sees half a record or the same one twice, and the next flush begins where this one did.
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

/*  Append to path, made when missing; a link is not followed. `once`: it must be new, TT_EXISTS. TT_IO. */
tt_status_t writer_open(writer_t *self, const char *path, bool once);
/*  Write what is pending and close; the first error is logged by the caller through the status. */
tt_status_t writer_close(writer_t *self);

/*  Add a record in pieces (tt_buf_* on pending) between these two; what fails half-way is taken back. */
size_t writer_begin(const writer_t *self);
tt_status_t writer_end(writer_t *self, size_t begun, tt_status_t status);
/*  Write what is pending. TT_IO names the file; a full disk says so. */
tt_status_t writer_flush(writer_t *self);
/*  The same, when it has become much. */
tt_status_t writer_flush_full(writer_t *self);
