/*  roster and peer: every cell of the table, and the rules of docs/internals/protocol.md. */
#include <string.h>
#include "common/base/log.h"
#include "tests/coordinator/roster_world.h"
#include "tests/test.h"

/* ---- the table ----------------------------------------------------------------------------------------------------- */

static void test_every_cell_has_an_action_and_a_state(void **state)
{
    (void)state;
    for (peer_state_t s = PEER_NEW; s < PEER_STATES; s++) {
        assert_non_null(peer_state_name(s));
        for (peer_event_t e = PEER_HELLO; e < PEER_EVENTS; e++) {
            peer_state_t next = PEER_STATES;
            assert_true(peer_cell(s, e, &next));
            assert_true(next < PEER_STATES);
            if (s == PEER_GONE || e == PEER_DRAINED || e == PEER_ENDED || e == PEER_SILENT)
                assert_int_equal(next, PEER_GONE);
            if (s == PEER_DRAINING)
                assert_true(next == PEER_DRAINING || next == PEER_GONE); /* no way back */
            if (e == PEER_HEARD)
                assert_int_equal(next, s);
            if (next == PEER_ACTIVE)
                assert_true(e == PEER_PLACED || s == PEER_ACTIVE);
        }
    }
}

/* ---- the first roster ---------------------------------------------------------------------------------------------- */

static void test_a_job_starts_with_one_roster(void **state)
{
    (void)state;
    world_t *w = world_new(5, 2, 2, 2, 1);
    world_hello(w, TT_PEER_LEARNER, 1, 11);
    world_hello(w, TT_PEER_COLLECTOR, 1, 21);
    world_hello(w, TT_PEER_AGGREGATOR, 0, 31);
    world_hello(w, TT_PEER_LEARNER, 0, 10);
    assert_false(world_due(w));
    world_hello(w, TT_PEER_COLLECTOR, 0, 20);
    assert_true(world_due(w)); /* at once: nothing more is expected */
    assert_true(world_make(w, ""));
    tt_msg_ROSTER_t m;
    roster_message(w->roster, &m);
    assert_int_equal(m.era, 1);
    assert_int_equal(m.epoch, 1);
    assert_int_equal(m.generation, 1);
    assert_true(m.fresh);
    assert_int_equal(m.members_count, 5);
    assert_int_equal(m.members[0].role, TT_PEER_LEARNER);
    assert_int_equal(m.members[0].index, 0);
    assert_int_equal(m.members[0].rank, 0);
    assert_int_equal(m.members[1].rank, 1);
    assert_int_equal(m.members[2].env_lo, 0);
    assert_int_equal(m.members[2].env_count, 2);
    assert_int_equal(m.members[3].env_lo, 2);
    assert_int_equal(m.members[3].env_count, 3);
    assert_int_equal(m.members[4].role, TT_PEER_AGGREGATOR);
    assert_int_equal(roster_rolled_back(w->roster), 0);
    assert_true(roster_due_ns(w->roster) == INT64_MAX);
    world_end(w);
}

static void test_the_first_roster_waits_a_second_for_the_rest(void **state)
{
    (void)state;
    world_t *w = world_new(5, 2, 2, 2, 1);
    world_hello(w, TT_PEER_COLLECTOR, 1, 21);
    assert_true(roster_due_ns(w->roster) == INT64_MAX);
    tt_clock_turn(&w->clock, 10 * MS);
    world_hello(w, TT_PEER_LEARNER, 1, 11);
    assert_true(roster_due_ns(w->roster) == tt_now_ns(&w->clock) + SECOND);
    tt_clock_turn(&w->clock, SECOND);
    assert_true(world_due(w));
    assert_true(world_make(w, ""));
    assert_int_equal(roster_ready(w->roster, TT_PEER_LEARNER), 1);
    world_end(w);
}

/* ---- joining and leaving ------------------------------------------------------------------------------------------- */

static void test_joins_are_coalesced(void **state)
{
    (void)state;
    world_t *w = world_running(1);
    const uint64_t epoch = roster_epoch(w->roster), generation = roster_generation(w->roster);
    world_hello(w, TT_PEER_COLLECTOR, -1, 31);
    tt_clock_turn(&w->clock, MS);
    world_hello(w, TT_PEER_COLLECTOR, -1, 32);
    assert_false(world_due(w));
    tt_clock_turn(&w->clock, 2 * MS);
    assert_true(world_due(w));
    assert_true(world_make(w, ""));
    assert_int_equal(roster_epoch(w->roster), epoch + 1);
    assert_int_equal(roster_generation(w->roster), generation); /* no learner came or went */
    assert_false(roster_fresh(w->roster));
    assert_int_equal(roster_ready(w->roster, TT_PEER_COLLECTOR), 3);
    world_end(w);
}

