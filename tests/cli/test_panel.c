/*  The block of `tutti run` on screens of every size, with names that nobody should have chosen. */
#include "cli/panel.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "tests/test.h"

static panel_t s_panel(void)
{
    panel_t p = {.run = "cartpole-ppo-1",
        .env = "CartPole-v1",
        .algorithm = "ppo",
        .seed = 7,
        .elapsed_s = 3723,
        .done = 0.6,
        .left_s = 61,
        .env_steps = 299520,
        .step_limit = 500000,
        .updates = 585,
        .episodes = 1144,
        .lag = 1,
        .sps = 93594,
        .return_mean = 429.71,
        .length_mean = 429.71,
        .goal = 475,
        .role_count = 3,
        .role = {{"collector", 2, 2}, {"learner", 2, 1}, {"aggregator", 1, 1}},
        .metric_count = 9,
        .metric = {{"losses/policy_loss", -0.00237157}, {"losses/entropy", 0.612}, {"charts/learning_rate", 2.5e-4},
            {"losses/a_loss_of_another_algorithm", 12.5}, {"time/wait_batch_us", 1234}, {"time/collector/env", 0.61},
            {"time/collector/wait_weights", 0.39}, {"time/learner/wait_batch", 0.004},
            {"time/learner/gradients", 0.996}},
        .bottleneck = "learners wait for experience 61 % of the time: more collectors would help"};
    return p;
}

static const char *s_draw(const panel_t *panel, screen_t screen, canvas_t *out)
{
    canvas_init(out, &screen);
    panel_draw(panel, out);
    return tt_buf_text(&out->text);
}

/*  The text, with runs of blanks made one. */
static void s_squeeze(const char *text, char *out, size_t size)
{
    size_t used = 0;
    for (; *text && used + 1 < size; text++)
        if (*text != ' ' || used == 0 || out[used - 1] != ' ')
            out[used++] = *text;
    out[used] = '\0';
}

static void test_at_eighty_columns(void **state)
{
    (void)state;
    const panel_t panel = s_panel();
    canvas_t out;
    char text[4096];
    s_squeeze(s_draw(&panel, (screen_t){.width = 80, .height = 24}, &out), text, sizeof text);
    assert_non_null(strstr(text, "cartpole-ppo-1 CartPole-v1 ppo seed 7 01:02:03\n"));
    assert_non_null(strstr(text, "- 60 % 00:01:01 left\n"));
    assert_non_null(strstr(text, "return 429.7 goal 475 last 100 of 1,144 episodes length 429.7\n"));
    assert_non_null(strstr(text, "steps 299,520 of 500,000 93,594/s update 585 lag 1\n"));
    assert_non_null(strstr(text, "replicas collector 2/2 learner 1/2 aggregator 1/1\n"));
    assert_non_null(strstr(text, "losses policy_loss -0.002372\n"));
    assert_non_null(strstr(text, "a_loss_of_another_algorithm 12.50\n"));
    assert_non_null(strstr(text, "charts learning_rate 0.0002500\n"));
    assert_non_null(strstr(text, "time collector ######---- env 61 % wait weights 39 %\n"));
    assert_non_null(strstr(text, " learner ########## gradients 100 %\n"));
    assert_non_null(strstr(text, " learners wait for experience 61 % of the time: more collectors would\n help\n"));
    assert_null(strstr(text, "1234")); /* microseconds of rank 0 are for metrics.jsonl */
    canvas_free(&out);
}

static void test_what_is_unknown_is_not_shown(void **state)
{
    (void)state;
    const panel_t panel = {
        .run = "r", .env = "e", .algorithm = "a", .done = NAN, .left_s = NAN, .return_mean = NAN, .goal = NAN};
    canvas_t out;
    char text[4096];
    s_squeeze(s_draw(&panel, (screen_t){.width = 80, .height = 24}, &out), text, sizeof text);
    assert_string_equal(text, "r e a seed 0 00:00:00\nreturn - last 100 of 0 episodes\nsteps 0 0/s update 0 lag 0\n"
                              "replicas starting\n");
    canvas_free(&out);
}

