/*  `env: X` and `env: {id: X, args: {...}}`: one key with a short form, and a map of keys that no table has. */
#include "common/base/mem.h"
#include "common/base/rng.h"
#include "common/config/config.h"
#include "tests/config/claimed.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    char env[32];
    tt_cfg_map_t args;
    uint32_t lr;
} thing_t;

static const tt_cfg_field_t s_fields[] = {
    {"env", TT_CFG_STR, offsetof(thing_t, env), NULL, .size = 32, .help = "the environment"},
    {"env.args", TT_CFG_MAP, offsetof(thing_t, args), "{}", .help = "what it takes"},
    {"lr", TT_CFG_U32, offsetof(thing_t, lr), "1", .help = "a number", .resume = TT_CFG_FREE},
    {0},
};

/*  The caller owns the config. */
static tt_status_t s_open(tt_config_t **out, thing_t *thing, const char *yaml, const char *const *sets)
{
    return claimed(out, s_fields, thing, yaml, sets);
}

/*  Its dump, without origins; the caller frees. */
static char *s_dump(const tt_config_t *config)
{
    tt_buf_t out;
    tt_buf_init(&out, 1 << 20);
    assert_ok(tt_config_dump(config, &out, false));
    char *text = tt_strdup(tt_buf_text(&out));
    tt_buf_free(&out);
    return text;
}

/*  What a config says, written by us. */
static void s_becomes(const char *yaml, const char *const *sets, const char *expected)
{
    thing_t thing;
    tt_config_t *config = NULL;
    assert_ok(s_open(&config, &thing, yaml, sets));
    char *text = s_dump(config);
    assert_string_equal(text, expected);
    free(text);
    tt_config_destroy(&config);
}

static void test_one_key_in_two_forms(void **state)
{
    (void)state;
    static const char *const forms[] = {"env: X\n", "env: {id: X}\n", "env:\n  id: X\n", "env.id: X\n",
        "env: {id: X, args: {}}\n", "env: {id: X, args: }\n"};
    for (size_t i = 0; i < TT_COUNT(forms); i++)
        s_becomes(forms[i], NULL, "env: X\nlr: 1\n");
    static const char *const sets[][3] = {
        {"env=Z"}, {"env.id=Z"}, {"env={id: Z}"}, {"env.id=X", "env=Z"}, {"env=X", "env.id=Z"}};
    for (size_t i = 0; i < TT_COUNT(sets); i++)
        for (size_t k = 0; k < TT_COUNT(forms); k++)
            s_becomes(forms[k], sets[i], "env: Z\nlr: 1\n");
    s_becomes("env: X\nlr: 2\nenv.args.g: 1\n", NULL, "env:\n  id: X\n  args:\n    g: 1\nlr: 2\n");
    s_becomes("env: {args: {g: 1}, id: X}\n", NULL, "env:\n  id: X\n  args:\n    g: 1\nlr: 1\n");
}

static void test_values_are_text(void **state)
{
    (void)state;
    thing_t thing;
    tt_config_t *config = NULL;
    static const char yaml[] =
        "env:\n  id: X\n  args:\n    wind: true\n    g: 9.81\n    nested: {b: 'two words', a: 1_000}\n"
        "    sizes: [8, 'a, b']\n    none: null\n    empty: ''\n    quoted: '1'\n    word: null\n";
    const char *const sets[] = {"env.args.word=fast", "env.args.nested.c=-1e-3", NULL};
    assert_ok(s_open(&config, &thing, yaml, sets));
    static const char *const expected[][2] = {{"empty", ""}, {"g", "9.81"}, {"nested.a", "1_000"},
        {"nested.b", "two words"}, {"nested.c", "-1e-3"}, {"quoted", "1"}, {"sizes", "[8, \"a, b\"]"}, {"wind", "true"},
        {"word", "fast"}};
    assert_int_equal(thing.args.count, TT_COUNT(expected));
    for (size_t i = 0; i < TT_COUNT(expected); i++) {
        assert_string_equal(thing.args.at[i].key, expected[i][0]);
        assert_string_equal(thing.args.at[i].value, expected[i][1]);
    }
    assert_string_equal(tt_config_origin(config, "env"), "f.yaml:2:3");
    assert_string_equal(tt_config_origin(config, "env.args.nested.b"), "f.yaml:6:14");
    assert_string_equal(tt_config_origin(config, "env.args.word"), "--set");
    char *text = s_dump(config);
    assert_string_equal(text,
        "env:\n  id: X\n  args:\n    empty: \"\"\n    g: 9.81\n    nested:\n      a: \"1_000\"\n"
        "      b: \"two words\"\n      c: -1e-3\n    quoted: 1\n    sizes: \"[8, \\\"a, b\\\"]\"\n"
        "    wind: true\n    word: fast\nlr: 1\n");
    free(text);
    tt_config_destroy(&config);
    const char *const off[] = {"env.args.g=null", NULL};
    s_becomes("env: {id: X, args: {g: 1}}", off, "env: X\nlr: 1\n");
}

