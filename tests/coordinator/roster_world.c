#include "tests/coordinator/roster_world.h"
#include <stdio.h>
#include <stdlib.h>
#include "coordinator/roster_parts.h"
#include "tests/test.h"

world_t *world_new(uint32_t num_envs, uint32_t shards, uint32_t collectors, uint32_t learners, uint32_t aggregators)
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

void world_collectors_warm(world_t *w)
{
    w->roster->cfg.collectors_warm = true;
}

void world_warms(world_t *w)
{
    w->roster->cfg.warms = true;
}

void world_end(world_t *w)
{
    roster_destroy(&w->roster);
    free(w);
}

tt_status_t world_try_hello(world_t *w, tt_peer_role_t role, int index, uint64_t instance, knows_t knows, peer_t **out)
{
    char identity[64], host[] = "here";
    snprintf(identity, sizeof identity, "%s/%d/%llx", tt_peer_role_name(role), index, (unsigned long long)instance);
    const tt_msg_HELLO_t hello = TT_MSG(HELLO, .wire = TT_WIRE_VERSION, .role = role, .index = index,
        .instance = instance, .pid = (uint32_t)instance, .host = host, .holds = knows.holds, .era = knows.era,
        .generation = knows.generation, .epoch = knows.epoch, .learners = knows.learners, .place = knows.place);
    return roster_hello(w->roster, identity, NULL, &hello, out);
}

peer_t *world_hello(world_t *w, tt_peer_role_t role, int index, uint64_t instance)
{
    peer_t *peer = NULL;
    assert_ok(world_try_hello(w, role, index, instance, (knows_t){false, 0, 0, 0, 0, 0}, &peer));
    return peer;
}

void world_ended(world_t *w, tt_peer_role_t role, uint32_t index, uint32_t pid)
{
    peer_t *peer = roster_process(w->roster, role, index, pid);
    if (peer)
        roster_leave(w->roster, peer, PEER_ENDED, "it has ended");
}

bool world_due(world_t *w)
{
    return roster_due_ns(w->roster) <= tt_now_ns(&w->clock);
}

static const char *s_restore(void *ctx)
{
    return ctx;
}

bool world_make(world_t *w, const char *restore)
{
    return roster_publish(w->roster, s_restore, (void *)(uintptr_t)restore);
}

bool world_publish(world_t *w, const char *restore)
{
    tt_clock_turn(&w->clock, 3 * MS);
    assert_true(world_due(w));
    return world_make(w, restore);
}

void world_holds(world_t *w, peer_t *peer, bool holds)
{
    const tt_msg_HEARTBEAT_t beat = TT_MSG(HEARTBEAT, .holds = holds, .era = roster_era(w->roster));
    roster_beat(w->roster, peer, &beat);
}

void world_warm(world_t *w, peer_t *peer, bool warm, uint32_t era)
{
    const tt_msg_HEARTBEAT_t beat = TT_MSG(HEARTBEAT, .warm = warm, .era = era);
    roster_beat(w->roster, peer, &beat);
}

world_t *world_running(uint32_t learners)
{
    world_t *w = world_new(8, 8, 1, learners, learners > 1);
    world_hello(w, TT_PEER_COLLECTOR, 0, 1);
    if (learners > 1)
        world_hello(w, TT_PEER_AGGREGATOR, 0, 2);
    for (uint32_t i = 0; i < learners; i++)
        world_hello(w, TT_PEER_LEARNER, (int)i, 100 + i);
    assert_true(world_due(w));
    assert_true(world_make(w, ""));
    assert_true(roster_fresh(w->roster));
    for (uint32_t i = 0; i < learners; i++)
        world_holds(w, roster_holder(w->roster, TT_PEER_LEARNER, i), true);
    assert_false(world_make(w, ""));
    return w;
}
