#include "learner/stop.h"
#include <math.h>

static bool s_mean_reaches(const stop_facts_t *facts, double target)
{
    return !isnan(target) && facts->episodes >= STOP_EPISODES && facts->return_mean >= target;
}

const char *stop_reason(const tt_train_cfg_t *cfg, const stop_facts_t *facts)
{
    if (s_mean_reaches(facts, cfg->stop.return_mean))
        return "return_mean";
    if (cfg->stop.env_steps > 0 && facts->env_steps >= cfg->stop.env_steps)
        return "env_steps";
    if (!isnan(cfg->stop.wall_s) && facts->wall_s >= cfg->stop.wall_s)
        return "wall_s";
    return NULL;
}

bool stop_solved(const tt_train_cfg_t *cfg, const stop_facts_t *facts)
{
    return s_mean_reaches(facts, cfg->space.threshold);
}
