/*  lease: one holder at a time whatever the server and the clocks do; the next one in time; belief ends before the lease. */
#include "k8s/api/lease.h"
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "tests/k8s/api/watch_server.h"
#include "tests/test.h"

#define LEASES "/apis/coordination.k8s.io/v1/namespaces/ns/leases"

typedef struct {
    kube_lease_t *lease;
    int told; /* times `changed` came */
    bool held;
    kube_client_t *recheck; /* when it is lost; NULL = not */
    int looks;              /* while it is freed           */
} one_t;

static void s_changed(void *ctx, bool held)
{
    one_t *self = ctx;
    assert_true(held != self->held);
    self->held = held;
    self->told++;
    if (self->recheck && !held)
        kube_client_recheck(self->recheck);
}

static void s_open(one_t *self, kube_client_t *client, const char *holder)
{
    *self = (one_t){0};
    const kube_lease_opts_t opts = {
        .namespace_ = "ns", .name = "operator", .holder = holder, .changed = s_changed, .ctx = self};
    assert_ok(kube_lease_new(&self->lease, client, &opts));
}

static bool s_held(const one_t *self)
{
    return kube_lease_held(self->lease);
}

/*  Answers come before time goes on; when `slow`, they may not. */
static void s_answered(tt_reactor_t *loop, kube_client_t *client, bool slow)
{
    assert_ok(tt_reactor_poll(loop, 0)); /* timers: requests begin */
    for (int i = 0; i < (slow ? 1 : 10000) && kube_client_pending(client); i++)
        assert_ok(tt_reactor_poll(loop, 1));
}

/*  So much time goes by, in small steps; none of it while a request is under way. */
static void s_pass(world_t *world, int64_t ms)
{
    s_answered(world->loop, world->client, false);
    for (int64_t step = 0; step < ms; step += 50) {
        tt_clock_turn(&world->clock, 50000000);
        s_answered(world->loop, world->client, false);
    }
}

static json_t *s_record(world_t *world)
{
    char *answer = NULL;
    assert_ok(world_call(world, "GET", LEASES "/operator", NULL, &answer));
    json_t *record = json_loads(answer, 0, NULL);
    free(answer);
    return record;
}

static void s_assert_holder(world_t *world, const char *holder, int transitions)
{
    json_t *record = s_record(world);
    const json_t *spec = json_object_get(record, "spec");
    assert_string_equal(json_string_value(json_object_get(spec, "holderIdentity")), holder);
    assert_int_equal(json_integer_value(json_object_get(spec, "leaseTransitions")), transitions);
    json_decref(record);
}

static void test_one_then_the_other(void **state)
{
    (void)state;
    world_t world;
    one_t a, b;
    world_open(&world);
    s_open(&a, world.client, "a");
    s_pass(&world, 0);
    assert_true(s_held(&a));
    assert_true(a.held);
    s_open(&b, world.client, "b");
    s_pass(&world, 20000);
    assert_true(s_held(&a));
    assert_false(s_held(&b));
    assert_string_equal(kube_lease_holder(b.lease), "a");
    assert_int_equal(a.told, 1);
    assert_int_equal(b.told, 0);
    s_assert_holder(&world, "a", 0);
    json_t *record = s_record(&world);
    const json_t *spec = json_object_get(record, "spec");
    assert_int_equal(json_integer_value(json_object_get(spec, "leaseDurationSeconds")), 6);
    assert_int_equal(
        strlen(json_string_value(json_object_get(spec, "renewTime"))), strlen("2026-11-21T10:00:00.000000Z"));
    json_decref(record);
    kube_lease_destroy(&a.lease); /* frees it: no waiting */
    s_assert_holder(&world, "", 0);
    s_pass(&world, 1300);
    assert_true(s_held(&b));
    s_assert_holder(&world, "b", 1);
    kube_lease_destroy(&b.lease);
    world_close(&world);
}

/*  A record that nobody renews, whatever times stand in it, is good for lease_ms since we saw it. */
static void test_dead_holder(void **state)
{
    (void)state;
    static const char *const times[] = {"1970-01-01T00:00:00.000000Z", "2999-01-01T00:00:00.000000Z"};
    for (size_t i = 0; i < TT_COUNT(times); i++) {
        world_t world;
        one_t b;
        world_open(&world);
        char *body = tt_sprintf("{'metadata':{'name':'operator','labels':{'x':'y'}},'spec':{'holderIdentity':'dead',"
                                "'leaseDurationSeconds':6,'renewTime':'%s','leaseTransitions':4}}",
            times[i]);
        assert_ok(world_call(&world, "POST", LEASES, body, NULL));
        free(body);
        s_open(&b, world.client, "b");
        s_pass(&world, 5900);
        assert_false(s_held(&b));
        assert_string_equal(kube_lease_holder(b.lease), "dead");
        s_pass(&world, 1500);
        assert_true(s_held(&b));
        s_assert_holder(&world, "b", 5);
        json_t *record = s_record(&world); /* what else stood there stays */
        assert_non_null(json_object_get(json_object_get(json_object_get(record, "metadata"), "labels"), "x"));
        json_decref(record);
        kube_lease_destroy(&b.lease);
        world_close(&world);
    }
}

