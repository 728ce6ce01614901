/*  bench_loop - what benchmarks of computing share: how long something takes, numbers to work on, and the yardstick of our own large
 *  product.
 *
 *  Threads: the caller's alone. */
#pragma once
#include <stddef.h>
#include "common/nn/cpu/kernels.h"

enum { BENCH_RUNS = 7, BENCH_SIDE = 384 };

/*  For qsort of doubles. */
int bench_ascending(const void *a, const void *b);

/*  Nanoseconds of one call of work(ctx): the median of BENCH_RUNS runs, each of as many calls as fill its share of `seconds`. */
double bench_measure(void (*work)(void *ctx), void *ctx, double seconds);

/*  Between -1 and 1, or with `positive`, as behind a relu, half of them 0. free() them. */
float *bench_numbers(size_t count, bool positive);

/*  GFLOP/s of our own product of BENCH_SIDE^3, in blocks of TT_BLOCK rows as dense layers have them. */
double bench_own_gflops(const tt_kernels_t *kernels, double seconds);
