/*  The lines for a pipe: what the display makes of a run's messages. The block has tests/e2e/screen.py. */
#include "cli/display.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "tests/test.h"

static const int64_t s_second = 1000000000;

typedef struct {
    tt_train_cfg_t cfg;
    tt_rundir_t run;
    FILE *out;
    char *text;
    size_t size;
    tt_display_t *display;
    tt_watcher_t watcher;
} world_t;

static void s_open(world_t *w, bool quiet)
{
    *w = (world_t){
        .cfg = {.stop = {.env_steps = 2000000, .return_mean = NAN, .wall_s = NAN}, .space = {.threshold = 475}}};
    w->out = open_memstream(&w->text, &w->size);
    w->display = tt_display_new(w->out, &w->cfg, &w->run, s_second, quiet, NULL);
    w->watcher = tt_display_watcher(w->display);
}

static void s_close(world_t *w)
{
    tt_display_destroy(&w->display);
    fclose(w->out);
    free(w->text);
}

static void s_stats(world_t *w, int64_t time_ns, uint64_t env_steps, double return_mean)
{
    const tt_msg_STATS_t stats = TT_MSG(STATS, .env_steps = env_steps, .time_ns = time_ns, .return_mean = return_mean);
    w->watcher.stats(w->watcher.ctx, &stats);
}

/*  A resumed run begins with a million steps, which this life did not make. */
static void test_rates_count_what_this_life_did(void **state)
{
    (void)state;
    world_t w;
    s_open(&w, false);
    s_stats(&w, 2 * s_second, 1000000, 0.012345);
    s_stats(&w, 3 * s_second, 1001000, 0.012345);
    w.watcher.tick(w.watcher.ctx);
    fflush(w.out);
    assert_non_null(strstr(w.text, "  steps 1,001,000 / 2,000,000  1,000/s  return 0.01235   goal 475\n"));
    s_close(&w);
}

/*  Batches that take long, and the last two of which are heard of together. */
static void test_a_rate_is_never_of_a_moment(void **state)
{
    (void)state;
    world_t w;
    s_open(&w, false);
    for (int i = 1; i <= 4; i++)
        s_stats(&w, 5 * i * s_second, (uint64_t)(50000 * i), 1);
    s_stats(&w, 20 * s_second + s_second / 100, 250000, 1);
    w.watcher.tick(w.watcher.ctx);
    fflush(w.out);
    assert_non_null(strstr(w.text, "  steps 250,000 / 2,000,000  19,960/s  ")); /* 100,000 in 5.01 s */
    s_close(&w);
}

static void test_replicas_and_notes(void **state)
{
    (void)state;
    world_t w;
    s_open(&w, false);
    tt_rec_COUNT_t counts[] = {{.role = (char *)"collector", .desired = 2}, {.role = (char *)"learner", .desired = 1}};
    tt_rec_MEMBER_t members[] = {{.role = TT_PEER_COLLECTOR}, {.role = TT_PEER_LEARNER}};
    const tt_msg_SCALE_t scale = TT_MSG(SCALE, .counts = counts, .counts_count = 2);
    const tt_msg_ROSTER_t roster = TT_MSG(ROSTER, .members = members, .members_count = 2);
    w.watcher.scale(w.watcher.ctx, &scale);
    w.watcher.roster(w.watcher.ctx, &roster);
    w.watcher.note(w.watcher.ctx, "collector/1: killed");
    s_stats(&w, 2 * s_second, 10, NAN);
    w.watcher.tick(w.watcher.ctx);
    fflush(w.out);
    assert_true(strncmp(w.text, "collector/1: killed\n", 20) == 0);
    assert_non_null(strstr(w.text, "  return -   goal 475  collector 1/2  learner 1/1\n"));
    s_close(&w);
}

/*  The coordinator was replaced, and the run was over before anything came of the new one. */
static void test_the_last_line_is_of_the_end(void **state)
{
    (void)state;
    for (int way = 0; way < 3; way++) {
        world_t w;
        s_open(&w, false);
        s_stats(&w, 2 * s_second, 256, 18.6);
        tt_display_finished(w.display, ((const char *[]){NULL, "{\"env_steps\": null}",
                                           "{\"env_steps\": 2000000, \"updates\": 7, \"return_mean\": 500}"})[way]);
        tt_display_destroy(&w.display);
        fflush(w.out);
        assert_non_null(strstr(w.text, way == 2 ? "  steps 2,000,000 / 2,000,000  " : "  steps 256 / 2,000,000  "));
        assert_non_null(strstr(w.text, way == 2 ? "  return 500.0   goal 475\n" : "  return 18.60   goal 475\n"));
        s_close(&w);
    }
}

static void test_quiet_says_notes_alone(void **state)
{
    (void)state;
    world_t w;
    s_open(&w, true);
    s_stats(&w, 2 * s_second, 10, 1);
    w.watcher.tick(w.watcher.ctx);
    w.watcher.note(w.watcher.ctx, "a note");
    fflush(w.out);
    assert_string_equal(w.text, "a note\n");
    s_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rates_count_what_this_life_did),
        cmocka_unit_test(test_a_rate_is_never_of_a_moment),
        cmocka_unit_test(test_replicas_and_notes),
        cmocka_unit_test(test_the_last_line_is_of_the_end),
        cmocka_unit_test(test_quiet_says_notes_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