static void test_a_long_lease_is_respected(void **state)
{
    (void)state;
    world_t world;
    one_t b;
    world_open(&world);
    assert_ok(world_call(&world, "POST", LEASES,
        "{'metadata':{'name':'operator'},'spec':{'holderIdentity':'slow','leaseDurationSeconds':15}}", NULL));
    s_open(&b, world.client, "b");
    s_pass(&world, 14500);
    assert_false(s_held(&b));
    s_pass(&world, 2000);
    assert_true(s_held(&b));
    kube_lease_destroy(&b.lease);
    world_close(&world);
}

/*  Whoever took one for an hour or a day believes in it for as long. */
static void test_the_longest_leases_are_respected(void **state)
{
    (void)state;
    static const char *const seconds[] = {"3600", "86400", "9223372036854775807"};
    for (size_t i = 0; i < TT_COUNT(seconds); i++) {
        world_t world;
        one_t b;
        world_open(&world);
        char *body = tt_sprintf(
            "{'metadata':{'name':'operator'},'spec':{'holderIdentity':'slow','leaseDurationSeconds':%s}}", seconds[i]);
        assert_ok(world_call(&world, "POST", LEASES, body, NULL));
        free(body);
        s_open(&b, world.client, "b");
        s_pass(&world, 20000);
        assert_false(s_held(&b));
        assert_string_equal(kube_lease_holder(b.lease), "slow");
        kube_lease_destroy(&b.lease);
        world_close(&world);
    }
}

/*  The server fails: belief ends renew_ms after the last good renewal, and comes back with the server. */
static void test_belief_ends(void **state)
{
    (void)state;
    world_t world;
    one_t a;
    world_open(&world);
    s_open(&a, world.client, "a");
    s_pass(&world, 0);
    assert_true(s_held(&a));
    free(world_ctl(&world, "{'do':'faults','faults':[{'at':'write','what':'500','times':1000}]}"));
    s_pass(&world, 3950);
    assert_true(s_held(&a));
    s_pass(&world, 50);
    assert_false(s_held(&a));
    s_pass(&world, 5000);
    assert_false(a.held);
    free(world_ctl(&world, "{'do':'calm'}"));
    s_pass(&world, 1050);
    assert_true(s_held(&a));
    assert_int_equal(a.told, 3);
    tt_clock_turn(&world.clock, INT64_C(4000000000)); /* we slept: no belief, though no timer has fired */
    assert_false(s_held(&a));
    kube_lease_destroy(&a.lease);
    world_close(&world);
}

static bool s_may(const void *lease)
{
    return kube_lease_held(lease);
}

static void s_on_held_back(void *ctx, const kube_reply_t *reply)
{
    *(int *)ctx += reply->held_back;
}

/*  A holder that was stopped for longer than it believes goes on amid what it had begun: nothing of that was sent yet, and nothing is. */
static void test_what_was_begun_is_taken_back(void **state)
{
    (void)state;
    world_t world;
    one_t a;
    world_open(&world);
    s_open(&a, world.client, "a");
    a.recheck = world.client;
    s_pass(&world, 0);
    assert_true(s_held(&a));
    int held_back = 0;
    const kube_request_t write = {.method = "POST",
        .path = "/api/v1/namespaces/n/pods",
        .body = "{\"metadata\": {\"name\": \"p\"}}",
        .may = s_may,
        .may_ctx = a.lease};
    kube_client_send(world.client, &write, s_on_held_back, &held_back);
    assert_ok(tt_reactor_poll(world.loop, 0)); /* handed to libcurl, which writes it in the next turn */
    assert_int_equal(held_back, 0);
    tt_clock_turn(&world.clock, INT64_C(5000000000));
    assert_ok(tt_reactor_poll(world.loop, 0));
    assert_false(a.held);
    s_answered(world.loop, world.client, false);
    assert_int_equal(held_back, 1);
    assert_int_equal(world_call(&world, "GET", "/api/v1/namespaces/n/pods/p", NULL, NULL), TT_NOT_FOUND);
    kube_lease_destroy(&a.lease);
    world_close(&world);
}

