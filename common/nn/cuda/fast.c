#include "common/nn/cuda/fast.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/nn/cuda/cuda.h"
#include "common/nn/cuda/lt.h"

enum {
    ALIGNED = 16,          /* bytes, of what tensor cores' loads read at once */
    WORKSPACE = 32u << 20, /* NVIDIA's advice for its newest cards            */
    PLANS_AT_ONCE = 16
};

/*  A product as the library sees it: column by column, c' = b' a'. */
typedef struct {
    uint32_t m, n, k;
    uint32_t a_turned, b_turned;           /* k is not what lies side by side   */
    uint32_t a_stride, b_stride, c_stride; /* floats                            */
    uint32_t b_align, c_align;             /* bytes                             */
} shape_t;

typedef struct {
    shape_t shape;
    bool there; /* the library has an algorithm */
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, c;
    cublasLtMatmulAlgo_t algo;
} plan_t;

struct cuda_fast {
    cuda_device_t *device;
    const cuda_lt_t *lt;
    cublasLtHandle_t handle;
    cublasComputeType_t compute;
    void *workspace; /* of the device's only stream */
    cuda_room_t sums;
    uint32_t plans, room;
    plan_t *plan; /* owned */
    char words[64];
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

static bool s_describe(cuda_fast_t *self, plan_t *plan)
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
    const size_t workspace = WORKSPACE;
    const uint32_t whole = CUBLASLT_REDUCTION_SCHEME_NONE, a = ALIGNED;
    return s_set(self, pref, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace) &&
           s_set(self, pref, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &whole, sizeof whole) &&
           s_set(self, pref, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &of->b_align, sizeof of->b_align) &&
           s_set(self, pref, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &a, sizeof a) &&
           s_set(self, pref, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &of->c_align, sizeof of->c_align) &&
           s_set(self, pref, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &of->c_align, sizeof of->c_align);
}

/*  The library's first choice. It may have none: then our own kernel does it, now and whenever the shape comes again. */
static void s_choose(cuda_fast_t *self, plan_t *plan)
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

static const plan_t *s_plan(cuda_fast_t *self, const shape_t *shape)
{
    for (uint32_t i = 0; i < self->plans; i++)
        if (memcmp(&self->plan[i].shape, shape, sizeof *shape) == 0)
            return &self->plan[i];
    if (self->plans == self->room) {
        self->room += PLANS_AT_ONCE;
        self->plan = tt_realloc(self->plan, self->room * sizeof *self->plan);
    }
    plan_t *plan = &self->plan[self->plans++];
    *plan = (plan_t){.shape = *shape};
    s_choose(self, plan);
    return plan;
}

static void s_drop(const cuda_lt_t *lt, plan_t *plan)
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

/* ---- open and close --------------------------------------------------------------------------------------------------- */

static tt_status_t s_open(cuda_fast_t *self)
{
    TT_TRY(cuda_lt_load(&self->lt));
    const cublasStatus_t code = self->lt->cublasLtCreate(&self->handle);
    if (code != CUBLAS_STATUS_SUCCESS)
        return tt_err(TT_UNSUPPORTED,
            "cuda:%d: cuBLASLt cannot be used here: %s; look at nvidia-smi, or say learner.precision: exact",
            self->device->number, self->lt->cublasLtGetStatusString(code));
    return cuda_alloc(self->device, &self->workspace, WORKSPACE);
}

tt_status_t cuda_fast_new(cuda_fast_t **self_p, tt_device_t *device, tt_precision_t precision)
{
    cuda_fast_t *self = tt_new0(sizeof *self);
    self->device = (cuda_device_t *)device;
    self->compute = precision == TT_TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F_FAST_16BF;
    const tt_status_t status = s_open(self);
    if (status != TT_OK) {
        cuda_fast_free(self);
        return status;
    }
    const size_t version = self->lt->cublasLtGetVersion();
    snprintf(self->words, sizeof self->words, ", %s by cuBLASLt %zu.%zu.%zu", tt_precision_name(precision),
        version / 10000, version / 100 % 100, version % 100);
    *self_p = self;
    return TT_OK;
}

void cuda_fast_free(cuda_fast_t *self)
{
    if (!self)
        return;
    for (uint32_t i = 0; i < self->plans; i++)
        s_drop(self->lt, &self->plan[i]);
    free(self->plan);
    if (self->handle)
        (void)self->lt->cublasLtDestroy(self->handle);
    cuda_free(self->device, self->workspace);
    cuda_free(self->device, self->sums.memory);
    free(self);
}

