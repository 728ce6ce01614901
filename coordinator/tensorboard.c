#define TT_LOG_COMPONENT "tensorboard"
#include "coordinator/tensorboard.h"
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "coordinator/crc32c.h"
#include "coordinator/writer.h"

enum { EVENT_MAX = 65536, TRIES = 100, VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };
enum { EVENT_WALL_TIME = 1, EVENT_STEP = 2, EVENT_FILE_VERSION = 3, EVENT_SUMMARY = 5 };
enum { SUMMARY_VALUE = 1, VALUE_TAG = 1, VALUE_SIMPLE = 2 };

/*  Structure of our class */
struct tensorboard {
    writer_t writer;
    tt_buf_t event, summary; /* scratch */
};

/* ---- protobuf ------------------------------------------------------------------------------------------------------ */

static tt_status_t s_varint(tt_buf_t *out, uint64_t value)
{
    char bytes[10];
    size_t used = 0;
    do {
        bytes[used++] = (char)((value & 127) | (value > 127 ? 128 : 0));
        value >>= 7;
    } while (value > 0);
    return tt_buf_add(out, bytes, used);
}

static tt_status_t s_key(tt_buf_t *out, uint32_t field, uint32_t wire)
{
    return s_varint(out, field << 3 | wire);
}

static size_t s_varint_size(uint64_t value)
{
    size_t size = 1;
    while (value >>= 7)
        size++;
    return size;
}

static tt_status_t s_double(tt_buf_t *out, uint32_t field, double value)
{
    TT_TRY(s_key(out, field, FIXED64));
    return tt_buf_add(out, &value, sizeof value); /* little-endian, as every machine we run on */
}

static tt_status_t s_float(tt_buf_t *out, uint32_t field, float value)
{
    TT_TRY(s_key(out, field, FIXED32));
    return tt_buf_add(out, &value, sizeof value);
}

static tt_status_t s_bytes(tt_buf_t *out, uint32_t field, const void *data, size_t size)
{
    TT_TRY(s_key(out, field, BYTES));
    TT_TRY(s_varint(out, size));
    return tt_buf_add(out, data, size);
}

/*  Summary.Value {tag, simple_value}. */
static tt_status_t s_value(tt_buf_t *out, const char *tag, double value)
{
    if (!isfinite(value) || !tag || !tag[0])
        return TT_OK;
    const size_t length = strlen(tag);
    TT_TRY(s_key(out, SUMMARY_VALUE, BYTES));
    TT_TRY(s_varint(out, 1 + s_varint_size(length) + length + 1 + sizeof(float)));
    TT_TRY(s_bytes(out, VALUE_TAG, tag, length));
    return s_float(out, VALUE_SIMPLE, (float)value);
}

/* ---- records ------------------------------------------------------------------------------------------------------- */

