/*  A collector from HELLO to its end, against docs/internals/protocol.md ("Batches"). */
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tests/collector/stage.h"
#include "tests/test.h"

static void s_assert_batch(stage_t *stage, uint32_t learner, uint64_t batch, size_t k)
{
    const fake_segment_t *segment = stage_segment(stage, learner, batch, k);
    assert_non_null(segment);
    assert_true(segment->msg.version == (batch > stage->lag ? batch - stage->lag : 0));
    fake_segment_t reference = stage_reference(stage, batch);
    stage_assert_part(&reference, segment);
    free(reference.block);
}

/*  What a learner will say to the next ATTACH. */
static void s_expect(stage_t *stage, uint32_t learner, uint64_t base, uint64_t upto)
{
    stage->learner[learner].answers = true;
    stage->learner[learner].base = base;
    stage->learner[learner].upto = upto;
}

/*  A version of rank 0 is credit for what the lag allows on top of it; CREDIT itself may come behind it, or before. */
static void test_lock_step(void **state)
{
    (void)state;
    stage_t stage;
    stage_open(&stage, 0, 0);
    stage_roster(&stage, 1, 0, STAGE_ENVS);
    fake_learner_credit(&stage.learner[0], 0, 1);
    stage_until(&stage, stage_segment(&stage, 0, 0, 0));
    stage_until(&stage, stage.first_steps == 1);
    stage_stay(&stage, "waiting for credit for batch 1");
    assert_null(stage_segment(&stage, 0, 1, 0));
    stage_publish(&stage, 2);
    stage_until(&stage, stage_segment(&stage, 0, 1, 0));
    stage_stay(&stage, "waiting for credit for batch 2");
    fake_learner_credit(&stage.learner[0], 2, 3);
    stage_stay(&stage, "waiting for version 2");
    assert_null(stage_segment(&stage, 0, 2, 0)); /* no version 2 */
    stage_publish(&stage, 3);
    stage_until(&stage, stage_segment(&stage, 0, 2, 0));
    for (uint64_t batch = 0; batch < 3; batch++)
        s_assert_batch(&stage, 0, batch, 0);
    stage_close(&stage);
    assert_int_equal(stage.collector.status, TT_OK);
    assert_int_equal(stage.first_steps, 1);
}

/*  The best choice with an epsilon that falls: over batches, in a range of its own, by the numbers of the whole job. */
static void test_argmax(void **state)
{
    (void)state;
    stage_t stage;
    stage_open_actor(&stage, 0,
        &(tt_actor_t){.kind = TT_ACT_ARGMAX,
            .epsilon = 0.9,
            .epsilon_end = 0.1,
            .epsilon_rows = 2 * STAGE_ENVS * STAGE_STEPS,
            .random_rows = STAGE_ENVS * STAGE_STEPS / 2});
    stage_publish(&stage, 3);
    stage_roster(&stage, 1, 3, 4);
    fake_learner_credit(&stage.learner[0], 0, 3);
    stage_until(&stage, stage_segment(&stage, 0, 2, 0));
    for (uint64_t batch = 0; batch < 3; batch++) {
        assert_int_equal(stage_segment(&stage, 0, batch, 0)->shape.columns->value, -1);
        s_assert_batch(&stage, 0, batch, 0);
    }
    stage_close(&stage);
    assert_int_equal(stage.collector.status, TT_OK);
}

/*  Who led another generation may be ahead of this one's rank 0, and a version that no batch of ours led to is no word at
 *  all about room: neither is credit. */
