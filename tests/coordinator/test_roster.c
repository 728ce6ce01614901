/*  roster and peer: every cell of the table, the rules of docs/internals/protocol.md, and random histories. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/log.h"
#include "common/base/rng.h"
#include "coordinator/roster.h"
#include "tests/test.h"

static const int64_t MS = 1000000, SECOND = 1000000000;

typedef struct {
    tt_clock_t clock;
    roster_t *roster;
} world_t;

static world_t *s_world(
    uint32_t num_envs, uint32_t shards, uint32_t collectors, uint32_t learners, uint32_t aggregators)
{
    world_t *w = calloc(1, sizeof *w);
    w->clock = tt_clock_fake(SECOND);
    const roster_cfg_t cfg = {.num_envs = num_envs,
        .shards = shards,
        .desired = {[TT_PEER_COLLECTOR] = collectors, [TT_PEER_LEARNER] = learners, [TT_PEER_AGGREGATOR] = aggregators},
        .lease_ns = 5 * SECOND,
        .first_wait_ns = SECOND,
        .coalesce_ns = 3 * MS};
    assert_ok(roster_new(&w->roster, &cfg, &w->clock));
    return w;
}

static void s_end(world_t *w)
{
    roster_destroy(&w->roster);
    free(w);
}

typedef struct {
    bool holds;
    uint32_t era;
    uint64_t generation, epoch;
    uint32_t learners, place;
} knows_t;

static tt_status_t s_try_hello(
    world_t *w, tt_peer_role_t role, int index, uint64_t instance, knows_t knows, peer_t **out)
{
    char identity[64], host[] = "here";
    snprintf(identity, sizeof identity, "%s/%d/%llx", tt_peer_role_name(role), index, (unsigned long long)instance);
    const tt_msg_HELLO_t hello = TT_MSG(HELLO, .wire = TT_WIRE_VERSION, .role = role, .index = index,
        .instance = instance, .pid = (uint32_t)instance, .host = host, .holds = knows.holds, .era = knows.era,
        .generation = knows.generation, .epoch = knows.epoch, .learners = knows.learners, .place = knows.place);
    return roster_hello(w->roster, identity, NULL, &hello, out);
}

static peer_t *s_hello(world_t *w, tt_peer_role_t role, int index, uint64_t instance)
{
    peer_t *peer = NULL;
    assert_ok(s_try_hello(w, role, index, instance, (knows_t){false, 0, 0, 0, 0, 0}, &peer));
    return peer;
}

static bool s_due(world_t *w)
{
    return roster_due_ns(w->roster) <= tt_now_ns(&w->clock);
}

/*  Let pass what later rosters wait for, and make the one that is due. */
static bool s_publish(world_t *w, const char *restore)
{
    tt_clock_turn(&w->clock, 3 * MS);
    assert_true(s_due(w));
    return roster_publish(w->roster, restore);
}

static void s_holds(world_t *w, peer_t *peer, bool holds)
{
    const tt_msg_HEARTBEAT_t beat = TT_MSG(HEARTBEAT, .holds = holds, .era = roster_era(w->roster));
    roster_beat(w->roster, peer, &beat);
}

/*  A run of one collector and `learners` learners that all hold weights; learner i has instance 100 + i. */
static world_t *s_running(uint32_t learners)
{
    world_t *w = s_world(8, 8, 1, learners, learners > 1);
    s_hello(w, TT_PEER_COLLECTOR, 0, 1);
    if (learners > 1)
        s_hello(w, TT_PEER_AGGREGATOR, 0, 2);
    for (uint32_t i = 0; i < learners; i++)
        s_hello(w, TT_PEER_LEARNER, (int)i, 100 + i);
    assert_true(s_due(w));
    assert_true(roster_publish(w->roster, ""));
    assert_true(roster_fresh(w->roster));
    for (uint32_t i = 0; i < learners; i++)
        s_holds(w, roster_holder(w->roster, TT_PEER_LEARNER, i), true);
    assert_false(roster_publish(w->roster, ""));
    return w;
}

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
    world_t *w = s_world(5, 2, 2, 2, 1);
    s_hello(w, TT_PEER_LEARNER, 1, 11);
    s_hello(w, TT_PEER_COLLECTOR, 1, 21);
    s_hello(w, TT_PEER_AGGREGATOR, 0, 31);
    s_hello(w, TT_PEER_LEARNER, 0, 10);
    assert_false(s_due(w));
    s_hello(w, TT_PEER_COLLECTOR, 0, 20);
    assert_true(s_due(w)); /* at once: nothing more is expected */
    assert_true(roster_publish(w->roster, ""));
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
    s_end(w);
}