static void test_a_silent_member_leaves_after_a_lease(void **state)
{
    (void)state;
    world_t *w = world_running(2);
    const uint64_t generation = roster_generation(w->roster);
    tt_clock_turn(&w->clock, 4 * SECOND);
    for (size_t i = 0; i < roster_peer_count(w->roster); i++)
        if (roster_peer(w->roster, i)->instance != 100)
            roster_heard(w->roster, roster_peer(w->roster, i));
    assert_true(roster_lease_due_ns(w->roster) == roster_holder(w->roster, TT_PEER_LEARNER, 0)->seen_ns + 5 * SECOND);
    tt_clock_turn(&w->clock, SECOND);
    roster_tick(w->roster);
    assert_null(roster_holder(w->roster, TT_PEER_LEARNER, 0));
    assert_true(world_publish(w, ""));
    assert_int_equal(roster_generation(w->roster), generation + 1);
    assert_int_equal(roster_era(w->roster), 1); /* the other one holds the weights */
    assert_int_equal(roster_rank0(w->roster)->instance, 101);
    world_end(w);
}

/*  A coordinator that was stopped finds everybody silent, though their words lie unread. */
static void test_who_looks_late_blames_nobody_yet(void **state)
{
    (void)state;
    world_t *w = world_running(2);
    tt_clock_turn(&w->clock, 8 * SECOND);
    roster_tick(w->roster);
    assert_non_null(roster_holder(w->roster, TT_PEER_LEARNER, 0));
    roster_heard(w->roster, roster_holder(w->roster, TT_PEER_LEARNER, 0));
    tt_clock_turn(&w->clock, roster_lease_due_ns(w->roster) - tt_now_ns(&w->clock));
    roster_tick(w->roster); /* in time: silence counts again */
    assert_non_null(roster_holder(w->roster, TT_PEER_LEARNER, 0));
    assert_null(roster_holder(w->roster, TT_PEER_LEARNER, 1));
    world_end(w);
}

/*  Gone and back between two rosters: none is announced, but it must be a member again, else nobody listens to it. */
static void test_one_that_left_and_came_back_in_time_has_its_place_again(void **state)
{
    (void)state;
    world_t *w = world_running(2);
    const uint64_t epoch = roster_epoch(w->roster);
    roster_leave(w->roster, roster_holder(w->roster, TT_PEER_LEARNER, 0), PEER_SILENT, "the test");
    roster_leave(w->roster, roster_holder(w->roster, TT_PEER_COLLECTOR, 0), PEER_SILENT, "the test");
    peer_t *learner = NULL, *collector = world_hello(w, TT_PEER_COLLECTOR, 0, 1);
    assert_ok(world_try_hello(
        w, TT_PEER_LEARNER, 0, 100, (knows_t){true, 1, roster_generation(w->roster), 0, 0, 0}, &learner));
    assert_false(world_publish(w, ""));
    assert_int_equal(roster_epoch(w->roster), epoch);
    assert_int_equal(learner->state, PEER_ACTIVE);
    assert_int_equal(learner->rank, 0);
    assert_ptr_equal(roster_rank0(w->roster), learner);
    assert_int_equal(collector->state, PEER_ACTIVE);
    assert_int_equal(collector->env_count, 8);
    world_end(w);
}

static void test_an_end_seen_by_the_controller_counts_for_that_process_only(void **state)
{
    (void)state;
    world_t *w = world_running(1);
    world_ended(w, TT_PEER_COLLECTOR, 0, 999);
    assert_non_null(roster_holder(w->roster, TT_PEER_COLLECTOR, 0));
    world_ended(w, TT_PEER_COLLECTOR, 0, 1);
    assert_null(roster_holder(w->roster, TT_PEER_COLLECTOR, 0));
    assert_true(world_publish(w, ""));
    assert_int_equal(roster_ready(w->roster, TT_PEER_COLLECTOR), 0);
    world_end(w);
}

