#include "common/nn/strict/strict.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/mem.h"

static void s_release(strict_device_t *self)
{
    strict_arena_destroy(&self->arena);
    cpu_device_clear(&self->base);
    free(self);
}

static tt_status_t s_open(tt_device_t **self_p, int number, uint32_t lanes)
{
    strict_device_t *self = tt_new0(sizeof *self);
    const tt_status_t status = cpu_device_init(&self->base, &tt_strict_backend, tt_strict_backend.name, number, lanes);
    if (status != TT_OK) {
        free(self);
        return status;
    }
    self->arena = strict_arena_new();
    self->owner = pthread_self();
    const tt_status_t started = strict_runner_start(self);
    if (started == TT_OK)
        *self_p = &self->base.base;
    else
        s_release(self);
    return started;
}

/*  All that was made on it is gone, or that is found here. */
static void s_close(tt_device_t *device)
{
    strict_device_t *self = (strict_device_t *)device;
    TT_CHECK(!self->streams);
    strict_runner_stop(self);
    s_release(self);
}

static tt_status_t s_alloc(tt_device_t *device, void **out, size_t bytes)
{
    *out = strict_arena_take(((strict_device_t *)device)->arena, bytes);
    return TT_OK;
}

static void s_free(tt_device_t *device, void *memory)
{
    strict_arena_give(((strict_device_t *)device)->arena, memory);
}

/*  Its memory is the host's, behind a fence. */
static uint64_t s_room(tt_device_t *device)
{
    (void)device;
    return (uint64_t)sysconf(_SC_AVPHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static tt_status_t s_stream_new(tt_stream_t **self_p, tt_device_t *device)
{
    strict_device_t *owner = (strict_device_t *)device;
    strict_stream_t *self = tt_new0(sizeof *self);
    self->base.device = device;
    self->next = owner->streams;
    owner->streams = self;
    *self_p = &self->base;
    return TT_OK;
}

static void s_stream_free(tt_stream_t *stream)
{
    strict_stream_t *self = (strict_stream_t *)stream;
    strict_stream_t **at = &((strict_device_t *)stream->device)->streams;
    strict_run(self);
    while (*at != self)
        at = &(*at)->next;
    *at = self->next;
    free(self->item);
    free(self);
}

static void s_spoil_walk(const tt_work_t *work)
{
    const tt_walk_t *of = &work->walk.of;
    const tt_net_spec_t *spec = &work->walk.net->spec;
    const size_t carry = tt_net_carry(spec) * sizeof(float);
    for (uint32_t t = 0; t < spec->towers; t++)
        for (uint32_t k = 0; work->walk.out[t] && k < of->steps; k++)
            memset(work->walk.out[t] + k * of->apart * spec->tower[t].out, 0xff,
                of->rows * spec->tower[t].out * sizeof(float));
    if (of->left != of->in)
        memset(of->left, 0xff, of->rows * carry);
    if (of->keeps)
        memset(of->kept, 0xff, of->keeps * carry);
}

/*  What is to be filled holds NaN until it is, and what a node gave is no longer anybody's. */
static void s_spoil(const tt_work_t *work)
{
    if (work->kind == TT_WORK_FORWARD) {
        const tt_net_spec_t *spec = &work->forward.net->spec;
        for (uint32_t t = 0; t < spec->towers; t++)
            if (work->forward.out[t])
                memset(work->forward.out[t], 0xff, work->forward.rows * spec->tower[t].out * sizeof(float));
        const tt_carry_t *carry = &work->forward.carry;
        if (carry->out && carry->out != carry->in)
            memset(carry->out, 0xff, work->forward.rows * tt_net_carry(spec) * sizeof(float));
    }
    if (work->kind == TT_WORK_WALK)
        s_spoil_walk(work);
    const tt_sums_t *sums = work->kind == TT_WORK_COMPUTE ? work->compute.sums
                            : work->kind == TT_WORK_SUM   ? work->sum.sums
                                                          : NULL;
    for (uint32_t s = 0; sums && s < sums->shards; s++)
        if (sums->host[s])
            memset(sums->host[s], 0xff, sums->count * sizeof(float));
}

static strict_item_t *s_keep(const tt_work_t *work)
{
    strict_item_t *item = tt_aligned0(sizeof *item);
    item->work = *work;
    if (work->kind == TT_WORK_COMPUTE) {
        item->pass = *work->compute.pass;
        item->work.compute.pass = &item->pass;
        if (item->pass.params)
            item->pass.params = memcpy(item->params, item->pass.params, item->pass.params_size);
    }
    return item;
}

static void s_check_caller(const tt_device_t *device)
{
    TT_CHECK(pthread_equal(((const strict_device_t *)device)->owner, pthread_self()));
}

static tt_status_t s_queue(tt_stream_t *stream, const tt_work_t *work)
{
    strict_stream_t *self = (strict_stream_t *)stream;
    s_check_caller(stream->device);
    s_spoil(work);
    if (self->count == self->room) {
        self->room = self->room ? 2 * self->room : 16;
        self->item = tt_realloc(self->item, tt_mul(self->room, sizeof *self->item));
    }
    self->item[self->count++] = s_keep(work);
    return TT_OK;
}

/*  It reads when it works, so it works now; what that comes to is said by sync. */
static void s_let_go(tt_stream_t *stream)
{
    s_check_caller(stream->device);
    strict_run((strict_stream_t *)stream);
}

static tt_status_t s_sync(tt_stream_t *stream)
{
    strict_stream_t *self = (strict_stream_t *)stream;
    s_check_caller(stream->device);
    strict_run(self);
    const tt_status_t status = self->status;
    self->status = TT_OK;
    return status == TT_OK ? TT_OK : tt_err(status, "%s", self->text);
}

static void s_wait(tt_device_t *device)
{
    for (strict_stream_t *stream = ((strict_device_t *)device)->streams; stream; stream = stream->next)
        strict_run(stream);
}

const tt_backend_ops_t tt_strict_backend = {
    .name = "cpu-strict",
    .open = s_open,
    .close = s_close,
    .describe = cpu_device_describe,
    .alloc = s_alloc,
    .free = s_free,
    .room = s_room,
    .stream_new = s_stream_new,
    .stream_free = s_stream_free,
    .queue = s_queue,
    .sync = s_sync,
    .let_go = s_let_go,
    .wait = s_wait,
    .net_new = cpu_net_new,
    .net_free = cpu_net_free,
};
