#include "collector/envs/minatar/minatar.h"
#include <math.h>

const tt_env_option_t minatar_options[] = {
    {"sticky_action_prob", "0.1", "how often the last action is made again in place of the one that is told: 0 to 1"},
    {"difficulty_ramping", "true", "does the game get harder as it goes on? true or false"},
    {0},
};

static bool s_is(const char *text, const char *small, const char *capital)
{
    return strcmp(text, small) == 0 || strcmp(text, capital) == 0;
}

const char *minatar_init(minatar_args_t *self, const tt_env_arg_t *args)
{
    const double sticky = tt_env_arg_number(args, "sticky_action_prob", 0.1);
    const char *ramping = tt_env_arg_text(args, "difficulty_ramping", "true");
    if (!(sticky >= 0 && sticky <= 1))
        return "sticky_action_prob must be a number from 0 to 1";
    if (!s_is(ramping, "true", "True") && !s_is(ramping, "false", "False"))
        return "difficulty_ramping must be true or false";
    self->sticky = (uint64_t)(sticky * 0x1p32);
    self->ramping = s_is(ramping, "true", "True");
    return NULL;
}
