#define TT_LOG_COMPONENT "metrics"
#include "coordinator/metrics.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/log.h"
#include "common/base/mem.h"
#include "coordinator/progress.h"
#include "coordinator/roster.h"
#include "coordinator/writer.h"

enum { TAIL = 65536 }; /* longer than any line: 64 metrics of 63 letters */

/*  Structure of our class */
struct metrics {
    writer_t writer;
    progress_at_t at;                            /* newest line */
    void (*take)(void *ctx, const json_t *line); /* metrics_last's; NULL = nobody asks */
    void *ctx;
};

/* ---- what is there already ----------------------------------------------------------------------------------------- */

static tt_status_t s_err_foreign(const char *path)
{
    return tt_err(TT_DATA, "%s: its last line is not one of tutti's; move the file away", path);
}

static tt_status_t s_take_last(metrics_t *self, const char *line, const char *path)
{
    json_t *object = json_loads(line, 0, NULL);
    const json_t *era = json_object_get(object, "era"), *now = json_object_get(object, "updates");
    const json_t *update = now ? now : json_object_get(object, "update"); /* as tutti 0.1 called it */
    const bool ok = json_is_integer(era) && json_integer_value(era) >= 0 &&
                    json_integer_value(era) <= ROSTER_NUMBER_MAX && json_is_integer(update) &&
                    json_integer_value(update) >= 0;
    if (ok) {
        self->at.any = true;
        self->at.era = (uint32_t)json_integer_value(era);
        self->at.update = (uint64_t)json_integer_value(update);
        self->at.env_steps = (uint64_t)json_integer_value(json_object_get(object, "env_steps"));
    }
    if (ok && self->take)
        self->take(self->ctx, object);
    json_decref(object);
    return ok ? TT_OK : s_err_foreign(path);
}

/*  Is this the beginning of a line of ours, or what a power failure left of one? A file without a whole line would be cut off
 *  altogether, and might be somebody else's. */
static bool s_is_torn(const char *text, size_t size)
{
    static const char begins[] = "{\"era\":";
    const size_t length = size < sizeof begins - 1 ? size : sizeof begins - 1;
    return memcmp(text, begins, length) == 0 || text[0] == '\0';
}

/*  Remember which update the last whole line is of; cut off what is behind it, a line without its end. */
static tt_status_t s_mend_tail(metrics_t *self, int fd, char *tail, size_t got, off_t from, const char *path)
{
    char *end = memrchr(tail, '\n', got);
    if (end) {
        *end = '\0';
        const char *start = memrchr(tail, '\n', (size_t)(end - tail));
        TT_TRY(s_take_last(self, start ? start + 1 : tail, path));
    }
    const size_t keep = end ? (size_t)(end - tail) + 1 : 0;
    if (!end && (from > 0 || !s_is_torn(tail, got)))
        return s_err_foreign(path);
    return ftruncate(fd, from + (off_t)keep) == 0 ? TT_OK : tt_err_errno(TT_IO, "%s", path);
}

static tt_status_t s_mend(metrics_t *self, int fd, const char *path)
{
    struct stat info;
    if (fstat(fd, &info) != 0)
        return tt_err_errno(TT_IO, "%s", path);
    char *tail = tt_new0(TAIL + 1);
    const off_t from = info.st_size > TAIL ? info.st_size - TAIL : 0;
    const ssize_t got = pread(fd, tail, TAIL, from);
    const tt_status_t status =
        got < 0 ? tt_err_errno(TT_IO, "%s", path) : s_mend_tail(self, fd, tail, (size_t)got, from, path);
    free(tail);
    return status;
}

static tt_status_t s_read(metrics_t *self, const char *path)
{
    const int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? TT_OK : tt_err_errno(TT_IO, "%s", path);
    const tt_status_t status = s_mend(self, fd, path);
    close(fd);
    return status;
}

tt_status_t metrics_last_era(const char *path, uint32_t *era)
{
    metrics_t last = {0};
    TT_TRY(s_read(&last, path));
    *era = last.at.any ? last.at.era : 0;
    return TT_OK;
}