static void test_the_first_roster_waits_a_second_for_the_rest(void **state)
{
    (void)state;
    world_t *w = s_world(5, 2, 2, 2, 1);
    s_hello(w, TT_PEER_COLLECTOR, 1, 21);
    assert_true(roster_due_ns(w->roster) == INT64_MAX);
    tt_clock_turn(&w->clock, 10 * MS);
    s_hello(w, TT_PEER_LEARNER, 1, 11);
    assert_true(roster_due_ns(w->roster) == tt_now_ns(&w->clock) + SECOND);
    tt_clock_turn(&w->clock, SECOND);
    assert_true(s_due(w));
    assert_true(roster_publish(w->roster, ""));
    assert_int_equal(roster_ready(w->roster, TT_PEER_LEARNER), 1);
    s_end(w);
}

/* ---- joining and leaving ------------------------------------------------------------------------------------------- */

static void test_joins_are_coalesced(void **state)
{
    (void)state;
    world_t *w = s_running(1);
    const uint64_t epoch = roster_epoch(w->roster), generation = roster_generation(w->roster);
    s_hello(w, TT_PEER_COLLECTOR, -1, 31);
    tt_clock_turn(&w->clock, MS);
    s_hello(w, TT_PEER_COLLECTOR, -1, 32);
    assert_false(s_due(w));
    tt_clock_turn(&w->clock, 2 * MS);
    assert_true(s_due(w));
    assert_true(roster_publish(w->roster, ""));
    assert_int_equal(roster_epoch(w->roster), epoch + 1);
    assert_int_equal(roster_generation(w->roster), generation); /* no learner came or went */
    assert_false(roster_fresh(w->roster));
    assert_int_equal(roster_ready(w->roster, TT_PEER_COLLECTOR), 3);
    s_end(w);
}

static void test_a_silent_member_leaves_after_a_lease(void **state)
{
    (void)state;
    world_t *w = s_running(2);
    const uint64_t generation = roster_generation(w->roster);
    tt_clock_turn(&w->clock, 4 * SECOND);
    for (size_t i = 0; i < roster_peer_count(w->roster); i++)
        if (roster_peer(w->roster, i)->instance != 100)
            roster_heard(w->roster, roster_peer(w->roster, i));
    assert_true(roster_lease_due_ns(w->roster) == roster_holder(w->roster, TT_PEER_LEARNER, 0)->seen_ns + 5 * SECOND);
    tt_clock_turn(&w->clock, SECOND);
    roster_tick(w->roster);
    assert_null(roster_holder(w->roster, TT_PEER_LEARNER, 0));
    assert_true(s_publish(w, ""));
    assert_int_equal(roster_generation(w->roster), generation + 1);
    assert_int_equal(roster_era(w->roster), 1); /* the other one holds the weights */
    assert_int_equal(roster_rank0(w->roster)->instance, 101);
    s_end(w);
}

/*  A coordinator that was stopped finds everybody silent, though their words lie unread. */
static void test_who_looks_late_blames_nobody_yet(void **state)
{
    (void)state;
    world_t *w = s_running(2);
    tt_clock_turn(&w->clock, 8 * SECOND);
    roster_tick(w->roster);
    assert_non_null(roster_holder(w->roster, TT_PEER_LEARNER, 0));
    roster_heard(w->roster, roster_holder(w->roster, TT_PEER_LEARNER, 0));
    tt_clock_turn(&w->clock, roster_lease_due_ns(w->roster) - tt_now_ns(&w->clock));
    roster_tick(w->roster); /* in time: silence counts again */
    assert_non_null(roster_holder(w->roster, TT_PEER_LEARNER, 0));
    assert_null(roster_holder(w->roster, TT_PEER_LEARNER, 1));
    s_end(w);
}