static void test_a_number_in_use_is_refused_and_minus_one_gets_a_free_one(void **state)
{
    (void)state;
    world_t *w = world_running(1);
    peer_t *peer = NULL;
    const knows_t nothing = {false, 0, 0, 0, 0, 0};
    assert_int_equal(world_try_hello(w, TT_PEER_COLLECTOR, 0, 77, nothing, &peer), TT_DENIED);
    assert_non_null(strstr(tt_err_text(), "collector/0 is in use by process 1 on here"));
    assert_int_equal(world_hello(w, TT_PEER_COLLECTOR, -1, 78)->index, ROSTER_BY_HAND);
    assert_int_equal(world_hello(w, TT_PEER_COLLECTOR, -1, 79)->index, ROSTER_BY_HAND + 1);
    assert_int_equal(world_try_hello(w, TT_PEER_CLIENT, -1, 80, nothing, &peer), TT_DENIED);
    world_end(w);
}

static void test_a_repeated_hello_gets_the_roster_again(void **state)
{
    (void)state;
    world_t *w = world_running(1);
    peer_t *peer = roster_holder(w->roster, TT_PEER_COLLECTOR, 0);
    peer->told = roster_epoch(w->roster);
    assert_ptr_equal(world_hello(w, TT_PEER_COLLECTOR, 0, 1), peer);
    assert_int_equal(peer->told, 0);
    assert_int_equal(peer->state, PEER_ACTIVE);
    assert_true(roster_due_ns(w->roster) == INT64_MAX);
    world_end(w);
}

static void test_more_collectors_than_envs_wait_as_spares(void **state)
{
    (void)state;
    world_t *w = world_new(2, 1, 2, 1, 0);
    world_hello(w, TT_PEER_LEARNER, 0, 100);
    world_hello(w, TT_PEER_COLLECTOR, 0, 1);
    world_hello(w, TT_PEER_COLLECTOR, 1, 2);
    assert_true(world_make(w, ""));
    peer_t *spare = world_hello(w, TT_PEER_COLLECTOR, -1, 3);
    assert_false(world_publish(w, ""));
    assert_int_equal(spare->state, PEER_WAITING);
    assert_int_equal(roster_spares(w->roster, TT_PEER_COLLECTOR), 1);
    world_ended(w, TT_PEER_COLLECTOR, 0, 0);
    assert_true(world_publish(w, ""));
    assert_int_equal(spare->state, PEER_ACTIVE);
    assert_int_equal(spare->env_lo, 1);
    assert_int_equal(roster_spares(w->roster, TT_PEER_COLLECTOR), 0);
    world_end(w);
}

static char s_said[4096]; /* lines that were logged */

static void s_on_line(void *ctx, const char *line)
{
    (void)ctx;
    strncat(s_said, line, sizeof s_said - strlen(s_said) - 1);
}

/*  What is logged with the next roster; changes: does one come of it? */
static const char *s_publish_says(world_t *w, bool changes)
{
    *s_said = '\0';
    tt_log_sink(s_on_line, NULL);
    const bool came = world_publish(w, "");
    tt_log_sink(NULL, NULL);
    assert_true(came == changes);
    return s_said;
}

/*  It is said when one more comes, and not with each roster. */
static void test_more_learners_than_shards_wait_as_spares(void **state)
{
    (void)state;
    world_t *w = world_running(8); /* of 8 shards */
    peer_t *spare = world_hello(w, TT_PEER_LEARNER, -1, 300);
    assert_non_null(strstr(s_publish_says(w, false),
        ": 9 learners are here, but learner.shards is 8: 1 will do nothing until others leave\n"));
    assert_int_equal(spare->state, PEER_WAITING);
    assert_int_equal(roster_spares(w->roster, TT_PEER_LEARNER), 1);
    assert_int_equal(roster_spares(w->roster, TT_PEER_AGGREGATOR), 0);
    world_hello(w, TT_PEER_COLLECTOR, -1, 42);
    assert_null(strstr(s_publish_says(w, true), "will do nothing"));
    world_hello(w, TT_PEER_LEARNER, -1, 301);
    world_hello(w, TT_PEER_LEARNER, -1, 302);
    assert_non_null(strstr(s_publish_says(w, false),
        ": 11 learners are here, but learner.shards is 8: 3 will do nothing until others leave\n"));
    world_end(w);
}

/* ---- who holds the weights ----------------------------------------------------------------------------------------- */

