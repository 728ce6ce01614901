#include "cli/handout.h"
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/beside.h"
#include "common/base/file.h"
#include "common/base/mem.h"
#include "common/base/text.h"

enum { PIECE = 1 << 20, SHA_HEX = 2 * crypto_hash_sha256_BYTES + 1 };

/*  What has gone out, for who wants to compare it. */
typedef struct {
    crypto_hash_sha256_state hash;
    uint64_t bytes;
} sent_t;

static bool s_is_stdout(const char *output)
{
    return strcmp(output, "-") == 0;
}

tt_status_t handout_may(const char *output)
{
    if (s_is_stdout(output) && isatty(STDOUT_FILENO))
        return tt_err(TT_USAGE, "weights are not for a terminal: -o FILE, or send stdout to a file");
    return TT_OK;
}

tt_status_t handout_check(handout_t *self)
{
    tt_snapshot_info_free(&self->info);
    TT_TRY(tt_snapshot_inspect_fd(self->fd, &self->info));
    if (!self->info.sealed)
        fprintf(stderr, "%s is of tutti 0.1, without a checksum: there is nothing to compare it with\n",
            tt_shown(self->name));
    return TT_OK;
}

/* ---- to where it is wanted ------------------------------------------------------------------------------------------- */

static tt_status_t s_copy_piece(int from, int to, const char *where, char *piece, sent_t *sent, bool *more)
{
    ssize_t got;
    do
        got = pread(from, piece, PIECE, (off_t)sent->bytes);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return tt_err_errno(TT_IO, "cannot read the weights again");
    if (!tt_file_write(to, piece, (size_t)got, NULL))
        return tt_err_errno(TT_IO, "%s", where);
    crypto_hash_sha256_update(&sent->hash, (const unsigned char *)piece, (unsigned long long)got);
    sent->bytes += (uint64_t)got;
    *more = got > 0;
    return TT_OK;
}

static tt_status_t s_copy(const handout_t *self, int to, const char *where, sent_t *sent)
{
    char *piece = tt_new0(PIECE);
    bool more = true;
    tt_status_t status = TT_OK;
    sent->bytes = 0;
    crypto_hash_sha256_init(&sent->hash);
    while (status == TT_OK && more)
        status = s_copy_piece(self->fd, to, where, piece, sent, &more);
    free(piece);
    return status;
}

/*  Whole or not at all. */
static tt_status_t s_save(const handout_t *self, const char *path, sent_t *sent)
{
    tt_beside_t beside;
    TT_TRY(tt_beside_file(&beside, path, 0666));
    tt_status_t status = s_copy(self, beside.fd, path, sent);
    if (status == TT_OK && fsync(beside.fd) != 0)
        status = tt_err_errno(TT_IO, "%s", path);
    if (status == TT_OK)
        status = tt_beside_finish(&beside, true);
    tt_beside_drop(&beside);
    return status;
}

static void s_say(const handout_t *self, const char *output, sent_t *sent)
{
    unsigned char hash[crypto_hash_sha256_BYTES];
    char digits[SHA_HEX];
    const bool named = !s_is_stdout(output);
    crypto_hash_sha256_final(&sent->hash, hash);
    sodium_bin2hex(digits, sizeof digits, hash, sizeof hash);
    fprintf(stderr, "%s of %s: version %llu, mean return %.6g, %llu bytes, sha256 %s%s%s\n", tt_shown(self->name),
        tt_shown(self->of), (unsigned long long)self->info.update, self->info.return_mean,
        (unsigned long long)sent->bytes, digits, named ? " -> " : "", named ? tt_shown(output) : "");
}

tt_status_t handout_give(const handout_t *self, const char *output)
{
    sent_t sent;
    TT_TRY(s_is_stdout(output) ? s_copy(self, STDOUT_FILENO, "stdout", &sent) : s_save(self, output, &sent));
    s_say(self, output, &sent);
    return TT_OK;
}

void handout_free(handout_t *self)
{
    if (self->fd >= 0)
        close(self->fd);
    self->fd = -1;
    tt_snapshot_info_free(&self->info);
}
