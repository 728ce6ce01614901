/*  What a container sees. The parts that need a mount namespace are skipped, aloud, where none can be had. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/base/mem.h"
#include "controller/view.h"
#include "tests/folder.h"
#include "tests/test.h"

static char s_root[FOLDER_MAX], s_said[2048];

static void s_note(void *ctx, const char *text)
{
    (void)ctx;
    snprintf(s_said + strlen(s_said), sizeof s_said - strlen(s_said), "%s\n", text);
}

static char *s_path(const char *name)
{
    return tt_sprintf("%s/%s", s_root, name);
}

/*  A folder with a file in it that says its name. */
static char *s_folder(const char *name)
{
    char *path = s_path(name), *file = tt_sprintf("%s/who", path);
    mkdir(path, 0755);
    FILE *out = fopen(file, "w");
    fputs(name, out);
    fclose(out);
    free(file);
    return path;
}

static int s_open(void **state)
{
    (void)state;
    return folder_make(s_root, "view");
}

static int s_close(void **state)
{
    (void)state;
    return folder_remove(s_root);
}

/*  Run a shell command in that view; its exit code. */
static int s_in_view(const view_want_t *want, const char *command)
{
    tt_steps_t steps = {0};
    char *begin = NULL;
    assert_ok(view_plan(&steps, &begin, want, s_note, NULL));
    const pid_t pid = fork();
    if (pid == 0) {
        size_t failed;
        if (tt_steps_run(&steps, &failed) != 0 || (begin && chdir(begin) != 0))
            _exit(99);
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(98);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    tt_steps_clear(&steps);
    free(begin);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static char s_kind(void)
{
    const char kind = tt_steps_allowed();
    if (!kind) {
        print_message("no mount namespaces here\n");
        skip();
    }
    return kind;
}

static void test_folders_appear_where_the_manifest_says(void **state)
{
    (void)state;
    char *a = s_folder("a"), *b = s_folder("b"), *c = s_folder("c"), *there = s_path("there"), *scratch = s_path("s1");
    const char kind = s_kind();
    mkdir(scratch, 0755);
    mkdir(there, 0755);
    char *nested = tt_sprintf("%s/new/deep", s_root);
    const view_mount_t mounts[] = {{.source = a, .target = there}, {.source = b, .target = "/not-on-this-machine/x"},
        {.source = c, .target = "/not-on-this-machine/x/inner"}, {.source = a, .target = nested},
        {.source = b, .target = "/usr/not-there", .read_only = true}, {.target = "/dev/shm", .tmpfs = "size=65536"}};
    const view_want_t want = {.mounts = mounts,
        .count = TT_COUNT(mounts),
        .scratch = scratch,
        .kind = kind,
        .working_dir = "/not-on-this-machine/x"};
    char *command =
        tt_sprintf("set -e; test $(cat %s/who) = a; test $(cat who) = b; test $(cat inner/who) = c;"
                   "test $(cat %s/who) = a; test $(cat /usr/not-there/who) = b; ! touch /usr/not-there/x 2>/dev/null;"
                   "touch made; test -d /usr/bin; test -e /etc/passwd; test -d %s; test -e /proc/self/status",
            there, nested, a);
    assert_int_equal(s_in_view(&want, command), 0);
    char *made = tt_sprintf("%s/made", b);
    assert_int_equal(access(made, F_OK), 0); /* what was written is in the volume */
    assert_int_not_equal(access("/not-on-this-machine", F_OK), 0);
    assert_int_not_equal(access("/usr/not-there", F_OK), 0);
    assert_int_not_equal(access(nested, F_OK), 0); /* nothing was left on the machine */
    free(made), free(command), free(nested), free(a), free(b), free(c), free(there), free(scratch);
}

/*  What is mounted in it has its place made there: a folder, a file, one in memory again. */
static void test_mounts_inside_one_in_memory(void **state)
{
    (void)state;
    char *a = s_folder("m"), *file = tt_sprintf("%s/who", a), *there = s_path("m1"), *scratch = s_path("s7");
    const char kind = s_kind();
    mkdir(scratch, 0755);
    mkdir(there, 0755);
    char *below = tt_sprintf("%s/deep/er", there);
    const view_mount_t mounts[] = {{.target = "/memory-not-there", .tmpfs = "size=65536"},
        {.source = a, .target = "/memory-not-there/sub"}, {.source = file, .target = "/memory-not-there/a/b/file"},
        {.target = "/memory-not-there/c", .tmpfs = "size=65536"}, {.source = a, .target = "/memory-not-there/c/sub"},
        {.target = there, .tmpfs = "size=65536"}, {.source = a, .target = below},
        {.source = a, .target = "/usr/not-there"}};
    const view_want_t want = {.mounts = mounts, .count = TT_COUNT(mounts), .scratch = scratch, .kind = kind};
    char *command =
        tt_sprintf("cd /memory-not-there && test $(cat sub/who)$(cat a/b/file)$(cat c/sub/who)$(cat %s/who) = mmmm &&"
                   "test -e /etc/passwd",
            below);
    assert_int_equal(s_in_view(&want, command), 0);
    char *made = tt_sprintf("%s/deep", there);
    assert_int_not_equal(access(made, F_OK), 0); /* nothing was left on the machine */
    free(made), free(command), free(below), free(a), free(file), free(there), free(scratch);
}

/*  /tmp is where the sources are, and we. */
static void test_a_mount_may_hide_its_own_source(void **state)
{
    (void)state;
    char *a = s_folder("h"), *b = s_folder("i"), *scratch = s_path("s5");
    const char kind = s_kind();
    mkdir(scratch, 0755);
    const view_mount_t mounts[] = {{.source = a, .target = "/tmp"}, {.source = b, .target = "/tmp/below/it"},
        {.source = b, .target = "/etc/tutti/not-there"}, {.source = b, .target = "/var/lib/tutti-not-there"}};
    view_want_t want = {
        .mounts = mounts, .count = TT_COUNT(mounts), .scratch = scratch, .kind = kind, .working_dir = "/tmp"};
    assert_int_equal(s_in_view(&want, "test $(cat who)$(cat /tmp/below/it/who)$(cat /etc/tutti/not-there/who)"
                                      "$(cat /var/lib/tutti-not-there/who) = hiii && test -e /etc/passwd"),
        0);
    want.working_dir = NULL;
    assert_int_equal(chdir("/tmp"), 0);
    assert_int_equal(s_in_view(&want, "test \"$(pwd)\" = /"), 0);
    assert_int_equal(chdir("/usr"), 0);
    assert_int_equal(s_in_view(&want, "test \"$(pwd)\" = /usr"), 0);
    free(a), free(b), free(scratch);
}

static void test_a_working_directory_that_is_nowhere(void **state)
{
    (void)state;
    char *scratch = s_path("s2");
    const char kind = s_kind();
    mkdir(scratch, 0755);
    const view_want_t want = {.scratch = scratch, .kind = kind, .working_dir = "/workspace-of-an-image/src"};
    assert_int_equal(s_in_view(&want, "test \"$PWD\" = /workspace-of-an-image/src && touch x"), 0);
    assert_int_not_equal(access("/workspace-of-an-image", F_OK), 0);
    free(scratch);
}

static void test_files_are_mounted_too(void **state)
{
    (void)state;
    char *a = s_folder("f"), *file = tt_sprintf("%s/who", a), *scratch = s_path("s3");
    const char kind = s_kind();
    mkdir(scratch, 0755);
    const view_mount_t mounts[] = {
        {.source = file, .target = "/etc/hosts"}, {.source = file, .target = "/etc/not-there.conf"}};
    const view_want_t want = {.mounts = mounts, .count = 2, .scratch = scratch, .kind = kind};
    assert_int_equal(
        s_in_view(&want, "test $(cat /etc/hosts) = f && test $(cat /etc/not-there.conf) = f && test -e /etc/passwd"),
        0);
    free(a), free(file), free(scratch);
}

/*  Without namespaces: what we read is translated, and what the program will not find is said. */
static void test_without_namespaces(void **state)
{
    (void)state;
    char *a = s_folder("n"), *scratch = s_path("s4"), *begin = NULL;
    mkdir(scratch, 0755);
    tt_steps_t steps = {0};
    const view_mount_t mounts[] = {{.source = a, .target = "/work/"}, {.source = a, .target = a}};
    view_want_t want = {.mounts = mounts, .count = 2, .scratch = scratch, .working_dir = "/work/sub"};
    s_said[0] = '\0';
    assert_ok(view_plan(&steps, &begin, &want, s_note, NULL));
    assert_int_equal(steps.count, 0);
    char *sub = tt_sprintf("%s/sub", a),
         *words = tt_sprintf("/work cannot be shown to the process (no mount namespaces here): it is %s\n", a);
    assert_string_equal(begin, sub);
    assert_int_equal(access(sub, F_OK), 0);
    assert_string_equal(s_said, words);
    free(begin), free(sub), free(words);
    begin = NULL;
    want.count = 0;
    want.working_dir = "/nowhere-at-all";
    assert_ok(view_plan(&steps, &begin, &want, s_note, NULL));
    assert_string_equal(begin, scratch);
    free(begin), free(a), free(scratch);
}

static void test_paths_that_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"relative", "/a/../b", "/..", "/"};
    for (size_t i = 0; i < TT_COUNT(bad); i++) {
        tt_steps_t steps = {0};
        char *begin = NULL;
        const view_mount_t mount = {.source = s_root, .target = bad[i]};
        const view_want_t want = {.mounts = &mount, .count = 1, .scratch = s_root};
        assert_int_equal(view_plan(&steps, &begin, &want, NULL, NULL), TT_INVALID);
        assert_null(begin);
        tt_steps_clear(&steps);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_folders_appear_where_the_manifest_says),
        cmocka_unit_test(test_mounts_inside_one_in_memory),
        cmocka_unit_test(test_a_mount_may_hide_its_own_source),
        cmocka_unit_test(test_a_working_directory_that_is_nowhere),
        cmocka_unit_test(test_files_are_mounted_too),
        cmocka_unit_test(test_without_namespaces),
        cmocka_unit_test(test_paths_that_are_refused),
    };
    return cmocka_run_group_tests(tests, s_open, s_close);
}