static void test_losing_the_only_learner_rolls_back(void **state)
{
    (void)state;
    world_t *w = world_running(1);
    tt_msg_ROSTER_t m;
    world_ended(w, TT_PEER_LEARNER, 0, 0);
    assert_true(world_publish(w, ""));
    assert_int_equal(roster_era(w->roster), 1); /* nobody there who could begin an era */
    world_hello(w, TT_PEER_LEARNER, 0, 200);
    assert_true(world_publish(w, "checkpoints/7.safetensors"));
    roster_message(w->roster, &m);
    assert_int_equal(m.era, 2);
    assert_true(m.fresh);
    assert_string_equal(m.restore, "checkpoints/7.safetensors");
    assert_int_equal(roster_rolled_back(w->roster), 1);
    world_hello(w, TT_PEER_COLLECTOR, -1, 41); /* before rank 0 has begun: the same era, told again */
    assert_true(world_publish(w, "checkpoints/8.safetensors"));
    roster_message(w->roster, &m);
    assert_int_equal(m.era, 2);
    assert_true(m.fresh);
    assert_string_equal(m.restore, "checkpoints/7.safetensors");
    world_holds(w, roster_holder(w->roster, TT_PEER_LEARNER, 0), true);
    world_hello(w, TT_PEER_COLLECTOR, -1, 42);
    assert_true(world_publish(w, ""));
    assert_int_equal(roster_era(w->roster), 2);
    assert_false(roster_fresh(w->roster));
    world_end(w);
}

/*  Its replay is damaged: another snapshot, in another era, and no roll-back is counted. Once the era has begun nothing is asked again. */
static void test_rank_0_cannot_begin_from_it(void **state)
{
    (void)state;
    world_t *w = world_running(1);
    tt_msg_ROSTER_t m;
    world_ended(w, TT_PEER_LEARNER, 0, 0);
    world_publish(w, "");
    world_hello(w, TT_PEER_LEARNER, 0, 200);
    assert_true(world_publish(w, "checkpoints/7.safetensors"));
    roster_begin_again(w->roster);
    assert_true(world_publish(w, "checkpoints/6.safetensors"));
    roster_message(w->roster, &m);
    assert_int_equal(m.era, 3);
    assert_true(m.fresh);
    assert_string_equal(m.restore, "checkpoints/6.safetensors");
    assert_int_equal(roster_rolled_back(w->roster), 1);
    world_holds(w, roster_holder(w->roster, TT_PEER_LEARNER, 0), true);
    world_hello(w, TT_PEER_COLLECTOR, -1, 42);
    assert_true(world_publish(w, ""));
    roster_begin_again(w->roster);
    assert_false(world_make(w, "checkpoints/5.safetensors"));
    assert_int_equal(roster_era(w->roster), 3);
    world_end(w);
}

static void test_a_rank_0_that_dies_before_it_began_costs_nothing(void **state)
{
    (void)state;
    world_t *w = world_new(4, 2, 1, 1, 0);
    world_hello(w, TT_PEER_COLLECTOR, 0, 1);
    world_hello(w, TT_PEER_LEARNER, 0, 100);
    assert_true(world_make(w, ""));
    world_ended(w, TT_PEER_LEARNER, 0, 0);
    world_hello(w, TT_PEER_LEARNER, 0, 101);
    assert_true(world_publish(w, ""));
    assert_int_equal(roster_era(w->roster), 2);
    assert_int_equal(roster_rolled_back(w->roster), 0);
    world_end(w);
}

static void test_beats_of_another_era_do_not_count(void **state)
{
    (void)state;
    world_t *w = world_running(1);
    peer_t *peer = roster_holder(w->roster, TT_PEER_LEARNER, 0);
    const tt_msg_HEARTBEAT_t beat = TT_MSG(HEARTBEAT, .holds = true, .era = 7);
    roster_beat(w->roster, peer, &beat);
    assert_false(peer->holds);
    world_end(w);
}

static void test_weights_of_a_roster_that_is_gone_are_refused(void **state)
{
    (void)state;
    world_t *w = world_running(2);
    peer_t *peer = NULL;
    const uint64_t generation = roster_generation(w->roster);
    world_ended(w, TT_PEER_LEARNER, 1, 0);
    assert_true(world_publish(w, ""));
    assert_int_equal(
        world_try_hello(w, TT_PEER_LEARNER, 1, 101, (knows_t){true, 1, generation, 0, 0, 0}, &peer), TT_DENIED);
    assert_int_equal(world_try_hello(w, TT_PEER_LEARNER, 1, 101, (knows_t){true, 2, 1, 0, 0, 0}, &peer), TT_DENIED);
    assert_int_equal(world_try_hello(w, TT_PEER_LEARNER, 1, 102, (knows_t){false, 0, 0, 0, 0, 0}, &peer), TT_OK);
    world_end(w);
}

