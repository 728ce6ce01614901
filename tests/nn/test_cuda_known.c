/*  Known stages on the stand-in for a card: the CPU's bits, of losses that are called on the host. tests/cuda/test_graph.c has one that is a
 *  kernel. */
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "tests/nn/known_fixture.h"

enum { SEQUENCES = 13, LENGTH = 3, SHARDS = 4, PASSES = 3 };

/*  All heads that are not trained are known, or every other one of them. Of all rows; of some, where others have been; and of all, where
 *  nothing is trained or forwarded. */
static float *gradients(const char *backend, const tt_net_spec_t *spec, uint32_t heads)
{
    place_t place;
    known_t known;
    fixture_open_on(&place, backend, 1);
    known_open(&known, &place, spec, SEQUENCES, LENGTH);
    known_choose(&known, HEAD_KNOWN, heads);
    const size_t count = tt_net_grad_count(spec);
    float *all = tt_array0(PASSES * count, sizeof *all);
    assert_ok(known_try(&known, SHARDS, 0, SHARDS, 1, all));
    known.pass.rows -= 2 * LENGTH;
    assert_ok(known_try(&known, SHARDS, 0, SHARDS, 1, all + count));
    known_train_nothing(&known);
    known_choose(&known, HEAD_KNOWN, UINT32_MAX);
    assert_ok(known_try(&known, SHARDS, 0, SHARDS, 1, all + 2 * count));
    known_close(&known);
    return all;
}

static void assert_same(const tt_net_spec_t *spec, size_t number, uint32_t heads)
{
    float *want = gradients("cpu", spec, heads), *got = gradients(fixture_card(), spec, heads);
    for (size_t i = 0; i < PASSES * tt_net_grad_count(spec); i++)
        if (memcmp(&want[i], &got[i], sizeof *got) != 0)
            fail_msg("network %zu of %u numbers, heads 0x%x: gradient[%zu] is %a, not %a", number, spec->obs, heads, i,
                (double)got[i], (double)want[i]);
    free(want);
    free(got);
}

static void test_the_cpus_bits(void **state)
{
    (void)state;
    for (size_t s = 0; s < fixture_spec_count; s++)
        assert_same(&fixture_specs[s], s, s % 2 ? UINT32_MAX : 0x555);
    for (size_t s = 0; s < recurrent_spec_count; s++)
        assert_same(&recurrent_specs[s], s, s % 2 ? 0x555 : UINT32_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_the_cpus_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
