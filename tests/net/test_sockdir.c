/*  The directory of a run's sockets: beside the run or in /tmp, private, and removed only if it is this run's. */
#include "common/net/sockdir.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "tests/folder.h"
#include "tests/test.h"

#define LONG "a-rather-long-folder-name-that-fills-a-socket-path/and-another-one-that-makes-it-too-long-for-good"

static char s_dir[FOLDER_MAX], s_far[256], s_other[256]; /* a run with a short path and two with long ones */

static int s_setup(void **state)
{
    (void)state;
    char command[600];
    if (folder_make(s_dir, "sockdir") != 0)
        return -1;
    snprintf(s_far, sizeof s_far, "%s/" LONG "/1", s_dir);
    snprintf(s_other, sizeof s_other, "%s/" LONG "/2", s_dir);
    snprintf(command, sizeof command, "mkdir -p %s %s", s_far, s_other);
    return system(command);
}

static int s_teardown(void **state)
{
    (void)state;
    tt_sockdir_close(s_far);
    tt_sockdir_close(s_other);
    return folder_remove(s_dir);
}

static void s_bind(const char *dir, const char *name)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    assert_true(snprintf(at.sun_path, sizeof at.sun_path, "%s/%s", dir, name) < (int)sizeof at.sun_path);
    const int sock = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(sock, (const struct sockaddr *)&at, sizeof at), 0);
    close(sock);
}

static bool s_is_there(const char *dir, const char *name)
{
    char path[600];
    struct stat info;
    snprintf(path, sizeof path, "%.400s/%.99s", dir, name);
    return lstat(path, &info) == 0;
}

static void s_relink(const char *run, const char *target)
{
    char path[600];
    snprintf(path, sizeof path, "%.400s/sock", run);
    unlink(path);
    assert_int_equal(symlink(target, path), 0);
}

static mode_t s_mode(const char *path)
{
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    return info.st_mode & 07777;
}

static void test_made_found_and_removed(void **state)
{
    (void)state;
    const char *const runs[] = {s_dir, s_far};
    for (size_t i = 0; i < TT_COUNT(runs); i++) {
        char at[200], again[200];
        assert_int_equal(tt_sockdir_find(runs[i], at, sizeof at), TT_NOT_FOUND);
        const mode_t mask = umask(0);
        assert_ok(tt_sockdir_open(runs[i]));
        umask(mask);
        assert_ok(tt_sockdir_find(runs[i], at, sizeof at));
        assert_int_equal(s_mode(at), 0700);
        s_bind(at, "aggregator-65535-4194304.weights");
        assert_ok(tt_sockdir_open(runs[i])); /* of who comes second: the same, with what is in it */
        assert_ok(tt_sockdir_find(runs[i], again, sizeof again));
        assert_string_equal(at, again);
        assert_true(s_is_there(at, "aggregator-65535-4194304.weights"));
        tt_sockdir_close(runs[i]);
        assert_false(s_is_there(at, ""));
        assert_false(s_is_there(runs[i], "sock"));
        tt_sockdir_close(runs[i]);
    }
}

static void test_one_that_is_open_to_others_is_closed_to_them(void **state)
{
    (void)state;
    char at[200];
    assert_ok(tt_sockdir_open(s_dir));
    assert_ok(tt_sockdir_find(s_dir, at, sizeof at));
    assert_int_equal(chmod(at, 0777), 0);
    assert_ok(tt_sockdir_open(s_dir));
    assert_int_equal(s_mode(at), 0700);
    tt_sockdir_close(s_dir);
}

/*  A link to somewhere else: neither used nor emptied. */
static void test_a_crafted_link(void **state)
{
    (void)state;
    char outside[128], at[200], others[200];
    snprintf(outside, sizeof outside, "%s/outside", s_dir);
    assert_int_equal(mkdir(outside, 0700), 0);
    s_bind(outside, "precious");
    assert_ok(tt_sockdir_open(s_other));
    assert_ok(tt_sockdir_find(s_other, others, sizeof others));
    s_bind(others, "control");
    const char *const targets[] = {outside, others, "/tmp/tutti-/../..", "/tmp/tutti-AAAAAA", "."};
    for (size_t i = 0; i < TT_COUNT(targets); i++) {
        s_relink(s_far, targets[i]);
        assert_ok(tt_sockdir_open(s_far));
        assert_ok(tt_sockdir_find(s_far, at, sizeof at));
        assert_string_not_equal(at, outside);
        assert_string_not_equal(at, others);
        tt_sockdir_close(s_far);
        s_relink(s_far, targets[i]);
        tt_sockdir_close(s_far);
        assert_false(s_is_there(s_far, "sock"));
    }
    assert_true(s_is_there(outside, "precious"));
    assert_true(s_is_there(others, "control"));
}

/*  A copy of a run that is live has its link, and is another directory. */
static void test_a_copy_does_not_end_the_original(void **state)
{
    (void)state;
    char at[200], command[600];
    assert_ok(tt_sockdir_open(s_far));
    assert_ok(tt_sockdir_find(s_far, at, sizeof at));
    s_bind(at, "control");
    snprintf(command, sizeof command, "cp -a %s %s/copy", s_far, s_dir);
    assert_int_equal(system(command), 0);
    snprintf(command, sizeof command, "%s/copy", s_dir);
    tt_sockdir_close(command);
    assert_true(s_is_there(at, "control"));
    snprintf(command, sizeof command, "%s-moved", s_far); /* moved it is still the same */
    assert_int_equal(rename(s_far, command), 0);
    tt_sockdir_close(command);
    assert_false(s_is_there(at, ""));
}

static void test_only_sockets_are_removed(void **state)
{
    (void)state;
    char at[200];
    FILE *file;
    assert_ok(tt_sockdir_open(s_dir));
    assert_ok(tt_sockdir_find(s_dir, at, sizeof at));
    s_bind(at, "control");
    strcat(at, "/notes");
    file = fopen(at, "w");
    assert_non_null(file);
    fclose(file);
    tt_sockdir_close(s_dir);
    assert_true(s_is_there(at, "") || s_is_there(s_dir, "sock/notes"));
    assert_false(s_is_there(s_dir, "sock/control"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_made_found_and_removed, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_one_that_is_open_to_others_is_closed_to_them, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_crafted_link, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_copy_does_not_end_the_original, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_only_sockets_are_removed, s_setup, s_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
