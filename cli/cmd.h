/*  cmd - the subcommands of tutti: one table for dispatch, --help, the man page and shell completion.
 *
 *  To add one: write cli/<name>.c with `int tt_cmd_<name>(int argc, char **argv)` (argv[0] is the name; returns the
 *  process's exit code) and `const tt_option_t tt_opt_<name>[]` (ended by {0}), add its line to cli/commands.def
 *  (cli/bench.def for `tutti bench <name>`, cli/sub.def for others of two words) and the file to cli/CMakeLists.txt. */
#pragma once
#include <stddef.h>
#include "cli/options.h"

struct tt_command {
    const char *name;     /* "run", "bench envs"                                                              */
    const char *group;    /* heading in `tutti help`                                                          */
    const char *operands; /* "CONFIG [NAME...]": optional in brackets, "..." = any number, "a|b" = one of     */
    const char *summary;  /* one line, lower case, no full stop                                               */
    const char *about;    /* paragraphs below the options in --help; NULL = none                              */
    const tt_option_t *options;
    int (*run)(int argc, char **argv);
};

/*  Every command, in the order of commands.def; those of two words ("bench envs", "task create") after them. */
const tt_command_t *tt_commands(size_t *count);
/*  NULL when there is none. */
const tt_command_t *tt_command_find(const char *name);

/*  The nearest of `prefix`'s commands ("" or "bench ") to a wrong name, NULL if none is near. Without the prefix. */
const char *tt_command_nearest(const char *prefix, const char *wrong);

#define X(name, group, operands, summary, about) \
    int tt_cmd_##name(int argc, char **argv);    \
    extern const tt_option_t tt_opt_##name[];
#define X_AS(symbol, name, group, operands, summary, about) X(symbol, group, operands, summary, about)
#include "cli/commands.def"
#undef X_AS
#undef X
#define X(name, operands, summary, about)           \
    int tt_cmd_bench_##name(int argc, char **argv); \
    extern const tt_option_t tt_opt_bench_##name[];
#include "cli/bench.def"
#undef X
#define X(parent, name, operands, summary, about)        \
    int tt_cmd_##parent##_##name(int argc, char **argv); \
    extern const tt_option_t tt_opt_##parent##_##name[];
#include "cli/sub.def"
#undef X
