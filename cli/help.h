/*  help - what --help, `tutti help` and the man page say, all from the table of commands. */
#pragma once
#include <stdio.h>
#include "cli/cmd.h"

/*  All commands by group. */
void help_overview(FILE *out);
/*  One command: usage, options, about. */
void help_command(FILE *out, const tt_command_t *command);
