/*  rng - counter-based randomness: every draw is a pure function of (seed, stream, who, counter).
 *
 *  Source:  Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3": Philox 4x32-10.
 *  Threads: pure; no hidden state anywhere. */
#pragma once
#include <stdint.h>

/*  The streams: what a draw is for. Numbers are never reused; they are part of what a seed means. */
typedef enum {
    TT_STREAM_RESET = 1,   /* who = env id, counter = episode * 2^32 + k-th draw of the reset         */
    TT_STREAM_ENV = 2,     /* who = env id, counter = global step of that env * 2^8 + k-th draw       */
    TT_STREAM_ACTION = 3,  /* who = env id, counter = global step of that env * 2^8 + k-th draw       */
    TT_STREAM_INIT = 4,    /* who = tensor number, counter = element                                  */
    TT_STREAM_SHUFFLE = 5, /* who = update, counter = epoch * 2^32 + k-th draw                        */
    TT_STREAM_EVAL = 6,    /* tutti eval: who = episode, counter = k-th draw                          */
    TT_STREAM_REPLAY = 7,  /* who = stripe, counter = step * 2^20 + k-th draw                       */
    TT_STREAM_NOISE =
        8, /* of noisy layers, who acts: who = tensor number, counter = step of the envs * 2^20 + k-th draw  */
    TT_STREAM_NOISE_LEARN =
        9, /* who learns: who = set * 2^16 + tensor number, counter = optimiser step * 2^20 + k-th draw */
    TT_STREAM_DRAW =
        10, /* a loss that draws: who = position in the minibatch, counter = optimiser step * 2^16 + k-th draw */
    TT_STREAM_SHIFT =
        11, /* of pictures: who = position in the minibatch, counter = optimiser step; words: (y, x) of TT_AT, of TT_NEXT */
    TT_STREAM_TEST = 255
} tt_rng_stream_t;

/*  Philox 4x32-10 itself: out = f(counter, key). */
void tt_philox(uint32_t out[4], const uint32_t counter[4], const uint32_t key[2]);

/*  Four uniform 32-bit words for (seed, stream, who, counter). */
static inline void tt_draw(uint32_t out[4], uint64_t seed, tt_rng_stream_t stream, uint32_t who, uint64_t counter)
{
    const uint32_t ctr[4] = {(uint32_t)counter, (uint32_t)(counter >> 32), who, (uint32_t)stream};
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    tt_philox(out, ctr, key);
}

/*  [0, 1) with 24 bits from one word; with 53 bits from two; a number below n (n >= 1; the bias is at most n / 2^32). */
static inline float tt_unit_f32(uint32_t word)
{
    return (float)(word >> 8) * 0x1p-24f;
}
static inline double tt_unit_f64(uint32_t high, uint32_t low)
{
    return (double)(((uint64_t)high << 21) ^ (low >> 11)) * 0x1p-53;
}
static inline uint32_t tt_below(uint32_t word, uint32_t n)
{
    return (uint32_t)(((uint64_t)word * n) >> 32);
}
