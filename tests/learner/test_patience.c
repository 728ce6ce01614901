/*  How long a learner waits, and for whom: a whole one, by a clock that the test turns. */
#include <jansson.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "common/base/mem.h"
#include "common/base/signals.h"
#include "common/nn/safetensors.h"
#include "common/snapshot/snapshot.h"
#include "learner/learner.h"
#include "tests/fake/collector.h"
#include "tests/fake/learner.h"
#include "tests/fake/role.h"
#include "tests/learner/segments.h"

enum { STALL_S = 60, LEASE_S = 5, DRAIN_S = 5, FAREWELL_S = 60 };

typedef struct {
    fake_coordinator_t run;
    fake_collector_t collector;
    tt_columns_t *columns;
    fake_role_t learner;
    int signals;
    int snapshots;
    char failed[512], finished[4096]; /* texts of EVENTs */
} stage_t;

static pthread_mutex_t s_hanging = PTHREAD_MUTEX_INITIALIZER, s_syncing = PTHREAD_MUTEX_INITIALIZER;
static stage_t s_stage; /* a test that fails leaves the learner's thread behind */

static atomic_bool s_stuck; /* the learner waits for one of them */

/*  The disk's, of the learner: they come back when the test lets them. */
static void s_hang(int fd, pthread_mutex_t *mutex)
{
    char link[64], path[512] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (readlink(link, path, sizeof path - 1) < 0 || !strstr(path, ".safetensors.tutti-"))
        return;
    s_stuck = true;
    pthread_mutex_lock(mutex);
    s_stuck = false;
    pthread_mutex_unlock(mutex);
}

/*  What the test in hand holds up. */
static bool s_held[2];

static void s_hold(pthread_mutex_t *mutex)
{
    pthread_mutex_lock(mutex);
    s_held[mutex == &s_syncing] = true;
}

static void s_let(pthread_mutex_t *mutex)
{
    if (s_held[mutex == &s_syncing])
        pthread_mutex_unlock(mutex);
    s_held[mutex == &s_syncing] = false;
}

/*  One that fails holds up none of those behind it. */
static int s_let_all(void **state)
{
    (void)state;
    s_let(&s_hanging);
    s_let(&s_syncing);
    return 0;
}

ssize_t write(int fd, const void *data, size_t size)
{
    if (size > 1000)
        s_hang(fd, &s_hanging);
    return syscall(SYS_write, fd, data, size);
}

int fsync(int fd)
{
    s_hang(fd, &s_syncing);
    return (int)syscall(SYS_fsync, fd);
}

static void s_on_event(void *ctx, const tt_msg_EVENT_t *event)
{
    stage_t *self = ctx;
    self->snapshots += strcmp(event->kind, "snapshot") == 0;
    if (strcmp(event->kind, "failed") == 0)
        snprintf(self->failed, sizeof self->failed, "%s", event->text);
    if (strcmp(event->kind, "finished") == 0)
        snprintf(self->finished, sizeof self->finished, "%s", event->text);
}

static void s_on_roster(void *ctx)
{
    fake_collector_attach(&((stage_t *)ctx)->collector);
}

static void s_on_turn(void *ctx)
{
    fake_collector_feed(&((stage_t *)ctx)->collector);
}

/*  An environment that does not come back until the test lets it go. */
static tt_status_t s_play_for_ever(const evaluate_game_t *game, evaluate_result_t *out)
{
    (void)game;
    pthread_mutex_lock(&s_hanging);
    pthread_mutex_unlock(&s_hanging);
    *out = (evaluate_result_t){0};
    return TT_OK;
}

static tt_status_t s_learn(const tt_location_t *location, int signals_fd)
{
    return learner_run(location, signals_fd, s_play_for_ever);
}

#define PPO "algorithm: {name: ppo, epochs: 1, minibatches: 1}\n"
/*  Of whose replay there is a file as soon as it is saved. */
#define DQN                                                                                             \
    "algorithm: {name: dqn, batch_size: 4, learning_starts: 32, train_every: 16, epsilon_steps: 100}\n" \
    "actor: {kind: argmax, epsilon: 1, epsilon_end: 0.05, epsilon_rows: 100, random_rows: 32}\n"        \
    "replay: {capacity: 1024}\n"

