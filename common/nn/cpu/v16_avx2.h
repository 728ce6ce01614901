/*  v16_avx2 - sixteen float lanes as two AVX2 registers. Meaning: v16_portable.h. */
#pragma once
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#define V16_NAME "avx2"

typedef struct {
    __m256 lo, hi;
} v16;

#define V16_FN             static inline __attribute__((always_inline))
#define V16_PAIR(lo_, hi_) ((v16){(lo_), (hi_)})

V16_FN v16 v_set(float x)
{
    const __m256 all = _mm256_set1_ps(x);
    return V16_PAIR(all, all);
}
V16_FN v16 v_zero(void)
{
    return V16_PAIR(_mm256_setzero_ps(), _mm256_setzero_ps());
}
V16_FN v16 v_load(const float *p)
{
    return V16_PAIR(_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8));
}
V16_FN void v_store(float *p, v16 a)
{
    _mm256_storeu_ps(p, a.lo);
    _mm256_storeu_ps(p + 8, a.hi);
}
V16_FN __m256i v_mask8(size_t first, size_t n)
{
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n - (int)first), lane);
}
V16_FN v16 v_load_n(const float *p, size_t n)
{
    return V16_PAIR(_mm256_maskload_ps(p, v_mask8(0, n)), _mm256_maskload_ps(p + 8, v_mask8(8, n)));
}
V16_FN void v_store_n(float *p, v16 a, size_t n)
{
    _mm256_maskstore_ps(p, v_mask8(0, n), a.lo);
    _mm256_maskstore_ps(p + 8, v_mask8(8, n), a.hi);
}
V16_FN v16 v_add(v16 a, v16 b)
{
    return V16_PAIR(_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi));
}
V16_FN v16 v_sub(v16 a, v16 b)
{
    return V16_PAIR(_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi));
}
V16_FN v16 v_mul(v16 a, v16 b)
{
    return V16_PAIR(_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi));
}
V16_FN v16 v_div(v16 a, v16 b)
{
    return V16_PAIR(_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi));
}
V16_FN v16 v_sqrt(v16 a)
{
    return V16_PAIR(_mm256_sqrt_ps(a.lo), _mm256_sqrt_ps(a.hi));
}
V16_FN v16 v_fma(v16 a, v16 b, v16 c)
{
    return V16_PAIR(_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi));
}
V16_FN v16 v_fnma(v16 a, v16 b, v16 c)
{
    return V16_PAIR(_mm256_fnmadd_ps(a.lo, b.lo, c.lo), _mm256_fnmadd_ps(a.hi, b.hi, c.hi));
}
V16_FN v16 v_min(v16 a, v16 b)
{
    return V16_PAIR(_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi));
}
V16_FN v16 v_max(v16 a, v16 b)
{
    return V16_PAIR(_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi));
}
V16_FN v16 v_keep_pos(v16 h, v16 x)
{
    const __m256 zero = _mm256_setzero_ps();
    return V16_PAIR(_mm256_andnot_ps(_mm256_cmp_ps(h.lo, zero, _CMP_LE_OQ), x.lo),
        _mm256_andnot_ps(_mm256_cmp_ps(h.hi, zero, _CMP_LE_OQ), x.hi));
}
V16_FN __m256 v_above8(__m256 a, __m256 b)
{
    return _mm256_and_ps(_mm256_cmp_ps(a, b, _CMP_NLE_UQ), _mm256_cmp_ps(b, b, _CMP_ORD_Q));
}
V16_FN v16 v_where_above(v16 a, v16 b, v16 yes, v16 no)
{
    return V16_PAIR(
        _mm256_blendv_ps(no.lo, yes.lo, v_above8(a.lo, b.lo)), _mm256_blendv_ps(no.hi, yes.hi, v_above8(a.hi, b.hi)));
}
V16_FN v16 v_keep_equal(v16 a, v16 b, v16 x)
{
    return V16_PAIR(_mm256_and_ps(_mm256_cmp_ps(a.lo, b.lo, _CMP_EQ_OQ), x.lo),
        _mm256_and_ps(_mm256_cmp_ps(a.hi, b.hi, _CMP_EQ_OQ), x.hi));
}
V16_FN v16 v_load_bytes(const uint8_t *p)
{
    const __m128i all = _mm_loadu_si128((const __m128i *)p);
    return V16_PAIR(_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(all)),
        _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_unpackhi_epi64(all, all))));
}
V16_FN void v_store_bytes(uint8_t *p, v16 a)
{
    const __m256i words = _mm256_packus_epi32(_mm256_cvttps_epi32(a.lo), _mm256_cvttps_epi32(a.hi)); /* 0 2 1 3 */
    const __m256i order = _mm256_permute4x64_epi64(words, 0xD8);
    _mm_storeu_si128((__m128i *)p, _mm_packus_epi16(_mm256_castsi256_si128(order), _mm256_extracti128_si256(order, 1)));
}

#include "common/nn/cpu/v16_x86.h"
V16_FN float v_sum(v16 a)
{
    return sum8(_mm256_add_ps(a.lo, a.hi));
}
V16_FN void v_sum4(float out[4], v16 a, v16 b, v16 c, v16 d)
{
    sum8x4(out, _mm256_add_ps(a.lo, a.hi), _mm256_add_ps(b.lo, b.hi), _mm256_add_ps(c.lo, c.hi),
        _mm256_add_ps(d.lo, d.hi));
}
