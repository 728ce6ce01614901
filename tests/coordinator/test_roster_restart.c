/*  roster after a coordinator's end: with its journal, and without. */
#include <stdlib.h>
#include "tests/coordinator/roster_world.h"
#include "tests/test.h"

/* ---- a coordinator that lost its journal --------------------------------------------------------------------------- */

static const knows_t s_leader = {true, 3, 5, 17, 2, 1}, s_follower = {true, 3, 5, 17, 2, 2},
                     s_behind = {true, 3, 4, 12, 1, 1}, s_player = {false, 3, 5, 17, 2, 0}, s_new = {0};

static peer_t *s_claim(world_t *w, tt_peer_role_t role, int index, uint64_t instance, knows_t knows)
{
    peer_t *peer = NULL;
    assert_ok(world_try_hello(w, role, index, instance, knows, &peer));
    return peer;
}

static void test_members_that_were_under_way_are_taken_over(void **state)
{
    (void)state;
    world_t *w = world_new(8, 8, 1, 1, 0);
    s_claim(w, TT_PEER_LEARNER, 10007, 1, s_new); /* it was there first */
    s_claim(w, TT_PEER_COLLECTOR, 10000, 2, s_player);
    peer_t *follower = s_claim(w, TT_PEER_LEARNER, 10001, 101, s_follower);
    assert_false(world_due(w)); /* the other of two may come */
    assert_true(roster_goes_on(w->roster));
    peer_t *leader = s_claim(w, TT_PEER_LEARNER, 10007, 100, s_leader);
    assert_int_not_equal(leader->index, 10007); /* a number that is taken is chosen anew */
    assert_true(world_due(w));
    assert_true(world_make(w, "snapshot"));
    assert_false(roster_fresh(w->roster));
    assert_int_equal(roster_era(w->roster), 3);
    assert_int_equal(roster_rolled_back(w->roster), 0);
    assert_true(roster_epoch(w->roster) > 17);
    assert_true(roster_generation(w->roster) > 5);
    assert_ptr_equal(roster_rank0(w->roster), leader);
    assert_int_equal(follower->rank, 1);
    world_end(w);
}

static void test_weights_of_an_older_generation_are_not_taken_over(void **state)
{
    (void)state;
    world_t *w = world_new(8, 8, 1, 1, 0);
    peer_t *peer = NULL;
    s_claim(w, TT_PEER_COLLECTOR, 10000, 2, s_player);
    s_claim(w, TT_PEER_LEARNER, 10001, 99, s_behind);
    peer_t *leader = s_claim(w, TT_PEER_LEARNER, 10000, 100, s_leader);
    assert_false(world_due(w));
    tt_clock_turn(&w->clock, 9 * SECOND);
    roster_heard(w->roster, leader);
    roster_heard(w->roster, roster_holder(w->roster, TT_PEER_LEARNER, 10001));
    assert_false(world_due(w));
    tt_clock_turn(&w->clock, 1 * SECOND);
    assert_true(world_due(w));
    assert_true(world_make(w, ""));
    assert_ptr_equal(roster_rank0(w->roster), leader);
    assert_int_equal(roster_ready(w->roster, TT_PEER_LEARNER), 1);
    assert_null(roster_holder(w->roster, TT_PEER_LEARNER, 10001));
    assert_int_equal(world_try_hello(w, TT_PEER_LEARNER, 10001, 99, s_behind, &peer), TT_DENIED);
    world_end(w);
}

/*  It holds nothing, but what rank 0 sent it then may have come, unread. */
static void test_a_joiner_of_an_older_generation_is_not_taken_over(void **state)
{
    (void)state;
    world_t *w = world_new(8, 8, 1, 1, 0);
    const knows_t late = {false, 3, 4, 12, 2, 2};
    peer_t *peer = NULL;
    s_claim(w, TT_PEER_COLLECTOR, 10000, 2, s_player);
    s_claim(w, TT_PEER_LEARNER, 10001, 99, late);
    peer_t *joiner = s_claim(w, TT_PEER_LEARNER, 10002, 101, (knows_t){false, 3, 5, 17, 2, 2});
    peer_t *leader = s_claim(w, TT_PEER_LEARNER, 10000, 100, s_leader);
    assert_false(world_due(w)); /* the other of two may come */
    tt_clock_turn(&w->clock, 10 * SECOND);
    assert_true(world_due(w));
    assert_true(world_make(w, ""));
    assert_ptr_equal(roster_rank0(w->roster), leader);
    assert_int_equal(roster_ready(w->roster, TT_PEER_LEARNER), 2); /* without an aggregator: it was to sum already */
    assert_int_equal(joiner->rank, 1);
    assert_null(roster_holder(w->roster, TT_PEER_LEARNER, 10001));
    assert_int_equal(world_try_hello(w, TT_PEER_LEARNER, 10001, 99, late, &peer), TT_DENIED);
    world_end(w);
}