static void test_a_version_that_is_no_credit(void **state)
{
    (void)state;
    stage_t stage;
    stage_open(&stage, 0, 0);
    stage_roster(&stage, 1, 0, STAGE_ENVS);
    fake_learner_credit(&stage.learner[0], 0, 1);
    stage_until(&stage, stage_segment(&stage, 0, 0, 0));
    stage_stay(&stage, "waiting for credit for batch 1");
    stage.run.generation++;
    stage_publish(&stage, 2);
    stage_stay(&stage, "waiting for credit for batch 1");
    stage.run.generation--;
    fake_learner_publish(&stage.learner[0], 7);
    stage_stay(&stage, "waiting for credit for batch 1");
    assert_null(stage_segment(&stage, 0, 1, 0));
    fake_learner_credit(&stage.learner[0], 1, 2);
    stage_until(&stage, stage_segment(&stage, 0, 1, 0));
    s_assert_batch(&stage, 0, 1, 0);
    stage_close(&stage);
}

/*  Rank 0's version says nothing of the others' room, and is not taken back by a CREDIT that it overtook. */
static void test_a_version_is_credit_of_rank_0_only(void **state)
{
    (void)state;
    stage_t stage;
    stage_open(&stage, 0, 0);
    stage_roster(&stage, 3, 0, STAGE_ENVS);
    fake_learner_credit(&stage.learner[0], 0, 1);
    fake_learner_credit(&stage.learner[1], 0, 1);
    stage_until(&stage, stage_segment(&stage, 0, 0, 0) && stage_segment(&stage, 1, 0, 0));
    stage_publish(&stage, 2);
    stage_stay(&stage, "waiting for credit for batch 1 from learner/1");
    fake_learner_credit(&stage.learner[0], 0, 1);
    stage_stay(&stage, "waiting for credit for batch 1 from learner/1");
    fake_learner_credit(&stage.learner[1], 1, 2);
    stage_until(&stage, stage_segment(&stage, 0, 1, 0) && stage_segment(&stage, 1, 1, 0));
    stage_close(&stage);
}

/*  Exactly version n - 1, also when a newer one is there; and a version that PUB did not bring is fetched. */
static void test_lag_1_takes_exactly_its_version(void **state)
{
    (void)state;
    stage_t stage;
    stage_open(&stage, 1, 0);
    stage.store.silent_pub = true;
    stage_roster(&stage, 1, 0, STAGE_ENVS);
    fake_learner_credit(&stage.learner[0], 0, 2);
    stage_until(&stage, stage_segment(&stage, 0, 1, 0));
    stage_publish(&stage, 4);
    fake_learner_credit(&stage.learner[0], 1, 4);
    stage_until(&stage, stage_segment(&stage, 0, 3, 0));
    for (uint64_t batch = 0; batch < 4; batch++)
        s_assert_batch(&stage, 0, batch, 0);
    assert_true(stage.learner[0].weights_fetched >= 3);
    stage_close(&stage);
}

static void test_lag_4_takes_the_newest(void **state)
{
    (void)state;
    stage_t stage;
    stage_open(&stage, 4, 0);
    stage_roster(&stage, 1, 0, STAGE_ENVS);
    fake_learner_credit(&stage.learner[0], 0, 2);
    stage_until(&stage, stage_segment(&stage, 0, 1, 0));
    stage.store.silent_pub = true;
    stage_publish(&stage, 6);
    fake_learner_credit(&stage.learner[0], 2, 6);
    stage_until(&stage, stage_segment(&stage, 0, 5, 0));
    assert_true(stage_segment(&stage, 0, 4, 0)->msg.version == 0); /* version 0 is still new enough */
    assert_true(stage_segment(&stage, 0, 5, 0)->msg.version == 5); /* 1 is asked for, the newest comes */
    stage_close(&stage);
}

