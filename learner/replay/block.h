/*  block - a replay as one block of bytes, of which older batches may be elsewhere: what save.c writes and load.c reads.
 *
 *    block: head: u64s as in block_head_t, the last three only of sequences and where something is carried; batches `from` ..
 *    `next` - 1; tip [N][record]; priorities f32 by (clock, env), of sequences by (batch, env), 0 of what does not live;
 *    minibatches whose priorities are not seen yet: total u64, units u64, unit u64 [units], p f32 [units]; SHA-256 of all that.
 *    piece: batches, oldest first. Living batches before `from` are in pieces; who keeps those knows their checksums.
 *    batch: number u64, finals u64, broken u8 [N], age u32 [N], carry f32 [N][carry], every stored column [T][N], final_row
 *    u32 [finals], finals [finals][record].
 *
 *  Little-endian, not aligned. What follows from these (marks, sums) is not in it.
 *
 *  Threads: pure. */
#pragma once
#include <sodium.h>
#include <string.h>
#include "learner/replay/parts.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "a block is little-endian");

enum { BLOCK_SEAL = crypto_hash_sha256_BYTES };
#define BLOCK_MAGIC "ttreplay"
/*  Of rows with nothing carried, and of others. */
#define BLOCK_VERSION        2
#define BLOCK_VERSION_LONGER 3

/*  What must be equal, X(name, what a person calls it, value), and what a block says. */
#define BLOCK_SETUP(X)                                                  \
    X(version, "the format's version", block_version(cfg))              \
    X(columns, "the columns (hash)", cfg->columns->hash)                \
    X(store, "the stored columns (mask)", cfg->store)                   \
    X(N, "num_envs", cfg->N)                                            \
    X(T, "steps of a batch", cfg->T)                                    \
    X(capacity, "the capacity", cfg->capacity)                          \
    X(stripes, "stripes", cfg->stripes)                                 \
    X(ahead, "ahead", cfg->ahead)                                       \
    X(gamma, "gamma (bits)", block_bits(cfg->gamma))                    \
    X(stack, "stack", cfg->stack)                                       \
    X(stacked, "the stacked column", cfg->stack > 1 ? cfg->stacked : 0) \
    X(pad, "pad", cfg->pad)                                             \
    X(alpha, "alpha (bits)", block_bits((double)cfg->alpha))            \
    X(epsilon, "epsilon (bits)", block_bits((double)cfg->epsilon))      \
    X(delay, "priority_delay", cfg->priority_delay)                     \
    X(seed, "the seed", cfg->seed)

/*  The same, at the end of a longer head. */
#define BLOCK_SETUP_LONGER(X)                         \
    X(length, "the length of sequences", cfg->length) \
    X(burn, "burn", cfg->burn)                        \
    X(carry, "what is carried (floats)", cfg->carry)

typedef struct {
    char magic[8];
#define X(name, what, value) uint64_t name;
    BLOCK_SETUP(X)
#undef X
    uint64_t first, from, next, total, late;
    double max_priority;
#define X(name, what, value) uint64_t name;
    BLOCK_SETUP_LONGER(X)
#undef X
} block_head_t;

enum { BLOCK_HEAD = offsetof(block_head_t, length) };

static inline uint64_t block_version(const replay_cfg_t *cfg)
{
    return cfg->length || cfg->carry ? BLOCK_VERSION_LONGER : BLOCK_VERSION;
}
static inline size_t block_head_size(const block_head_t *head)
{
    return head->version == BLOCK_VERSION_LONGER ? sizeof *head : BLOCK_HEAD;
}

static inline uint64_t block_bits(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline block_head_t block_setup(const replay_cfg_t *cfg)
{
    block_head_t head = {.magic = {0}};
    memcpy(head.magic, BLOCK_MAGIC, sizeof head.magic);
#define X(name, what, value) head.name = (value);
    BLOCK_SETUP(X)
    BLOCK_SETUP_LONGER(X)
#undef X
    return head;
}

/*  Bytes of a batch with so many finals. */
static inline uint64_t block_batch_size(const past_t *past, uint64_t finals)
{
    const uint64_t N = past->cfg.N;
    return 16 + 5 * N + past->batch_bytes + finals * (past->record + sizeof(uint32_t));
}
