/*  pieces - ranges of files beside the snapshots, which snapshots refer to: the replay of an algorithm that has one.
 *
 *  A file RUN_DIR/checkpoints/replay-<era>-<instance>-<number>.bin is written by one process, from its beginning to its end, and never
 *  by another: era and instance make its name one that nobody else comes to. A piece is synced before the snapshot that refers to it has
 *  its name. Two snapshots may refer to one piece; when none does, the file goes (checkpoints.h).
 *
 *  Nothing of a piece is believed before its hash: BLAKE2b, 32 bytes (libsodium's crypto_generichash).
 *  Threads: pure but for the file system. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/base/buf.h"
#include "common/base/status.h"

enum { TT_PIECE_FILE = 64, TT_PIECE_HASH = 32, TT_PIECES_MAX = 1 << 22 };

typedef struct {
    char file[TT_PIECE_FILE]; /* in the snapshots' folder */
    uint64_t offset, bytes;
    uint64_t first, next; /* what it has, in numbers of who writes it: batches */
    unsigned char hash[TT_PIECE_HASH];
} tt_piece_t;

void tt_piece_name(char out[TT_PIECE_FILE], uint32_t era, uint64_t instance, uint32_t number);
/*  Could it be such a name? One that may be opened or removed in that folder, whoever says it. */
bool tt_piece_is_name(const char *name);
void tt_piece_hash(const void *bytes, size_t size, unsigned char out[TT_PIECE_HASH]);

/*  Its bytes, instead of what `out` holds, compared with the hash. TT_NOT_FOUND, TT_IO, TT_DATA: damaged; all name the file. */
tt_status_t tt_piece_read(const char *folder, const tt_piece_t *piece, tt_buf_t *out);
