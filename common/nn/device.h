/*  device - where networks compute: devices, streams of work, and tables of rows that the work reads.
 *
 *  What lies on a device is a handle; nobody but the device's own code sees an address of it. Work is queued on a *stream*
 *  and done in the order in which it was queued, at the latest when the stream is synced: what a call is to fill is filled
 *  then, what it borrows is borrowed until then, and an error of the work itself is said by the call or then. Whatever is
 *  destroyed is first waited for.
 *
 *  Backends: "cpu" does everything at once, with kernels chosen by what the processor has. "cpu-strict" computes the same
 *            bits, but as late as it may, on a thread of its own, in memory that faults when anybody else touches it: whoever
 *            breaks a rule of this page is found by running on it (docs/internals/nn.md).
 *  Threads:  a device, and all that was made on it, belongs to one thread, which is the only one to call. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/base/shift.h"
#include "common/base/stack.h"
#include "common/base/status.h"

typedef struct tt_device tt_device_t; /* all opaque */
typedef struct tt_stream tt_stream_t;
typedef struct tt_table tt_table_t;
typedef struct tt_store tt_store_t;

/*  Instead of a device's number: of those that are there, in turn, the one that is due to the `place`th process that asks. */
#define TT_DEVICE_ANY(place) (-1 - (int)((place)&0xffff))

/*  Open device `number` of a backend, with so many `lanes` >= 1: threads that compute, the caller's among them.
 *  backend NULL: "cpu", or what TT_DEVICE names. TT_CPU=portable|avx2|avx512 forces the kernels (TT_UNSUPPORTED when the
 *  processor lacks them). TT_NOT_FOUND: no such backend; TT_UNSUPPORTED: no such device here. */
tt_status_t tt_device_open(tt_device_t **self_p, const char *backend, int number, uint32_t lanes);
/*  What a user says: "cpu", which leaves the word to TT_DEVICE; another backend, with ":N" for the device of that number, without for one of
 *  them by our place among those of the same role; or "auto", such a card
 *  where its library, a driver and one are there, else the CPU (the name says which). check: TT_CONFIG, it is none of these. */
tt_status_t tt_device_check_wish(const char *wish);
tt_status_t tt_device_open_wish(tt_device_t **self_p, const char *wish, uint32_t place, uint32_t lanes);
/*  How the layers of what is trained are multiplied. TF32, BF16: by tensor cores, which round what is multiplied to 11 or 8 bits and
 *  add in FP32; other bits than the CPU's, and on the same kind of card the same for any lanes, runs of shards and graphs. All the rest, and
 *  heads that somebody asks for, stays exact. */
typedef enum { TT_EXACT, TT_TF32, TT_BF16 } tt_precision_t; /* order of learner.precision's choices */
/*  "exact", "tf32", "bf16". */
const char *tt_precision_name(tt_precision_t precision);
/*  Once, before a network is made on it. TT_UNSUPPORTED: a device that can only be exact; a card's library is not there. */
tt_status_t tt_device_precision(tt_device_t *self, tt_precision_t precision);
/*  Everything made on it is gone before, its streams last. */
void tt_device_close(tt_device_t **self_p);
/*  "cpu/avx512" and the like. */
const char *tt_device_name(const tt_device_t *self);

tt_status_t tt_stream_new(tt_stream_t **self_p, tt_device_t *device);
/*  Waits for what is queued. */
void tt_stream_destroy(tt_stream_t **self_p);
/*  Wait until all that was queued is done. The first error among it, said once; what was queued behind that was not done. */
tt_status_t tt_stream_sync(tt_stream_t *self);
/*  What the work so far borrows to read is the caller's again; of a table's rows and of a sum that was put: to write anew, if they are put
 *  again before other work reads them. What it is to fill may still be under way. A card took all that when it was queued: nothing waits. */
void tt_stream_let_go(tt_stream_t *self);

/*  A table: rows of `bytes` each. What a put names is borrowed, unchanged, until a sync after the next put, or until destroy: a
 *  device that shares the host's memory reads it where it lies. The list of tt_table_put_rows is borrowed too. */
tt_status_t tt_table_new(tt_table_t **self_p, tt_device_t *device, size_t bytes);
void tt_table_destroy(tt_table_t **self_p);
/*  The table consists of these rows now: side by side; or each where it lies. */
tt_status_t tt_table_put(tt_table_t *self, tt_stream_t *stream, const void *rows, size_t count);
tt_status_t tt_table_put_rows(tt_table_t *self, tt_stream_t *stream, const void *const *row, size_t count);
/*  Or each is made of frames: frame[count][stack->frames], borrowed as the list of rows is. The stack is borrowed, too. A network whose
 *  spec has the same stack reads them. */
tt_status_t tt_table_put_frames(
    tt_table_t *self, tt_stream_t *stream, const tt_stack_t *stack, const void *const *frame, size_t count);

/*  A store: places for frames of `bytes` each, which stay on the device; what was never put is zeros. For rows that are read often and
 *  would otherwise be sent each time. TT_UNAVAILABLE: the device has no room for it (the text says what was asked for and what is free), and
 *  is as good as before. */
tt_status_t tt_store_new(tt_store_t **self_p, tt_device_t *device, size_t bytes, size_t places);
void tt_store_destroy(tt_store_t **self_p);
/*  Frames side by side to places first .. first + count - 1: work like any other, so what was queued before still reads what was there.
 *  Borrowed until the next sync. TT_INVALID: there are no such places. */
tt_status_t tt_store_put(tt_store_t *self, tt_stream_t *stream, size_t first, const void *frames, size_t count);

/*  Floats of a frame that are normalised when rows are made (common/base/scale.h). */
typedef struct {
    uint32_t runs;
    struct {
        uint32_t at, count; /* floats side by side, from byte `at` of a frame on */
    } run[TT_PARTS_MAX];
    const double *mean, *inv; /* of all of them, in the runs' order */
    float clip;
    uint32_t but; /* the place of a frame that stays as it is; UINT32_MAX: there is none */
} tt_scale_t;

/*  Rows made of a store's frames. */
typedef struct {
    const tt_store_t *store;
    const tt_stack_t *stack; /* NULL, or of one frame: a row is a frame          */
    const uint32_t *place;   /* [count][frames], oldest first                    */
    const tt_scale_t *scale; /* NULL: as they are                                */
    const tt_shift_t *shift; /* of what came of that, row by row; NULL: it stays */
    size_t count;
} tt_stored_t;

/*  The table consists of these now; all that is named is borrowed until the next sync. The store lives as long as the table has its rows.
 *  TT_INVALID: frames or rows of another size than store and table have; a shift of what is no whole part of a stack, or of some of the floats
 *  that are scaled together. Late: a place that the store does not have. */
tt_status_t tt_table_put_stored(tt_table_t *self, tt_stream_t *stream, const tt_stored_t *from);

/*  Bytes that are free in memory of the device's own, where what it keeps need not be sent again; 0: it computes in the host's. */
uint64_t tt_device_free(tt_device_t *self);
