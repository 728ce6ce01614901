/*  cuda_runtime_api - the calls of CUDA's runtime that Tutti makes, for the stand-in of tests/simt: same names, same meaning.
 *
 *  What is not here does not compile, on purpose: the stand-in can be trusted for what it has, and for nothing else. Signatures
 *  (simt_calls.h) and values (simt_values.def) are those of CUDA's header: where there is one, signatures.c is compiled with both.
 *  Threads: as CUDA's; one lock for all. */
#pragma once
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef struct CUgraph_st *cudaGraph_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;

typedef enum cudaError {
#define SIMT_ERROR(name, value) name = value,
#include "simt_values.def"
} cudaError_t;

enum cudaMemcpyKind {
#define SIMT_COPY(name, value) name = value,
#include "simt_values.def"
};

enum cudaFuncAttribute {
#define SIMT_FUNCTION(name, value) name = value,
#include "simt_values.def"
};

enum cudaStreamCaptureMode {
#define SIMT_CAPTURE(name, value) name = value,
#include "simt_values.def"
};

enum {
#define SIMT_FLAG(name, value) name = value,
#include "simt_values.def"
};

struct cudaDeviceProp {
    char name[256];
    int major, minor;
};

#include "simt_calls.h"

#ifdef __cplusplus
}
#endif
