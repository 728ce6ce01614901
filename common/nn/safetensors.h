/*  safetensors - named arrays in one file, as Python's safetensors reads and writes them.
 *
 *  Format: https://huggingface.co/docs/safetensors (8-byte little-endian header length, JSON header, raw data).
 *  Files are written beside their name and renamed, so that a reader sees all or nothing.
 *  Limits on reading: header 16 MiB, 4096 arrays, rank 4, offsets checked against the file's size and one another.
 *
 *  Threads: an instance belongs to one thread. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "common/base/buf.h"
#include "common/base/progress.h"
#include "common/base/status.h"

enum { TT_ST_HEADER_MAX = 16 << 20 };

typedef enum {
    TT_ST_F32,
    TT_ST_F64,
    TT_ST_I32,
    TT_ST_I64,
    TT_ST_U8
} tt_st_type_t; /* "F32", ... U64 counters use I64 */

typedef struct {
    char name[96];
    tt_st_type_t type;
    uint32_t rank;
    uint64_t shape[4];
    const void *data; /* borrowed from the reader, or from the caller who writes */
    size_t bytes;
} tt_st_array_t;

typedef struct {
    char key[64];
    char *value; /* owned by the reader; borrowed when writing */
} tt_st_meta_t;

typedef struct tt_st tt_st_t; /* a parsed file, opaque */

/*  Append the whole file to `out`. */
tt_status_t tt_st_encode(
    tt_buf_t *out, const tt_st_array_t *arrays, size_t array_count, const tt_st_meta_t *meta, size_t meta_count);
/*  Write beside `path`, fsync when `sync`, rename; others may do so at the same time. TT_IO, with nothing left behind. */
tt_status_t tt_st_save(const tt_buf_t *bytes, const char *path, bool sync, tt_progress_t progress);
/*  Bytes of an element. */
size_t tt_st_size(tt_st_type_t type);

/*  Parse bytes, copied. TT_DATA: not safetensors, truncated, or over a limit (the text says what). */
tt_status_t tt_st_decode(tt_st_t **self_p, const void *bytes, size_t size);
/*  The header alone, of a file of file_size bytes: `size` bytes of it are here, the arrays' data stay NULL. */
tt_status_t tt_st_decode_header(tt_st_t **self_p, const void *bytes, size_t size, uint64_t file_size);
/*  How many bytes at a file's beginning that takes, from its first 8 (fewer: 8). */
size_t tt_st_header_size(const void *bytes, size_t size);
void tt_st_destroy(tt_st_t **self_p);

/*  NULL when absent; borrowed. */
const tt_st_array_t *tt_st_find(const tt_st_t *self, const char *name);
const char *tt_st_meta(const tt_st_t *self, const char *key);
const tt_st_array_t *tt_st_arrays(const tt_st_t *self, size_t *count);
