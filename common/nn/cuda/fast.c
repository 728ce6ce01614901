#include "common/nn/cuda/fast.h"
#include <stdio.h>
#include <stdlib.h>
#include "common/base/mem.h"
#include "common/nn/cuda/fast_products.h"

/* ---- open and close --------------------------------------------------------------------------------------------------- */

static tt_status_t s_open(cuda_fast_t *self)
{
    TT_TRY(cuda_lt_load(&self->lt));
    const cublasStatus_t code = self->lt->cublasLtCreate(&self->handle);
    if (code != CUBLAS_STATUS_SUCCESS)
        return tt_err(TT_UNSUPPORTED,
            "cuda:%d: cuBLASLt cannot be used here: %s; look at nvidia-smi, or say learner.precision: exact",
            self->device->number, self->lt->cublasLtGetStatusString(code));
    return cuda_alloc(self->device, &self->workspace, FAST_WORKSPACE);
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
    fast_plans_free(self);
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

/* ---- dense layers ----------------------------------------------------------------------------------------------------- */

static bool s_goes(cuda_fast_t *self, const cuda_run_t *run, const cuda_gemm_t *job, bool sums)
{
    if (!self || !run)
        return false;
    const fast_rows_t rows = fast_rows(run);
    fast_question_t question = {.job = *job, .sums = sums, .count = {rows.least, rows.most}};
    *(sums ? &question.job.k : &question.job.m) = rows.least;
    return rows.least && fast_goes(self, &question);
}

/*  Rows of shard s of the run, and the first of them, counted from the run's. */
static uint32_t s_rows(const cuda_run_t *run, uint32_t s, size_t *first)
{
    *first = cuda_first_row(run, s) - cuda_first_row(run, run->lo);
    return cuda_first_row(run, s + 1) - cuda_first_row(run, s);
}

void cuda_dense(const cuda_dense_t *self, cudaStream_t stream, const cuda_gemm_t *job)
{
    cuda_gemm_t products = *job;
    if (!s_goes(self->fast, self->run, job, false)) {
        cuda_gemm(stream, job);
        return;
    }
    if (job->add && !fast_room(self->fast, tt_mul(tt_mul(job->m, job->n), sizeof(float))))
        return;
    if (job->add)
        products.c = self->fast->sums.memory;
    for (uint32_t s = self->run->lo; s < self->run->hi; s++) {
        size_t first;
        cuda_gemm_t shard = products;
        shard.m = s_rows(self->run, s, &first);
        shard.a += first * job->a_row;
        shard.c += first * job->c_row;
        fast_multiply(self->fast, &shard, false);
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
    if (!s_goes(self->fast, run, &all, true)) {
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
        fast_multiply(self->fast, &shard, false);
    }
    cuda_bias_grads(stream, run, job, NULL);
}
