/*  Removing: a run and all of it, and nothing that is not the run's, whatever lies in its directory or has its name. */
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "controller/mark.h"
#include "controller/rundir.h"
#include "tests/controller/home.h"

static void s_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void s_folder(const char *path)
{
    assert_int_equal(mkdir(path, 0700), 0);
}

static bool s_is_there(const char *path)
{
    struct stat info;
    return lstat(path, &info) == 0;
}

static void s_count(void *ctx, const tt_rundir_t *run)
{
    (void)run;
    ++*(int *)ctx;
}

static int s_names(void)
{
    int count = 0;
    assert_ok(tt_registry_each(s_count, &count));
    return count;
}

/*  What 0.1 left of a run: no mark. */
static void s_old_run(const char *path)
{
    char at[256];
    static const char *const folders[] = {"", "/logs", "/checkpoints"};
    for (size_t i = 0; i < TT_COUNT(folders); i++) {
        snprintf(at, sizeof at, "%s%s", path, folders[i]);
        s_folder(at);
    }
    static const char *const files[] = {"config.yaml", "metrics.jsonl", "events.out.tfevents.0123456789.host.7.tutti",
        "summary.json", "key", "token", "lock", "coordinator.lock", "journal.db-wal", "logs/learner-0.log"};
    for (size_t i = 0; i < TT_COUNT(files); i++) {
        snprintf(at, sizeof at, "%s/%s", path, files[i]);
        s_file(at, "text\n");
    }
    snprintf(at, sizeof at, "%s/run.json", path);
    s_file(at, "{\"pid\": 12, \"guard\": 11, \"started_ns\": 1790000000000000000, \"resumed\": false}\n");
}

static void test_what_is_no_run_is_left_alone(void **state)
{
    (void)state;
    tt_rundir_t run;
    s_folder("checkout");
    s_folder("checkout/.git");
    s_folder("checkout/logs");
    s_folder("checkout/checkpoints");
    s_file("checkout/config.yaml", "env: CartPole-v1\n");
    s_file("checkout/run.json", "{\"pid\": 12}\n");
    s_file("checkout/" MARK_FILE, "a file of that name\n");
    assert_int_equal(tt_rundir_find(&run, "./checkout"), TT_NOT_FOUND);
    assert_non_null(strstr(tt_err_text(), "not the directory of a run"));
    assert_int_equal(tt_rundir_find(&run, "checkout"), TT_NOT_FOUND);
    assert_non_null(strstr(tt_err_text(), "not the directory of a run"));
    assert_int_equal(s_names(), 0);

    tt_rundir_t claimed = {.name = "checkout"};
    snprintf(claimed.path, sizeof claimed.path, "%s/checkout", s_dir);
    assert_int_equal(tt_rundir_remove(&claimed), TT_DENIED);
    assert_true(s_is_there("checkout/config.yaml") && s_is_there("checkout/.git"));
    assert_false(s_is_there("checkout/lock")); /* not even that */

    assert_int_equal(unlink("checkout/" MARK_FILE), 0); /* nor a link to a mark */
    assert_ok(tt_rundir_create(&run, "true", "job"));
    assert_int_equal(symlink("../true/" MARK_FILE, "checkout/" MARK_FILE), 0);
    assert_int_equal(tt_rundir_find(&run, "./checkout"), TT_NOT_FOUND);
    assert_int_equal(tt_rundir_create(&run, "checkout", "job"), TT_EXISTS);
    assert_non_null(strstr(tt_err_text(), "holds no run"));
    assert_null(strstr(tt_err_text(), "tutti rm"));
}

/*  The directory of a registered run may have become something else. */
static void test_a_name_is_not_enough(void **state)
{
    (void)state;
    tt_rundir_t run;
    assert_ok(tt_rundir_create(&run, "here", "job"));
    assert_int_equal(system("rm -rf here && mkdir here && echo mine > here/config.yaml"), 0);
    assert_int_equal(tt_rundir_remove(&run), TT_DENIED);
    assert_int_equal(tt_rundir_find(&run, "here"), TT_NOT_FOUND);
    assert_true(s_is_there("here/config.yaml"));
    s_file("state/tutti/runs/note", "a file of the user's\n");
    assert_int_equal(s_names(), 0);
    assert_false(s_is_there("state/tutti/runs/here"));
    assert_true(s_is_there("state/tutti/runs/note"));
}

