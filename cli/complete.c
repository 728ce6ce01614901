/*  complete - a bash completion script made from the table of commands.
 *
 *  What an option or operand takes is told by its placeholder: FILE and CONFIG are files, DIR a directory, words in lower
 *  case ("text|json") themselves. Any other placeholder is asked of the binary when it is needed, as only it knows the
 *  runs and keys of the moment: `tutti completion --words RUN`. CONFIG is both. */
#include "cli/cmd.h"
#include "cli/words.h"
#include <stdio.h>
#include <string.h>

const tt_option_t tt_opt_completion[] = {
    {"words", 0, "KIND",
        "print the words that a placeholder of --help (ENV, RUN, KEY=VALUE ...) may stand for instead"},
    {0},
};

static const char s_head[] =
    "# bash completion for tutti " TT_VERSION ", made by: tutti completion bash\n"
    "_tutti_offer() {\n"
    "    local words\n"
    "    case $1 in\n"
    "    FILE|CONFIG) compopt -o filenames; mapfile -t -O ${#COMPREPLY[@]} COMPREPLY"
    " < <(compgen -f -- \"$cur\") ;;&\n"
    "    FILE) return ;;\n"
    "    DIR) compopt -o filenames; mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -d -- \"$cur\"); return ;;\n"
    "    *=*) compopt -o nospace ;;&\n"
    "    *[A-Z]*) words=$(\"${COMP_WORDS[0]}\" completion --words \"$1\" 2>/dev/null) ;;\n"
    "    *) words=${1//|/ } ;;\n"
    "    esac\n"
    "    mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
    "}\n\n"
    "_tutti() {\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]} options= kind\n"
    "    local -a operands=()\n"
    "    COMPREPLY=()\n"
    "    [[ $cur == = ]] && cur=\n"
    "    [[ $prev == = ]] && prev=${COMP_WORDS[COMP_CWORD-2]}\n";

static const char s_middle[] =
    "    if ((COMP_CWORD == 1)); then\n"
    "        mapfile -t COMPREPLY < <(compgen -W \"$commands --help --version\" -- \"$cur\")\n"
    "        return\n"
    "    fi\n"
    "    [[ $parents == *\" $command \"* ]] && ((COMP_CWORD > 2)) && command=\"$command ${COMP_WORDS[2]}\"\n"
    "    case \"$command $prev\" in\n";

static const char s_tail[] = "    esac\n"
                             "    if [[ $cur == -* ]]; then\n"
                             "        mapfile -t COMPREPLY < <(compgen -W \"$options --help\" -- \"$cur\")\n"
                             "        return\n"
                             "    fi\n"
                             "    for kind in \"${operands[@]}\"; do\n"
                             "        _tutti_offer \"$kind\"\n"
                             "    done\n"
                             "}\n"
                             "complete -F _tutti tutti\n";

static void s_commands(const tt_command_t *commands, size_t count)
{
    fputs("    local commands='", stdout);
    for (size_t i = 0, n = 0; i < count; i++)
        if (!strchr(commands[i].name, ' '))
            printf("%s%s", n++ ? " " : "", commands[i].name);
    fputs("'\n", stdout);
}

/*  Those that have commands below them. */
static void s_parents(const tt_command_t *commands, size_t count)
{
    size_t last = 0;
    fputs("    local parents=' ", stdout);
    for (size_t i = 0; i < count; i++) {
        const char *name = commands[i].name, *blank = strchr(name, ' ');
        const size_t length = blank ? (size_t)(blank - name) + 1 : 0;
        if (blank && (last == 0 || strncmp(commands[last].name, name, length) != 0)) {
            printf("%.*s", (int)length, name);
            last = i;
        }
    }
    fputs("'\n", stdout);
}

/*  One case for every option that takes an argument. */
static void s_arguments(const tt_command_t *command)
{
    for (const tt_option_t *option = command->options; option->name; option++) {
        if (!option->argument)
            continue;
        printf("    '%s --%s'", command->name, option->name);
        if (option->letter)
            printf("|'%s -%c'", command->name, option->letter);
        printf(") _tutti_offer '%s'; return ;;\n", option->argument);
    }
}

/*  "'RUN' 'FILE'" of "[RUN|FILE...]". */
static void s_operand(const char *word, size_t length)
{
    const char *begin = word + strspn(word, "[");
    for (const char *end = word + length; begin < end && *begin != ']' && *begin != '.'; begin += *begin == '|') {
        const size_t size = strcspn(begin, "| ].");
        printf(" '%.*s'", (int)size, begin);
        begin += size;
    }
}

/*  Options and operands of a command. */
static void s_command(const tt_command_t *command)
{
    printf("    '%s') options='", command->name);
    for (const tt_option_t *option = command->options; option->name; option++)
        printf("%s--%s", option == command->options ? "" : " ", option->name);
    fputs("' operands=(", stdout);
    for (const char *at = command->operands; *at; at += strspn(at, " ")) {
        s_operand(at, strcspn(at, " "));
        at += strcspn(at, " ");
    }
    fputs(") ;;\n", stdout);
}

static void s_script(void)
{
    size_t count;
    const tt_command_t *commands = tt_commands(&count);
    fputs(s_head, stdout);
    s_commands(commands, count);
    s_parents(commands, count);
    fputs(s_middle, stdout);
    for (size_t i = 0; i < count; i++)
        s_arguments(&commands[i]);
    fputs("    esac\n    case $command in\n", stdout);
    for (size_t i = 0; i < count; i++)
        s_command(&commands[i]);
    fputs(s_tail, stdout);
}

int tt_cmd_completion(int argc, char **argv)
{
    int code;
    TT_AUTO(tt_args) args = tt_args_new(&code, "completion", argc, argv);
    if (!args)
        return code;
    if (tt_arg_given(args, "words")) {
        words_print(stdout, tt_arg(args, "words"));
        return 0;
    }
    if (!tt_operand(args, 0) || strcmp(tt_operand(args, 0), "bash") != 0)
        return tt_args_fail(args, tt_err(TT_USAGE, "say for which shell: tutti completion bash"));
    s_script();
    return 0;
}