/*  The only learner went with the coordinator: what the others know is void, and must not be mistaken for the new run. */
static void test_when_nobody_holds_the_weights_a_new_era_begins(void **state)
{
    (void)state;
    world_t *w = world_new(8, 8, 1, 1, 0);
    s_claim(w, TT_PEER_COLLECTOR, 10000, 2, s_player);
    s_claim(w, TT_PEER_LEARNER, -1, 7, s_new);
    assert_false(world_due(w));
    assert_false(roster_goes_on(w->roster)); /* a stop need not wait for anybody */
    tt_clock_turn(&w->clock, 10 * SECOND);
    assert_true(world_due(w));
    assert_true(world_make(w, ""));
    assert_true(roster_fresh(w->roster));
    assert_int_equal(roster_era(w->roster), 4);
    assert_int_equal(roster_rolled_back(w->roster), 1);
    assert_true(roster_epoch(w->roster) > 17);
    world_end(w);
}

static void test_members_of_a_run_under_way_are_expected_for_a_while(void **state)
{
    (void)state;
    world_t *w = calloc(1, sizeof *w);
    w->clock = tt_clock_fake(SECOND);
    const roster_cfg_t cfg = {.num_envs = 8,
        .shards = 8,
        .desired = {[TT_PEER_COLLECTOR] = 1, [TT_PEER_LEARNER] = 1},
        .lease_ns = 5 * SECOND,
        .expect_until_ns = 31 * SECOND};
    assert_ok(roster_new(&w->roster, &cfg, &w->clock));
    s_claim(w, TT_PEER_COLLECTOR, -1, 2, s_new);
    s_claim(w, TT_PEER_LEARNER, -1, 7, s_new);
    assert_int_equal(roster_due_ns(w->roster), 31 * SECOND);
    s_claim(w, TT_PEER_LEARNER, 10000, 100, (knows_t){true, 1, 2, 9, 1, 1});
    assert_true(world_due(w));
    world_end(w);
}

/*  Numbers from which nobody could count on are nobody's: their sender is refused, and the others are taken over. */
static void test_numbers_that_cannot_be_are_not_taken_over(void **state)
{
    (void)state;
    world_t *w = world_new(8, 8, 1, 1, 0);
    peer_t *peer = NULL;
    assert_int_equal(
        world_try_hello(w, TT_PEER_COLLECTOR, 0, 1, (knows_t){false, UINT32_MAX, 1, 1, 1, 0}, &peer), TT_DENIED);
    assert_int_equal(
        world_try_hello(w, TT_PEER_COLLECTOR, 0, 2, (knows_t){false, 1, UINT64_MAX, 1, 1, 0}, &peer), TT_DENIED);
    assert_int_equal(
        world_try_hello(w, TT_PEER_COLLECTOR, 0, 3, (knows_t){false, 1, 1, UINT64_MAX, 1, 0}, &peer), TT_DENIED);
    assert_ok(world_try_hello(w, TT_PEER_COLLECTOR, 0, 4, (knows_t){false, 2, 6, 9, 1, 0}, &peer));
    assert_ok(world_try_hello(w, TT_PEER_LEARNER, 0, 5, (knows_t){true, 2, 6, 9, 1, 1}, &peer));
    assert_true(world_due(w));
    assert_true(world_make(w, ""));
    assert_int_equal(roster_era(w->roster), 2);
    assert_true(roster_epoch(w->roster) > 9 && roster_epoch(w->roster) < 1000);
    world_end(w);
}

/* ---- a coordinator that was restarted ------------------------------------------------------------------------------ */

static const roster_past_member_t s_past_members[] = {{TT_PEER_LEARNER, 1, 101, 0}, {TT_PEER_LEARNER, 0, 100, 1},
    {TT_PEER_COLLECTOR, 0, 1, 0}, {TT_PEER_AGGREGATOR, 0, 2, 0}};

static void s_continue(world_t *w, bool went_on)
{
    const roster_past_t past = {.era = 3,
        .epoch = 17,
        .generation = 5,
        .rolled_back = 2,
        .went_on = went_on,
        .members = s_past_members,
        .member_count = TT_COUNT(s_past_members)};
    roster_continue(w->roster, &past);
}

