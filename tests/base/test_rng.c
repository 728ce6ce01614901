/*  Philox 4x32-10 against the known-answer vectors of Random123 1.14 (kat_vectors, philox4x32 10). */
#include "common/base/rng.h"
#include "tests/test.h"

typedef struct {
    uint32_t counter[4], key[2], expected[4];
} vector_t;

static const vector_t s_vectors[] = {
    {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff},
        {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0},
        {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
};

static void test_known_answers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof s_vectors / sizeof s_vectors[0]; i++) {
        uint32_t out[4];
        tt_philox(out, s_vectors[i].counter, s_vectors[i].key);
        assert_memory_equal(out, s_vectors[i].expected, sizeof out);
    }
}

static void test_units_are_in_range(void **state)
{
    (void)state;
    assert_true(tt_unit_f32(0) == 0.0f);
    assert_true(tt_unit_f32(UINT32_MAX) < 1.0f);
    assert_true(tt_unit_f64(UINT32_MAX, UINT32_MAX) < 1.0);
    for (uint32_t n = 1; n < 100; n++)
        assert_true(tt_below(UINT32_MAX, n) == n - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_answers),
        cmocka_unit_test(test_units_are_in_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