tt_status_t metrics_last(const char *path, void (*take)(void *ctx, const json_t *line), void *ctx)
{
    metrics_t last = {.take = take, .ctx = ctx};
    return s_read(&last, path);
}

tt_status_t metrics_open(metrics_t **self_p, const char *path)
{
    metrics_t *self = tt_new0(sizeof *self);
    tt_status_t status = s_read(self, path);
    if (status == TT_OK)
        status = writer_open(&self->writer, path, false);
    if (status != TT_OK) {
        free(self);
        return status;
    }
    *self_p = self;
    return TT_OK;
}

void metrics_close(metrics_t **self_p)
{
    metrics_t *self = *self_p;
    if (!self)
        return;
    if (writer_close(&self->writer) != TT_OK)
        log_error("%s", tt_err_text());
    free(self);
    *self_p = NULL;
}

/* ---- a line -------------------------------------------------------------------------------------------------------- */

static tt_status_t s_number(tt_buf_t *out, const char *name, double value)
{
    if (!isfinite(value))
        return tt_buf_printf(out, ",\"%s\":null", name);
    return tt_buf_printf(out, ",\"%s\":%.9g", name, value);
}

/*  Names come from another process; ours need no escapes. */
static bool s_is_plain(const char *name)
{
    return name && name[0] &&
           name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_/.-")] == '\0';
}

static tt_status_t s_begin_line(tt_buf_t *out, const tt_msg_STATS_t *m)
{
    return tt_buf_printf(
        out, "{\"era\":%u,\"updates\":%" PRIu64 ",\"env_steps\":%" PRIu64, m->era, m->update, m->env_steps);
}

static tt_status_t s_end_line(tt_buf_t *out, const tt_msg_STATS_t *m)
{
    for (size_t i = 0; i < m->metrics_count; i++)
        if (s_is_plain(m->metrics[i].name))
            TT_TRY(s_number(out, m->metrics[i].name, m->metrics[i].value));
    return tt_buf_str(out, "}\n");
}

static tt_status_t s_line(tt_buf_t *out, const tt_msg_STATS_t *m, double wall_s, double sps)
{
    TT_TRY(s_begin_line(out, m));
    TT_TRY(tt_buf_printf(out,
        ",\"episodes\":%" PRIu64 ",\"lag_max\":%" PRIu64 ",\"dropped\":%" PRIu64 ",\"broken_trajectories\":%" PRIu64,
        m->episodes, m->lag_max, m->dropped, m->broken_trajectories));
    TT_TRY(s_number(out, "return_mean", m->return_mean));
    TT_TRY(s_number(out, "length_mean", m->length_mean));
    TT_TRY(s_number(out, "wall_s", wall_s));
    TT_TRY(s_number(out, "sps", sps));
    return s_end_line(out, m);
}

tt_status_t metrics_add(metrics_t *self, const tt_msg_STATS_t *stats, double wall_s, double sps)
{
    if (!progress_newer(&self->at, stats))
        return TT_OK;
    const size_t begun = writer_begin(&self->writer);
    TT_TRY(writer_end(&self->writer, begun, s_line(&self->writer.pending, stats, wall_s, sps)));
    self->at = progress_at(stats);
    return writer_flush_full(&self->writer);
}

static tt_status_t s_short_line(tt_buf_t *out, const tt_msg_STATS_t *m, double wall_s)
{
    TT_TRY(s_begin_line(out, m));
    TT_TRY(s_number(out, "wall_s", wall_s));
    return s_end_line(out, m);
}

tt_status_t metrics_add_short(metrics_t *self, const tt_msg_STATS_t *stats, double wall_s, bool *fresh)
{
    *fresh = progress_newer(&self->at, stats);
    if (!*fresh)
        return TT_OK;
    const size_t begun = writer_begin(&self->writer);
    TT_TRY(writer_end(&self->writer, begun, s_short_line(&self->writer.pending, stats, wall_s)));
    self->at = progress_at(stats);
    return writer_flush_full(&self->writer);
}

tt_status_t metrics_flush(metrics_t *self)
{
    return writer_flush(&self->writer);
}
