/*  memory - of a card, aligned as the backend's is, and the gradients of a run there, for the tests of encoders and of their layers (card.h has
 *  memory that is aligned to nothing). The card is the simulated one, or in the programs of tests/gpu this machine's.
 *
 *  Threads: one. */
#pragma once
#include <cuda_runtime_api.h>
#include "common/nn/cuda/kernels.h"
#include "tests/nn/ops_fixture.h"

enum { SHARDS = 8 };

/*  On which all of it is queued; it is there while device_run_tests runs. */
extern cudaStream_t device_stream;
#define device_run_tests(tests) (device_open(), device_close(cmocka_run_group_tests(tests, NULL, NULL)))
void device_open(void);
/*  Gives back `failed`. */
int device_close(int failed);
/*  TT_CARD_CASES=N: at most so many, for tools that make each of them slow. */
size_t device_cases(size_t count);

void device_fine(cudaError_t error);
void device_wait(void);
/*  cudaFree() what is there: room, and copies, by way of pinned memory. */
void *device_room(size_t bytes);
void *device_put(const void *from, size_t bytes);
float *device_put_floats(const float *from, size_t count);
/*  free() it. */
void *device_get(const void *from, size_t bytes);
/*  The same bits. `got` is the device's, and freed. */
void device_same(const float *expected, float *got, size_t count, const char *what);

/*  Gradient buffers of shards lo .. hi-1, `count` floats each. */
typedef struct {
    cuda_run_t run;
    size_t count;
    float *grad[SHARDS];
} grads_t;

void grads_take(grads_t *self, uint32_t rows, uint32_t lo, uint32_t hi, size_t count);
void grads_free(grads_t *self);
/*  The first row of shard s. */
uint32_t grads_begin(const cuda_run_t *run, uint32_t s);
/*  Some of shard s are these, bit by bit. */
void grads_same(const grads_t *self, uint32_t s, const float *expected, size_t at, size_t count, const char *what);
