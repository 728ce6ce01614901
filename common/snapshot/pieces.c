#include "common/snapshot/pieces.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEAD "replay-"
#define TAIL ".bin"

void tt_piece_name(char out[TT_PIECE_FILE], uint32_t era, uint64_t instance, uint32_t number)
{
    snprintf(out, TT_PIECE_FILE, HEAD "%08" PRIu32 "-%016" PRIx64 "-%06" PRIu32 TAIL, era, instance, number);
}

bool tt_piece_is_name(const char *name)
{
    const size_t length = strnlen(name, TT_PIECE_FILE), head = sizeof HEAD - 1, tail = sizeof TAIL - 1;
    if (length == TT_PIECE_FILE || length <= head + tail || memcmp(name, HEAD, head) != 0)
        return false;
    return strcmp(name + length - tail, TAIL) == 0 && strspn(name + head, "0123456789abcdef-") == length - head - tail;
}

void tt_piece_hash(const void *bytes, size_t size, unsigned char out[TT_PIECE_HASH])
{
    crypto_generichash(out, TT_PIECE_HASH, bytes, size, NULL, 0);
}

/*  No more is allocated than the file has. */
static tt_status_t s_check_range(int fd, const tt_piece_t *piece)
{
    struct stat info;
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
        return tt_err(TT_DATA, "%s: not a file", piece->file);
    const uint64_t size = (uint64_t)info.st_size;
    if (piece->offset > size || piece->bytes > size - piece->offset)
        return tt_err(TT_DATA, "%s: damaged: it has %" PRIu64 " bytes; %" PRIu64 " at %" PRIu64 " should be there",
            piece->file, size, piece->bytes, piece->offset);
    return TT_OK;
}

static tt_status_t s_read(int fd, const tt_piece_t *piece, tt_buf_t *out)
{
    char part[65536];
    for (uint64_t done = 0; done < piece->bytes;) {
        const uint64_t left = piece->bytes - done;
        const ssize_t got = pread(fd, part, left < sizeof part ? left : sizeof part, (off_t)(piece->offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return tt_err_errno(TT_IO, "%s", piece->file);
        if (got == 0)
            return tt_err(TT_DATA, "%s: it became shorter while it was read", piece->file);
        TT_TRY(tt_buf_add(out, part, (size_t)got));
        done += (uint64_t)got;
    }
    return TT_OK;
}

static tt_status_t s_check_hash(const tt_piece_t *piece, const tt_buf_t *bytes)
{
    unsigned char hash[TT_PIECE_HASH];
    tt_piece_hash(bytes->data, bytes->size, hash);
    if (memcmp(hash, piece->hash, sizeof hash) == 0)
        return TT_OK;
    return tt_err(TT_DATA, "%s: damaged: %" PRIu64 " bytes at %" PRIu64 " are not those that were written", piece->file,
        piece->bytes, piece->offset);
}

tt_status_t tt_piece_read(const char *folder, const tt_piece_t *piece, tt_buf_t *out)
{
    char path[4400];
    if (snprintf(path, sizeof path, "%s/%s", folder, piece->file) >= (int)sizeof path)
        return tt_err(TT_INVALID, "%.64s...: path too long", folder);
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    if (fd < 0)
        return tt_err_errno(errno == ENOENT ? TT_NOT_FOUND : TT_IO, "%s", piece->file);
    tt_status_t status = s_check_range(fd, piece);
    tt_buf_clear(out);
    if (status == TT_OK)
        status = s_read(fd, piece, out);
    close(fd);
    return status == TT_OK ? s_check_hash(piece, out) : status;
}
