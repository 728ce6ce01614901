#include "cli/as_key.h"
#include "cli/cmd.h"
#include "cli/help.h"
#include "common/base/mem.h"
#include "common/base/text.h"
#include "common/config/config.h"
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPTIONS_MAX = 64, HELP = 1000, UNKNOWN = '?', MISSING = ':' };

typedef struct {
    const tt_option_t *option;
    const char *value; /* NULL for a switch */
} given_t;

struct tt_args {
    const tt_command_t *command;
    given_t *given; /* in the order of the line */
    size_t given_count;
    char **operands; /* borrowed: argv */
    size_t operand_count;
};

/*  ---- getopt's tables, made from ours ---- */

typedef struct {
    struct option longs[OPTIONS_MAX + 2];
    char letters[2 * OPTIONS_MAX + 4];
} tables_t;

static void s_tables(tables_t *out, const tt_option_t *options)
{
    *out = (tables_t){.letters = ":h"};
    char *letter = out->letters + 2;
    size_t n = 0;
    for (; options[n].name; n++) {
        TT_CHECK(n < OPTIONS_MAX);
        out->longs[n] = (struct option){
            options[n].name, options[n].argument ? required_argument : no_argument, NULL, HELP + 1 + (int)n};
        if (options[n].letter) {
            *letter++ = options[n].letter;
            if (options[n].argument)
                *letter++ = ':';
        }
    }
    out->longs[n] = (struct option){"help", no_argument, NULL, HELP};
}

static const tt_option_t *s_by_code(const tt_option_t *options, int code)
{
    if (code > HELP)
        return &options[code - HELP - 1];
    for (; options->name; options++)
        if (options->letter == code)
            return options;
    return NULL;
}

/*  ---- what was wrong ---- */

static bool s_takes_settings(const tt_option_t *options)
{
    for (; options->name; options++)
        if (strcmp(options->name, "set") == 0)
            return true;
    return false;
}

static tt_status_t s_err_unknown(const tt_option_t *options, const char *word)
{
    if (strncmp(word, "--", 2) != 0)
        return tt_err(TT_USAGE, "no option '%s'", word);
    char name[64], hint[512];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word + 2, "="), word + 2);
    const char *names[OPTIONS_MAX + 1];
    size_t count = 0;
    for (; options[count].name; count++)
        names[count] = options[count].name;
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return tt_err(TT_USAGE, "option '--%s' takes no argument", name);
    if (s_takes_settings(options) && as_key(hint, sizeof hint, name))
        return tt_err(TT_USAGE, "no option '--%s'; %s", name, hint);
    names[count++] = "help";
    const char *near = tt_nearest(name, names, count);
    return near ? tt_err(TT_USAGE, "no option '--%s'; did you mean '--%s'?", name, near)
                : tt_err(TT_USAGE, "no option '--%s'", name);
}

/*  Is value one of "a|b|c"? True for placeholders ("FILE"), which offer no choice. */
static bool s_is_choice(const char *choices, const char *value)
{
    if (!strchr(choices, '|') || strchr(choices, '='))
        return true;
    const size_t length = strlen(value);
    for (const char *at = choices; *at; at += strspn(at, "|")) {
        const size_t n = strcspn(at, "|");
        if (n == length && memcmp(at, value, n) == 0)
            return true;
        at += n;
    }
    return false;
}

static tt_status_t s_take(tt_args_t *self, int code)
{
    const tt_option_t *option = s_by_code(self->command->options, code);
    TT_CHECK(option);
    char meant[TT_MEANT_MAX];
    if (option->argument && !s_is_choice(option->argument, optarg))
        return tt_err(TT_USAGE, "--%s: '%s' is not one of %s%s", option->name, optarg, option->argument,
            tt_meant(meant, optarg, option->argument));
    self->given =
        tt_realloc(self->given, tt_mul(self->given_count + 1, sizeof *self->given)); /* one word may hold many */
    self->given[self->given_count++] = (given_t){option, option->argument ? optarg : NULL};
    return TT_OK;
}

/*  ---- operands against "CONFIG [NAME...]" ---- */

static tt_status_t s_check_operands(const tt_args_t *self)
{
    size_t at = 0;
    for (const char *word = self->command->operands; *word; word += strspn(word, " ")) {
        const size_t length = strcspn(word, " ");
        const bool many = memmem(word, length, "...", 3);
        const char *operand = tt_operand(self, at);
        if (!operand && *word != '[')
            return tt_err(TT_USAGE, "%.*s is missing", (int)length, word);
        at = many ? (at < self->operand_count ? self->operand_count : at) : at + (operand != NULL);
        word += length;
    }
    if (at < self->operand_count)
        return tt_err(TT_USAGE, "'%s' is one operand too many", self->operands[at]);
    return TT_OK;
}

/*  TT_STOPPED: --help was given. */
static tt_status_t s_parse(tt_args_t *self, int argc, char **argv)
{
    tables_t tables;
    s_tables(&tables, self->command->options);
    opterr = 0;
    optind = 0; /* glibc: start anew */
    int code;
    while ((code = getopt_long(argc, argv, tables.letters, tables.longs, NULL)) != -1) {
        if (code == 'h' || code == HELP)
            return TT_STOPPED;
        if (code == UNKNOWN && optopt && optopt < HELP)
            return tt_err(TT_USAGE, "no option '-%c'", optopt);
        if (code == UNKNOWN)
            return s_err_unknown(self->command->options, argv[optind - 1]);
        if (code == MISSING) {
            const tt_option_t *option = s_by_code(self->command->options, optopt);
            return tt_err(TT_USAGE, "option '--%s' needs its argument %s", option->name, option->argument);
        }
        TT_TRY(s_take(self, code));
    }
    self->operands = argv + optind;
    self->operand_count = (size_t)(argc - optind);
    return s_check_operands(self);
}

