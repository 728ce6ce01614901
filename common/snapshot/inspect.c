#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/mem.h"
#include "common/snapshot/names.h"
#include "common/snapshot/parts.h"
#include "common/snapshot/seal.h"
#include "common/snapshot/snapshot.h"

enum { PIECE = 1 << 20 };

/*  A file on its way through: all of it into the checksum, its header into memory. */
typedef struct {
    int fd;
    uint64_t size;
    tt_seal_check_t seal;
    tt_buf_t header;
} look_t;

static tt_status_t s_open(look_t *self, const char *path)
{
    self->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    return self->fd >= 0 ? TT_OK : tt_err_errno(errno == ENOENT ? TT_NOT_FOUND : TT_IO, "cannot read");
}

static tt_status_t s_measure(look_t *self)
{
    struct stat info;
    if (fstat(self->fd, &info) != 0 || !S_ISREG(info.st_mode))
        return tt_err(TT_DATA, "not a file");
    if ((uint64_t)info.st_size > TT_SNAPSHOT_FILE_MAX)
        return tt_err(TT_DATA, "%lld bytes are more than a snapshot has", (long long)info.st_size);
    self->size = (uint64_t)info.st_size;
    return TT_OK;
}

/*  How much the header wants is known as soon as its first 8 bytes are there. */
static bool s_has_header(const look_t *self)
{
    const size_t have = self->header.size;
    return have >= 8 && have >= tt_st_header_size(tt_buf_text(&self->header), have);
}

static tt_status_t s_take(look_t *self, const char *piece, size_t size)
{
    tt_seal_add(&self->seal, piece, size);
    return s_has_header(self) ? TT_OK : tt_buf_add(&self->header, piece, size);
}

/*  all: to the end; else no further than the header. */
static tt_status_t s_read(look_t *self, bool all)
{
    char *piece = tt_new0(PIECE);
    uint64_t left = self->size;
    tt_status_t status = TT_OK;
    while (status == TT_OK && left > 0 && (all || !s_has_header(self))) {
        const ssize_t got = pread(self->fd, piece, left < PIECE ? (size_t)left : PIECE, (off_t)(self->size - left));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            status = tt_err_errno(TT_IO, "cannot read");
        else if (got == 0)
            status = tt_err(TT_DATA, "it became shorter while it was read");
        else
            status = s_take(self, piece, (size_t)got);
        left -= got > 0 ? (uint64_t)got : 0;
    }
    free(piece);
    return status;
}

static tt_status_t s_update(const tt_st_t *file, uint64_t *out)
{
    const char *text = tt_st_meta(file, META_UPDATE);
    const size_t digits = text ? strspn(text, "0123456789") : 0;
    if (digits == 0 || digits > 19 || text[digits])
        return tt_err(TT_DATA, "its metadata lack the update");
    *out = strtoull(text, NULL, 10);
    return TT_OK;
}

static bool s_is_bare(const tt_st_t *file)
{
    const char *holds = tt_st_meta(file, META_HOLDS);
    return holds && strcmp(holds, HOLDS_WEIGHTS) == 0;
}

static tt_status_t s_fill(const tt_st_t *file, bool sealed, tt_snapshot_info_t *out)
{
    const char *mean = tt_st_meta(file, META_RETURN_MEAN), *config = tt_st_meta(file, META_CONFIG);
    const char *sha256 = tt_st_meta(file, META_SHA256);
    uint64_t update = 0;
    TT_TRY(s_update(file, &update));
    if (!config || !mean)
        return tt_err(TT_DATA, "its metadata lack return_mean or config");
    *out = (tt_snapshot_info_t){
        .update = update, .return_mean = strtod(mean, NULL), .sealed = sealed, .config = tt_strdup(config)};
    out->bare = s_is_bare(file);
    snprintf(out->weights_sha256, sizeof out->weights_sha256, "%s", sha256 ? sha256 : "");
    return TT_OK;
}

static tt_status_t s_judge(look_t *self, tt_snapshot_info_t *out)
{
    bool sealed = false;
    tt_st_t *file = NULL;
    TT_TRY(tt_seal_end(&self->seal, &sealed));
    TT_TRY(tt_st_decode_header(&file, tt_buf_text(&self->header), self->header.size, self->size));
    tt_status_t status = snapshot_identify(file, sealed);
    if (status == TT_OK)
        status = s_fill(file, sealed, out);
    tt_st_destroy(&file);
    return status;
}

static tt_status_t s_begin(look_t *self, const char *path)
{
    tt_seal_begin(&self->seal);
    tt_buf_init(&self->header, TT_ST_HEADER_MAX + 8 + PIECE);
    TT_TRY(s_open(self, path));
    return s_measure(self);
}

static void s_end(look_t *self)
{
    if (self->fd >= 0)
        close(self->fd);
    tt_buf_free(&self->header);
}

tt_status_t tt_snapshot_inspect_fd(int fd, tt_snapshot_info_t *out)
{
    look_t self = {.fd = fd};
    tt_seal_begin(&self.seal);
    tt_buf_init(&self.header, TT_ST_HEADER_MAX + 8 + PIECE);
    tt_status_t status = s_measure(&self);
    if (status == TT_OK)
        status = s_read(&self, true);
    if (status == TT_OK)
        status = s_judge(&self, out);
    tt_buf_free(&self.header);
    return status;
}

tt_status_t tt_snapshot_inspect(const char *path, tt_snapshot_info_t *out)
{
    look_t self = {.fd = -1};
    TT_TRY(s_open(&self, path));
    const tt_status_t status = tt_snapshot_inspect_fd(self.fd, out);
    close(self.fd);
    return status;
}

tt_status_t snapshot_peek(const char *path, uint64_t *update, bool *bare)
{
    look_t self = {.fd = -1};
    tt_st_t *file = NULL;
    tt_status_t status = s_begin(&self, path);
    if (status == TT_OK)
        status = s_read(&self, false);
    if (status == TT_OK)
        status = tt_st_decode_header(&file, tt_buf_text(&self.header), self.header.size, self.size);
    if (status == TT_OK)
        status = s_update(file, update);
    if (status == TT_OK)
        *bare = s_is_bare(file);
    tt_st_destroy(&file);
    s_end(&self);
    return status;
}

void tt_snapshot_info_free(tt_snapshot_info_t *self)
{
    free(self->config);
    *self = (tt_snapshot_info_t){0};
}
