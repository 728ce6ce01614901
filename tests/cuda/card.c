#include "tests/cuda/card.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/base/rng.h"

_Static_assert((int)CUDA_BLOCK == (int)TT_BLOCK, "kernels.h says what nn.h says");

enum { PIECES = 1024 };

static cudaStream_t s_stream;
static void *s_piece[PIECES];
static size_t s_pieces;

static void s_ok(cudaError_t status)
{
    if (status != cudaSuccess)
        fail_msg("the card: %s", cudaGetErrorString(status));
}

cudaStream_t card_stream(void)
{
    return s_stream;
}

/* ---- memory --------------------------------------------------------------------------------------------------------- */

/*  Room behind `lead` bytes that keep it from an alignment. */
static void *s_room(size_t bytes, size_t lead)
{
    char *piece = NULL;
    assert_true(s_pieces < PIECES);
    s_ok(cudaMalloc((void **)&piece, bytes + lead));
    s_piece[s_pieces++] = piece;
    return piece + lead;
}

static void s_free_all(void)
{
    s_ok(cudaStreamSynchronize(s_stream));
    while (s_pieces)
        s_ok(cudaFree(s_piece[--s_pieces]));
}

static void *s_put(const void *here, size_t bytes, size_t lead)
{
    if (!here)
        return NULL;
    void *there = s_room(bytes, lead), *pinned = NULL;
    s_ok(cudaMallocHost(&pinned, bytes + 1));
    memcpy(pinned, here, bytes);
    if (bytes)
        s_ok(cudaMemcpyAsync(there, pinned, bytes, cudaMemcpyHostToDevice, s_stream));
    s_ok(cudaStreamSynchronize(s_stream));
    s_ok(cudaFreeHost(pinned));
    return there;
}

float *card_put(const float *numbers, size_t count)
{
    return s_put(numbers, count * sizeof *numbers, sizeof(float));
}

float *card_room(size_t count)
{
    return s_room(count * sizeof(float), sizeof(float));
}

uint32_t *card_put_u32(const uint32_t *numbers, size_t count)
{
    return s_put(numbers, count * sizeof *numbers, sizeof(float));
}

uint8_t *card_put_bytes(const uint8_t *bytes, size_t count)
{
    return s_put(bytes, count, sizeof(float));
}

void card_get_bytes(void *here, const void *there, size_t bytes)
{
    void *pinned = NULL;
    s_ok(cudaGetLastError());
    s_ok(cudaMallocHost(&pinned, bytes + 1));
    if (bytes)
        s_ok(cudaMemcpyAsync(pinned, there, bytes, cudaMemcpyDeviceToHost, s_stream));
    s_ok(cudaStreamSynchronize(s_stream));
    memcpy(here, pinned, bytes);
    s_ok(cudaFreeHost(pinned));
}

float *card_get(const float *there, size_t count)
{
    float *here = tt_array0(count + 1, sizeof *here);
    card_get_bytes(here, there, count * sizeof *here);
    return here;
}

void card_assert(const float *expected, const float *there, size_t count, const char *what)
{
    float *got = card_get(there, count);
    ops_assert_same(expected, got, count, "the card", what);
    free(got);
}

float *card_numbers(uint32_t seed, uint32_t what, size_t count)
{
    static const float special[] = {NAN, INFINITY, -INFINITY};
    float *from = ops_numbers(seed, what, (ops_numbers_t)(seed % 3), count);
    float *numbers = tt_array0(count + 1, sizeof *numbers);
    memcpy(numbers, from, count * sizeof *numbers);
    if (seed % 5 == 4 && count)
        for (uint32_t i = 0; i < TT_COUNT(special); i++)
            numbers[ops_pick(seed, 100 + 3 * what + i, 0, (uint32_t)count - 1)] = special[i];
    ops_free(from);
    return numbers;
}

/* ---- runs ----------------------------------------------------------------------------------------------------------- */

uint32_t card_first(const card_run_t *self, uint32_t shard)
{
    return tt_sums_first(self->run.shards, self->run.rows, shard) - self->first;
}

