#include "cli/updates.h"
#include "cli/figures.h"

static uint64_t s_batch(const tt_train_cfg_t *train)
{
    return (uint64_t)train->num_envs * train->num_steps;
}

uint64_t updates_of(const tt_train_cfg_t *train)
{
    return train->stop.env_steps ? (train->stop.env_steps - 1) / s_batch(train) : 0;
}

void updates_warn(FILE *out, const char *who, const tt_train_cfg_t *train)
{
    if (train->stop.env_steps && updates_of(train) == 0)
        fprintf(out,
            "%s: nothing will be trained: stop.env_steps is %llu, and the first batch has %llu steps (num_envs x "
            "num_steps)\n",
            who, (unsigned long long)train->stop.env_steps, (unsigned long long)s_batch(train));
}

void updates_print(FILE *out, const tt_train_cfg_t *train)
{
    char updates[FIGURE], batches[FIGURE];
    if (train->stop.env_steps)
        fprintf(out, "#   %-12s %s at most: stop.env_steps is reached with batch %s, which is not trained on\n",
            "updates", figure_count(updates_of(train), updates), figure_count(updates_of(train) + 1, batches));
    else
        fprintf(out, "#   %-12s as many as there are till another stop rule is met: stop.env_steps is not set\n",
            "updates");
}
