/*  v16_avx512 - sixteen float lanes as one AVX-512 register. Meaning: v16_portable.h. */
#pragma once
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#define V16_NAME "avx512"
#define V16_WIDE 1 /* 32 registers of a whole vector each: wider tiles pay */

typedef __m512 v16;

#define V16_FN static inline __attribute__((always_inline))

V16_FN v16 v_set(float x)
{
    return _mm512_set1_ps(x);
}
V16_FN v16 v_zero(void)
{
    return _mm512_setzero_ps();
}
V16_FN v16 v_load(const float *p)
{
    return _mm512_loadu_ps(p);
}
V16_FN void v_store(float *p, v16 a)
{
    _mm512_storeu_ps(p, a);
}
V16_FN v16 v_load_n(const float *p, size_t n)
{
    return _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p);
}
V16_FN void v_store_n(float *p, v16 a, size_t n)
{
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), a);
}
V16_FN v16 v_add(v16 a, v16 b)
{
    return _mm512_add_ps(a, b);
}
V16_FN v16 v_sub(v16 a, v16 b)
{
    return _mm512_sub_ps(a, b);
}
V16_FN v16 v_mul(v16 a, v16 b)
{
    return _mm512_mul_ps(a, b);
}
V16_FN v16 v_div(v16 a, v16 b)
{
    return _mm512_div_ps(a, b);
}
V16_FN v16 v_sqrt(v16 a)
{
    return _mm512_sqrt_ps(a);
}
V16_FN v16 v_fma(v16 a, v16 b, v16 c)
{
    return _mm512_fmadd_ps(a, b, c);
}
V16_FN v16 v_fnma(v16 a, v16 b, v16 c)
{
    return _mm512_fnmadd_ps(a, b, c);
}
V16_FN v16 v_min(v16 a, v16 b)
{
    return _mm512_min_ps(a, b);
}
V16_FN v16 v_max(v16 a, v16 b)
{
    return _mm512_max_ps(a, b);
}
V16_FN v16 v_keep_pos(v16 h, v16 x)
{
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(h, _mm512_setzero_ps(), _CMP_NLE_UQ), x);
}
V16_FN v16 v_where_above(v16 a, v16 b, v16 yes, v16 no)
{
    const __mmask16 number = _mm512_cmp_ps_mask(b, b, _CMP_ORD_Q);
    return _mm512_mask_blend_ps(_mm512_mask_cmp_ps_mask(number, a, b, _CMP_NLE_UQ), no, yes);
}
V16_FN v16 v_keep_equal(v16 a, v16 b, v16 x)
{
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ), x);
}
V16_FN v16 v_load_bytes(const uint8_t *p)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p)));
}
V16_FN void v_store_bytes(uint8_t *p, v16 a)
{
    _mm_storeu_si128((__m128i *)p, _mm512_cvtepi32_epi8(_mm512_cvttps_epi32(a)));
}

#include "common/nn/cpu/v16_x86.h"
V16_FN __m256 v_half(v16 a)
{
    return _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
}
V16_FN float v_sum(v16 a)
{
    return sum8(v_half(a));
}
V16_FN void v_sum4(float out[4], v16 a, v16 b, v16 c, v16 d)
{
    sum8x4(out, v_half(a), v_half(b), v_half(c), v_half(d));
}