static uint32_t s_masked(const void *data, size_t size)
{
    const uint32_t crc = crc32c(data, size);
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static tt_status_t s_record(tt_buf_t *out, const void *data, size_t size)
{
    const uint64_t length = size;
    const uint32_t length_crc = s_masked(&length, sizeof length), data_crc = s_masked(data, size);
    TT_TRY(tt_buf_add(out, &length, sizeof length));
    TT_TRY(tt_buf_add(out, &length_crc, sizeof length_crc));
    TT_TRY(tt_buf_add(out, data, size));
    return tt_buf_add(out, &data_crc, sizeof data_crc);
}

/* ---- the file ------------------------------------------------------------------------------------------------------ */

static tt_status_t s_begin(tensorboard_t *self)
{
    static const char version[] = "brain.Event:2";
    tt_buf_clear(&self->event);
    TT_TRY(s_double(&self->event, EVENT_WALL_TIME, (double)tt_wall_ns() * 1e-9));
    TT_TRY(s_bytes(&self->event, EVENT_FILE_VERSION, version, sizeof version - 1));
    return s_record(&self->writer.pending, self->event.data, self->event.size);
}

/*  A file of its own for each coordinator: behind the torn record of one that was killed no reader looks. In a pod the next
 *  one may have the same process id, in the same second. */
static tt_status_t s_open(tensorboard_t *self, const char *dir)
{
    char host[128] = "", path[PATH_MAX];
    if (gethostname(host, sizeof host - 1) != 0)
        snprintf(host, sizeof host, "localhost");
    const long long seconds = (long long)(tt_wall_ns() / 1000000000);
    tt_status_t status = TT_EXISTS;
    for (int later = 0; status == TT_EXISTS && later < TRIES; later++) {
        if (snprintf(path, sizeof path, "%s/events.out.tfevents.%010lld.%s.%d.tutti", dir, seconds + later, host,
                (int)getpid()) >= (int)sizeof path)
            return tt_err(TT_INVALID, "%s: path too long", dir);
        status = writer_open(&self->writer, path, true);
    }
    return status;
}

tt_status_t tensorboard_open(tensorboard_t **self_p, const char *dir)
{
    crc32c_init();
    tensorboard_t *self = tt_new0(sizeof *self);
    tt_buf_init(&self->event, EVENT_MAX);
    tt_buf_init(&self->summary, EVENT_MAX / 2);
    tt_status_t status = s_open(self, dir);
    if (status == TT_OK)
        status = s_begin(self);
    if (status != TT_OK) {
        tensorboard_close(&self);
        return status;
    }
    *self_p = self;
    return TT_OK;
}

void tensorboard_close(tensorboard_t **self_p)
{
    tensorboard_t *self = *self_p;
    if (!self)
        return;
    if (writer_close(&self->writer) != TT_OK)
        log_error("%s", tt_err_text());
    tt_buf_free(&self->event);
    tt_buf_free(&self->summary);
    free(self);
    *self_p = NULL;
}

static tt_status_t s_summary(tt_buf_t *out, const tt_msg_STATS_t *m, double sps)
{
    tt_buf_clear(out);
    TT_TRY(s_value(out, "charts/episodic_return", m->return_mean));
    TT_TRY(s_value(out, "charts/episodic_length", m->length_mean));
    TT_TRY(s_value(out, "charts/SPS", sps > 0 ? sps : NAN));
    for (size_t i = 0; i < m->metrics_count; i++)
        if (m->metrics[i].name && strcmp(m->metrics[i].name, "charts/SPS") != 0 &&
            strncmp(m->metrics[i].name, "eval/", 5) != 0)
            TT_TRY(s_value(out, m->metrics[i].name, m->metrics[i].value));
    return TT_OK;
}

/*  The summary, as an event of that step. */
static tt_status_t s_event(tensorboard_t *self, uint64_t env_steps, double wall_s)
{
    tt_buf_clear(&self->event);
    TT_TRY(s_double(&self->event, EVENT_WALL_TIME, wall_s));
    TT_TRY(s_key(&self->event, EVENT_STEP, VARINT));
    TT_TRY(s_varint(&self->event, env_steps));
    TT_TRY(s_bytes(&self->event, EVENT_SUMMARY, tt_buf_text(&self->summary), self->summary.size));
    const size_t begun = writer_begin(&self->writer);
    TT_TRY(writer_end(&self->writer, begun, s_record(&self->writer.pending, self->event.data, self->event.size)));
    return writer_flush_full(&self->writer);
}

tt_status_t tensorboard_add(tensorboard_t *self, const tt_msg_STATS_t *stats, double wall_s, double sps)
{
    TT_TRY(s_summary(&self->summary, stats, sps));
    return s_event(self, stats->env_steps, wall_s);
}

tt_status_t tensorboard_add_metrics(
    tensorboard_t *self, uint64_t env_steps, double wall_s, const tt_rec_METRIC_t *metric, size_t count)
{
    tt_buf_clear(&self->summary);
    for (size_t i = 0; i < count; i++)
        TT_TRY(s_value(&self->summary, metric[i].name, metric[i].value));
    return s_event(self, env_steps, wall_s);
}

tt_status_t tensorboard_flush(tensorboard_t *self)
{
    return writer_flush(&self->writer);
}
