/*  A local run whose coordinator does not do its part. Its clock runs as the real one does, and is put forward by every tick as
 *  long as there is nothing to see but time going by. */
#include "controller/supervisor.h"
#include "tests/folder.h"
#include "tests/test.h"
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/buf.h"
#include "common/net/net.h"

typedef struct {
    char root[FOLDER_MAX];
    tt_rundir_t run;
    int lock;
    tt_clock_t clock;
    size_t mute;   /* coordinators that say nothing; then SIGTERM,        */
    bool real;     /* unless a real one follows, which is left in peace,  */
    bool speaks;   /* or is stopped when it has spoken to us              */
    size_t silent; /* of them, how many were found so                     */
    bool fails;    /* they write that the run has failed, and end without a word to us */
    bool worker;   /* a worker of theirs ends with 79, and they write why when they are told to end, as silently */
    bool over;     /* it ends well, and its worker hears of that behind our backs,       */
    bool deaf;     /* or never                                                           */
    bool late;  /* the first one ends with 74, and its word that the run ends is heard when the second one has begun, */
    bool later; /* and so is its WELCOME */
    tt_loop_t *loop; /* of these words */
    tt_sock_t *control;
    char peer[64];    /* the controller, who has said HELLO, */
    int64_t hello_ns; /* then                             */
    bool stop;        /* SIGTERM when the first one runs                     */
    bool move;        /* the run's directory then; another run takes its place if `taken` */
    bool taken;
    bool moved;
    _Atomic(int64_t) stands_ns; /* the time at which its clock stands, 0: at none; the link's thread looks at it, too */
    bool asked, stopped;
    char notes[4096];
} watch_t;

static int64_t s_now(const tt_clock_t *self)
{
    const watch_t *watch = (const watch_t *)(const void *)((const char *)self - offsetof(watch_t, clock));
    const int64_t now = (watch->over && !watch->deaf ? 0 : tt_now_ns(tt_clock_real())) + self->fake_ns;
    const int64_t stands = watch->stands_ns;
    return stands && now > stands ? stands : now;
}

static void s_ask(watch_t *self)
{
    if (!self->asked)
        assert_int_equal(kill(getpid(), SIGTERM), 0);
    self->asked = true;
}

/*  Coordinators that have begun. */
static size_t s_starts(const watch_t *self)
{
    tt_buf_t text;
    tt_buf_init(&text, 4096);
    size_t lines = 0;
    if (tt_rundir_read(&self->run, "starts", &text) == TT_OK)
        for (size_t i = 0; i < text.size; i++)
            lines += text.data[i] == '\n';
    tt_buf_free(&text);
    return lines;
}

/*  The only one that has begun. */
static pid_t s_pid(const watch_t *self)
{
    tt_buf_t text;
    tt_buf_init(&text, 4096);
    assert_ok(tt_rundir_read(&self->run, "starts", &text));
    const pid_t pid = (pid_t)atoi(tt_buf_text(&text));
    tt_buf_free(&text);
    assert_true(pid > 1);
    return pid;
}

static void s_note(void *ctx, const char *text)
{
    watch_t *self = ctx;
    const size_t used = strlen(self->notes);
    snprintf(self->notes + used, sizeof self->notes - used, "%s\n", text);
    self->silent += strstr(text, "not a word") != NULL;
    if (self->silent >= self->mute + (self->real && !self->speaks ? 2 : 0) + self->speaks)
        s_ask(self);
    if (self->moved && self->silent)
        s_ask(self); /* it should have ended long since, and is not about to */
}

static void s_move(watch_t *self)
{
    char path[128];
    snprintf(path, sizeof path, "%s/moved", self->root);
    assert_int_equal(rename(self->run.path, path), 0);
    if (self->taken) {
        assert_int_equal(mkdir(self->run.path, 0700), 0);
        snprintf(path, sizeof path, "%s/run/lock", self->root);
        FILE *lock = fopen(path, "w");
        assert_non_null(lock);
        assert_int_equal(fclose(lock), 0);
    }
    self->moved = true;
    tt_clock_turn(&self->clock, 1000000000);
}

