/*  metrics: one line an update, over restarts and torn lines; numbers that are not numbers. */
#include "coordinator/metrics.h"
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/clock.h"
#include "common/base/mem.h"
#include "tests/folder.h"
#include "tests/test.h"

typedef struct {
    char dir[FOLDER_MAX], path[128];
} place_t;

static int s_setup(void **state)
{
    place_t *place = tt_new0(sizeof *place);
    if (folder_make(place->dir, "metrics") != 0)
        return -1;
    snprintf(place->path, sizeof place->path, "%s/metrics.jsonl", place->dir);
    *state = place;
    return 0;
}

static int s_teardown(void **state)
{
    place_t *place = *state;
    const int code = folder_remove(place->dir);
    free(place);
    return code;
}

static tt_status_t s_add(metrics_t *metrics, uint32_t era, uint64_t update)
{
    char loss[] = "losses/policy_loss", bad[] = "not \"plain\"";
    tt_rec_METRIC_t records[] = {{.name = loss, .value = 0.1f}, {.name = bad, .value = 1}};
    const tt_msg_STATS_t stats = TT_MSG(STATS, .era = era, .update = update, .env_steps = update * 64,
        .return_mean = update < 3 ? NAN : 1e-300, .metrics = records, .metrics_count = TT_COUNT(records));
    return metrics_add(metrics, &stats, 0.5, INFINITY);
}

/*  Every line must be an object; the updates go to `updates`. */
static size_t s_read(const place_t *place, json_int_t *updates, size_t room)
{
    char line[4096];
    size_t count = 0;
    FILE *file = fopen(place->path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        json_t *object = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
        assert_true(json_is_object(object));
        assert_true(count < room);
        updates[count++] = json_integer_value(json_object_get(object, "updates"));
        json_decref(object);
    }
    fclose(file);
    return count;
}

static void test_one_line_an_update(void **state)
{
    place_t *place = *state;
    metrics_t *metrics = NULL;
    json_int_t updates[8];
    assert_ok(metrics_open(&metrics, place->path));
    for (uint64_t update = 1; update <= 4; update++) {
        assert_ok(s_add(metrics, 1, update));
        assert_ok(s_add(metrics, 1, update));
    }
    assert_ok(s_add(metrics, 2, 2)); /* after a roll-back */
    assert_ok(s_add(metrics, 1, 5)); /* late, of the era before */
    metrics_close(&metrics);
    assert_int_equal(s_read(place, updates, TT_COUNT(updates)), 5);
    assert_int_equal(updates[3], 4);
    assert_int_equal(updates[4], 2);
}

/*  The batch that met a stop rule: the same update, more steps. */
static void test_the_last_line_of_a_run(void **state)
{
    place_t *place = *state;
    metrics_t *metrics = NULL;
    json_int_t updates[8];
    const tt_msg_STATS_t end = TT_MSG(STATS, .era = 1, .update = 2, .env_steps = 3 * 64);
    assert_ok(metrics_open(&metrics, place->path));
    assert_ok(s_add(metrics, 1, 1));
    assert_ok(s_add(metrics, 1, 2));
    assert_ok(metrics_add(metrics, &end, 0.5, 1));
    assert_ok(metrics_add(metrics, &end, 0.5, 1));
    metrics_close(&metrics);
    assert_ok(metrics_open(&metrics, place->path)); /* it is known from the file, too */
    assert_ok(metrics_add(metrics, &end, 0.5, 1));
    assert_ok(s_add(metrics, 1, 2));
    assert_ok(s_add(metrics, 1, 3)); /* resumed */
    metrics_close(&metrics);
    assert_int_equal(s_read(place, updates, TT_COUNT(updates)), 4);
    assert_int_equal(updates[2], 2);
    assert_int_equal(updates[3], 3);
}

static void test_what_is_not_finite_is_null(void **state)
{
    place_t *place = *state;
    metrics_t *metrics = NULL;
    char line[4096];
    assert_ok(metrics_open(&metrics, place->path));
    assert_ok(s_add(metrics, 1, 1));
    assert_ok(metrics_flush(metrics));
    FILE *file = fopen(place->path, "r");
    assert_non_null(fgets(line, sizeof line, file));
    fclose(file);
    json_t *object = json_loads(line, 0, NULL);
    assert_true(json_is_null(json_object_get(object, "return_mean")));
    assert_true(json_is_null(json_object_get(object, "sps")));
    assert_true((float)json_number_value(json_object_get(object, "losses/policy_loss")) == 0.1f);
    assert_int_equal(json_integer_value(json_object_get(object, "env_steps")), 64);
    assert_null(strstr(line, "plain"));
    json_decref(object);
    metrics_close(&metrics);
}

