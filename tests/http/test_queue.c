/*  queue: each key once, at most one work on it at a time, back-off and bucket by a clock that the test turns. */
#include "common/http/queue.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/base/rng.h"
#include "tests/test.h"

typedef struct {
    tt_clock_t clock;
    tt_reactor_t *loop;
    tt_queue_t *queue;
    char worked[4000]; /* keys in the order in which work on them began, with a space behind each */
    size_t count;
    bool finish, well; /* end the work at once, so */
} bench_t;

static void s_work(void *ctx, const char *key)
{
    bench_t *self = ctx;
    const size_t size = strlen(self->worked);
    snprintf(self->worked + size, sizeof self->worked - size, "%s ", key);
    self->count++;
    if (self->finish)
        tt_queue_done(self->queue, key, self->well);
}

static void s_new(bench_t *self, const tt_queue_opts_t *opts)
{
    *self = (bench_t){.clock = tt_clock_fake(1000000000), .well = true};
    assert_ok(tt_reactor_new(&self->loop, &self->clock));
    assert_ok(tt_queue_new(&self->queue, self->loop, opts, s_work, self));
}

static void s_free(bench_t *self)
{
    tt_queue_destroy(&self->queue);
    tt_reactor_destroy(&self->loop);
}

/*  Time goes on; everything that is due is done. */
static void s_after(bench_t *self, int64_t ms)
{
    tt_clock_turn(&self->clock, ms * 1000000);
    for (int i = 0; i < 5; i++)
        assert_ok(tt_reactor_poll(self->loop, 0));
}

static void s_assert_worked(bench_t *self, int64_t after_ms, const char *expected)
{
    s_after(self, after_ms);
    assert_string_equal(self->worked, expected);
    self->worked[0] = '\0';
}

static void test_each_once(void **state)
{
    (void)state;
    bench_t bench;
    s_new(&bench, NULL);
    tt_queue_add(bench.queue, "a");
    tt_queue_add(bench.queue, "b");
    tt_queue_add(bench.queue, "a");
    assert_int_equal(tt_queue_depth(bench.queue), 2);
    assert_string_equal(bench.worked, ""); /* not from within add */
    s_assert_worked(&bench, 0, "a b ");
    tt_queue_add(bench.queue, "a"); /* while it is worked on: again when that is done */
    tt_queue_add(bench.queue, "a");
    s_assert_worked(&bench, 1000, "");
    tt_queue_done(bench.queue, "a", true);
    tt_queue_done(bench.queue, "b", true);
    s_assert_worked(&bench, 0, "a ");
    tt_queue_done(bench.queue, "a", true);
    tt_queue_done(bench.queue, "a", true); /* nothing */
    tt_queue_done(bench.queue, "never", false);
    s_assert_worked(&bench, 100000, "");
    bench.finish = true; /* the key is good until the call is over */
    tt_queue_add(bench.queue, "c");
    s_assert_worked(&bench, 0, "c ");
    s_free(&bench);
}

static void test_workers_and_pause(void **state)
{
    (void)state;
    bench_t bench;
    s_new(&bench, &(tt_queue_opts_t){.workers = 2});
    tt_queue_pause(bench.queue, true);
    for (const char *key = "abc"; *key; key++)
        tt_queue_add(bench.queue, (char[]){*key, 0});
    s_assert_worked(&bench, 1000, "");
    tt_queue_pause(bench.queue, false);
    s_assert_worked(&bench, 0, "a b ");
    tt_queue_pause(bench.queue, true);
    tt_queue_done(bench.queue, "a", true);
    s_assert_worked(&bench, 0, "");
    assert_int_equal(tt_queue_depth(bench.queue), 1);
    tt_queue_pause(bench.queue, false);
    s_assert_worked(&bench, 0, "c ");
    s_free(&bench);
}

