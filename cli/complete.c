/*  complete - completion scripts made from the table of commands: for bash a whole one; for zsh and fish a few lines that ask the binary
 *  (cli/offers.h) at every key.
 *
 *  What an option or operand takes is told by its placeholder: FILE and CONFIG are files, DIR a directory, words in lower
 *  case ("text|json") themselves. Any other placeholder is asked of the binary when it is needed, as only it knows the
 *  runs and keys of the moment: `tutti completion --words RUN`. CONFIG is both. */
#include "cli/cmd.h"
#include "cli/offers.h"
#include "cli/words.h"
#include "common/base/mem.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const tt_option_t tt_opt_completion[] = {
    {"words", 0, "KIND",
        "print the words that a placeholder of --help (ENV, RUN, KEY=VALUE ...) may stand for instead"},
    {"word", 0, "TEXT", "print what may stand in place of the last of these words instead; repeated, a whole line"},
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

/*  ${^a} is each of the words; one that is empty stays. _files and compadd leave out what does not match. */
static const char s_zsh[] =
    "#compdef tutti\n"
    "# zsh completion for tutti " TT_VERSION ", made by: tutti completion zsh\n"
    "_tutti() {\n"
    "    local offer\n"
    "    local -a line=(\"${(@Q)words[2,CURRENT-1]}\" \"$PREFIX\")\n"
    "    for offer in ${(f)\"$(\"${(Q)words[1]}\" completion --word=\"${(@)^line}\" 2>/dev/null)\"}; do\n"
    "        case $offer in\n"
    "        " OFFERS_FILES ") _files ;;\n"
    "        " OFFERS_FOLDERS ") _files -/ ;;\n"
    "        *[=.]) compadd -S '' -- \"$offer\" ;;\n"
    "        *) compadd -- \"$offer\" ;;\n"
    "        esac\n"
    "    done\n"
    "}\n"
    "if [[ $funcstack[1] == _tutti ]]; then\n"
    "    _tutti \"$@\"\n"
    "else\n"
    "    compdef _tutti tutti\n"
    "fi\n";

static const char s_fish[] = "# fish completion for tutti " TT_VERSION ", made by: tutti completion fish\n"
                             "function __tutti_offers\n"
                             "    set -l line (commandline -opc) (commandline -ct)\n"
                             "    for offer in (command $line[1] completion --word=$line[2..-1] 2>/dev/null)\n"
                             "        switch $offer\n"
                             "            case '" OFFERS_FILES "'\n"
                             "                __fish_complete_path (commandline -ct)\n"
                             "            case '" OFFERS_FOLDERS "'\n"
                             "                __fish_complete_directories (commandline -ct)\n"
                             "            case '*'\n"
                             "                echo $offer\n"
                             "        end\n"
                             "    end\n"
                             "end\n"
                             "complete -c tutti -f -a '(__tutti_offers)'\n";

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

static void s_bash_script(void)
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

static void s_offers(const tt_args_t *args)
{
    size_t count = 0;
    while (tt_arg_nth(args, "word", count))
        count++;
    const char **word = tt_array0(count, sizeof *word);
    for (size_t i = 0; i < count; i++)
        word[i] = tt_arg_nth(args, "word", i);
    offers_print(stdout, word, count);
    free(word);
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
    if (tt_arg_given(args, "word")) {
        s_offers(args);
        return 0;
    }
    const char *shell = tt_operand(args, 0) ? tt_operand(args, 0) : "";
    if (strcmp(shell, "bash") == 0)
        s_bash_script();
    else if (strcmp(shell, "zsh") == 0)
        fputs(s_zsh, stdout);
    else if (strcmp(shell, "fish") == 0)
        fputs(s_fish, stdout);
    else
        return tt_args_fail(args, tt_err(TT_USAGE, "say for which shell: tutti completion bash, zsh or fish"));
    return 0;
}
