/*  weights: what will be asked for is kept, whatever numbers come. */
#include "collector/weights.h"
#include "tests/test.h"

enum { KEEP = 3, PARAMS = 64 };

static tt_status_t s_add(weights_t *weights, uint64_t version, uint64_t need)
{
    zmq_msg_t frames[2];
    tt_frame_new(&frames[0], PARAMS);
    tt_frame_new(&frames[1], 0);
    const tt_status_t status = weights_add(weights, version, need, frames, 2);
    tt_frame_close(&frames[0]);
    tt_frame_close(&frames[1]);
    return status;
}

static void test_a_run_of_versions(void **state)
{
    (void)state;
    weights_t weights;
    weights_init(&weights, KEEP, PARAMS, 0);
    for (uint64_t version = 0; version < 20; version++) { /* lag 1: version n comes when n - 1 is needed */
        const uint64_t need = version ? version - 1 : 0;
        assert_ok(s_add(&weights, version, need));
        assert_non_null(weights_find(&weights, need));
        assert_non_null(weights_find(&weights, version));
        assert_true(weights.count <= KEEP);
    }
    assert_null(weights_find(&weights, 16));
    assert_int_equal(weights_newest(&weights, 18, 19)->version, 19);
    assert_int_equal(weights_newest(&weights, 17, 18)->version, 18);
    assert_null(weights_newest(&weights, 20, 30));
    weights_free(&weights);
}

static void test_numbers_that_cannot_be_keep_nothing_out(void **state)
{
    (void)state;
    weights_t weights;
    weights_init(&weights, KEEP, PARAMS, 0);
    for (uint64_t i = 0; i < 10; i++)
        assert_ok(s_add(&weights, UINT64_MAX - i, 5));
    assert_ok(s_add(&weights, 5, 5));
    assert_ok(s_add(&weights, 6, 5));
    for (uint64_t i = 0; i < 10; i++)
        assert_ok(s_add(&weights, UINT64_MAX / 2 + i, 5));
    assert_non_null(weights_find(&weights, 5));
    assert_non_null(weights_find(&weights, 6));
    assert_int_equal(weights_newest(&weights, 5, 6)->version, 6);
    assert_int_equal(weights_newest(&weights, 5, 5)->version, 5);
    for (uint64_t version = 7; version < 20; version++) {
        assert_ok(s_add(&weights, version, version - 1));
        assert_non_null(weights_find(&weights, version));
        assert_non_null(weights_find(&weights, version - 1));
    }
    weights_free(&weights);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_run_of_versions),
        cmocka_unit_test(test_numbers_that_cannot_be_keep_nothing_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
