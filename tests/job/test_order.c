/*  Bodies of orders: what is taken, and what is refused with which words. */
#include "common/job/order.h"
#include <string.h>
#include "tests/test.h"

static tt_status_t s_stop(const char *body, bool code)
{
    json_t *object = NULL;
    TT_TRY(tt_order_parse(&object, "stop", body));
    const tt_status_t status = tt_order_check_stop(object, code);
    json_decref(object);
    return status;
}

static void s_refused(const char *body, bool code, const char *words)
{
    assert_int_equal(s_stop(body, code), TT_INVALID);
    if (!strstr(tt_err_text(), words))
        fail_msg("%s: %s", body, tt_err_text());
}

static void test_stop(void **state)
{
    (void)state;
    assert_ok(s_stop(NULL, false));
    assert_ok(s_stop("", false));
    assert_ok(s_stop("{}", false));
    assert_ok(s_stop("{\"reason\": \"enough\", \"now\": true}", false));
    assert_ok(s_stop("{\"code\": 143}", true));
    s_refused("{\"code\": 3}", false, "no key 'code'; there are reason and now");
    s_refused("{\"code\": 256}", true, "code must be a number from 0 to 255");
    s_refused("{\"foo\": 1}", true, "no key 'foo'; there are reason and now");
    s_refused("{\"now\": \"yes\"}", false, "now must be true or false");
    s_refused("{\"reason\": 5}", false, "reason must be a string");
}

static void test_what_is_no_object(void **state)
{
    (void)state;
    json_t *object = NULL;
    s_refused("stop", false, "not JSON (line 1: ");
    s_refused("{\"now\": true, \"now\": false}", false, "not JSON (line 1: ");
    s_refused("[]", false, "expected a JSON object, for example {\"reason\": \"enough\"}");
    assert_int_equal(tt_order_parse(&object, "scale", "[3]"), TT_INVALID);
    assert_string_equal(tt_err_text(), "expected a JSON object, for example {\"collector\": 2}");
    assert_null(object);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_stop), cmocka_unit_test(test_what_is_no_object)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
