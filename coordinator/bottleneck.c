#include "coordinator/bottleneck.h"
#include <stdio.h>

/*  Shares of the time above which waiting is worth a word, and a role counts as busy; and of the processors. */
static const double s_much = 0.25, s_busy = 0.6, s_full = 0.9;

static double s_percent(double share)
{
    return 100 * share;
}

static const char *s_all(const bottleneck_t *facts, char out[48])
{
    if (facts->processors == 1)
        return "the one processor is busy";
    snprintf(out, 48, "all %u processors are busy", facts->processors);
    return out;
}

static bool s_host_is_full(const bottleneck_t *facts)
{
    return facts->processors && facts->cpus >= s_full * facts->processors;
}

/*  Collectors hold it up: they play, and learners wait. What would help? */
static void s_more_collectors(const bottleneck_t *f, double plays, char *out, size_t size)
{
    char all[48];
    if (f->collectors >= f->num_envs)
        snprintf(out, size, "more collectors would not help, each has one env (num_envs %u)", f->num_envs);
    else if (s_host_is_full(f))
        snprintf(out, size, "more collectors would not help here, %s", s_all(f, all));
    else if (plays < s_busy)
        snprintf(out, size, "more collectors would not help, the %u there play %.0f %% of the time", f->collectors,
            s_percent(plays));
    else
        snprintf(out, size, "more collectors would help");
}

/*  Learners hold it up: they compute, and collectors wait. */
static void s_more_learners(const bottleneck_t *f, char *out, size_t size)
{
    char all[48];
    if (f->learners >= f->shards)
        snprintf(out, size, "more collectors would not help, nor more learners (learner.shards %u)", f->shards);
    else if (s_host_is_full(f))
        snprintf(out, size, "more processes would not help here, %s", s_all(f, all));
    else
        snprintf(out, size, "more collectors would not help, more learners may");
}

bool bottleneck_say(const bottleneck_t *f, char *out, size_t size)
{
    out[0] = '\0';
    if (f->collector->members == 0 || f->learner->members == 0)
        return false;
    const double starved = usage_of(f->learner, "wait_batch"), sums = usage_of(f->learner, "wait_sum");
    const double held = usage_of(f->collector, "wait_credit") + usage_of(f->collector, "wait_weights");
    const double plays = usage_of(f->collector, "env") + usage_of(f->collector, "policy");
    if (plays + held < s_busy || usage_of(f->learner, "other") > 1 - s_busy)
        return false; /* the run is only beginning, or ending */
    char collectors[128], learners[128];
    s_more_collectors(f, plays, collectors, sizeof collectors);
    s_more_learners(f, learners, sizeof learners);
    if (sums >= s_much && sums >= starved)
        snprintf(out, size,
            "learners wait for one another's gradients %.0f %% of the time: fewer learners may do as well",
            s_percent(sums));
    else if (f->lag == 0 && starved >= s_much && held >= s_much)
        snprintf(out, size,
            "collectors and learners take turns (lag 0) and wait %.0f %% and %.0f %% of the time: lag 1 lets both work",
            s_percent(held), s_percent(starved));
    else if (starved >= s_much)
        snprintf(out, size, "learners wait for experience %.0f %% of the time: %s", s_percent(starved), collectors);
    else if (held >= s_much)
        snprintf(out, size, "collectors wait for learners %.0f %% of the time: %s", s_percent(held), learners);
    else
        snprintf(out, size, "balanced: collectors play %.0f %% of the time, learners wait for experience %.0f %%",
            s_percent(plays), s_percent(starved));
    return true;
}
