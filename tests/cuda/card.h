/*  card - memory of a card, for tests of kernels: numbers go there and come back, and everything is freed at once. The card is the simulated
 *  one, or in the programs of tests/gpu this machine's.
 *
 *  Each array is exactly as long as it looks and begins 4 bytes behind what would be aligned.
 *  Threads: one. */
#pragma once
#include <cuda_runtime_api.h>
#include "common/nn/cuda/kernels.h"
#include "tests/nn/ops_fixture.h"

/*  Calls work(seed) for seeds 0 .. cases - 1, and frees what each left there. Orders of threads, blocks and streams are the
 *  environment's (CMakeLists.txt); TT_CARD_CASES=N: at most so many, for tools that make each of them slow. */
void card_each(void (*work)(uint32_t seed), uint32_t cases);

cudaStream_t card_stream(void);
/*  A copy of `count` numbers, or room for so many; NULL stays NULL. */
float *card_put(const float *numbers, size_t count);
float *card_room(size_t count);
uint32_t *card_put_u32(const uint32_t *numbers, size_t count);
uint8_t *card_put_bytes(const uint8_t *bytes, size_t count);
/*  Waits for what is queued. Caller frees. */
float *card_get(const float *there, size_t count);
void card_get_bytes(void *here, const void *there, size_t bytes);
/*  Asserts that `count` numbers there are those, bit by bit (NaN equals NaN). */
void card_assert(const float *expected, const float *there, size_t count, const char *what);

/*  Numbers of a case: all that ops_numbers knows by turns, and now and then with NaN and infinities among them. free() them. */
float *card_numbers(uint32_t seed, uint32_t what, size_t count);

/*  A run of a case: its shards' gradients of `count` floats, filled with the same numbers there and here. Some shards may be empty, and
 *  those outside the run have none. */
typedef struct {
    cuda_run_t run;
    uint32_t first, rows; /* of the run */
    size_t count;
    float **there, **here;
} card_run_t;

card_run_t card_run(uint32_t seed, size_t count);
void card_run_free(card_run_t *self);
/*  First row of a shard, counted from the run's. */
uint32_t card_first(const card_run_t *self, uint32_t shard);
/*  All gradients are the same. */
void card_assert_run(const card_run_t *self, const char *what);

/*  Its blocks, on the card. `slot` lies here as well. */
typedef struct {
    cuda_blocks_t there;
    uint32_t blocks;
    uint32_t *slot, *shard_block;
} card_blocks_t;

card_blocks_t card_blocks(const card_run_t *run);
void card_blocks_free(card_blocks_t *self);
