/*  device - opening a card, its memory, and waiting for it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/nn/cuda/cuda.h"
#include "common/nn/cuda/kernels_probe.h"

#define STAGED_MAX ((size_t)64 << 20) /* bytes of pinned memory between two waits; one piece of work may take more */

/*  What to do about what CUDA says; codes that are not here speak for themselves. `fatal`: the card can no longer be used. */
static const struct {
    cudaError_t code;
    bool fatal;
    tt_status_t status;
    const char *advice;
} s_advice[] = {
    {cudaErrorMemoryAllocation, false, TT_DEVICE,
        "make the batch, the network or the number of shards smaller, or have fewer processes on this card"},
    {cudaErrorInsufficientDriver, false, TT_UNSUPPORTED,
        "there is no NVIDIA driver here, or one too old for this build: update the driver, or say cpu (learner.device, "
        "collector.device)"},
    {cudaErrorNoDevice, false, TT_UNSUPPORTED,
        "no card is visible: look at nvidia-smi and CUDA_VISIBLE_DEVICES, or say cpu (learner.device, "
        "collector.device)"},
    {cudaErrorInvalidDevice, false, TT_UNSUPPORTED, "nvidia-smi -L lists the cards, from 0"},
    {cudaErrorSystemDriverMismatch, false, TT_UNSUPPORTED,
        "the driver's two halves are of different releases: restart the machine after an update of the driver, or say "
        "cpu (learner.device, collector.device)"},
    {cudaErrorCompatNotSupportedOnDevice, false, TT_UNSUPPORTED,
        "the driver is too old for this build on such a card: update the driver, or say cpu (learner.device, "
        "collector.device)"},
    {cudaErrorUnsupportedPtxVersion, true, TT_UNSUPPORTED,
        "the driver is too old to compile for this card's architecture: update the driver, or configure "
        "tutti-cuda.so with -DTT_CUDA_ARCHITECTURES=native"},
    {cudaErrorNoKernelImageForDevice, true, TT_UNSUPPORTED,
        "tutti-cuda.so was not built for this card's architecture: configure it with -DTT_CUDA_ARCHITECTURES=native"},
    {cudaErrorInvalidDeviceFunction, true, TT_UNSUPPORTED,
        "tutti-cuda.so was not built for this card's architecture: configure it with -DTT_CUDA_ARCHITECTURES=native"},
    {cudaErrorStreamCaptureUnsupported, true, TT_DEVICE,
        "TT_CUDA_GRAPHS=off in the environment does without recordings"},
    {cudaErrorStreamCaptureInvalidated, true, TT_DEVICE,
        "TT_CUDA_GRAPHS=off in the environment does without recordings"},
};

static size_t s_find(cudaError_t code)
{
    size_t i = 0;
    while (i < TT_COUNT(s_advice) && s_advice[i].code != code)
        i++;
    return i;
}

/*  Every code that is not known to be harmless ends the use of the card: most stay with it until the process ends. */
tt_status_t cuda_said(cuda_device_t *self, cudaError_t code, const char *what)
{
    if (code == cudaSuccess)
        return TT_OK;
    const size_t known = s_find(code);
    const bool fatal = known == TT_COUNT(s_advice) || s_advice[known].fatal;
    const tt_status_t status = known < TT_COUNT(s_advice) ? s_advice[known].status : TT_DEVICE;
    const char *advice =
        known < TT_COUNT(s_advice) ? s_advice[known].advice : "this process ends; look at dmesg and nvidia-smi";
    (void)cudaGetLastError(); /* it has been said */
    tt_err(status, "cuda:%d: %s: %s; %s", self->number, what, cudaGetErrorString(code), advice);
    if (fatal) {
        self->lost = true;
        snprintf(self->why, sizeof self->why, "%s", tt_err_text());
    }
    return status;
}

static tt_status_t s_lost(const cuda_device_t *self)
{
    return self->lost ? tt_err(TT_DEVICE, "%s", self->why) : TT_OK;
}

tt_status_t cuda_launched(cuda_device_t *self, const char *what)
{
    TT_TRY(cuda_said(self, cudaGetLastError(), what));
    return s_lost(self);
}

