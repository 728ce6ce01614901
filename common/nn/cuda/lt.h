/*  lt - what of NVIDIA's cuBLASLt is called, and finding it: a library that is loaded when somebody asks for products that are not
 *  exact, so that nobody else needs it, and no build does.
 *
 *  Names, types and values are those of NVIDIA's header; where there is one, tests/simt/signatures_lt.c is compiled with both. Matrices are
 *  column by column there: ours, row by row, are their transposes.
 *  Threads: any may load; a handle belongs to one. */
#pragma once
#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
#define LT_STATUS(name, value) name = value,
#include "common/nn/cuda/lt_values.def"
} cublasStatus_t;
typedef enum {
#define LT_COMPUTE(name, value) name = value,
#include "common/nn/cuda/lt_values.def"
} cublasComputeType_t;
typedef enum {
#define LT_OPERATION(name, value) name = value,
#include "common/nn/cuda/lt_values.def"
} cublasOperation_t;
typedef enum {
#define LT_DESC(name, value) name = value,
#include "common/nn/cuda/lt_values.def"
} cublasLtMatmulDescAttributes_t;
typedef enum {
#define LT_PREF(name, value) name = value,
#include "common/nn/cuda/lt_values.def"
} cublasLtMatmulPreferenceAttributes_t;
enum {
#define LT_REDUCTION(name, value) name = value,
#include "common/nn/cuda/lt_values.def"
};
#ifdef CUDART_VERSION
#include <library_types.h>
#else /* the stand-in's headers have no types of numbers */
typedef enum {
#define LT_TYPE(name, value) name = value,
#include "common/nn/cuda/lt_values.def"
} cudaDataType_t;
#endif

typedef struct cublasLtContext *cublasLtHandle_t;
typedef struct lt_desc *cublasLtMatmulDesc_t; /* opaque, all four */
typedef struct lt_layout *cublasLtMatrixLayout_t;
typedef struct lt_pref *cublasLtMatmulPreference_t;
typedef struct {
    uint64_t data[8];
} cublasLtMatmulAlgo_t;
typedef struct {
    cublasLtMatmulAlgo_t algo;
    size_t workspaceSize;
    cublasStatus_t state;
    float wavesCount;
    int reserved[4];
} cublasLtMatmulHeuristicResult_t;

#include "common/nn/cuda/lt_calls.h"

/*  lt_calls.h, where the library has them. */
#define LT_CALLS(X)                         \
    X(cublasLtCreate)                       \
    X(cublasLtDestroy)                      \
    X(cublasLtGetVersion)                   \
    X(cublasLtGetStatusString)              \
    X(cublasLtMatmulDescCreate)             \
    X(cublasLtMatmulDescDestroy)            \
    X(cublasLtMatmulDescSetAttribute)       \
    X(cublasLtMatrixLayoutCreate)           \
    X(cublasLtMatrixLayoutDestroy)          \
    X(cublasLtMatmulPreferenceCreate)       \
    X(cublasLtMatmulPreferenceDestroy)      \
    X(cublasLtMatmulPreferenceSetAttribute) \
    X(cublasLtMatmulAlgoGetHeuristic)       \
    X(cublasLtMatmul)

#ifdef __cplusplus
}
#else
#include "common/base/status.h"

typedef struct {
#define LT_SLOT(name) __typeof__(name) *name;
    LT_CALLS(LT_SLOT)
#undef LT_SLOT
} cuda_lt_t;

/*  TT_UNSUPPORTED: it is not there, or lacks a call; the words say what to install. It stays loaded. */
tt_status_t cuda_lt_load(const cuda_lt_t **out);
#endif