/*  Gone and back between two rosters: none is announced, but it must be a member again, else nobody listens to it. */
static void test_one_that_left_and_came_back_in_time_has_its_place_again(void **state)
{
    (void)state;
    world_t *w = s_running(2);
    const uint64_t epoch = roster_epoch(w->roster);
    roster_leave(w->roster, roster_holder(w->roster, TT_PEER_LEARNER, 0), PEER_SILENT, "the test");
    roster_leave(w->roster, roster_holder(w->roster, TT_PEER_COLLECTOR, 0), PEER_SILENT, "the test");
    peer_t *learner = NULL, *collector = s_hello(w, TT_PEER_COLLECTOR, 0, 1);
    assert_ok(
        s_try_hello(w, TT_PEER_LEARNER, 0, 100, (knows_t){true, 1, roster_generation(w->roster), 0, 0, 0}, &learner));
    assert_false(s_publish(w, ""));
    assert_int_equal(roster_epoch(w->roster), epoch);
    assert_int_equal(learner->state, PEER_ACTIVE);
    assert_int_equal(learner->rank, 0);
    assert_ptr_equal(roster_rank0(w->roster), learner);
    assert_int_equal(collector->state, PEER_ACTIVE);
    assert_int_equal(collector->env_count, 8);
    s_end(w);
}

static void test_an_end_seen_by_the_controller_counts_for_that_process_only(void **state)
{
    (void)state;
    world_t *w = s_running(1);
    roster_ended(w->roster, TT_PEER_COLLECTOR, 0, 999, "an earlier one");
    assert_non_null(roster_holder(w->roster, TT_PEER_COLLECTOR, 0));
    roster_ended(w->roster, TT_PEER_COLLECTOR, 0, 1, "killed");
    assert_null(roster_holder(w->roster, TT_PEER_COLLECTOR, 0));
    assert_true(s_publish(w, ""));
    assert_int_equal(roster_ready(w->roster, TT_PEER_COLLECTOR), 0);
    s_end(w);
}

static void test_a_number_in_use_is_refused_and_minus_one_gets_a_free_one(void **state)
{
    (void)state;
    world_t *w = s_running(1);
    peer_t *peer = NULL;
    const knows_t nothing = {false, 0, 0, 0, 0, 0};
    assert_int_equal(s_try_hello(w, TT_PEER_COLLECTOR, 0, 77, nothing, &peer), TT_DENIED);
    assert_non_null(strstr(tt_err_text(), "collector/0 is in use by process 1 on here"));
    assert_int_equal(s_hello(w, TT_PEER_COLLECTOR, -1, 78)->index, ROSTER_BY_HAND);
    assert_int_equal(s_hello(w, TT_PEER_COLLECTOR, -1, 79)->index, ROSTER_BY_HAND + 1);
    assert_int_equal(s_try_hello(w, TT_PEER_CLIENT, -1, 80, nothing, &peer), TT_DENIED);
    s_end(w);
}

static void test_a_repeated_hello_gets_the_roster_again(void **state)
{
    (void)state;
    world_t *w = s_running(1);
    peer_t *peer = roster_holder(w->roster, TT_PEER_COLLECTOR, 0);
    peer->told = roster_epoch(w->roster);
    assert_ptr_equal(s_hello(w, TT_PEER_COLLECTOR, 0, 1), peer);
    assert_int_equal(peer->told, 0);
    assert_int_equal(peer->state, PEER_ACTIVE);
    assert_true(roster_due_ns(w->roster) == INT64_MAX);
    s_end(w);
}

static void test_more_collectors_than_envs_wait_as_spares(void **state)
{
    (void)state;
    world_t *w = s_world(2, 1, 2, 1, 0);
    s_hello(w, TT_PEER_LEARNER, 0, 100);
    s_hello(w, TT_PEER_COLLECTOR, 0, 1);
    s_hello(w, TT_PEER_COLLECTOR, 1, 2);
    assert_true(roster_publish(w->roster, ""));
    peer_t *spare = s_hello(w, TT_PEER_COLLECTOR, -1, 3);
    assert_false(s_publish(w, ""));
    assert_int_equal(spare->state, PEER_WAITING);
    roster_ended(w->roster, TT_PEER_COLLECTOR, 0, 0, "killed");
    assert_true(s_publish(w, ""));
    assert_int_equal(spare->state, PEER_ACTIVE);
    assert_int_equal(spare->env_lo, 1);
    s_end(w);
}

/* ---- who holds the weights ----------------------------------------------------------------------------------------- */

