#include "common/snapshot/seal.h"
#include <stdio.h>
#include <string.h>
#include "common/base/mem.h"

static const char s_zeros[TT_SEAL_DIGITS + 1] = "0000000000000000000000000000000000000000000000000000000000000000";

void tt_seal_begin(tt_seal_check_t *self)
{
    self->size = 0;
    crypto_hash_sha256_init(&self->hash);
}

/*  The head is kept back until it is whole: only then is it known what the digits say, and where they end. */
void tt_seal_add(tt_seal_check_t *self, const void *bytes, size_t size)
{
    const unsigned char *in = bytes;
    if (self->size < TT_SEAL_END) {
        const size_t room = TT_SEAL_END - (size_t)self->size, part = size < room ? size : room;
        memcpy(self->head + self->size, in, part);
        self->size += part;
        in += part;
        size -= part;
        if (self->size == TT_SEAL_END) {
            crypto_hash_sha256_update(&self->hash, self->head, TT_SEAL_AT);
            crypto_hash_sha256_update(&self->hash, (const unsigned char *)s_zeros, TT_SEAL_DIGITS);
        }
    }
    crypto_hash_sha256_update(&self->hash, in, size);
    self->size += size;
}

static bool s_is_head(const unsigned char *head)
{
    return memcmp(head + 8, TT_SEAL_HEAD, sizeof TT_SEAL_HEAD - 1) == 0;
}

static void s_digits(tt_seal_check_t *self, char out[TT_SEAL_DIGITS + 1])
{
    unsigned char hash[crypto_hash_sha256_BYTES];
    crypto_hash_sha256_final(&self->hash, hash);
    sodium_bin2hex(out, TT_SEAL_DIGITS + 1, hash, sizeof hash);
}

tt_status_t tt_seal_end(tt_seal_check_t *self, bool *sealed)
{
    char digits[TT_SEAL_DIGITS + 1];
    const bool head = self->size >= TT_SEAL_END && s_is_head(self->head);
    if (head) {
        s_digits(self, digits);
        if (memcmp(digits, self->head + TT_SEAL_AT, TT_SEAL_DIGITS) != 0)
            return tt_err(
                TT_DATA, "damaged: the checksum is not that of these %llu bytes", (unsigned long long)self->size);
    }
    *sealed = head;
    return TT_OK;
}

tt_status_t tt_seal_check(const void *bytes, size_t size, bool *sealed)
{
    tt_seal_check_t check;
    tt_seal_begin(&check);
    tt_seal_add(&check, bytes, size);
    return tt_seal_end(&check, sealed);
}

tt_status_t tt_seal(void *bytes, size_t size)
{
    char digits[TT_SEAL_DIGITS + 1], *at = (char *)bytes + TT_SEAL_AT;
    if (size < TT_SEAL_END || !s_is_head(bytes))
        return tt_err(TT_INVALID, "the checksum is not the first thing in the header");
    tt_seal_check_t check;
    tt_seal_begin(&check);
    tt_seal_add(&check, bytes, size);
    s_digits(&check, digits);
    memcpy(at, digits, TT_SEAL_DIGITS);
    return TT_OK;
}
