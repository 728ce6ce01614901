/*  Intake: duplicates, ranges, credit, versions, states, and bodies that are not what their header says. */
#include "tests/test.h"
#include "tests/learner/near.h"
#include "learner/intake.h"
#include "tests/learner/segments.h"

enum { N = 6, T = 4, D = 3, S = 5 };

static tt_columns_t *s_columns; /* of D numbers and two choices */

static int s_setup(void **state)
{
    (void)state;
    s_columns = made_columns("float32[3]", "discrete(2)", false);
    return 0;
}

static int s_teardown(void **state)
{
    (void)state;
    tt_columns_destroy(&s_columns);
    return 0;
}

static intake_t *s_new(uint32_t lag)
{
    const intake_cfg_t cfg = {.N = N, .T = T, .columns = s_columns, .state_bytes = S, .lag = lag};
    return intake_new(&cfg);
}

static tt_status_t s_add_from(intake_t *intake, uint64_t instance, uint64_t batch, uint64_t version, uint32_t lo,
    uint32_t count, const intake_range_t *force, uint32_t *fresh)
{
    zmq_msg_t frame;
    const made_t made = {batch, version, instance, lo, count};
    const tt_msg_SEGMENT_t msg = made_segment(&made, s_columns, T, S, &frame);
    const tt_status_t status = intake_add(intake, &msg, &frame, force, fresh);
    zmq_msg_close(&frame);
    return status;
}

static tt_status_t s_add(
    intake_t *intake, uint64_t batch, uint64_t version, uint32_t lo, uint32_t count, uint32_t *fresh)
{
    return s_add_from(intake, 1, batch, version, lo, count, NULL, fresh);
}

static void test_a_batch_fills_up(void **state)
{
    (void)state;
    intake_t *intake = s_new(1);
    uint32_t fresh = 0;
    assert_int_equal(intake_upto(intake), 2);
    assert_ok(s_add(intake, 0, 0, 0, 4, &fresh));
    assert_int_equal(fresh, 4);
    assert_false(intake_complete(intake, 0));
    assert_int_equal(intake_base(intake), 0);
    assert_ok(s_add(intake, 1, 0, 0, 6, NULL)); /* a batch ahead may come first */
    assert_int_equal(intake_base(intake), 0);
    assert_ok(s_add(intake, 0, 0, 4, 2, &fresh));
    assert_int_equal(fresh, 2);
    assert_true(intake_complete(intake, 0));
    assert_int_equal(intake_base(intake), 2);
    assert_int_equal(intake_owner(intake, 0, 5)->env_lo, 4);
    assert_near(((float *)intake_owner(intake, 0, 5)->at.column[0])[D], made_obs(0, 5, 0, 0), 0);
    intake_advance(intake, 1);
    assert_int_equal(intake_upto(intake), 3);
    assert_null(intake_batch(intake, 0));
    assert_false(intake_complete(intake, 2));
    intake_destroy(&intake);
}

static void test_copies_are_dropped_and_counted(void **state)
{
    (void)state;
    intake_t *intake = s_new(0);
    uint32_t fresh = 9;
    assert_ok(s_add_from(intake, 1, 0, 0, 0, 4, NULL, NULL));
    assert_ok(s_add_from(intake, 2, 0, 0, 2, 4, NULL, &fresh)); /* two of its envs are there */
    assert_int_equal(fresh, 2);
    assert_int_equal(intake_dropped(intake), 2);
    assert_int_equal(intake_owner(intake, 0, 3)->instance, 1);
    assert_int_equal(intake_owner(intake, 0, 4)->instance, 2);
    assert_true(intake_complete(intake, 0));
    assert_ok(s_add_from(intake, 1, 0, 0, 0, 4, NULL, &fresh));
    assert_int_equal(fresh, 0);
    assert_int_equal(intake_dropped(intake), 6);
    intake_advance(intake, 1);
    assert_ok(s_add(intake, 0, 0, 0, 6, &fresh)); /* trained already */
    assert_int_equal(fresh, 0);
    assert_int_equal(intake_dropped(intake), 12);
    assert_false(intake_complete(intake, 1));
    intake_destroy(&intake);
}