/*  The state of a generation that has gone on without it may have come to it, unread: it would say `holds` later. */
static void test_a_learner_that_was_left_out_is_refused_without_weights_too(void **state)
{
    (void)state;
    world_t *w = world_running(2);
    peer_t *peer = roster_holder(w->roster, TT_PEER_LEARNER, 1);
    const uint64_t then = roster_generation(w->roster), epoch = roster_epoch(w->roster);
    world_holds(w, peer, false);
    const knows_t late = {false, 1, then, epoch, 2, 2};
    roster_leave(w->roster, peer, PEER_SILENT, "the test");
    assert_ok(world_try_hello(w, TT_PEER_LEARNER, 1, 101, late, &peer)); /* of the newest roster still */
    roster_leave(w->roster, peer, PEER_SILENT, "the test");
    assert_true(world_publish(w, ""));
    assert_int_equal(roster_generation(w->roster), then + 1);
    assert_int_equal(world_try_hello(w, TT_PEER_LEARNER, 1, 101, late, &peer), TT_DENIED);
    assert_non_null(strstr(tt_err_text(), "which is gone"));
    assert_ok(world_try_hello(w, TT_PEER_LEARNER, 1, 102, (knows_t){false, 1, then, epoch, 2, 0}, &peer)); /* outside */
    assert_ok(world_try_hello(w, TT_PEER_LEARNER, 2, 103, (knows_t){false, 0, 0, 0, 0, 0}, &peer));
    world_ended(w, TT_PEER_LEARNER, 0, 0);
    assert_true(world_publish(w, ""));
    assert_int_equal(roster_era(w->roster), 2); /* weights of era 1 count no more, whoever is given them */
    assert_ok(world_try_hello(w, TT_PEER_LEARNER, 3, 104, (knows_t){false, 1, then, epoch, 2, 2}, &peer));
    world_end(w);
}

static void test_numbers_from_the_future_are_refused(void **state)
{
    (void)state;
    world_t *w = world_running(1);
    peer_t *peer = NULL;
    assert_int_equal(world_try_hello(w, TT_PEER_LEARNER, 1, 300, (knows_t){false, 9, 1, 0, 0, 0}, &peer), TT_DENIED);
    assert_non_null(strstr(tt_err_text(), "journal"));
    world_end(w);
}

/* ---- scaling ------------------------------------------------------------------------------------------------------- */

static void test_victims_have_the_highest_numbers(void **state)
{
    (void)state;
    world_t *w = world_running(1);
    roster_desire(w->roster, TT_PEER_COLLECTOR, 4);
    for (int i = 1; i < 4; i++)
        world_hello(w, TT_PEER_COLLECTOR, i, 30 + (uint64_t)i);
    peer_t *by_hand = world_hello(w, TT_PEER_COLLECTOR, -1, 40);
    assert_true(world_publish(w, ""));
    roster_desire(w->roster, TT_PEER_COLLECTOR, 2);
    assert_true(world_publish(w, ""));
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(roster_holder(w->roster, TT_PEER_COLLECTOR, i)->state, i < 2 ? PEER_ACTIVE : PEER_DRAINING);
    assert_int_equal(by_hand->state, PEER_ACTIVE);
    assert_int_equal(roster_ready(w->roster, TT_PEER_COLLECTOR), 3);
    world_end(w);
}

static void test_the_only_holder_stays_until_another_one_holds(void **state)
{
    (void)state;
    world_t *w = world_running(2);
    world_ended(w, TT_PEER_LEARNER, 0, 0);
    assert_true(world_publish(w, ""));
    roster_desire(w->roster, TT_PEER_LEARNER, 1);
    world_publish(w, "");
    assert_int_equal(roster_holder(w->roster, TT_PEER_LEARNER, 1)->state, PEER_ACTIVE);
    peer_t *joiner = world_hello(w, TT_PEER_LEARNER, 0, 200);
    assert_true(world_publish(w, ""));
    assert_int_equal(joiner->rank, 1);
    assert_int_equal(roster_holder(w->roster, TT_PEER_LEARNER, 1)->state, PEER_ACTIVE);
    world_holds(w, joiner, true);
    assert_true(world_publish(w, ""));
    assert_int_equal(roster_holder(w->roster, TT_PEER_LEARNER, 1)->state, PEER_DRAINING);
    assert_ptr_equal(roster_rank0(w->roster), joiner);
    assert_int_equal(roster_era(w->roster), 1);
    world_end(w);
}

