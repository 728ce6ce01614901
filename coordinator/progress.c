#include "coordinator/progress.h"
#include <string.h>

static const int64_t s_sample_ns = 200000000;

static void s_sample(progress_t *self)
{
    const size_t newest = (self->samples - 1) % PROGRESS_WINDOW;
    if (self->samples > 0 && self->time_ns - self->window[newest].time_ns < s_sample_ns)
        return;
    self->window[self->samples % PROGRESS_WINDOW].time_ns = self->time_ns;
    self->window[self->samples % PROGRESS_WINDOW].env_steps = self->at.env_steps;
    self->samples++;
}

bool progress_newer(const progress_at_t *than, const tt_msg_STATS_t *stats)
{
    if (!than->any || stats->era != than->era)
        return !than->any || stats->era > than->era;
    return stats->update > than->update || (stats->update == than->update && stats->env_steps > than->env_steps);
}

progress_at_t progress_at(const tt_msg_STATS_t *stats)
{
    return (progress_at_t){.any = true, .era = stats->era, .update = stats->update, .env_steps = stats->env_steps};
}

bool progress_stats(progress_t *self, const tt_msg_STATS_t *stats)
{
    if (!progress_newer(&self->at, stats))
        return false;
    if (stats->era != self->at.era)
        self->samples = 0;
    self->at = progress_at(stats);
    self->episodes = stats->episodes;
    self->return_mean = stats->return_mean;
    self->length_mean = stats->length_mean;
    self->lag_max = stats->lag_max;
    self->dropped = stats->dropped;
    self->broken_trajectories = stats->broken_trajectories;
    self->time_ns = stats->time_ns;
    s_sample(self);
    return true;
}

bool progress_first_step(progress_t *self, int64_t time_ns)
{
    if (self->first_step_ns != 0)
        return false;
    self->first_step_ns = time_ns;
    return true;
}

bool progress_solved(progress_t *self, int64_t time_ns, uint64_t env_steps)
{
    if (self->solved_steps != 0)
        return false;
    self->solved_ns = time_ns;
    self->solved_steps = env_steps;
    return true;
}

void progress_count_from(progress_t *self, uint64_t env_steps, int64_t time_ns)
{
    self->first_steps = env_steps;
    self->first_step_ns = time_ns;
}

bool progress_roll_back(progress_t *self, uint64_t env_steps)
{
    self->samples = 0;
    /* solved in what is void now: that may happen once more */
    if (self->solved_steps <= env_steps)
        return false;
    self->solved_ns = 0;
    self->solved_steps = 0;
    return true;
}

double progress_sps(const progress_t *self)
{
    if (self->samples == 0)
        return 0;
    const size_t oldest = self->samples > PROGRESS_WINDOW ? self->samples % PROGRESS_WINDOW : 0;
    const int64_t span = self->time_ns - self->window[oldest].time_ns;
    if (span <= 0)
        return progress_sps_overall(self, self->at.env_steps, self->time_ns);
    return (double)(self->at.env_steps - self->window[oldest].env_steps) / ((double)span * 1e-9);
}

double progress_sps_overall(const progress_t *self, uint64_t env_steps, int64_t end_ns)
{
    if (self->first_step_ns == 0 || end_ns <= self->first_step_ns || env_steps < self->first_steps)
        return 0;
    return (double)(env_steps - self->first_steps) / ((double)(end_ns - self->first_step_ns) * 1e-9);
}