static void test_beyond_the_credit_and_wrong_versions_are_refused(void **state)
{
    (void)state;
    intake_t *intake = s_new(1);
    assert_int_equal(s_add(intake, 2, 1, 0, 6, NULL), TT_INVALID);
    assert_int_equal(s_add(intake, 1, 1, 0, 6, NULL), TT_INVALID); /* lag 1: exactly version 0 */
    assert_ok(s_add(intake, 1, 0, 0, 6, NULL));
    intake_destroy(&intake);
    intake = s_new(3);
    intake_reset(intake, 10);
    assert_int_equal(s_add(intake, 10, 6, 0, 6, NULL), TT_INVALID);  /* too old */
    assert_int_equal(s_add(intake, 10, 11, 0, 6, NULL), TT_INVALID); /* from the future */
    assert_ok(s_add(intake, 10, 8, 0, 6, NULL));
    intake_destroy(&intake);
}

static void test_headers_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    intake_t *intake = s_new(0);
    const made_t made = {0, 0, 1, 0, N};
    zmq_msg_t frame;
    const tt_msg_SEGMENT_t good = made_segment(&made, s_columns, T, S, &frame);
    tt_msg_SEGMENT_t bad[9];
    for (int i = 0; i < 9; i++)
        bad[i] = good;
    bad[0].steps++;
    bad[1].columns++;
    bad[2].env_lo = 1; /* one env too far */
    bad[3].env_count = 0;
    bad[4].env_lo = UINT32_MAX;
    bad[5].state_bytes = 4;
    bad[6].finals--;
    bad[7].before = 1; /* its range would begin before env 0 */
    bad[8].after = 1;
    for (int i = 0; i < 9; i++) {
        assert_int_not_equal(intake_add(intake, &bad[i], &frame, NULL, NULL), TT_OK);
        assert_true(zmq_msg_size(&frame) > 0);
    }
    assert_int_equal(intake_batch(intake, 0)->filled, 0);
    assert_ok(intake_add(intake, &good, &frame, NULL, NULL));
    zmq_msg_close(&frame);
    intake_destroy(&intake);
}

/*  Another version of the env may have another order of the same leaves: equal sizes, other meaning. */
static void test_other_columns_are_refused_in_words(void **state)
{
    (void)state;
    intake_t *intake = s_new(0);
    tt_columns_t *other = made_columns("(float32[2], float32)", "discrete(2)", false);
    const made_t made = {0, 0, 1, 0, N};
    zmq_msg_t frame;
    const tt_msg_SEGMENT_t msg = made_segment(&made, other, T, S, &frame);
    assert_int_equal(intake_add(intake, &msg, &frame, NULL, NULL), TT_INVALID);
    assert_non_null(strstr(tt_err_text(), "another list of columns"));
    assert_non_null(strstr(tt_err_text(), "same version of the env"));
    zmq_msg_close(&frame);
    tt_columns_destroy(&other);
    intake_destroy(&intake);
}

static void test_an_action_out_of_range_is_refused(void **state)
{
    (void)state;
    for (int32_t wrong = -1; wrong <= 2; wrong += 3) {
        intake_t *intake = s_new(0);
        const made_t made = {0, 0, 1, 0, N};
        zmq_msg_t frame;
        const tt_msg_SEGMENT_t msg = made_segment(&made, s_columns, T, S, &frame);
        const tt_segment_shape_t shape = {.columns = s_columns, .T = T, .E = N, .K = N, .S = S};
        tt_segment_t at;
        tt_segment_map(&shape, zmq_msg_data(&frame), &at);
        memcpy((char *)at.column[s_columns->action] + 4 * (T * N - 1), &wrong, sizeof wrong);
        assert_int_equal(intake_add(intake, &msg, &frame, NULL, NULL), TT_PROTOCOL);
        zmq_msg_close(&frame);
        intake_destroy(&intake);
    }
}

