/*  seal - the checksum of a snapshot, over every byte of it, in its own header.
 *
 *  The header's first entry is __metadata__, and the first of that is
 *
 *    "checksum": "sha256:<64 hex digits>"
 *
 *  so the digits lie at one place in every file (TT_SEAL_AT). They are the SHA-256 of the whole file with 64 zeros ('0')
 *  in their stead. For any other reader of safetensors they are one more text among the metadata.
 *
 *  Threads: an instance belongs to one thread. */
#pragma once
#include <sodium.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/base/status.h"

#define TT_SEAL_KEY "checksum"
#define TT_SEAL_OPEN \
    "sha256:0000000000000000000000000000000000000000000000000000000000000000" /* its value until sealed */
#define TT_SEAL_HEAD "{\"__metadata__\":{\"" TT_SEAL_KEY "\":\"sha256:"

enum { TT_SEAL_DIGITS = 64, TT_SEAL_AT = 8 + sizeof TT_SEAL_HEAD - 1, TT_SEAL_END = TT_SEAL_AT + TT_SEAL_DIGITS };

/*  Write the digits into a file whose checksum is TT_SEAL_OPEN. TT_INVALID: its head is not as said above. */
tt_status_t tt_seal(void *bytes, size_t size);

/*  Check a file that comes in pieces: begin, add each piece in order, end. */
typedef struct {
    crypto_hash_sha256_state hash;
    uint64_t size;                   /* bytes that have been added */
    unsigned char head[TT_SEAL_END]; /* the first of them         */
} tt_seal_check_t;

void tt_seal_begin(tt_seal_check_t *self);
void tt_seal_add(tt_seal_check_t *self, const void *bytes, size_t size);
/*  TT_OK and *sealed: every byte is as it was written. TT_OK and not *sealed: there is no checksum to compare with.
 *  TT_DATA: damaged. */
tt_status_t tt_seal_end(tt_seal_check_t *self, bool *sealed);
/*  All of it at once. */
tt_status_t tt_seal_check(const void *bytes, size_t size, bool *sealed);
