/*  Which versions are due, who plays them when, and what becomes of a game that nobody wants any more. The player is the test's: it
 *  plays until it is let go. */
#include "learner/evaluate.h"
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "common/base/mem.h"
#include "tests/test.h"

enum { PARAMS = 3, NORM = 9, WAIT_MS = 30000 };

typedef struct {
    evaluate_t *evaluate;
    publish_t *publish;
    uint64_t newest;
} stage_t;

/*  The game: it waits at a gate, step by step, as long as it is shut. */
static pthread_mutex_t s_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t s_changed = PTHREAD_COND_INITIALIZER;
static bool s_shut, s_hangs, s_fails, s_diverged;
static unsigned s_games;

static bool s_wait_at_gate(const evaluate_game_t *game)
{
    bool on = true;
    s_games++;
    pthread_cond_broadcast(&s_changed);
    while (s_hangs || (s_shut && on)) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 1000000; /* so that the stop is seen */
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&s_changed, &s_mutex, &until);
        on = s_hangs || game->watch(game->watch_ctx, 1);
    }
    return on;
}

static tt_status_t s_play(const evaluate_game_t *game, evaluate_result_t *out)
{
    pthread_mutex_lock(&s_mutex);
    const bool on = s_wait_at_gate(game), fails = s_fails, diverged = s_diverged;
    pthread_mutex_unlock(&s_mutex);
    if (!on)
        return tt_err(TT_STOPPED, "stopped");
    if (fails)
        return tt_err(TT_INTERNAL, "the env is broken");
    if (diverged)
        return tt_err(TT_DIVERGED, "nan");
    *out = (evaluate_result_t){.mean = (double)game->params[0] + game->norm[0], .length = game->train->eval.episodes};
    return TT_OK;
}

static void s_gate(bool shut)
{
    pthread_mutex_lock(&s_mutex);
    s_shut = shut;
    pthread_cond_broadcast(&s_changed);
    pthread_mutex_unlock(&s_mutex);
}

static void s_await_games(unsigned count)
{
    pthread_mutex_lock(&s_mutex);
    while (s_games < count)
        pthread_cond_wait(&s_changed, &s_mutex);
    pthread_mutex_unlock(&s_mutex);
}

/*  A batch has 2 x 50 = 100 steps. */
static void s_open(stage_t *self, uint64_t every)
{
    static tt_train_cfg_t train;
    train = (tt_train_cfg_t){.num_envs = 2, .num_steps = 50, .eval = {.every = every, .episodes = 7}};
    snprintf(train.space.obs, sizeof train.space.obs, "float32[4]");
    snprintf(train.space.action, sizeof train.space.action, "discrete(2)");
    const evaluate_cfg_t cfg = {.play = s_play, .train = &train, .params = PARAMS, .norm = NORM};
    const publish_cfg_t publish = {.params = PARAMS, .norm = NORM, .reward = 3, .keep = 2};
    *self = (stage_t){.publish = publish_new(&publish)};
    s_shut = s_hangs = s_fails = s_diverged = false;
    s_games = 0;
    assert_ok(evaluate_new(&self->evaluate, &cfg));
}

static void s_close(stage_t *self)
{
    s_gate(false);
    evaluate_destroy(&self->evaluate);
    publish_destroy(&self->publish);
}

static void s_make(stage_t *self, uint64_t upto)
{
    while (self->newest < upto) {
        version_t *version = publish_add(self->publish, ++self->newest);
        version_params(version)[0] = (float)self->newest;
        version_norm(version)[0] = 0.5;
        evaluate_keep(self->evaluate, version);
    }
}

static tt_status_t s_await(stage_t *self, tt_snapshot_version_t *version, evaluate_result_t *result)
{
    struct pollfd fd = {.fd = evaluate_fd(self->evaluate), .events = POLLIN};
    uint64_t rung;
    assert_int_equal(poll(&fd, 1, WAIT_MS), 1);
    assert_int_equal(read(fd.fd, &rung, sizeof rung), sizeof rung);
    return evaluate_take(self->evaluate, version, result);
}

