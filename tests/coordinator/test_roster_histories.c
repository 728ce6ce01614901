/*  roster: what holds of every roster, whatever came before. Random histories of a small run. */
#include <stdlib.h>
#include "common/base/log.h"
#include "common/base/rng.h"
#include "tests/coordinator/roster_world.h"
#include "tests/test.h"

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
        (void)world_try_hello(
            w, role, (int)s_random(h, 6) - 1, ++h->instance, (knows_t){false, 0, 0, 0, 0, 0}, &ignored);
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
        world_holds(w, peer, peer->state == PEER_ACTIVE && (peer->holds || s_random(h, 2)));
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
        world_t *w = world_new(num_envs, shards, 2, 2, 1);
        h.era = 0;
        h.epoch = h.generation = 0;
        for (int i = 0; i < 400; i++) {
            s_something_happens(w, &h);
            roster_tick(w->roster);
            if (world_due(w) && world_make(w, ""))
                s_check(w, &h, num_envs, shards);
        }
        assert_true(h.epoch > 10);
        world_end(w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_histories_keep_the_invariants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