static void test_a_low_screen_keeps_what_matters(void **state)
{
    (void)state;
    const panel_t panel = s_panel();
    canvas_t out;
    const char *text = s_draw(&panel, (screen_t){.width = 100, .height = 8}, &out);
    assert_int_equal(out.lines, 6);
    assert_non_null(strstr(text, "return"));
    assert_non_null(strstr(text, "more collectors would help"));
    assert_null(strstr(text, "policy_loss"));
    canvas_free(&out);
}

/*  Cells of each line, escapes left out; none may reach the last column. */
static void s_check_lines(const canvas_t *out)
{
    const char *text = tt_buf_text(&out->text);
    unsigned lines = 0;
    for (const char *end; (end = strchr(text, '\n')) != NULL; text = end + 1, lines++) {
        char plain[4096];
        size_t used = 0;
        for (const char *c = text; c < end; c++) {
            if (*c == '\033')
                c = strchr(c, 'm');
            else
                plain[used++] = *c;
        }
        plain[used] = '\0';
        for (size_t i = 0; i < used; i++)
            assert_true((unsigned char)plain[i] >= 0x20 && plain[i] != 0x7f);
        assert_in_range(canvas_cells(&out->screen, plain), 0, out->screen.width - 1);
    }
    assert_int_equal(lines, out->lines);
    assert_in_range(lines, 1, out->screen.height - 1);
}

static void s_on_all_screens(const panel_t *panel)
{
    for (unsigned width = 2; width < 210; width += width < 90 ? 1 : 7)
        for (unsigned height = 2; height < 40; height += 3)
            for (unsigned style = 0; style < 4; style++) {
                canvas_t out;
                s_draw(panel, (screen_t){width, height, style & 1, style & 2}, &out);
                s_check_lines(&out);
                canvas_free(&out);
            }
}

static void test_no_line_is_too_long_anywhere(void **state)
{
    (void)state;
    const panel_t panel = s_panel();
    s_on_all_screens(&panel);
}

static void test_hostile_names_neither_wrap_nor_escape(void **state)
{
    (void)state;
    char run[300];
    memset(run, 'x', sizeof run);
    memcpy(run, "\033[2J\r\n\t\177größe-試験-\xff\xc3-e\xcc\x81\xe2\x80\xae", 32);
    run[sizeof run - 1] = '\0';
    panel_t panel = s_panel();
    panel.run = run;
    panel.env = "/a/very/long/path/of/an/environment/that/somebody/built/elsewhere/and/which/goes/on/libenvironment.so";
    panel.env_steps = panel.step_limit = panel.updates = panel.episodes = UINT64_MAX;
    panel.sps = 1e18;
    panel.return_mean = -INFINITY;
    panel.left_s = INFINITY;
    panel.elapsed_s = 1e11;
    snprintf(panel.metric[0].name, PANEL_NAME, "losses/\033]0;title\007");
    snprintf(panel.metric[1].name, PANEL_NAME, "/////");
    snprintf(panel.metric[2].name, PANEL_NAME, "%s", "");
    snprintf(panel.metric[3].name, PANEL_NAME, "time/collector/");
    snprintf(panel.role[0].name, sizeof panel.role[0].name, "\n\n");
    memset(panel.bottleneck, 'y', sizeof panel.bottleneck - 1);
    s_on_all_screens(&panel);
}

static void test_more_groups_than_there_is_room_for(void **state)
{
    (void)state;
    panel_t panel = s_panel();
    panel.metric_count = PANEL_METRICS;
    for (size_t i = 0; i < PANEL_METRICS; i++) {
        snprintf(panel.metric[i].name, PANEL_NAME, "group%zu/name", i);
        panel.metric[i].value = (double)i;
    }
    s_on_all_screens(&panel);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_at_eighty_columns),
        cmocka_unit_test(test_what_is_unknown_is_not_shown),
        cmocka_unit_test(test_a_low_screen_keeps_what_matters),
        cmocka_unit_test(test_no_line_is_too_long_anywhere),
        cmocka_unit_test(test_hostile_names_neither_wrap_nor_escape),
        cmocka_unit_test(test_more_groups_than_there_is_room_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