card_run_t card_run(uint32_t seed, size_t count)
{
    card_run_t self = {
        .run = {.shards = 1u << ops_pick(seed, 50, 0, 5), .rows = ops_pick(seed, 51, 1, 100)}, .count = count};
    if (seed % 8 == 7) /* more than an argument of a kernel holds */
        self.run.shards = 256;
    self.run.lo = ops_pick(seed, 52, 0, self.run.shards - 1) / (1 + seed % 3);
    self.run.hi = seed % 4 == 3 ? self.run.shards : ops_pick(seed, 53, self.run.lo + 1, self.run.shards);
    if (seed % 8 == 7)
        self.run.lo = seed / 8 % 2;
    self.first = tt_sums_first(self.run.shards, self.run.rows, self.run.lo);
    self.rows = tt_sums_first(self.run.shards, self.run.rows, self.run.hi) - self.first;
    self.there = tt_array0(self.run.shards, sizeof *self.there);
    self.here = tt_array0(self.run.shards, sizeof *self.here);
    for (uint32_t s = self.run.lo; s < self.run.hi; s++) {
        self.here[s] = card_numbers(seed, 1000 + s, count);
        self.there[s] = card_put(self.here[s], count);
    }
    self.run.grad = self.there;
    return self;
}

void card_run_free(card_run_t *self)
{
    for (uint32_t s = self->run.lo; s < self->run.hi; s++)
        free(self->here[s]);
    free(self->here);
    free(self->there);
}

void card_assert_run(const card_run_t *self, const char *what)
{
    for (uint32_t s = self->run.lo; s < self->run.hi; s++)
        card_assert(self->here[s], self->there[s], self->count, what);
}

/*  Blocks of one shard, behind those that are there. */
static void s_add_blocks(
    const card_run_t *run, uint32_t s, card_blocks_t *self, uint32_t *first, uint32_t *rows, uint32_t *shard)
{
    const uint32_t end = card_first(run, s + 1);
    for (uint32_t at = card_first(run, s); at < end; at += TT_BLOCK) {
        const uint32_t b = self->blocks++;
        first[b] = at;
        rows[b] = end - at < TT_BLOCK ? end - at : TT_BLOCK;
        shard[b] = s;
        for (uint32_t r = 0; r < rows[b]; r++)
            self->slot[at + r] = b * TT_BLOCK + r;
    }
}

card_blocks_t card_blocks(const card_run_t *run)
{
    const uint32_t shards = run->run.hi - run->run.lo, most = run->rows + 1;
    card_blocks_t self = {
        .slot = tt_array0(most, sizeof(uint32_t)), .shard_block = tt_array0(shards + 1, sizeof(uint32_t))};
    uint32_t *of = tt_array0(3 * (size_t)most, sizeof *of);
    for (uint32_t s = 0; s < shards; s++) {
        s_add_blocks(run, run->run.lo + s, &self, of, of + most, of + 2 * (size_t)most);
        self.shard_block[s + 1] = self.blocks;
    }
    self.there = (cuda_blocks_t){.blocks = self.blocks,
        .first = card_put_u32(of, self.blocks),
        .rows = card_put_u32(of + most, self.blocks),
        .shard = card_put_u32(of + 2 * (size_t)most, self.blocks),
        .shard_block = card_put_u32(self.shard_block, shards + 1),
        .slot = card_put_u32(self.slot, run->rows)};
    free(of);
    return self;
}

void card_blocks_free(card_blocks_t *self)
{
    free(self->slot);
    free(self->shard_block);
}

/* ---- cases ---------------------------------------------------------------------------------------------------------- */

void card_each(void (*work)(uint32_t seed), uint32_t cases)
{
    const char *most = getenv("TT_CARD_CASES");
    if (most && (uint32_t)atoi(most) < cases)
        cases = (uint32_t)atoi(most);
    s_ok(cudaStreamCreateWithFlags(&s_stream, cudaStreamNonBlocking));
    for (uint32_t seed = 0; seed < cases; seed++) {
        work(seed);
        s_free_all();
    }
    s_ok(cudaStreamDestroy(s_stream));
}