static void test_links_are_not_followed(void **state)
{
    (void)state;
    tt_rundir_t run;
    char path[128];
    s_folder("outside");
    s_file("outside/precious", "x");
    assert_ok(tt_rundir_create(&run, "run", "job"));
    snprintf(path, sizeof path, "%s/outside", s_dir);
    assert_int_equal(symlink(path, "run/claims"), 0);
    assert_int_equal(symlink("../../outside", "run/logs/link"), 0);
    assert_int_equal(symlink("../outside/precious", "run/token"), 0);
    assert_int_equal(rmdir("run/checkpoints"), 0);
    assert_int_equal(symlink("../outside", "run/checkpoints"), 0);
    s_folder("run/pods");
    s_file("run/pods/file", "x");
    assert_ok(tt_rundir_find(&run, "run"));
    assert_ok(tt_rundir_remove(&run));
    assert_false(s_is_there("run"));
    assert_true(s_is_there("outside/precious"));
}

/*  What is linked to may not be what was meant: it is named instead. */
static void test_a_link_to_a_run_is_not_the_run(void **state)
{
    (void)state;
    tt_rundir_t run;
    assert_ok(tt_rundir_create(&run, "run", "job"));
    assert_int_equal(symlink("run", "best"), 0);
    static const char *const links[] = {"best", "best/", "./best//"};
    for (size_t i = 0; i < TT_COUNT(links); i++) {
        assert_ok(tt_rundir_find(&run, links[i]));
        assert_int_equal(tt_rundir_remove(&run), TT_USAGE);
        assert_non_null(strstr(tt_err_text(), run.path));
    }
    s_folder("disk");
    assert_int_equal(symlink("disk", "runs"), 0); /* above it links are as good as any folder */
    assert_ok(tt_rundir_create(&run, "runs/there", "job"));
    assert_ok(tt_rundir_find(&run, "runs/there"));
    assert_ok(tt_rundir_remove(&run));
    assert_true(s_is_there("run/" MARK_FILE) && s_is_there("best") && !s_is_there("disk/there"));
}

static void test_runs_without_a_mark(void **state)
{
    (void)state;
    tt_rundir_t run;
    s_old_run("old");
    assert_ok(tt_rundir_find(&run, "old"));
    assert_int_equal(s_names(), 1);
    assert_ok(tt_rundir_remove(&run));
    assert_false(s_is_there("old"));

    s_old_run("resumed"); /* by us: from then on it is marked, whatever we add to it */
    assert_ok(tt_rundir_find(&run, "resumed"));
    assert_ok(tt_rundir_begin(&run));
    s_file("resumed/history.jsonl", "{}\n");
    assert_ok(tt_rundir_remove(&run));
    assert_false(s_is_there("resumed"));

    s_old_run("used");
    s_file("used/thesis.tex", "years of work");
    assert_ok(tt_rundir_find(&run, "used"));
    assert_ok(tt_rundir_begin(&run));
    assert_int_equal(tt_rundir_remove(&run), TT_DENIED);
    assert_non_null(strstr(tt_err_text(), "holds other things than its run"));
    assert_true(s_is_there("used/thesis.tex") && s_is_there("used/run.json"));
}

/*  A volume that was given to a coordinator: a run's alone only if it was empty. */
static void test_a_directory_that_was_there(void **state)
{
    (void)state;
    tt_rundir_t run;
    s_folder("empty");
    s_folder("empty/lost+found");
    s_folder("full");
    s_file("full/notes", "x");
    assert_ok(tt_rundir_adopt(&run, "empty", 0700));
    assert_int_equal(mark_look("empty"), MARK_RUN);
    assert_ok(tt_rundir_adopt(&run, "empty", 0700)); /* and again, with a run in it */
    assert_ok(tt_rundir_adopt(&run, "full", 0700));
    assert_false(s_is_there("full/" MARK_FILE));
    assert_int_equal(tt_rundir_remove(&run), TT_DENIED);
    assert_ok(tt_rundir_adopt(&run, "deep/new", 0700));
    assert_ok(tt_rundir_remove(&run));
    assert_false(s_is_there("deep/new"));
    assert_true(s_is_there("full/notes"));
}

static void test_another_users_run_gets_no_name(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    tt_rundir_t run;
    s_old_run("old");
    assert_int_equal(chown("old", 65534, 65534), 0);
    assert_ok(tt_rundir_find(&run, "old"));
    assert_int_equal(s_names(), 0);
}

/*  In a process with mounts of its own; 0: all as it should be. */
static int s_with_a_mount(tt_rundir_t *run)
{
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", "run/claims", "tmpfs", 0, "size=64k") != 0)
        return 77;
    s_file("run/claims/precious", "x");
    const bool refused = tt_rundir_remove(run) != TT_OK && strstr(tt_err_text(), "claims");
    const bool kept = s_is_there("run/claims/precious") && mark_look("run") == MARK_RUN;
    return refused && kept && umount("run/claims") == 0 && tt_rundir_remove(run) == TT_OK ? 0 : 1;
}

