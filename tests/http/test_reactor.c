/* The reactor: timers under a clock that the test turns, descriptors that come and go, waking. */
#include "common/http/reactor.h"
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
#include "common/base/mem.h"
#include "common/http/timers.h"
#include "tests/test.h"

static const int64_t s_ms = 1000000;

/* ---- timers ------------------------------------------------------------------------------------------------------ */

typedef struct {
    tt_reactor_t *loop;
    tt_clock_t clock;
    char order[64]; /* letters, as they fire */
    size_t count;
} times_t;

typedef struct {
    times_t *times;
    char letter;
    uint64_t other;   /* to be forgotten when this fires */
    int64_t again_ms; /* to be set anew */
} alarm_t;

static void s_on_alarm(void *ctx)
{
    alarm_t *alarm = ctx;
    alarm->times->order[alarm->times->count++] = alarm->letter;
    tt_reactor_forget_timer(alarm->times->loop, alarm->other);
    if (alarm->again_ms >= 0)
        tt_reactor_timer(alarm->times->loop, alarm->again_ms, s_on_alarm, alarm);
}

static void s_begin(times_t *times)
{
    times->clock = tt_clock_fake(5 * s_ms);
    assert_ok(tt_reactor_new(&times->loop, &times->clock));
}

static void test_timers_in_order(void **state)
{
    (void)state;
    times_t times = {0};
    s_begin(&times);
    alarm_t a = {&times, 'a', 0, -1}, b = {&times, 'b', 0, -1}, c = {&times, 'c', 0, -1}, d = {&times, 'd', 0, -1};
    tt_reactor_timer(times.loop, 30, s_on_alarm, &c);
    tt_reactor_timer(times.loop, 10, s_on_alarm, &a);
    tt_reactor_timer(times.loop, 10, s_on_alarm, &b); /* same time: as they were asked for */
    const uint64_t gone = tt_reactor_timer(times.loop, 20, s_on_alarm, &d);
    tt_reactor_forget_timer(times.loop, gone);
    tt_reactor_forget_timer(times.loop, gone);
    tt_reactor_forget_timer(times.loop, 0);
    assert_ok(tt_reactor_poll(times.loop, 0));
    assert_string_equal(times.order, "");
    tt_clock_turn(&times.clock, 10 * s_ms - 1);
    assert_ok(tt_reactor_poll(times.loop, 0));
    assert_string_equal(times.order, ""); /* not a nanosecond early */
    tt_clock_turn(&times.clock, 1);
    assert_ok(tt_reactor_poll(times.loop, 0));
    assert_string_equal(times.order, "ab");
    tt_clock_turn(&times.clock, 1000 * s_ms);
    assert_ok(tt_reactor_poll(times.loop, 1000000)); /* what is due is not waited for */
    assert_string_equal(times.order, "abc");
    tt_reactor_destroy(&times.loop);
    assert_null(times.loop);
}

static void test_a_timer_forgets_and_sets(void **state)
{
    (void)state;
    times_t times = {0};
    s_begin(&times);
    alarm_t again = {&times, 'x', 0, 0}, victim = {&times, 'v', 0, -1};
    tt_reactor_timer(times.loop, 0, s_on_alarm, &again);
    again.other = tt_reactor_timer(times.loop, 0, s_on_alarm, &victim); /* due in the same turn */
    assert_string_equal(times.order, "");                               /* never from within the call */
    assert_ok(tt_reactor_poll(times.loop, 0));
    assert_string_equal(times.order, "x"); /* set anew for 0 ms: the next turn, not this one */
    assert_ok(tt_reactor_poll(times.loop, 0));
    assert_string_equal(times.order, "xx");
    tt_reactor_destroy(&times.loop);
}

static void s_count(void *ctx)
{
    ++*(int *)ctx;
}

