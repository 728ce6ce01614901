#define TT_LOG_COMPONENT "device"
#include "common/nn/device.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/nn/backend.h"

enum { LANES_MAX = 1024 };

static tt_status_t s_unknown(const char *backend)
{
    char known[128] = "";
    for (size_t i = 0; tt_backends[i]; i++) {
        const size_t at = strlen(known);
        snprintf(known + at, sizeof known - at, "%s'%s'", i ? ", " : "", tt_backends[i]->name);
    }
    return tt_err(TT_NOT_FOUND, "no backend called '%s' in this build; there is %s", backend, known);
}

/*  backend NULL: what TT_DEVICE names, or the first. */
static tt_status_t s_find(const char *backend, const tt_backend_ops_t **out)
{
    const char *wish = getenv("TT_DEVICE");
    if (!backend)
        backend = wish && *wish ? wish : tt_backends[0]->name;
    for (size_t i = 0; tt_backends[i]; i++)
        if (strcmp(tt_backends[i]->name, backend) == 0) {
            *out = tt_backends[i];
            return TT_OK;
        }
    return s_unknown(backend);
}

tt_status_t tt_device_open(tt_device_t **self_p, const char *backend, int number, uint32_t lanes)
{
    const tt_backend_ops_t *ops = NULL;
    TT_TRY(s_find(backend, &ops));
    if (lanes < 1 || lanes > LANES_MAX)
        return tt_err(TT_INVALID, "device %s: %u lanes; 1 to %d are possible", ops->name, lanes, LANES_MAX);
    return ops->open(self_p, number, lanes);
}

typedef struct {
    char backend[32];
    int number; /* -1: any */
} wish_t;

/*  BACKEND or BACKEND:N, N of at most three digits. */
static bool s_parse(const char *wish, wish_t *out)
{
    const size_t name = strcspn(wish, ":"), digits = wish[name] ? strlen(wish + name + 1) : 0;
    if (name == 0 || name >= sizeof out->backend || digits > 3 || (wish[name] && digits == 0))
        return false;
    if (strspn(wish + name + (digits > 0), "0123456789") != digits)
        return false;
    *out = (wish_t){.number = digits ? atoi(wish + name + 1) : -1};
    memcpy(out->backend, wish, name);
    return true;
}

tt_status_t tt_device_check_wish(const char *wish)
{
    const tt_backend_ops_t *ops = NULL;
    wish_t parsed;
    if (strcmp(wish, "auto") == 0)
        return TT_OK;
    if (!s_parse(wish, &parsed) || s_find(parsed.backend, &ops) != TT_OK ||
        (ops == tt_backends[0] && parsed.number > 0))
        return tt_err(TT_CONFIG, "'%s' is no device; there is cpu, cuda, cuda:N and auto", wish);
    return TT_OK;
}

/*  A card that is there and fails is no reason for the CPU: that would be slow, and nobody would know why. One that cannot be used here is,
 *  and the log says what was in the way. */
static tt_status_t s_open_any(tt_device_t **self_p, uint32_t place, uint32_t lanes)
{
    const tt_status_t status = tt_device_open(self_p, "cuda", TT_DEVICE_ANY(place), lanes);
    if (status != TT_UNSUPPORTED)
        return status;
    log_info("auto is the CPU here: %s", tt_err_text());
    return tt_device_open(self_p, NULL, 0, lanes);
}

tt_status_t tt_device_open_wish(tt_device_t **self_p, const char *wish, uint32_t place, uint32_t lanes)
{
    wish_t parsed;
    if (strcmp(wish, "auto") == 0)
        return s_open_any(self_p, place, lanes);
    TT_TRY(tt_device_check_wish(wish));
    (void)s_parse(wish, &parsed);
    const char *backend = strcmp(parsed.backend, tt_backends[0]->name) ? parsed.backend : NULL;
    return tt_device_open(self_p, backend, parsed.number < 0 ? TT_DEVICE_ANY(place) : parsed.number, lanes);
}

const char *tt_precision_name(tt_precision_t precision)
{
    static const char *const names[] = {[TT_EXACT] = "exact", [TT_TF32] = "tf32", [TT_BF16] = "bf16"};
    return names[precision];
}

tt_status_t tt_device_precision(tt_device_t *self, tt_precision_t precision)
{
    if (precision == TT_EXACT)
        return TT_OK;
    if (!self->ops->precision)
        return tt_err(TT_UNSUPPORTED,
            "%s: it can only compute exactly; %s wants a card (learner.device: cuda), or say learner.precision: exact",
            tt_device_name(self), tt_precision_name(precision));
    return self->ops->precision(self, precision);
}

void tt_device_close(tt_device_t **self_p)
{
    if (*self_p)
        (*self_p)->ops->close(*self_p);
    *self_p = NULL;
}

const char *tt_device_name(const tt_device_t *self)
{
    return self->ops->describe(self);
}

uint64_t tt_device_free(tt_device_t *self)
{
    return self->ops->room(self);
}

tt_status_t tt_stream_new(tt_stream_t **self_p, tt_device_t *device)
{
    return device->ops->stream_new(self_p, device);
}

void tt_stream_destroy(tt_stream_t **self_p)
{
    if (*self_p)
        (*self_p)->device->ops->stream_free(*self_p);
    *self_p = NULL;
}

tt_status_t tt_stream_sync(tt_stream_t *self)
{
    return self->device->ops->sync(self);
}

void tt_stream_let_go(tt_stream_t *self)
{
    if (self->device->ops->let_go)
        self->device->ops->let_go(self);
}

tt_status_t tt_table_new(tt_table_t **self_p, tt_device_t *device, size_t bytes)
{
    tt_table_t *self = tt_new0(sizeof *self);
    self->device = device;
    self->bytes = bytes;
    *self_p = self;
    return TT_OK;
}

void tt_table_destroy(tt_table_t **self_p)
{
    tt_table_t *self = *self_p;
    if (!self)
        return;
    self->device->ops->wait(self->device);
    self->device->ops->free(self->device, self->copy);
    free(self);
    *self_p = NULL;
}

static tt_status_t s_put(tt_table_t *self, tt_stream_t *stream, const void *rows, const void *const *row,
    const tt_stack_t *stack, size_t count)
{
    const tt_work_t work = {.kind = TT_WORK_TABLE, .table = {self, rows, row, stack, count}};
    TT_TRY(self->device->ops->queue(stream, &work));
    self->count = count;
    self->side_by_side = !row;
    return TT_OK;
}

tt_status_t tt_table_put(tt_table_t *self, tt_stream_t *stream, const void *rows, size_t count)
{
    return s_put(self, stream, rows, NULL, NULL, count);
}

tt_status_t tt_table_put_rows(tt_table_t *self, tt_stream_t *stream, const void *const *row, size_t count)
{
    return s_put(self, stream, NULL, row, NULL, count);
}

tt_status_t tt_table_put_frames(
    tt_table_t *self, tt_stream_t *stream, const tt_stack_t *stack, const void *const *frame, size_t count)
{
    return s_put(self, stream, NULL, frame, stack->frames > 1 ? stack : NULL, count);
}