static void test_messages(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"env: X\nenv.id: Y\n", "f.yaml:2:1: env.id: given twice; first at f.yaml:1:1"},
        {"env: X\nenv: {args: {g: 1}}\n", "f.yaml:2:1: env: given twice; first at f.yaml:1:1"},
        {"env: {args: {g: 1}}\nenv: X\n", "f.yaml:2:1: env: given twice; first at f.yaml:1:1"},
        {"env: {args: {g: 1}}\n", "f.yaml:1:14: 'env.id' is missing: 'env' holds 'id', 'args', 'stack', 'stack_pad', "
                                  "and for gym: 'frames', 'python', "
                                  "'path', 'workers' and 'wrappers'"},
        {"env: {name: X}\n", "f.yaml:1:7: 'env.id' is missing: 'env' holds 'id', 'args', 'stack', 'stack_pad', and for "
                             "gym: 'frames', 'python', "
                             "'path', 'workers' and 'wrappers'"},
        {"env: {id: X, g: 1}\n", "f.yaml:1:14: unknown key 'env.g'; 'env' holds 'id', 'args', 'stack', 'stack_pad', "
                                 "and for gym: 'frames', 'python', "
                                 "'path', 'workers' and 'wrappers'"},
        {"env: {id: X, arg: {g: 1}}\n",
            "f.yaml:1:20: unknown key 'env.arg.g'; 'env' holds 'id', 'args', 'stack', 'stack_pad', and for gym: "
            "'frames', 'python', 'path', 'workers' and 'wrappers'"},
        {"env: {id: X, args: 3}\n", "f.yaml:1:14: env.args: '3' is not keys and values; write {key: value}"},
        {"env: {id: X, args: [3]}\n", "f.yaml:1:14: env.args: a list is not keys and values; write {key: value}"},
        {"env: {id: X, args: {a: {b: 1}, a.b.c: 1}}\n",
            "f.yaml:1:32: env.args.a.b.c: 'env.args.a.b' (f.yaml:1:25) is a value, not a section"},
        {"env: {id: X, args: {a: 1, a: 2}}\n", "f.yaml:1:27: env.args.a: given twice; first at f.yaml:1:21"},
        {"env: {id: X, args: {g: 1}}\ng: 1\n", "f.yaml:2:1: unknown key 'g'; 'tutti config' lists the keys"},
        {"env: {id: X, args: {l: [[1]]}}\n",
            "f.yaml:1:25: env.args.l: a list holds plain values, neither lists nor keys"},
        {"env: {id: X, args: {abcdefghijklmnopqrstuvwxyz.abcdefghijklmnopqrstuvwxyz.0123456789: 1}}\n",
            "f.yaml:1:21: env.args.abcdefghijklmnopqrstuvwxyz.abcdefghijklmnopqrstuvwxyz.0123456789: a key of 64 "
            "bytes; "
            "63 fit"},
    };
    thing_t thing;
    tt_config_t *config = NULL;
    for (size_t i = 0; i < TT_COUNT(cases); i++) {
        assert_int_equal(s_open(&config, &thing, cases[i][0], NULL), TT_CONFIG);
        assert_string_equal(tt_err_text(), cases[i][1]);
    }
}

static void test_limits(void **state)
{
    (void)state;
    thing_t thing;
    tt_config_t *config = NULL;
    tt_buf_t yaml;
    tt_buf_init(&yaml, 1 << 16);
    assert_ok(tt_buf_str(&yaml, "env.id: X\n"));
    for (int i = 0; i < TT_ENV_ARGS_MAX; i++)
        assert_ok(tt_buf_printf(&yaml, "env.args.k%d: %0*d\n", i, 255, i));
    assert_ok(s_open(&config, &thing, tt_buf_text(&yaml), NULL));
    assert_int_equal(thing.args.count, TT_ENV_ARGS_MAX);
    tt_config_destroy(&config);
    assert_ok(tt_buf_str(&yaml, "env.args.one_more: 1\n"));
    assert_int_equal(s_open(&config, &thing, tt_buf_text(&yaml), NULL), TT_CONFIG);
    assert_string_equal(tt_err_text(), "f.yaml:34:1: env.args.one_more: more than 32 keys below env.args");
    tt_buf_clear(&yaml);
    assert_ok(tt_buf_printf(&yaml, "env.id: X\nenv.args.k: %0*d\n", 256, 1));
    assert_int_equal(s_open(&config, &thing, tt_buf_text(&yaml), NULL), TT_CONFIG);
    assert_string_equal(tt_err_text(), "f.yaml:2:1: env.args.k: a text of 256 bytes; 255 fit");
    tt_buf_free(&yaml);
}

