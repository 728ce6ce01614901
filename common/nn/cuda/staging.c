/*  staging - copies between host and card by way of pinned memory: asynchronous ones are only such. */
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/nn/cuda/cuda.h"

enum { BLOCK_BYTES = 1 << 20, STAGE_ALIGN = 64 };

static tt_status_t s_grow(cuda_device_t *device, size_t bytes)
{
    cuda_staging_t *self = &device->staging;
    void *memory = NULL;
    /* twice what there is, so that few are enough */
    size_t size = self->blocks ? 2 * self->block[self->blocks - 1].size : BLOCK_BYTES;
    while (size < bytes)
        size *= 2;
    TT_CHECK(self->blocks < TT_COUNT(self->block));
    const cudaError_t code = cudaMallocHost(&memory, size);
    if (code != cudaSuccess)
        return tt_err_wrap(
            cuda_said(device, code, "memory that is copied from"), "%zu bytes of pinned memory (see ulimit -l)", size);
    self->block[self->blocks].memory = memory;
    self->block[self->blocks++].size = size;
    return TT_OK;
}

tt_status_t cuda_stage(cuda_device_t *device, size_t bytes, void **out)
{
    cuda_staging_t *self = &device->staging;
    const size_t size = tt_align(bytes, STAGE_ALIGN);
    while (self->used < self->blocks && self->block[self->used].size - self->at < size) {
        self->used++;
        self->at = 0;
    }
    if (self->used == self->blocks)
        TT_TRY(s_grow(device, size));
    *out = self->block[self->used].memory + self->at;
    self->at += size;
    self->taken += size;
    return TT_OK;
}

void cuda_staging_clear(cuda_staging_t *self)
{
    for (uint32_t i = 0; i < self->blocks; i++)
        cudaFreeHost(self->block[i].memory);
    *self = (cuda_staging_t){0};
}

tt_status_t cuda_up(cuda_device_t *self, void *to, const void *from, size_t bytes)
{
    void *stage = NULL;
    if (bytes == 0)
        return TT_OK;
    TT_TRY(cuda_stage(self, bytes, &stage));
    memcpy(stage, from, bytes);
    return cuda_said(self, cudaMemcpyAsync(to, stage, bytes, cudaMemcpyHostToDevice, self->work), "a copy to the card");
}

void cuda_land(cuda_device_t *self, const cuda_land_t *land)
{
    if (self->lands == self->land_room) {
        self->land_room = self->land_room ? 2 * self->land_room : 16;
        self->land = tt_realloc(self->land, tt_mul(self->land_room, sizeof *self->land));
    }
    self->land[self->lands++] = *land;
}

tt_status_t cuda_fetch(cuda_device_t *self, const void *from, size_t bytes, void **stage)
{
    TT_TRY(cuda_stage(self, bytes, stage));
    return cuda_said(
        self, cudaMemcpyAsync(*stage, from, bytes, cudaMemcpyDeviceToHost, self->work), "a copy from the card");
}

tt_status_t cuda_down(cuda_stream_t *stream, void *to, const void *from, size_t bytes)
{
    cuda_device_t *self = (cuda_device_t *)stream->base.device;
    void *stage = NULL;
    if (bytes == 0)
        return TT_OK;
    TT_TRY(cuda_fetch(self, from, bytes, &stage));
    cuda_land(self, &(cuda_land_t){.from = stage, .to = to, .bytes = bytes});
    return TT_OK;
}
