/*  vmath - exp, log, sin and cos of float arrays, powers, with the same bits on every machine.
 *
 *  libm's results differ between versions and processors; what decides a training run must not. These use only IEEE
 *  additions, multiplications and integer operations, in one order (no FMA: -ffp-contract=off), so every processor and
 *  every vector width gives the same bits, and element i depends on in[i] alone.
 *
 *  Accuracy:  largest errors (tests/base/test_vmath.c): exp 1.1 ulp, log 1.0 ulp, sin and cos 1.2e-7 absolute.
 *  Special:   NaN gives NaN; exp(-inf) = 0, exp(> 88.8) = inf; log(0) = -inf, log(< 0) = NaN, log(inf) = inf.
 *             Subnormal numbers are computed as such.
 *  Source:    range reductions and polynomials of Cephes (Moshier): expf.c, logf.c, sinf.c.
 *  Threads:   pure. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "common/base/portable_fn.h"

/*  A function whose loops the compiler may vectorise for several processors; the loader picks one. The bits stay the
 *  same, because nothing is contracted or reordered. Off where the loader or a sanitizer cannot do it. */
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define TT_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define TT_CLONES
#endif

/*  out[i] = f(in[i]), i < n; out may be in. */
void tt_vexp(float *out, const float *in, size_t n);
void tt_vlog(float *out, const float *in, size_t n);
/*  sin and cos of turn[i] turns (2 pi turn[i]), |turn| <= 2^20. The outputs must not overlap. */
void tt_vsincos_turn(float *sin_out, float *cos_out, const float *turn, size_t n);

/* ---- one number at a time, the same bits; inline, so that other loops can be vectorised over them ----------------- */

TT_MATH_FN float tt_f32_of_bits(uint32_t bits)
{
    const union {
        uint32_t u;
        float f;
    } v = {.u = bits};
    return v.f;
}
TT_MATH_FN uint32_t tt_bits_of_f32(float x)
{
    const union {
        float f;
        uint32_t u;
    } v = {.f = x};
    return v.u;
}

/*  1.5 * 2^23: adding it rounds |x| < 2^22 to an integer, which then stands in the low bits of the sum. */
#define TT_ROUNDER 0x1.8p23f

TT_MATH_FN float tt_expf(float x)
{
    x = x < -104.0f ? -104.0f : x; /* 0 below, inf above; NaN passes both lines */
    x = x > 89.0f ? 89.0f : x;
    const float shifted = x * 0x1.715476p+0f + TT_ROUNDER; /* log2 e */
    const float n = shifted - TT_ROUNDER;
    const float r = (x - n * 0x1.63p-1f) + n * 0x1.bd0106p-13f; /* ln 2 in two parts; the first product is exact */
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1.0f;
    /* times 2^n in two steps: 2^128 is no float, and the result may be subnormal */
    const int32_t k = (int32_t)(tt_bits_of_f32(shifted) - tt_bits_of_f32(TT_ROUNDER));
    const int32_t half = k >> 1;
    const float a = tt_f32_of_bits((uint32_t)(half + 127) << 23);
    const float b = tt_f32_of_bits((uint32_t)(k - half + 127) << 23);
    return p * a * b;
}

TT_MATH_FN float tt_logf(float x)
{
    const uint32_t root_half = 0x3f3504f3; /* bits of sqrt(1/2) */
    const float tiny = x < 0x1p-126f ? 1.0f : 0.0f;
    const float scaled = x < 0x1p-126f ? x * 0x1p23f : x;
    const uint32_t bits = tt_bits_of_f32(scaled) - root_half;
    const float e = (float)((int32_t)bits >> 23) - 23.0f * tiny;
    const float m = tt_f32_of_bits((bits & 0x7fffff) + root_half) - 1.0f; /* sqrt(1/2) - 1 .. sqrt(2) - 1 */
    const float z = m * m;
    float p = 7.0376836292e-2f;
    p = p * m - 1.1514610310e-1f;
    p = p * m + 1.1676998740e-1f;
    p = p * m - 1.2420140846e-1f;
    p = p * m + 1.4249322787e-1f;
    p = p * m - 1.6668057665e-1f;
    p = p * m + 2.0000714765e-1f;
    p = p * m - 2.4999993993e-1f;
    p = p * m + 3.3333331174e-1f;
    float y = p * m * z - 2.12194440e-4f * e - 0.5f * z;
    y = m + y + 0.693359375f * e;
    y = x > 0x1.fffffep+127f ? x : y;                  /* inf       */
    y = x == 0.0f ? tt_f32_of_bits(0xff800000) : y;    /* -inf      */
    return x >= 0.0f ? y : tt_f32_of_bits(0x7fc00000); /* negative, NaN: NaN */
}

/*  x^power for x >= 0 (NaN below), as e^(power log x): an error of at most 2 + 2 |power log x| ulp. 0^0 = 1. */
static inline float tt_powf(float x, float power)
{
    return power == 0 ? 1 : tt_expf(power * tt_logf(x));
}

static inline void tt_sincos_turnf(float *sin_out, float *cos_out, float turn)
{
    const float shifted = turn * 4.0f + TT_ROUNDER;
    const float x = (turn - (shifted - TT_ROUNDER) * 0.25f) * 0x1.921fb6p+2f; /* 2 pi; the difference is exact */
    const float z = x * x;
    const float s = ((-1.9515295891e-4f * z + 8.3321608736e-3f) * z - 1.6666654611e-1f) * z * x + x;
    const float c =
        ((2.443315711809948e-5f * z - 1.388731625493765e-3f) * z + 4.166664568298827e-2f) * z * z - 0.5f * z + 1.0f;
    const uint32_t quarter = tt_bits_of_f32(shifted); /* the low bits count quarter turns */
    const uint32_t s_bits = tt_bits_of_f32((quarter & 1) ? c : s);
    const uint32_t c_bits = tt_bits_of_f32((quarter & 1) ? s : c);
    *sin_out = tt_f32_of_bits(s_bits ^ ((quarter & 2) << 30));
    *cos_out = tt_f32_of_bits(c_bits ^ (((quarter + 1) & 2) << 30));
}

/*  Four standard normals from four words (tt_draw), by Box and Muller: u in (0, 1] keeps the logarithm finite. */
static inline void tt_normals(const uint32_t word[4], float z[4])
{
    for (int pair = 0; pair < 2; pair++) {
        const float u = (float)((word[2 * pair] >> 8) + 1) * 0x1p-24f;
        const float radius = __builtin_sqrtf(-2 * tt_logf(u));
        float s, c;
        tt_sincos_turnf(&s, &c, (float)(word[2 * pair + 1] >> 8) * 0x1p-24f);
        z[2 * pair] = radius * c;
        z[2 * pair + 1] = radius * s;
    }
}
