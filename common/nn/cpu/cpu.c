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

static tt_status_t s_cpu_open(tt_device_t **self_p, int device)
{
    const tt_kernels_t *kernels = NULL;
    if (device != 0)
        return tt_err(TT_NOT_FOUND, "cpu: there is no device %d, only 0", device);
    TT_TRY(s_choose(&kernels));
    cpu_device_t *self = tt_new0(sizeof *self);
    self->base.ops = &tt_cpu_backend;
    self->kernels = kernels;
    snprintf(self->name, sizeof self->name, "cpu/%s", kernels->name);
    *self_p = &self->base;
    return TT_OK;
}

static void s_cpu_close(tt_device_t **self_p)
{
    free(*self_p);
    *self_p = NULL;
}

static const char *s_cpu_describe(const tt_device_t *self)
{
    return ((const cpu_device_t *)self)->name;
}

static tt_status_t s_cpu_alloc(tt_device_t *self, void **out, size_t bytes)
{
    (void)self;
    *out = tt_aligned0(bytes);
    return TT_OK;
}

static void s_cpu_free(tt_device_t *self, void *memory)
{
    (void)self;
    free(memory);
}

static tt_status_t s_cpu_copy(tt_device_t *self, void *dst, const void *src, size_t bytes)
{
    (void)self;
    memcpy(dst, src, bytes);
    return TT_OK;
}

static tt_status_t s_cpu_sync(tt_device_t *self)
{
    (void)self;
    return TT_OK;
}

const tt_backend_ops_t tt_cpu_backend = {
    .name = "cpu",
    .open = s_cpu_open,
    .close = s_cpu_close,
    .describe = s_cpu_describe,
    .alloc = s_cpu_alloc,
    .free = s_cpu_free,
    .put = s_cpu_copy,
    .get = s_cpu_copy,
    .sync = s_cpu_sync,
    .net_new = cpu_net_new,
    .net_free = cpu_net_free,
    .refresh = cpu_net_refresh,
    .forward = cpu_forward,
    .shard_grad = cpu_shard_grad,
    .apply = cpu_apply,
    .blend = cpu_blend,
};
