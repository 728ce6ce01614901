/*  rounded - a card whose products are not exact, for tests of them: opening it, numbers there and here, and how far off they may be. The
 *  library is the stand-in's (tests/simt/lt.cc), or in the programs of tests/gpu NVIDIA's.
 *
 *  Threads: one. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "common/nn/cuda/cuda.h"
#include "tests/test.h"

/*  What fits the simulated card, in the size that a real one needs before anything goes to the library. */
uint32_t rounded_scaled(uint32_t count);

cuda_device_t *rounded_open(tt_precision_t precision);
void rounded_close(cuda_device_t *device);

/*  Numbers of size 1, none of which TF32 or BF16 has: here, and a copy there that begins `at` floats behind an aligned place. */
typedef struct {
    size_t count;
    float *here, *there;
    float *memory; /* there */
} rounded_t;

rounded_t rounded_array(cuda_device_t *device, uint32_t what, size_t count, size_t at);
void rounded_free(cuda_device_t *device, rounded_t *self);
/*  What is there now. Caller frees. */
float *rounded_fetch(cuda_device_t *device, const float *there, size_t count);

/*  By how much a sum of `k` products of `size` together may be off: two roundings of factors, to 11 bits or 8, and FP32's own. */
double rounded_allowed(tt_precision_t precision, double size, uint32_t k);
