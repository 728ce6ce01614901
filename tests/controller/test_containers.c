/*  Containers that belong together, against a substrate in memory and a clock that the test turns. */
#include "controller/containers.h"
#include "tests/test.h"
#include <string.h>

enum { MOST = 64 };

typedef struct {
    tt_substrate_t base;
    tt_clock_t clock;
    tt_containers_t all;
    size_t of[MOST];    /* of[id]: the container that is replica id */
    int grace_ms[MOST]; /* that it was given when it was asked to end; -1 = it was not */
    size_t started;
    bool refuse;
} rig_t;

static tt_status_t s_stop(tt_substrate_t *base, tt_replica_id_t id, int grace_ms)
{
    ((rig_t *)base)->grace_ms[id] = grace_ms;
    return TT_OK;
}

static const tt_substrate_ops_t s_ops = {.stop = s_stop};

static tt_status_t s_start(void *ctx, size_t index, tt_replica_id_t *id)
{
    rig_t *rig = ctx;
    if (rig->refuse)
        return tt_err(TT_NOT_FOUND, "no such program");
    *id = ++rig->started;
    rig->of[*id] = index;
    rig->grace_ms[*id] = -1;
    return TT_OK;
}

/*  Of init containers first: 's' a sidecar, 'i' another; then 'a' always, 'f' on failure, 'n' never. */
static void s_open(rig_t *rig, const char *kinds)
{
    *rig = (rig_t){.base = {&s_ops}, .clock = tt_clock_fake(1000)};
    tt_containers_init(&rig->all, strlen(kinds), &rig->base, &rig->clock);
    for (size_t i = 0; kinds[i]; i++) {
        rig->all.list[i].init = kinds[i] == 's' || kinds[i] == 'i';
        rig->all.list[i].restart = kinds[i] == 's' || kinds[i] == 'a' ? TT_RESTART_ALWAYS
                                   : kinds[i] == 'n'                  ? TT_RESTART_NEVER
                                                                      : TT_RESTART_ON_FAILURE;
    }
}

static bool s_step(rig_t *rig)
{
    return tt_containers_step(&rig->all, s_start, rig);
}

static void s_after(rig_t *rig, int64_t ms)
{
    tt_clock_turn(&rig->clock, ms * 1000000);
    s_step(rig);
}

static void s_end(rig_t *rig, size_t index, int code)
{
    assert_int_equal(rig->all.list[index].state, TT_CONTAINER_RUNNING);
    const tt_replica_event_t event = {.id = rig->all.list[index].id, .exit_code = code};
    assert_int_equal(tt_containers_ended(&rig->all, &event), index);
    s_step(rig);
}

static void s_assert_states(const rig_t *rig, const char *states) /* n, r, w, e */
{
    for (size_t i = 0; i < rig->all.count; i++)
        assert_int_equal("nrwe"[rig->all.list[i].state], states[i]);
}

static void s_close(rig_t *rig)
{
    tt_containers_clear(&rig->all);
}

static void test_order(void **state)
{
    (void)state;
    rig_t rig;
    s_open(&rig, "isiaa");
    assert_int_equal(tt_containers_phase(&rig.all), TT_JOB_PENDING);
    assert_true(s_step(&rig));
    s_assert_states(&rig, "rnnnn");
    s_end(&rig, 0, 0); /* the sidecar begins, and who comes behind it does not wait for its end */
    s_assert_states(&rig, "errnn");
    assert_int_equal(tt_containers_phase(&rig.all), TT_JOB_PENDING);
    assert_false(tt_containers_ready(&rig.all));
    s_end(&rig, 2, 0);
    s_assert_states(&rig, "ererr");
    assert_int_equal(tt_containers_phase(&rig.all), TT_JOB_RUNNING);
    assert_true(tt_containers_ready(&rig.all));
    assert_int_equal(tt_containers_running(&rig.all), 3);
    assert_false(s_step(&rig));
    s_close(&rig);
}

static void test_an_init_container_that_fails(void **state)
{
    (void)state;
    rig_t rig;
    s_open(&rig, "in");
    rig.all.list[0].restart = TT_RESTART_NEVER;
    s_step(&rig);
    s_end(&rig, 0, 1);
    s_assert_states(&rig, "en");
    assert_int_equal(tt_containers_phase(&rig.all), TT_JOB_FAILED);
    s_close(&rig);
}

