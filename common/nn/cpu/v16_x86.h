/*  v16_x86 - what AVX2 and AVX-512 share: the last steps of the canonical sum, 8 -> 4 -> 2 -> 1, a transposition, and
 *  a look at bytes. */
#pragma once
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

static inline __attribute__((always_inline)) float sum8(__m256 a)
{
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

/*  Four at once: pairs share a register as soon as they are short enough. */
static inline __attribute__((always_inline)) void sum8x4(float out[4], __m256 a, __m256 b, __m256 c, __m256 d)
{
    const __m256 ab4 = _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
    const __m256 cd4 = _mm256_add_ps(_mm256_permute2f128_ps(c, d, 0x20), _mm256_permute2f128_ps(c, d, 0x31));
    /* per half: a0 a1 c0 c1 + a2 a3 c2 c3 */
    const __m256 two = _mm256_add_ps(_mm256_shuffle_ps(ab4, cd4, 0x44), _mm256_shuffle_ps(ab4, cd4, 0xEE));
    const __m256 one = _mm256_add_ps(two, _mm256_movehdup_ps(two)); /* a . c . | b . d . */
    const __m128 ac = _mm256_castps256_ps128(one), bd = _mm256_extractf128_ps(one, 1);
    _mm_storeu_ps(out, _mm_blend_ps(ac, _mm_moveldup_ps(bd), 0xA));
}

static inline __attribute__((always_inline)) uint32_t nonzero32(const uint8_t *p)
{
    const __m256i zero = _mm256_cmpeq_epi8(_mm256_loadu_si256((const __m256i *)p), _mm256_setzero_si256());
    return ~(uint32_t)_mm256_movemask_epi8(zero);
}
static inline __attribute__((always_inline)) uint64_t v_nonzero64(const uint8_t *p)
{
    return nonzero32(p) | (uint64_t)nonzero32(p + 32) << 32;
}

/*  4 rows x 8 columns of src become 8 rows x 4 columns of dst. */
static inline __attribute__((always_inline)) void transpose4x8(const float *src, size_t ld, float *dst, size_t dst_ld)
{
    const __m256 a = _mm256_loadu_ps(src), b = _mm256_loadu_ps(src + ld);
    const __m256 c = _mm256_loadu_ps(src + 2 * ld), d = _mm256_loadu_ps(src + 3 * ld);
    const __m256 ab0 = _mm256_unpacklo_ps(a, b), ab2 = _mm256_unpackhi_ps(a, b);
    const __m256 cd0 = _mm256_unpacklo_ps(c, d), cd2 = _mm256_unpackhi_ps(c, d);
    const __m256 column[4] = {_mm256_shuffle_ps(ab0, cd0, 0x44), _mm256_shuffle_ps(ab0, cd0, 0xEE),
        _mm256_shuffle_ps(ab2, cd2, 0x44), _mm256_shuffle_ps(ab2, cd2, 0xEE)};
    for (size_t i = 0; i < 4; i++) {
        _mm_storeu_ps(dst + i * dst_ld, _mm256_castps256_ps128(column[i]));
        _mm_storeu_ps(dst + (i + 4) * dst_ld, _mm256_extractf128_ps(column[i], 1));
    }
}
/*  4 x 16 -> 16 x 4. */
static inline __attribute__((always_inline)) void v_transpose4(const float *src, size_t ld, float *dst, size_t dst_ld)
{
    transpose4x8(src, ld, dst, dst_ld);
    transpose4x8(src + 8, ld, dst + 8 * dst_ld, dst_ld);
}
