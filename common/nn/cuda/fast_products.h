/*  fast_products - products by cuBLASLt: which go there, and making one. For fast.c and fast_conv.c.
 *
 *  A product's algorithm is chosen once for its shape (a plan), which never hangs on who else has shards of the minibatch.
 *  Errors and threads: fast.h. */
#pragma once
#include "common/nn/cuda/cuda.h"
#include "common/nn/cuda/lt.h"

enum { FAST_WORKSPACE = 32u << 20 }; /* bytes; NVIDIA's advice for its newest cards */

typedef struct fast_plan fast_plan_t; /* opaque */

struct cuda_fast {
    cuda_device_t *device;
    const cuda_lt_t *lt;
    cublasLtHandle_t handle;
    cublasComputeType_t compute;
    void *workspace;  /* of the device's only stream                                     */
    cuda_room_t sums; /* products that are added to what is there; what is unfolded      */
    uint32_t plans, room;
    fast_plan_t *plan; /* owned */
    char words[64];
};

/*  As many bytes of `sums`; false: it has failed. */
bool fast_room(cuda_fast_t *self, size_t bytes);
void fast_plans_free(cuda_fast_t *self);

/*  Rows that a shard of the run's minibatch has: one of two numbers, whichever it is. */
typedef struct {
    uint32_t least, most;
} fast_rows_t;
static inline fast_rows_t fast_rows(const cuda_run_t *run)
{
    const uint32_t length = run->length ? run->length : 1, units = run->rows / length,
                   least = units / run->shards * length;
    return (fast_rows_t){least, units % run->shards ? least + length : least};
}

/*  A product of which every shard makes one or several: whether the library does it is a question of the minibatch's shapes, whoever has
 *  which shards. */
enum { FAST_COUNTS = 3 };
typedef struct {
    cuda_gemm_t job; /* of all rows that the smallest shard has; a, and the alignment of c, do not matter  */
    bool sums;       /* its rows are k, not m                                                             */
    uint32_t count[FAST_COUNTS]; /* how many rows are multiplied at once; 0: there is no such product                 */
} fast_question_t;
bool fast_goes(cuda_fast_t *self, const fast_question_t *question);

/*  c = a b, or with `more` c += a b. It goes (fast_goes), and a is aligned to 16 bytes. */
void fast_multiply(cuda_fast_t *self, const cuda_gemm_t *job, bool more);
