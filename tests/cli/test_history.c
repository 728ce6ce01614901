/*  The lives of a run: numbers, summaries that move into the history, torn lines; and what a resumed config may change. */
#include "cli/history.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/changes.h"
#include "common/base/mem.h"
#include "tests/folder.h"
#include "tests/test.h"

static int s_setup(void **state)
{
    tt_rundir_t *run = tt_new0(sizeof *run);
    *state = run;
    return folder_make(run->path, "history");
}

static int s_teardown(void **state)
{
    tt_rundir_t *run = *state;
    const int code = folder_remove(run->path);
    free(run);
    return code;
}

static json_int_t s_life(const json_t *line)
{
    return json_integer_value(json_object_get(line, "life"));
}

static void s_add_raw(const tt_rundir_t *run, const char *text)
{
    char *path = tt_sprintf("%s/history.jsonl", run->path);
    FILE *file = fopen(path, "a");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    free(path);
}

static void test_lives_are_counted_and_summaries_kept(void **state)
{
    tt_rundir_t *run = *state;
    json_t *history = NULL, *summary = json_pack("{s:s, s:i}", "status", "succeeded", "env_steps", 7);
    uint32_t life = 0;
    assert_ok(tt_history_begin(run, false, NULL, NULL, "seed: 1\n", &life));
    assert_int_equal(life, 1);
    assert_ok(tt_rundir_write(run, "summary.json", "{\"env_steps\": 7}", 0644));
    assert_ok(tt_history_end(run, life, summary));
    json_decref(summary);
    assert_ok(tt_history_begin(run, true, NULL, NULL, "seed: 1\nlag: 0\n", &life));
    assert_int_equal(life, 2);
    assert_null(tt_history_summary(run));                                       /* that was the life before */
    assert_ok(tt_rundir_write(run, "result.json", "{\"env_steps\": 9}", 0644)); /* `tutti run` was killed */
    assert_ok(tt_history_begin(run, true, NULL, NULL, "seed: 1\n", &life));
    assert_int_equal(life, 3);
    assert_ok(tt_history_read(run, &history));
    assert_int_equal(json_array_size(history), 5);
    assert_string_equal(json_string_value(json_object_get(tt_history_last(history, "began"), "config")), "seed: 1\n");
    const json_t *ended = tt_history_last(history, "ended");
    assert_int_equal(s_life(ended), 2);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(ended, "summary"), "env_steps")), 9);
    json_decref(history);
}

static void test_a_run_of_0_1_has_no_history(void **state)
{
    tt_rundir_t *run = *state;
    json_t *history = NULL;
    uint32_t life = 0;
    assert_ok(tt_rundir_write(run, "summary.json", "{\"env_steps\": 7}", 0644));
    assert_ok(tt_history_begin(run, true, NULL, NULL, "seed: 1\n", &life));
    assert_int_equal(life, 2);
    assert_ok(tt_history_read(run, &history));
    assert_int_equal(json_array_size(history), 2);
    assert_int_equal(s_life(tt_history_last(history, "ended")), 1);
    json_decref(history);
}

static void test_torn_lines_are_skipped(void **state)
{
    tt_rundir_t *run = *state;
    json_t *history = NULL;
    uint32_t life = 0;
    assert_ok(tt_history_begin(run, false, NULL, NULL, "", &life));
    s_add_raw(run, "[1]\n\nnull\n{\"event\": \"beg");
    assert_ok(tt_history_begin(run, true, NULL, NULL, "", &life));
    assert_int_equal(life, 2);
    assert_ok(tt_history_read(run, &history));
    assert_int_equal(json_array_size(history), 2);
    json_decref(history);
}

static const char s_before[] =
    "env: CartPole-v1\nseed: 3\nlearner: {threads: 1}\nalgorithm: {learning_rate: 1e-3}\nstop: {env_steps: 1000}\n";

static tt_status_t s_compare(const tt_rundir_t *run, const char *now, const char *set, char **text)
{
    tt_setup_t *setup = NULL, *before = NULL;
    json_t *changes = NULL;
    char *path = tt_sprintf("%s/job.yaml", run->path);
    assert_ok(tt_rundir_write(run, "job.yaml", s_before, 0644));
    assert_ok(tt_setup_new(&before, path, NULL, 0));
    assert_ok(tt_rundir_write(run, "job.yaml", now, 0644));
    assert_ok(tt_setup_new(&setup, path, &set, set ? 1 : 0));
    const tt_status_t status = tt_changes(&changes, setup, tt_setup_yaml(before), false, "the run");
    if (status == TT_OK)
        *text = tt_changes_text(changes);
    json_decref(changes);
    tt_setup_destroy(&setup);
    tt_setup_destroy(&before);
    free(path);
    return status;
}

static void test_what_may_change(void **state)
{
    static const struct {
        const char *set, *text; /* text: of the changes, or words of the refusal */
        tt_status_t status;
    } cases[] = {
        {NULL, "", TT_OK},
        {"seed=3", "", TT_OK},
        {"stop.env_steps=2000", "stop.env_steps 1000 -> 2000", TT_OK},
        {"stop.env_steps=null", "stop.env_steps 1000 -> null", TT_OK},
        {"algorithm={learning_rate: 2e-3, clip: 0.1}",
            "algorithm.learning_rate 0.001 -> 0.002, algorithm.clip 0.2 -> 0.1", TT_OK},
        {"learner.threads=2", "learner.threads 1 -> 2", TT_OK},
        {"seed=4", "--set: seed: the run has 3, now it is 4", TT_CONFIG},
        {"env=Acrobot-v1", "--set: env: the run has CartPole-v1, now it is Acrobot-v1", TT_CONFIG},
        {"algorithm.adam_beta1=0.8", "--set: algorithm.adam_beta1: the run has 0.9, now it is 0.8", TT_CONFIG},
        {"network.hidden=[64]", "--set: network.hidden: the run has [64, 64], now it is [64]", TT_CONFIG},
    };
    for (size_t i = 0; i < TT_COUNT(cases); i++) {
        char *text = NULL;
        assert_int_equal(s_compare(*state, s_before, cases[i].set, &text), cases[i].status);
        if (cases[i].status == TT_OK)
            assert_string_equal(text, cases[i].text);
        else if (!strstr(tt_err_text(), cases[i].text))
            fail_msg("'%s' does not say '%s'", tt_err_text(), cases[i].text);
        free(text);
    }
}

static void test_edits(void **state)
{
    char *text = NULL;
    assert_ok(s_compare(*state,
        "env: CartPole-v1\nseed: 3\nlearner: {threads: 2}\nalgorithm: {learning_rate: 1e-3}\nstop: {env_steps: 1000}\n",
        NULL, &text));
    assert_string_equal(text, "learner.threads 1 -> 2");
    free(text);
    assert_int_equal(
        s_compare(*state, "env: CartPole-v1\nseed: 3\nalgorithm: {learning_rate: 2e-3}\nstop: {env_steps: 1000}\n",
            NULL, &text),
        TT_CONFIG);
    assert_non_null(
        strstr(tt_err_text(), "job.yaml:3:13: algorithm.learning_rate: the run has 0.001, now it is 0.002"));
    assert_non_null(strstr(tt_err_text(), "--set algorithm.learning_rate=0.002"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_lives_are_counted_and_summaries_kept, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_run_of_0_1_has_no_history, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_torn_lines_are_skipped, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_what_may_change, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_edits, s_setup, s_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
