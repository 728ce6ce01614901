#include "cli/help.h"
#include <ctype.h>
#include <string.h>

const tt_option_t tt_opt_help[] = {
    {"man", 0, NULL, "print the manual page tutti(1) instead"},
    {0},
};

/*  "bench envs" of "bench"; NULL parent: of any. */
static bool s_is_below(const tt_command_t *command, const char *parent)
{
    const char *blank = strchr(command->name, ' ');
    const size_t length = blank ? (size_t)(blank - command->name) : 0;
    return blank && (!parent || (strlen(parent) == length && memcmp(command->name, parent, length) == 0));
}

static void s_group(FILE *out, const char *group)
{
    size_t count;
    const tt_command_t *commands = tt_commands(&count);
    fprintf(out, "\n%s:\n", group);
    for (size_t i = 0; i < count; i++)
        if (strcmp(commands[i].group, group) == 0)
            fprintf(out, "  %-12s %s\n", commands[i].name, commands[i].summary);
}

/*  Is this the first command of its group? */
static bool s_opens_group(const tt_command_t *commands, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (strcmp(commands[i].group, commands[at].group) == 0)
            return false;
    return true;
}

void help_overview(FILE *out)
{
    size_t count;
    const tt_command_t *commands = tt_commands(&count);
    fputs("tutti - reinforcement learning by many processes that act as one\n\nusage: tutti COMMAND [...]\n", out);
    for (size_t i = 0; i < count; i++)
        if (!s_is_below(&commands[i], NULL) && s_opens_group(commands, i))
            s_group(out, commands[i].group);
    fputs("\n'tutti COMMAND --help' says more about each.\n", out);
}

static void s_option(FILE *out, const tt_option_t *option)
{
    char left[64];
    snprintf(left, sizeof left, "%c%c%s --%s%s%s", option->letter ? '-' : ' ', option->letter ? option->letter : ' ',
        option->letter ? "," : " ", option->name, option->argument ? " " : "",
        option->argument ? option->argument : "");
    if (strlen(left) > 26)
        fprintf(out, "  %s\n  %-26s  %s\n", left, "", option->help);
    else
        fprintf(out, "  %-26s  %s\n", left, option->help);
}

/*  The commands below a command, under the name of their group. */
static void s_below(FILE *out, const char *parent)
{
    size_t count, listed = 0;
    const tt_command_t *commands = tt_commands(&count);
    for (size_t i = 0; i < count; i++) {
        if (!s_is_below(&commands[i], parent))
            continue;
        if (listed++ == 0)
            fprintf(out, "\n%c%s:\n", tolower((unsigned char)commands[i].group[0]), commands[i].group + 1);
        fprintf(out, "  %-12s %s\n", commands[i].name + strlen(parent) + 1, commands[i].summary);
    }
}

void help_command(FILE *out, const tt_command_t *command)
{
    const char *operands = command->operands;
    fprintf(out, "tutti %s - %s\n\nusage: tutti %s%s%s [options]\n\noptions:\n", command->name, command->summary,
        command->name, *operands ? " " : "", operands);
    for (const tt_option_t *option = command->options; option->name; option++)
        s_option(out, option);
    s_option(out, &(tt_option_t){"help", 'h', NULL, "say this"});
    s_below(out, command->name);
    if (command->about)
        fprintf(out, "\n%s\n", command->about);
}

/*  Text for man: '-' and '\' escaped, a line never begins with a request. */
static void s_man_text(FILE *out, const char *text)
{
    for (bool begin = true; *text; begin = *text++ == '\n') {
        if (begin && (*text == '.' || *text == '\''))
            fputs("\\&", out);
        if (*text == '-')
            fputs("\\-", out);
        else if (*text == '\\')
            fputs("\\e", out);
        else
            fputc(*text, out);
    }
}

static void s_man_option(FILE *out, const tt_option_t *option)
{
    fputs(".TP\n", out);
    if (option->letter)
        fprintf(out, "\\fB\\-%c\\fR, ", option->letter);
    fputs("\\fB\\-\\-", out);
    s_man_text(out, option->name);
    fputs("\\fR", out);
    if (option->argument) {
        fputs(" \\fI", out);
        s_man_text(out, option->argument);
        fputs("\\fR", out);
    }
    fputc('\n', out);
    s_man_text(out, option->help);
    fputc('\n', out);
}

static void s_man_command(FILE *out, const tt_command_t *command)
{
    fputs(".SS tutti ", out);
    s_man_text(out, command->name);
    fputc(' ', out);
    s_man_text(out, command->operands);
    fprintf(out, "\n%c", toupper((unsigned char)command->summary[0]));
    s_man_text(out, command->summary + 1);
    fputs(".\n", out);
    for (const tt_option_t *option = command->options; option->name; option++)
        s_man_option(out, option);
    if (!command->about)
        return;
    fputs(".PP\n.nf\n", out);
    s_man_text(out, command->about);
    fputs("\n.fi\n", out);
}

static const char s_man_end[] =
    ".SH ENVIRONMENT\n.TP\n.B TT_LOG\nLog levels: \\fIlearner:debug,net:trace,info\\fR.\n"
    ".TP\n.B TT_LOG_FORMAT\n\\fIjson\\fR: one JSON object a log line.\n"
    ".TP\n.B TT_LOG_MB\nThe most that the log of a run's process has, in MiB; default 32.\n"
    ".SH EXIT STATUS\n0 on success, codes as in \\fBsysexits.h\\fR(3head) otherwise: 64 bad usage, 65 bad data, "
    "66 not found, 69 unavailable, 70 internal error, 73 exists or in use, 74 input or output failed, "
    "78 bad configuration, 79 training has diverged; 130 after SIGINT, 143 after SIGTERM.\n";

static void s_man(FILE *out)
{
    size_t count;
    const tt_command_t *commands = tt_commands(&count);
    fputs(".TH TUTTI 1 \"\" \"tutti " TT_VERSION "\" \"User Commands\"\n.SH NAME\n"
          "tutti \\- reinforcement learning by many processes that act as one\n"
          ".SH SYNOPSIS\n.B tutti\n\\fICOMMAND\\fR [\\fIOPTION\\fR...]\n.SH COMMANDS\n",
        out);
    fputs("Every command takes \\fB\\-h\\fR, \\fB\\-\\-help\\fR.\n", out);
    for (size_t i = 0; i < count; i++)
        s_man_command(out, &commands[i]);
    fputs(s_man_end, out);
}

/*  "bench" "envs" -> "bench envs". */
static const tt_command_t *s_find(const tt_args_t *args)
{
    char name[128] = "";
    for (size_t i = 0; i < tt_operand_count(args); i++) {
        const size_t used = strlen(name);
        snprintf(name + used, sizeof name - used, "%s%s", i ? " " : "", tt_operand(args, i));
    }
    const tt_command_t *command = tt_command_find(name);
    if (!command) {
        const char *near = tt_command_nearest("", name);
        tt_err(TT_USAGE, near ? "no command '%s'; did you mean '%s'?" : "no command '%s'", name, near);
    }
    return command;
}

int tt_cmd_help(int argc, char **argv)
{
    int code;
    TT_AUTO(tt_args) args = tt_args_new(&code, "help", argc, argv);
    if (!args)
        return code;
    if (tt_arg_given(args, "man")) {
        s_man(stdout);
        return 0;
    }
    if (tt_operand_count(args) == 0) {
        help_overview(stdout);
        return 0;
    }
    const tt_command_t *command = s_find(args);
    if (!command)
        return tt_args_fail(args, TT_USAGE);
    help_command(stdout, command);
    return 0;
}