/*  A learner that is alone in the first roster, has trained `updates` batches and waits for the next. */
static stage_t *s_open_with(const char *algorithm, const char *more, uint64_t updates)
{
    stage_t *self = &s_stage;
    memset(self, 0, sizeof *self);
    fake_collector_t *plays = &self->collector;
    plays->N = 4;
    plays->T = 8;
    plays->columns = self->columns =
        made_columns_of("float32[4]", "discrete(2)", false, strcmp(algorithm, PPO) == 0); /* of values */
    plays->S = 8;
    fake_open(&self->run, tt_sprintf("name: patience\nenv: CartPole-v1\nnum_envs: 4\nnum_steps: 8\nlag: 0\nseed: 5\n"
                                     "space: {obs: \"float32[4]\", action: discrete(2), env_state: 8}\n"
                                     "network: {hidden: [8]}\nlearner: {shards: 2}\n"
                                     "%snet: {stall_s: %d}\n%s",
                              algorithm, STALL_S, more));
    self->run.lease_ms = 600000; /* nobody here is silent */
    self->run.on_event = s_on_event;
    self->run.on_roster = s_on_roster;
    self->run.on_turn = s_on_turn;
    self->run.ctx = self;
    fake_collector_open(plays, &self->run);
    plays->gate = updates;
    assert_ok(tt_signals_open(&self->signals));
    fake_role_start(&self->learner, &self->run, TT_PEER_LEARNER, s_learn, self->signals);
    fake_until(&self->run, self->learner.member->hello, "HELLO");
    fake_in(&self->run, self->learner.member);
    fake_roster(&self->run, true, NULL);
    fake_until(&self->run, fake_collector_to(plays, self->learner.member)->upto == updates + 1, "so many updates");
    return self;
}

static stage_t *s_open(const char *more, uint64_t updates)
{
    return s_open_with(PPO, more, updates);
}

static void s_close(stage_t *self)
{
    fake_role_stop(&self->learner);
    close(self->signals);
    fake_collector_close(&self->collector);
    fake_close(&self->run);
    tt_columns_destroy(&self->columns);
}

static void s_pass(stage_t *self, int seconds)
{
    fake_role_pass(&self->learner, seconds * INT64_C(1000));
    assert_false(self->learner.ended);
}

/*  So much time that it ends by itself. */
static void s_pass_to_the_end(stage_t *self, int seconds)
{
    tt_clock_turn(&self->learner.clock, seconds * INT64_C(1000000000));
    fake_until(&self->run, self->learner.ended, "its end");
}

/*  The coordinator is not there to say whether the collectors get on. */
static void test_nothing_moves(void **state)
{
    (void)state;
    stage_t *self = s_open("", 0);
    self->run.mute = true;
    s_pass(self, STALL_S); /* an answer from before may still be under way, and be heard after it */
    s_pass_to_the_end(self, 2 * STALL_S + LEASE_S + 1);
    assert_int_equal(self->learner.status, TT_TIMEOUT);
    fake_until(&self->run, self->failed[0], "EVENT failed");
    assert_non_null(strstr(self->failed, "twice net.stall_s"));
    assert_non_null(strstr(self->failed, "batch 0"));
    s_close(self);
}

/*  Orthogonal weights of wide layers take minutes: each vector of them, of either tower, is progress. */
static void test_first_weights_take_long(void **state)
{
    (void)state;
    stage_t *self = s_open("", 0);
    s_pass(self, 1);
    assert_in_range(self->learner.member->progress, 4 + 2 + 4 + 1, 100);
    s_close(self);
}

/*  Its own thread has looked at how long it has waited, since this was called: between two answers of it there is such a look. Its link's
 *  thread, whose heartbeats say that time has passed, does not wait for that. */
static void s_let_it_look(stage_t *self)
{
    const fake_feed_t *feed = fake_collector_to(&self->collector, self->learner.member);
    for (int i = 0; i < 2; i++) {
        fake_collector_attach(&self->collector);
        fake_until(&self->run, feed->credited, "credit");
    }
}

/*  Another learner, and an aggregator that nobody is: nothing is ever summed. */
static void s_put_beside(stage_t *self, const fake_learner_t *other)
{
    fake_in(&self->run, other->member);
    fake_member_t *aggregator = fake_add(&self->run, TT_PEER_AGGREGATOR, 0, 0);
    snprintf(aggregator->data, sizeof aggregator->data, "ipc://%s/sock/nobody", self->run.dir);
    fake_in(&self->run, aggregator);
    fake_roster(&self->run, false, NULL);
    fake_until(&self->run, fake_collector_to(&self->collector, self->learner.member)->credited, "it to know of that");
}