/* Against a plain list: ten thousand timers, a third of them forgotten again. */
static void test_ten_thousand_timers(void **state)
{
    (void)state;
    enum { N = 10000 };
    times_t times = {0};
    s_begin(&times);
    uint64_t *ids = tt_array0(N, sizeof *ids);
    int64_t *due = tt_array0(N, sizeof *due);
    int fired = 0;
    srandom(1);
    for (int i = 0; i < N; i++) {
        due[i] = random() % 1000;
        ids[i] = tt_reactor_timer(times.loop, due[i], s_count, &fired);
        assert_int_not_equal(ids[i], 0);
    }
    for (int i = 0; i < N; i += 3) {
        tt_reactor_forget_timer(times.loop, ids[i]);
        due[i] = -1;
    }
    for (int64_t now = 0; now < 1000; now += 50) {
        int expected = 0;
        for (int i = 0; i < N; i++)
            expected += due[i] >= 0 && due[i] <= now;
        assert_ok(tt_reactor_poll(times.loop, 0));
        assert_int_equal(fired, expected);
        tt_clock_turn(&times.clock, 50 * s_ms);
    }
    const int before = fired;
    tt_reactor_timer(times.loop, 0, s_count, &fired);
    for (int i = 0; i < N; i++)
        tt_reactor_forget_timer(times.loop, ids[i]); /* numbers of the past, whose slots have others now */
    assert_ok(tt_reactor_poll(times.loop, 0));
    assert_true(fired > before);
    tt_reactor_destroy(&times.loop);
    free(ids);
    free(due);
}

static void test_numbers_are_never_used_again(void **state)
{
    (void)state;
    times_t times = {0};
    s_begin(&times);
    int fired = 0;
    uint64_t last = 0;
    for (int i = 0; i < 1000; i++) {
        const uint64_t id = tt_reactor_timer(times.loop, 0, s_count, &fired);
        assert_true(id != last && id != 0);
        tt_reactor_forget_timer(times.loop, last);
        last = id;
        assert_ok(tt_reactor_poll(times.loop, 0));
        assert_int_equal(fired, i + 1);
    }
    tt_reactor_destroy(&times.loop);
}

static void test_far_away(void **state)
{
    (void)state;
    times_t times = {0};
    s_begin(&times);
    int fired = 0;
    tt_reactor_timer(times.loop, INT64_MAX, s_count, &fired);
    tt_reactor_timer(times.loop, -5, s_count, &fired); /* at once */
    assert_ok(tt_reactor_poll(times.loop, 0));
    assert_int_equal(fired, 1);
    tt_reactor_destroy(&times.loop);
}

/* ---- descriptors ------------------------------------------------------------------------------------------------- */

typedef struct {
    tt_reactor_t *loop;
    int count, forget; /* descriptor to forget; -1 = none */
} reader_t;

static void s_on_fd(void *ctx, int fd)
{
    reader_t *reader = ctx;
    char byte = 0;
    reader->count += read(fd, &byte, 1) == 1;
    if (reader->forget >= 0)
        tt_reactor_forget_fd(reader->loop, reader->forget);
}

static void test_readable(void **state)
{
    (void)state;
    tt_reactor_t *loop = NULL;
    assert_ok(tt_reactor_new(&loop, NULL));
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    reader_t reader = {.loop = loop, .forget = -1};
    tt_reactor_fd(loop, ends[0], s_on_fd, &reader);
    assert_ok(tt_reactor_poll(loop, 0));
    assert_int_equal(reader.count, 0);
    assert_int_equal(write(ends[1], "ab", 2), 2);
    assert_ok(tt_reactor_poll(loop, -1));
    assert_ok(tt_reactor_poll(loop, -1)); /* again, as long as something is there */
    assert_int_equal(reader.count, 2);
    assert_int_equal(write(ends[1], "c", 1), 1);
    tt_reactor_forget_fd(loop, ends[0]);
    tt_reactor_forget_fd(loop, ends[0]);
    assert_ok(tt_reactor_poll(loop, 0));
    assert_int_equal(reader.count, 2);
    tt_reactor_destroy(&loop);
    close(ends[0]);
    close(ends[1]);
}

static void s_on_letter(void *ctx, int fd)
{
    char byte = 0;
    assert_int_equal(read(fd, &byte, 1), 1);
    s_on_alarm(ctx);
}

/* Of one turn: what must not be believed any more, then what came, then what waited for that or did without. */
static void test_what_ends_a_belief_comes_before_what_is_ready(void **state)
{
    (void)state;
    times_t times = {0};
    s_begin(&times);
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    alarm_t before = {&times, 'b', 0, -1}, ready = {&times, 'r', 0, -1}, late = {&times, 'l', 0, -1},
            gone = {&times, 'g', 0, -1};
    tt_reactor_fd(times.loop, ends[0], s_on_letter, &ready);
    const uint64_t first = tt_reactor_timer(times.loop, 10, s_on_alarm, &late);
    const uint64_t second = tt_reactor_timer_before(times.loop, 20, s_on_alarm, &before);
    const uint64_t third = tt_reactor_timer_before(times.loop, 15, s_on_alarm, &gone);
    assert_true(first != second && first != third && second != third); /* of one count, whichever kind they are */
    tt_reactor_forget_timer(times.loop, third);
    assert_int_equal(write(ends[1], "x", 1), 1);
    tt_clock_turn(&times.clock, 20 * s_ms); /* as after a stop: all of it is due, and the pipe is full */
    assert_ok(tt_reactor_poll(times.loop, 0));
    assert_string_equal(times.order, "brl");
    tt_reactor_timer_before(times.loop, 5, s_on_alarm, &before);
    tt_clock_turn(&times.clock, 5 * s_ms);
    assert_ok(tt_reactor_poll(times.loop, 1000000)); /* what is due is not waited for */
    assert_string_equal(times.order, "brlb");
    tt_reactor_destroy(&times.loop);
    close(ends[0]);
    close(ends[1]);
}

