/*  The lines that a run ends with: what is known, and nothing made up for what is not. */
#include "cli/summary.h"
#include <stdlib.h>
#include <string.h>
#include "tests/test.h"

#define WHOLE                                                                                                   \
    "\"status\": \"stopped\", \"reason\": \"asked to\", \"env_steps\": 4096, \"updates\": 8, \"wall_s\": 1.5, " \
    "\"life\": 1, "                                                                                             \
    "\"run_dir\": \"/runs/r\""

/*  Caller frees. */
static char *s_printed(const char *json)
{
    char *text = NULL;
    size_t size;
    json_t *summary = json_loads(json, 0, NULL);
    FILE *stream = open_memstream(&text, &size);
    assert_non_null(summary);
    assert_non_null(stream);
    tt_summary_print(stream, summary, NULL);
    fclose(stream);
    json_decref(summary);
    return text;
}

static void s_check(const char *json, const char *line)
{
    char *text = s_printed(json);
    if (!strstr(text, line))
        fail_msg("%s\nlacks: %s", text, line);
    free(text);
}

static void test_how_far_it_came(void **state)
{
    (void)state;
    s_check("{" WHOLE ", \"episodes\": 21, \"sps\": 2048.4}",
        "\n  4096 steps in 8 updates and 21 episodes, 2048 steps/s, 1.50 s in all\n");
    s_check("{" WHOLE ", \"episodes\": null, \"sps\": 2048.4}",
        "\n  4096 steps in 8 updates, 2048 steps/s, 1.50 s in all\n");
    s_check(
        "{" WHOLE ", \"episodes\": 0, \"sps\": null}", "\n  4096 steps in 8 updates and 0 episodes, 1.50 s in all\n");
}

static void test_nothing_is_said_of_what_never_began(void **state)
{
    (void)state;
    char *text =
        s_printed("{\"status\": \"failed\", \"reason\": \"no\", \"env_steps\": null, \"updates\": null, \"life\": 1, "
                  "\"run_dir\": \"/runs/r\"}");
    assert_string_equal(text, "failed: no\n  /runs/r\n");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_how_far_it_came),
        cmocka_unit_test(test_nothing_is_said_of_what_never_began),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