static void test_later(void **state)
{
    (void)state;
    bench_t bench;
    s_new(&bench, NULL);
    bench.finish = true;
    tt_queue_add_after(bench.queue, "a", 100);
    tt_queue_add_after(bench.queue, "a", 50); /* the earlier wins */
    tt_queue_add_after(bench.queue, "a", 80);
    s_assert_worked(&bench, 49, "");
    s_assert_worked(&bench, 1, "a ");
    s_assert_worked(&bench, 1000, "");
    tt_queue_add_after(bench.queue, "a", 100);
    tt_queue_add(bench.queue, "a");
    tt_queue_add_after(bench.queue, "a", 10); /* it waits already */
    s_assert_worked(&bench, 0, "a ");
    s_assert_worked(&bench, 1000, "");
    tt_queue_add_after(bench.queue, "a", 0);
    s_assert_worked(&bench, 0, "a ");
    bench.finish = false;
    tt_queue_add(bench.queue, "b");
    s_after(&bench, 0);
    tt_queue_add_after(bench.queue, "b", 10); /* due while it is worked on */
    s_assert_worked(&bench, 20, "b ");
    tt_queue_done(bench.queue, "b", true);
    s_assert_worked(&bench, 0, "b ");
    tt_queue_add_after(bench.queue, "b", 100); /* due after that: it stays */
    tt_queue_done(bench.queue, "b", true);
    s_assert_worked(&bench, 99, "");
    s_assert_worked(&bench, 1, "b ");
    s_free(&bench);
}

static void test_backoff(void **state)
{
    (void)state;
    bench_t bench;
    s_new(&bench, NULL);
    tt_queue_add(bench.queue, "a");
    s_assert_worked(&bench, 0, "a ");
    for (int64_t ms = 5; ms < 200000; ms *= 2) {
        const int64_t most = ms < 60000 ? ms : 60000;
        tt_queue_done(bench.queue, "a", false);
        assert_int_equal(tt_queue_depth(bench.queue), 0);
        assert_int_equal(tt_queue_failing(bench.queue), 1);
        s_assert_worked(&bench, most - 1, "");
        s_assert_worked(&bench, 2 + most / 10, "a ");
    }
    tt_queue_done(bench.queue, "a", false);
    tt_queue_add(bench.queue, "a"); /* something changed: no waiting */
    s_assert_worked(&bench, 0, "a ");
    tt_queue_done(bench.queue, "a", true); /* forgotten */
    assert_int_equal(tt_queue_failing(bench.queue), 0);
    tt_queue_add(bench.queue, "a");
    s_assert_worked(&bench, 0, "a ");
    tt_queue_done(bench.queue, "a", false);
    s_assert_worked(&bench, 4, "");
    s_assert_worked(&bench, 2, "a ");
    s_free(&bench);
}

/*  A hundred at once, then ten a second. */
static void test_bucket(void **state)
{
    (void)state;
    bench_t bench;
    s_new(&bench, NULL);
    char key[20];
    for (int i = 0; i < 200; i++) {
        sprintf(key, "%d", i);
        tt_queue_add(bench.queue, key);
    }
    s_after(&bench, 0);
    for (int i = 0; i < 200; i++) {
        sprintf(key, "%d", i);
        tt_queue_done(bench.queue, key, false);
    }
    bench.count = 0;
    s_after(&bench, 6);
    assert_int_equal(bench.count, 100);
    s_after(&bench, 5000 - 6 + 1);
    assert_in_range(bench.count, 149, 151);
    s_after(&bench, 5000);
    assert_int_equal(bench.count, 200);
    s_free(&bench);
}

/*  At random: no key is worked on twice at a time (tt_queue_done tells), none that was added is forgotten. */
typedef struct {
    tt_queue_t *queue;
    bool works[50], wanted[50];
} random_t;

static void s_random_work(void *ctx, const char *key)
{
    random_t *self = ctx;
    const int i = atoi(key);
    assert_false(self->works[i]);
    self->works[i] = true;
    self->wanted[i] = false;
}