static void test_losing_the_only_learner_rolls_back(void **state)
{
    (void)state;
    world_t *w = s_running(1);
    tt_msg_ROSTER_t m;
    roster_ended(w->roster, TT_PEER_LEARNER, 0, 0, "killed");
    assert_true(s_publish(w, ""));
    assert_int_equal(roster_era(w->roster), 1); /* nobody there who could begin an era */
    s_hello(w, TT_PEER_LEARNER, 0, 200);
    assert_true(s_publish(w, "checkpoints/7.safetensors"));
    roster_message(w->roster, &m);
    assert_int_equal(m.era, 2);
    assert_true(m.fresh);
    assert_string_equal(m.restore, "checkpoints/7.safetensors");
    assert_int_equal(roster_rolled_back(w->roster), 1);
    s_hello(w, TT_PEER_COLLECTOR, -1, 41); /* before rank 0 has begun: the same era, told again */
    assert_true(s_publish(w, "checkpoints/8.safetensors"));
    roster_message(w->roster, &m);
    assert_int_equal(m.era, 2);
    assert_true(m.fresh);
    assert_string_equal(m.restore, "checkpoints/7.safetensors");
    s_holds(w, roster_holder(w->roster, TT_PEER_LEARNER, 0), true);
    s_hello(w, TT_PEER_COLLECTOR, -1, 42);
    assert_true(s_publish(w, ""));
    assert_int_equal(roster_era(w->roster), 2);
    assert_false(roster_fresh(w->roster));
    s_end(w);
}

static void test_a_rank_0_that_dies_before_it_began_costs_nothing(void **state)
{
    (void)state;
    world_t *w = s_world(4, 2, 1, 1, 0);
    s_hello(w, TT_PEER_COLLECTOR, 0, 1);
    s_hello(w, TT_PEER_LEARNER, 0, 100);
    assert_true(roster_publish(w->roster, ""));
    roster_ended(w->roster, TT_PEER_LEARNER, 0, 0, "killed");
    s_hello(w, TT_PEER_LEARNER, 0, 101);
    assert_true(s_publish(w, ""));
    assert_int_equal(roster_era(w->roster), 2);
    assert_int_equal(roster_rolled_back(w->roster), 0);
    s_end(w);
}

static void test_beats_of_another_era_do_not_count(void **state)
{
    (void)state;
    world_t *w = s_running(1);
    peer_t *peer = roster_holder(w->roster, TT_PEER_LEARNER, 0);
    const tt_msg_HEARTBEAT_t beat = TT_MSG(HEARTBEAT, .holds = true, .era = 7);
    roster_beat(w->roster, peer, &beat);
    assert_false(peer->holds);
    s_end(w);
}

static void test_weights_of_a_roster_that_is_gone_are_refused(void **state)
{
    (void)state;
    world_t *w = s_running(2);
    peer_t *peer = NULL;
    const uint64_t generation = roster_generation(w->roster);
    roster_ended(w->roster, TT_PEER_LEARNER, 1, 0, "lost");
    assert_true(s_publish(w, ""));
    assert_int_equal(
        s_try_hello(w, TT_PEER_LEARNER, 1, 101, (knows_t){true, 1, generation, 0, 0, 0}, &peer), TT_DENIED);
    assert_int_equal(s_try_hello(w, TT_PEER_LEARNER, 1, 101, (knows_t){true, 2, 1, 0, 0, 0}, &peer), TT_DENIED);
    assert_int_equal(s_try_hello(w, TT_PEER_LEARNER, 1, 102, (knows_t){false, 0, 0, 0, 0, 0}, &peer), TT_OK);
    s_end(w);
}

static void test_numbers_from_the_future_are_refused(void **state)
{
    (void)state;
    world_t *w = s_running(1);
    peer_t *peer = NULL;
    assert_int_equal(s_try_hello(w, TT_PEER_LEARNER, 1, 300, (knows_t){false, 9, 1, 0, 0, 0}, &peer), TT_DENIED);
    assert_non_null(strstr(tt_err_text(), "journal"));
    s_end(w);
}

/* ---- scaling ------------------------------------------------------------------------------------------------------- */

static void test_victims_have_the_highest_numbers(void **state)
{
    (void)state;
    world_t *w = s_running(1);
    roster_desire(w->roster, TT_PEER_COLLECTOR, 4);
    for (int i = 1; i < 4; i++)
        s_hello(w, TT_PEER_COLLECTOR, i, 30 + (uint64_t)i);
    peer_t *by_hand = s_hello(w, TT_PEER_COLLECTOR, -1, 40);
    assert_true(s_publish(w, ""));
    roster_desire(w->roster, TT_PEER_COLLECTOR, 2);
    assert_true(s_publish(w, ""));
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(roster_holder(w->roster, TT_PEER_COLLECTOR, i)->state, i < 2 ? PEER_ACTIVE : PEER_DRAINING);
    assert_int_equal(by_hand->state, PEER_ACTIVE);
    assert_int_equal(roster_ready(w->roster, TT_PEER_COLLECTOR), 3);
    s_end(w);
}

