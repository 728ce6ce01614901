#include "tests/nn/ops_fixture.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/base/rng.h"
#include "common/nn/cpu/cpu.h"

/*  Under sanitizers every multiply-add of the portable build is a call: one case in seven. */
#ifdef __SANITIZE_ADDRESS__
enum { STEP = 7 };
#else
enum { STEP = 1 };
#endif

void ops_on_builds(ops_case_fn work, uint32_t cases)
{
    static const char *const builds[] = {"portable", "avx2", "avx512"};
    for (size_t b = 0; b < TT_COUNT(builds); b++) {
        place_t place;
        if (!fixture_build(&place, builds[b]))
            continue;
        for (uint32_t seed = 0; seed < cases; seed += STEP)
            work(((const cpu_device_t *)place.device)->kernels, seed);
        fixture_close(&place);
    }
}

uint32_t ops_pick(uint32_t seed, uint32_t index, uint32_t lo, uint32_t hi)
{
    uint32_t word[4];
    tt_draw(word, seed, TT_STREAM_TEST, 77, index);
    return lo + word[0] % (hi - lo + 1);
}

float *ops_numbers(uint32_t seed, uint32_t what, ops_numbers_t kind, size_t count)
{
    float *numbers = (float *)malloc((count + 1) * sizeof *numbers) + 1;
    for (size_t i = 0; i < count; i++) {
        uint32_t word[4];
        tt_draw(word, seed, TT_STREAM_TEST, what, i);
        numbers[i] = 2.0f * tt_unit_f32(word[0]) - 1.0f;
        if (kind == OPS_HOLES && word[1] % 2)
            numbers[i] = word[2] % 2 ? 0.0f : -0.0f;
        if (kind == OPS_TINY)
            numbers[i] *= word[1] % 2 ? 0x1p-76f : 0.0f;
    }
    return numbers;
}

void ops_free(float *numbers)
{
    free(numbers - 1);
}

void ops_assert_same(const float *expected, const float *got, size_t count, const char *build, const char *what)
{
    for (size_t i = 0; i < count; i++)
        if (memcmp(&expected[i], &got[i], sizeof(float)) != 0 && !(isnan(expected[i]) && isnan(got[i])))
            fail_msg(
                "%s, %s: float %zu of %zu is %a, not %a", build, what, i, count, (double)got[i], (double)expected[i]);
}

float ops_activate(const tt_kernels_t *kernels, tt_nn_activation_t activation, float x)
{
    if (activation == TT_NN_RELU)
        return 0.0f > x ? 0.0f : x;
    if (activation == TT_NN_TANH)
        kernels->tanh(1, &x, &x);
    return x;
}

float ops_derivative(tt_nn_activation_t activation, float y, float d)
{
    if (activation == TT_NN_RELU)
        return y <= 0.0f ? 0.0f : d;
    return activation == TT_NN_TANH ? d * fmaf(-y, y, 1.0f) : d;
}