/*  The oldest outstanding is this one, and comes out as it should. */
static void s_plays(stage_t *self, uint64_t wanted)
{
    tt_snapshot_version_t version;
    evaluate_result_t result;
    assert_ok(evaluate_begin(self->evaluate));
    assert_ok(s_await(self, &version, &result));
    assert_int_equal(version.version, wanted);
    assert_true(version.params[0] == (float)wanted && result.mean == (double)wanted + 0.5);
    assert_true(result.length == 7);
    evaluate_done(self->evaluate);
}

static void test_what_is_due(void **state)
{
    (void)state;
    static const struct {
        uint64_t every, due[4];
    } cases[] = {{300, {3, 6, 9, 12}}, {250, {3, 5, 8, 10}}, {100, {1, 2, 3, 4}}, {1, {1, 2, 3, 4}}};
    for (size_t i = 0; i < TT_COUNT(cases); i++) {
        stage_t stage;
        s_open(&stage, cases[i].every);
        for (size_t k = 0; k < TT_COUNT(cases[i].due); k++) {
            s_make(&stage, cases[i].due[k] - 1);
            assert_int_equal(evaluate_outstanding(stage.evaluate), 0);
            s_make(&stage, cases[i].due[k]);
            assert_int_equal(evaluate_outstanding(stage.evaluate), 1);
            s_plays(&stage, cases[i].due[k]);
        }
        s_close(&stage);
    }
}

/*  The publisher has let go of them; who does not play keeps the newest two. */
static void test_the_oldest_is_played_first(void **state)
{
    (void)state;
    stage_t stage;
    s_open(&stage, 1000);
    s_make(&stage, 45);
    assert_int_equal(evaluate_outstanding(stage.evaluate), 2);
    s_plays(&stage, 30);
    s_plays(&stage, 40);
    assert_int_equal(evaluate_outstanding(stage.evaluate), 0);
    assert_ok(evaluate_begin(stage.evaluate));
    tt_snapshot_version_t version;
    evaluate_result_t result;
    assert_int_equal(evaluate_take(stage.evaluate, &version, &result), TT_AGAIN);
    s_close(&stage);
}

static void test_one_at_a_time(void **state)
{
    (void)state;
    stage_t stage;
    tt_snapshot_version_t version;
    evaluate_result_t result;
    char text[96];
    s_open(&stage, 100);
    s_make(&stage, 2);
    s_gate(true);
    assert_ok(evaluate_begin(stage.evaluate));
    assert_ok(evaluate_begin(stage.evaluate));
    s_await_games(1);
    assert_int_equal(evaluate_take(stage.evaluate, &version, &result), TT_AGAIN);
    assert_string_equal(strstr(evaluate_doing(stage.evaluate, text, sizeof text), "version 1"), text);
    s_gate(false);
    assert_ok(s_await(&stage, &version, &result));
    assert_int_equal(version.version, 1);
    evaluate_done(stage.evaluate);
    s_plays(&stage, 2);
    s_close(&stage);
}

/*  A new era while a game is in hand: it ends, its result does not count, and the next one is of the new era. */
static void test_a_reset_forgets(void **state)
{
    (void)state;
    stage_t stage;
    tt_snapshot_version_t version;
    evaluate_result_t result;
    s_open(&stage, 100);
    s_make(&stage, 1);
    s_gate(true);
    assert_ok(evaluate_begin(stage.evaluate));
    s_await_games(1);
    evaluate_reset(stage.evaluate);
    assert_int_equal(evaluate_outstanding(stage.evaluate), 0);
    assert_int_equal(s_await(&stage, &version, &result), TT_AGAIN);
    s_gate(false);
    s_make(&stage, 2);
    s_plays(&stage, 2);
    s_close(&stage);
}

