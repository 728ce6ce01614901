#include "learner/record.h"
#include <math.h>

void record_reset(record_t *self)
{
    *self = (record_t){.best = NAN};
}

void record_restore(record_t *self, uint64_t solved_steps, double mean, double best)
{
    *self = (record_t){.solved_steps = solved_steps, .solved_mean = mean, .best = best};
}

void record_solve(record_t *self, uint64_t env_steps, int64_t now_ns, double mean)
{
    self->solved_steps = env_steps;
    self->solved_ns = now_ns;
    self->solved_mean = mean;
}

bool record_exceeds(const record_t *self, double mean)
{
    return !isnan(mean) && (isnan(self->best) || mean > self->best);
}

bool record_better(record_t *self, double mean)
{
    const bool better = record_exceeds(self, mean);
    if (better)
        self->best = mean;
    return better;
}
