/*  kernels_probe - whether a card can run our kernels at all, asked when it is opened (kernels/probe.cu).
 *
 *  Threads: the device's owner. */
#pragma once
#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/*  Launches one that does nothing; cudaGetLastError has the answer. */
void cuda_probe(cudaStream_t stream);

#ifdef __cplusplus
}
#endif
