#include "coordinator/usage.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static const double s_least_s = 0.5;

static bool s_is_plain(const char *name)
{
    return name && name[0] && strlen(name) < USAGE_NAME &&
           name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")] == '\0';
}

static bool s_is_sound(const tt_msg_HEARTBEAT_t *beat)
{
    if (beat->spent_count > USAGE_STAGES || !isfinite(beat->cpu_s) || beat->cpu_s < 0)
        return false;
    for (size_t i = 0; i < beat->spent_count; i++)
        if (!s_is_plain(beat->spent[i].name) || !isfinite(beat->spent[i].value) || beat->spent[i].value < 0)
            return false;
    return true;
}

/*  Is it a continuation of what we have? Counters only grow, and the stages stay the same. */
static bool s_goes_on(const usage_t *self, const tt_msg_HEARTBEAT_t *beat)
{
    if (self->samples == 0 || self->stages != beat->spent_count)
        return false;
    const size_t newest = (self->samples - 1) % USAGE_WINDOW;
    for (size_t i = 0; i < self->stages; i++)
        if (strcmp(self->name[i], beat->spent[i].name) != 0 || beat->spent[i].value < self->window[newest].spent[i])
            return false;
    return beat->cpu_s >= self->window[newest].cpu_s;
}

static void s_begin(usage_t *self, const tt_msg_HEARTBEAT_t *beat)
{
    self->samples = 1; /* one of zeros: the start of the process */
    memset(&self->window[0], 0, sizeof self->window[0]);
    self->stages = beat->spent_count;
    for (size_t i = 0; i < self->stages; i++)
        snprintf(self->name[i], USAGE_NAME, "%s", beat->spent[i].name);
}

void usage_beat(usage_t *self, const tt_msg_HEARTBEAT_t *beat)
{
    self->memory = beat->memory;
    if (beat->spent_count == 0 || !s_is_sound(beat))
        return;
    if (!s_goes_on(self, beat))
        s_begin(self, beat);
    const size_t at = self->samples++ % USAGE_WINDOW;
    self->window[at].cpu_s = beat->cpu_s;
    for (size_t i = 0; i < self->stages; i++)
        self->window[at].spent[i] = beat->spent[i].value;
}

/*  What was spent between the oldest and the newest sample; in all, seconds. 0: too little to speak of; heartbeats follow
 *  one another quickly while a run begins. */
static double s_span(const usage_t *self, double spent[USAGE_STAGES], double *cpu_s)
{
    if (self->samples < 2)
        return 0;
    const size_t newest = (self->samples - 1) % USAGE_WINDOW;
    const size_t oldest = self->samples > USAGE_WINDOW ? self->samples % USAGE_WINDOW : 0;
    double all = 0;
    *cpu_s = self->window[newest].cpu_s - self->window[oldest].cpu_s;
    for (size_t i = 0; i < self->stages; i++) {
        spent[i] = self->window[newest].spent[i] - self->window[oldest].spent[i];
        all += spent[i];
    }
    return all >= s_least_s ? all : 0;
}

size_t usage_shares(const usage_t *self, usage_share_t out[USAGE_STAGES])
{
    double spent[USAGE_STAGES], cpu_s;
    const double all = s_span(self, spent, &cpu_s);
    if (!(all > 0) || !isfinite(all))
        return 0;
    for (size_t i = 0; i < self->stages; i++) {
        memcpy(out[i].name, self->name[i], USAGE_NAME);
        out[i].share = spent[i] / all;
    }
    return self->stages;
}

double usage_cpus(const usage_t *self)
{
    double spent[USAGE_STAGES], cpu_s;
    const double all = s_span(self, spent, &cpu_s);
    return all > 0 && isfinite(all) ? cpu_s / all : 0;
}

static usage_share_t *s_stage(usage_mean_t *mean, const char name[USAGE_NAME])
{
    for (size_t i = 0; i < mean->count; i++)
        if (strcmp(mean->share[i].name, name) == 0)
            return &mean->share[i];
    if (mean->count == USAGE_STAGES)
        return NULL;
    usage_share_t *added = &mean->share[mean->count++];
    memcpy(added->name, name, USAGE_NAME);
    added->share = 0;
    return added;
}

void usage_add(usage_mean_t *mean, const usage_t *member)
{
    usage_share_t shares[USAGE_STAGES];
    const size_t count = usage_shares(member, shares);
    mean->memory += member->memory;
    if (count == 0)
        return;
    mean->cpus += usage_cpus(member);
    const double before = (double)mean->members++, now = (double)mean->members;
    for (size_t i = 0; i < mean->count; i++)
        mean->share[i].share *= before / now;
    for (size_t i = 0; i < count; i++) {
        usage_share_t *stage = s_stage(mean, shares[i].name);
        if (stage)
            stage->share += shares[i].share / now;
    }
}

double usage_of(const usage_mean_t *mean, const char *stage)
{
    for (size_t i = 0; i < mean->count; i++)
        if (strcmp(mean->share[i].name, stage) == 0)
            return mean->share[i].share;
    return 0;
}

double usage_waits(const usage_mean_t *mean)
{
    double all = 0;
    for (size_t i = 0; i < mean->count; i++)
        if (strncmp(mean->share[i].name, "wait_", 5) == 0)
            all += mean->share[i].share;
    return all;
}
