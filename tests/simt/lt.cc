/*  lt - a stand-in for NVIDIA's cuBLASLt, for common/nn/cuda/fast.c on the simulated card: the same calls (lt.h), products in plain C, as
 *  launches of one kernel that looks at its factors through the rounding that was asked for.
 *
 *  Rounding: to the nearest number of 11 bits (TF32) or 8 (BF16), ties to even; what is multiplied is added in FP32, in the order of k.
 *  Misuse:   a product whose algorithm was chosen for another one, and pointers that are aligned to less than was said, are refused.
 *  Failures: TT_SIMT_LT=missing: there is no library (lt_load.c); refuses: no handle; none: no algorithm for any product; fails: no product succeeds. */
#include <cmath>
#include <cstdlib>
#include <cstring>
#include "common/nn/cuda/launch.cuh"
#include "common/nn/cuda/lt.h"
#include "tests/simt/simt.h"

struct cublasLtContext {
};
struct lt_desc {
    cublasComputeType_t compute;
    cublasOperation_t a, b;
};
struct lt_layout {
    uint64_t rows, cols;
    int64_t stride;
};
struct lt_pref {
    size_t workspace;
    uint32_t reduction, align[4];
};

namespace
{

bool wish(const char *what)
{
    const char *said = getenv("TT_SIMT_LT");
    return said && strcmp(said, what) == 0;
}

/*  What an algorithm is of. */
struct choice {
    uint64_t m, n, k;
    int64_t a, b, c;
    uint16_t turned[2];
    uint8_t align[4];
    uint64_t compute;
};
static_assert(sizeof(choice) == sizeof(cublasLtMatmulAlgo_t));

choice choice_of(const lt_desc *desc, const lt_layout *a, const lt_layout *b, const lt_layout *c)
{
    choice out = {};
    out.m = desc->a == CUBLAS_OP_T ? a->cols : a->rows;
    out.k = desc->a == CUBLAS_OP_T ? a->rows : a->cols;
    out.n = desc->b == CUBLAS_OP_T ? b->rows : b->cols;
    out.a = a->stride;
    out.b = b->stride;
    out.c = c->stride;
    out.turned[0] = uint16_t(desc->a);
    out.turned[1] = uint16_t(desc->b);
    out.compute = desc->compute;
    return out;
}

bool fits(const lt_desc *desc, const lt_layout *a, const lt_layout *b, const lt_layout *c)
{
    const choice of = choice_of(desc, a, b, c);
    const uint64_t k = desc->b == CUBLAS_OP_T ? b->cols : b->rows;
    return k == of.k && c->rows == of.m && c->cols == of.n;
}

bool aligned(const void *at, unsigned bytes)
{
    return bytes && reinterpret_cast<uintptr_t>(at) % bytes == 0;
}

/*  Numbers that are no numbers stay what they are. */
float rounded(float x, unsigned bits)
{
    uint32_t word = __builtin_bit_cast(uint32_t, x);
    if (!std::isfinite(x))
        return x;
    word += (1u << (bits - 1)) - 1 + (word >> bits & 1);
    return __builtin_bit_cast(float, word >> bits << bits);
}

struct product_t {
    choice of;
    bool more; /* added to what is there */
    const float *a, *b;
    float *d;
};

__global__ void product(product_t job)
{
    const choice &of = job.of;
    const unsigned bits = of.compute == CUBLAS_COMPUTE_32F_FAST_TF32 ? 13 : 16;
    const uint64_t e = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x, i = e % of.m, j = e / of.m;
    if (e >= of.m * of.n)
        return;
    float sum = 0, &to = job.d[i + uint64_t(of.c) * j];
    for (uint64_t k = 0; k < of.k; k++)
        sum = __fmaf_rn(rounded(job.a[of.turned[0] ? uint64_t(of.a) * i + k : i + uint64_t(of.a) * k], bits),
            rounded(job.b[of.turned[1] ? j + uint64_t(of.b) * k : uint64_t(of.b) * j + k], bits), sum);
    to = job.more ? __fadd_rn(to, sum) : sum;
}

template <class T> cublasStatus_t made(T **out, T self)
{
    *out = new T(self);
    return CUBLAS_STATUS_SUCCESS;
}

template <class T> cublasStatus_t gone(T *self)
{
    delete self;
    return CUBLAS_STATUS_SUCCESS;
}

} // namespace

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    if (wish("refuses"))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    return made(handle, cublasLtContext());
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    return gone(handle);
}

