/*  What a worker says before it dies is heard, whatever is sent to it meanwhile; and who is late is ended. Its part is played by a shell's
 *  script. */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "collector/gym/crew.h"
#include "collector/gym/worker.h"
#include "common/base/mem.h"
#include "tests/test.h"

typedef struct {
    char dir[32], path[64];
    gym_post_t post; /* the script has no memory of ours: what it would write there we do */
    gym_bell_t bell;
    gym_worker_t worker;
} stage_t;

static void s_open(stage_t *self, const char *script)
{
    *self =
        (stage_t){.dir = "/tmp/tt-worker-XXXXXX", .worker = {.id = "gym:Last-words-v0", .start_s = 60, .step_s = 60}};
    self->post.worker_sleeps = 1;
    self->worker.turn = (gym_turn_t){.post = &self->post, .bell = &self->bell, .slots = {1, 1}};
    assert_non_null(mkdtemp(self->dir));
    snprintf(self->path, sizeof self->path, "%s/worker", self->dir);
    FILE *file = fopen(self->path, "w");
    assert_non_null(file);
    fputs(script, file);
    fclose(file);
    assert_ok(gym_worker_start(&self->worker, "/bin/sh", self->path, -1));
}

static void s_remove(stage_t *self)
{
    unlink(self->path);
    rmdir(self->dir);
}

static void s_close(stage_t *self)
{
    gym_worker_end(&self->worker, 1);
    s_remove(self);
}

/*  Until it is a zombie: nothing more will come from it, and nothing that is sent arrives. */
static void s_await_end(const stage_t *self)
{
    struct pollfd fd = {self->worker.pidfd, POLLIN, 0};
    assert_int_equal(poll(&fd, 1, 20000), 1);
}

static tt_status_t s_wait(stage_t *self)
{
    uint32_t which = 0;
    return gym_worker_wait(&self->worker, 1, false, &which, NULL);
}

/*  A message of 35 bytes behind its mark. */
#define FAULT "printf 'm\\043\\000\\000\\000{\"error\": \"step of env 3: a fault\"}' >&3\n"

/*  Round 0 is answered; that of the other half brings the fault, while round 0 is sent again. */
static void test_a_fault_while_something_is_sent(void **state)
{
    (void)state;
    stage_t self;
    s_open(&self, "head -c 1 <&3\nprintf w >&3\n" FAULT "exit 1\n");
    gym_worker_go(&self.worker, 0);
    gym_worker_go(&self.worker, 1);
    self.post.done[0] = 1;
    assert_ok(s_wait(&self));
    assert_int_equal(self.worker.turn.came, 0);
    s_await_end(&self);
    self.post.worker_sleeps = 1;
    gym_worker_go(&self.worker, 0);
    assert_int_equal(s_wait(&self), TT_INTERNAL);
    assert_string_equal(tt_err_text(), "step of env 3: a fault");
    s_close(&self);
}

/*  What comes over the socket is no answer to a round, nor are bytes that nobody knows. */
static void test_what_is_no_answer(void **state)
{
    (void)state;
    static const struct {
        const char *script, *words;
    } cases[] = {
        {"printf wwd >&3\nread nothing <&3\n", "answers what nobody has asked"},
        {"printf 'm\\002\\000\\000\\000{}' >&3\nread nothing <&3\n", "answers what nobody has asked"},
        {"printf 0 >&3\nread nothing <&3\n", "said what is no answer"},
    };
    for (size_t i = 0; i < TT_COUNT(cases); i++) {
        stage_t self;
        s_open(&self, cases[i].script);
        self.post.worker_sleeps = 0; /* so that nothing wakes it */
        gym_worker_go(&self.worker, 0);
        assert_int_equal(s_wait(&self), TT_INTERNAL);
        assert_non_null(strstr(tt_err_text(), cases[i].words));
        s_close(&self);
    }
}

/*  It says nothing: then that it is gone is what is said, by whoever waits for it. */
static void test_gone_without_a_word(void **state)
{
    (void)state;
    stage_t self;
    s_open(&self, "exit 3\n");
    s_await_end(&self);
    gym_worker_go(&self.worker, 0);
    assert_int_equal(s_wait(&self), TT_INTERNAL);
    assert_non_null(strstr(tt_err_text(), "ended the process with code 3"));
    s_close(&self);
}

/*  It lives, but nothing can be carried to it: that is said at once, not after its deadline, and not as its fault. */
static void test_what_cannot_be_sent(void **state)
{
    (void)state;
    for (int with_memory = 0; with_memory < 2; with_memory++) {
        stage_t self;
        s_open(&self, "read nothing <&3\n");
        const int kept = dup(self.worker.socket), null = open("/dev/null", O_RDWR | O_CLOEXEC);
        assert_true(dup2(null, self.worker.socket) >= 0);
        json_t *message = json_object();
        if (with_memory)
            gym_worker_move(&self.worker, message, null);
        else
            gym_worker_go(&self.worker, 0);
        json_decref(message);
        assert_int_equal(s_wait(&self), TT_UNAVAILABLE);
        assert_non_null(strstr(tt_err_text(), "could not be told what to do: Socket operation on non-socket"));
        s_close(&self);
        close(kept);
        close(null);
    }
}

