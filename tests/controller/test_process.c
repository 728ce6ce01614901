/*  Replicas as real processes: start, logs, expansion, ends, and nothing left behind. */
#include "controller/process.h"
#include "tests/folder.h"
#include "tests/test.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/descriptors.h"
#include "common/base/file.h"

enum { DEADLINE_MS = 20000 };

static char s_dir[FOLDER_MAX];

static int s_setup(void **state)
{
    (void)state;
    return folder_make(s_dir, "process");
}

static int s_teardown(void **state)
{
    (void)state;
    return folder_remove(s_dir);
}

/*  In scripts $$$$ is the shell's $$: the substrate turns $$ into $, as Kubernetes does. */
static tt_replica_id_t s_start_shell(tt_substrate_t *substrate, const char *script)
{
    char *command[] = {"/bin/sh", "-c", (char *)script, "shell", NULL};
    char *args[] = {"$(TT_ROLE)-$(TT_INDEX)-$(NOWHERE)", NULL};
    const tt_template_t template_ = {.command = command, .args = args};
    const tt_replica_spec_t spec = {.job = "job", .role = "worker", .index = 3, .template_ = &template_};
    tt_replica_id_t id;
    assert_ok(substrate->ops->start(substrate, &spec, &id));
    return id;
}

static tt_replica_event_t s_await_end(tt_substrate_t *substrate)
{
    const int64_t deadline = tt_now_ms(tt_clock_real()) + DEADLINE_MS;
    for (;;) {
        tt_replica_event_t event;
        size_t count = 1;
        assert_ok(substrate->ops->poll(substrate, &event, &count));
        if (count)
            return event;
        assert_true(tt_now_ms(tt_clock_real()) < deadline);
        poll(NULL, 0, 1);
    }
}

/*  A number that a script wrote, once the whole line is there. */
static pid_t s_await_pid(const char *file)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", s_dir, file);
    const int64_t deadline = tt_now_ms(tt_clock_real()) + DEADLINE_MS;
    int pid = 0;
    while (!pid) {
        tt_buf_t text;
        tt_buf_init(&text, 4096);
        if (tt_buf_read_file(&text, path) == TT_OK && strchr(tt_buf_text(&text), '\n'))
            pid = (int)strtol(tt_buf_text(&text), NULL, 10);
        tt_buf_free(&text);
        assert_true(tt_now_ms(tt_clock_real()) < deadline);
        poll(NULL, 0, 1);
    }
    return pid;
}

static void s_await_gone(pid_t pid)
{
    const int64_t deadline = tt_now_ms(tt_clock_real()) + DEADLINE_MS;
    while (kill(pid, 0) == 0 || errno != ESRCH) {
        waitpid(pid, NULL, WNOHANG); /* an orphan that became ours */
        assert_true(tt_now_ms(tt_clock_real()) < deadline);
        poll(NULL, 0, 1);
    }
}

static void test_output_goes_to_the_log(void **state)
{
    (void)state;
    tt_substrate_t *substrate = NULL;
    assert_ok(tt_process_substrate_new(&substrate, s_dir, tt_clock_real()));
    const tt_replica_id_t id =
        s_start_shell(substrate, "echo out $1 $TT_RUN_DIR; echo err >&2; echo 1 > $TT_RUN_DIR/done; sleep 1000");
    s_await_pid("done");
    char expected[128], got[256] = "";
    snprintf(expected, sizeof expected, "out worker-3-$(NOWHERE) %s\nerr\n", s_dir);
    int copy[2];
    assert_int_equal(pipe(copy), 0);
    assert_ok(substrate->ops->logs(substrate, id, copy[1]));
    assert_true(read(copy[0], got, sizeof got - 1) > 0);
    assert_string_equal(got, expected);
    close(copy[0]);
    close(copy[1]);
    substrate->ops->destroy(&substrate);
}

