/*  replicas: who is silent is told, in time, again, and nobody else. */
#include "coordinator/replicas.h"
#include <string.h>
#include "tests/coordinator/roster_world.h"
#include "tests/test.h"

typedef struct {
    size_t told, again;
    replica_t last;
    double silent_s;
} heard_t;

static void s_tell(void *ctx, const replica_t *replica, double silent_s, bool again)
{
    heard_t *heard = ctx;
    heard->told++;
    heard->again += again;
    heard->last = *replica;
    heard->silent_s = silent_s;
}

/*  As the coordinator does it, each quarter of a second. */
static void s_pass(world_t *w, replicas_t *replicas, heard_t *heard, int64_t ms)
{
    for (int64_t passed = 0; passed < ms; passed += 250) {
        tt_clock_turn(&w->clock, 250 * MS);
        roster_tick(w->roster);
        replicas_turn(replicas, w->roster, s_tell, heard);
    }
}

static void test_a_silent_member_is_told_after_a_lease_and_again(void **state)
{
    (void)state;
    heard_t heard = {0};
    world_t *w = world_running(1); /* collector/0 is process 1 */
    replicas_t *replicas = replicas_new(&w->clock, 5 * SECOND);
    replicas_started(replicas, TT_PEER_COLLECTOR, 0, 1);
    for (int i = 0; i < 40; i++) { /* as long as it speaks nothing is told */
        roster_heard(w->roster, roster_process(w->roster, TT_PEER_COLLECTOR, 0, 1));
        s_pass(w, replicas, &heard, 1000);
    }
    assert_int_equal(heard.told, 0);
    s_pass(w, replicas, &heard, 3750);
    assert_int_equal(heard.told, 0);
    s_pass(w, replicas, &heard, 500);
    assert_int_equal(heard.told, 1);
    assert_int_equal(heard.again, 0);
    assert_int_equal(heard.last.role, TT_PEER_COLLECTOR);
    assert_int_equal(heard.last.pid, 1);
    assert_true(heard.silent_s >= 5 && heard.silent_s < 5.6);
    s_pass(w, replicas, &heard, 4500);
    assert_int_equal(heard.told, 1);
    s_pass(w, replicas, &heard, 1000); /* nobody has ended it */
    assert_int_equal(heard.told, 2);
    assert_int_equal(heard.again, 1);
    replicas_ended(replicas, TT_PEER_COLLECTOR, 0, 999); /* another process */
    s_pass(w, replicas, &heard, 5000);
    assert_int_equal(heard.told, 3);
    replicas_ended(replicas, TT_PEER_COLLECTOR, 0, 1);
    s_pass(w, replicas, &heard, 60000);
    assert_int_equal(heard.told, 3);
    replicas_destroy(&replicas);
    world_end(w);
}

static void test_one_that_comes_back_has_a_lease_again(void **state)
{
    (void)state;
    heard_t heard = {0};
    world_t *w = world_running(1);
    replicas_t *replicas = replicas_new(&w->clock, 5 * SECOND);
    replicas_started(replicas, TT_PEER_COLLECTOR, 0, 1);
    s_pass(w, replicas, &heard, 6000);
    assert_int_equal(heard.told, 1);
    world_hello(w, TT_PEER_COLLECTOR, 0, 1); /* the controller was late: it runs again */
    s_pass(w, replicas, &heard, 4500);
    assert_int_equal(heard.told, 1);
    s_pass(w, replicas, &heard, 1000);
    assert_int_equal(heard.told, 2);
    assert_int_equal(heard.again, 0);
    replicas_destroy(&replicas);
    world_end(w);
}

static void test_one_that_never_comes_is_told_after_longer(void **state)
{
    (void)state;
    heard_t heard = {0};
    world_t *w = world_running(1);
    replicas_t *replicas = replicas_new(&w->clock, 5 * SECOND);
    replicas_started(replicas, TT_PEER_COLLECTOR, 1, 77);
    s_pass(w, replicas, &heard, 20000);
    replicas_started(replicas, TT_PEER_COLLECTOR, 1, 77); /* said again to a coordinator that knows it */
    s_pass(w, replicas, &heard, 9500);
    assert_int_equal(heard.told, 0);
    s_pass(w, replicas, &heard, 500);
    assert_int_equal(heard.told, 1);
    assert_int_equal(heard.last.index, 1);
    replicas_started(replicas, TT_PEER_COLLECTOR, 1, 78); /* its successor has its own time */
    s_pass(w, replicas, &heard, 29500);
    assert_int_equal(heard.told, 1);
    replicas_destroy(&replicas);
    world_end(w);
}

/*  We were stopped for an hour: their words lie unread, and who has drained has not had its lease. */
static void test_time_that_we_were_away_is_nobodys_silence(void **state)
{
    (void)state;
    heard_t heard = {0};
    world_t *w = world_running(1);
    replicas_t *replicas = replicas_new(&w->clock, 5 * SECOND);
    replicas_started(replicas, TT_PEER_COLLECTOR, 0, 1);
    replicas_started(replicas, TT_PEER_COLLECTOR, 1, 77);
    s_pass(w, replicas, &heard, 1000);
    roster_leave(w->roster, roster_process(w->roster, TT_PEER_COLLECTOR, 0, 1), PEER_DRAINED, "it has drained");
    tt_clock_turn(&w->clock, 3600 * SECOND);
    replicas_turn(replicas, w->roster, s_tell, &heard);
    s_pass(w, replicas, &heard, 3500);
    assert_int_equal(heard.told, 0);
    s_pass(w, replicas, &heard, 1500); /* it has left, and its process is still there */
    assert_int_equal(heard.told, 1);
    replicas_destroy(&replicas);
    world_end(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_silent_member_is_told_after_a_lease_and_again),
        cmocka_unit_test(test_one_that_comes_back_has_a_lease_again),
        cmocka_unit_test(test_one_that_never_comes_is_told_after_longer),
        cmocka_unit_test(test_time_that_we_were_away_is_nobodys_silence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
