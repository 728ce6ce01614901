#include "tests/cuda/rounded.h"
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "tests/nn/fixture.h"

uint32_t rounded_scaled(uint32_t count)
{
    return strcmp(fixture_card(), "cuda-sim") == 0 ? count : count * 32;
}

cuda_device_t *rounded_open(tt_precision_t precision)
{
    tt_device_t *device = NULL;
    assert_ok(cuda_backend.open(&device, 0, 1));
    assert_ok(cuda_backend.precision(device, precision));
    return (cuda_device_t *)device;
}

void rounded_close(cuda_device_t *device)
{
    assert_int_equal(cudaStreamSynchronize(device->work), cudaSuccess);
    cuda_backend.close(&device->base);
}

rounded_t rounded_array(cuda_device_t *device, uint32_t what, size_t count, size_t at)
{
    rounded_t self = {.count = count, .here = tt_array0(count, sizeof(float))};
    void *memory = NULL;
    for (size_t i = 0; i < count; i++)
        self.here[i] = fixture_number(what, i);
    assert_ok(cuda_alloc(device, &memory, (count + at) * sizeof(float)));
    self.memory = memory;
    self.there = self.memory + at;
    assert_ok(cuda_up(device, self.there, self.here, count * sizeof(float)));
    return self;
}

void rounded_free(cuda_device_t *device, rounded_t *self)
{
    cuda_free(device, self->memory);
    free(self->here);
}

float *rounded_fetch(cuda_device_t *device, const float *there, size_t count)
{
    float *out = tt_array0(count, sizeof *out);
    void *stage = NULL;
    assert_ok(cuda_fetch(device, there, count * sizeof *out, &stage));
    assert_int_equal(cudaStreamSynchronize(device->work), cudaSuccess);
    memcpy(out, stage, count * sizeof *out);
    return out;
}

double rounded_allowed(tt_precision_t precision, double size, uint32_t k)
{
    const double u = precision == TT_TF32 ? 0x1p-11 : 0x1p-8;
    return (2 * u + u * u) * size + (k + 4) * 0x1p-23 * (size + 2);
}
