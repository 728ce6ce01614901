/*  memfd - memory that other processes on this host may read: made by one, of a size that never changes, read by others where it lies.
 *
 *  It has no name in any file system, so nothing is left behind by who is killed; who has mapped it keeps it. Readers find it by the
 *  process and the number of its descriptor there, which takes the same user and the same process ids (a pod of its own has others).
 *  Threads: an instance belongs to one thread; what lies in the memory is its users' to order. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "common/base/status.h"

typedef struct {
    void *at;    /* mapped; NULL: not (yet) */
    size_t size; /* bytes                   */
    int fd;      /* of who made it; -1: none */
} tt_memfd_t;

/*  Make one without a size: its descriptor can be told to others before it is known what is to lie there. `name` is for people who look
 *  (/proc/PID/maps), and for readers to recognise it by. TT_UNSUPPORTED: this kernel has none. */
tt_status_t tt_memfd_make(tt_memfd_t *out, const char *name);
/*  Give it its size, for good; zeroed memory, which takes room as it is written to. TT_OS. */
tt_status_t tt_memfd_size(tt_memfd_t *self, size_t size);
/*  Map that of another process (or our own), to read. TT_NOT_FOUND: there is no such descriptor, or it is something else, or it has no size
 *  yet; TT_DATA: it has another size. */
tt_status_t tt_memfd_map(tt_memfd_t *out, uint32_t pid, int fd, const char *name, size_t size);
/*  Unmap, and close the descriptor of who made it. */
void tt_memfd_drop(tt_memfd_t *self);