static void test_the_only_holder_stays_until_another_one_holds(void **state)
{
    (void)state;
    world_t *w = s_running(2);
    roster_ended(w->roster, TT_PEER_LEARNER, 0, 0, "killed");
    assert_true(s_publish(w, ""));
    roster_desire(w->roster, TT_PEER_LEARNER, 1);
    s_publish(w, "");
    assert_int_equal(roster_holder(w->roster, TT_PEER_LEARNER, 1)->state, PEER_ACTIVE);
    peer_t *joiner = s_hello(w, TT_PEER_LEARNER, 0, 200);
    assert_true(s_publish(w, ""));
    assert_int_equal(joiner->rank, 1);
    assert_int_equal(roster_holder(w->roster, TT_PEER_LEARNER, 1)->state, PEER_ACTIVE);
    s_holds(w, joiner, true);
    assert_true(s_publish(w, ""));
    assert_int_equal(roster_holder(w->roster, TT_PEER_LEARNER, 1)->state, PEER_DRAINING);
    assert_ptr_equal(roster_rank0(w->roster), joiner);
    assert_int_equal(roster_era(w->roster), 1);
    s_end(w);
}

static void test_one_that_asks_goes_when_the_weights_are_safe(void **state)
{
    (void)state;
    world_t *w = s_running(2);
    peer_t *first = roster_holder(w->roster, TT_PEER_LEARNER, 0),
           *second = roster_holder(w->roster, TT_PEER_LEARNER, 1);
    s_holds(w, second, false);
    roster_asks(w->roster, first);
    s_publish(w, "");
    assert_int_equal(first->state, PEER_ACTIVE);
    s_holds(w, second, true);
    assert_true(s_publish(w, ""));
    assert_int_equal(first->state, PEER_DRAINING);
    assert_ptr_equal(roster_rank0(w->roster), second);
    assert_int_equal(roster_era(w->roster), 1);
    s_end(w);
}

/* ---- a coordinator that lost its journal --------------------------------------------------------------------------- */

static const knows_t s_leader = {true, 3, 5, 17, 2, 1}, s_follower = {true, 3, 5, 17, 2, 2},
                     s_behind = {true, 3, 4, 12, 1, 1}, s_player = {false, 3, 5, 17, 2, 0}, s_new = {0};

static peer_t *s_claim(world_t *w, tt_peer_role_t role, int index, uint64_t instance, knows_t knows)
{
    peer_t *peer = NULL;
    assert_ok(s_try_hello(w, role, index, instance, knows, &peer));
    return peer;
}

static void test_members_that_were_under_way_are_taken_over(void **state)
{
    (void)state;
    world_t *w = s_world(8, 8, 1, 1, 0);
    s_claim(w, TT_PEER_LEARNER, 10007, 1, s_new); /* it was there first */
    s_claim(w, TT_PEER_COLLECTOR, 10000, 2, s_player);
    peer_t *follower = s_claim(w, TT_PEER_LEARNER, 10001, 101, s_follower);
    assert_false(s_due(w)); /* the other of two may come */
    peer_t *leader = s_claim(w, TT_PEER_LEARNER, 10007, 100, s_leader);
    assert_int_not_equal(leader->index, 10007); /* a number that is taken is chosen anew */
    assert_true(s_due(w));
    assert_true(roster_publish(w->roster, "snapshot"));
    assert_false(roster_fresh(w->roster));
    assert_int_equal(roster_era(w->roster), 3);
    assert_int_equal(roster_rolled_back(w->roster), 0);
    assert_true(roster_epoch(w->roster) > 17);
    assert_true(roster_generation(w->roster) > 5);
    assert_ptr_equal(roster_rank0(w->roster), leader);
    assert_int_equal(follower->rank, 1);
    s_end(w);
}