/*  Renewals whose answer is lost: the next one finds the record newer than it knew, looks, and goes on. */
static void test_lost_answers(void **state)
{
    (void)state;
    world_t world;
    one_t a;
    world_open(&world);
    s_open(&a, world.client, "a");
    s_pass(&world, 0);
    assert_true(s_held(&a));
    for (int i = 0; i < 5; i++) {
        free(world_ctl(&world, "{'do':'faults','faults':[{'at':'write','what':'lost'}]}"));
        s_pass(&world, 2500);
        assert_true(s_held(&a));
    }
    assert_int_equal(a.told, 1);
    assert_ok(world_call(&world, "DELETE", LEASES "/operator", NULL, NULL)); /* somebody removes it: made anew */
    s_pass(&world, 2500);
    assert_true(s_held(&a));
    assert_ok(world_call(&world, "PATCH", LEASES "/operator", "{'spec':{'holderIdentity':'thief'}}", NULL));
    s_pass(&world, 1500);
    assert_false(s_held(&a));
    kube_lease_destroy(&a.lease);
    s_assert_holder(&world, "thief", 0); /* not ours to free */
    world_close(&world);
}

static void s_on_freeing(void *ctx)
{
    one_t *self = ctx;
    assert_false(s_held(self));
    self->looks++;
}

/*  Whatever was due or under way when it was freed: nobody holds it, and the next one need not wait. Meanwhile we do not believe that
 *  we do: the server has perhaps freed it, and we have no answer. */
static void test_freed_for_good(void **state)
{
    (void)state;
    world_t world;
    one_t a;
    for (int i = 0; i < 4; i++) {
        world_open(&world);
        s_open(&a, world.client, "a");
        s_pass(&world, 0);
        assert_true(s_held(&a));
        if (i == 1 || i == 3) /* the record is newer than it knows */
            free(world_ctl(&world, "{'do':'faults','faults':[{'at':'write','what':'lost'}]}"));
        tt_clock_turn(&world.clock, INT64_C(2000000000)); /* a renewal is due, */
        if (i >= 2)
            assert_ok(tt_reactor_poll(world.loop, 0)); /* or under way */
        tt_reactor_timer(world.loop, 0, s_on_freeing, &a);
        kube_lease_destroy(&a.lease);
        assert_int_equal(a.looks, 1);
        s_assert_holder(&world, "", 0);
        world_close(&world);
    }
}

/*  Three that want it, each with a clock of its own, faults at random: never two at a time. */
static void test_never_two(void **state)
{
    (void)state;
    enum { N = 3, STEPS = 2400 };
    world_t world;
    world_open(&world);
    tt_clock_t clocks[N];
    tt_reactor_t *loops[N] = {0};
    kube_client_t *clients[N] = {0};
    one_t ones[N];
    static const char *const names[N] = {"a", "b", "c"};
    int held_steps = 0, changes = 0;
    for (int i = 0; i < N; i++) {
        clocks[i] = tt_clock_fake(INT64_C(1000000000000) * (i + 1));
        assert_ok(tt_reactor_new(&loops[i], &clocks[i]));
        assert_ok(kube_client_new(&clients[i], loops[i], world.config, NULL));
        s_open(&ones[i], clients[i], names[i]);
    }
    srand(1);
    for (int step = 0; step < STEPS; step++) {
        if (step % 120 == 0) {
            static const char *const what[] = {"500", "lost", "reset"};
            char *command = tt_sprintf(
                "{'do':'faults','faults':[{'at':'write','what':'%s','times':%d}]}", what[rand() % 3], 1 + rand() % 4);
            free(world_ctl(&world, command));
            free(command);
        }
        const int frozen = step / 160 % (N + 1); /* one of them is not run for a while */
        const bool slow = step / 20 % 5 == 0;    /* time does not wait for answers     */
        int held = 0;
        for (int i = 0; i < N; i++) {
            tt_clock_turn(&clocks[i], 50000000);
            if (i != frozen)
                s_answered(loops[i], clients[i], slow);
            held += s_held(&ones[i]);
        }
        assert_in_range(held, 0, 1);
        held_steps += held;
    }
    for (int i = 0; i < N; i++) {
        changes += ones[i].told;
        kube_lease_destroy(&ones[i].lease);
        kube_client_destroy(&clients[i]);
        tt_reactor_destroy(&loops[i]);
    }
    assert_true(held_steps > STEPS / 5);
    assert_true(changes > 4);
    world_close(&world);
}

static void test_refuses(void **state)
{
    (void)state;
    kube_lease_t *lease = NULL;
    const kube_lease_opts_t opts = {.namespace_ = "n", .name = "x", .holder = "h", .lease_ms = 3000};
    assert_int_equal(kube_lease_new(&lease, NULL, &opts), TT_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_then_the_other), cmocka_unit_test(test_dead_holder),
        cmocka_unit_test(test_a_long_lease_is_respected), cmocka_unit_test(test_the_longest_leases_are_respected),
        cmocka_unit_test(test_belief_ends), cmocka_unit_test(test_what_was_begun_is_taken_back),
        cmocka_unit_test(test_lost_answers), cmocka_unit_test(test_freed_for_good), cmocka_unit_test(test_never_two),
        cmocka_unit_test(test_refuses)};
    return cmocka_run_group_tests(tests, NULL, world_end);
}
