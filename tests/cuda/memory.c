#include "tests/cuda/memory.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"

cudaStream_t device_stream;

void device_fine(cudaError_t error)
{
    if (error != cudaSuccess)
        fail_msg("%s", cudaGetErrorString(error));
}

void device_open(void)
{
    device_fine(cudaStreamCreateWithFlags(&device_stream, cudaStreamNonBlocking));
}

int device_close(int failed)
{
    device_fine(cudaStreamDestroy(device_stream));
    return failed;
}

void device_wait(void)
{
    device_fine(cudaGetLastError());
    device_fine(cudaStreamSynchronize(device_stream));
}

void *device_room(size_t bytes)
{
    void *out = NULL;
    device_fine(cudaMalloc(&out, bytes + 1));
    return out;
}

void *device_put(const void *from, size_t bytes)
{
    void *pinned = NULL, *out = device_room(bytes);
    device_fine(cudaMallocHost(&pinned, bytes + 1));
    memcpy(pinned, from, bytes);
    device_fine(cudaMemcpyAsync(out, pinned, bytes, cudaMemcpyHostToDevice, device_stream));
    device_wait();
    device_fine(cudaFreeHost(pinned));
    return out;
}

void *device_get(const void *from, size_t bytes)
{
    void *pinned = NULL, *out = tt_array0(bytes + 1, 1);
    device_fine(cudaMallocHost(&pinned, bytes + 1));
    device_fine(cudaMemcpyAsync(pinned, from, bytes, cudaMemcpyDeviceToHost, device_stream));
    device_wait();
    memcpy(out, pinned, bytes);
    device_fine(cudaFreeHost(pinned));
    return out;
}

float *device_put_floats(const float *from, size_t count)
{
    return device_put(from, count * sizeof *from);
}

void device_same(const float *expected, float *got, size_t count, const char *what)
{
    float *floats = device_get(got, count * sizeof *floats);
    ops_assert_same(expected, floats, count, "cuda", what);
    free(floats);
    device_fine(cudaFree(got));
}

void grads_take(grads_t *self, uint32_t rows, uint32_t lo, uint32_t hi, size_t count)
{
    *self = (grads_t){.run = {.shards = SHARDS, .rows = rows, .lo = lo, .hi = hi, .grad = self->grad}, .count = count};
    for (uint32_t s = lo; s < hi; s++)
        self->grad[s] = device_room(count * sizeof(float));
}

uint32_t grads_begin(const cuda_run_t *run, uint32_t s)
{
    return (uint32_t)((uint64_t)s * run->rows / run->shards);
}

void grads_same(const grads_t *self, uint32_t s, const float *expected, size_t at, size_t count, const char *what)
{
    float *got = device_get(self->grad[s] + at, count * sizeof *got);
    char words[240];
    snprintf(words, sizeof words, "%s, shard %u", what, s);
    ops_assert_same(expected, got, count, "cuda", words);
    free(got);
}

void grads_free(grads_t *self)
{
    for (uint32_t s = self->run.lo; s < self->run.hi; s++)
        device_fine(cudaFree(self->grad[s]));
}

size_t device_cases(size_t count)
{
    const char *most = getenv("TT_CARD_CASES");
    const size_t limit = most ? (size_t)atoi(most) : count;
    return limit < count ? limit : count;
}