/*  It is, and leaves the run alone. Several of the coordinator's answers come within the time that a learner waits by itself. */
static void test_a_batch_takes_long(void **state)
{
    (void)state;
    stage_t *self = s_open("", 0);
    for (int i = 0; i < 6 * 4; i++) {
        s_pass(self, STALL_S / 4);
        s_let_it_look(self);
    }
    self->collector.gate = 1;
    const fake_feed_t *feed = fake_collector_to(&self->collector, self->learner.member);
    fake_until(&self->run, feed->upto == 2, "an update");
    s_close(self);
}

/*  As a learner at its snapshot, on a slow disk. The coordinator hears from it that it gets on; who waits for it leaves the run alone. */
static void test_another_takes_long(void **state)
{
    (void)state;
    stage_t *self = s_open("", 0);
    fake_store_t nothing = {0};
    fake_learner_t other;
    fake_learner_open(&other, &self->run, &nothing, 1);
    s_put_beside(self, &other);
    fake_feed_t *feed = (fake_feed_t *)(uintptr_t)fake_collector_to(&self->collector, other.member);
    feed->credited = true; /* with nothing, as nobody is there to say more */
    self->collector.gate = 1;
    fake_until(&self->run, strstr(self->learner.member->state, "waiting for SUM"), "it to wait for the other");
    for (int i = 0; i < 6 * 4; i++) {
        s_pass(self, STALL_S / 4);
        s_let_it_look(self);
    }
    fake_learner_close(&other);
    s_close(self);
}

/*  It asks to be let go, since another one is there to hold the weights; the coordinator never answers. */
static void test_leaving_without_a_word(void **state)
{
    (void)state;
    stage_t *self = s_open("", 0);
    fake_store_t nothing = {0};
    fake_learner_t other;
    fake_learner_open(&other, &self->run, &nothing, 1);
    s_put_beside(self, &other);
    self->run.hands = NULL; /* its time begins before we hear of it; s_pass turns them again */
    assert_int_equal(kill(getpid(), SIGTERM), 0);
    fake_until(&self->run, self->learner.member->drained, "DRAINED");
    s_pass(self, DRAIN_S - 3);
    s_pass_to_the_end(self, 3);
    assert_int_equal(self->learner.status, TT_OK);
    fake_learner_close(&other);
    s_close(self);
}

/*  The last learner, which was asked to leave and is at its checkpoint; the disk hangs. */
static stage_t *s_open_saying_farewell(void)
{
    stage_t *self = s_open_with(DQN, "", 2);
    s_hold(&s_hanging);
    self->run.hands = NULL; /* its time begins before we hear of it */
    assert_int_equal(kill(getpid(), SIGTERM), 0);
    fake_until(&self->run, s_stuck, "a write that hangs");
    s_pass(self, FAREWELL_S - 3);
    s_let_it_look(self);
    assert_false(self->learner.ended || self->learner.member->drained);
    return self;
}

/*  The best mean return that a snapshot knows of, less its own. */
static double s_best_beyond(const stage_t *self, const char *name)
{
    char path[512];
    tt_st_t *file = NULL;
    double best;
    snprintf(path, sizeof path, "%s/checkpoints/%s", self->run.dir, name);
    assert_ok(tt_snapshot_open_file(&file, path));
    memcpy(&best, tt_st_find(file, "tutti.best")->data, sizeof best);
    const double beyond = best - strtod(tt_st_meta(file, "return_mean"), NULL);
    tt_st_destroy(&file);
    return beyond;
}

/*  What is lost by not waiting is all that was learned. */
static void test_a_farewell_takes_long(void **state)
{
    (void)state;
    stage_t *self = s_open_saying_farewell();
    s_let(&s_hanging);
    fake_until(&self->run, self->learner.member->drained, "DRAINED");
    assert_int_equal(self->snapshots, 1);
    fake_until(&self->run, self->learner.ended, "its end");
    assert_int_equal(self->learner.status, TT_OK);
    assert_true(s_best_beyond(self, "final.safetensors") >= 0); /* it is one of those that may be best */
    s_close(self);
}

static void test_a_farewell_hangs(void **state)
{
    (void)state;
    stage_t *self = s_open_saying_farewell();
    tt_clock_turn(&self->learner.clock, 3 * INT64_C(1000000000));
    fake_until(&self->run, self->learner.member->drained, "DRAINED");
    s_let(&s_hanging);
    fake_until(&self->run, self->learner.ended, "its end");
    assert_int_equal(self->learner.status, TT_OK);
    assert_int_equal(self->snapshots, 0);
    s_close(self);
}

