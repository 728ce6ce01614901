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

/*  What others call them, and what is near to another one of ours that is not meant: top is no stop. */
static const char *s_meant(const char *word)
{
    static const char *const words[][2] = {{"continue", "resume"}, {"delete", "rm"}, {"describe", "status"},
        {"download", "fetch"}, {"enjoy", "eval"}, {"evaluate", "eval"}, {"info", "status"}, {"kill", "stop"},
        {"list", "ps"}, {"ls", "ps"}, {"monitor", "status"}, {"pause", "stop"}, {"play", "eval"}, {"remove", "rm"},
        {"restart", "resume"}, {"runs", "ps"}, {"start", "run"}, {"tail", "logs"}, {"test", "eval"}, {"top", "status"},
        {"train", "run"}, {"watch", "status"}};
    for (size_t i = 0; i < TT_COUNT(words); i++)
        if (strcmp(word, words[i][0]) == 0)
            return words[i][1];
    return NULL;
}

const char *tt_command_nearest(const char *prefix, const char *wrong)
{
    const char *names[TT_COUNT(s_commands)];
    const size_t length = strlen(prefix);
    const char *meant = length ? NULL : s_meant(wrong);
    size_t count = 0;
    if (meant)
        return meant;
    for (size_t i = 0; i < TT_COUNT(s_commands); i++) {
        const char *name = s_commands[i].name;
        const bool below = length ? strncmp(name, prefix, length) == 0 : !strchr(name, ' ');
        if (below)
            names[count++] = name + length;
    }
    return tt_nearest(wrong, names, count);
}
