/*  The bottleneck's sentence: who waits for whom, and what would help. */
#include "coordinator/bottleneck.h"
#include <stdio.h>
#include <string.h>
#include "tests/test.h"

static usage_mean_t s_mean(const char *a, double of_a, const char *b, double of_b, const char *c, double of_c)
{
    usage_mean_t mean = {.members = 1, .count = 3};
    snprintf(mean.share[0].name, USAGE_NAME, "%s", a);
    snprintf(mean.share[1].name, USAGE_NAME, "%s", b);
    snprintf(mean.share[2].name, USAGE_NAME, "%s", c);
    mean.share[0].share = of_a;
    mean.share[1].share = of_b;
    mean.share[2].share = of_c;
    return mean;
}

/*  Collectors play so much of their time, learners starve and wait for sums so much of theirs. */
static bool s_say(bottleneck_t facts, double plays, double starved, double sums, char *out, size_t size)
{
    const usage_mean_t collector = s_mean("env", plays, "policy", 0, "wait_weights", 1 - plays);
    const usage_mean_t learner = s_mean("wait_batch", starved, "wait_sum", sums, "gradients", 1 - starved - sums);
    facts.collector = &collector;
    facts.learner = &learner;
    return bottleneck_say(&facts, out, size);
}

static const bottleneck_t s_run = {
    .lag = 1, .collectors = 2, .learners = 1, .num_envs = 8, .shards = 8, .processors = 8, .cpus = 2};

static void test_nothing_is_known_yet(void **state)
{
    (void)state;
    const usage_mean_t none = {0};
    bottleneck_t facts = s_run;
    char text[256] = "?";
    facts.collector = facts.learner = &none;
    assert_false(bottleneck_say(&facts, text, sizeof text));
    assert_string_equal(text, "");
    const usage_mean_t waiting = s_mean("env", 0.1, "policy", 0, "wait_roster", 0.9);
    const usage_mean_t learner = s_mean("wait_batch", 0.1, "wait_sum", 0, "gradients", 0.9);
    const usage_mean_t player = s_mean("env", 1, "policy", 0, "wait_roster", 0);
    const usage_mean_t joining = s_mean("wait_batch", 0.1, "other", 0.9, "gradients", 0);
    facts.collector = &waiting;
    facts.learner = &learner;
    assert_false(bottleneck_say(&facts, text, sizeof text));
    facts.collector = &player;
    facts.learner = &joining;
    assert_false(bottleneck_say(&facts, text, sizeof text));
    facts.learner = &learner;
    assert_true(bottleneck_say(&facts, text, sizeof text));
}

static void test_collectors_hold_it_up(void **state)
{
    (void)state;
    bottleneck_t facts = s_run;
    char text[256];
    assert_true(s_say(facts, 0.97, 0.61, 0, text, sizeof text));
    assert_string_equal(text, "learners wait for experience 61 % of the time: more collectors would help");
    facts.collectors = 8;
    assert_true(s_say(facts, 0.97, 0.61, 0, text, sizeof text));
    assert_non_null(strstr(text, "would not help, each has one env (num_envs 8)"));
    facts = s_run;
    facts.processors = 2;
    assert_true(s_say(facts, 0.97, 0.61, 0, text, sizeof text));
    assert_non_null(strstr(text, "would not help here, all 2 processors are busy"));
    facts.cpus = 0.3; /* envs that wait for something else than a processor */
    assert_true(s_say(facts, 0.97, 0.61, 0, text, sizeof text));
    assert_non_null(strstr(text, "more collectors would help"));
    facts.processors = 0; /* several hosts */
    facts.cpus = 100;
    assert_true(s_say(facts, 0.97, 0.61, 0, text, sizeof text));
    assert_non_null(strstr(text, "more collectors would help"));
    assert_true(s_say(s_run, 0.4, 0.5, 0, text, sizeof text));
    assert_non_null(strstr(text, "more collectors would not help, the 2 there play 40 % of the time"));
}

static void test_learners_hold_it_up(void **state)
{
    (void)state;
    bottleneck_t facts = s_run;
    char text[256];
    assert_true(s_say(facts, 0.3, 0.05, 0, text, sizeof text));
    assert_string_equal(
        text, "collectors wait for learners 70 % of the time: more collectors would not help, more learners may");
    facts.learners = 8;
    assert_true(s_say(facts, 0.3, 0.05, 0, text, sizeof text));
    assert_non_null(strstr(text, "nor more learners (learner.shards 8)"));
    facts = s_run;
    facts.processors = 1;
    assert_true(s_say(facts, 0.3, 0.05, 0, text, sizeof text));
    assert_non_null(strstr(text, "the one processor is busy"));
}

static void test_the_others(void **state)
{
    (void)state;
    bottleneck_t facts = s_run;
    char text[256];
    assert_true(s_say(facts, 0.9, 0.1, 0.5, text, sizeof text));
    assert_non_null(strstr(text, "one another's gradients 50 % of the time"));
    assert_true(s_say(facts, 0.9, 0.1, 0, text, sizeof text));
    assert_string_equal(text, "balanced: collectors play 90 % of the time, learners wait for experience 10 %");
    facts.lag = 0;
    assert_true(s_say(facts, 0.6, 0.6, 0, text, sizeof text));
    assert_non_null(strstr(text, "take turns (lag 0) and wait 40 % and 60 % of the time"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_known_yet),
        cmocka_unit_test(test_collectors_hold_it_up),
        cmocka_unit_test(test_learners_hold_it_up),
        cmocka_unit_test(test_the_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