/* ---- open ---------------------------------------------------------------------------------------------------------- */

static tt_status_t s_choose(cuda_device_t *self)
{
    const int asked = self->number;
    int count = 0;
    self->number = asked < 0 ? 0 : asked; /* for what is said */
    TT_TRY(cuda_said(self, cudaGetDeviceCount(&count), "looking for cards"));
    if (asked < 0 && count > 0)
        self->number = -(asked + 1) % count; /* TT_DEVICE_ANY */
    if (self->number >= count)
        return tt_err(TT_UNSUPPORTED, "cuda:%d: there %s %d card%s here, from cuda:0; nvidia-smi -L lists them",
            self->number, count == 1 ? "is" : "are", count, count == 1 ? "" : "s");
    return cuda_said(self, cudaSetDevice(self->number), "opening it");
}

static tt_status_t s_start(cuda_device_t *self)
{
    struct cudaDeviceProp about;
    TT_TRY(s_choose(self));
    TT_TRY(cuda_said(self, cudaGetDeviceProperties(&about, self->number), "reading what it is"));
    snprintf(self->name, sizeof self->name, "%s:%d %s", TT_CUDA_NAME, self->number, about.name);
    TT_TRY(cuda_said(self, cudaStreamCreateWithFlags(&self->work, cudaStreamNonBlocking), "a stream"));
    cuda_probe(self->work); /* now, and not in the first minibatch, where nobody could choose another device any more */
    return cuda_launched(self, "trying it");
}

static tt_status_t s_open(tt_device_t **self_p, int number, uint32_t lanes)
{
    cuda_device_t *self = tt_new0(sizeof *self);
    self->base = (tt_device_t){.ops = &cuda_backend, .lanes = lanes};
    self->number = number;
    const tt_status_t status = s_start(self);
    if (status != TT_OK) {
        if (self->work)
            cudaStreamDestroy(self->work);
        free(self);
        return status;
    }
    self->graphs = cuda_graphs_new();
    *self_p = &self->base;
    return TT_OK;
}

static void s_close(tt_device_t *device)
{
    cuda_device_t *self = (cuda_device_t *)device;
    TT_CHECK(!self->streams);
    cuda_fast_free(self->fast);
    cuda_free(self, self->frames.memory);
    cuda_graphs_free(self->graphs);
    cuda_staging_clear(&self->staging);
    cudaStreamDestroy(self->work);
    free(self->land);
    free(self);
}

/*  Its products may be other ones from now on: asked before a network is made. */
static tt_status_t s_precision(tt_device_t *device, tt_precision_t precision)
{
    cuda_device_t *self = (cuda_device_t *)device;
    TT_CHECK(!self->fast);
    TT_TRY(cuda_fast_new(&self->fast, device, precision));
    const size_t at = strlen(self->name);
    snprintf(self->name + at, sizeof self->name - at, "%s", cuda_fast_words(self->fast));
    return TT_OK;
}

static const char *s_describe(const tt_device_t *self)
{
    return ((const cuda_device_t *)self)->name;
}

/* ---- memory --------------------------------------------------------------------------------------------------------- */

tt_status_t cuda_alloc(cuda_device_t *self, void **out, size_t bytes)
{
    void *memory = NULL;
    size_t unused = 0, all = 0;
    TT_TRY(s_lost(self));
    const cudaError_t code = cudaMalloc(&memory, bytes ? bytes : 1);
    if (code != cudaSuccess) {
        (void)cudaMemGetInfo(&unused, &all);
        char what[128];
        snprintf(
            what, sizeof what, "%zu MiB asked for, %zu of %zu MiB free", (bytes >> 20) + 1, unused >> 20, all >> 20);
        return cuda_said(self, code, what);
    }
    const tt_status_t status =
        cuda_said(self, cudaMemsetAsync(memory, 0, bytes ? bytes : 1, self->work), "zeros in new memory");
    if (status == TT_OK)
        *out = memory;
    else
        cudaFree(memory);
    return status;
}