/*  Killed together with the coordinator and started again, before anybody could see that it was gone. */
static void test_a_restarted_coordinator_does_not_wait_for_those_whose_number_is_taken(void **state)
{
    (void)state;
    world_t *w = world_new(8, 8, 1, 2, 1);
    peer_t *peer = NULL;
    s_continue(w, true);
    world_hello(w, TT_PEER_COLLECTOR, 0, 71);
    world_hello(w, TT_PEER_AGGREGATOR, 0, 72);
    world_hello(w, TT_PEER_LEARNER, 1, 73);
    assert_false(world_due(w)); /* learner/0 may come any moment */
    assert_ok(world_try_hello(w, TT_PEER_LEARNER, 0, 100, (knows_t){true, 3, 5, 0, 0, 0}, &peer));
    assert_true(world_due(w));
    assert_true(world_make(w, ""));
    assert_int_equal(roster_rank0(w->roster)->instance, 100); /* it holds the weights */
    assert_int_equal(roster_era(w->roster), 3);
    world_end(w);
}

/*  The aggregator died with the coordinator. To leave a learner out would let it in again later with old weights. */
static void test_a_restarted_coordinator_keeps_all_holders_without_an_aggregator(void **state)
{
    (void)state;
    world_t *w = world_new(8, 8, 1, 2, 1);
    peer_t *peer = NULL;
    s_continue(w, true);
    world_hello(w, TT_PEER_COLLECTOR, 0, 1);
    assert_ok(world_try_hello(w, TT_PEER_LEARNER, 0, 100, (knows_t){true, 3, 5, 0, 0, 0}, &peer));
    assert_ok(world_try_hello(w, TT_PEER_LEARNER, 1, 101, (knows_t){true, 3, 5, 0, 0, 0}, &peer));
    tt_clock_turn(&w->clock, 5 * SECOND);
    assert_true(world_due(w));
    assert_true(world_make(w, ""));
    assert_int_equal(roster_ready(w->roster, TT_PEER_LEARNER), 2);
    world_end(w);
}

/*  Nor one that is about to get them: it would read old ones while it is left out. */
static void test_a_restarted_coordinator_keeps_a_joiner_without_an_aggregator(void **state)
{
    (void)state;
    world_t *w = world_new(8, 8, 1, 2, 1);
    peer_t *peer = NULL;
    s_continue(w, true);
    world_hello(w, TT_PEER_COLLECTOR, 0, 1);
    assert_ok(world_try_hello(w, TT_PEER_LEARNER, 1, 101, (knows_t){true, 3, 5, 17, 2, 1}, &peer));
    assert_ok(world_try_hello(w, TT_PEER_LEARNER, 0, 100, (knows_t){false, 3, 5, 17, 2, 2}, &peer));
    tt_clock_turn(&w->clock, 5 * SECOND);
    assert_true(world_make(w, ""));
    assert_int_equal(peer->state, PEER_ACTIVE);
    assert_int_equal(peer->rank, 1);
    world_end(w);
}

static void test_a_restarted_coordinator_waits_for_those_it_knew(void **state)
{
    (void)state;
    world_t *w = world_new(8, 8, 1, 2, 1);
    peer_t *peer = NULL;
    s_continue(w, true);
    const int64_t until = tt_now_ns(&w->clock) + 5 * SECOND;
    world_hello(w, TT_PEER_COLLECTOR, 0, 1);
    world_hello(w, TT_PEER_AGGREGATOR, 0, 2);
    tt_clock_turn(&w->clock, SECOND);
    assert_ok(world_try_hello(w, TT_PEER_LEARNER, 0, 100, (knows_t){true, 3, 5, 0, 0, 0}, &peer));
    assert_true(roster_due_ns(w->roster) == until);
    assert_true(roster_goes_on(w->roster));
    assert_ok(world_try_hello(w, TT_PEER_LEARNER, 1, 101, (knows_t){true, 3, 5, 0, 0, 0}, &peer));
    assert_true(world_due(w));
    assert_true(
        roster_goes_on(w->roster)); /* all are here: a stop that comes before the roster is for their rank 0, too */
    assert_true(world_make(w, ""));
    assert_false(roster_goes_on(w->roster));
    assert_int_equal(roster_rank0(w->roster)->instance, 101); /* ranks as they were, not by number */
    assert_int_equal(roster_era(w->roster), 3);
    assert_int_equal(roster_epoch(w->roster), 18);
    assert_int_equal(roster_generation(w->roster), 6);
    assert_int_equal(roster_rolled_back(w->roster), 2);
    world_end(w);
}

static void test_it_waits_no_longer_than_a_lease(void **state)
{
    (void)state;
    world_t *w = world_new(8, 8, 2, 1, 0);
    s_continue(w, true);
    world_hello(w, TT_PEER_COLLECTOR, 0, 77);
    world_hello(w, TT_PEER_LEARNER, 0, 78);
    tt_clock_turn(&w->clock, 5 * SECOND);
    assert_false(roster_goes_on(w->roster));
    assert_true(world_due(w));
    assert_true(world_make(w, "checkpoints/3.safetensors"));
    assert_int_equal(roster_era(w->roster), 4);
    assert_int_equal(roster_rolled_back(w->roster), 3);
    world_end(w);
}