static void test_weights_of_an_older_generation_are_not_taken_over(void **state)
{
    (void)state;
    world_t *w = s_world(8, 8, 1, 1, 0);
    peer_t *peer = NULL;
    s_claim(w, TT_PEER_COLLECTOR, 10000, 2, s_player);
    s_claim(w, TT_PEER_LEARNER, 10001, 99, s_behind);
    peer_t *leader = s_claim(w, TT_PEER_LEARNER, 10000, 100, s_leader);
    assert_false(s_due(w));
    tt_clock_turn(&w->clock, 9 * SECOND);
    roster_heard(w->roster, leader);
    roster_heard(w->roster, roster_holder(w->roster, TT_PEER_LEARNER, 10001));
    assert_false(s_due(w));
    tt_clock_turn(&w->clock, 1 * SECOND);
    assert_true(s_due(w));
    assert_true(roster_publish(w->roster, ""));
    assert_ptr_equal(roster_rank0(w->roster), leader);
    assert_int_equal(roster_ready(w->roster, TT_PEER_LEARNER), 1);
    assert_null(roster_holder(w->roster, TT_PEER_LEARNER, 10001));
    assert_int_equal(s_try_hello(w, TT_PEER_LEARNER, 10001, 99, s_behind, &peer), TT_DENIED);
    s_end(w);
}

/*  The only learner went with the coordinator: what the others know is void, and must not be mistaken for the new run. */
static void test_when_nobody_holds_the_weights_a_new_era_begins(void **state)
{
    (void)state;
    world_t *w = s_world(8, 8, 1, 1, 0);
    s_claim(w, TT_PEER_COLLECTOR, 10000, 2, s_player);
    s_claim(w, TT_PEER_LEARNER, -1, 7, s_new);
    assert_false(s_due(w));
    tt_clock_turn(&w->clock, 10 * SECOND);
    assert_true(s_due(w));
    assert_true(roster_publish(w->roster, ""));
    assert_true(roster_fresh(w->roster));
    assert_int_equal(roster_era(w->roster), 4);
    assert_int_equal(roster_rolled_back(w->roster), 1);
    assert_true(roster_epoch(w->roster) > 17);
    s_end(w);
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
    assert_true(s_due(w));
    s_end(w);
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
    world_t *w = s_world(8, 8, 1, 2, 1);
    peer_t *peer = NULL;
    s_continue(w, true);
    s_hello(w, TT_PEER_COLLECTOR, 0, 71);
    s_hello(w, TT_PEER_AGGREGATOR, 0, 72);
    s_hello(w, TT_PEER_LEARNER, 1, 73);
    assert_false(s_due(w)); /* learner/0 may come any moment */
    assert_ok(s_try_hello(w, TT_PEER_LEARNER, 0, 100, (knows_t){true, 3, 5, 0, 0, 0}, &peer));
    assert_true(s_due(w));
    assert_true(roster_publish(w->roster, ""));
    assert_int_equal(roster_rank0(w->roster)->instance, 100); /* it holds the weights */
    assert_int_equal(roster_era(w->roster), 3);
    s_end(w);
}

/*  The aggregator died with the coordinator. To leave a learner out would let it in again later with old weights. */
static void test_a_restarted_coordinator_keeps_all_holders_without_an_aggregator(void **state)
{
    (void)state;
    world_t *w = s_world(8, 8, 1, 2, 1);
    peer_t *peer = NULL;
    s_continue(w, true);
    s_hello(w, TT_PEER_COLLECTOR, 0, 1);
    assert_ok(s_try_hello(w, TT_PEER_LEARNER, 0, 100, (knows_t){true, 3, 5, 0, 0, 0}, &peer));
    assert_ok(s_try_hello(w, TT_PEER_LEARNER, 1, 101, (knows_t){true, 3, 5, 0, 0, 0}, &peer));
    tt_clock_turn(&w->clock, 5 * SECOND);
    assert_true(s_due(w));
    assert_true(roster_publish(w->roster, ""));
    assert_int_equal(roster_ready(w->roster, TT_PEER_LEARNER), 2);
    s_end(w);
}