/* Two are readable at once; the handler of either forgets the other: one call comes, not two. */
static void test_forgotten_in_the_same_turn(void **state)
{
    (void)state;
    tt_reactor_t *loop = NULL;
    assert_ok(tt_reactor_new(&loop, NULL));
    int a[2], b[2];
    assert_int_equal(pipe(a), 0);
    assert_int_equal(pipe(b), 0);
    reader_t first = {.loop = loop, .forget = b[0]}, second = {.loop = loop, .forget = a[0]};
    tt_reactor_fd(loop, a[0], s_on_fd, &first);
    tt_reactor_fd(loop, b[0], s_on_fd, &second);
    assert_int_equal(write(a[1], "x", 1), 1);
    assert_int_equal(write(b[1], "x", 1), 1);
    assert_ok(tt_reactor_poll(loop, 1000));
    assert_int_equal(first.count + second.count, 1);
    tt_reactor_destroy(&loop);
    for (int i = 0; i < 2; i++) {
        close(a[i]);
        close(b[i]);
    }
}

/* A number that is closed and given out anew is another descriptor. */
static void test_number_used_anew(void **state)
{
    (void)state;
    tt_reactor_t *loop = NULL;
    assert_ok(tt_reactor_new(&loop, NULL));
    reader_t reader = {.loop = loop, .forget = -1};
    for (int i = 1; i <= 3; i++) {
        int ends[2];
        assert_int_equal(pipe(ends), 0);
        tt_reactor_fd(loop, ends[0], s_on_fd, &reader);
        assert_int_equal(write(ends[1], "x", 1), 1);
        assert_ok(tt_reactor_poll(loop, 1000));
        assert_int_equal(reader.count, i);
        tt_reactor_forget_fd(loop, ends[0]);
        close(ends[0]);
        close(ends[1]);
    }
    tt_reactor_destroy(&loop);
}

/* ---- waking ------------------------------------------------------------------------------------------------------ */

static tt_reactor_t *s_woken;

static void s_on_signal(int number)
{
    (void)number;
    tt_reactor_wake(s_woken);
}

static void test_wake_from_a_signal(void **state)
{
    (void)state;
    assert_ok(tt_reactor_new(&s_woken, NULL));
    struct sigaction action = {.sa_handler = s_on_signal}, before;
    assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
    raise(SIGUSR1);
    assert_ok(tt_reactor_poll(s_woken, -1)); /* would wait for ever */
    assert_ok(tt_reactor_poll(s_woken, 0));
    sigaction(SIGUSR1, &before, NULL);
    tt_reactor_destroy(&s_woken);
}

static void *s_wake(void *ctx)
{
    tt_reactor_wake(ctx);
    return NULL;
}

static void test_wake_from_a_thread(void **state)
{
    (void)state;
    tt_reactor_t *loop = NULL;
    assert_ok(tt_reactor_new(&loop, NULL));
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, s_wake, loop), 0);
        assert_ok(tt_reactor_poll(loop, -1));
        pthread_join(thread, NULL);
    }
    tt_reactor_destroy(&loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_timers_in_order),
        cmocka_unit_test(test_a_timer_forgets_and_sets),
        cmocka_unit_test(test_ten_thousand_timers),
        cmocka_unit_test(test_numbers_are_never_used_again),
        cmocka_unit_test(test_far_away),
        cmocka_unit_test(test_readable),
        cmocka_unit_test(test_what_ends_a_belief_comes_before_what_is_ready),
        cmocka_unit_test(test_forgotten_in_the_same_turn),
        cmocka_unit_test(test_number_used_anew),
        cmocka_unit_test(test_wake_from_a_signal),
        cmocka_unit_test(test_wake_from_a_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
