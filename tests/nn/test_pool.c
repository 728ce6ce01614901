/*  The pool: every lane once a round, results visible, many rounds; who waits for it hears that it gets on. */
#include "tests/test.h"
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "common/nn/cpu/pool.h"
#include "common/nn/device.h"

enum { LANES = 4, ROUNDS = 20000, PATIENCE_S = 20 };

typedef struct {
    uint64_t calls[LANES][16]; /* a cache line each */
    uint64_t round;
    uint32_t lanes_seen;
} seen_t;

static void s_count(void *ctx, uint32_t lane, uint32_t lanes)
{
    seen_t *seen = ctx;
    seen->calls[lane][0]++;
    seen->calls[lane][1] = seen->round; /* written by the caller before the round */
    if (lane == 0)
        seen->lanes_seen = lanes;
}

static void test_every_lane_once_a_round(void **state)
{
    (void)state;
    cpu_pool_t *pool = NULL;
    assert_ok(cpu_pool_new(&pool, LANES));
    seen_t seen = {0};
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        seen.round = round;
        cpu_pool_run(pool, s_count, &seen, TT_NO_PROGRESS);
        for (uint32_t lane = 0; lane < LANES; lane++) {
            assert_int_equal(seen.calls[lane][0], round);
            assert_int_equal(seen.calls[lane][1], round);
        }
    }
    assert_int_equal(seen.lanes_seen, LANES);
    cpu_pool_destroy(&pool);
    assert_null(pool);
}

static void test_one_lane_is_the_caller(void **state)
{
    (void)state;
    cpu_pool_t *pool = NULL;
    assert_ok(cpu_pool_new(&pool, 1));
    seen_t seen = {0};
    cpu_pool_run(pool, s_count, &seen, TT_NO_PROGRESS);
    assert_int_equal(seen.calls[0][0], 1);
    assert_int_equal(seen.lanes_seen, 1);
    cpu_pool_destroy(&pool);
}

typedef struct {
    cpu_pool_t *pool;
    pthread_t caller;
    sem_t heard;
    uint32_t told, others; /* others: told on another thread */
    bool missed;           /* a part that nobody heard of    */
} hearing_t;

static void s_on_part(void *ctx)
{
    hearing_t *self = ctx;
    self->told++;
    self->others += !pthread_equal(self->caller, pthread_self());
    sem_post(&self->heard);
}

static bool s_await_heard(hearing_t *self)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    return sem_timedwait(&self->heard, &until) == 0;
}

/*  The last lane has two parts; it goes on when somebody has heard of the one before, the first lane's or its own. */
static void s_tell(void *ctx, uint32_t lane, uint32_t lanes)
{
    hearing_t *self = ctx;
    if (lane == 0)
        cpu_pool_tell(self->pool, lane);
    for (int part = 0; lane == lanes - 1 && part < 2; part++) {
        self->missed |= !s_await_heard(self);
        cpu_pool_tell(self->pool, lane);
    }
}

/*  On the caller's thread alone, of its own part and of the last lane's, whose second one may end the round. */
static void test_the_caller_hears_of_every_lane(void **state)
{
    (void)state;
    for (uint32_t lanes = 1; lanes <= 3; lanes++) {
        hearing_t self = {.caller = pthread_self()};
        assert_ok(cpu_pool_new(&self.pool, lanes));
        assert_int_equal(sem_init(&self.heard, 0, 0), 0);
        cpu_pool_run(self.pool, s_tell, &self, (tt_progress_t){s_on_part, &self});
        assert_false(self.missed);
        assert_int_equal(self.others, 0);
        assert_in_range(self.told, lanes == 1 ? 3 : 2, 3);
        const uint32_t told = self.told;
        seen_t seen = {0};
        cpu_pool_run(self.pool, s_count, &seen, (tt_progress_t){s_on_part, &self});
        assert_int_equal(self.told, told); /* of a round that tells nothing */
        sem_destroy(&self.heard);
        cpu_pool_destroy(&self.pool);
    }
}

static void test_ends_while_workers_sleep_and_at_once(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++) {
        cpu_pool_t *pool = NULL;
        assert_ok(cpu_pool_new(&pool, 3));
        seen_t seen = {0};
        if (i % 2)
            cpu_pool_run(pool, s_count, &seen, TT_NO_PROGRESS);
        cpu_pool_destroy(&pool);
    }
}

/*  As with a limit on threads, which root has not: a stack that no address space has room for. */
static void test_a_thread_that_is_refused_is_said(void **state)
{
    (void)state;
    pthread_attr_t attr, before;
    cpu_pool_t *pool = NULL;
    tt_device_t *device = NULL;
    assert_int_equal(pthread_getattr_default_np(&before), 0);
    assert_int_equal(pthread_attr_init(&attr), 0);
    assert_int_equal(pthread_attr_setstacksize(&attr, (size_t)1 << 47), 0);
    assert_int_equal(pthread_setattr_default_np(&attr), 0);
    assert_int_equal(cpu_pool_new(&pool, 3), TT_OS);
    assert_non_null(strstr(tt_err_text(), "no thread 2 of 3"));
    assert_null(pool);
    assert_int_equal(tt_device_open(&device, "cpu", 0, 2), TT_OS);
    assert_int_equal(tt_device_open(&device, "cpu-strict", 0, 1), TT_OS); /* which has one for each device */
    assert_null(device);
    assert_int_equal(pthread_setattr_default_np(&before), 0);
    pthread_attr_destroy(&attr);
    assert_ok(cpu_pool_new(&pool, 3));
    cpu_pool_destroy(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_lane_once_a_round),
        cmocka_unit_test(test_one_lane_is_the_caller),
        cmocka_unit_test(test_the_caller_hears_of_every_lane),
        cmocka_unit_test(test_ends_while_workers_sleep_and_at_once),
        cmocka_unit_test(test_a_thread_that_is_refused_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