tt_status_t tt_args_read(tt_args_t **self_p, const char *command, int argc, char **argv)
{
    tt_args_t *self = tt_new0(sizeof *self);
    self->command = tt_command_find(command);
    TT_CHECK(self->command && argc >= 1);
    const tt_status_t status = s_parse(self, argc, argv);
    if (status == TT_OK)
        *self_p = self;
    else
        tt_args_destroy(&self);
    return status;
}

tt_args_t *tt_args_new(int *exit_code, const char *command, int argc, char **argv)
{
    tt_args_t *self = NULL;
    const tt_status_t status = tt_args_read(&self, command, argc, argv);
    *exit_code = 0;
    if (status == TT_OK)
        return self;
    const tt_command_t *asked = tt_command_find(command);
    if (status == TT_STOPPED) {
        help_command(stdout, asked);
    } else {
        *exit_code = tt_cli_fail(command, status);
        fprintf(stderr, "usage: tutti %s%s%s [options]; 'tutti %s --help' says more\n", command,
            *asked->operands ? " " : "", asked->operands, command);
    }
    return NULL;
}

void tt_args_destroy(tt_args_t **self_p)
{
    if (*self_p)
        free((*self_p)->given);
    free(*self_p);
    *self_p = NULL;
}

/*  ---- asking ---- */

const char *tt_arg_nth(const tt_args_t *self, const char *name, size_t n)
{
    for (size_t i = 0; i < self->given_count; i++)
        if (strcmp(self->given[i].option->name, name) == 0 && n-- == 0)
            return self->given[i].value;
    return NULL;
}

static const given_t *s_last(const tt_args_t *self, const char *name)
{
    const tt_option_t *option = self->command->options;
    while (option->name && strcmp(option->name, name) != 0)
        option++;
    TT_CHECK(option->name); /* every option a command asks for is in its table */
    for (size_t i = self->given_count; i-- > 0;)
        if (self->given[i].option == option)
            return &self->given[i];
    return NULL;
}

bool tt_arg_given(const tt_args_t *self, const char *name)
{
    return s_last(self, name) != NULL;
}

const char *tt_arg(const tt_args_t *self, const char *name)
{
    const given_t *given = s_last(self, name);
    return given ? given->value : NULL;
}

bool tt_arg_is(const tt_args_t *self, const char *name, const char *choice)
{
    const char *value = tt_arg(self, name);
    return value && strcmp(value, choice) == 0;
}

tt_status_t tt_arg_u64(const tt_args_t *self, const char *name, uint64_t *out, uint64_t min, uint64_t max)
{
    const char *text = tt_arg(self, name);
    if (!text)
        return TT_OK;
    char *end;
    errno = 0;
    const unsigned long long value = strtoull(text, &end, 10);
    if (errno || *end || *text < '0' || *text > '9' || value < min || value > max)
        return tt_err(TT_USAGE, "--%s: '%s' is not a whole number from %llu to %llu", name, text,
            (unsigned long long)min, (unsigned long long)max);
    *out = value;
    return TT_OK;
}

tt_status_t tt_arg_age(const tt_args_t *self, const char *name, int64_t *out)
{
    static const struct {
        char letter;
        int64_t seconds;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}, {'w', 7 * 86400}};
    enum { MOST = 1000000 };
    const char *text = tt_arg(self, name);
    if (!text)
        return TT_OK;
    const size_t digits = strspn(text, "0123456789");
    const long number = digits && digits < 8 ? atol(text) : MOST + 1;
    for (size_t i = 0; i < TT_COUNT(units); i++)
        if (text[digits] == units[i].letter && !text[digits + 1] && number <= MOST) {
            *out = number * units[i].seconds;
            return TT_OK;
        }
    return tt_err(TT_USAGE, "--%s: '%s' is not a whole number with s, m, h, d or w behind it, such as 7d", name, text);
}

tt_status_t tt_arg_f64(const tt_args_t *self, const char *name, double *out, double min, double max)
{
    const char *text = tt_arg(self, name);
    if (!text)
        return TT_OK;
    char *end;
    const double value = strtod(text, &end);
    if (end == text || *end || !(value >= min && value <= max))
        return tt_err(TT_USAGE, "--%s: '%s' is not a number from %g to %g", name, text, min, max);
    *out = value;
    return TT_OK;
}

const char *tt_operand(const tt_args_t *self, size_t n)
{
    return n < self->operand_count ? self->operands[n] : NULL;
}

size_t tt_operand_count(const tt_args_t *self)
{
    return self->operand_count;
}

int tt_cli_fail(const char *command, tt_status_t status)
{
    const char *text = tt_err_text();
    fprintf(stderr, "tutti %s: %s\n", command, *text ? tt_shown(text) : tt_status_text(status));
    return tt_status_exit_code(status);
}

int tt_args_fail(const tt_args_t *self, tt_status_t status)
{
    return tt_cli_fail(self->command->name, status);
}
