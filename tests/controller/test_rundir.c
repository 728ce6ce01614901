/*  Run directories: making, finding by name, locking, removing. */
#include "controller/rundir.h"
#include "tests/controller/home.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/base/mem.h"

static ino_t s_synced[16]; /* what was written to the disk, in that order */
static size_t s_syncs;

/*  In the C library's place. */
int fsync(int fd)
{
    struct stat info;
    assert_int_equal(fstat(fd, &info), 0);
    assert_true(s_syncs < sizeof s_synced / sizeof *s_synced);
    s_synced[s_syncs++] = info.st_ino;
    return (int)syscall(SYS_fsync, fd);
}

static void test_numbers_count_up(void **state)
{
    (void)state;
    tt_rundir_t first, second, found;
    assert_ok(tt_rundir_create(&first, NULL, "job"));
    assert_ok(tt_rundir_create(&second, NULL, "job"));
    assert_string_equal(first.name, "job-1");
    assert_string_equal(second.name, "job-2");
    assert_ok(tt_rundir_find(&found, "job-2")); /* the name alone: job-2 is not a path here */
    assert_string_equal(found.path, second.path);
    assert_int_equal(tt_rundir_find(&found, "job-3"), TT_NOT_FOUND);
    assert_non_null(strstr(tt_err_text(), "job-"));
}

static void test_a_directory_in_use_is_refused(void **state)
{
    (void)state;
    tt_rundir_t run, again;
    char path[128];
    snprintf(path, sizeof path, "%s/deep/er/here", s_dir);
    assert_ok(tt_rundir_create(&run, path, "job"));
    assert_string_equal(run.name, "here");
    assert_int_equal(tt_rundir_create(&again, path, "job"), TT_EXISTS);
    assert_non_null(strstr(tt_err_text(), "resume"));
}

static void test_same_name_elsewhere(void **state)
{
    (void)state;
    tt_rundir_t a, b, found;
    assert_ok(tt_rundir_create(&a, "a/run", "job"));
    assert_ok(tt_rundir_create(&b, "b/run", "job"));
    assert_string_equal(a.name, "run");
    assert_string_equal(b.name, "run~2");
    assert_ok(tt_rundir_find(&found, "run~2"));
    assert_string_equal(found.path, b.path);
}

static void test_lock_and_remove(void **state)
{
    (void)state;
    tt_rundir_t run, found;
    int fd, other;
    assert_ok(tt_rundir_create(&run, NULL, "job"));
    assert_false(tt_rundir_live(&run));
    assert_ok(tt_rundir_lock(&run, &fd));
    assert_true(tt_rundir_live(&run));
    assert_true(tt_rundir_held_by(&run, getpid()));
    assert_false(tt_rundir_held_by(&run, getppid()));
    assert_int_equal(tt_rundir_lock(&run, &other), TT_EXISTS);
    assert_int_equal(tt_rundir_remove(&run), TT_EXISTS);
    close(fd);
    assert_false(tt_rundir_held_by(&run, getpid()));
    assert_ok(tt_rundir_remove(&run));
    assert_int_not_equal(access(run.path, F_OK), 0);
    assert_int_equal(tt_rundir_find(&found, "job-1"), TT_NOT_FOUND);
}

/*  Another process that calls fn(run) for as long as it lives. */
static pid_t s_busy(void (*fn)(tt_rundir_t *run), tt_rundir_t *run)
{
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            fn(run);
    }
    return pid;
}

