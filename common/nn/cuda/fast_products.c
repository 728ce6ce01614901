#include "common/nn/cuda/fast_products.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"

enum {
    ALIGNED = 16, /* bytes, of what tensor cores' loads read at once */
    PLANS_AT_ONCE = 16
};

/*  A product as the library sees it: column by column, c' = b' a'. */
typedef struct {
    uint32_t m, n, k;
    uint32_t a_turned, b_turned;           /* k is not what lies side by side   */
    uint32_t a_stride, b_stride, c_stride; /* floats                            */
    uint32_t b_align, c_align;             /* bytes                             */
} shape_t;

struct fast_plan {
    shape_t shape;
    bool there; /* the library has an algorithm */
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, c;
    cublasLtMatmulAlgo_t algo;
};

/*  The first failure is kept, and ends the use of the card. */
static void s_fail(cuda_fast_t *self, const char *what, const char *why)
{
    if (!self->device->lost)
        snprintf(self->device->why, sizeof self->device->why,
            "cuda:%d: %s: %s; learner.precision: exact does without cuBLASLt", self->device->number, what, why);
    self->device->lost = true;
}

static bool s_well(cuda_fast_t *self, cublasStatus_t code, const char *what)
{
    if (code != CUBLAS_STATUS_SUCCESS)
        s_fail(self, what, self->lt->cublasLtGetStatusString(code));
    return code == CUBLAS_STATUS_SUCCESS;
}

/* ---- plans ---------------------------------------------------------------------------------------------------------- */

static bool s_describe(cuda_fast_t *self, fast_plan_t *plan)
{
    const cuda_lt_t *lt = self->lt;
    const shape_t *of = &plan->shape;
    const cublasOperation_t left = of->b_turned ? CUBLAS_OP_T : CUBLAS_OP_N,
                            right = of->a_turned ? CUBLAS_OP_T : CUBLAS_OP_N;
    static const char what[] = "describing a product";
    return s_well(self, lt->cublasLtMatmulDescCreate(&plan->desc, self->compute, CUDA_R_32F), what) &&
           s_well(self, lt->cublasLtMatmulDescSetAttribute(plan->desc, CUBLASLT_MATMUL_DESC_TRANSA, &left, sizeof left),
               what) &&
           s_well(self,
               lt->cublasLtMatmulDescSetAttribute(plan->desc, CUBLASLT_MATMUL_DESC_TRANSB, &right, sizeof right),
               what) &&
           s_well(self,
               lt->cublasLtMatrixLayoutCreate(
                   &plan->b, CUDA_R_32F, of->b_turned ? of->k : of->n, of->b_turned ? of->n : of->k, of->b_stride),
               what) &&
           s_well(self,
               lt->cublasLtMatrixLayoutCreate(
                   &plan->a, CUDA_R_32F, of->a_turned ? of->m : of->k, of->a_turned ? of->k : of->m, of->a_stride),
               what) &&
           s_well(self, lt->cublasLtMatrixLayoutCreate(&plan->c, CUDA_R_32F, of->n, of->m, of->c_stride), what);
}

static bool s_set(cuda_fast_t *self, cublasLtMatmulPreference_t pref, cublasLtMatmulPreferenceAttributes_t attribute,
    const void *from, size_t bytes)
{
    return s_well(self, self->lt->cublasLtMatmulPreferenceSetAttribute(pref, attribute, from, bytes),
        "saying what is wanted of an algorithm");
}

static bool s_prefer(cuda_fast_t *self, const shape_t *of, cublasLtMatmulPreference_t pref)
{
    const size_t workspace = FAST_WORKSPACE;
    const uint32_t split = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, a = ALIGNED; /* parts that are added up one by one */
    return s_set(self, pref, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace) &&
           s_set(self, pref, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &split, sizeof split) &&
           s_set(self, pref, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &of->b_align, sizeof of->b_align) &&
           s_set(self, pref, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &a, sizeof a) &&
           s_set(self, pref, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &of->c_align, sizeof of->c_align) &&
           s_set(self, pref, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &of->c_align, sizeof of->c_align);
}

/*  The library's first choice. It may have none: then our own kernel does it, now and whenever the shape comes again. */
static void s_choose(cuda_fast_t *self, fast_plan_t *plan)
{
    cublasLtMatmulPreference_t pref = NULL;
    cublasLtMatmulHeuristicResult_t found = {.state = CUBLAS_STATUS_NOT_SUPPORTED};
    int count = 0;
    if (!s_describe(self, plan) ||
        !s_well(self, self->lt->cublasLtMatmulPreferenceCreate(&pref), "saying what is wanted of an algorithm"))
        return;
    if (s_prefer(self, &plan->shape, pref)) {
        const cublasStatus_t status = self->lt->cublasLtMatmulAlgoGetHeuristic(
            self->handle, plan->desc, plan->b, plan->a, plan->c, plan->c, pref, 1, &found, &count);
        if (status == CUBLAS_STATUS_NOT_SUPPORTED)
            count = 0;
        else
            (void)s_well(self, status, "choosing an algorithm");
    }
    (void)self->lt->cublasLtMatmulPreferenceDestroy(pref);
    plan->there = count > 0 && found.state == CUBLAS_STATUS_SUCCESS;
    plan->algo = found.algo;
}