/*  One that was killed may have left half a line. */
static void test_every_life_begins_on_a_line_of_its_own(void **state)
{
    (void)state;
    tt_substrate_t *substrate = NULL;
    assert_ok(tt_process_substrate_new(&substrate, s_dir, tt_clock_real()));
    for (int life = 0; life < 3; life++) {
        s_start_shell(substrate, life < 2 ? "printf 'half a l'; kill -9 $$$$" : "echo whole");
        (void)s_await_end(substrate);
    }
    char path[128];
    tt_buf_t text;
    snprintf(path, sizeof path, "%s/logs/worker-3.log", s_dir);
    tt_buf_init(&text, 4096);
    assert_ok(tt_buf_read_file(&text, path));
    assert_string_equal(tt_buf_text(&text), "half a l\nhalf a l\nwhole\n");
    tt_buf_free(&text);
    substrate->ops->destroy(&substrate);
}

static void test_ends_are_reported(void **state)
{
    (void)state;
    tt_substrate_t *substrate = NULL;
    assert_ok(tt_process_substrate_new(&substrate, s_dir, tt_clock_real()));
    const tt_replica_id_t ok = s_start_shell(substrate, "exit 0");
    const int pid = tt_process_pid(substrate, ok);
    tt_replica_event_t event = s_await_end(substrate);
    assert_true(event.id == ok && event.phase == TT_PHASE_SUCCEEDED && event.exit_code == 0);
    assert_true(pid > 0 && event.pid == pid);
    s_start_shell(substrate, "exit 7");
    event = s_await_end(substrate);
    assert_true(event.phase == TT_PHASE_FAILED && event.exit_code == 7 && event.signal == 0);
    s_start_shell(substrate, "kill -9 $$$$");
    event = s_await_end(substrate);
    assert_true(event.phase == TT_PHASE_FAILED && event.exit_code == 137 && event.signal == SIGKILL);
    assert_string_equal(event.reason, "killed by SIGKILL");
    assert_non_null(strstr(event.why, "not by tutti: out of memory, mostly"));
    assert_non_null(strstr(event.why, " MiB at most)"));
    const tt_replica_id_t ours = s_start_shell(substrate, "exec sleep 1000");
    assert_ok(substrate->ops->stop(substrate, ours, 0));
    event = s_await_end(substrate);
    assert_true(event.id == ours && event.signal == SIGKILL && !event.why[0]); /* who did it is known */
    s_start_shell(substrate, "kill -TERM $$$$");
    event = s_await_end(substrate);
    assert_true(event.signal == SIGTERM && !event.why[0]);
    substrate->ops->destroy(&substrate);
}

static void test_stop_asks_then_kills(void **state)
{
    (void)state;
    tt_substrate_t *substrate = NULL;
    tt_clock_t clock = tt_clock_fake(1000000000);
    assert_ok(tt_process_substrate_new(&substrate, s_dir, &clock));
    tt_replica_id_t id =
        s_start_shell(substrate, "trap 'exit 5' TERM; echo $$$$ > $TT_RUN_DIR/polite; while :; do sleep 0.01; done");
    s_await_pid("polite");
    assert_ok(substrate->ops->stop(substrate, id, DEADLINE_MS));
    assert_int_equal(s_await_end(substrate).exit_code, 5);
    id = s_start_shell(substrate, "trap '' TERM; echo $$$$ > $TT_RUN_DIR/rude; while :; do sleep 0.01; done");
    s_await_pid("rude");
    assert_ok(substrate->ops->stop(substrate, id, DEADLINE_MS));
    tt_replica_event_t event;
    size_t count = 1;
    assert_ok(substrate->ops->poll(substrate, &event, &count));
    assert_int_equal(count, 0); /* it has its grace */
    tt_clock_turn(&clock, DEADLINE_MS * INT64_C(1000000));
    assert_int_equal(s_await_end(substrate).signal, SIGKILL);
    substrate->ops->destroy(&substrate);
}

static void test_what_a_replica_forked_dies_with_it(void **state)
{
    (void)state;
    tt_substrate_t *substrate = NULL;
    assert_ok(tt_process_substrate_new(&substrate, s_dir, tt_clock_real()));
    const tt_replica_id_t id =
        s_start_shell(substrate, "sleep 1000 & echo $! > $TT_RUN_DIR/child; "
                                 "setsid sh -c 'echo $$$$ > $TT_RUN_DIR/daemon; exec sleep 1000' & sleep 1000");
    const pid_t child = s_await_pid("child"), daemon = s_await_pid("daemon");
    kill(tt_process_pid(substrate, id), SIGKILL);
    assert_int_equal(s_await_end(substrate).signal, SIGKILL);
    s_await_gone(child);
    s_await_gone(daemon); /* left its group, but not its mark */
    substrate->ops->destroy(&substrate);
}