/*  Every learner gets every segment; the smallest credit counts; a joiner gets what it lacks, one that left is forgotten. */
static void test_learners_come_and_go(void **state)
{
    (void)state;
    stage_t stage;
    stage_open(&stage, 0, 0);
    stage_publish(&stage, 8);
    stage_roster(&stage, 3, 0, STAGE_ENVS);
    fake_learner_credit(&stage.learner[0], 0, 3);
    stage_stay(&stage, "waiting for CREDIT of epoch 1 from learner/1");
    assert_null(stage_segment(&stage, 0, 0, 0)); /* learner 1 has said nothing */
    fake_learner_credit(&stage.learner[1], 0, 2);
    stage_until(&stage, stage_segment(&stage, 0, 1, 0) && stage_segment(&stage, 1, 1, 0));
    stage_stay(&stage, "waiting for credit for batch 2 from learner/1");
    assert_null(stage_segment(&stage, 0, 2, 0)); /* learner 1 has no room */
    fake_learner_ack(&stage.learner[0], 1);
    s_expect(&stage, 0, 2, 4);
    stage_roster(&stage, 1, 0, STAGE_ENVS); /* learner 1 left */
    stage_until(&stage, stage_segment(&stage, 0, 3, 0));
    assert_null(stage_segment(&stage, 1, 2, 0));
    s_expect(&stage, 0, 4, 5);
    s_expect(&stage, 2, 2, 5);
    stage_roster(&stage, 5, 0, STAGE_ENVS); /* learner 2 joins at update 2 */
    stage_until(&stage, stage_segment(&stage, 0, 4, 0) && stage_segment(&stage, 2, 4, 0));
    assert_null(stage_segment(&stage, 2, 1, 0));
    for (uint64_t batch = 0; batch < 5; batch++) {
        s_assert_batch(&stage, 0, batch, 0);
        if (batch >= 2)
            s_assert_batch(&stage, 2, batch, 0);
    }
    assert_int_equal(stage.learner[0].envs_fetched, 0);
    stage_close(&stage);
}

static void s_move_range(stage_t *stage)
{
    stage_publish(stage, 6);
    stage_roster(stage, 1, 0, 4);
    fake_learner_credit(&stage->learner[0], 0, 2);
    stage_until(stage, stage_segment(stage, 0, 1, 0));
    fake_segment_t reference = stage_reference(stage, 1);
    tt_segment_t at;
    tt_segment_map(&reference.shape, reference.block, &at);
    stage->store.states = at.states; /* as they are at the start of batch 2 */
    s_expect(stage, 0, 2, 4);
    stage_roster(stage, 1, 2, 6);
    stage_until(stage, stage_segment(stage, 0, 3, 0));
    assert_in_range(stage->learner[0].envs_fetched, 1, UINT32_MAX); /* asked again if the answer took its time */
    for (uint64_t batch = 0; batch < 4; batch++)
        s_assert_batch(stage, 0, batch, 0);
    assert_int_equal(stage_segment(stage, 0, 1, 0)->msg.env_count, 4);
    assert_int_equal(stage_segment(stage, 0, 3, 0)->msg.env_lo, 2);
    stage_close(stage);
    free(reference.block);
}

/*  Another range: the states come from rank 0, with what is carried, and what is collected is what the other would have collected. */
static void test_range_moves(void **state)
{
    (void)state;
    stage_t stage;
    stage_open(&stage, 1, 0);
    s_move_range(&stage);
    stage_open_recurrent(&stage, 1);
    s_move_range(&stage);
}

/*  The number of a learner's segment of a batch that has so many envs; those that it has, when there is none. */
static size_t s_of_envs(const stage_t *stage, uint32_t learner, uint64_t batch, uint32_t count)
{
    size_t k = 0;
    for (const fake_segment_t *it; (it = stage_segment(stage, learner, batch, k)) && it->msg.env_count != count; k++)
        continue;
    return k;
}

static bool s_has_of_envs(const stage_t *stage, uint32_t learner, uint64_t batch, uint32_t count)
{
    return stage_segment(stage, learner, batch, s_of_envs(stage, learner, batch, count)) != NULL;
}

/*  One learner says what it lacks long before another does: it gets what is collected then, and not only what there was of the range before,
 *  without having to ask. */