static void test_what_is_mounted_below_stays(void **state)
{
    (void)state;
    tt_rundir_t run;
    int code;
    assert_ok(tt_rundir_create(&run, "run", "job"));
    s_folder("run/claims");
    const pid_t pid = fork();
    if (pid == 0)
        _exit(s_with_a_mount(&run));
    assert_int_equal(waitpid(pid, &code, 0), pid);
    if (WIFEXITED(code) && WEXITSTATUS(code) == 77)
        skip();
    assert_int_equal(code, 0);
    assert_false(s_is_there("run"));
}

/*  Somebody put one run into the directory of another, and it goes on. */
static void test_a_run_inside_that_is_running(void **state)
{
    (void)state;
    tt_rundir_t outer, inner;
    int lock;
    assert_ok(tt_rundir_create(&outer, "outer", "job"));
    assert_ok(tt_rundir_create(&inner, "outer/deep/inner", "job"));
    assert_ok(tt_rundir_lock(&inner, &lock));
    assert_int_equal(tt_rundir_remove(&outer), TT_EXISTS);
    assert_non_null(strstr(tt_err_text(), "run inner, in"));
    assert_true(s_is_there("outer/.tutti-run") && s_is_there("outer/deep/inner/.tutti-run"));
    close(lock);
    assert_int_equal(tt_rundir_remove(&outer), TT_DENIED); /* nor does one that has ended go unnoticed */
    assert_ok(tt_rundir_remove_all(&outer));
    assert_false(s_is_there("outer"));
}

/*  All that any version writes at the top of a run's directory; docs/guide/formats.md. */
static void test_nothing_of_ours_is_a_strangers(void **state)
{
    (void)state;
    tt_rundir_t run;
    static const char *const names[] = {"config.yaml", "metrics.jsonl", "evaluations.jsonl",
        "events.out.tfevents.0123456789.host.7.tutti", "summary.json", "history.jsonl", "result.json", "run.json",
        ".room", "job.json", "pods.json", "pods", "claims", "host", "hosts", "journal.db", "journal.db-wal",
        "journal.db-shm", "key", "token", "http.json", "lock", "coordinator.lock", "sock", ".summary.json.tmp",
        ".key.new", "summary.json.tutti-12-0.tmp", ".room.tutti-12-0.tmp", "lost+found", ".nfs0000000000a1"};
    assert_ok(tt_rundir_create(&run, "run", "job"));
    for (size_t i = 0; i < TT_COUNT(names); i++) {
        char path[256];
        snprintf(path, sizeof path, "run/%s", names[i]);
        s_file(path, "x");
    }
    assert_ok(tt_rundir_remove(&run));
    assert_false(s_is_there("run"));
}

static void test_what_somebody_put_there_stays(void **state)
{
    (void)state;
    tt_rundir_t run;
    static const char *const names[] = {"zebra", "main.c", "final.safetensors", "Config.yaml",
        "events.out.tfevents.1.host", "checkpoints2", ".hidden", "journal.db.bak", "tutti-1-0.tmp"};
    for (size_t i = 0; i < TT_COUNT(names); i++) {
        char path[256], words[300];
        assert_ok(tt_rundir_create(&run, "run", "job"));
        snprintf(path, sizeof path, "run/%s", names[i]);
        s_file(path, "x");
        assert_int_equal(tt_rundir_remove(&run), TT_DENIED);
        snprintf(words, sizeof words, "/run holds what is not its run's: %s; move that away, or 'tutti rm --force run'",
            names[i]);
        assert_non_null(strstr(tt_err_text(), words));
        assert_true(s_is_there(path) && s_is_there("run/logs") && s_is_there("run/" MARK_FILE));
        assert_ok(tt_rundir_remove_all(&run));
        assert_false(s_is_there("run"));
    }
}

/*  What cannot be listed is not taken for empty. */
static void test_what_cannot_be_listed_is_no_runs_alone(void **state)
{
    (void)state;
    char names[64];
    size_t count = 7;
    struct rlimit limit;
    s_folder("run");
    const int dir = open("run", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(dir >= 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const struct rlimit none = {.rlim_cur = 0, .rlim_max = limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    const tt_status_t status = mark_strangers(dir, &count, names, sizeof names);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(status, TT_IO);
    assert_int_equal(count, 7);
    assert_ok(mark_strangers(dir, &count, names, sizeof names));
    assert_int_equal(count, 0);
    assert_string_equal(names, "");
    close(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_is_no_run_is_left_alone, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_name_is_not_enough, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_links_are_not_followed, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_link_to_a_run_is_not_the_run, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_runs_without_a_mark, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_directory_that_was_there, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_another_users_run_gets_no_name, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_what_is_mounted_below_stays, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_run_inside_that_is_running, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_nothing_of_ours_is_a_strangers, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_what_somebody_put_there_stays, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_what_cannot_be_listed_is_no_runs_alone, s_setup, s_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
