/*  The command of a task: what is replaced and what is not, secondary data as people write it, and what is refused. */
#include <stdio.h>
#include <string.h>
#include "../test.h"
#include "task/exec.h"

static const char *s_fill(const char *line)
{
    static char text[512];
    const exec_pair_t pairs[] = {
        {"%DATA", "/v/data"}, {"%IN", "/v/in%OUT"}, {"%OUT", "/v/out"}, {"%DATASET", "/v/set"}};
    tt_buf_t out;
    tt_buf_init(&out, sizeof text - 1);
    const tt_status_t status = exec_fill(&out, line, pairs, TT_COUNT(pairs));
    snprintf(text, sizeof text, "%s", status == TT_OK ? tt_buf_text(&out) : "too long");
    tt_buf_free(&out);
    return text;
}

static void s_replaced(void **state)
{
    (void)state;
    assert_string_equal(
        s_fill("run -d %DATA -c '%IN' -o \"%OUT\"_s && x"), "run -d /v/data -c '/v/in%OUT' -o \"/v/out\"_s && x");
    assert_string_equal(
        s_fill("%DATASET%DATA%%OUT%"), "/v/set/v/data%/v/out%"); /* the longest key; % alone is nothing */
    assert_string_equal(s_fill("date +%Y %in"), "date +%Y %in");
    assert_string_equal(s_fill(""), "");
}

static void s_secondary(void **state)
{
    (void)state;
    exec_secondary_t out[EXEC_SECONDARY_MAX];
    size_t count = 9;
    assert_ok(exec_secondary("", out, &count));
    assert_int_equal(count, 0);
    assert_ok(exec_secondary(" { } ", out, &count));
    assert_int_equal(count, 0);
    assert_ok(exec_secondary("{'%REF': 'user.me.ref', \"%B_2\":\"user.me.b\",}", out, &count));
    assert_int_equal(count, 2);
    assert_string_equal(out[0].key, "%REF");
    assert_string_equal(out[0].value, "user.me.ref");
    assert_string_equal(out[1].key, "%B_2");
    const char *wrong[] = {"x", "{", "{'%REF'", "{'%REF':", "{'%REF':'a'", "{'%REF':'a' '%B':'b'}", "{'%REF':'a'} x",
        "{'REF':'a'}", "{'%':'a'}", "{'%A B':'a'}", "{'%IN':'a'}", "{'%A':'a','%A':'b'}", "{'%A':'a\\'}", "{,}",
        "{'%AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA':'a'}"};
    for (size_t i = 0; i < TT_COUNT(wrong); i++) {
        const tt_status_t status = exec_secondary(wrong[i], out, &count);
        if (status != TT_USAGE)
            fail_msg("%s: %s", wrong[i], tt_status_name(status));
    }
}

static void s_checked(void **state)
{
    (void)state;
    const exec_secondary_t keys[] = {{"%REF", "a"}, {"%DATASET", "b"}};
    assert_ok(exec_check("x %DATA %IN %OUT", true, NULL, 0));
    assert_int_equal(exec_check("x %DATA %IN", true, NULL, 0), TT_USAGE);
    assert_non_null(strstr(tt_err_text(), "%OUT"));
    assert_ok(exec_check("x %IN %OUT", false, NULL, 0));
    assert_int_equal(exec_check("x %DATA %IN %OUT", false, NULL, 0), TT_USAGE);
    assert_ok(exec_check("x %DATA %IN %OUT %REF %DATASET", true, keys, 2));
    assert_int_equal(exec_check("x %DATA %IN %OUT %REF", true, keys, 2), TT_USAGE);
    assert_int_equal(exec_check("x %DATASET %IN %OUT %REF", true, keys, 2), TT_USAGE); /* that is not %DATA */
}

static void s_unknown(void **state)
{
    (void)state;
    const exec_secondary_t keys[] = {{"%REF", "a"}};
    static const char *const wrong[] = {"x %DAT %IN %OUT", "x %IN %OUT '%REFS_2'x", "%OUT %IN -%FOO", "%IN %OUT 5%CPU"};
    static const char *const word[] = {"%DAT", "%REFS_2", "%FOO", "%CPU"};
    for (size_t i = 0; i < TT_COUNT(wrong); i++) {
        char said[128];
        snprintf(said, sizeof said, "the command holds %s, which stands for nothing; there are %%IN, %%OUT", word[i]);
        assert_int_equal(exec_check(wrong[i], false, NULL, 0), TT_USAGE);
        assert_string_equal(tt_err_text(), said);
    }
    assert_int_equal(exec_check("x %DATA %IN %OUT %REF %NO_SUCH", true, keys, 1), TT_USAGE);
    assert_string_equal(
        tt_err_text(), "the command holds %NO_SUCH, which stands for nothing; there are %DATA, %IN, %OUT, %REF");
    /* of date, printf and the shell itself */
    assert_ok(exec_check("date +%FT%T >%OUT; printf '%d%%ABC' <%IN", false, NULL, 0));
    assert_ok(exec_check("x=%IN; mv ${x%TXT} ${x%%JPEG} %OUT", false, NULL, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(s_replaced),
        cmocka_unit_test(s_secondary),
        cmocka_unit_test(s_checked),
        cmocka_unit_test(s_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