static void test_a_forbidden_action_is_refused(void **state)
{
    (void)state;
    tt_columns_t *masked = made_columns("float32[3]", "(discrete(3), multi_discrete(2, 3))", true);
    const intake_cfg_t cfg = {.N = N, .T = T, .columns = masked, .state_bytes = S};
    for (int element = 0; element < 2; element++) {
        intake_t *intake = intake_new(&cfg);
        const made_t made = {0, 0, 1, 0, N};
        const tt_segment_shape_t shape = {.columns = masked, .T = T, .E = N, .K = N, .S = S};
        const uint32_t r = T * N - 1;
        zmq_msg_t frame;
        tt_segment_t at;
        const tt_msg_SEGMENT_t msg = made_segment(&made, masked, T, S, &frame);
        tt_segment_map(&shape, zmq_msg_data(&frame), &at);
        int32_t *last = (int32_t *)at.column[masked->action + 1] + 2 * r + element;
        const int32_t allowed = *last;
        *last = (allowed + 1) % (element ? 3 : 2);
        assert_int_equal(intake_add(intake, &msg, &frame, NULL, NULL), TT_PROTOCOL);
        assert_non_null(strstr(tt_err_text(), "action.1"));
        *last = allowed;
        assert_ok(intake_add(intake, &msg, &frame, NULL, NULL));
        zmq_msg_close(&frame);
        intake_destroy(&intake);
    }
    tt_columns_destroy(&masked);
}

static void test_states_stand_at_the_start_of_the_next_batch(void **state)
{
    (void)state;
    intake_t *intake = s_new(1);
    uint8_t out[N * S];
    assert_int_equal(intake_states(intake, 1, 0, N, out), TT_AGAIN);
    assert_ok(s_add(intake, 0, 0, 2, 3, NULL));
    assert_ok(intake_states(intake, 1, 2, 3, out));
    assert_int_equal(out[0], 2);
    assert_int_equal(out[2 * S], 4);
    assert_int_equal(intake_states(intake, 1, 1, 3, out), TT_AGAIN);
    assert_ok(s_add(intake, 0, 0, 0, 6, NULL));
    assert_ok(s_add(intake, 1, 0, 0, 6, NULL));
    intake_advance(intake, 1);
    assert_ok(intake_states(intake, 1, 0, N, out)); /* still needed: batch 1 may be collected again */
    assert_ok(intake_states(intake, 2, 0, N, out));
    assert_int_equal(out[5 * S], 16 + 5);
    intake_advance(intake, 2);
    assert_ok(intake_states(intake, 1, 0, N, out)); /* by a peer that is one step, and so one update, behind */
    assert_ok(intake_states(intake, 2, 0, N, out));
    assert_int_equal(intake_states(intake, 3, 0, N, out), TT_AGAIN);
    assert_ok(s_add(intake, 2, 1, 0, 6, NULL));
    intake_advance(intake, 3);
    assert_int_equal(intake_states(intake, 1, 0, N, out), TT_NOT_FOUND);
    assert_ok(intake_states(intake, 2, 0, N, out));
    assert_int_equal(intake_states(intake, 2, 4, 3, out), TT_INVALID);
    intake_destroy(&intake);
}

static void test_a_snapshots_states(void **state)
{
    (void)state;
    intake_t *intake = s_new(1);
    uint8_t states[N * S], out[N * S];
    for (size_t i = 0; i < sizeof states; i++)
        states[i] = (uint8_t)i;
    intake_reset(intake, 41);
    intake_put_states(intake, states);
    assert_ok(intake_states(intake, 41, 0, N, out));
    assert_memory_equal(states, out, sizeof out);
    assert_int_equal(intake_states(intake, 40, 0, N, out), TT_NOT_FOUND);
    assert_int_equal(intake_upto(intake), 43);
    intake_destroy(&intake);
}

static void test_a_composition_replaces_envs(void **state)
{
    (void)state;
    intake_t *intake = s_new(2);
    intake_reset(intake, 5);
    uint32_t fresh = 0;
    assert_ok(s_add_from(intake, 1, 5, 4, 0, 6, NULL, NULL));
    const intake_range_t range = {2, 2};
    assert_ok(s_add_from(intake, 2, 5, 3, 0, 6, &range, &fresh));
    assert_int_equal(fresh, 2);
    assert_int_equal(intake_owner(intake, 5, 1)->instance, 1);
    assert_int_equal(intake_owner(intake, 5, 2)->instance, 2);
    assert_int_equal(intake_owner(intake, 5, 3)->version, 3);
    assert_int_equal(intake_owner(intake, 5, 4)->instance, 1);
    assert_true(intake_complete(intake, 5));
    intake_destroy(&intake);
}

