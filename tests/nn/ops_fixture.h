/*  ops_fixture - numbers, memory and comparisons for the tests of what an encoder's layers do to a row (common/nn/cpu/ops.h), on
 *  every build of the kernels that this processor has. */
#pragma once
#include "common/nn/cpu/ops.h"
#include "tests/nn/fixture.h"

/*  What a test does with one build; `seed` differs from case to case. */
typedef void (*ops_case_fn)(const tt_kernels_t *kernels, uint32_t seed);
/*  Cases 0 .. cases-1 on every build (some of them where a sanitizer makes them slow). */
void ops_on_builds(ops_case_fn work, uint32_t cases);

/*  Integer number `index` of a case, in [lo, hi]. */
uint32_t ops_pick(uint32_t seed, uint32_t index, uint32_t lo, uint32_t hi);

typedef enum {
    OPS_PLAIN, /* [-1, 1)                                                              */
    OPS_HOLES, /* the same, half of it 0 and -0                                        */
    OPS_TINY   /* so small that products vanish: sums of them may be -0                 */
} ops_numbers_t;

/*  `count` numbers of stream `what`, 4 bytes off from every alignment that would help; ops_free() it. Exactly as long as it looks. */
float *ops_numbers(uint32_t seed, uint32_t what, ops_numbers_t kind, size_t count);
void ops_free(float *numbers);

/*  The same bits; NaN equals NaN. */
void ops_assert_same(const float *expected, const float *got, size_t count, const char *build, const char *what);

/*  An activation and its derivative, as gemm has them; tanh by the kernels themselves. */
float ops_activate(const tt_kernels_t *kernels, tt_nn_activation_t activation, float x);
float ops_derivative(tt_nn_activation_t activation, float y, float d);