size_t cublasLtGetVersion(void)
{
    return 130102;
}

const char *cublasLtGetStatusString(cublasStatus_t status)
{
    switch (int(status)) {
#define LT_STATUS(name, value) \
    case value:                \
        return #name;
#include "common/nn/cuda/lt_values.def"
    }
    return "unknown";
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc, cublasComputeType_t compute, cudaDataType_t scale)
{
    const bool known = compute == CUBLAS_COMPUTE_32F_FAST_TF32 || compute == CUBLAS_COMPUTE_32F_FAST_16BF;
    return known && scale == CUDA_R_32F ? made(desc, lt_desc{compute, CUBLAS_OP_N, CUBLAS_OP_N}) :
                                          CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc)
{
    return gone(desc);
}

cublasStatus_t cublasLtMatmulDescSetAttribute(
    cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute, const void *from, size_t bytes)
{
    if (bytes != sizeof(cublasOperation_t))
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(attribute == CUBLASLT_MATMUL_DESC_TRANSA ? &desc->a : &desc->b, from, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(
    cublasLtMatrixLayout_t *layout, cudaDataType_t type, uint64_t rows, uint64_t cols, int64_t stride)
{
    return type == CUDA_R_32F && stride >= int64_t(rows) ? made(layout, lt_layout{rows, cols, stride}) :
                                                           CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    return gone(layout);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *pref)
{
    return made(pref, lt_pref{0, ~0u, {256, 256, 256, 256}});
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t pref)
{
    return gone(pref);
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(
    cublasLtMatmulPreference_t pref, cublasLtMatmulPreferenceAttributes_t attribute, const void *from, size_t bytes)
{
    const bool workspace = attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES;
    if (bytes != (workspace ? sizeof pref->workspace : sizeof pref->reduction))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (workspace)
        memcpy(&pref->workspace, from, bytes);
    else if (attribute == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK)
        memcpy(&pref->reduction, from, bytes);
    else
        memcpy(&pref->align[attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES], from, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

/*  It has no algorithm that splits a sum, and wants to hear that none is wanted whose parts are added up as they come. */
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
    cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t, cublasLtMatmulPreference_t pref, int wanted,
    cublasLtMatmulHeuristicResult_t found[], int *count)
{
    *count = 0;
    if (wanted < 1 || !fits(desc, a, b, c) || pref->reduction != CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (wish("none"))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    choice of = choice_of(desc, a, b, c);
    for (int i = 0; i < 4; i++)
        of.align[i] = uint8_t(pref->align[i] < 128 ? pref->align[i] : 128);
    found[0] = {};
    memcpy(&found[0].algo, &of, sizeof of);
    *count = 1;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t desc, const void *alpha, const void *a,
    cublasLtMatrixLayout_t a_layout, const void *b, cublasLtMatrixLayout_t b_layout, const void *beta, const void *c,
    cublasLtMatrixLayout_t c_layout, void *d, cublasLtMatrixLayout_t, const cublasLtMatmulAlgo_t *algo, void *workspace,
    size_t, cudaStream_t stream)
{
    choice chosen, of = choice_of(desc, a_layout, b_layout, c_layout);
    memcpy(&chosen, algo, sizeof chosen);
    memcpy(of.align, chosen.align, sizeof of.align);
    const float more = *static_cast<const float *>(beta);
    const bool plain = *static_cast<const float *>(alpha) == 1 && (more == 0 || more == 1) && c == d;
    if (!plain || memcmp(&chosen, &of, sizeof of) != 0 || !workspace || !aligned(a, of.align[0]) ||
        !aligned(b, of.align[1]) || !aligned(c, of.align[2]) || !aligned(d, of.align[3]))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (wish("fails"))
        return CUBLAS_STATUS_EXECUTION_FAILED;
    const product_t job = {of, more == 1, static_cast<const float *>(a), static_cast<const float *>(b), static_cast<float *>(d)};
    CUDA_LAUNCH(product, unsigned((of.m * of.n + 255) / 256), 256, 0, stream, job);
    return CUBLAS_STATUS_SUCCESS;
}
