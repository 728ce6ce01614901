/*  Where a role sits: what the command line may say, and which endpoints come of it. */
#include "common/net/location.h"
#include <stdio.h>
#include <sys/stat.h>
#include "tests/net/net_help.h"

typedef struct {
    char *dir, *key;
    tt_keys_t keys;
} fixture_t;

static int s_setup(void **state)
{
    fixture_t *f = tt_new0(sizeof *f);
    f->dir = help_mkdir();
    f->key = tt_sprintf("%s/job.key", f->dir);
    char *sock = tt_sprintf("%s/sock", f->dir);
    assert_int_equal(mkdir(sock, 0700), 0);
    free(sock);
    assert_ok(tt_keys_create(&f->keys, f->key));
    *state = f;
    return 0;
}

static int s_teardown(void **state)
{
    fixture_t *f = *state;
    help_rmdir(f->dir);
    free(f->key);
    free(f);
    return 0;
}

static void test_what_the_command_line_may_say(void **state)
{
    fixture_t *f = *state;
    const char *const tcp = "tcp://127.0.0.1:5555";
    const struct {
        tt_location_args_t args;
        tt_status_t status;
    } cases[] = {
        {{0}, TT_USAGE},
        {{.run = f->dir, .coordinator = tcp, .key = f->key}, TT_USAGE},
        {{.coordinator = tcp}, TT_USAGE},
        {{.run = f->dir, .bind = "127.0.0.1"}, TT_USAGE},
        {{.run = "/nonexistent"}, TT_NOT_FOUND},
        {{.run = f->dir, .key = "/nonexistent"}, TT_NOT_FOUND},
        {{.coordinator = "127.0.0.1:5555", .key = f->key}, TT_USAGE},
        {{.coordinator = "tcp://127.0.0.1", .key = f->key}, TT_USAGE},
        {{.coordinator = "tcp://127.0.0.1:", .key = f->key}, TT_USAGE},
        {{.run = f->dir}, TT_OK},
        {{.run = f->dir, .bind = "127.0.0.1", .key = f->key}, TT_OK},
        {{.coordinator = tcp, .key = f->key}, TT_OK},
        {{.coordinator = tcp, .key = f->key, .bind = "127.0.0.2"}, TT_OK},
    };
    for (size_t i = 0; i < TT_COUNT(cases); i++) {
        tt_location_t location;
        const tt_status_t status = tt_location_take(&location, TT_PEER_LEARNER, 1, &cases[i].args);
        if (status != cases[i].status)
            fail_msg("case %zu: %s instead of %s: %s", i, tt_status_name(status), tt_status_name(cases[i].status),
                tt_err_text());
    }
}

/*  A run directory with a path that is too long for a socket has `sock` as a link to a short one. */
static void test_long_run_directories(void **state)
{
    fixture_t *f = *state;
    tt_location_t location;
    char name[121], *sock;
    memset(name, 'x', 120);
    name[120] = '\0';
    char *longer = tt_sprintf("%s/%s", f->dir, name);
    assert_int_equal(mkdir(longer, 0700), 0);
    sock = tt_sprintf("%s/sock", longer);
    assert_int_equal(mkdir(sock, 0700), 0);
    const tt_location_args_t args = {.run = longer};
    assert_int_equal(tt_location_take(&location, TT_PEER_LEARNER, 0, &args), TT_INVALID);
    assert_int_equal(rmdir(sock), 0);
    char *target = tt_sprintf("%s/sock", f->dir);
    assert_int_equal(symlink(target, sock), 0);
    assert_ok(tt_location_take(&location, TT_PEER_LEARNER, 0, &args));
    assert_string_equal(location.dir, target);
    free(target);
    free(sock);
    free(longer);
}

static void test_a_local_location_binds_ipc(void **state)
{
    fixture_t *f = *state;
    tt_location_t location;
    tt_sock_t *sock = NULL;
    char ipc[256], tcp[256];
    const tt_location_args_t args = {.run = f->dir};
    const tt_sock_opts_t opts = {.name = "data"};
    assert_ok(tt_location_take(&location, TT_PEER_AGGREGATOR, 2, &args));
    assert_null(tt_location_keys(&location));
    assert_ok(tt_sock_new(&sock, TT_ROUTER, &opts));
    assert_ok(tt_location_bind(&location, sock, "data", ipc, tcp));
    assert_non_null(strstr(ipc, "/sock/aggregator-2-"));
    assert_string_equal(tcp, "");
    assert_int_equal(access(ipc + 6, F_OK), 0);
    tt_sock_destroy(&sock);
    tt_location_leave(ipc);
    assert_int_not_equal(access(ipc + 6, F_OK), 0);
}

/*  With a bind address it listens on tcp too, for who holds the key; a location on another host takes the tcp endpoint. */
static void test_a_location_on_both(void **state)
{
    fixture_t *f = *state;
    tt_location_t here, there;
    tt_sock_t *sock = NULL, *far = NULL, *near = NULL;
    tt_packet_t packet = {0};
    char ipc[256], tcp[256];
    const char *reach;
    const tt_location_args_t both = {.run = f->dir, .bind = "127.0.0.1", .key = f->key},
                             remote = {.coordinator = "tcp://127.0.0.1:5555", .key = f->key};
    assert_ok(tt_location_take(&here, TT_PEER_LEARNER, 0, &both));
    assert_ok(tt_location_take(&there, TT_PEER_COLLECTOR, -1, &remote));
    assert_string_equal(there.bind, "127.0.0.1"); /* the address that leads to the coordinator */
    assert_string_equal(there.control, "tcp://127.0.0.1:5555");
    const tt_sock_opts_t opts = {.name = "data", .keys = tt_location_keys(&here)};
    assert_ok(tt_sock_new(&sock, TT_ROUTER, &opts));
    assert_ok(tt_location_bind(&here, sock, "data", ipc, tcp));
    assert_true(strncmp(tcp, "tcp://127.0.0.1:", 16) == 0);

    const tt_sock_opts_t far_opts = {.name = "far", .identity = "far", .keys = tt_location_keys(&there)},
                         near_opts = {.name = "near", .identity = "near", .keys = tt_location_keys(&here)};
    const tt_msg_ATTACH_t attach = TT_MSG(ATTACH, .index = 1);
    assert_ok(tt_sock_new(&far, TT_DEALER, &far_opts));
    assert_ok(tt_location_reach(&there, ipc, tcp, &reach));
    assert_string_equal(reach, tcp);
    assert_ok(tt_sock_connect(far, reach));
    assert_ok(tt_sock_send(far, NULL, &attach, NULL, 0));
    assert_ok(help_recv(sock, &packet));
    assert_string_equal(packet.peer, "far");
    assert_ok(tt_sock_new(&near, TT_DEALER, &near_opts));
    assert_ok(tt_location_reach(&here, ipc, tcp, &reach));
    assert_string_equal(reach, ipc);
    assert_ok(tt_sock_connect(near, reach));
    assert_ok(tt_sock_send(near, NULL, &attach, NULL, 0));
    assert_ok(help_recv(sock, &packet));
    assert_string_equal(packet.peer, "near");
    assert_int_equal(tt_location_reach(&there, ipc, "", &reach), TT_UNAVAILABLE);
    tt_packet_clear(&packet);
    tt_sock_destroy(&far);
    tt_sock_destroy(&near);
    tt_sock_destroy(&sock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_the_command_line_may_say, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_long_run_directories, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_local_location_binds_ipc, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_location_on_both, s_setup, s_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