static void test_a_resumed_run_counts_on_and_waits_for_nobody(void **state)
{
    (void)state;
    world_t *w = world_new(8, 8, 1, 1, 0);
    peer_t *peer = NULL;
    s_continue(w, false);
    world_hello(w, TT_PEER_COLLECTOR, 0, 77);
    assert_int_equal(world_try_hello(w, TT_PEER_LEARNER, 0, 78, (knows_t){true, 3, 5, 0, 0, 0}, &peer), TT_DENIED);
    world_hello(w, TT_PEER_LEARNER, 0, 78);
    assert_false(roster_goes_on(w->roster));
    assert_true(world_due(w));
    assert_true(world_make(w, ""));
    assert_int_equal(roster_era(w->roster), 4);
    assert_int_equal(roster_epoch(w->roster), 18);
    world_end(w);
}

/*  A run whose era 3 was to begin from a snapshot when its coordinator was killed: rank 0 is learner/0, process 100. */
static world_t *s_world_beginning(void)
{
    static const roster_past_member_t members[] = {{TT_PEER_LEARNER, 0, 100, 0}, {TT_PEER_COLLECTOR, 0, 1, 0}};
    const roster_past_t past = {.era = 3,
        .epoch = 17,
        .generation = 5,
        .fresh = true,
        .rolled_back = 2,
        .went_on = true,
        .restore = "checkpoints/7.safetensors",
        .members = members,
        .member_count = TT_COUNT(members)};
    world_t *w = world_new(8, 8, 1, 1, 0);
    roster_continue(w->roster, &past);
    world_hello(w, TT_PEER_COLLECTOR, 0, 1);
    return w;
}

static void test_an_era_that_was_beginning_is_told_again(void **state)
{
    (void)state;
    world_t *w = s_world_beginning();
    peer_t *peer = NULL;
    tt_msg_ROSTER_t m;
    assert_ok(world_try_hello(w, TT_PEER_LEARNER, 0, 100, (knows_t){false, 3, 5, 17, 1, 1}, &peer));
    assert_true(world_due(w));
    assert_true(world_make(w, "checkpoints/8.safetensors"));
    roster_message(w->roster, &m);
    assert_int_equal(m.era, 3);
    assert_int_equal(m.epoch, 18);
    assert_true(m.fresh);
    assert_string_equal(m.restore, "checkpoints/7.safetensors");
    assert_int_equal(roster_rolled_back(w->roster), 2);
    world_ended(w, TT_PEER_LEARNER, 0, 0); /* nobody has held weights of it: another era takes nothing away */
    world_hello(w, TT_PEER_LEARNER, 0, 200);
    assert_true(world_publish(w, "checkpoints/8.safetensors"));
    assert_int_equal(roster_era(w->roster), 4);
    assert_int_equal(roster_rolled_back(w->roster), 2);
    world_end(w);
}

/*  Another process: the one before it may have held weights of that era. */
static void test_an_era_whose_rank_0_is_gone_may_have_begun(void **state)
{
    (void)state;
    world_t *w = s_world_beginning();
    tt_msg_ROSTER_t m;
    world_hello(w, TT_PEER_LEARNER, 0, 200);
    assert_true(world_due(w));
    assert_true(world_make(w, "checkpoints/8.safetensors"));
    roster_message(w->roster, &m);
    assert_int_equal(m.era, 4);
    assert_string_equal(m.restore, "checkpoints/8.safetensors");
    assert_int_equal(roster_rolled_back(w->roster), 3);
    world_end(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_members_that_were_under_way_are_taken_over),
        cmocka_unit_test(test_weights_of_an_older_generation_are_not_taken_over),
        cmocka_unit_test(test_a_joiner_of_an_older_generation_is_not_taken_over),
        cmocka_unit_test(test_when_nobody_holds_the_weights_a_new_era_begins),
        cmocka_unit_test(test_members_of_a_run_under_way_are_expected_for_a_while),
        cmocka_unit_test(test_numbers_that_cannot_be_are_not_taken_over),
        cmocka_unit_test(test_a_restarted_coordinator_does_not_wait_for_those_whose_number_is_taken),
        cmocka_unit_test(test_a_restarted_coordinator_keeps_all_holders_without_an_aggregator),
        cmocka_unit_test(test_a_restarted_coordinator_keeps_a_joiner_without_an_aggregator),
        cmocka_unit_test(test_a_restarted_coordinator_waits_for_those_it_knew),
        cmocka_unit_test(test_it_waits_no_longer_than_a_lease),
        cmocka_unit_test(test_a_resumed_run_counts_on_and_waits_for_nobody),
        cmocka_unit_test(test_an_era_that_was_beginning_is_told_again),
        cmocka_unit_test(test_an_era_whose_rank_0_is_gone_may_have_begun),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
