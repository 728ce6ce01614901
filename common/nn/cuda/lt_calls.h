/*  lt_calls - the calls of cuBLASLt that Tutti makes, for lt.h; tests/simt/signatures_lt.c holds them against NVIDIA's. */
#pragma once

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle);
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle);
size_t cublasLtGetVersion(void);
const char *cublasLtGetStatusString(cublasStatus_t status);

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc, cublasComputeType_t compute, cudaDataType_t scale);
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc);
cublasStatus_t cublasLtMatmulDescSetAttribute(
    cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute, const void *from, size_t bytes);
cublasStatus_t cublasLtMatrixLayoutCreate(
    cublasLtMatrixLayout_t *layout, cudaDataType_t type, uint64_t rows, uint64_t cols, int64_t stride);
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout);
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *pref);
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t pref);
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(
    cublasLtMatmulPreference_t pref, cublasLtMatmulPreferenceAttributes_t attribute, const void *from, size_t bytes);
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
    cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
    cublasLtMatmulPreference_t pref, int wanted, cublasLtMatmulHeuristicResult_t found[], int *count);
cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha, const void *a,
    cublasLtMatrixLayout_t a_layout, const void *b, cublasLtMatrixLayout_t b_layout, const void *beta, const void *c,
    cublasLtMatrixLayout_t c_layout, void *d, cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *algo,
    void *workspace, size_t workspace_bytes, cudaStream_t stream);
