#include "common/nn/late.h"
#include <limits.h>
#include <stdio.h>
#include <unistd.h>
#include "common/base/dylib.h"

typedef const tt_backend_ops_t *(*backend_fn)(uint32_t abi, const char *version);
typedef const char *(*error_fn)(void);

/*  A library and what it shows. */
typedef struct {
    const char *file;
    const tt_backend_ops_t *here; /* what devices are opened with */
    tt_dylib_t library;
    backend_fn backend;
    error_fn error;
    const tt_backend_ops_t *there; /* NULL: not loaded yet */
} late_t;

#define LIBRARY(self, file_, backend_, advice_)                                                        \
    {                                                                                                  \
        .file = (file_), .here = &(backend_), .library = TT_DYLIB(NULL, advice_, self##_symbols, NULL) \
    }

static late_t s_cuda, s_sim;
static const tt_symbol_t s_cuda_symbols[] = {
    {"tutti_cuda_backend", &s_cuda.backend}, {"tutti_cuda_error", &s_cuda.error}};
static const tt_symbol_t s_sim_symbols[] = {{"tutti_cuda_backend", &s_sim.backend}, {"tutti_cuda_error", &s_sim.error}};
static late_t s_cuda = LIBRARY(s_cuda, "tutti-cuda.so", tt_cuda_backend,
    "it is built where CMake finds nvcc (docs/guide/gpu.md); or say cpu (learner.device, collector.device)");
static late_t s_sim = LIBRARY(s_sim, "tutti-cuda-sim.so", tt_cuda_sim_backend, "cuda-sim is built with the tests");

static late_t *s_of(const tt_device_t *device)
{
    return device->ops == s_sim.here ? &s_sim : &s_cuda;
}

/* ---- finding the library ---------------------------------------------------------------------------------------------- */

/*  The folder of the program, without a slash at its end. */
static bool s_folder(char *out, size_t size)
{
    const ssize_t length = readlink("/proc/self/exe", out, size - 1);
    if (length <= 0)
        return false;
    out[length] = '\0';
    char *slash = strrchr(out, '/');
    if (slash)
        *slash = '\0';
    return slash != NULL;
}

/*  The first place where it lies; else its bare name, for the loader's path. Kept as long as the process. */
static const char *s_place(const late_t *self)
{
    static const char *const beside[] = {"", "/../lib/tutti", NULL};
    static _Thread_local char path[PATH_MAX + 64];
    char folder[PATH_MAX];
    for (size_t i = 0; s_folder(folder, sizeof folder) && beside[i]; i++) {
        snprintf(path, sizeof path, "%s%s/%s", folder, beside[i], self->file);
        if (access(path, R_OK) == 0)
            return path;
    }
    return self->file;
}

static tt_status_t s_load(late_t *self)
{
    if (self->there)
        return TT_OK;
    self->library.soname = s_place(self);
    TT_TRY(tt_dylib_load(&self->library));
    self->there = self->backend(TT_BACKEND_ABI, TT_VERSION);
    return self->there ? TT_OK
                       : tt_err(TT_UNSUPPORTED, "%s is of another build than this program (%s): install both from one",
                             self->library.soname, TT_VERSION);
}

/* ---- the backend ------------------------------------------------------------------------------------------------------ */

/*  The library's words become this program's. */
static tt_status_t s_said(const late_t *self, tt_status_t status)
{
    return status == TT_OK ? TT_OK : tt_err(status, "%s", self->error());
}

static tt_status_t s_open_in(late_t *self, tt_device_t **self_p, int number, uint32_t lanes)
{
    tt_device_t *device = NULL;
    TT_TRY(s_load(self));
    TT_TRY(s_said(self, self->there->open(&device, number, lanes)));
    device->ops = self->here;
    *self_p = device;
    return TT_OK;
}

static tt_status_t s_open_cuda(tt_device_t **self_p, int number, uint32_t lanes)
{
    return s_open_in(&s_cuda, self_p, number, lanes);
}

static tt_status_t s_open_sim(tt_device_t **self_p, int number, uint32_t lanes)
{
    return s_open_in(&s_sim, self_p, number, lanes);
}

static void s_close(tt_device_t *self)
{
    s_of(self)->there->close(self);
}

static const char *s_describe(const tt_device_t *self)
{
    return s_of(self)->there->describe(self);
}

static tt_status_t s_precision(tt_device_t *self, tt_precision_t precision)
{
    return s_said(s_of(self), s_of(self)->there->precision(self, precision));
}

static tt_status_t s_alloc(tt_device_t *self, void **out, size_t bytes)
{
    return s_said(s_of(self), s_of(self)->there->alloc(self, out, bytes));
}

static void s_free(tt_device_t *self, void *memory)
{
    s_of(self)->there->free(self, memory);
}

static uint64_t s_room(tt_device_t *self)
{
    return s_of(self)->there->room(self);
}

static tt_status_t s_stream_new(tt_stream_t **self_p, tt_device_t *device)
{
    return s_said(s_of(device), s_of(device)->there->stream_new(self_p, device));
}

static void s_stream_free(tt_stream_t *self)
{
    s_of(self->device)->there->stream_free(self);
}

static tt_status_t s_queue(tt_stream_t *self, const tt_work_t *work)
{
    return s_said(s_of(self->device), s_of(self->device)->there->queue(self, work));
}

static tt_status_t s_sync(tt_stream_t *self)
{
    return s_said(s_of(self->device), s_of(self->device)->there->sync(self));
}

static void s_wait(tt_device_t *self)
{
    s_of(self)->there->wait(self);
}

static tt_status_t s_net_new(tt_net_t *net)
{
    return s_said(s_of(net->device), s_of(net->device)->there->net_new(net));
}

static void s_net_free(tt_net_t *net)
{
    s_of(net->device)->there->net_free(net);
}

#define LATE(name_, open_)                                                                                          \
    {                                                                                                               \
        .name = (name_), .open = (open_), .close = s_close, .describe = s_describe, .precision = s_precision,       \
        .alloc = s_alloc, .free = s_free, .room = s_room, .stream_new = s_stream_new, .stream_free = s_stream_free, \
        .queue = s_queue, .sync = s_sync, .wait = s_wait, .net_new = s_net_new, .net_free = s_net_free              \
    }

const tt_backend_ops_t tt_cuda_backend = LATE("cuda", s_open_cuda);
const tt_backend_ops_t tt_cuda_sim_backend = LATE("cuda-sim", s_open_sim);
