/*  The bottleneck's sentence: who waits for whom, and what would help. */
#include "coordinator/bottleneck.h"
#include <stdio.h>
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

/*  Said when collectors play so much of their time, learners starve and wait for sums so much of theirs. */
static void s_says(bottleneck_t facts, double plays, double starved, double sums, const char *text)
{
    const usage_mean_t collector = s_mean("env", plays, "policy", 0, "wait_weights", 1 - plays);
    const usage_mean_t learner = s_mean("wait_batch", starved, "wait_sum", sums, "gradients", 1 - starved - sums);
    char said[256];
    facts.collector = &collector;
    facts.learner = &learner;
    assert_true(bottleneck_say(&facts, said, sizeof said));
    assert_string_equal(said, text);
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
    s_says(facts, 0.97, 0.61, 0, "learners wait for experience 61 % of the time: more collectors would help");
    facts.collectors = 8;
    s_says(facts, 0.97, 0.61, 0,
        "learners wait for experience 61 % of the time: more collectors would not help, each has one env (num_envs 8)");
    facts = s_run;
    facts.processors = 2;
    s_says(facts, 0.97, 0.61, 0,
        "learners wait for experience 61 % of the time: more collectors would not help here, all 2 processors are "
        "busy");
    facts.cpus = 0.3; /* envs that wait for something else than a processor */
    s_says(facts, 0.97, 0.61, 0, "learners wait for experience 61 % of the time: more collectors would help");
    facts.processors = 0; /* several hosts */
    facts.cpus = 100;
    s_says(facts, 0.97, 0.61, 0, "learners wait for experience 61 % of the time: more collectors would help");
    s_says(s_run, 0.4, 0.5, 0,
        "learners wait for experience 50 % of the time: more collectors would not help, the 2 there play 40 % of the "
        "time");
}

static void test_learners_hold_it_up(void **state)
{
    (void)state;
    bottleneck_t facts = s_run;
    s_says(facts, 0.3, 0.05, 0,
        "collectors wait for learners 70 % of the time: more collectors would not help, more learners may");
    facts.learners = 8;
    s_says(facts, 0.3, 0.05, 0,
        "collectors wait for learners 70 % of the time: more collectors would not help, nor more learners "
        "(learner.shards 8)");
    facts = s_run;
    facts.processors = 1;
    s_says(facts, 0.3, 0.05, 0,
        "collectors wait for learners 70 % of the time: more processes would not help here, the one processor is busy");
}

static void test_the_others(void **state)
{
    (void)state;
    bottleneck_t facts = s_run;
    s_says(facts, 0.9, 0.1, 0.5,
        "learners wait for one another's gradients 50 % of the time: fewer learners may do as well");
    s_says(facts, 0.9, 0.1, 0, "balanced: collectors play 90 % of the time, learners wait for experience 10 %");
    facts.lag = 0;
    s_says(facts, 0.6, 0.6, 0,
        "collectors and learners take turns (lag 0) and wait 40 % and 60 % of the time: lag 1 lets both work");
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
