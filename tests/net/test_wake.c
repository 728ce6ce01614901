/*  A socket to be woken by: once is enough, late is not lost, who is gone is no trouble. */
#include "common/net/wake.h"
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "tests/folder.h"
#include "tests/test.h"

typedef struct {
    char dir[FOLDER_MAX];
    tt_wake_t a, b;
} world_t;

static void s_open(world_t *world)
{
    char path[FOLDER_MAX + 16];
    assert_int_equal(folder_make(world->dir, "wake"), 0);
    snprintf(path, sizeof path, "%s/a", world->dir);
    assert_ok(tt_wake_open(&world->a, path));
    snprintf(path, sizeof path, "%s/b", world->dir);
    assert_ok(tt_wake_open(&world->b, path));
}

static void s_close(world_t *world)
{
    tt_wake_close(&world->a);
    tt_wake_close(&world->b);
    assert_int_equal(folder_remove(world->dir), 0);
}

static bool s_is_woken(const tt_wake_t *self)
{
    struct pollfd one = {self->fd, POLLIN, 0};
    return poll(&one, 1, 0) == 1;
}

static void test_a_byte_wakes_until_it_is_taken(void **state)
{
    (void)state;
    world_t world;
    s_open(&world);
    assert_false(s_is_woken(&world.b));
    for (int i = 0; i < 3; i++)
        tt_wake_other(&world.a, world.b.path);
    assert_true(s_is_woken(&world.b));
    assert_false(s_is_woken(&world.a));
    tt_wake_drain(&world.b);
    assert_false(s_is_woken(&world.b));
    s_close(&world);
}

/*  Who does not look is woken a thousand times, and nobody waits for him. */
static void test_who_does_not_look_holds_nobody_up(void **state)
{
    (void)state;
    world_t world;
    s_open(&world);
    for (int i = 0; i < 10000; i++)
        tt_wake_other(&world.a, world.b.path);
    assert_true(s_is_woken(&world.b));
    tt_wake_drain(&world.b);
    assert_false(s_is_woken(&world.b));
    s_close(&world);
}

static void test_who_is_gone_is_no_trouble(void **state)
{
    (void)state;
    world_t world;
    char path[TT_WAKE_PATH];
    s_open(&world);
    snprintf(path, sizeof path, "%s", world.b.path);
    tt_wake_close(&world.b);
    assert_int_not_equal(access(path, F_OK), 0);
    tt_wake_other(&world.a, path);
    tt_wake_close(&world.b); /* again: nothing */
    s_close(&world);
}

static void test_a_path_that_cannot_be(void **state)
{
    (void)state;
    char path[200];
    tt_wake_t wake = {.fd = -1};
    memset(path, 'a', sizeof path - 1);
    path[0] = '/';
    path[sizeof path - 1] = '\0';
    assert_int_equal(tt_wake_open(&wake, path), TT_INVALID);
    assert_int_equal(tt_wake_open(&wake, "/there/is/none"), TT_OS);
    assert_int_equal(wake.fd, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_byte_wakes_until_it_is_taken),
        cmocka_unit_test(test_who_does_not_look_holds_nobody_up),
        cmocka_unit_test(test_who_is_gone_is_no_trouble),
        cmocka_unit_test(test_a_path_that_cannot_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
