/*  The command line by the table. The table of commands here is the test's own. */
#include "cli/cmd.h"
#include "common/config/config.h"
#include "common/config/synonyms.h"
#include "tests/test.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const tt_option_t s_options[] = {
    {"set", 's', "KEY=VALUE", "override"},
    {"count", 'c', "N", "how many"},
    {"output", 0, "text|json", "form"},
    {"follow", 'f', NULL, "go on"},
    {0},
};

static const tt_command_t s_commands[] = {
    {"one", "Group", "CONFIG", "takes one", "About it.", s_options, NULL},
    {"many", "Group", "RUN ROLE=N...", "takes two or more", NULL, s_options, NULL},
    {"maybe", "Group", "[NAME]", "takes one or none", NULL, s_options, NULL},
    {"any", "Group", "[NAME...]", "takes any", NULL, s_options, NULL},
    {"without", "Group", "", "takes no settings", NULL, s_options + 1, NULL},
    {"none", "Group", "", "takes none", NULL, s_options, NULL},
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
    (void)prefix;
    (void)wrong;
    return NULL;
}

/*  Run tt_args_new with a line split at blanks; what it writes to fd (stdout, stderr) goes to text. */
static tt_args_t *s_new(int *code, const char *line, int fd, char *text, size_t room)
{
    static char copy[256];
    static char *argv[32];
    int argc = 0;
    snprintf(copy, sizeof copy, "%s", line);
    for (char *save = NULL, *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
        argv[argc++] = word;
    argv[argc] = NULL;
    FILE *file = tmpfile();
    const int saved = dup(fd);
    fflush(NULL);
    assert_true(file && saved >= 0 && dup2(fileno(file), fd) == fd);
    tt_args_t *args = tt_args_new(code, argv[0], argc, argv);
    fflush(NULL);
    assert_int_equal(dup2(saved, fd), fd);
    close(saved);
    rewind(file);
    text[fread(text, 1, room - 1, file)] = '\0';
    fclose(file);
    return args;
}

static tt_args_t *s_good(const char *line)
{
    char text[256];
    int code = -1;
    tt_args_t *args = s_new(&code, line, STDERR_FILENO, text, sizeof text);
    assert_string_equal(text, "");
    assert_non_null(args);
    return args;
}

static void test_reads(void **state)
{
    (void)state;
    TT_AUTO(tt_args) args = s_good("one --set a=1 file.yaml -s b=2 --count=7 -f --output json");
    assert_string_equal(tt_operand(args, 0), "file.yaml");
    assert_null(tt_operand(args, 1));
    assert_string_equal(tt_arg_nth(args, "set", 0), "a=1");
    assert_string_equal(tt_arg_nth(args, "set", 1), "b=2");
    assert_null(tt_arg_nth(args, "set", 2));
    assert_string_equal(tt_arg(args, "set"), "b=2");
    assert_true(tt_arg_given(args, "follow"));
    assert_true(tt_arg_is(args, "output", "json"));
    uint64_t count = 1;
    assert_ok(tt_arg_u64(args, "count", &count, 1, 7));
    assert_int_equal(count, 7);
}

/*  Letters need no word of their own: "-ffff" gives an option more often than the line has words. */
static void test_an_option_as_often_as_one_likes(void **state)
{
    (void)state;
    enum { TIMES = 3000 };
    char letters[TIMES + 2] = "-";
    memset(letters + 1, 'f', TIMES);
    char *argv[] = {(char *)"none", letters, (char *)"-fs", (char *)"a=1", (char *)"-ffsb=2", NULL};
    int code = -1;
    TT_AUTO(tt_args) args = tt_args_new(&code, "none", TT_COUNT(argv) - 1, argv);
    assert_non_null(args);
    assert_true(tt_arg_given(args, "follow"));
    assert_string_equal(tt_arg_nth(args, "set", 0), "a=1");
    assert_string_equal(tt_arg_nth(args, "set", 1), "b=2");
    assert_null(tt_arg_nth(args, "set", 2));
}

static void test_defaults(void **state)
{
    (void)state;
    TT_AUTO(tt_args) args = s_good("none");
    uint64_t count = 5;
    double real = 0.5;
    assert_ok(tt_arg_u64(args, "count", &count, 0, 9));
    assert_ok(tt_arg_f64(args, "count", &real, 0, 9));
    assert_true(count == 5 && real == 0.5);
    assert_false(tt_arg_given(args, "follow"));
    assert_false(tt_arg_is(args, "output", "json"));
    assert_null(tt_arg(args, "set"));
    assert_int_equal(tt_operand_count(args), 0);
}

static void test_operands(void **state)
{
    (void)state;
    tt_args_t *args = s_good("many r a=1 b=2 c=3");
    assert_int_equal(tt_operand_count(args), 4);
    tt_args_destroy(&args);
    args = s_good("maybe x");
    assert_string_equal(tt_operand(args, 0), "x");
    tt_args_destroy(&args);
    args = s_good("any");
    assert_int_equal(tt_operand_count(args), 0);
    tt_args_destroy(&args);
    args = s_good("any x y z");
    assert_int_equal(tt_operand_count(args), 3);
    tt_args_destroy(&args);
    args = s_good("any -- --set");
    assert_string_equal(tt_operand(args, 0), "--set");
    tt_args_destroy(&args);
}

static void test_messages(void **state)
{
    (void)state;
    static const struct {
        const char *line, *message;
    } cases[] = {
        {"one", "tutti one: CONFIG is missing\n"
                "usage: tutti one CONFIG [options]; 'tutti one --help' says more\n"},
        {"one a b", "tutti one: 'b' is one operand too many\n"
                    "usage: tutti one CONFIG [options]; 'tutti one --help' says more\n"},
        {"many r", "tutti many: ROLE=N... is missing\n"
                   "usage: tutti many RUN ROLE=N... [options]; 'tutti many --help' says more\n"},
        {"none x", "tutti none: 'x' is one operand too many\n"
                   "usage: tutti none [options]; 'tutti none --help' says more\n"},
        {"none --outptu json", "tutti none: no option '--outptu'; did you mean '--output'?\n"
                               "usage: tutti none [options]; 'tutti none --help' says more\n"},
        {"none --wholly-other=1", "tutti none: no option '--wholly-other'\n"
                                  "usage: tutti none [options]; 'tutti none --help' says more\n"},
        {"none --clip_range 0.2", "tutti none: no option '--clip_range'; here it is '--set algorithm.clip=VALUE'\n"
                                  "usage: tutti none [options]; 'tutti none --help' says more\n"},
        {"none --clip-range=0.2", "tutti none: no option '--clip-range'; here it is '--set algorithm.clip=VALUE'\n"
                                  "usage: tutti none [options]; 'tutti none --help' says more\n"},
        {"none --num-envs 8", "tutti none: no option '--num-envs'; here it is '--set num_envs=VALUE'\n"
                              "usage: tutti none [options]; 'tutti none --help' says more\n"},
        {"none --algorithm.clip 1",
            "tutti none: no option '--algorithm.clip'; here it is '--set algorithm.clip=VALUE'\n"
            "usage: tutti none [options]; 'tutti none --help' says more\n"},
        {"none --use-sde", "tutti none: no option '--use-sde'; there is no state-dependent exploration; leave it away\n"
                           "usage: tutti none [options]; 'tutti none --help' says more\n"},
        {"none --replicas 2", "tutti none: no option '--replicas'\n"
                              "usage: tutti none [options]; 'tutti none --help' says more\n"},
        {"without --clip_range 0.2", "tutti without: no option '--clip_range'\n"
                                     "usage: tutti without [options]; 'tutti without --help' says more\n"},
        {"none -x", "tutti none: no option '-x'\n"
                    "usage: tutti none [options]; 'tutti none --help' says more\n"},
        {"none -fx", "tutti none: no option '-x'\n"
                     "usage: tutti none [options]; 'tutti none --help' says more\n"},
        {"none --set", "tutti none: option '--set' needs its argument KEY=VALUE\n"
                       "usage: tutti none [options]; 'tutti none --help' says more\n"},
        {"none -s", "tutti none: option '--set' needs its argument KEY=VALUE\n"
                    "usage: tutti none [options]; 'tutti none --help' says more\n"},
        {"none --follow=1", "tutti none: option '--follow' takes no argument\n"
                            "usage: tutti none [options]; 'tutti none --help' says more\n"},
        {"none --output xml", "tutti none: --output: 'xml' is not one of text|json\n"
                              "usage: tutti none [options]; 'tutti none --help' says more\n"},
        {"none --output JSON", "tutti none: --output: 'JSON' is not one of text|json; did you mean 'json'?\n"
                               "usage: tutti none [options]; 'tutti none --help' says more\n"},
    };
    for (size_t i = 0; i < TT_COUNT(cases); i++) {
        char text[512];
        int code = -1;
        assert_null(s_new(&code, cases[i].line, STDERR_FILENO, text, sizeof text));
        assert_string_equal(text, cases[i].message);
        assert_int_equal(code, 64);
    }
}

/*  Whatever word of others a config is told ours for, an option is; as they write it on a command line. */
static void test_every_word_of_others(void **state)
{
    (void)state;
    size_t count;
    const tt_synonym_t *words = tt_synonyms(&count);
    for (size_t i = 0; i < count; i++) {
        char line[128], text[1024], expected[128], own[128];
        int code = -1;
        if (strchr(words[i].word, '.'))
            continue; /* more than a word */
        snprintf(line, sizeof line, "none --%s=1", words[i].word);
        for (char *c = line; *c; c++)
            *c = *c == '_' && i % 2 ? '-' : *c;
        assert_null(s_new(&code, line, STDERR_FILENO, text, sizeof text));
        snprintf(expected, sizeof expected, "here it is '--set %s=VALUE'", words[i].ours ? words[i].ours : "");
        snprintf(own, sizeof own, ".%s=VALUE", words[i].word); /* of another algorithm a key of ours */
        if (!strstr(text, words[i].ours ? expected : words[i].note) && !strstr(text, own))
            fail_msg("%s is answered: %s", line, text);
    }
}

static void test_numbers(void **state)
{
    (void)state;
    static const char *const bad[] = {"x", "1x", "-1", "10", "0", "99999999999999999999", "+3", "1.5"};
    for (size_t i = 0; i < TT_COUNT(bad); i++) {
        char line[64];
        snprintf(line, sizeof line, "none --count=%s", bad[i]);
        TT_AUTO(tt_args) args = s_good(line);
        uint64_t count = 5;
        assert_int_equal(tt_arg_u64(args, "count", &count, 1, 9), TT_USAGE);
        assert_int_equal(count, 5);
    }
    assert_string_equal(tt_err_text(), "--count: '1.5' is not a whole number from 1 to 9");
    TT_AUTO(tt_args) args = s_good("none --count=1.5x");
    double real = 2;
    assert_int_equal(tt_arg_f64(args, "count", &real, 0, 4), TT_USAGE);
    assert_string_equal(tt_err_text(), "--count: '1.5x' is not a number from 0 to 4");
}

static void test_help(void **state)
{
    (void)state;
    char text[1024];
    int code = -1;
    assert_null(s_new(&code, "one --help", STDOUT_FILENO, text, sizeof text));
    assert_int_equal(code, 0);
    assert_string_equal(text, "tutti one - takes one\n\nusage: tutti one CONFIG [options]\n\noptions:\n"
                              "  -s, --set KEY=VALUE         override\n"
                              "  -c, --count N               how many\n"
                              "      --output text|json      form\n"
                              "  -f, --follow                go on\n"
                              "  -h, --help                  say this\n\nAbout it.\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads),
        cmocka_unit_test(test_an_option_as_often_as_one_likes),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_operands),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_every_word_of_others),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_help),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
