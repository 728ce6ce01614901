/*  What a job wants of this machine: the commands of a script, and which of them are said to be missing. */
#include "local/needs.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/test.h"

static void s_assert_words(const char *script, const char *want)
{
    char text[512] = "";
    json_t *words = needs_of_script(script);
    size_t i, length = 0;
    json_t *word;
    json_array_foreach(words, i, word)
    {
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%s", i ? " " : "", json_string_value(word));
    }
    json_decref(words);
    assert_string_equal(text, want);
}

static void test_commands_of_scripts(void **state)
{
    (void)state;
    s_assert_words("ding -m dist\n", "ding");
    s_assert_words("", "");
    s_assert_words(
        "cat >a.py <<'END'\nimport x\nfoo bar\nEND\nding -m a && python3 b | tee c; ding", "cat ding python3 tee");
    s_assert_words("cat <<-E\n\tone\n\tE\ntwo", "cat two");
    s_assert_words("set -e; A=1 B='x y' run --now # comment ; not\n# nor this\n  cd /x && ./own", "run ./own");
    s_assert_words("if test -e x; then one; else two; fi; while ! three; do four; done", "one two three four");
    s_assert_words("for i in a b c; do job $i; done >log 2>&1", "job");
    s_assert_words("f() { inner; }\nf; function g { :; }; g", "inner");
    s_assert_words("echo \"a; b\" 'c; d' \\\n e; \"$PROGRAM\" x; $(which y) z", "");
    s_assert_words("A=$(inner \")\" b; c) B=`x` run", "run");
    s_assert_words("(one; two) & three", "one two three");
    s_assert_words("one $((i * (i + 1))) && two >$((n)); three", "one two three");
    s_assert_words("one $((never closed", "one");
    s_assert_words("((i++)); one; ((j = (i + 1) * 2)) && two || three", "one two three");
    s_assert_words("i=0; while ((i < 3)); do one; ((i += 1)); done; two", "one two");
    s_assert_words("for ((i = 0; i < 3; i++)); do one; done", "one");
    s_assert_words("((one; two) | three); ((four) && five)", "one two three four five"); /* subshells */
    s_assert_words("((one", "one");
    s_assert_words("one\ncase $x in\na) two;;\nb|c) three;;\nesac", "one");
    s_assert_words("cat <<E", "cat");
    s_assert_words("echo 'never closed; a", "");
    s_assert_words("one \\", "one");
    s_assert_words("exec /usr/bin/thing --flag", "/usr/bin/thing");
}

static char s_said[2048];

static void s_say(void *ctx, const char *text)
{
    (void)ctx;
    const size_t length = strlen(s_said);
    snprintf(s_said + length, sizeof s_said - length, "%s\n", text);
}

static void s_assert_said(const char *spec, const char *want)
{
    json_error_t error;
    json_t *job = json_pack("{s:o}", "spec", json_loads(spec, 0, &error));
    s_said[0] = '\0';
    size_t lines = 0;
    for (const char *at = want; (at = strchr(at, '\n')); at++)
        lines++;
    assert_int_equal(needs_say(&dijob_front, job, s_say, NULL), lines);
    json_decref(job);
    assert_string_equal(s_said, want);
}

#define ROLE(role, container) "\"" role "\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"c\"," container "}]}}}"
#define SCRIPT(text)          "\"command\":[\"/bin/sh\",\"-c\"],\"args\":[\"" text "\"],\"image\":\"some/image:1\""

static void test_what_is_missing_is_said_once(void **state)
{
    (void)state;
    s_assert_said("{" ROLE("coordinator", SCRIPT("tutti-no-such a")) "," ROLE("learner", SCRIPT("tutti-no-such b")) "}",
        "not on this machine: tutti-no-such (wanted by coordinator, learner); on a cluster it comes with the image "
        "some/image:1; put it into the PATH, a virtual environment will do\n");
    s_assert_said("{" ROLE("coordinator", "\"command\":[\"/no/such\"]") "}",
        "not on this machine: /no/such (wanted by coordinator); put it into the PATH, a virtual environment will do\n");
    s_assert_said("{" ROLE("coordinator", "\"image\":\"i\"") "}",
        "coordinator: container c has no command: what its image i would run is not known on this machine\n");
}

static void test_what_is_here_or_may_come_is_not(void **state)
{
    (void)state;
    s_assert_said("{" ROLE("coordinator", SCRIPT("ls; cat x")) "}", "");
    s_assert_said("{" ROLE("coordinator",
                      "\"command\":[\"/v/bin/x\"],\"volumeMounts\":[{\"name\":\"v\",\"mountPath\":\"/v\"}]") "}",
        "");
    s_assert_said(
        "{" ROLE("coordinator", "\"command\":[\"tutti-no-such\"],\"env\":[{\"name\":\"PATH\",\"value\":\"/v\"}]") "}",
        "");
    s_assert_said("{\"engine\":\"tutti\"," ROLE("coordinator", "\"command\":[\"/usr/bin/tutti\"]") "}", "");
    s_assert_said("{\"engine\":\"tutti\"," ROLE("coordinator", "\"args\":[\"coordinator\"]") "}", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_commands_of_scripts),
        cmocka_unit_test(test_what_is_missing_is_said_once),
        cmocka_unit_test(test_what_is_here_or_may_come_is_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