static void test_a_restarted_coordinator_waits_for_those_it_knew(void **state)
{
    (void)state;
    world_t *w = s_world(8, 8, 1, 2, 1);
    peer_t *peer = NULL;
    s_continue(w, true);
    const int64_t until = tt_now_ns(&w->clock) + 5 * SECOND;
    s_hello(w, TT_PEER_COLLECTOR, 0, 1);
    s_hello(w, TT_PEER_AGGREGATOR, 0, 2);
    tt_clock_turn(&w->clock, SECOND);
    assert_ok(s_try_hello(w, TT_PEER_LEARNER, 0, 100, (knows_t){true, 3, 5, 0, 0, 0}, &peer));
    assert_true(roster_due_ns(w->roster) == until);
    assert_ok(s_try_hello(w, TT_PEER_LEARNER, 1, 101, (knows_t){true, 3, 5, 0, 0, 0}, &peer));
    assert_true(s_due(w));
    assert_true(roster_publish(w->roster, ""));
    assert_int_equal(roster_rank0(w->roster)->instance, 101); /* ranks as they were, not by number */
    assert_int_equal(roster_era(w->roster), 3);
    assert_int_equal(roster_epoch(w->roster), 18);
    assert_int_equal(roster_generation(w->roster), 6);
    assert_int_equal(roster_rolled_back(w->roster), 2);
    s_end(w);
}

static void test_it_waits_no_longer_than_a_lease(void **state)
{
    (void)state;
    world_t *w = s_world(8, 8, 2, 1, 0);
    s_continue(w, true);
    s_hello(w, TT_PEER_COLLECTOR, 0, 77);
    s_hello(w, TT_PEER_LEARNER, 0, 78);
    tt_clock_turn(&w->clock, 5 * SECOND);
    assert_true(s_due(w));
    assert_true(roster_publish(w->roster, "checkpoints/3.safetensors"));
    assert_int_equal(roster_era(w->roster), 4);
    assert_int_equal(roster_rolled_back(w->roster), 3);
    s_end(w);
}

static void test_a_resumed_run_counts_on_and_waits_for_nobody(void **state)
{
    (void)state;
    world_t *w = s_world(8, 8, 1, 1, 0);
    peer_t *peer = NULL;
    s_continue(w, false);
    s_hello(w, TT_PEER_COLLECTOR, 0, 77);
    assert_int_equal(s_try_hello(w, TT_PEER_LEARNER, 0, 78, (knows_t){true, 3, 5, 0, 0, 0}, &peer), TT_DENIED);
    s_hello(w, TT_PEER_LEARNER, 0, 78);
    assert_true(s_due(w));
    assert_true(roster_publish(w->roster, ""));
    assert_int_equal(roster_era(w->roster), 4);
    assert_int_equal(roster_epoch(w->roster), 18);
    s_end(w);
}

/* ---- processes that do not get on ---------------------------------------------------------------------------------- */

static void test_the_one_stuck_longest_is_named(void **state)
{
    (void)state;
    world_t *w = s_running(1);
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
    s_end(w);
}

/* ---- random histories ---------------------------------------------------------------------------------------------- */

typedef struct {
    uint32_t counter, era;
    uint64_t epoch, generation, instance;
} history_t;

static uint32_t s_random(history_t *h, uint32_t below)
{
    uint32_t out[4];
    const uint32_t counter[4] = {h->counter++, 0, 0, 0}, key[2] = {2026, 7};
    tt_philox(out, counter, key);
    return tt_below(out[0], below);
}

typedef struct {
    uint32_t envs, learners, collectors, holders;
} sums_t;

static void s_check_member(const world_t *w, const tt_msg_ROSTER_t *m, const tt_rec_MEMBER_t *member, sums_t *sums)
{
    const peer_t *peer = roster_holder(w->roster, (tt_peer_role_t)member->role, member->index);
    assert_non_null(peer);
    assert_true(peer->instance == member->instance);
    assert_int_equal(peer->state, PEER_ACTIVE);
    if (member->role == TT_PEER_LEARNER) {
        assert_int_equal(member->rank, sums->learners++);
        sums->holders += peer->holds;
        assert_true(member->rank != 0 || m->fresh || peer->holds);
    }
    if (member->role == TT_PEER_COLLECTOR) {
        sums->collectors++;
        assert_int_equal(member->env_lo, sums->envs);
        assert_true(member->env_count >= 1);
        sums->envs += member->env_count;
    }
}

