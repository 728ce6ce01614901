/*  Where tasks stand: whole or not at all, what an attempt leaves, and that nothing is removed that was not made. */
#include <fcntl.h>
#include "rig.h"
#include "task/place.h"

static bool s_there(const char *name)
{
    struct stat info;
    return lstat(rig_path(name), &info) == 0;
}

static void s_made_and_removed(void **state)
{
    (void)state;
    const char *dir = rig_path("task");
    rig_folder(rig_path("data"), 3);
    const place_link_t links[] = {{"user.me.data", rig_path("data")}};
    assert_ok(place_make(dir, "user.me.task", links, 1));
    assert_int_equal(access(rig_path("task/user.me.data/cfg2"), R_OK), 0);
    assert_ok(place_make(dir, "user.me.task", links, 1)); /* the one before was not finished */
    assert_int_equal(mkdir(rig_path("begun"), 0755), 0);  /* killed before its mark, and in the middle of it */
    assert_ok(place_make(rig_path("begun"), "user.me.task", NULL, 0));
    assert_int_equal(mkdir(rig_path("hardly"), 0755), 0);
    rig_write(rig_path("hardly/.tutti-task"), "");
    assert_ok(place_make(rig_path("hardly"), "user.me.task", NULL, 0));
    assert_ok(place_finish(dir, "user.me.task"));
    assert_int_equal(place_make(dir, "user.me.task", links, 1), TT_EXISTS);
    assert_int_equal(place_remove(dir, "user.me.other"), TT_DENIED);
    assert_ok(place_attempt(dir, 0, 1));
    rig_write(rig_path("task/job_configId_0/out"), "x");
    assert_int_equal(symlink(rig_path("data"), rig_path("task/job_configId_0/link")), 0);
    assert_ok(place_remove(dir, "user.me.task"));
    assert_false(s_there("task"));
    assert_true(s_there("data/cfg0") && s_there("data/cfg2")); /* behind two links */
    assert_ok(place_remove(dir, "user.me.task"));
}

static void s_others_stay(void **state)
{
    (void)state;
    rig_folder(rig_path("folder"), 1);
    assert_int_equal(place_make(rig_path("folder"), "user.me.task", NULL, 0), TT_EXISTS);
    assert_int_equal(place_remove(rig_path("folder"), "user.me.task"), TT_DENIED);
    rig_write(rig_path("file"), "x");
    assert_int_equal(place_make(rig_path("file"), "user.me.task", NULL, 0), TT_EXISTS);
    assert_ok(place_make(rig_path("task"), "user.me.task", NULL, 0));
    assert_ok(place_finish(rig_path("task"), "user.me.task"));
    assert_int_equal(symlink(rig_path("task"), rig_path("link")), 0);
    assert_int_not_equal(place_remove(rig_path("link"), "user.me.task"), TT_OK);
    assert_true(s_there("task/logs"));
    const place_link_t twice[] = {{"user.me.data", "/x"}, {"user.me.data", "/y"}};
    assert_int_equal(place_make(rig_path("half"), "user.me.task", twice, 2), TT_IO);
    assert_false(s_there("half"));
}

/*  What was to be removed is, and not what has come in its place. */
static void s_replaced(void **state)
{
    (void)state;
    const char *dir = rig_path("task");
    int fd = 7;
    assert_ok(place_open(dir, "user.me.task", &fd));
    assert_int_equal(fd, -1);
    assert_ok(place_empty(fd, dir));
    assert_ok(place_make(dir, "user.me.task", NULL, 0));
    assert_int_equal(place_open(dir, "user.me.other", &fd), TT_DENIED);
    assert_ok(place_open(dir, "user.me.task", &fd));
    assert_int_equal(rename(dir, rig_path("aside")), 0);
    assert_ok(place_make(dir, "user.me.task", NULL, 0));
    assert_int_equal(place_empty(fd, dir), TT_IO);
    assert_false(s_there("aside/logs"));
    assert_true(s_there("task/logs") && s_there("task/.tutti-task"));
}

static void s_attempts(void **state)
{
    (void)state;
    const char *dir = rig_path("task");
    int code = 7;
    assert_ok(place_make(dir, "user.me.task", NULL, 0));
    assert_ok(place_attempt(dir, 3, 1));
    rig_write(rig_path("task/job_configId_3/out"), "x");
    assert_ok(place_attempt(dir, 3, 2));
    assert_false(s_there("task/job_configId_3/out"));
    assert_true(s_there("task/job_configId_3.attempt1/out"));
    assert_false(place_exit(dir, 3, 2, &code));
    const char *wrong[] = {"", "x\n", "1", "256\n", "-1\n", "3 \n"};
    for (size_t i = 0; i < TT_COUNT(wrong); i++) {
        rig_write(rig_path("task/logs/job_configId_3-2.exit"), wrong[i]);
        assert_false(place_exit(dir, 3, 2, &code));
    }
    rig_write(rig_path("task/logs/job_configId_3-2.exit"), "143\n");
    assert_true(place_exit(dir, 3, 2, &code) && code == 143);
    assert_false(place_exit(dir, 3, 1, &code)); /* of another attempt */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(s_made_and_removed, rig_set_up, rig_tear_down),
        cmocka_unit_test_setup_teardown(s_others_stay, rig_set_up, rig_tear_down),
        cmocka_unit_test_setup_teardown(s_replaced, rig_set_up, rig_tear_down),
        cmocka_unit_test_setup_teardown(s_attempts, rig_set_up, rig_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