/*  The same with a message, and with one that brings memory along. */
static void test_a_message_to_nobody(void **state)
{
    (void)state;
    json_t *message = json_pack("{s:i}", "keep", 1);
    for (int memory = -1; memory < 1; memory++) {
        stage_t self;
        s_open(&self, "exit 3\n");
        s_await_end(&self);
        if (memory < 0)
            gym_worker_tell(&self.worker, message);
        else
            gym_worker_move(&self.worker, message, memory);
        assert_int_equal(s_wait(&self), TT_INTERNAL);
        assert_non_null(strstr(tt_err_text(), "ended the process with code 3"));
        s_close(&self);
    }
    json_decref(message);
}

/*  What the worker does, how long that takes by its clock, and where it is then. */
typedef struct {
    gym_doing_t doing;
    int after_s;
    int32_t slot, again;
    const char *script, *words;
} late_t;

/*  Each call of an env has its own time; the clock is turned by hand. */
static void test_who_is_late(void **state)
{
    (void)state;
    static const late_t cases[] = {
        {GYM_STEPPING, 30, 0, 0, "read nothing <&3\n", "step of env 7 did not come back within 30 s (TT_ENV_STEP_S)"},
        {GYM_STEPPING, 29, 0, 0, "sleep 2\nexit 3\n", "step of env 7 ended the process with code 3"},
        {GYM_STEPPING, 30, 1, 0, "sleep 2\nexit 3\n", "step of env 8 ended the process with code 3"},
        {GYM_STEPPING, 30, 0, 1, "sleep 2\nexit 3\n", "step of env 7 ended the process with code 3"},
        {GYM_BEGINNING, 30, 0, 0, "sleep 2\nexit 3\n", "reset of env 7 ended the process with code 3"},
        {GYM_BEGINNING, 60, 0, 0, "read nothing <&3\n",
            "reset of env 7 did not come back within 60 s (TT_ENV_START_S)"},
    };
    for (size_t i = 0; i < TT_COUNT(cases); i++) {
        stage_t self;
        tt_clock_t clock = tt_clock_fake(1);
        gym_progress_t progress = {.doing = cases[i].doing};
        s_open(&self, cases[i].script);
        self.worker.clock = &clock;
        self.worker.progress = &progress;
        self.worker.lo = 7;
        self.worker.step_s = 30;
        gym_worker_go(&self.worker, 0);
        tt_clock_turn(&clock, cases[i].after_s * INT64_C(1000000000));
        progress.slot = cases[i].slot;
        progress.again = cases[i].again;
        assert_int_equal(s_wait(&self), TT_INTERNAL);
        if (!strstr(tt_err_text(), cases[i].words))
            fail_msg("'%s' instead of '%s'", tt_err_text(), cases[i].words);
        s_close(&self);
    }
}

/*  Who has waited long enough for once comes back with nothing, and sees whether it got on. */
static void test_waiting_for_a_moment(void **state)
{
    (void)state;
    stage_t self;
    uint32_t which = 0;
    gym_progress_t progress = {.doing = GYM_LOADING};
    s_open(&self, "read nothing <&3\n");
    self.worker.progress = &progress;
    gym_worker_go(&self.worker, 0);
    for (uint64_t moves = 0; moves < 2; moves++) {
        assert_int_equal(gym_worker_wait_a_moment(&self.worker, 1, &which), TT_AGAIN);
        assert_int_equal(self.worker.moves, moves);
        progress.again++;
    }
    self.post.done[0] = 1;
    assert_ok(gym_worker_wait_a_moment(&self.worker, 1, &which));
    assert_int_equal(which, 0);
    assert_int_equal(self.worker.turn.came, 0);
    s_close(&self);
}

/*  Those that have no slots are there for a minute, those that play for ever. */
static void test_who_waits_for_another_range(void **state)
{
    (void)state;
    stage_t self, other;
    tt_clock_t clock = tt_clock_fake(1);
    gym_crew_t crew = {.clock = &clock};
    s_open(&self, "read nothing <&3\n");
    s_open(&other, "read nothing <&3\n");
    gym_crew_gather(&crew, 1, 1, NULL);
    free(crew.worker);
    crew.worker = tt_array0(2, sizeof *crew.worker);
    crew.worker[0] = self.worker;
    crew.worker[1] = other.worker;
    crew.hired = 2;
    for (int after_s = 59; after_s <= 60; after_s++) {
        assert_int_equal(crew.hired, 2);
        clock.fake_ns = 1 + after_s * INT64_C(1000000000);
        gym_crew_dismiss(&crew);
    }
    assert_int_equal(crew.hired, 1);
    tt_clock_turn(&clock, 3600 * INT64_C(1000000000));
    gym_crew_dismiss(&crew);
    assert_int_equal(crew.hired, 1);
    gym_crew_end(&crew);
    s_remove(&self);
    s_remove(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_fault_while_something_is_sent),
        cmocka_unit_test(test_what_is_no_answer),
        cmocka_unit_test(test_gone_without_a_word),
        cmocka_unit_test(test_what_cannot_be_sent),
        cmocka_unit_test(test_a_message_to_nobody),
        cmocka_unit_test(test_who_is_late),
        cmocka_unit_test(test_waiting_for_a_moment),
        cmocka_unit_test(test_who_waits_for_another_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
