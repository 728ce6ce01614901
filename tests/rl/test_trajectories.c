/*  What a step's return goes on with: against the definition over random flags and shapes, and finals that are missing. */
#include "common/rl/trajectories.h"
#include "tests/rl/trajectories_fixture.h"
#include "tests/test.h"

/*  All steps from the last on; next: [T][N]. */
static tt_status_t s_all(const trajectories_t *c, float *next)
{
    uint32_t left = c->in.finals;
    for (uint32_t t = c->in.T; t-- > 0;)
        TT_TRY(tt_next_values(&c->in, t, &left, next + (size_t)t * c->in.N));
    return TT_OK;
}

static void test_against_the_definition(void **state)
{
    (void)state;
    static trajectories_t c;
    static float next[TRAJECTORY_ROWS_MAX];
    const uint32_t shapes[][2] = {{1, 1}, {1, 5}, {7, 1}, {13, 4}, {25, 16}, {6, 33}};
    for (uint32_t k = 0; k < TT_COUNT(shapes) * 10; k++) {
        const uint32_t *shape = shapes[k % TT_COUNT(shapes)];
        trajectories_fill(&c, shape[0], shape[1], k * 10);
        c.in.or_flags = k >= TT_COUNT(shapes) * 5;
        c.in.finals = c.in.or_flags ? 0 : c.in.finals; /* not read then */
        assert_ok(s_all(&c, next));
        for (uint32_t i = 0; i < shape[0] * shape[1]; i++)
            assert_true((double)next[i] == trajectories_next_value(&c, i / shape[1], i % shape[1]));
    }
}

static void test_a_missing_final_is_refused(void **state)
{
    (void)state;
    static trajectories_t c;
    float next[40];
    trajectories_fill(&c, 10, 4, 5);
    assert_true(c.in.finals > 1);
    c.in.finals--;
    assert_int_equal(s_all(&c, next), TT_INVALID);
    c.in.finals++;
    c.final_row[0]++;
    assert_int_equal(s_all(&c, next), TT_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_the_definition),
        cmocka_unit_test(test_a_missing_final_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