static void s_end(pid_t pid)
{
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void s_look(tt_rundir_t *run)
{
    (void)tt_rundir_live(run);
}

/*  `tutti status` of a run that is just starting must not keep it from starting, nor `tutti ps` make it look alive. */
static void test_who_only_looks_keeps_nobody_out(void **state)
{
    (void)state;
    tt_rundir_t run;
    int fd;
    assert_ok(tt_rundir_create(&run, NULL, "job"));
    assert_ok(tt_rundir_lock(&run, &fd));
    close(fd);
    const pid_t lookers[] = {s_busy(s_look, &run), s_busy(s_look, &run)};
    for (int i = 0; i < 2000; i++) {
        assert_false(tt_rundir_live(&run));
        assert_ok(tt_rundir_lock(&run, &fd));
        assert_true(tt_rundir_live(&run));
        close(fd);
    }
    for (size_t i = 0; i < TT_COUNT(lookers); i++)
        s_end(lookers[i]);
}

/*  Whoever holds a run learns that its directory is not there any more, and is not taken in by another in its place. */
static void test_a_directory_that_is_moved_is_missed(void **state)
{
    (void)state;
    tt_rundir_t run, other;
    int fd;
    assert_ok(tt_rundir_create(&run, "runs/here", "job"));
    assert_ok(tt_rundir_lock(&run, &fd));
    assert_ok(tt_rundir_check(&run, fd));
    assert_int_equal(rename("runs/here", "runs/there"), 0);
    assert_int_equal(tt_rundir_check(&run, fd), TT_IO);
    assert_non_null(strstr(tt_err_text(), run.path));
    assert_non_null(strstr(tt_err_text(), "is gone or was moved"));
    assert_ok(tt_rundir_create(&other, "runs/here", "job"));
    assert_int_equal(tt_rundir_check(&run, fd), TT_IO);
    int lock;
    assert_ok(tt_rundir_lock(&other, &lock));
    assert_int_equal(tt_rundir_check(&run, fd), TT_IO);
    assert_ok(tt_rundir_check(&other, lock));
    close(lock);
    assert_ok(tt_rundir_remove(&other));
    assert_int_equal(rename("runs/there", "runs/here"), 0);
    assert_ok(tt_rundir_check(&run, fd)); /* it came back */
    assert_int_equal(unlink("runs/here/lock"), 0);
    assert_int_equal(tt_rundir_check(&run, fd), TT_IO); /* another run could take it */
    close(fd);
}

static void s_count(void *ctx, const tt_rundir_t *run)
{
    (void)run;
    ++*(int *)ctx;
}

/*  Runs that start together under one name each get a name of their own. */
static void test_names_are_taken_one_at_a_time(void **state)
{
    (void)state;
    enum { ROUNDS = 20, RUNS = 8 };
    int names = 0;
    for (int round = 0; round < ROUNDS; round++) {
        int start[2];
        assert_int_equal(pipe(start), 0);
        for (int i = 0; i < RUNS; i++)
            if (fork() == 0) {
                tt_rundir_t run;
                char path[512], byte;
                snprintf(path, sizeof path, "%s/%d.%d/run", s_dir, round, i);
                close(start[1]);
                (void)!read(start[0], &byte, 1); /* till all are there */
                _exit(tt_rundir_create(&run, path, "job") != TT_OK);
            }
        close(start[0]);
        close(start[1]);
        for (int i = 0, code; i < RUNS; i++)
            assert_true(wait(&code) > 0 && code == 0);
    }
    assert_ok(tt_registry_each(s_count, &names));
    assert_int_equal(names, ROUNDS * RUNS);
}

static void test_sockets_of_a_long_path(void **state)
{
    (void)state;
    tt_rundir_t run;
    char path[512], control[512];
    snprintf(path, sizeof path, "%s/%s/%s", s_dir, "a-rather-long-folder-name-that-fills-a-socket-path",
        "and-another-one-that-makes-it-too-long-for-good");
    assert_ok(tt_rundir_create(&run, path, "job"));
    assert_ok(tt_rundir_open_sockets(&run));
    tt_rundir_control(&run, control, sizeof control);
    assert_true(strlen(control) < 100);
    char *target = realpath(strcat(path, "/sock"), NULL);
    assert_non_null(target);
    struct stat st;
    assert_int_equal(stat(target, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    tt_rundir_close_sockets(&run);
    assert_int_not_equal(access(target, F_OK), 0);
    free(target);
}

static mode_t s_mode(const char *path)
{
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    return info.st_mode & 07777;
}

/*  Whatever the umask: nobody else looks into a run, locks it, or learns of its name. */
static void test_a_run_is_its_owners(void **state)
{
    (void)state;
    static const mode_t masks[] = {0, 022, 077};
    for (size_t i = 0; i < TT_COUNT(masks); i++) {
        tt_rundir_t run;
        int fd;
        const mode_t mask = umask(masks[i]);
        assert_ok(tt_rundir_create(&run, NULL, "job"));
        assert_ok(tt_rundir_lock(&run, &fd));
        assert_ok(tt_rundir_write(&run, "config.yaml", "x", 0644));
        assert_ok(tt_rundir_write(&run, "token", "x", 0600));
        umask(mask);
        assert_int_equal(chdir(run.path), 0);
        assert_int_equal(s_mode("."), 0700);
        assert_int_equal(s_mode("lock"), 0600);
        assert_int_equal(s_mode("token"), 0600);
        assert_int_equal(s_mode("config.yaml"), 0644 & ~masks[i]);
        assert_int_equal(s_mode("logs"), 0777 & ~masks[i]);
        assert_int_equal(chmod("lock", 0666), 0); /* as 0.1 left it */
        close(fd);
        assert_ok(tt_rundir_lock(&run, &fd));
        assert_int_equal(s_mode("lock"), 0600);
        close(fd);
        assert_int_equal(chdir(s_dir), 0);
    }
    assert_int_equal(s_mode("state/tutti/runs"), 0700);
}

static void test_nothing_is_left_of_one_that_cannot_be_registered(void **state)
{
    (void)state;
    tt_rundir_t run;
    FILE *file = fopen("state", "w"); /* where the registry's folder should be */
    assert_non_null(file);
    fclose(file);
    assert_int_not_equal(tt_rundir_create(&run, "fresh", "job"), TT_OK);
    assert_non_null(strstr(tt_err_text(), "XDG_STATE_HOME"));
    assert_int_not_equal(access("fresh", F_OK), 0);
    assert_int_equal(mkdir("there", 0755), 0);
    assert_int_not_equal(tt_rundir_create(&run, "there", "job"), TT_OK);
    assert_int_equal(access("there", F_OK), 0); /* it was not ours */
    assert_int_equal(rmdir("there"), 0);
    assert_int_equal(unlink("state"), 0);
    assert_ok(tt_rundir_create(&run, "fresh", "job"));
}

/*  The mark, and then the directory that has its name. */
static void s_expect_synced(const char *path)
{
    struct stat dir, mark;
    char file[256];
    snprintf(file, sizeof file, "%s/.tutti-run", path);
    assert_int_equal(stat(path, &dir), 0);
    assert_int_equal(stat(file, &mark), 0);
    assert_int_equal(s_syncs, 2);
    assert_int_equal(s_synced[0], mark.st_ino);
    assert_int_equal(s_synced[1], dir.st_ino);
    s_syncs = 0;
}

static void test_a_mark_lasts(void **state)
{
    (void)state;
    tt_rundir_t run;
    s_syncs = 0;
    assert_ok(tt_rundir_create(&run, "mine", "job"));
    assert_int_equal(s_syncs, 0); /* it starts at once */
    assert_ok(tt_rundir_sync(&run));
    s_expect_synced("mine");
    assert_ok(tt_rundir_adopt(&run, "pod", 0700));
    s_expect_synced("pod");
    assert_int_equal(mkdir("volume", 0700), 0);
    assert_int_equal(mkdir("volume/other", 0700), 0);
    assert_ok(tt_rundir_adopt(&run, "volume", 0700)); /* no mark */
    assert_int_equal(s_syncs, 0);
}

/*  What 'tutti run --name demo' is said to be called, and is not. */
static void test_a_name_without_its_number(void **state)
{
    (void)state;
    tt_rundir_t run, found;
    for (int i = 0; i < 11; i++)
        assert_ok(tt_rundir_create(&run, NULL, "demo"));
    assert_ok(tt_rundir_create(&run, NULL, "demo-two"));
    assert_int_equal(tt_rundir_find(&found, "demo"), TT_NOT_FOUND);
    assert_non_null(strstr(tt_err_text(), "no run 'demo'; did you mean 'demo-11'?"));
}

/*  Where we may not look, nothing is said of what is there. */
static void test_a_directory_that_may_not_be_looked_at(void **state)
{
    (void)state;
    tt_rundir_t found;
    const uid_t me = geteuid();
    assert_int_equal(mkdir("shut", 0700), 0);
    assert_int_equal(mkdir("shut/below", 0700), 0);
    if (me == 0 && (chmod(".", 0755) != 0 || seteuid(65534) != 0))
        skip();
    assert_true(me == 0 || chmod("shut", 0) == 0);
    const tt_status_t itself = tt_rundir_find(&found, "shut");
    char *words = tt_strdup(tt_err_text());
    const tt_status_t below = tt_rundir_find(&found, "shut/below");
    assert_true(me == 0 ? seteuid(0) == 0 : chmod("shut", 0700) == 0);
    assert_int_equal(itself, TT_DENIED);
    assert_string_equal(words, "shut: Permission denied");
    assert_int_equal(below, TT_DENIED);
    free(words);
}

static void s_fail_on(void *ctx, const char *name, const char *was)
{
    (void)ctx;
    fail_msg("%s at %s is forgotten", name, was);
}

/*  Its disk is away for a moment, or its folder shut: nobody says that it is gone, and nobody takes its name. */
static void test_a_name_of_what_cannot_be_looked_at_stays(void **state)
{
    (void)state;
    tt_rundir_t run, other, found;
    const uid_t me = geteuid();
    static const char *const folders[] = {"shut", "open", "state"};
    for (size_t i = 0; i < TT_COUNT(folders); i++) {
        assert_int_equal(mkdir(folders[i], 0755), 0);
        assert_true(me != 0 || chown(folders[i], 65534, 65534) == 0);
    }
    if (me == 0 && (chmod(".", 0755) != 0 || seteuid(65534) != 0))
        skip();
    assert_ok(tt_rundir_create(&run, "shut/job", "job"));
    assert_int_equal(chmod("shut", 0), 0);
    const tt_status_t swept = tt_registry_sweep(s_fail_on, NULL), made = tt_rundir_create(&other, "open/job", "job"),
                      looked = tt_rundir_find(&found, "job");
    char *words = tt_strdup(tt_err_text());
    assert_int_equal(chmod("shut", 0755), 0);
    const tt_status_t again = tt_rundir_find(&found, "job");
    assert_int_equal(me == 0 ? seteuid(0) : 0, 0);
    assert_ok(swept);
    assert_ok(made);
    assert_string_equal(other.name, "job~2");
    assert_int_equal(looked, TT_DENIED);
    assert_non_null(strstr(words, "/shut/job, which cannot be looked at: Permission denied"));
    assert_ok(again);
    assert_string_equal(found.path, run.path);
    free(words);
}

/*  As links of our own making: so many runs would take a while to make. */
static void test_however_many_there_are(void **state)
{
    (void)state;
    enum { NAMES = 5000 };
    tt_rundir_t run;
    int names = 0;
    assert_ok(tt_rundir_create(&run, NULL, "job"));
    for (int i = 2; i <= NAMES; i++) {
        char link[128];
        snprintf(link, sizeof link, "state/tutti/runs/job-%d", i);
        assert_int_equal(symlink(run.path, link), 0);
    }
    assert_ok(tt_registry_each(s_count, &names));
    assert_int_equal(names, NAMES);
}

static void test_a_run_that_was_moved_is_not_its_own_nearest(void **state)
{
    (void)state;
    tt_rundir_t run, found;
    char words[256];
    assert_ok(tt_rundir_create(&run, "there", "job"));
    assert_int_equal(rename("there", "elsewhere"), 0);
    assert_int_equal(tt_rundir_find(&found, "there"), TT_NOT_FOUND);
    snprintf(words, sizeof words, "run 'there' was at %s/there, which is gone", s_dir);
    assert_non_null(strstr(tt_err_text(), words));
    assert_int_equal(tt_rundir_find(&found, "thera"), TT_NOT_FOUND);
    assert_null(strstr(tt_err_text(), "did you mean"));
    assert_ok(tt_rundir_find(&found, "elsewhere"));
    assert_int_equal(tt_rundir_find(&found, "elsewhera"), TT_NOT_FOUND);
    assert_non_null(strstr(tt_err_text(), "did you mean 'elsewhere'"));
}

static void test_files_are_written_whole(void **state)
{
    (void)state;
    tt_rundir_t run;
    assert_ok(tt_rundir_create(&run, NULL, "job"));
    assert_ok(tt_rundir_write(&run, "note", "one", 0600));
    assert_ok(tt_rundir_write(&run, "note", "two", 0600));
    tt_buf_t text;
    tt_buf_init(&text, 100);
    assert_ok(tt_rundir_read(&run, "note", &text));
    assert_string_equal(tt_buf_text(&text), "two");
    tt_buf_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_numbers_count_up, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_directory_in_use_is_refused, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_same_name_elsewhere, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_lock_and_remove, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_who_only_looks_keeps_nobody_out, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_directory_that_is_moved_is_missed, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_names_are_taken_one_at_a_time, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_sockets_of_a_long_path, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_run_is_its_owners, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_nothing_is_left_of_one_that_cannot_be_registered, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_mark_lasts, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_name_without_its_number, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_directory_that_may_not_be_looked_at, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_name_of_what_cannot_be_looked_at_stays, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_however_many_there_are, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_run_that_was_moved_is_not_its_own_nearest, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_files_are_written_whole, s_setup, s_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