static void test_at_random(void **state)
{
    (void)state;
    tt_clock_t clock = tt_clock_fake(0);
    tt_reactor_t *loop = NULL;
    random_t self = {0};
    assert_ok(tt_reactor_new(&loop, &clock));
    assert_ok(tt_queue_new(&self.queue, loop, &(tt_queue_opts_t){.workers = 7}, s_random_work, &self));
    for (uint64_t step = 0; step < 20000; step++) {
        uint32_t words[4];
        char key[20];
        tt_draw(words, 1, TT_STREAM_TEST, 3, step);
        const uint32_t i = tt_below(words[0], 50);
        sprintf(key, "%u", i);
        switch (tt_below(words[1], 6)) {
        case 0:
            tt_queue_add(self.queue, key);
            self.wanted[i] = true;
            break;
        case 1:
            tt_queue_add_after(self.queue, key, tt_below(words[2], 20));
            self.wanted[i] = true;
            break;
        case 2:
            tt_queue_pause(self.queue, words[2] & 1);
            break;
        case 3:
        case 4:
            if (self.works[i]) {
                self.works[i] = false;
                tt_queue_done(self.queue, key, words[2] & 1);
            }
            break;
        default:
            tt_clock_turn(&clock, 3000000);
            assert_ok(tt_reactor_poll(loop, 0));
        }
    }
    tt_queue_pause(self.queue, false);
    for (int round = 0; round < 1000; round++) {
        for (int i = 0; i < 50; i++) {
            char key[20];
            sprintf(key, "%d", i);
            if (self.works[i]) {
                self.works[i] = false;
                tt_queue_done(self.queue, key, true);
            }
        }
        tt_clock_turn(&clock, 1000000000);
        assert_ok(tt_reactor_poll(loop, 0));
    }
    for (int i = 0; i < 50; i++)
        assert_false(self.wanted[i] || self.works[i]);
    assert_int_equal(tt_queue_depth(self.queue), 0);
    tt_queue_destroy(&self.queue);
    tt_reactor_destroy(&loop);
}

/*  In the bucket of so many, and none in another. */
static void s_assert_histogram(const tt_histogram_t *histogram, size_t bucket, uint64_t count, double sum)
{
    assert_int_equal(histogram->counts[bucket], count);
    assert_int_equal(histogram->count, count);
    assert_float_equal(histogram->sum, sum, 1e-6);
}

/*  Waiting counts from the adding, also of a key that comes again, and working till it is done. */
static void test_numbers(void **state)
{
    (void)state;
    bench_t bench;
    s_new(&bench, NULL);
    const tt_queue_stats_t *stats = tt_queue_stats(bench.queue);
    tt_queue_pause(bench.queue, true);
    tt_queue_add(bench.queue, "a");
    tt_queue_add(bench.queue, "a"); /* waits already */
    s_after(&bench, 500);
    assert_int_equal(stats->adds, 1);
    assert_int_equal(stats->wait.count, 0);
    tt_queue_pause(bench.queue, false);
    s_after(&bench, 0);
    s_assert_histogram(&stats->wait, 8, 1, 0.5); /* over 0.1, up to 1 */
    tt_queue_add(bench.queue, "a");              /* while it is worked on */
    tt_queue_add(bench.queue, "a");
    assert_int_equal(stats->adds, 2);
    s_after(&bench, 20000);
    tt_queue_done(bench.queue, "a", false);
    s_assert_histogram(&stats->work, 10, 1, 20); /* over the last bound */
    assert_int_equal(stats->retries, 1);
    s_after(&bench, 0);
    assert_int_equal(stats->wait.counts[10], 1);
    assert_float_equal(stats->wait.sum, 20.5, 1e-6);
    tt_queue_done(bench.queue, "a", true);
    assert_int_equal(stats->work.counts[0], 1); /* no time at all */
    assert_int_equal(stats->retries, 1);
    s_free(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_once), cmocka_unit_test(test_workers_and_pause),
        cmocka_unit_test(test_later), cmocka_unit_test(test_backoff), cmocka_unit_test(test_bucket),
        cmocka_unit_test(test_at_random), cmocka_unit_test(test_numbers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