static void test_a_checkpoint_is_due(void **state)
{
    (void)state;
    stage_t *self = s_open("checkpoint: {every_s: 100, keep: 2}\n", 1);
    s_pass(self, 50);
    self->collector.gate = 2;
    const fake_feed_t *feed = fake_collector_to(&self->collector, self->learner.member);
    fake_until(&self->run, feed->upto == 3, "an update");
    s_pass(self, 1);
    assert_int_equal(self->snapshots, 0);
    s_pass(self, 50);
    self->collector.gate = 3;
    fake_until(&self->run, self->snapshots == 1, "a snapshot");
    s_close(self);
}

/*  A disk that takes long is progress as long as it takes something; nothing else says so, as the learner stands still meanwhile. */
static void test_a_disk_is_slow(void **state)
{
    (void)state;
    stage_t *self = s_open("checkpoint: {every_s: 100, keep: 2}\n", 1);
    const fake_member_t *learner = self->learner.member;
    s_hold(&s_hanging); /* a learner that waits looks at the time as well */
    s_hold(&s_syncing);
    s_pass(self, 101);
    self->collector.gate = 2;
    fake_until(&self->run, s_stuck && strncmp(learner->state, "writing 0", 9) == 0, "a write that hangs");
    s_pass(self, STALL_S);
    const uint64_t before = learner->progress;
    s_pass(self, STALL_S);
    assert_int_equal(learner->progress, before); /* nor does it say so when nothing moves */
    s_let(&s_hanging);
    fake_until(&self->run, learner->progress > before, "a piece");
    s_let(&s_syncing);
    fake_until(&self->run, self->snapshots == 1, "a snapshot");
    s_close(self);
}

/*  One evaluation may be outstanding, a second one is waited for; if its environment hangs, that is said. */
static void test_an_evaluation_hangs(void **state)
{
    (void)state;
    s_hold(&s_hanging);
    stage_t *self = s_open("eval: {every: 1, episodes: 3}\n", 1);
    self->collector.gate = 2;
    fake_until(&self->run, strstr(self->learner.member->state, "evaluating"), "a second version that is due");
    s_pass(self, STALL_S);
    s_pass_to_the_end(self, STALL_S + 1);
    assert_int_equal(self->learner.status, TT_TIMEOUT);
    fake_until(&self->run, self->failed[0], "EVENT failed");
    assert_non_null(strstr(self->failed, "evaluating version 1 (0 of 3 episodes have ended)"));
    s_let(&s_hanging);
    s_close(self);
}

static void test_the_time_is_up(void **state)
{
    (void)state;
    stage_t *self = s_open("stop: {wall_s: 100}\n", 1);
    s_pass(self, 50);
    self->collector.gate = 2;
    const fake_feed_t *feed = fake_collector_to(&self->collector, self->learner.member);
    fake_until(&self->run, feed->upto == 3, "an update");
    assert_string_equal(self->finished, "");
    s_pass(self, 50);
    self->collector.gate = 3;
    fake_until(&self->run, self->finished[0], "EVENT finished");
    json_t *summary = json_loads(self->finished, 0, NULL);
    assert_string_equal(json_string_value(json_object_get(summary, "reason")), "wall_s");
    assert_int_equal(json_integer_value(json_object_get(summary, "updates")), 2);
    json_decref(summary);
    s_close(self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_first_weights_take_long, s_let_all),
        cmocka_unit_test_teardown(test_nothing_moves, s_let_all),
        cmocka_unit_test_teardown(test_a_batch_takes_long, s_let_all),
        cmocka_unit_test_teardown(test_another_takes_long, s_let_all),
        cmocka_unit_test_teardown(test_leaving_without_a_word, s_let_all),
        cmocka_unit_test_teardown(test_a_farewell_takes_long, s_let_all),
        cmocka_unit_test_teardown(test_a_farewell_hangs, s_let_all),
        cmocka_unit_test_teardown(test_a_checkpoint_is_due, s_let_all),
        cmocka_unit_test_teardown(test_a_disk_is_slow, s_let_all),
        cmocka_unit_test_teardown(test_an_evaluation_hangs, s_let_all),
        cmocka_unit_test_teardown(test_the_time_is_up, s_let_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
