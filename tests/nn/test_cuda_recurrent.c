/*  Recurrent networks on the stand-in for a card: the CPU's bits, of sequences by a pass and step by step. */
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "tests/nn/recurrent_fixture.h"

/*  A group and a part of one, sequences of one step, shards without any. */
static const struct {
    uint32_t sequences, length, shards;
} s_sizes[] = {{35, 3, 2}, {9, 1, 4}, {3, 17, 8}};

/*  A gradient three times (by itself, recorded, and from the recording), heads by a pass, and step by step. free() it. */
static float *results(const char *backend, size_t s, size_t size, size_t *count)
{
    place_t place;
    recurrent_t world;
    const tt_net_spec_t *spec = &recurrent_specs[s];
    const uint32_t shards = s_sizes[size].shards;
    fixture_open_on(&place, backend, 1);
    recurrent_open(&world, &place, spec, s_sizes[size].sequences, s_sizes[size].length);
    const size_t heads = world.rows.rows * fixture_outs(spec), grads = tt_net_grad_count(spec);
    float *const parts[] = {recurrent_grad(&world, shards), recurrent_grad(&world, shards),
        recurrent_grad(&world, shards), recurrent_seen(&world, shards), recurrent_stepped(&world, 0)};
    float *all = tt_array0(3 * grads + 2 * heads, sizeof *all), *to = all;
    for (size_t p = 0; p < TT_COUNT(parts); p++) {
        const size_t floats = p < 3 ? grads : heads;
        memcpy(to, parts[p], floats * sizeof *to);
        to += floats;
        free(parts[p]);
    }
    *count = 3 * grads + 2 * heads;
    recurrent_close(&world);
    return all;
}

static void test_bits(void **state)
{
    (void)state;
    for (size_t s = 0; s < recurrent_spec_count; s++)
        for (size_t size = 0; size < TT_COUNT(s_sizes); size++) {
            size_t count = 0;
            float *cpu = results("cpu", s, size, &count), *card = results(fixture_card(), s, size, &count);
            for (size_t i = 0; i < count; i++)
                if (memcmp(&cpu[i], &card[i], sizeof *cpu) != 0)
                    fail_msg("network %zu, size %zu: number %zu of %zu (a gradient has %zu) is %a, not %a", s, size, i,
                        count, tt_net_grad_count(&recurrent_specs[s]), (double)card[i], (double)cpu[i]);
            free(cpu);
            free(card);
        }
}

/*  A learner's shards begin and end where sequences do, however few there are. */
static void test_runs_of_shards(void **state)
{
    (void)state;
    for (size_t s = 0; s < recurrent_spec_count; s++)
        for (uint32_t width = 1; width <= 4; width *= 4) {
            recurrent_t world;
            place_t place;
            fixture_open_on(&place, fixture_card(), 1);
            recurrent_open(&world, &place, &recurrent_specs[s], 11, 17);
            float *whole = recurrent_grad(&world, 8), *sum = recurrent_runs(&world, 8, width);
            for (size_t i = 0; i < tt_net_grad_count(&recurrent_specs[s]); i++)
                if (memcmp(&whole[i], &sum[i], sizeof *sum) != 0)
                    fail_msg("network %zu, %u shards a learner: number %zu is %a, not %a", s, width, i, (double)sum[i],
                        (double)whole[i]);
            free(whole);
            free(sum);
            recurrent_close(&world);
        }
}

/*  Steps in one go, as by hand on the CPU: one, some, and more rows than go through the network at once. */
static void test_walks(void **state)
{
    (void)state;
    static const recurrent_walk_t walks[] = {{35, 4, false}, {3, 9, true}, {1, 1, false}, {2000, 9, true}};
    for (size_t s = 0; s < recurrent_spec_count; s++)
        for (size_t i = 0; i < TT_COUNT(walks); i++) {
            place_t cpu, card;
            size_t count = 0, counted = 0;
            if (walks[i].rows > 1000 && s > 1)
                continue;
            fixture_open_on(&cpu, "cpu", 1);
            fixture_open_on(&card, fixture_card(), 1);
            float *want = recurrent_walked(&cpu, &recurrent_specs[s], &walks[i], true, &count);
            float *got = recurrent_walked(&card, &recurrent_specs[s], &walks[i], false, &counted);
            assert_int_equal(count, counted);
            for (size_t k = 0; k < count; k++)
                if (memcmp(&want[k], &got[k], sizeof *got) != 0)
                    fail_msg("network %zu, walk %zu: number %zu of %zu is %a, not %a", s, i, k, count, (double)got[k],
                        (double)want[k]);
            free(want);
            free(got);
            fixture_close(&cpu);
            fixture_close(&card);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits), cmocka_unit_test(test_runs_of_shards), cmocka_unit_test(test_walks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