static void test_destroy_ends_everything(void **state)
{
    (void)state;
    tt_substrate_t *substrate = NULL;
    assert_ok(tt_process_substrate_new(&substrate, s_dir, tt_clock_real()));
    s_start_shell(substrate, "env -i PATH=$PATH DIR=$TT_RUN_DIR setsid "
                             "sh -c 'echo $$$$ > $DIR/wild; exec sleep 1000' & sleep 1000");
    const pid_t wild = s_await_pid("wild");
    substrate->ops->destroy(&substrate);
    s_await_gone(wild); /* no group, no mark: found as an orphan */
}

/*  A program of somebody else's may call select(): it gets the limit that we were given. */
static void test_other_programs_have_the_limit_of_before(void **state)
{
    (void)state;
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = 123;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    tt_descriptors_raise();
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_true(limit.rlim_cur == limit.rlim_max && limit.rlim_cur > 123);
    tt_substrate_t *substrate;
    assert_ok(tt_process_substrate_new(&substrate, s_dir, tt_clock_real()));
    s_start_shell(substrate, "ulimit -n > $TT_RUN_DIR/limit");
    assert_int_equal(s_await_pid("limit"), 123);
    assert_int_equal(s_await_end(substrate).exit_code, 0);
    substrate->ops->destroy(&substrate);
}

static void test_a_command_that_is_not_there(void **state)
{
    (void)state;
    tt_substrate_t *substrate = NULL;
    assert_ok(tt_process_substrate_new(&substrate, s_dir, tt_clock_real()));
    char *command[] = {"/nowhere/to/be/found", NULL};
    const tt_template_t template_ = {.command = command};
    const tt_replica_spec_t spec = {.job = "job", .role = "worker", .index = 0, .template_ = &template_};
    tt_replica_id_t id;
    assert_int_equal(substrate->ops->start(substrate, &spec, &id), TT_NOT_FOUND);
    assert_non_null(strstr(tt_err_text(), "/nowhere/to/be/found"));
    substrate->ops->destroy(&substrate);
}

/*  Of a process that is a replica itself: an output of its own, no folder, and what it was found by stays. */
static void test_without_a_run_directory(void **state)
{
    (void)state;
    tt_substrate_t *substrate = NULL;
    char output[128], expected[128];
    snprintf(output, sizeof output, "%s/outputs.log", s_dir);
    setenv("TT_REPLICA", "outer", 1);
    unsetenv("TT_RUN_DIR");
    assert_ok(tt_process_substrate_new(&substrate, NULL, tt_clock_real()));
    char *script = tt_expand_literal(
        "setsid sleep 1000 & echo $! > pid; echo $TT_REPLICA-${TT_WORKLOAD%%/*}-$TT_RUN_DIR $(echo $1)");
    char *command[] = {"/bin/sh", "-c", script, "shell", "$$(TT_REPLICA)", NULL};
    const tt_template_t template_ = {.command = command, .working_dir = s_dir};
    const tt_replica_spec_t spec = {.role = "exec", .template_ = &template_, .output = output};
    tt_replica_id_t id;
    assert_ok(substrate->ops->start(substrate, &spec, &id));
    assert_int_equal(s_await_end(substrate).exit_code, 0);
    s_await_gone(s_await_pid("pid"));
    tt_buf_t text;
    tt_buf_init(&text, 4096);
    assert_ok(tt_buf_read_file(&text, output));
    snprintf(expected, sizeof expected, "outer-exec- $(TT_REPLICA)\n");
    assert_string_equal(tt_buf_text(&text), expected);
    tt_buf_free(&text);
    snprintf(output, sizeof output, "%s/logs", s_dir);
    assert_int_not_equal(access(output, F_OK), 0);
    free(script);
    substrate->ops->destroy(&substrate);
    unsetenv("TT_REPLICA");
}