static const fast_plan_t *s_plan(cuda_fast_t *self, const shape_t *shape)
{
    for (uint32_t i = 0; i < self->plans; i++)
        if (memcmp(&self->plan[i].shape, shape, sizeof *shape) == 0)
            return &self->plan[i];
    if (self->plans == self->room) {
        self->room += PLANS_AT_ONCE;
        self->plan = tt_realloc(self->plan, self->room * sizeof *self->plan);
    }
    fast_plan_t *plan = &self->plan[self->plans++];
    *plan = (fast_plan_t){.shape = *shape};
    s_choose(self, plan);
    return plan;
}

static void s_drop(const cuda_lt_t *lt, fast_plan_t *plan)
{
    if (plan->c)
        (void)lt->cublasLtMatrixLayoutDestroy(plan->c);
    if (plan->a)
        (void)lt->cublasLtMatrixLayoutDestroy(plan->a);
    if (plan->b)
        (void)lt->cublasLtMatrixLayoutDestroy(plan->b);
    if (plan->desc)
        (void)lt->cublasLtMatmulDescDestroy(plan->desc);
}

void fast_plans_free(cuda_fast_t *self)
{
    for (uint32_t i = 0; i < self->plans; i++)
        s_drop(self->lt, &self->plan[i]);
    free(self->plan);
}

/* ---- products ----------------------------------------------------------------------------------------------------------- */

/*  The largest power of two by which the address can be divided, as far as it matters. */
static uint32_t s_alignment(const void *at)
{
    uint32_t bytes = ALIGNED;
    while ((uintptr_t)at % bytes)
        bytes /= 2;
    return bytes;
}

/*  Where b and c begin hangs on the layer alone; a begins, as every row does, where tensor cores' loads want it (s_gains). */
static shape_t s_shape(const cuda_gemm_t *job)
{
    const bool a_turned = job->a_k != 1, b_turned = job->b_col != 1;
    return (shape_t){.m = job->m,
        .n = job->n,
        .k = job->k,
        .a_turned = a_turned,
        .b_turned = b_turned,
        .a_stride = (uint32_t)(a_turned ? job->a_k : job->a_row),
        .b_stride = (uint32_t)(b_turned ? job->b_col : job->b_k),
        .c_stride = (uint32_t)job->c_row,
        .b_align = s_alignment(job->b),
        .c_align = s_alignment(job->c)};
}

static bool s_gains(const shape_t *of)
{
    return of->m >= CUDA_FAST_SIDE && of->n >= CUDA_FAST_SIDE && of->k >= CUDA_FAST_SIDE &&
           (uint64_t)of->m * of->n * of->k >= CUDA_FAST_LEAST &&
           (of->a_stride | of->b_stride | of->c_stride) * sizeof(float) % ALIGNED == 0;
}

bool fast_goes(cuda_fast_t *self, const fast_question_t *question)
{
    cuda_gemm_t job = question->job;
    shape_t shape = s_shape(&job);
    bool goes = s_gains(&shape);
    for (uint32_t i = 0; i < FAST_COUNTS && goes; i++) {
        *(question->sums ? &job.k : &job.m) = question->count[i];
        shape = s_shape(&job);
        goes = question->count[i] == 0 || s_plan(self, &shape)->there;
    }
    return goes;
}

void fast_multiply(cuda_fast_t *self, const cuda_gemm_t *job, bool more)
{
    static const float one = 1, zero = 0;
    const shape_t shape = s_shape(job);
    const fast_plan_t *plan = s_plan(self, &shape);
    if (self->device->lost)
        return;
    TT_CHECK(plan->there); /* fast_goes has asked */
    (void)s_well(self,
        self->lt->cublasLtMatmul(self->handle, plan->desc, &one, job->b, plan->b, job->a, plan->a, more ? &one : &zero,
            job->c, plan->c, job->c, plan->c, &plan->algo, self->workspace, FAST_WORKSPACE, self->device->work),
        "a product");
}

bool fast_room(cuda_fast_t *self, size_t bytes)
{
    const bool there = cuda_room(self->device, &self->sums, bytes) == TT_OK;
    if (!there)
        s_fail(self, "room for products", tt_err_text());
    return there;
}