static void test_back_off(void **state)
{
    (void)state;
    static const int64_t waits[] = {0, 1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000};
    rig_t rig;
    s_open(&rig, "a");
    s_step(&rig);
    for (size_t i = 0; i < TT_COUNT(waits); i++) {
        const tt_replica_event_t event = {.id = rig.all.list[0].id, .exit_code = 1};
        tt_containers_ended(&rig.all, &event);
        assert_int_equal(rig.all.list[0].restarts, i + 1);
        assert_int_equal(tt_containers_due_ms(&rig.all), waits[i]);
        assert_int_equal(tt_containers_phase(&rig.all), TT_JOB_RUNNING);
        if (waits[i]) {
            s_after(&rig, waits[i] - 1);
            s_assert_states(&rig, "w");
            s_after(&rig, 1);
        } else {
            s_step(&rig);
        }
        s_assert_states(&rig, "r");
        assert_int_equal(tt_containers_due_ms(&rig.all), -1);
    }
    s_after(&rig, 60000); /* a minute makes it new, and a clean end is one, too */
    s_end(&rig, 0, 0);
    s_assert_states(&rig, "r");
    s_close(&rig);
}

static void test_policies(void **state)
{
    (void)state;
    rig_t rig;
    s_open(&rig, "afn");
    s_step(&rig);
    for (size_t i = 0; i < 3; i++)
        s_end(&rig, i, 0);
    s_assert_states(&rig, "ree");
    s_close(&rig);
    s_open(&rig, "fn");
    s_step(&rig);
    s_end(&rig, 0, 3);
    s_end(&rig, 1, 3);
    s_assert_states(&rig, "re");
    s_end(&rig, 0, 0); /* waits for nothing: it has ended well */
    s_assert_states(&rig, "ee");
    assert_int_equal(tt_containers_phase(&rig.all), TT_JOB_FAILED);
    s_close(&rig);
}

static void test_sidecars_go_last(void **state)
{
    (void)state;
    rig_t rig;
    s_open(&rig, "sn");
    s_step(&rig);
    s_assert_states(&rig, "rr");
    const tt_replica_id_t sidecar = rig.all.list[0].id;
    s_end(&rig, 1, 0);
    assert_int_equal(rig.grace_ms[sidecar], 30000);
    assert_int_equal(tt_containers_phase(&rig.all), TT_JOB_SUCCEEDED);
    s_end(&rig, 0, 143); /* as it was asked to: nobody's failure, and no reason to begin again */
    s_assert_states(&rig, "ee");
    assert_int_equal(tt_containers_phase(&rig.all), TT_JOB_SUCCEEDED);
    s_close(&rig);
}

static void test_one_that_cannot_be_started(void **state)
{
    (void)state;
    rig_t rig;
    s_open(&rig, "a");
    rig.refuse = true;
    assert_true(s_step(&rig));
    s_assert_states(&rig, "e");
    assert_int_equal(rig.all.list[0].exit_code, 128);
    assert_int_equal(tt_containers_phase(&rig.all), TT_JOB_FAILED);
    rig.refuse = false;
    s_after(&rig, 1000000);
    assert_int_equal(rig.started, 0);
    s_close(&rig);
}

static void test_stop(void **state)
{
    (void)state;
    rig_t rig;
    s_open(&rig, "aa");
    s_step(&rig);
    s_end(&rig, 1, 1);
    s_end(&rig, 1, 1);
    s_assert_states(&rig, "rw");
    tt_containers_stop(&rig.all, 3000, 7000);
    assert_int_equal(tt_containers_due_ms(&rig.all), 100);
    s_after(&rig, 2999);
    assert_int_equal(rig.grace_ms[rig.all.list[0].id], -1);
    s_after(&rig, 1);
    assert_int_equal(rig.grace_ms[rig.all.list[0].id], 7000);
    s_assert_states(&rig, "rw");
    tt_containers_stop(&rig.all, 0, 0); /* a shorter time holds from now on */
    assert_int_equal(rig.grace_ms[rig.all.list[0].id], 0);
    s_end(&rig, 0, 137);
    s_assert_states(&rig, "ew");
    assert_int_equal(tt_containers_running(&rig.all), 0);
    s_close(&rig);
}

static void test_ends_of_others(void **state)
{
    (void)state;
    rig_t rig;
    s_open(&rig, "n");
    s_step(&rig);
    assert_int_equal(tt_containers_ended(&rig.all, &(tt_replica_event_t){.id = 99}), 1);
    s_end(&rig, 0, 0);
    assert_int_equal(tt_containers_ended(&rig.all, &(tt_replica_event_t){.id = 0}), 1);
    s_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_order),
        cmocka_unit_test(test_an_init_container_that_fails), cmocka_unit_test(test_back_off),
        cmocka_unit_test(test_policies), cmocka_unit_test(test_sidecars_go_last),
        cmocka_unit_test(test_one_that_cannot_be_started), cmocka_unit_test(test_stop),
        cmocka_unit_test(test_ends_of_others)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
