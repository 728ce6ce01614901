/*  options - the command line of a subcommand, read by the table that also prints its --help.
 *
 *  Long options ("--seed 3", "--seed=3"), letters ("-f"), operands anywhere between them, "--" ends options. A wrong
 *  option, a missing argument and a wrong number of operands print one message and end with code 64.
 *
 *      int code;
 *      TT_AUTO(tt_args) args = tt_args_new(&code, "check", argc, argv);
 *      if (!args)
 *          return code;
 *      const char *config = tt_operand(args, 0);
 *
 *  Threads: main thread only (getopt). */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/base/status.h"

typedef struct {
    const char *name;     /* "seed" for --seed; NULL ends a table; --help and -h are in every table already       */
    char letter;          /* 'f' for -f; 0 = none                                                                 */
    const char *argument; /* NULL = a switch; else what stands in help and tells completion what to offer: FILE,
                             DIR, CONFIG, RUN, ENV, ALGORITHM, KEY=VALUE, ROLE=N, N, ...; "text|json" = one of    */
    const char *help;     /* one line, lower case, no full stop; with default and unit                            */
} tt_option_t;

typedef struct tt_command tt_command_t; /* cli/cmd.h */
typedef struct tt_args tt_args_t;       /* opaque; borrows argv */

/*  Read the line of a command ("run", "bench envs"), without a word to anybody. Caller owns *self_p. TT_STOPPED: --help is in it;
 *  TT_USAGE: what is wrong. */
tt_status_t tt_args_read(tt_args_t **self_p, const char *command, int argc, char **argv);

/*  The same for who ran it. NULL: the command ends here with *exit_code: 0 after --help,
 *  64 after a message on stderr. Else *exit_code is 0, too. Choices ("text|json") and the number of operands are already checked. */
tt_args_t *tt_args_new(int *exit_code, const char *command, int argc, char **argv);
void tt_args_destroy(tt_args_t **self_p);

/*  Was the option given? Its last argument, NULL when not given. Asking for an option that is not in the table aborts. */
bool tt_arg_given(const tt_args_t *self, const char *name);
const char *tt_arg(const tt_args_t *self, const char *name);
/*  The n-th argument of an option that may be repeated, NULL after the last. */
const char *tt_arg_nth(const tt_args_t *self, const char *name, size_t n);
/*  Is the last argument this choice? */
bool tt_arg_is(const tt_args_t *self, const char *name, const char *choice);
/*  The last argument as a number; *out keeps its value (the default) when the option was not given.
 *  TT_USAGE: not a number, or outside min..max. */
tt_status_t tt_arg_u64(const tt_args_t *self, const char *name, uint64_t *out, uint64_t min, uint64_t max);
/*  The same of a time in seconds, at most a million of its unit: 90s, 30m, 12h, 7d, 2w. */
tt_status_t tt_arg_age(const tt_args_t *self, const char *name, int64_t *out);
tt_status_t tt_arg_f64(const tt_args_t *self, const char *name, double *out, double min, double max);

/*  Operands in order; NULL after the last. */
const char *tt_operand(const tt_args_t *self, size_t n);
size_t tt_operand_count(const tt_args_t *self);

/*  Print "tutti <command>: <tt_err_text()>" on stderr and return the exit code of status. */
int tt_args_fail(const tt_args_t *self, tt_status_t status);
int tt_cli_fail(const char *command, tt_status_t status);
