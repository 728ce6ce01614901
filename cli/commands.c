/*  The table of subcommands, made from commands.def, bench.def and sub.def. */
#include "cli/cmd.h"
#include "common/config/config.h"
#include <string.h>

static const tt_command_t s_commands[] = {
#define X(name, group, operands, summary, about) X_AS(name, #name, group, operands, summary, about)
#define X_AS(symbol, name, group, operands, summary, about) \
    {name, group, operands, summary, about, tt_opt_##symbol, tt_cmd_##symbol},
#include "cli/commands.def"
#undef X_AS
#undef X
#define X(name, operands, summary, about) \
    {"bench " #name, "Benchmarks", operands, summary, about, tt_opt_bench_##name, tt_cmd_bench_##name},
#include "cli/bench.def"
#undef X
#define X(parent, name, operands, summary, about) \
    {#parent " " #name, "Commands", operands, summary, about, tt_opt_##parent##_##name, tt_cmd_##parent##_##name},
#include "cli/sub.def"
#undef X
};

const tt_command_t *tt_commands(size_t *count)
{
    *count = TT_COUNT(s_commands);
    return s_commands;
}

const tt_command_t *tt_command_find(const char *name)
{
    for (size_t i = 0; i < TT_COUNT(s_commands); i++)
        if (strcmp(s_commands[i].name, name) == 0)
            return &s_commands[i];
    return NULL;
}

const char *tt_command_nearest(const char *prefix, const char *wrong)
{
    const char *names[TT_COUNT(s_commands)];
    const size_t length = strlen(prefix);
    size_t count = 0;
    for (size_t i = 0; i < TT_COUNT(s_commands); i++) {
        const char *name = s_commands[i].name;
        const bool below = length ? strncmp(name, prefix, length) == 0 : !strchr(name, ' ');
        if (below)
            names[count++] = name + length;
    }
    return tt_nearest(wrong, names, count);
}
