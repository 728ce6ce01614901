/*  turn: orders and answers of rounds, and that whoever sleeps is woken. */
#include "collector/gym/turn.h"
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include "common/base/rng.h"
#include "tests/test.h"

enum { WORKERS = 3, ROUNDS = 4000, LOST_MS = 20000 };

static void test_rounds_are_counted(void **state)
{
    (void)state;
    gym_post_t post = {0};
    gym_bell_t bell = {0};
    gym_turn_t turn = {.post = &post, .bell = &bell, .slots = {2, 2}};
    assert_false(gym_turn_plays(&turn));
    assert_false(gym_turn_take(&turn));
    assert_false(gym_turn_ask(&turn, 1));
    assert_int_equal(post.asked[1], 1);
    assert_true(gym_turn_plays(&turn));
    assert_false(gym_turn_is_over(&turn));
    post.done[1] = 1;
    assert_true(gym_turn_is_over(&turn));
    assert_true(gym_turn_take(&turn));
    assert_int_equal(turn.came, 1);
    assert_false(gym_turn_plays(&turn));
    assert_false(gym_turn_take(&turn)); /* once */
}

/*  Where both halves are over, that which was not taken last is. */
static void test_halves_take_turns(void **state)
{
    (void)state;
    gym_post_t post = {0};
    gym_bell_t bell = {0};
    gym_turn_t turn = {.post = &post, .bell = &bell, .slots = {2, 2}};
    uint32_t taken[2] = {0};
    gym_turn_ask(&turn, 0);
    gym_turn_ask(&turn, 1);
    for (uint32_t n = 0; n < 10; n++) {
        post.done[0] = post.asked[0];
        post.done[1] = post.asked[1];
        assert_true(gym_turn_take(&turn));
        taken[turn.came]++;
        gym_turn_ask(&turn, turn.came);
    }
    assert_int_equal(taken[0], 5);
    assert_int_equal(taken[1], 5);
}

/*  Of one whose answer was taken nothing is awaited any more: a byte of its would come to a socket that nobody listens to. */
static void test_only_who_plays_is_awaited(void **state)
{
    (void)state;
    gym_post_t post[2] = {0};
    gym_bell_t bell = {0};
    gym_turn_t turn[2] = {{.post = &post[0], .bell = &bell}, {.post = &post[1], .bell = &bell}};
    gym_turn_ask(&turn[0], 0);
    gym_turn_ask(&turn[1], 0);
    for (int i = 0; i < 2; i++)
        gym_turn_sleep(&turn[i]);
    assert_true(post[0].collector_sleeps && post[1].collector_sleeps);
    for (int i = 0; i < 2; i++)
        gym_turn_wake(&turn[i]);
    post[0].done[0] = 1;
    assert_true(gym_turn_take(&turn[0]));
    for (int i = 0; i < 2; i++)
        gym_turn_sleep(&turn[i]);
    assert_false(post[0].collector_sleeps);
    assert_true(post[1].collector_sleeps);
}

/*  Who has not played yet, or plays long steps, is slept for. */
static void test_who_is_brisk(void **state)
{
    (void)state;
    assert_false(gym_turn_is_brisk(&(gym_turn_t){0}));
    assert_true(gym_turn_is_brisk(&(gym_turn_t){.step_ns = 40000}));
    assert_false(gym_turn_is_brisk(&(gym_turn_t){.step_ns = 400000}));
}

/* ---- nobody misses the other ---------------------------------------------------------------------------------------------- */

typedef struct {
    gym_post_t post;
    int socket[2]; /* ours, its */
    pthread_t thread;
    uint64_t seed;
} worker_t;

/*  None, a look or a thousand. */
static void s_idle(uint64_t seed, uint64_t n)
{
    uint32_t words[4];
    tt_draw(words, seed, TT_STREAM_TEST, 0, n);
    const uint32_t looks = words[0] % 4 == 0 ? words[1] % 1000 : words[1] % 3;
    for (volatile uint32_t i = 0; i < looks; i++)
        continue;
    if (words[2] % 8 == 0)
        sched_yield();
}

/*  As python/tutti_env/turn.py does it. */
static void s_await_order(worker_t *self)
{
    char byte;
    while (self->post.asked[0] == self->post.done[0]) {
        self->post.worker_sleeps = 1;
        if (self->post.asked[0] == self->post.done[0])
            assert_int_equal(read(self->socket[1], &byte, 1), 1);
        self->post.worker_sleeps = 0;
    }
}

static void *s_work(void *arg)
{
    worker_t *self = arg;
    for (uint64_t n = 0; n < ROUNDS; n++) {
        s_await_order(self);
        s_idle(self->seed, 2 * n);
        self->post.done[0] = self->post.asked[0];
        s_idle(self->seed, 2 * n + 1);
        if (self->post.collector_sleeps) {
            self->post.collector_sleeps = 0;
            assert_int_equal(write(self->socket[1], "w", 1), 1);
        }
    }
    return NULL;
}

/*  As gym_worker_wait does it: only those who play are listened to. */
static void s_await_answer(gym_turn_t *turn, worker_t *worker)
{
    struct pollfd fds[WORKERS];
    bool over = false;
    char bytes[64];
    for (int i = 0; i < WORKERS; i++) {
        gym_turn_sleep(&turn[i]);
        fds[i] = (struct pollfd){gym_turn_plays(&turn[i]) ? worker[i].socket[0] : -1, POLLIN, 0};
    }
    for (int i = 0; i < WORKERS; i++)
        over |= gym_turn_is_over(&turn[i]);
    assert_true(over || poll(fds, WORKERS, LOST_MS) > 0);
    for (int i = 0; i < WORKERS; i++) {
        gym_turn_wake(&turn[i]);
        while (fds[i].fd >= 0 && recv(fds[i].fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
            continue;
    }
}

static void test_nobody_misses_the_other(void **state)
{
    (void)state;
    static worker_t worker[WORKERS];
    gym_bell_t bell = {0};
    gym_turn_t turn[WORKERS];
    uint32_t left = WORKERS * ROUNDS;
    for (int i = 0; i < WORKERS; i++) {
        worker[i] = (worker_t){.seed = 7 + (uint64_t)i};
        turn[i] = (gym_turn_t){.post = &worker[i].post, .bell = &bell, .slots = {1, 0}};
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, worker[i].socket), 0);
        assert_int_equal(pthread_create(&worker[i].thread, NULL, s_work, &worker[i]), 0);
    }
    for (uint64_t n = 0; left; n++) {
        bool took = false;
        for (int i = 0; i < WORKERS; i++) {
            const bool over = gym_turn_take(&turn[i]);
            took |= over;
            left -= over;
            if (!gym_turn_plays(&turn[i]) && turn[i].asked[0] < ROUNDS && gym_turn_ask(&turn[i], 0))
                assert_int_equal(write(worker[i].socket[0], "w", 1), 1);
        }
        s_idle(1, n);
        if (!took && left)
            s_await_answer(turn, worker);
    }
    for (int i = 0; i < WORKERS; i++) {
        assert_int_equal(pthread_join(worker[i].thread, NULL), 0);
        close(worker[i].socket[0]);
        close(worker[i].socket[1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rounds_are_counted),
        cmocka_unit_test(test_halves_take_turns),
        cmocka_unit_test(test_only_who_plays_is_awaited),
        cmocka_unit_test(test_who_is_brisk),
        cmocka_unit_test(test_nobody_misses_the_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