static void test_a_torn_line_is_cut_off_and_nothing_is_written_twice(void **state)
{
    place_t *place = *state;
    metrics_t *metrics = NULL;
    json_int_t updates[8];
    assert_ok(metrics_open(&metrics, place->path));
    assert_ok(s_add(metrics, 1, 1));
    assert_ok(s_add(metrics, 1, 2));
    metrics_close(&metrics);
    const int fd = open(place->path, O_WRONLY | O_APPEND);
    assert_int_equal(write(fd, "{\"era\":1,\"upd", 13), 13);
    close(fd);
    assert_ok(metrics_open(&metrics, place->path));
    assert_ok(s_add(metrics, 1, 2));
    assert_ok(s_add(metrics, 1, 3));
    metrics_close(&metrics);
    assert_int_equal(s_read(place, updates, TT_COUNT(updates)), 3);
    assert_int_equal(updates[2], 3);
}

static void test_a_file_with_nothing_but_a_torn_line(void **state)
{
    place_t *place = *state;
    metrics_t *metrics = NULL;
    json_int_t updates[8];
    FILE *file = fopen(place->path, "w");
    fputs("{\"era\"", file);
    fclose(file);
    assert_ok(metrics_open(&metrics, place->path));
    assert_ok(s_add(metrics, 1, 7));
    metrics_close(&metrics);
    assert_int_equal(s_read(place, updates, TT_COUNT(updates)), 1);
}

/*  Its figures had other names; the next line goes behind them, and none of that update or an earlier one. */
static void test_a_file_of_0_1_is_gone_on_with(void **state)
{
    place_t *place = *state;
    metrics_t *metrics = NULL;
    json_int_t updates[8];
    FILE *file = fopen(place->path, "w");
    fputs("{\"era\":1,\"update\":9,\"env_steps\":576,\"time_s\":0.63}\n", file);
    fclose(file);
    assert_ok(metrics_open(&metrics, place->path));
    assert_ok(s_add(metrics, 1, 9));
    assert_ok(s_add(metrics, 1, 10));
    metrics_close(&metrics);
    assert_int_equal(s_read(place, updates, TT_COUNT(updates)), 2);
    assert_int_equal(updates[1], 10);
}

/*  Not a byte of it: neither with lines nor without, neither short nor longer than any line of ours. */
static void test_a_foreign_file_is_left_alone(void **state)
{
    place_t *place = *state;
    enum { LONG = 200000 };
    char *long_ = tt_new0(LONG + 1), *read_ = tt_new0(LONG + 1);
    memset(long_, 'x', LONG);
    const char *const texts[] = {"dear diary,\ntoday\n", "dear diary,\ntoday", "dear diary", long_,
        "{\"era\":4294967295,\"updates\":1}\n", "{\"era\":-1,\"updates\":1}\n", "{\"era\":1,\"updates\":-1}\n"};
    for (size_t i = 0; i < TT_COUNT(texts); i++) {
        metrics_t *metrics = NULL;
        FILE *file = fopen(place->path, "w");
        fputs(texts[i], file);
        fclose(file);
        assert_int_equal(metrics_open(&metrics, place->path), TT_DATA);
        assert_non_null(strstr(tt_err_text(), place->path));
        file = fopen(place->path, "r");
        read_[fread(read_, 1, LONG, file)] = '\0';
        fclose(file);
        assert_string_equal(read_, texts[i]);
    }
    free(long_);
    free(read_);
}

/*  A power failure may leave zeros where the last lines would have been. */
static void test_zeros_at_the_end_are_cut_off(void **state)
{
    place_t *place = *state;
    json_int_t updates[8];
    for (uint64_t lines = 0; lines < 2; lines++) {
        metrics_t *metrics = NULL;
        unlink(place->path);
        assert_ok(metrics_open(&metrics, place->path));
        if (lines)
            assert_ok(s_add(metrics, 1, 1));
        metrics_close(&metrics);
        struct stat info;
        assert_int_equal(stat(place->path, &info), 0);
        assert_int_equal(truncate(place->path, info.st_size + 4096), 0);
        assert_ok(metrics_open(&metrics, place->path));
        assert_ok(s_add(metrics, 1, 2));
        metrics_close(&metrics);
        assert_int_equal(s_read(place, updates, TT_COUNT(updates)), lines + 1);
        assert_int_equal(updates[lines], 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_one_line_an_update, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_the_last_line_of_a_run, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_what_is_not_finite_is_null, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_torn_line_is_cut_off_and_nothing_is_written_twice, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_file_with_nothing_but_a_torn_line, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_file_of_0_1_is_gone_on_with, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_foreign_file_is_left_alone, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_zeros_at_the_end_are_cut_off, s_setup, s_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