static void test_one_that_asks_goes_when_the_weights_are_safe(void **state)
{
    (void)state;
    world_t *w = world_running(2);
    peer_t *first = roster_holder(w->roster, TT_PEER_LEARNER, 0),
           *second = roster_holder(w->roster, TT_PEER_LEARNER, 1);
    world_holds(w, second, false);
    roster_asks(w->roster, first);
    world_publish(w, "");
    assert_int_equal(first->state, PEER_ACTIVE);
    world_holds(w, second, true);
    assert_true(world_publish(w, ""));
    assert_int_equal(first->state, PEER_DRAINING);
    assert_ptr_equal(roster_rank0(w->roster), second);
    assert_int_equal(roster_era(w->roster), 1);
    world_end(w);
}

/* ---- processes that do not get on ---------------------------------------------------------------------------------- */

static void test_the_one_stuck_longest_is_named(void **state)
{
    (void)state;
    world_t *w = world_running(1);
    char waiting[] = "waiting for CREDIT", idle[] = "idle";
    peer_t *collector = roster_holder(w->roster, TT_PEER_COLLECTOR, 0);
    tt_clock_turn(&w->clock, SECOND);
    const tt_msg_HEARTBEAT_t on = TT_MSG(HEARTBEAT, .progress = 1, .state = waiting);
    roster_beat(w->roster, collector, &on);
    tt_clock_turn(&w->clock, 2 * SECOND);
    assert_null(roster_stalled(w->roster, 4 * SECOND));
    assert_int_equal(roster_stalled(w->roster, 2 * SECOND)->role, TT_PEER_LEARNER);
    const tt_msg_HEARTBEAT_t rest = TT_MSG(HEARTBEAT, .state = idle, .holds = true, .era = 1);
    roster_beat(w->roster, roster_holder(w->roster, TT_PEER_LEARNER, 0), &rest);
    assert_ptr_equal(roster_stalled(w->roster, 2 * SECOND), collector);
    roster_beat(w->roster, collector, &on); /* a word, but no progress */
    assert_ptr_equal(roster_stalled(w->roster, 2 * SECOND), collector);
    world_end(w);
}

/*  One of each; `other` waits for `one`, who gets on for five seconds, and then stands still: it is the one. */
static void check_waiting_for(tt_peer_role_t role, const char *doing, tt_peer_role_t others, const char *waiting)
{
    world_t *w = world_running(1);
    peer_t *one = roster_holder(w->roster, role, 0), *other = roster_holder(w->roster, others, 0);
    tt_msg_HEARTBEAT_t on = TT_MSG(HEARTBEAT, .state = (char *)(uintptr_t)doing, .holds = true, .era = 1);
    const tt_msg_HEARTBEAT_t wait = TT_MSG(HEARTBEAT, .state = (char *)(uintptr_t)waiting, .holds = true, .era = 1);
    for (on.progress = 1; on.progress < 5; on.progress++) {
        tt_clock_turn(&w->clock, SECOND);
        roster_beat(w->roster, one, &on);
        roster_beat(w->roster, other, &wait);
        assert_null(roster_stalled(w->roster, 2 * SECOND));
    }
    tt_clock_turn(&w->clock, 2 * SECOND);
    on.progress--;
    roster_beat(w->roster, one, &on);
    assert_ptr_equal(roster_stalled(w->roster, 2 * SECOND), one);
    on.state = wait.state;
    roster_beat(w->roster, one, &on);
    assert_ptr_equal(roster_stalled(w->roster, 2 * SECOND), other); /* both wait now, and it has the longest */
    world_end(w);
}

static void test_nobody_is_stuck_behind_one_that_gets_on(void **state)
{
    (void)state;
    check_waiting_for(TT_PEER_LEARNER, "evaluating version 4 (1 of 10 episodes have ended)", TT_PEER_COLLECTOR,
        "waiting for credit for batch 5 from learner/0");
    check_waiting_for(TT_PEER_COLLECTOR, "collecting batch 5 with version 5", TT_PEER_LEARNER,
        "waiting for batch 5: have 0 of 64 envs");
    check_waiting_for(
        TT_PEER_LEARNER, "update 5: 16 steps", TT_PEER_COLLECTOR, "waiting for credit for batch 6 from learner/0");
}