static void test_range_moves_between_credits(void **state)
{
    (void)state;
    stage_t stage;
    stage_open(&stage, 0, 0);
    stage_publish(&stage, 2);
    stage_roster(&stage, 3, 0, 4);
    fake_learner_credit(&stage.learner[0], 0, 2);
    fake_learner_credit(&stage.learner[1], 0, 2);
    stage_until(&stage, stage_segment(&stage, 0, 1, 0) && stage_segment(&stage, 1, 1, 0));
    fake_segment_t reference = stage_reference(&stage, 0);
    tt_segment_t at;
    tt_segment_map(&reference.shape, reference.block, &at);
    stage.store.states = at.states; /* as they are at the start of batch 1 */
    s_expect(&stage, 0, 1, 2);
    stage.learner[1].answers = false;
    stage_roster(&stage, 3, 0, STAGE_ENVS);
    stage_stay(&stage, "waiting for CREDIT of epoch 2 from learner/1");
    stage.run.hands = NULL; /* nobody asks again */
    fake_learner_credit(&stage.learner[1], 1, 2);
    for (uint32_t learner = 0; learner < 2; learner++) {
        stage_until(&stage, s_has_of_envs(&stage, learner, 1, STAGE_ENVS));
        s_assert_batch(&stage, learner, 1, s_of_envs(&stage, learner, 1, STAGE_ENVS));
    }
    stage_close(&stage);
    free(reference.block);
}

/*  A range that changes while a batch is in hand, and back to where everything is still to be collected. */
static void test_spare_then_back(void **state)
{
    (void)state;
    stage_t stage;
    stage_open(&stage, 0, 0);
    stage_roster(&stage, 1, 0, STAGE_ENVS);
    fake_learner_credit(&stage.learner[0], 0, 1);
    stage_until(&stage, stage_segment(&stage, 0, 0, 0));
    stage_roster(&stage, 1, 0, 0);
    stage_stay(&stage, "idle: no envs for me");
    stage_publish(&stage, 2);
    s_expect(&stage, 0, 0, 1); /* nobody has collected batch 0 for that learner */
    stage_roster(&stage, 1, 0, STAGE_ENVS);
    stage_until(&stage, stage_segment(&stage, 0, 0, 1));
    s_assert_batch(&stage, 0, 0, 0);
    s_assert_batch(&stage, 0, 0, 1);
    stage_close(&stage);
}

/*  The learner has moved on while it was asked for states: attach again, and start from where it is now. */
static void test_states_that_are_gone(void **state)
{
    (void)state;
    stage_t stage;
    stage_open(&stage, 0, 0);
    stage_publish(&stage, 4);
    fake_segment_t reference = stage_reference(&stage, 2);
    tt_segment_t at;
    tt_segment_map(&reference.shape, reference.block, &at);
    stage.store.states = at.states; /* as they are at the start of batch 3 */
    stage.learner[0].gone = true;
    s_expect(&stage, 0, 2, 4);
    stage_roster(&stage, 1, 0, STAGE_ENVS);
    stage_until(&stage, stage_segment(&stage, 0, 3, 0));
    assert_false(stage.learner[0].gone);
    assert_null(stage_segment(&stage, 0, 2, 0));
    s_assert_batch(&stage, 0, 3, 0);
    stage_close(&stage);
    free(reference.block);
}

/*  A segment that was lost on the way: the learner's base stands still, so it is sent again. */
static void test_a_lost_segment_is_sent_again(void **state)
{
    (void)state;
    stage_t stage;
    stage_open(&stage, 0, 0);
    stage_roster(&stage, 1, 0, STAGE_ENVS);
    const int64_t before_ms = tt_now_ms(&stage.collector.clock);
    fake_learner_credit(&stage.learner[0], 0, 1);
    stage_until(&stage, stage_segment(&stage, 0, 0, 0));
    stage_stay(&stage, "waiting for credit for batch 1");
    if (tt_now_ms(&stage.collector.clock) - before_ms < STAGE_LEASE_MS / 2)
        assert_null(stage_segment(&stage, 0, 0, 1)); /* it may be under way */
    fake_role_pass(&stage.collector, STAGE_LEASE_MS / 2);
    stage_until(&stage, stage_segment(&stage, 0, 0, 1)); /* it asks for credit, hears base 0, and understands */
    s_assert_batch(&stage, 0, 0, 1);
    stage_close(&stage);
}

