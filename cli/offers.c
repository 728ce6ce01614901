#include "cli/offers.h"
#include <ctype.h>
#include <stdbool.h>
#include <string.h>
#include "cli/cmd.h"
#include "cli/words.h"

/*  Of a placeholder: "FILE", "text|json", "RUN". */
static void s_kind(FILE *out, const char *kind)
{
    bool placeholder = false;
    for (const char *c = kind; *c; c++)
        placeholder |= isupper((unsigned char)*c) != 0;
    if (strcmp(kind, "FILE") == 0 || strcmp(kind, "CONFIG") == 0)
        fprintf(out, OFFERS_FILES "\n");
    if (strcmp(kind, "DIR") == 0)
        fprintf(out, OFFERS_FOLDERS "\n");
    if (placeholder)
        words_print(out, kind);
    for (const char *at = kind; !placeholder && *at; at += strspn(at, "|")) {
        const size_t size = strcspn(at, "|");
        fprintf(out, "%.*s\n", (int)size, at);
        at += size;
    }
}

/*  Each kind of "[RUN|FILE...] [ROLE]". */
static void s_operands(FILE *out, const char *operands)
{
    char kind[64];
    for (const char *at = operands; *at;) {
        at += strspn(at, "[]| .");
        const size_t size = strcspn(at, "[]| .");
        snprintf(kind, sizeof kind, "%.*s", (int)size, at);
        if (size)
            s_kind(out, kind);
        at += size;
    }
}

/*  "--seed" or "-o" of the command. */
static const tt_option_t *s_option(const tt_command_t *command, const char *word)
{
    for (const tt_option_t *option = command->options; option->name; option++)
        if ((strncmp(word, "--", 2) == 0 && strcmp(word + 2, option->name) == 0) ||
            (word[0] == '-' && word[1] && word[1] == option->letter && !word[2]))
            return option;
    return NULL;
}

static void s_options(FILE *out, const tt_command_t *command)
{
    for (const tt_option_t *option = command->options; option->name; option++)
        fprintf(out, "--%s\n", option->name);
    fprintf(out, "--help\n");
}

/*  The command of the line, and how many words its name has; NULL: there is none of that name. */
static const tt_command_t *s_command(const char *const *word, size_t count, size_t *length)
{
    char two[128];
    *length = 2;
    snprintf(two, sizeof two, "%.60s %.60s", word[0], count > 2 ? word[1] : "");
    const tt_command_t *found = count > 2 ? tt_command_find(two) : NULL;
    if (found)
        return found;
    *length = 1;
    return strchr(word[0], ' ') ? NULL : tt_command_find(word[0]);
}

void offers_print(FILE *out, const char *const *word, size_t count)
{
    size_t length;
    if (count < 2) {
        words_print(out, "COMMAND");
        fprintf(out, "--help\n--version\n");
        return;
    }
    const tt_command_t *command = s_command(word, count, &length);
    const tt_option_t *option = command && count > length + 1 ? s_option(command, word[count - 2]) : NULL;
    if (option && option->argument)
        s_kind(out, option->argument);
    else if (command && word[count - 1][0] == '-')
        s_options(out, command);
    else if (command)
        s_operands(out, command->operands);
}