static void s_check(const world_t *w, history_t *h, uint32_t num_envs, uint32_t shards)
{
    tt_msg_ROSTER_t m;
    sums_t sums = {0, 0, 0, 0};
    roster_message(w->roster, &m);
    assert_true(m.epoch == h->epoch + 1);
    assert_true(m.era >= h->era && m.era <= h->era + 1);
    assert_true(m.generation >= h->generation && m.generation <= h->generation + 1);
    for (size_t i = 0; i < m.members_count; i++)
        s_check_member(w, &m, &m.members[i], &sums);
    assert_true(sums.collectors == 0 || sums.envs == num_envs);
    assert_true(sums.learners <= shards);
    assert_true(sums.learners == 0 || m.fresh == (sums.holders == 0));
    h->era = m.era;
    h->epoch = m.epoch;
    h->generation = m.generation;
}

static peer_t *s_any(world_t *w, history_t *h)
{
    const size_t count = roster_peer_count(w->roster);
    return count == 0 ? NULL : roster_peer(w->roster, s_random(h, (uint32_t)count));
}

static void s_something_happens(world_t *w, history_t *h)
{
    static const tt_peer_role_t roles[] = {TT_PEER_COLLECTOR, TT_PEER_LEARNER, TT_PEER_AGGREGATOR};
    peer_t *peer = s_any(w, h), *ignored = NULL;
    const uint32_t dice = s_random(h, 10);
    if (dice < 4) {
        const tt_peer_role_t role = roles[s_random(h, 3)];
        (void)s_try_hello(w, role, (int)s_random(h, 6) - 1, ++h->instance, (knows_t){false, 0, 0, 0, 0, 0}, &ignored);
    } else if (dice == 4) {
        if (peer)
            roster_leave(w->roster, peer, s_random(h, 2) ? PEER_ENDED : PEER_DRAINED, "chance");
    } else if (dice == 5) {
        roster_desire(w->roster, TT_PEER_COLLECTOR, 1 + s_random(h, 5));
    } else if (dice == 6) {
        roster_desire(w->roster, TT_PEER_LEARNER, 1 + s_random(h, 4));
    } else if (dice == 7) {
        tt_clock_turn(&w->clock, (int64_t)s_random(h, 2000) * MS);
    } else if (peer) {
        s_holds(w, peer, peer->state == PEER_ACTIVE && (peer->holds || s_random(h, 2)));
    }
}

static void test_random_histories_keep_the_invariants(void **state)
{
    (void)state;
    const uint32_t num_envs = 4, shards = 3;
    history_t h = {.counter = 0};
    setenv("TT_LOG", "error", 1); /* thousands of departures */
    tt_log_init("test", 0);
    for (int run = 0; run < 50; run++) {
        world_t *w = s_world(num_envs, shards, 2, 2, 1);
        h.era = 0;
        h.epoch = h.generation = 0;
        for (int i = 0; i < 400; i++) {
            s_something_happens(w, &h);
            roster_tick(w->roster);
            if (s_due(w) && roster_publish(w->roster, ""))
                s_check(w, &h, num_envs, shards);
        }
        assert_true(h.epoch > 10);
        s_end(w);
    }
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
        cmocka_unit_test(test_losing_the_only_learner_rolls_back),
        cmocka_unit_test(test_a_rank_0_that_dies_before_it_began_costs_nothing),
        cmocka_unit_test(test_beats_of_another_era_do_not_count),
        cmocka_unit_test(test_weights_of_a_roster_that_is_gone_are_refused),
        cmocka_unit_test(test_numbers_from_the_future_are_refused),
        cmocka_unit_test(test_victims_have_the_highest_numbers),
        cmocka_unit_test(test_one_that_asks_goes_when_the_weights_are_safe),
        cmocka_unit_test(test_members_that_were_under_way_are_taken_over),
        cmocka_unit_test(test_weights_of_an_older_generation_are_not_taken_over),
        cmocka_unit_test(test_when_nobody_holds_the_weights_a_new_era_begins),
        cmocka_unit_test(test_members_of_a_run_under_way_are_expected_for_a_while),
        cmocka_unit_test(test_the_only_holder_stays_until_another_one_holds),
        cmocka_unit_test(test_a_restarted_coordinator_does_not_wait_for_those_whose_number_is_taken),
        cmocka_unit_test(test_a_restarted_coordinator_keeps_all_holders_without_an_aggregator),
        cmocka_unit_test(test_a_restarted_coordinator_waits_for_those_it_knew),
        cmocka_unit_test(test_it_waits_no_longer_than_a_lease),
        cmocka_unit_test(test_a_resumed_run_counts_on_and_waits_for_nobody),
        cmocka_unit_test(test_the_one_stuck_longest_is_named),
        cmocka_unit_test(test_random_histories_keep_the_invariants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