/*  While it writes, once a second; it goes on in the same file, and its last words are there. */
static void test_a_log_does_not_grow_without_end(void **state)
{
    (void)state;
    tt_clock_t clock = tt_clock_fake(1000000000);
    tt_substrate_t *substrate = NULL;
    tt_buf_t text;
    char path[128];
    assert_int_equal(setenv("TT_LOG_MB", "1", 1), 0);
    assert_ok(tt_process_substrate_new(&substrate, s_dir, &clock));
    assert_int_equal(unsetenv("TT_LOG_MB"), 0);
    s_start_shell(substrate, "yes first | head -c 1500000; echo 1 > $TT_RUN_DIR/done; while [ -e $TT_RUN_DIR/done ]; "
                             "do sleep 0.01; done; echo last");
    s_await_pid("done");
    tt_clock_turn(&clock, INT64_C(2000000000));
    size_t count = 0;
    assert_ok(substrate->ops->poll(substrate, NULL, &count));
    snprintf(path, sizeof path, "%s/logs/worker-3.log", s_dir);
    tt_buf_init(&text, 4 << 20);
    assert_ok(tt_buf_read_file(&text, path));
    assert_in_range(text.size, 1 << 18, 1 << 19);
    tt_buf_clear(&text);
    snprintf(path, sizeof path, "%s/done", s_dir);
    assert_int_equal(unlink(path), 0);
    (void)s_await_end(substrate);
    snprintf(path, sizeof path, "%s/logs/worker-3.log", s_dir);
    assert_ok(tt_buf_read_file(&text, path));
    assert_non_null(strstr(tt_buf_text(&text), " bytes are missing here"));
    assert_string_equal(tt_buf_text(&text) + text.size - 11, "first\nlast\n");
    tt_buf_free(&text);
    substrate->ops->destroy(&substrate);
}

/*  Its keeper's own, where that has no terminal. */
static void test_the_log_of_the_run_does_not_either(void **state)
{
    (void)state;
    tt_clock_t clock = tt_clock_fake(1000000000);
    tt_substrate_t *substrate = NULL;
    char path[128], line[100];
    struct stat info;
    int fd = -1;
    assert_int_equal(setenv("TT_LOG_MB", "1", 1), 0);
    assert_ok(tt_process_substrate_new(&substrate, s_dir, &clock));
    assert_int_equal(unsetenv("TT_LOG_MB"), 0);
    snprintf(path, sizeof path, "%s/logs/run.log", s_dir);
    assert_ok(tt_file_append(&fd, path, 0644));
    memset(line, 'x', sizeof line);
    line[sizeof line - 1] = '\n';
    for (int i = 0; i < 15000; i++)
        assert_true(tt_file_write(fd, line, sizeof line, NULL));
    size_t count = 0;
    tt_clock_turn(&clock, INT64_C(2000000000));
    assert_ok(substrate->ops->poll(substrate, NULL, &count));
    assert_int_equal(stat(path, &info), 0);
    assert_in_range(info.st_size, 1 << 18, 1 << 19);
    assert_true(tt_file_write(fd, "last\n", 5, NULL)); /* it goes on in the same file */
    close(fd);
    tt_buf_t text;
    tt_buf_init(&text, 4 << 20);
    assert_ok(tt_buf_read_file(&text, path));
    assert_non_null(strstr(tt_buf_text(&text), " bytes are missing here"));
    assert_string_equal(tt_buf_text(&text) + text.size - 7, "x\nlast\n");
    tt_buf_free(&text);
    substrate->ops->destroy(&substrate);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_output_goes_to_the_log, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_every_life_begins_on_a_line_of_its_own, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_log_does_not_grow_without_end, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_the_log_of_the_run_does_not_either, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_ends_are_reported, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_stop_asks_then_kills, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_what_a_replica_forked_dies_with_it, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_destroy_ends_everything, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_other_programs_have_the_limit_of_before, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_without_a_run_directory, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_command_that_is_not_there, s_setup, s_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
