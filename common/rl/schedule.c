#include "common/rl/schedule.h"

double tt_epsilon(const tt_actor_t *actor, uint64_t row)
{
    if (row < actor->random_rows)
        return 1;
    if (row >= actor->epsilon_rows)
        return actor->epsilon_end;
    const double part = (double)row / (double)actor->epsilon_rows;
    const double span = actor->epsilon_end - actor->epsilon;
    const double way = span * part;
    return actor->epsilon + way;
}

const char *tt_actor_head(const tt_actor_t *actor)
{
    return actor->kind == TT_ACT_SAMPLE ? "actor" : "q";
}