static void test_a_failure_is_told(void **state)
{
    (void)state;
    stage_t stage;
    tt_snapshot_version_t version;
    evaluate_result_t result;
    s_open(&stage, 100);
    s_fails = true;
    s_make(&stage, 1);
    assert_ok(evaluate_begin(stage.evaluate));
    assert_int_equal(s_await(&stage, &version, &result), TT_INTERNAL);
    assert_string_equal(tt_err_text(), "evaluation of version 1: the env is broken");
    s_close(&stage);
}

static void test_a_policy_that_diverged(void **state)
{
    (void)state;
    stage_t stage;
    tt_snapshot_version_t version;
    evaluate_result_t result;
    s_open(&stage, 100);
    s_diverged = true;
    s_make(&stage, 1);
    assert_ok(evaluate_begin(stage.evaluate));
    assert_int_equal(s_await(&stage, &version, &result), TT_DIVERGED);
    assert_non_null(
        strstr(tt_err_text(), "training has diverged: evaluation of version 1: nan; lower algorithm.learning_rate, "));
    s_close(&stage);
}

/*  What is outstanding travels with a snapshot, the one in play included. */
static void test_a_snapshot_has_what_is_outstanding(void **state)
{
    (void)state;
    stage_t one, other;
    tt_snapshot_t snapshot = {0};
    s_open(&one, 100);
    s_make(&one, 2);
    evaluate_capture(one.evaluate, &snapshot);
    assert_int_equal(snapshot.waitings, 2);
    s_open(&other, 100);
    evaluate_restore(other.evaluate, &snapshot);
    s_close(&one);
    s_plays(&other, 1);
    s_plays(&other, 2);
    snapshot.waitings = 0;
    evaluate_restore(other.evaluate, &snapshot);
    assert_int_equal(evaluate_outstanding(other.evaluate), 0);
    s_close(&other);
}

/*  An environment that never comes back: the learner ends all the same. What it uses stays behind, and so does the thread. */
static void test_a_hung_game_is_left_behind(void **state)
{
    (void)state;
    stage_t stage;
    s_open(&stage, 100);
    s_make(&stage, 1);
    s_hangs = true;
    assert_ok(evaluate_begin(stage.evaluate));
    s_await_games(1);
    evaluate_destroy(&stage.evaluate);
    assert_null(stage.evaluate);
    publish_destroy(&stage.publish);
}

/*  The system lets us have no thread: said, and nothing is lost. (A stack that no address space has room for.) */
static void test_a_thread_that_is_refused_is_said(void **state)
{
    (void)state;
    stage_t stage;
    pthread_attr_t attr, before;
    s_open(&stage, 300);
    s_make(&stage, 3);
    assert_int_equal(pthread_getattr_default_np(&before), 0);
    assert_int_equal(pthread_attr_init(&attr), 0);
    assert_int_equal(pthread_attr_setstacksize(&attr, (size_t)1 << 47), 0);
    assert_int_equal(pthread_setattr_default_np(&attr), 0);
    assert_int_equal(evaluate_begin(stage.evaluate), TT_OS);
    assert_non_null(strstr(tt_err_text(), "no thread to evaluate in"));
    assert_int_equal(pthread_setattr_default_np(&before), 0);
    pthread_attr_destroy(&attr);
    assert_int_equal(evaluate_outstanding(stage.evaluate), 1);
    s_plays(&stage, 3);
    s_close(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_due), cmocka_unit_test(test_the_oldest_is_played_first),
        cmocka_unit_test(test_one_at_a_time), cmocka_unit_test(test_a_reset_forgets),
        cmocka_unit_test(test_a_failure_is_told), cmocka_unit_test(test_a_policy_that_diverged),
        cmocka_unit_test(test_a_snapshot_has_what_is_outstanding),
        cmocka_unit_test(test_a_thread_that_is_refused_is_said),
        cmocka_unit_test(test_a_hung_game_is_left_behind), /* last: its thread lives on */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
