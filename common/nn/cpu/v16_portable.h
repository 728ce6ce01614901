/*  v16_portable - sixteen float lanes as a plain array: the meaning of every operation that v16_avx2.h and v16_avx512.h
 *  offer, and the only one on processors other than x86-64.
 *
 *  v_min, v_max and v_keep_pos say what they do with a NaN because the instructions do: the second operand wins. */
#pragma once
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define V16_NAME "portable"

typedef struct {
    float f[16];
} v16;

/*  Where a fused multiply-add is no instruction but a call of fmaf, the kernels are slow whatever is inlined; sixteen calls in
 *  place of each, in every tile, would take a compiler minutes under sanitizers. */
#ifdef __FP_FAST_FMAF
#define V16_FN static inline __attribute__((always_inline))
#else
#define V16_FN static __attribute__((unused))
#define UNROLL
#endif
#define V16_EACH(expr)           \
    v16 out;                     \
    for (int i = 0; i < 16; i++) \
        out.f[i] = (expr);       \
    return out

V16_FN v16 v_set(float x)
{
    V16_EACH(x);
}
V16_FN v16 v_zero(void)
{
    return v_set(0.0f);
}
V16_FN v16 v_load(const float *p)
{
    v16 out;
    memcpy(out.f, p, sizeof out.f);
    return out;
}
V16_FN void v_store(float *p, v16 a)
{
    memcpy(p, a.f, sizeof a.f);
}
/*  The first n lanes, 0 <= n <= 16; the others are zero. */
V16_FN v16 v_load_n(const float *p, size_t n)
{
    v16 out = v_zero();
    for (size_t i = 0; i < n; i++)
        out.f[i] = p[i];
    return out;
}
V16_FN void v_store_n(float *p, v16 a, size_t n)
{
    for (size_t i = 0; i < n; i++)
        p[i] = a.f[i];
}
V16_FN v16 v_add(v16 a, v16 b)
{
    V16_EACH(a.f[i] + b.f[i]);
}
V16_FN v16 v_sub(v16 a, v16 b)
{
    V16_EACH(a.f[i] - b.f[i]);
}
V16_FN v16 v_mul(v16 a, v16 b)
{
    V16_EACH(a.f[i] * b.f[i]);
}
V16_FN v16 v_div(v16 a, v16 b)
{
    V16_EACH(a.f[i] / b.f[i]);
}
V16_FN v16 v_sqrt(v16 a)
{
    V16_EACH(sqrtf(a.f[i]));
}
/*  a * b + c and c - a * b, rounded once. */
V16_FN v16 v_fma(v16 a, v16 b, v16 c)
{
    V16_EACH(fmaf(a.f[i], b.f[i], c.f[i]));
}
V16_FN v16 v_fnma(v16 a, v16 b, v16 c)
{
    V16_EACH(fmaf(-a.f[i], b.f[i], c.f[i]));
}
V16_FN v16 v_min(v16 a, v16 b)
{
    V16_EACH(a.f[i] < b.f[i] ? a.f[i] : b.f[i]);
}
V16_FN v16 v_max(v16 a, v16 b)
{
    V16_EACH(a.f[i] > b.f[i] ? a.f[i] : b.f[i]);
}
/*  x where h > 0 or h is NaN, 0 elsewhere. */
V16_FN v16 v_keep_pos(v16 h, v16 x)
{
    V16_EACH(h.f[i] <= 0.0f ? 0.0f : x.f[i]);
}
/*  `yes` where a > b or a alone is NaN, `no` elsewhere. */
V16_FN v16 v_where_above(v16 a, v16 b, v16 yes, v16 no)
{
    V16_EACH(!(a.f[i] <= b.f[i]) && b.f[i] == b.f[i] ? yes.f[i] : no.f[i]);
}
/*  x where a = b, 0 elsewhere. */
V16_FN v16 v_keep_equal(v16 a, v16 b, v16 x)
{
    V16_EACH(a.f[i] == b.f[i] ? x.f[i] : 0.0f);
}
/*  Sixteen bytes as numbers, and back: numbers 0 .. 255. */
V16_FN v16 v_load_bytes(const uint8_t *p)
{
    V16_EACH((float)p[i]);
}
V16_FN void v_store_bytes(uint8_t *p, v16 a)
{
    for (int i = 0; i < 16; i++)
        p[i] = (uint8_t)a.f[i];
}
/*  Which of 64 bytes are not 0, the first as the lowest bit. */
V16_FN uint64_t v_nonzero64(const uint8_t *p)
{
    uint64_t bits = 0;
    for (int i = 0; i < 64; i++)
        bits |= (uint64_t)(p[i] != 0) << i;
    return bits;
}
/*  The sum of the lanes in the canonical order: 16 -> 8 -> 4 -> 2 -> 1, lane i with lane i + half. */
V16_FN float v_sum(v16 a)
{
    for (int half = 8; half; half /= 2)
        for (int i = 0; i < half; i++)
            a.f[i] += a.f[i + half];
    return a.f[0];
}
/*  Four such sums. */
V16_FN void v_sum4(float out[4], v16 a, v16 b, v16 c, v16 d)
{
    const float sums[4] = {v_sum(a), v_sum(b), v_sum(c), v_sum(d)};
    memcpy(out, sums, sizeof sums);
}
/*  4 rows x 16 columns of src become 16 rows x 4 columns of dst. */
V16_FN void v_transpose4(const float *src, size_t ld, float *dst, size_t dst_ld)
{
    for (size_t i = 0; i < 4; i++)
        for (size_t j = 0; j < 16; j++)
            dst[j * dst_ld + i] = src[i * ld + j];
}
