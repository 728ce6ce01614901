/*  Names in endpoints become addresses; addresses stay as they are. */
#include "common/net/resolve.h"
#include "common/base/mem.h"
#include <string.h>
#include <unistd.h>
#include "tests/test.h"

static void test_addresses_stay(void **state)
{
    (void)state;
    const char *const same[] = {
        "tcp://127.0.0.1:5555", "tcp://10.1.2.3:*", "tcp://*:22273", "tcp://[fd00::3]:1", "ipc:///tmp/x"};
    char out[300];
    for (size_t i = 0; i < TT_COUNT(same); i++) {
        assert_ok(tt_resolve(same[i], out, sizeof out));
        assert_string_equal(out, same[i]);
    }
}

static void test_names_are_looked_up(void **state)
{
    (void)state;
    char out[300];
    assert_int_equal(tt_resolve("tcp://no-such-host.invalid:1", out, sizeof out), TT_NOT_FOUND);
    assert_non_null(strstr(tt_err_text(), "no-such-host.invalid"));
    if (access("/etc/hosts", R_OK) != 0)
        skip(); /* a bare root file system knows no name, not even localhost */
    assert_ok(tt_resolve("tcp://localhost:22273", out, sizeof out));
    assert_true(strcmp(out, "tcp://127.0.0.1:22273") == 0 || strcmp(out, "tcp://[::1]:22273") == 0);
}

static void test_what_is_no_endpoint(void **state)
{
    (void)state;
    char out[300], small[12], host[256], port[16];
    const char *const wrong[] = {"tcp://", "tcp://host", "tcp://:5", "tcp://host:"};
    for (size_t i = 0; i < TT_COUNT(wrong); i++)
        assert_int_equal(tt_resolve(wrong[i], out, sizeof out), TT_USAGE);
    assert_int_equal(tt_resolve("tcp://127.0.0.1:5555", small, sizeof small), TT_USAGE);
    assert_int_equal(tt_endpoint_split("localhost:5", host, port), TT_USAGE);
    assert_ok(tt_endpoint_split("tcp://[fd00::3]:77", host, port));
    assert_string_equal(host, "fd00::3");
    assert_string_equal(port, "77");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_addresses_stay),
        cmocka_unit_test(test_names_are_looked_up), cmocka_unit_test(test_what_is_no_endpoint)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