static void s_say_welcome(watch_t *self)
{
    const tt_msg_WELCOME_t welcome = TT_MSG(WELCOME, .wire = TT_WIRE_VERSION, .beat_ms = 100, .lease_ms = 60000,
        .config = (char *)(uintptr_t) "", .run_dir = self->run.path, .now_ns = self->hello_ns);
    assert_ok(tt_sock_send(self->control, self->peer, &welcome, NULL, 0));
}

/*  The first coordinator may go: when the controller has heard its WELCOME, and so what comes behind it, or before. */
static tt_status_t s_on_word(void *ctx, tt_sock_t *sock, tt_packet_t *packet)
{
    watch_t *self = ctx;
    if (packet->msg.type != TT_MSG_HELLO || *self->peer)
        return TT_OK;
    snprintf(self->peer, sizeof self->peer, "%s", packet->peer);
    self->hello_ns = tt_now_ns(tt_clock_real());
    if (self->later)
        return tt_rundir_write(&self->run, "welcome", "", 0600);
    s_say_welcome(self);
    const tt_msg_SCALE_t scale = TT_MSG(SCALE, .counts = NULL);
    return tt_sock_send(sock, self->peer, &scale, NULL, 0);
}

static void s_speak_late(watch_t *self)
{
    char path[128];
    if (!self->control) {
        tt_rundir_control(&self->run, path, sizeof path);
        assert_ok(tt_loop_new(&self->loop, NULL));
        assert_ok(tt_sock_new(&self->control, TT_ROUTER, &(tt_sock_opts_t){.name = "control"}));
        assert_ok(tt_sock_bind(self->control, path, NULL, 0));
        tt_loop_sock(self->loop, self->control, s_on_word, self);
    }
    const tt_status_t status = tt_loop_poll(self->loop, 0);
    assert_true(status == TT_OK || status == TT_AGAIN);
    if (self->stopped || s_starts(self) < 2)
        return;
    if (self->later)
        s_say_welcome(self);
    const tt_msg_STOP_t stop = TT_MSG(STOP, .reason = (char *)(uintptr_t) "journal.db: no room", .code = 74);
    assert_ok(tt_sock_send(self->control, self->peer, &stop, NULL, 0));
    self->stopped = true;
}

/*  Its coordinator has gone, so its worker is told a second later at the most. From then on the clock stands: it is not killed, however long
 *  it takes until it has heard that. */
static void s_stand(watch_t *self)
{
    if (!self->stands_ns && s_starts(self) > 0 && kill(s_pid(self), 0) != 0)
        self->stands_ns = tt_now_ns(tt_clock_real()) + 1000000000;
}

static void s_tick(void *ctx)
{
    watch_t *self = ctx;
    if (self->late)
        s_speak_late(self);
    if (self->over)
        s_stand(self);
    if (self->late || self->over || self->fails || self->worker)
        return; /* there is more to see than time going by */
    if (self->move && !self->moved && s_starts(self) > 0)
        s_move(self);
    if (s_starts(self) <= self->silent)
        return; /* it has not begun yet */
    if (self->stop)
        s_ask(self);
    if (self->silent < self->mute || !self->real || (self->stopped && self->silent == 0))
        tt_clock_turn(&self->clock, 100000000);
}

/*  A coordinator's first word behind its WELCOME. */
static void s_scale(void *ctx, const tt_msg_SCALE_t *msg)
{
    watch_t *self = ctx;
    (void)msg;
    if (self->late)
        assert_ok(tt_rundir_write(&self->run, "welcome", "", 0600));
    if (!self->speaks || self->stopped)
        return;
    assert_int_equal(kill(s_pid(self), SIGSTOP), 0);
    self->stopped = true;
}