const char *cuda_fast_words(const cuda_fast_t *self)
{
    return self->words;
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

/*  Whether the library does it is a question of the minibatch's shapes, whoever has which shards: their rows, which are k of `sums` and m
 *  of others, are as many as the smallest shard has, or by `more` more. */
typedef struct {
    cuda_gemm_t job; /* of a shard with the least rows */
    bool sums;
    uint32_t least, more;
} question_t;

static question_t s_ask(const cuda_run_t *run, const cuda_gemm_t *job, bool sums)
{
    const uint32_t length = run->length ? run->length : 1, units = run->rows / length;
    question_t self = {
        .job = *job, .sums = sums, .least = units / run->shards * length, .more = units % run->shards ? length : 0};
    *(sums ? &self.job.k : &self.job.m) = self.least;
    return self;
}

static bool s_gains(const question_t *self)
{
    const shape_t of = s_shape(&self->job);
    return of.m >= CUDA_FAST_SIDE && of.n >= CUDA_FAST_SIDE && of.k >= CUDA_FAST_SIDE &&
           (uint64_t)of.m * of.n * of.k >= CUDA_FAST_LEAST &&
           (of.a_stride | of.b_stride | of.c_stride) * sizeof(float) % ALIGNED == 0;
}

static bool s_goes(cuda_fast_t *self, const question_t *question)
{
    cuda_gemm_t job = question->job;
    if (!s_gains(question))
        return false;
    const shape_t least = s_shape(&job);
    *(question->sums ? &job.k : &job.m) += question->more;
    const shape_t most = s_shape(&job);
    return s_plan(self, &least)->there && s_plan(self, &most)->there;
}

static void s_multiply(cuda_fast_t *self, const cuda_gemm_t *job)
{
    static const float one = 1, zero = 0;
    const shape_t shape = s_shape(job);
    const plan_t *plan = s_plan(self, &shape);
    if (self->device->lost)
        return;
    TT_CHECK(plan->there); /* s_goes has asked */
    (void)s_well(self,
        self->lt->cublasLtMatmul(self->handle, plan->desc, &one, job->b, plan->b, job->a, plan->a, &zero, job->c,
            plan->c, job->c, plan->c, &plan->algo, self->workspace, WORKSPACE, self->device->work),
        "a product");
}

/*  Rows of shard s of the run, and the first of them, counted from the run's. */
static uint32_t s_rows(const cuda_run_t *run, uint32_t s, size_t *first)
{
    *first = cuda_first_row(run, s) - cuda_first_row(run, run->lo);
    return cuda_first_row(run, s + 1) - cuda_first_row(run, s);
}

/*  Where products lie that are added to what is there. */
static bool s_apart(cuda_fast_t *self, cuda_gemm_t *job)
{
    if (cuda_room(self->device, &self->sums, tt_mul(tt_mul(job->m, job->n), sizeof(float))) != TT_OK) {
        s_fail(self, "room for products", tt_err_text());
        return false;
    }
    job->c = self->sums.memory;
    return true;
}

void cuda_dense(const cuda_dense_t *self, cudaStream_t stream, const cuda_gemm_t *job)
{
    const question_t question = self->fast && self->run ? s_ask(self->run, job, false) : (question_t){.least = 0};
    cuda_gemm_t products = *job;
    if (!question.least || !s_goes(self->fast, &question)) {
        cuda_gemm(stream, job);
        return;
    }
    if (job->add && !s_apart(self->fast, &products))
        return;
    for (uint32_t s = self->run->lo; s < self->run->hi; s++) {
        size_t first;
        cuda_gemm_t shard = products;
        shard.m = s_rows(self->run, s, &first);
        shard.a += first * job->a_row;
        shard.c += first * job->c_row;
        s_multiply(self->fast, &shard);
    }
    cuda_ends(stream, job, products.c);
}

void cuda_dense_grads(const cuda_dense_t *self, cudaStream_t stream, const cuda_run_t *run, const cuda_outer_t *job)
{
    const cuda_gemm_t all = {.m = job->m,
        .n = job->n,
        .a = job->x,
        .a_row = 1,
        .a_k = job->x_row,
        .b = job->d,
        .b_k = job->d_row,
        .b_col = 1,
        .c = run->grad[run->lo] + job->at,
        .c_row = job->n};
    const question_t question = self->fast ? s_ask(run, &all, true) : (question_t){.least = 0};
    if (!question.least || !s_goes(self->fast, &question)) {
        cuda_outer(stream, run, job);
        return;
    }
    for (uint32_t s = run->lo; s < run->hi; s++) {
        size_t first;
        cuda_gemm_t shard = all;
        shard.k = s_rows(run, s, &first);
        shard.a += first * job->x_row;
        shard.b += first * job->d_row;
        shard.c = run->grad[s] + job->at;
        s_multiply(self->fast, &shard);
    }
    cuda_bias_grads(stream, run, job);
}