/*  ---- what two configs differ in ---- */

static void s_collect(void *ctx, const tt_cfg_field_t *field, const char *before, const char *now, const char *origin)
{
    assert_ok(tt_buf_printf(ctx, "%s %s -> %s (%s, %d)\n", field->key, before, now, origin, (int)field->resume));
}

static void test_differences(void **state)
{
    (void)state;
    thing_t thing;
    tt_config_t *before = NULL, *now = NULL;
    tt_buf_t out;
    tt_buf_init(&out, 1 << 16);
    assert_ok(s_open(&before, &thing, "env: {id: X, args: {a: 1, b: 2, c: 3}}\n", NULL));
    assert_ok(s_open(&now, &thing, "env:\n  id: X\n  args:\n    d: 4\n    c: 3\n    a: 9\n", NULL));
    tt_config_diff(before, now, s_collect, &out);
    assert_string_equal(tt_buf_text(&out), "env.args.a 1 -> 9 (f.yaml:6:5, 0)\nenv.args.d none -> 4 (f.yaml:4:5, 0)\n"
                                           "env.args.b 2 -> none (f.yaml, 0)\n");
    tt_buf_clear(&out);
    tt_config_diff(now, now, s_collect, &out);
    assert_int_equal(out.size, 0);
    tt_buf_free(&out);
    tt_config_destroy(&before);
    tt_config_destroy(&now);
}

/*  Claimed again after the program or a person said something else. */
static void test_claimed_again(void **state)
{
    (void)state;
    thing_t thing;
    tt_config_t *config = NULL;
    assert_ok(s_open(&config, &thing, "env: {id: X, args: {a: 1, b: 2}}\n", NULL));
    tt_config_put(config, "env", "/x.so", "made absolute");
    assert_ok(tt_config_set(config, "env.args.a=null"));
    assert_ok(tt_config_set(config, "env.args.b=3"));
    assert_ok(tt_config_claim(config, s_fields, &thing));
    assert_int_equal(thing.args.count, 1);
    assert_string_equal(thing.args.at[0].value, "3");
    char *text = s_dump(config);
    assert_string_equal(text, "env:\n  id: /x.so\n  args:\n    b: 3\nlr: 1\n");
    free(text);
    tt_config_destroy(&config);
}

/*  ---- dump -> parse -> the same values, for random keys and values ---- */

static uint32_t s_below(uint32_t *counter, uint32_t n)
{
    uint32_t words[4];
    tt_draw(words, 11, TT_STREAM_TEST, 0, (*counter)++);
    return tt_below(words[0], n);
}

static void s_random_value(uint32_t *counter, char out[64])
{
    static const char *const pieces[] = {"a", "-", " ", ":", "#", "\"", "\\", "\n", "null", "true", "~", "1", "0", ".",
        "é", "'", "[", "]", "{", ",", "e", "+", "_", "\x01", "&", "*", "!", "%", "@", "no", "-1.5e3", "0x1"};
    out[0] = '\0';
    for (uint32_t n = s_below(counter, 6); n > 0; n--)
        strcat(out, pieces[s_below(counter, TT_COUNT(pieces))]);
}

static void test_dump_reads_back(void **state)
{
    (void)state;
    static const char *const keys[] = {"a", "b.x", "b.y", "b-x", "c.d.e", "c.d.f", "c_", "1", "null", "id"};
    uint32_t counter = 0;
    for (int round = 0; round < 2000; round++) {
        thing_t thing = {0}, again;
        tt_config_t *config = NULL, *second = NULL;
        assert_ok(tt_config_parse(&config, "env: X\n", 7, "f.yaml"));
        for (uint32_t n = s_below(&counter, 8); n > 0; n--) {
            char key[64], value[64];
            snprintf(key, sizeof key, "env.args.%s", keys[s_below(&counter, TT_COUNT(keys))]);
            s_random_value(&counter, value);
            tt_config_put(config, key, value, "test");
        }
        assert_ok(tt_config_claim(config, s_fields, &thing));
        char *text = s_dump(config);
        assert_ok(s_open(&second, &again, text, NULL));
        bool same = thing.args.count == again.args.count;
        for (uint32_t i = 0; same && i < thing.args.count; i++)
            same = strcmp(thing.args.at[i].key, again.args.at[i].key) == 0 &&
                   strcmp(thing.args.at[i].value, again.args.at[i].value) == 0;
        if (!same)
            fail_msg("round %d: %s", round, text);
        char *twice = s_dump(second);
        assert_string_equal(text, twice);
        free(twice);
        free(text);
        tt_config_destroy(&config);
        tt_config_destroy(&second);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_key_in_two_forms),
        cmocka_unit_test(test_values_are_text),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_differences),
        cmocka_unit_test(test_claimed_again),
        cmocka_unit_test(test_dump_reads_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