void cuda_free(cuda_device_t *self, void *memory)
{
    if (!memory)
        return;
    self->freed++;
    (void)cudaFree(memory);
}

static tt_status_t s_alloc(tt_device_t *self, void **out, size_t bytes)
{
    return cuda_alloc((cuda_device_t *)self, out, bytes);
}

static void s_free(tt_device_t *self, void *memory)
{
    cuda_free((cuda_device_t *)self, memory);
}

static uint64_t s_room(tt_device_t *device)
{
    cuda_device_t *self = (cuda_device_t *)device;
    size_t unused = 0, all = 0;
    return self->lost || cudaMemGetInfo(&unused, &all) != cudaSuccess ? 0 : unused;
}

/* ---- streams -------------------------------------------------------------------------------------------------------- */

static tt_status_t s_stream_new(tt_stream_t **self_p, tt_device_t *device)
{
    cuda_device_t *owner = (cuda_device_t *)device;
    cuda_stream_t *self = tt_new0(sizeof *self);
    self->base.device = device;
    self->next = owner->streams;
    owner->streams = self;
    *self_p = &self->base;
    return TT_OK;
}

static void s_note(cuda_stream_t *stream, tt_status_t status)
{
    if (stream->status != TT_OK)
        return;
    stream->status = status;
    snprintf(stream->text, sizeof stream->text, "%s", tt_err_text());
}

/*  Wait, hand over what landed, and free the staging. */
static tt_status_t s_finish(cuda_device_t *self)
{
    const tt_status_t status =
        self->lost ? s_lost(self) : cuda_said(self, cudaStreamSynchronize(self->work), "its work");
    for (uint32_t i = 0; status == TT_OK && i < self->lands; i++)
        memcpy(self->land[i].to, self->land[i].from, self->land[i].bytes);
    for (cuda_stream_t *stream = self->streams; status != TT_OK && stream; stream = stream->next)
        s_note(stream, status);
    self->lands = 0;
    self->staging.used = 0;
    self->staging.at = 0;
    self->staging.taken = 0;
    return status;
}

static void s_stream_free(tt_stream_t *stream)
{
    cuda_stream_t *self = (cuda_stream_t *)stream;
    cuda_device_t *device = (cuda_device_t *)stream->device;
    cuda_stream_t **at = &device->streams;
    (void)s_finish(device);
    while (*at != self)
        at = &(*at)->next;
    *at = self->next;
    free(self);
}

/*  Whoever queues much and does not wait (a replay's frames after a restart) is waited for here, since memory that is copied from is pinned and
 *  is never given back. What landed is handed over, only earlier; what failed is said by the streams' own syncs. */
static tt_status_t s_queue(tt_stream_t *stream, const tt_work_t *work)
{
    cuda_device_t *self = (cuda_device_t *)stream->device;
    if (self->staging.taken > STAGED_MAX)
        (void)s_finish(self);
    TT_TRY(s_lost(self));
    const uint32_t lands = self->lands;
    const tt_status_t status = cuda_do((cuda_stream_t *)stream, work);
    if (status != TT_OK && self->lands > lands)
        self->lands = lands; /* who hears of the failure now keeps nothing for it */
    return status;
}

static tt_status_t s_sync(tt_stream_t *stream)
{
    cuda_stream_t *self = (cuda_stream_t *)stream;
    (void)s_finish((cuda_device_t *)stream->device); /* this stream knows */
    const tt_status_t status = self->status;
    self->status = TT_OK;
    return status == TT_OK ? TT_OK : tt_err(status, "%s", self->text);
}

static void s_wait(tt_device_t *device)
{
    (void)s_finish((cuda_device_t *)device);
}

const tt_backend_ops_t cuda_backend = {
    .name = TT_CUDA_NAME,
    .open = s_open,
    .close = s_close,
    .describe = s_describe,
    .precision = s_precision,
    .alloc = s_alloc,
    .free = s_free,
    .room = s_room,
    .stream_new = s_stream_new,
    .stream_free = s_stream_free,
    .queue = s_queue,
    .sync = s_sync,
    .wait = s_wait,
    .net_new = cuda_net_new,
    .net_free = cuda_net_free,
};