/*  A new era voids everything: weights of the old one are not used, kept segments are not sent. */
static void test_new_era(void **state)
{
    (void)state;
    stage_t stage;
    stage_open(&stage, 0, 0);
    stage_publish(&stage, 3);
    stage_roster(&stage, 1, 0, STAGE_ENVS);
    fake_learner_credit(&stage.learner[0], 0, 3);
    stage_until(&stage, stage_segment(&stage, 0, 2, 0));
    fake_segment_t reference = stage_reference(&stage, 0);
    tt_segment_t at;
    tt_segment_map(&reference.shape, reference.block, &at);
    stage.store.states = at.states;
    stage.run.era = 2;
    s_expect(&stage, 0, 1, 2);
    stage_roster(&stage, 1, 0, STAGE_ENVS);
    stage_until(&stage, stage_segment(&stage, 0, 1, 1));
    assert_int_equal(stage_segment(&stage, 0, 1, 1)->msg.era, 2);
    assert_null(stage_segment(&stage, 0, 2, 1));
    s_assert_batch(&stage, 0, 1, 1);
    stage_close(&stage);
    free(reference.block);
}

static void test_drain(void **state)
{
    (void)state;
    stage_t stage;
    stage_open(&stage, 0, 0);
    stage_roster(&stage, 1, 0, STAGE_ENVS);
    stage_until(&stage, stage.learner[0].epoch == 1);
    fake_send(&stage.run, stage.collector.member, &TT_MSG(DRAIN, .reason = (char *)"scaled down"));
    stage_until(&stage, stage.collector.member->drained && stage.collector.ended);
    assert_int_equal(stage.collector.status, TT_OK);
    stage_close(&stage);
}

static void test_sigterm(void **state)
{
    (void)state;
    stage_t stage;
    stage_open(&stage, 0, 0);
    stage_until(&stage, stage.collector.member->hello);
    kill(getpid(), SIGTERM);
    stage_until(&stage, stage.collector.member->drained && stage.collector.ended);
    assert_string_equal(stage.collector.member->reason, "SIGTERM");
    assert_int_equal(stage.collector.status, TT_OK);
    stage_close(&stage);
}

/*  The env here is not the one that the job was made for: the run is told, in words. */
static void test_foreign_env_fails_the_run(void **state)
{
    (void)state;
    stage_t stage;
    stage_open(&stage, 0, 1);
    stage_until(&stage, stage.event[0] && stage.collector.ended);
    assert_string_equal(stage.event, "failed");
    assert_non_null(strstr(stage.event_text, "CartPole-v1"));
    assert_int_equal(stage.collector.status, TT_INVALID);
    stage_close(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lock_step),
        cmocka_unit_test(test_argmax),
        cmocka_unit_test(test_a_version_that_is_no_credit),
        cmocka_unit_test(test_a_version_is_credit_of_rank_0_only),
        cmocka_unit_test(test_lag_1_takes_exactly_its_version),
        cmocka_unit_test(test_lag_4_takes_the_newest),
        cmocka_unit_test(test_learners_come_and_go),
        cmocka_unit_test(test_range_moves),
        cmocka_unit_test(test_range_moves_between_credits),
        cmocka_unit_test(test_spare_then_back),
        cmocka_unit_test(test_states_that_are_gone),
        cmocka_unit_test(test_a_lost_segment_is_sent_again),
        cmocka_unit_test(test_new_era),
        cmocka_unit_test(test_drain),
        cmocka_unit_test(test_sigterm),
        cmocka_unit_test(test_foreign_env_fails_the_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
