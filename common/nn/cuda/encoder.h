/*  encoder - an encoder on a GPU: all rows of a run through a layer at once, and back.
 *
 *  Values, steps and what is passed on the way back are cpu/encoder.h's: value 0 is what the encoder reads, value l + 1 what
 *  layer l gives, and a derivative is passed with that of the activation which gave the value applied. Every value keeps all rows
 *  for the way back; derivatives take turns in as few places as the layers allow, most of them in two.
 *
 *  Memory:  `memory` is device memory of cuda_encoder_bytes() for as many rows or more, aligned to 256; forward and backward of the
 *           same rows get the same, and nobody else writes it in between. Views may take turns in it, the trained one last.
 *  Bits:    those of cpu/encoder.c, whatever the rows of a run are, unless `dense` says otherwise of dense layers.
 *  Threads: the device's owner; the calls queue on the stream and do not wait. */
#pragma once
#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/nn/cuda/fast.h"
#include "common/nn/cuda/kernels.h"
#include "common/nn/nn.h"

typedef struct cuda_encoder cuda_encoder_t; /* opaque; the host's */

/*  Rows of observations: row i lies at rows + row[i] * bytes (row NULL: i). Both are device memory. */
typedef struct {
    uint32_t count;
    const uint8_t *rows;
    size_t bytes;
    const uint32_t *row;
} cuda_rows_t;

/*  Of tower t, an encoder; tensors: those of the tower. The spec must be valid and outlive it. */
cuda_encoder_t *cuda_encoder_new(const tt_net_spec_t *spec, uint32_t t, const tt_tensor_t *tensors);
void cuda_encoder_free(cuda_encoder_t *self);

/*  Floats of a row that it gives, and the activation whose derivative its readers apply. */
size_t cuda_encoder_width(const cuda_encoder_t *self);
tt_nn_activation_t cuda_encoder_activation(const cuda_encoder_t *self);

/*  Bytes for so many rows, on their way forward alone or back as well. */
size_t cuda_encoder_bytes(const cuda_encoder_t *self, uint32_t rows, bool back);

/*  Rows through all layers, with the parameters of a set. Returns what it gives, [rows][width], in `memory`. `memory` may be
 *  as large as for the way forward alone if no backward follows. */
const float *cuda_encoder_forward(const cuda_encoder_t *self, cudaStream_t stream, const cuda_dense_t *dense,
    const float *params, const cuda_rows_t *rows, void *memory);

/*  d: [rows of the run][width], what came to what it gave, with the derivative of that activation applied. The gradients of its tensors
 *  are written in every shard of the run, 0 in those without rows. `memory` is as forward left it for exactly the rows of the run. */
void cuda_encoder_backward(const cuda_encoder_t *self, cudaStream_t stream, const cuda_dense_t *dense,
    const float *params, const cuda_run_t *run, const float *d, void *memory);