/* ---- learners that warm up --------------------------------------------------------------------------------------------- */

/*  One that lacks the replay makes nobody wait: no generation has it until it says that it is warm, in this era. */
static void test_a_joiner_warms_up_first(void **state)
{
    (void)state;
    world_t *w = world_running(1);
    world_warms(w);
    roster_desire(w->roster, TT_PEER_AGGREGATOR, 1);
    world_hello(w, TT_PEER_AGGREGATOR, 0, 2);
    world_publish(w, NULL);
    const uint64_t generation = roster_generation(w->roster), epoch = roster_epoch(w->roster);
    roster_desire(w->roster, TT_PEER_LEARNER, 3);
    peer_t *one = world_hello(w, TT_PEER_LEARNER, 1, 201), *two = world_hello(w, TT_PEER_LEARNER, 2, 202);
    assert_false(world_publish(w, NULL));
    assert_int_equal(one->state, PEER_WAITING);
    assert_int_equal(roster_warming(w->roster, TT_PEER_LEARNER), 2);
    assert_int_equal(roster_warming(w->roster, TT_PEER_COLLECTOR), 0);
    assert_int_equal(roster_spares(w->roster, TT_PEER_LEARNER), 0);
    world_warm(w, two, true, roster_era(w->roster) + 1); /* of another era */
    assert_int_equal(roster_warming(w->roster, TT_PEER_LEARNER), 2);
    world_warm(w, two, true, roster_era(w->roster));
    assert_true(world_publish(w, NULL));
    assert_int_equal(two->state, PEER_ACTIVE);
    assert_int_equal(two->rank, 1);
    assert_int_equal(one->state, PEER_WAITING);
    assert_int_equal(roster_warming(w->roster, TT_PEER_LEARNER), 1);
    assert_int_equal(roster_generation(w->roster), generation + 1);
    assert_int_equal(roster_epoch(w->roster), epoch + 1);
    world_warm(w, two, false, roster_era(w->roster)); /* it has a place now, and keeps it */
    world_holds(w, two, true);
    assert_false(world_publish(w, NULL));
    assert_int_equal(two->state, PEER_ACTIVE);
    world_end(w);
}

/*  A collector that makes its envs makes nobody wait either: those that play have them all until it says that it is warm. */
static void test_a_collector_warms_up_first(void **state)
{
    (void)state;
    world_t *w = world_running(1);
    world_collectors_warm(w);
    const uint64_t epoch = roster_epoch(w->roster);
    roster_desire(w->roster, TT_PEER_COLLECTOR, 2);
    peer_t *first = roster_peer(w->roster, 0), *joiner = world_hello(w, TT_PEER_COLLECTOR, 1, 301);
    for (size_t i = 0; first->role != TT_PEER_COLLECTOR; i++)
        first = roster_peer(w->roster, i);
    assert_false(world_publish(w, NULL));
    assert_int_equal(joiner->state, PEER_WAITING);
    assert_int_equal(roster_warming(w->roster, TT_PEER_COLLECTOR), 1);
    assert_int_equal(roster_warming(w->roster, TT_PEER_LEARNER), 0);
    assert_int_equal(roster_epoch(w->roster), epoch);
    world_warm(w, joiner, true, 0); /* of whatever era */
    assert_true(world_publish(w, NULL));
    assert_int_equal(joiner->state, PEER_ACTIVE);
    assert_int_equal(roster_warming(w->roster, TT_PEER_COLLECTOR), 0);
    assert_int_equal(joiner->env_lo, first->env_count);
    world_end(w);
}

/*  Nobody plays: a cold one is better than none. */
static void test_a_cold_collector_that_is_alone(void **state)
{
    (void)state;
    world_t *w = world_running(1);
    world_collectors_warm(w);
    roster_desire(w->roster, TT_PEER_COLLECTOR, 2);
    peer_t *joiner = world_hello(w, TT_PEER_COLLECTOR, 1, 301);
    assert_false(world_publish(w, NULL));
    world_ended(w, TT_PEER_COLLECTOR, 0, 0);
    assert_true(world_publish(w, NULL));
    assert_int_equal(joiner->state, PEER_ACTIVE);
    assert_int_equal(joiner->env_lo, 0);
    peer_t *again = world_hello(w, TT_PEER_COLLECTOR, 0, 302);
    assert_false(world_publish(w, NULL));
    assert_int_equal(again->state, PEER_WAITING);
    world_end(w);
}

