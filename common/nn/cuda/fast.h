/*  fast - dense layers and convolutions by another library's products, for who wants speed and not the CPU's bits (learner.precision).
 *
 *  What goes there: of a pass, a layer's product, its way back and its weights' gradients, by NVIDIA's cuBLASLt, whose tensor cores
 *  round what is multiplied to TF32 or BF16 and add in FP32. Whatever else there is, products too small to gain among it, and whoever
 *  asks for heads, is as exact as ever.
 *  Bits:    a product is made of one shard's rows at a time, of pictures of as many as the memory for them holds, by an algorithm that is
 *           chosen once for its shape, of those that add the parts of a split sum one by one. So it depends on the shard, the card and the release of the library alone: not on who else has shards of
 *           the minibatch, nor on graphs, nor on the clock.
 *  Errors:  calls that launch remember what failed; cuda_launched says it.
 *  Threads: the device's owner. */
#pragma once
#include <cuda_runtime_api.h>
#include "common/nn/cuda/kernels.h"
#include "common/nn/cuda/kernels_encoder.h"
#include "common/nn/device.h"

/*  Below so many multiply-adds a shard, or so many numbers along a side, our own kernel is no slower: on paper it makes 10 T a second, a
 *  tensor core's 50 T and more, and one launch more, which ends the products, costs 3 us. 2^25 take 3.4 us of ours. */
#ifndef CUDA_FAST_LEAST
#define CUDA_FAST_LEAST (1u << 25)
#define CUDA_FAST_SIDE  32
#endif

typedef struct cuda_fast cuda_fast_t; /* opaque */

/*  TT_UNSUPPORTED: no library, or it cannot use the card. It borrows the device, which comes to an end after it. */
tt_status_t cuda_fast_new(cuda_fast_t **self_p, tt_device_t *device, tt_precision_t precision);
void cuda_fast_free(cuda_fast_t *self);
/*  ", tf32 by cuBLASLt 13.1.2". */
const char *cuda_fast_words(const cuda_fast_t *self);

/*  How the layers of a run are multiplied. {0}: exactly. */
typedef struct {
    cuda_fast_t *fast;     /* NULL: exactly                         */
    const cuda_run_t *run; /* NULL: exactly; rows are nobody's shards */
} cuda_dense_t;
/*  As cuda_gemm, of all rows of the run. The job's arrays are plain, but for b. */
void cuda_dense(const cuda_dense_t *self, cudaStream_t stream, const cuda_gemm_t *job);
/*  As cuda_outer. */
void cuda_dense_grads(const cuda_dense_t *self, cudaStream_t stream, const cuda_run_t *run, const cuda_outer_t *job);

/*  As cuda_conv and cuda_conv_back, of all rows of the run; as cuda_conv_grads. */
void cuda_conv2d(const cuda_dense_t *self, cudaStream_t stream, const cuda_conv_t *job);
void cuda_conv2d_back(const cuda_dense_t *self, cudaStream_t stream, const cuda_conv_back_t *job);
void cuda_conv2d_grads(
    const cuda_dense_t *self, cudaStream_t stream, const cuda_run_t *run, const cuda_conv_grads_t *job);
