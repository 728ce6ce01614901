#include "common/rl/schedule.h"
#include "common/base/vmath.h"

/*  Of all envs. */
static double s_line(const tt_actor_t *actor, uint64_t row)
{
    if (row >= actor->epsilon_rows)
        return actor->epsilon_end;
    const double part = (double)row / (double)actor->epsilon_rows;
    const double span = actor->epsilon_end - actor->epsilon;
    const double way = span * part;
    return actor->epsilon + way;
}

double tt_epsilon(const tt_actor_t *actor, uint64_t row, uint32_t num_envs)
{
    if (row < actor->random_rows)
        return 1;
    const double line = s_line(actor, row);
    if (actor->epsilon_power <= 0 || num_envs < 2 || line <= 0)
        return line;
    const float place = (float)(row % num_envs) / (float)(num_envs - 1);
    const float more = actor->epsilon_power * place;
    const double power = (double)tt_powf((float)line, 1 + more);
    return power < 1 ? power : 1;
}

bool tt_actor_has_twins(const tt_actor_t *actor)
{
    return actor->kind == TT_ACT_SQUASHED || actor->kind == TT_ACT_MEAN;
}

const char *tt_actor_head(const tt_actor_t *actor)
{
    return actor->kind == TT_ACT_ARGMAX ? "q" : "actor";
}