/*  It dies, or is scaled away: the others do not hear of it. */
static void test_a_warming_learner_is_not_missed(void **state)
{
    (void)state;
    world_t *w = world_running(2);
    world_warms(w);
    roster_desire(w->roster, TT_PEER_LEARNER, 3);
    world_hello(w, TT_PEER_LEARNER, 2, 202);
    assert_false(world_publish(w, NULL));
    const uint64_t epoch = roster_epoch(w->roster);
    world_ended(w, TT_PEER_LEARNER, 2, 0);
    assert_int_equal(roster_warming(w->roster, TT_PEER_LEARNER), 0);
    peer_t *again = world_hello(w, TT_PEER_LEARNER, 2, 203);
    roster_desire(w->roster, TT_PEER_LEARNER, 2);
    assert_false(world_publish(w, NULL));
    assert_int_equal(again->state, PEER_DRAINING);
    assert_int_equal(roster_epoch(w->roster), epoch);
    world_end(w);
}

/*  Nobody holds weights: an era begins with all who are there, warm or not. */
static void test_an_era_begins_with_the_warming(void **state)
{
    (void)state;
    world_t *w = world_running(1);
    world_warms(w);
    roster_desire(w->roster, TT_PEER_AGGREGATOR, 1);
    world_hello(w, TT_PEER_AGGREGATOR, 0, 2);
    world_publish(w, NULL);
    roster_desire(w->roster, TT_PEER_LEARNER, 2);
    peer_t *joiner = world_hello(w, TT_PEER_LEARNER, 1, 201);
    assert_false(world_publish(w, NULL));
    const uint32_t era = roster_era(w->roster);
    world_ended(w, TT_PEER_LEARNER, 0, 0);
    assert_true(world_publish(w, "snapshot"));
    assert_int_equal(roster_era(w->roster), era + 1);
    assert_true(roster_fresh(w->roster));
    assert_int_equal(joiner->state, PEER_ACTIVE);
    assert_int_equal(joiner->rank, 0);
    world_end(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_cell_has_an_action_and_a_state),
        cmocka_unit_test(test_a_job_starts_with_one_roster),
        cmocka_unit_test(test_the_first_roster_waits_a_second_for_the_rest),
        cmocka_unit_test(test_joins_are_coalesced),
        cmocka_unit_test(test_a_silent_member_leaves_after_a_lease),
        cmocka_unit_test(test_who_looks_late_blames_nobody_yet),
        cmocka_unit_test(test_one_that_left_and_came_back_in_time_has_its_place_again),
        cmocka_unit_test(test_an_end_seen_by_the_controller_counts_for_that_process_only),
        cmocka_unit_test(test_a_number_in_use_is_refused_and_minus_one_gets_a_free_one),
        cmocka_unit_test(test_a_repeated_hello_gets_the_roster_again),
        cmocka_unit_test(test_more_collectors_than_envs_wait_as_spares),
        cmocka_unit_test(test_more_learners_than_shards_wait_as_spares),
        cmocka_unit_test(test_a_joiner_warms_up_first),
        cmocka_unit_test(test_a_collector_warms_up_first),
        cmocka_unit_test(test_a_cold_collector_that_is_alone),
        cmocka_unit_test(test_a_warming_learner_is_not_missed),
        cmocka_unit_test(test_an_era_begins_with_the_warming),
        cmocka_unit_test(test_losing_the_only_learner_rolls_back),
        cmocka_unit_test(test_rank_0_cannot_begin_from_it),
        cmocka_unit_test(test_a_rank_0_that_dies_before_it_began_costs_nothing),
        cmocka_unit_test(test_beats_of_another_era_do_not_count),
        cmocka_unit_test(test_weights_of_a_roster_that_is_gone_are_refused),
        cmocka_unit_test(test_a_learner_that_was_left_out_is_refused_without_weights_too),
        cmocka_unit_test(test_numbers_from_the_future_are_refused),
        cmocka_unit_test(test_victims_have_the_highest_numbers),
        cmocka_unit_test(test_one_that_asks_goes_when_the_weights_are_safe),
        cmocka_unit_test(test_the_only_holder_stays_until_another_one_holds),
        cmocka_unit_test(test_the_one_stuck_longest_is_named),
        cmocka_unit_test(test_nobody_is_stuck_behind_one_that_gets_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