static bool s_from_two(const void *ctx, const intake_segment_t *segment)
{
    (void)ctx;
    return segment->instance == 2;
}

/*  Ranges moved: what was made by another is forgotten, with its states, from a batch on; those before it stay. */
static void test_what_is_disowned_may_come_again(void **state)
{
    (void)state;
    intake_t *intake = s_new(2);
    uint8_t out[N * S];
    assert_ok(s_add_from(intake, 1, 0, 0, 0, 6, NULL, NULL)); /* batch 0: complete */
    assert_ok(s_add_from(intake, 1, 1, 0, 0, 4, NULL, NULL)); /* batch 1: env 5 is missing */
    assert_ok(s_add_from(intake, 2, 1, 0, 4, 1, NULL, NULL));
    assert_ok(s_add_from(intake, 1, 2, 0, 0, 2, NULL, NULL));
    intake_disown(intake, intake_base(intake), s_from_two, NULL);
    assert_true(intake_complete(intake, 0));
    assert_ok(intake_states(intake, 1, 0, N, out));
    assert_int_equal(intake_batch(intake, 1)->filled, 1);
    assert_int_equal(intake_batch(intake, 2)->filled, 0);
    assert_null(intake_owner(intake, 1, 3));
    assert_int_equal(intake_owner(intake, 1, 4)->instance, 2);
    assert_int_equal(intake_states(intake, 2, 0, 1, out), TT_AGAIN);
    assert_ok(intake_states(intake, 2, 4, 1, out));
    uint32_t fresh = 0;
    assert_ok(s_add_from(intake, 3, 1, 0, 0, 6, NULL, &fresh));
    assert_int_equal(fresh, 5);
    assert_true(intake_complete(intake, 1));
    intake_disown(intake, 0, s_from_two, NULL); /* complete ones, too */
    assert_int_equal(intake_base(intake), 0);
    assert_int_equal(intake_batch(intake, 0)->filled, 0);
    assert_int_equal(intake_batch(intake, 1)->filled, 1);
    assert_int_equal(intake_states(intake, 1, 0, 1, out), TT_AGAIN);
    intake_destroy(&intake);
}

static void test_an_episode_older_than_the_run_is_refused(void **state)
{
    (void)state;
    intake_t *intake = s_new(1);
    const made_t made = {1, 0, 1, 0, 6};
    const tt_segment_shape_t shape = {.columns = s_columns, .T = T, .E = 6, .K = 6, .S = S};
    tt_segment_t at;
    zmq_msg_t frame;
    const tt_msg_SEGMENT_t msg = made_segment(&made, s_columns, T, S, &frame);
    tt_segment_map(&shape, zmq_msg_data(&frame), &at);
    at.age[2] = T + 1;
    assert_int_equal(intake_add(intake, &msg, &frame, NULL, NULL), TT_INVALID);
    assert_non_null(strstr(tt_err_text(), "older than the run"));
    at.age[2] = T;
    assert_ok(intake_add(intake, &msg, &frame, NULL, NULL));
    zmq_msg_close(&frame);
    intake_destroy(&intake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_batch_fills_up),
        cmocka_unit_test(test_copies_are_dropped_and_counted),
        cmocka_unit_test(test_beyond_the_credit_and_wrong_versions_are_refused),
        cmocka_unit_test(test_headers_that_do_not_fit_are_refused),
        cmocka_unit_test(test_other_columns_are_refused_in_words),
        cmocka_unit_test(test_an_action_out_of_range_is_refused),
        cmocka_unit_test(test_a_forbidden_action_is_refused),
        cmocka_unit_test(test_an_episode_older_than_the_run_is_refused),
        cmocka_unit_test(test_states_stand_at_the_start_of_the_next_batch),
        cmocka_unit_test(test_a_snapshots_states),
        cmocka_unit_test(test_a_composition_replaces_envs),
        cmocka_unit_test(test_what_is_disowned_may_come_again),
    };
    return cmocka_run_group_tests(tests, s_setup, s_teardown);
}
