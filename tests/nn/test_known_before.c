/*  Known stages: a loss sees the rows of their tables as if these had been forwarded, and nothing else of the pass changes a bit. */
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "tests/nn/known_fixture.h"

static const char *const s_builds[] = {"portable", "avx2", "avx512"};

/*  Each head's rows are what tt_net_forward makes of the set and the frame that it names. */
static void forward_before(known_t *k)
{
    const rows_t *const frames[] = {&k->world.rows, &k->next};
    for (uint32_t h = 0; h < k->heads; h++) {
        const tt_objective_stage_t *stage = &k->head[h].stage;
        float *out[TT_TOWERS_MAX] = {NULL};
        if (stage->grad)
            continue;
        out[stage->tower] = tt_array0(k->next.rows * k->head[h].outs, sizeof(float));
        fixture_heads(&k->world.place, k->world.net, stage->set, frames[stage->frame]->by_number, k->next.rows, out);
        known_put(k, h, out[stage->tower]);
    }
}

static void check_forwarded(const place_t *place, size_t spec, uint32_t rows, uint32_t shards)
{
    known_t k;
    known_open(&k, place, &fixture_specs[spec], rows, 1);
    forward_before(&k);
    known_choose(&k, HEAD_FORWARDED, 0);
    float *want = known_grad(&k, shards);
    for (size_t m = 0; m < TT_COUNT(known_masks); m++)
        known_compare(&k, want, known_masks[m], shards, "forwarded before", spec);
    free(want);
    known_close(&k);
}

static void test_forwarded_before(void **state)
{
    (void)state;
    for (size_t b = 0; b < TT_COUNT(s_builds); b++)
        for (size_t s = 0; s < fixture_spec_count; s++)
            for (uint32_t rows = 5; rows <= 70; rows += 65) {
                place_t place;
                if (fixture_build(&place, s_builds[b]))
                    check_forwarded(&place, s, rows, rows > 5 ? 2 : 1);
            }
}

/*  Step by step, in another set that has the same parameters: what a pass over the sequences sees. */
static void step_before(known_t *k, uint32_t set)
{
    const uint32_t all = fixture_outs(k->spec);
    float *seen = recurrent_stepped(&k->world, set);
    for (uint32_t h = 0; h < k->heads; h++) {
        uint32_t first = 0;
        for (uint32_t t = 0; t < k->head[h].stage.tower; t++)
            first += k->spec->tower[t].out;
        if (k->head[h].stage.grad)
            continue;
        float *rows = tt_array0(k->next.rows * k->head[h].outs, sizeof *rows);
        for (size_t r = 0; r < k->next.rows; r++)
            memcpy(rows + r * k->head[h].outs, seen + r * all + first, k->head[h].outs * sizeof *rows);
        known_put(k, h, rows);
    }
    free(seen);
}

/*  The last of the trained heads is no longer: all that can be forwarded is, and then nothing that is not trained. */
static void check_stepped(const char *backend, size_t spec)
{
    place_t place;
    known_t k;
    uint32_t last = TT_STAGES_MAX;
    fixture_open_on(&place, backend, 1);
    known_open(&k, &place, &recurrent_specs[spec], 35, 5);
    while (!k.head[--last].stage.grad)
        continue;
    k.head[last].stage.grad = false;
    step_before(&k, tt_spec_sets(k.spec) - 1);
    known_choose(&k, HEAD_KNOWN, 0);
    float *want = known_grad(&k, 2);
    known_compare(&k, want, UINT32_MAX, 2, "step by step", spec);
    free(want);
    known_close(&k);
}

static void test_stepped_before(void **state)
{
    (void)state;
    for (size_t s = 0; s < recurrent_spec_count; s++) {
        check_stepped("cpu", s);
        check_stepped("cpu-strict", s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forwarded_before),
        cmocka_unit_test(test_stepped_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
