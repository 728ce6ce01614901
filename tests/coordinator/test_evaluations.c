/*  evaluations: a version once in an era, over restarts; the newest is known again. */
#include "coordinator/evaluations.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "tests/folder.h"
#include "tests/test.h"

static char s_dir[FOLDER_MAX];

static int s_setup(void **state)
{
    (void)state;
    return folder_make(s_dir, "evaluations");
}

static int s_teardown(void **state)
{
    (void)state;
    return folder_remove(s_dir);
}

static bool s_add(evaluations_t *self, uint32_t era, uint64_t version, double mean)
{
    bool fresh = false;
    const tt_msg_EVALUATED_t m =
        TT_MSG(EVALUATED, .era = era, .update = version, .env_steps = version * 64, .episodes = 10, .cut = 1,
            .mean_reward = mean, .std_reward = 0.5, .min_reward = -1, .max_reward = 9, .mean_ep_length = 12.5);
    assert_ok(evaluations_add(self, &m, 1.5, &fresh));
    return fresh;
}

static double s_newest(const evaluations_t *self, const char *name)
{
    tt_rec_METRIC_t metric[EVALUATIONS_METRICS];
    const size_t count = evaluations_newest(self, metric);
    for (size_t i = 0; i < count; i++)
        if (strcmp(metric[i].name, name) == 0)
            return metric[i].value;
    return NAN;
}

static size_t s_lines(void)
{
    char path[128], line[1024];
    size_t count = 0;
    snprintf(path, sizeof path, "%s/evaluations.jsonl", s_dir);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) {
        json_t *object = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
        assert_int_equal(json_object_size(object), 4 + 7);
        assert_true(json_is_number(json_object_get(object, "eval/mean_reward")));
        json_decref(object);
        count++;
    }
    if (file)
        fclose(file);
    return count;
}

static void test_a_version_once_in_an_era(void **state)
{
    (void)state;
    evaluations_t *self = NULL;
    assert_ok(evaluations_open(&self, s_dir));
    assert_int_equal(evaluations_newest(self, (tt_rec_METRIC_t[EVALUATIONS_METRICS]){0}), 0);
    json_t *none = evaluations_json(self);
    assert_true(json_is_null(none));
    json_decref(none);
    assert_true(s_add(self, 1, 8, 20));
    assert_false(s_add(self, 1, 8, 20)); /* who leads next says it again */
    assert_true(s_add(self, 1, 16, 30));
    assert_false(s_add(self, 1, 8, 20));
    evaluations_close(&self);
    assert_ok(evaluations_open(&self, s_dir));
    assert_true(s_newest(self, "eval/mean_reward") == 30 && s_newest(self, "eval/updates") == 16);
    assert_true(s_newest(self, "eval/env_steps") == 16 * 64 && s_newest(self, "eval/cut") == 1);
    assert_false(s_add(self, 1, 16, 30)); /* said again to a coordinator that was restarted */
    assert_true(s_add(self, 2, 8, 20));   /* rolled back, and made again */
    assert_int_equal(s_lines(), 3);
    evaluations_close(&self);
}

static void test_as_json(void **state)
{
    (void)state;
    evaluations_t *self = NULL;
    assert_ok(evaluations_open(&self, s_dir));
    assert_true(s_add(self, 1, 8, INFINITY));
    json_t *object = evaluations_json(self);
    assert_int_equal(json_integer_value(json_object_get(object, "updates")), 8);
    assert_int_equal(json_integer_value(json_object_get(object, "episodes")), 10);
    assert_true(json_is_null(json_object_get(object, "mean_reward"))); /* a sum that overflows is no number */
    assert_true(json_real_value(json_object_get(object, "mean_ep_length")) == 12.5);
    json_decref(object);
    evaluations_close(&self);
}

static void test_a_foreign_file_is_left_alone(void **state)
{
    (void)state;
    char path[128];
    evaluations_t *self = NULL;
    snprintf(path, sizeof path, "%s/evaluations.jsonl", s_dir);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("a diary\n", file);
    fclose(file);
    assert_int_equal(evaluations_open(&self, s_dir), TT_DATA);
    assert_null(self);
    assert_non_null(strstr(tt_err_text(), "evaluations.jsonl"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_version_once_in_an_era, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_as_json, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_foreign_file_is_left_alone, s_setup, s_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