static int s_setup(void **state)
{
    watch_t *self = *state = calloc(1, sizeof *self);
    char path[128];
    assert_int_equal(folder_make(self->root, "supervisor"), 0);
    assert_int_equal(setenv("XDG_STATE_HOME", self->root, 1), 0);
    snprintf(path, sizeof path, "%s/run", self->root);
    assert_ok(tt_rundir_create(&self->run, path, "run"));
    assert_ok(tt_rundir_lock(&self->run, &self->lock));
    assert_ok(tt_rundir_open_sockets(&self->run));
    self->clock.now_ns = s_now;
    return 0;
}

static int s_teardown(void **state)
{
    watch_t *self = *state;
    tt_rundir_close_sockets(&self->run);
    close(self->lock);
    const int code = folder_remove(self->root);
    free(self);
    return code;
}

static const char s_failing[] =
    "echo $$ >> $TT_RUN_DIR/starts; "
    "echo '{\"status\": \"failed\", \"reason\": \"no card\"}' > $TT_RUN_DIR/result.json; exit 69";

static const char s_late[] =
    "echo $$ >> $TT_RUN_DIR/starts; [ $(wc -l < $TT_RUN_DIR/starts) -gt 1 ] && exec sleep 1000; "
    "until [ -e $TT_RUN_DIR/welcome ]; do sleep 0.01; done; exit 74";

/*  It hears of a worker's end before we could tell it, and why. */
static const char s_knowing[] =
    "trap 'exit 79' TERM; echo '{\"status\": \"failed\", \"reason\": \"worker/0: diverged\"}' > "
    "$TT_RUN_DIR/result.json; echo $$ >> $TT_RUN_DIR/starts; while :; do sleep 0.01; done";
static const char s_ending[] = "until [ -e $TT_RUN_DIR/works ]; do sleep 0.01; done; echo $$$$ >> $TT_RUN_DIR/starts; "
                               ": > $TT_RUN_DIR/over; exit 0";
static const char s_patient[] =
    "trap ': > $TT_RUN_DIR/hurried; exit 1' TERM; : > $TT_RUN_DIR/works; "
    "until [ -e $TT_RUN_DIR/over ]; do sleep 0.01; done; for i in 1 2 3 4 5 6 7 8 9; do sleep 0.03; done; "
    "while [ -e $TT_RUN_DIR/deaf ]; do sleep 0.01; done; exit 0";

static const char s_worker[] = "until [ -s $TT_RUN_DIR/starts ]; do sleep 0.01; done; exit 79";

/*  Its first coordinators note that they have begun, and neither say a word nor hear SIGTERM. */
static tt_outcome_t s_supervise(watch_t *self)
{
    char script[512];
    snprintf(script, sizeof script,
        "trap '' TERM; echo $$$$ >> $TT_RUN_DIR/starts; "
        "[ $(wc -l < $TT_RUN_DIR/starts) -gt %zu ] && exec " TT_BINARY
        " coordinator --run $TT_RUN_DIR; exec sleep 1000",
        self->real ? self->mute : 1000);
    if (self->fails)
        snprintf(script, sizeof script, "%s", s_failing);
    if (self->worker)
        snprintf(script, sizeof script, "%s", s_knowing);
    if (self->late)
        snprintf(script, sizeof script, "%s", s_late);
    if (self->over)
        snprintf(script, sizeof script, "%s", s_ending);
    char *command[] = {(char *)(uintptr_t) "/bin/sh", (char *)(uintptr_t) "-c", script, NULL};
    char *work[] = {(char *)(uintptr_t) "/bin/sh", (char *)(uintptr_t) "-c",
        (char *)(uintptr_t)(self->over ? s_patient : s_worker), NULL};
    tt_role_t roles[] = {{.name = (char *)(uintptr_t) "coordinator",
                             .replicas = 1,
                             .max_replicas = 1,
                             .restart = TT_RESTART_ON_FAILURE,
                             .backoff_limit = 5,
                             .decides_job = true,
                             .template_ = {.command = command}},
        {.name = (char *)(uintptr_t) "learner",
            .replicas = 1,
            .max_replicas = 1,
            .restart = TT_RESTART_ON_FAILURE,
            .backoff_limit = 5,
            .template_ = {.command = work}}};
    tt_job_t job = {
        .name = (char *)(uintptr_t) "job", .roles = roles, .role_count = self->worker || self->over ? 2 : 1};
    const tt_supervise_opts_t opts = {.run = &self->run,
        .lock = self->lock,
        .job = &job,
        .finish_ms = 10000,
        .watcher = {.note = s_note, .tick = s_tick, .scale = s_scale, .ctx = self},
        .clock = &self->clock};
    tt_outcome_t out;
    assert_ok(tt_supervise(&out, &opts));
    free(out.finished);
    return out;
}

