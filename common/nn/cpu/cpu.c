#include "common/nn/cpu/cpu.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"

typedef struct {
    const tt_kernels_t *kernels;
    bool (*available)(void);
} build_t;

static bool s_always(void)
{
    return true;
}

#ifdef TT_X86_KERNELS
static bool s_has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
static bool s_has_avx512(void)
{
    return s_has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}
#endif

/*  Best first. */
static const build_t s_builds[] = {
#ifdef TT_X86_KERNELS
    {&tt_kernels_avx512, s_has_avx512},
    {&tt_kernels_avx2, s_has_avx2},
#endif
    {&tt_kernels_portable, s_always},
};

static tt_status_t s_choose(const tt_kernels_t **out)
{
    const char *wish = getenv("TT_CPU");
    for (size_t i = 0; i < TT_COUNT(s_builds); i++) {
        const build_t *build = &s_builds[i];
        const bool named = wish && *wish;
        if (named && strcmp(wish, build->kernels->name) != 0)
            continue;
        if (build->available()) {
            *out = build->kernels;
            return TT_OK;
        }
        if (named)
            return tt_err(TT_UNSUPPORTED, "TT_CPU=%s: this processor lacks it; unset TT_CPU to let Tutti choose", wish);
    }
    return tt_err(TT_UNSUPPORTED, "TT_CPU=%s: unknown here; use portable, avx2 or avx512, or unset it", wish);
}

tt_status_t cpu_device_init(
    cpu_device_t *self, const tt_backend_ops_t *ops, const char *prefix, int number, uint32_t lanes)
{
    if (number > 0)
        return tt_err(TT_NOT_FOUND, "%s: there is no device %d, only 0", ops->name, number);
    TT_TRY(s_choose(&self->kernels));
    self->base = (tt_device_t){.ops = ops, .lanes = lanes};
    TT_TRY(cpu_pool_new(&self->pool, lanes));
    snprintf(self->name, sizeof self->name, "%s/%s", prefix, self->kernels->name);
    return TT_OK;
}

void cpu_device_clear(cpu_device_t *self)
{
    cpu_pool_destroy(&self->pool);
}

const char *cpu_device_describe(const tt_device_t *self)
{
    return ((const cpu_device_t *)self)->name;
}

static tt_status_t s_open(tt_device_t **self_p, int number, uint32_t lanes)
{
    cpu_device_t *self = tt_new0(sizeof *self);
    const tt_status_t status = cpu_device_init(self, &tt_cpu_backend, tt_cpu_backend.name, number, lanes);
    if (status == TT_OK)
        *self_p = &self->base;
    else
        free(self);
    return status;
}

static void s_close(tt_device_t *device)
{
    cpu_device_clear((cpu_device_t *)device);
    free(device);
}

static tt_status_t s_alloc(tt_device_t *self, void **out, size_t bytes)
{
    (void)self;
    *out = tt_pages0(bytes);
    return TT_OK;
}

static void s_free(tt_device_t *self, void *memory)
{
    (void)self;
    free(memory);
}

static uint64_t s_no_room(tt_device_t *self)
{
    (void)self;
    return 0;
}

static tt_status_t s_stream_new(tt_stream_t **self_p, tt_device_t *device)
{
    *self_p = tt_new0(sizeof **self_p);
    (*self_p)->device = device;
    return TT_OK;
}

static void s_stream_free(tt_stream_t *self)
{
    free(self);
}

/* ---- work: at once, where things lie ------------------------------------------------------------------------------ */

static tt_status_t s_table(const tt_work_t *work)
{
    tt_table_t *table = work->table.table;
    table->rows = work->table.rows;
    table->row = work->table.row;
    table->stack = work->table.stack;
    table->there = work->table.count;
    return TT_OK;
}

static tt_status_t s_put(const tt_work_t *work)
{
    const tt_net_t *net = work->put.net;
    memcpy(net->params[work->put.set], work->put.params, net->param_count * sizeof(float));
    cpu_net_refresh(net, work->put.set, UINT32_MAX);
    return TT_OK;
}

static tt_status_t s_get(const tt_work_t *work)
{
    memcpy(work->get.out, work->get.net->params[work->get.set] + work->get.first, work->get.count * sizeof(float));
    return TT_OK;
}

static tt_status_t (*const s_do[TT_WORKS])(const tt_work_t *work) = {
    [TT_WORK_TABLE] = s_table,
    [TT_WORK_STORE] = cpu_store,
    [TT_WORK_STORED] = cpu_stored,
    [TT_WORK_PUT] = s_put,
    [TT_WORK_GET] = s_get,
    [TT_WORK_BLEND] = cpu_blend,
    [TT_WORK_NOISE] = cpu_noise,
    [TT_WORK_FORWARD] = cpu_forward,
    [TT_WORK_WALK] = cpu_walk,
    [TT_WORK_COMPUTE] = cpu_compute,
    [TT_WORK_NODE] = cpu_node,
    [TT_WORK_SUM] = cpu_sum,
    [TT_WORK_STATE_PUT] = cpu_state_put,
    [TT_WORK_STATE_GET] = cpu_state_get,
    [TT_WORK_STEP] = cpu_step,
    [TT_WORK_REPORT] = cpu_report,
};

tt_status_t cpu_do(const tt_work_t *work)
{
    return s_do[work->kind](work);
}

static tt_status_t s_queue(tt_stream_t *self, const tt_work_t *work)
{
    (void)self;
    return cpu_do(work);
}

static tt_status_t s_sync(tt_stream_t *self)
{
    (void)self;
    return TT_OK;
}

static void s_wait(tt_device_t *self)
{
    (void)self;
}

const tt_backend_ops_t tt_cpu_backend = {
    .name = "cpu",
    .open = s_open,
    .close = s_close,
    .describe = cpu_device_describe,
    .alloc = s_alloc,
    .free = s_free,
    .room = s_no_room,
    .stream_new = s_stream_new,
    .stream_free = s_stream_free,
    .queue = s_queue,
    .sync = s_sync,
    .wait = s_wait,
    .net_new = cpu_net_new,
    .net_free = cpu_net_free,
};
