/*  area: the bits of OpenCV 4.11's resize with INTER_AREA, of pictures of noise. */
#include <stdlib.h>
#include "collector/area.h"
#include "common/base/mem.h"
#include "tests/test.h"

typedef struct {
    area_size_t from, to;
    uint32_t hash; /* FNV-1a of what cv2.resize(picture, to, interpolation=cv2.INTER_AREA) gives */
} case_t;

static const case_t s_cases[] = {
    {{160, 210}, {84, 84}, 0xf02cbe1e},
    {{160, 250}, {84, 84}, 0xf4e0963d},
    {{160, 210}, {64, 64}, 0x20eb430b},
    {{160, 210}, {96, 80}, 0x39eef669},
    {{90, 100}, {33, 71}, 0x3c3e0822},
    {{160, 210}, {160, 84}, 0x4de588f5},
    {{160, 210}, {80, 105}, 0xda3e0bd4},
    {{160, 210}, {160, 210}, 0x41978acc},
    {{160, 210}, {40, 70}, 0xfecc986c},
    {{160, 210}, {1, 1}, 0xfa0c4bce},
};

static uint8_t *s_picture(area_size_t size, uint32_t seed)
{
    const size_t bytes = (size_t)size.width * size.height;
    uint8_t *out = tt_array0(bytes, 1);
    for (size_t i = 0; i < bytes; i++) {
        seed = seed * 1664525U + 1013904223U;
        out[i] = (uint8_t)(seed >> 24);
    }
    return out;
}

static uint32_t s_hash(const uint8_t *bytes, size_t count)
{
    uint32_t hash = 0x811c9dc5U;
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ bytes[i]) * 0x01000193U;
    return hash;
}

static void test_the_bits_are_those_of_opencv(void **state)
{
    (void)state;
    for (uint32_t k = 0; k < TT_COUNT(s_cases); k++) {
        const case_t *of = &s_cases[k];
        const size_t bytes = (size_t)of->to.width * of->to.height;
        uint8_t *from = s_picture(of->from, k + 1), *to = tt_array0(bytes, 1);
        area_t *area = area_new(of->from, of->to);
        for (int twice = 0; twice < 2; twice++) { /* nothing is left of the picture before */
            area_shrink(area, from, to);
            assert_int_equal(s_hash(to, bytes), of->hash);
        }
        area_destroy(area);
        free(from);
        free(to);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_the_bits_are_those_of_opencv)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