/*  Twenty seconds, its start included; then another one. */
static void test_a_coordinator_without_a_word_is_replaced(void **state)
{
    watch_t *self = *state;
    self->mute = 1;
    const tt_outcome_t out = s_supervise(self);
    assert_non_null(strstr(self->notes, "coordinator/0"));
    assert_non_null(strstr(self->notes, "not a word for 20."));
    assert_int_equal(out.signal, SIGTERM);
}

static void s_write_config(const watch_t *self, const char *net)
{
    static const char config[] = "name: run\nenv: CartPole-v1\nnum_envs: 8\nnum_steps: 16\nalgorithm: {name: ppo}\n"
                                 "space: {obs: \"float32[4]\", action: discrete(2), env_state: 16, threshold: 475}\n"
                                 "coordinator: {http: \"\"}\nnet: ";
    char path[128];
    snprintf(path, sizeof path, "%s/run/config.yaml", self->root);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(config, file) >= 0 && fputs(net, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/*  One whose WELCOME we have had is replaced after three leases: its workers wait for ten of them. */
static void test_one_that_has_spoken_is_replaced_sooner(void **state)
{
    watch_t *self = *state;
    s_write_config(self, "{stall_s: 600, lease_ms: 1000, beat_ms: 100}\n");
    self->real = self->speaks = true;
    const tt_outcome_t out = s_supervise(self);
    assert_non_null(strstr(self->notes, "not a word for 3."));
    assert_int_equal(out.signal, SIGTERM);
}

/*  However long it took until one says something: it is listened to. This one says that it is alone. */
static void test_the_one_that_speaks_at_last_is_heard(void **state)
{
    watch_t *self = *state;
    s_write_config(self, "{stall_s: 1, lease_ms: 60000, beat_ms: 100}\n");
    self->mute = 3;
    self->real = true;
    const tt_outcome_t out = s_supervise(self);
    assert_int_equal(self->silent, self->mute);
    assert_non_null(strstr(out.reason, "nobody to run with for 1 s"));
    assert_int_equal(out.exit_code, tt_status_exit_code(TT_TIMEOUT));
}

/*  Asked to end, and nobody ends it: after finish_ms it is killed. */
static void test_a_run_that_does_not_end_is_killed(void **state)
{
    watch_t *self = *state;
    self->stop = true;
    self->mute = 1000;
    const tt_outcome_t out = s_supervise(self);
    assert_non_null(strstr(self->notes, "ending the run with a snapshot"));
    assert_int_equal(self->silent, 0);
    assert_int_equal(out.phase, TT_JOB_FAILED);
    assert_int_equal(out.exit_code, 128 + SIGTERM);
    assert_non_null(strstr(out.reason, "killed before it could end by itself"));
}

/*  Its code is one after which a process is started again; but the run is over, and has said why in its file. */
static void test_a_run_that_failed_before_it_was_heard(void **state)
{
    watch_t *self = *state;
    self->fails = true;
    const tt_outcome_t out = s_supervise(self);
    assert_int_equal(s_starts(self), 1);
    assert_int_equal(out.phase, TT_JOB_FAILED);
    assert_int_equal(out.exit_code, 69);
    assert_string_equal(out.reason, "no card");
}

static void s_check_late(watch_t *self)
{
    self->late = true;
    const tt_outcome_t out = s_supervise(self);
    tt_loop_forget_sock(self->loop, self->control);
    tt_sock_destroy(&self->control);
    tt_loop_destroy(&self->loop);
    assert_int_equal(s_starts(self), 2);
    assert_int_equal(out.phase, TT_JOB_FAILED);
    assert_int_equal(out.exit_code, 74);
    assert_string_equal(out.reason, "journal.db: no room");
}

/*  It had no room to write why; its word for it was still on its way when its end was seen, and nobody would have joined the one that was
 *  started in its place. */
static void test_a_run_whose_end_is_heard_late(void **state)
{
    s_check_late(*state);
}

/*  So was all that it ever said, and none of it is the next one's. */
static void test_a_run_of_which_all_is_heard_late(void **state)
{
    ((watch_t *)*state)->later = true;
    s_check_late(*state);
}

/*  The end of a worker is final, and is seen before the coordinator's word for it has come: that is in its file. */
static void test_a_worker_whose_end_was_explained(void **state)
{
    watch_t *self = *state;
    self->worker = true;
    const tt_outcome_t out = s_supervise(self);
    assert_int_equal(out.phase, TT_JOB_FAILED);
    assert_int_equal(out.exit_code, 79);
    assert_string_equal(out.reason, "worker/0: diverged");
}

/*  Was the worker of a run that ended well sent a signal? */
static bool s_is_hurried(watch_t *self)
{
    tt_buf_t unused;
    tt_buf_init(&unused, 16);
    self->over = true;
    if (self->deaf)
        assert_ok(tt_rundir_write(&self->run, "deaf", "", 0600));
    const tt_outcome_t out = s_supervise(self);
    assert_int_equal(out.phase, TT_JOB_SUCCEEDED);
    const bool hurried = tt_rundir_read(&self->run, "hurried", &unused) == TT_OK;
    tt_buf_free(&unused);
    return hurried;
}

/*  The coordinator's word and our signal are on their way at the same time. */
static void test_workers_of_a_run_that_ended_well_go_by_themselves(void **state)
{
    assert_false(s_is_hurried(*state));
}

static void test_those_that_do_not_are_told(void **state)
{
    watch_t *self = *state;
    self->deaf = true;
    assert_true(s_is_hurried(self));
}

static void s_expect_gone(watch_t *self, const tt_outcome_t *out)
{
    assert_true(self->moved);
    assert_int_equal(out->phase, TT_JOB_FAILED);
    assert_int_equal(out->exit_code, 74);
    assert_int_equal(out->signal, 0);
    assert_non_null(strstr(out->reason, self->run.path));
    assert_non_null(strstr(out->reason, "is gone or was moved"));
    assert_null(strstr(self->notes, "not a word")); /* it ended before that */
}

/*  Nobody could find the run, nor stop it. */
static void test_a_run_whose_directory_is_moved_ends(void **state)
{
    watch_t *self = *state;
    self->move = true;
    self->mute = 1000;
    const tt_outcome_t out = s_supervise(self);
    s_expect_gone(self, &out);
    assert_int_not_equal(access(self->run.path, F_OK), 0); /* and nothing makes it anew */
}

static void test_another_run_in_its_place_is_left_alone(void **state)
{
    watch_t *self = *state;
    self->move = self->taken = true;
    self->mute = 1000;
    const tt_outcome_t out = s_supervise(self);
    s_expect_gone(self, &out);
    char path[128];
    snprintf(path, sizeof path, "%s/run/lock", self->root);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(self->run.path), 0); /* it held nothing else */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_coordinator_without_a_word_is_replaced, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_one_that_has_spoken_is_replaced_sooner, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_the_one_that_speaks_at_last_is_heard, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_run_that_does_not_end_is_killed, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_run_whose_directory_is_moved_ends, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_another_run_in_its_place_is_left_alone, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_run_that_failed_before_it_was_heard, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_run_whose_end_is_heard_late, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_run_of_which_all_is_heard_late, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_worker_whose_end_was_explained, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_workers_of_a_run_that_ended_well_go_by_themselves, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_those_that_do_not_are_told, s_setup, s_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
