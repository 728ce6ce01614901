/*  The reader, the tables and every message of theirs. */
#include "common/config/config.h"
#include "common/base/mem.h"
#include "common/base/rng.h"
#include "tests/config/claimed.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    bool flag;
    uint32_t small;
    uint64_t big;
    float lr;
    double limit, real;
    char text[16];
    int shape;
    tt_cfg_list_t hidden;
    uint64_t steps;
    uint32_t deep;
} thing_t;

static const tt_cfg_field_t s_fields[] = {
    {"flag", TT_CFG_BOOL, offsetof(thing_t, flag), "false", .help = "a switch"},
    {"learner.shards", TT_CFG_U32, offsetof(thing_t, small), "2", 1, 8, .help = "parts"},
    {"big", TT_CFG_U64, offsetof(thing_t, big), "1", .help = "a large number"},
    {"learner.lr", TT_CFG_F32, offsetof(thing_t, lr), "3e-4", 0, 0.1, .help = "step size"},
    {"stop.limit", TT_CFG_F64, offsetof(thing_t, limit), "null", .help = "an end"},
    {"real", TT_CFG_F64, offsetof(thing_t, real), "0.5", -2, 2.5, .help = "a number"},
    {"text", TT_CFG_STR, offsetof(thing_t, text), "hello", .size = 16, .help = "some words"},
    {"shape", TT_CFG_ENUM, offsetof(thing_t, shape), "tanh", .choices = "tanh|relu|gelu", .help = "a choice"},
    {"hidden", TT_CFG_LIST, offsetof(thing_t, hidden), "[64, 32]", 1, 3, .help = "sizes"},
    {"stop.steps", TT_CFG_U64, offsetof(thing_t, steps), "null", .help = "an end in steps"},
    {"a.b.deep", TT_CFG_U32, offsetof(thing_t, deep), "7", .help = "far down"},
    {0},
};

static const tt_cfg_field_t s_required[] = {
    {"env", TT_CFG_STR, 0, NULL, .size = 16, .help = "the environment"},
    {0},
};

/*  Of all fields, into *out. */
static tt_status_t s_take(thing_t *out, const char *yaml, const char *const *sets)
{
    tt_config_t *config = NULL;
    TT_TRY(claimed(&config, s_fields, out, yaml, sets));
    tt_config_destroy(&config);
    return TT_OK;
}

static void test_defaults(void **state)
{
    (void)state;
    thing_t thing;
    assert_ok(s_take(&thing, "", NULL));
    assert_false(thing.flag);
    assert_int_equal(thing.small, 2);
    assert_true(thing.lr == 3e-4f);
    assert_true(isnan(thing.limit));
    assert_string_equal(thing.text, "hello");
    assert_int_equal(thing.shape, 0);
    assert_int_equal(thing.hidden.count, 2);
    assert_int_equal(thing.hidden.at[1], 32);
    assert_int_equal(thing.steps, 0);
    assert_int_equal(thing.deep, 7);
}

static void test_reads_every_type(void **state)
{
    (void)state;
    thing_t thing;
    assert_ok(s_take(&thing,
        "# a comment\nflag: true\nlearner:\n  shards: 8\n  lr: 0.1\nbig: 1_000_000\nstop: {limit: -4.5, steps: 1e6}\n"
        "real: 2.5\ntext: \"a: b # c\"\nshape: gelu\nhidden:\n  - 4\n  - 5\n  - 6\na:\n  b: {deep: 3}\n",
        NULL));
    assert_true(thing.flag);
    assert_int_equal(thing.small, 8);
    assert_true(thing.lr == 0.1f); /* although 0.1f > 0.1, the end of the range */
    assert_true(thing.limit == -4.5);
    assert_true(thing.steps == 1000000 && thing.big == 1000000);
    assert_true(thing.real == 2.5);
    assert_string_equal(thing.text, "a: b # c");
    assert_int_equal(thing.shape, 2);
    assert_int_equal(thing.hidden.count, 3);
    assert_int_equal(thing.hidden.at[2], 6);
    assert_int_equal(thing.deep, 3);
}

static void test_whole_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t value;
    } good[] = {{"0", 0}, {"12", 12}, {"1_000", 1000}, {"1e6", 1000000}, {"1.5e3", 1500}, {"100k", 100000},
        {"2M", 2000000}, {"1.25M", 1250000}, {"3G", 3000000000}, {"18446744073709551615", UINT64_MAX}, {"150e-1", 15},
        {"10.0", 10}, {"0e9", 0}};
    static const char *const bad[] = {"1.5", "-1", "0x10", "010", "1__0", "1_", "_1", "1e", "k", "1kk", "one", "1 0",
        ".5e1", "1.e3", "1e-1", "+1", "12 k", "inf", "1e100", "\"3\"", "[1]", "true", "null", ""};
    thing_t thing;
    char yaml[64];
    for (size_t i = 0; i < TT_COUNT(good); i++) {
        snprintf(yaml, sizeof yaml, "big: %s", good[i].text);
        assert_ok(s_take(&thing, yaml, NULL));
        if (thing.big != good[i].value)
            fail_msg("%s became %llu", good[i].text, (unsigned long long)thing.big);
    }
    for (size_t i = 0; i < TT_COUNT(bad); i++) {
        snprintf(yaml, sizeof yaml, "big: %s", bad[i]);
        if (s_take(&thing, yaml, NULL) != TT_CONFIG)
            fail_msg("%s was taken for %llu", bad[i], (unsigned long long)thing.big);
    }
}

static void test_real_numbers(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "nan", ".inf", "0x1p3", "1e", "1..5", "\"1\"", "e5", "--1", "1e400", "1,5", "true", "null", "-"};
    thing_t thing;
    char yaml[64];
    assert_ok(s_take(&thing, "real: -1.25e-2", NULL));
    assert_true(thing.real == -0.0125);
    for (size_t i = 0; i < TT_COUNT(bad); i++) {
        snprintf(yaml, sizeof yaml, "real: %s", bad[i]);
        if (s_take(&thing, yaml, NULL) != TT_CONFIG)
            fail_msg("%s was taken for %g", bad[i], thing.real);
    }
}

/*  ---- messages, word by word ---- */

typedef struct {
    const char *yaml, *message;
} mistake_t;

static const mistake_t s_mistakes[] = {
    {"learner:\n  shard: 4\n", "f.yaml:2:3: unknown key 'learner.shard'; did you mean 'learner.shards'?"},
    {"shards: 4\n", "f.yaml:1:1: unknown key 'shards'; did you mean 'learner.shards'?"},
    {"wholly_other: 4\n", "f.yaml:1:1: unknown key 'wholly_other'; 'tutti config' lists the keys"},
    {"learner: 3\n", "f.yaml:1:1: 'learner' is a section, not a value: learner.shards, learner.lr, ..."},
    {"learner: null\n", "f.yaml:1:1: 'learner' is a section, not a value: learner.shards, learner.lr, ..."},
    {"real: {a: 1}\n", "f.yaml:1:8: unknown key 'real.a'; 'real' is a value, not a section"},
    {"learner: {shards: 12}", "f.yaml:1:11: learner.shards: '12' is outside 1 .. 8"},
    {"learner: {shards: 0}", "f.yaml:1:11: learner.shards: '0' is outside 1 .. 8"},
    {"learner: {shards: 99999999999999999999}",
        "f.yaml:1:11: learner.shards: '99999999999999999999' is outside 1 .. 8"},
    {"learner: {shards: four}", "f.yaml:1:11: learner.shards: 'four' is not a whole number from 1 to 8"},
    {"learner: {shards: 1.5}", "f.yaml:1:11: learner.shards: '1.5' is not a whole number from 1 to 8"},
    {"learner: {shards: '4'}", "f.yaml:1:11: learner.shards: '4' is text in quotes, not a whole number from 1 to 8"},
    {"learner: {shards: [4]}", "f.yaml:1:11: learner.shards: a list is not a whole number"},
    {"big: 18446744073709551616", "f.yaml:1:1: big: '18446744073709551616' is larger than 18446744073709551615"},
    {"big: x", "f.yaml:1:1: big: 'x' is not a whole number"},
    {"real: 2.6", "f.yaml:1:1: real: '2.6' is outside -2 .. 2.5"},
    {"real: x", "f.yaml:1:1: real: 'x' is not a number from -2 to 2.5"},
    {"real: null", "f.yaml:1:1: real: 'null' is not a number from -2 to 2.5"},
    {"stop: {limit: None}", "f.yaml:1:8: stop.limit: 'None' is not a number; did you mean 'null'?"},
    {"stop: {limit: nul}", "f.yaml:1:8: stop.limit: 'nul' is not a number; did you mean 'null'?"},
    {"real: None", "f.yaml:1:1: real: 'None' is not a number from -2 to 2.5"},
    {"stop: {limit: 1e999}", "f.yaml:1:8: stop.limit: '1e999' is too large"},
    {"flag: yes", "f.yaml:1:1: flag: 'yes' is not true or false; did you mean 'true'?"},
    {"flag: No", "f.yaml:1:1: flag: 'No' is not true or false; did you mean 'false'?"},
    {"flag: True", "f.yaml:1:1: flag: 'True' is not true or false; did you mean 'true'?"},
    {"flag: flase", "f.yaml:1:1: flag: 'flase' is not true or false; did you mean 'false'?"},
    {"flag: 3", "f.yaml:1:1: flag: '3' is not true or false"},
    {"flag: 'true'", "f.yaml:1:1: flag: 'true' is text in quotes, not true or false"},
    {"flag: [true]", "f.yaml:1:1: flag: a list is not true or false"},
    {"text: null", "f.yaml:1:1: text: null is not a text; \"\" is the empty one"},
    {"text: [a]", "f.yaml:1:1: text: a list is not a text"},
    {"text: 0123456789abcdef", "f.yaml:1:1: text: a text of 16 bytes; 15 fit"},
    {"shape: tahn", "f.yaml:1:1: shape: 'tahn' is not one of tanh, relu, gelu; did you mean 'tanh'?"},
    {"shape: ReLU", "f.yaml:1:1: shape: 'ReLU' is not one of tanh, relu, gelu; did you mean 'relu'?"},
    {"shape: square", "f.yaml:1:1: shape: 'square' is not one of tanh, relu, gelu"},
    {"shape: [tanh]", "f.yaml:1:1: shape: a list is not one of tanh, relu, gelu"},
    {"hidden: 64", "f.yaml:1:1: hidden: '64' is not a list; write [64, 64]"},
    {"hidden: [64, 0]", "f.yaml:1:1: hidden: '0' in the list is not a positive whole number"},
    {"hidden: [1, 2, 3, 4]", "f.yaml:1:1: hidden: a list of 4 values is outside 1 .. 3"},
    {"hidden: []", "f.yaml:1:1: hidden: a list of 0 values is outside 1 .. 3"},
    {"hidden: [[1]]", "f.yaml:1:10: hidden: a list holds plain values, neither lists nor keys"},
    {"hidden: [a: 1]", "f.yaml:1:10: hidden: a list holds plain values, neither lists nor keys"},
    {"big: 1\nbig: 2\n", "f.yaml:2:1: big: given twice; first at f.yaml:1:1"},
    {"learner:\n  lr: 0\nlearner:\n  shards: 2\n", "f.yaml:3:1: learner: given twice; first at f.yaml:1:1"},
    {"learner.lr: 0\nlearner:\n  lr: 0\n", "f.yaml:3:3: learner.lr: given twice; first at f.yaml:1:1"},
    {"big: &a 1\n",
        "f.yaml:1:6: big: anchors (&) and aliases (*) are not used in a config; write the value out, or quote it"},
    {"big: *a\n",
        "f.yaml:1:6: big: anchors (&) and aliases (*) are not used in a config; write the value out, or quote it"},
    {"&k big: 1\n",
        "f.yaml:1:1: anchors (&) and aliases (*) are not used in a config; write the value out, or quote it"},
    {"big: !!int 1\n", "f.yaml:1:6: big: tags (!) are not used in a config; write the value alone, or quote it"},
    {"learner: !x {lr: 0}\n",
        "f.yaml:1:10: learner: tags (!) are not used in a config; write the value alone, or quote it"},
    {"- 1\n- 2\n", "f.yaml:1:1: a config is keys and values: 'env: CartPole-v1'"},
    {"just words\n", "f.yaml:1:1: a config is keys and values: 'env: CartPole-v1'"},
    {"big: 1\n---\nbig: 2\n", "f.yaml:2:1: a second document; a config is one"},
    {"? [a]\n: 1\n", "f.yaml:1:3: a key must be a plain word"},
    {"a b: 1\n", "f.yaml:1:1: 'a b' is not a key: letters, digits, '_', '-' and dots between parts"},
    {"<<: 1\n", "f.yaml:1:1: '<<' is not a key: letters, digits, '_', '-' and dots between parts"},
    {"text: \"a\\0b\"\n", "f.yaml:1:7: text: the text contains a 0 byte"},
    {"learner:\n\tlr: 1\n", "f.yaml:2:1: not YAML: a tab; indent with spaces"},
    {"big: 1\nreal: \x01\n", "f.yaml:2:7: not YAML: control characters are not allowed"},
    {"big: 1\n real: \xff\n", "f.yaml:2:8: not YAML: invalid leading UTF-8 octet"},
    {"big: [1\n", "f.yaml:2:1: not YAML: while parsing a flow sequence: did not find expected ',' or ']'"},
};

static void test_messages(void **state)
{
    (void)state;
    for (size_t i = 0; i < TT_COUNT(s_mistakes); i++) {
        thing_t thing;
        const tt_status_t status = s_take(&thing, s_mistakes[i].yaml, NULL);
        if (status != TT_CONFIG || strcmp(tt_err_text(), s_mistakes[i].message) != 0)
            fail_msg("%s\ngave %s: %s\nnot      %s", s_mistakes[i].yaml, tt_status_name(status), tt_err_text(),
                s_mistakes[i].message);
    }
}

static void test_missing(void **state)
{
    (void)state;
    char env[16];
    tt_config_t *config = NULL;
    assert_ok(tt_config_parse(&config, "", 0, "f.yaml"));
    assert_int_equal(tt_config_claim(config, s_required, env), TT_CONFIG);
    assert_string_equal(tt_err_text(), "f.yaml: 'env' is missing: the environment");
    tt_config_destroy(&config);
    assert_ok(tt_config_parse(&config, "seed: 1\nevn: X", 14, "f.yaml"));
    assert_int_equal(tt_config_claim(config, s_required, env), TT_CONFIG);
    assert_string_equal(tt_err_text(), "f.yaml:2:1: unknown key 'evn'; did you mean 'env'?");
    tt_config_destroy(&config);
}

static void test_empty_sections_are_nothing(void **state)
{
    (void)state;
    thing_t thing;
    assert_ok(s_take(&thing, "learner:\nstop: {}\n", NULL));
    assert_ok(s_take(&thing, "---\n...\n", NULL));
    assert_ok(s_take(&thing, "# nothing\n", NULL));
}

/*  ---- limits ---- */

static tt_status_t s_parse(const char *text, size_t size)
{
    tt_config_t *config = NULL;
    const tt_status_t status = tt_config_parse(&config, text, size, "f.yaml");
    tt_config_destroy(&config);
    return status;
}

static void test_limits(void **state)
{
    (void)state;
    char *large = tt_new0((1 << 20) + 1);
    memset(large, '#', (1 << 20) + 1);
    assert_ok(s_parse(large, 1 << 20));
    assert_int_equal(s_parse(large, (1 << 20) + 1), TT_CONFIG);
    assert_string_equal(tt_err_text(), "f.yaml: more than 1 MiB; this is not a config");
    free(large);
    tt_buf_t text;
    tt_buf_init(&text, 1 << 20);
    for (int i = 0; i < 4097; i++)
        assert_ok(tt_buf_printf(&text, "k%d: 1\n", i));
    assert_int_equal(s_parse(text.data, text.size), TT_CONFIG);
    assert_string_equal(tt_err_text(), "f.yaml:4097:1: k4096: more than 4096 keys");
    tt_buf_clear(&text);
    for (int i = 0; i < 17; i++)
        assert_ok(tt_buf_str(&text, "{a: "));
    assert_int_equal(s_parse(text.data, text.size), TT_CONFIG);
    assert_non_null(strstr(tt_err_text(), "sections nested deeper than 16"));
    tt_buf_clear(&text);
    for (int i = 0; i < 128; i++)
        assert_ok(tt_buf_str(&text, "a"));
    assert_ok(tt_buf_str(&text, ": 1"));
    assert_int_equal(s_parse(text.data, text.size), TT_CONFIG);
    assert_non_null(strstr(tt_err_text(), "is not a key"));
    tt_buf_clear(&text);
    assert_ok(tt_buf_str(&text, "a: ["));
    for (int i = 0; i < 65; i++)
        assert_ok(tt_buf_str(&text, "1, "));
    assert_int_equal(s_parse(text.data, text.size), TT_CONFIG);
    assert_string_equal(tt_err_text(), "f.yaml:1:197: a: a list of more than 64 values");
    tt_buf_free(&text);
}

/*  ---- --set and put ---- */

static void test_set(void **state)
{
    (void)state;
    thing_t thing;
    const char *const sets[] = {"learner.shards=4", "stop={limit: 3, steps: 10k}", "hidden=[1, 2]", "text=tcp://*:1=2",
        "learner.shards=8", "stop.limit=null", "flag=true", NULL};
    assert_ok(s_take(&thing, "learner: {shards: 1}\nhidden: [9]\nstop: {limit: 475}\n", sets));
    assert_int_equal(thing.small, 8);
    assert_true(isnan(thing.limit));
    assert_true(thing.steps == 10000);
    assert_int_equal(thing.hidden.count, 2);
    assert_string_equal(thing.text, "tcp://*:1=2");
    assert_true(thing.flag);
}

static void test_set_messages(void **state)
{
    (void)state;
    static const struct {
        const char *set;
        tt_status_t status;
        const char *message;
    } cases[] = {
        {"seed", TT_USAGE, "--set seed: not of the form KEY=VALUE, as in learner.replicas=2"},
        {"=1", TT_USAGE, "--set =1: not of the form KEY=VALUE, as in learner.replicas=2"},
        {"shards=", TT_USAGE, "--set shards=: no value; null switches a rule off, \"\" is the empty text"},
        {"shards= ", TT_USAGE, "--set shards=: no value; null switches a rule off, \"\" is the empty text"},
        {"shards=#4", TT_USAGE, "--set shards=: no value; null switches a rule off, \"\" is the empty text"},
        {"shards=---", TT_USAGE, "--set shards=: no value; null switches a rule off, \"\" is the empty text"},
        {"a b=1", TT_USAGE, "--set a b=1: not of the form KEY=VALUE, as in learner.replicas=2"},
        {"learner={shards: 2, shards: 4}", TT_USAGE, "--set: learner.shards: given twice; first at --set"},
        {"hidden=[1", TT_USAGE, "--set: not YAML: while parsing a flow sequence: did not find expected ',' or ']'"},
        {"learner.shard=1", TT_CONFIG, "--set: unknown key 'learner.shard'; did you mean 'learner.shards'?"},
        {"learner.shards=9", TT_CONFIG, "--set: learner.shards: '9' is outside 1 .. 8"},
    };
    for (size_t i = 0; i < TT_COUNT(cases); i++) {
        thing_t thing;
        const char *const sets[] = {cases[i].set, NULL};
        assert_int_equal(s_take(&thing, "", sets), cases[i].status);
        assert_string_equal(tt_err_text(), cases[i].message);
    }
}

/*  Of two keys that say the same in other words neither wins in silence. */
static void test_rivals(void **state)
{
    (void)state;
    static const tt_cfg_field_t fields[] = {
        {"parts", TT_CFG_U32, 0, "0", .help = "how many"},
        {"size", TT_CFG_U32, 4, "0", .help = "of a part", .rival = "parts"},
        {0},
    };
    static const struct {
        const char *yaml, *message; /* NULL = fine */
    } cases[] = {
        {"", NULL},
        {"parts: 4", NULL},
        {"size: 4", NULL},
        {"parts: 0\nsize: 4", NULL}, /* as it is printed */
        {"size: 4\nparts: 2",
            "f.yaml:1:1: size: given beside parts (f.yaml:2:1); one follows from the other: keep one"},
    };
    for (size_t i = 0; i < TT_COUNT(cases); i++) {
        uint32_t at[2];
        tt_config_t *config = NULL;
        assert_ok(tt_config_parse(&config, cases[i].yaml, strlen(cases[i].yaml), "f.yaml"));
        assert_ok(tt_config_claim(config, fields, at));
        assert_int_equal(tt_config_finish(config), cases[i].message ? TT_CONFIG : TT_OK);
        if (cases[i].message)
            assert_string_equal(tt_err_text(), cases[i].message);
        tt_config_destroy(&config);
    }
}

/*  What 0.1 wrote is read as 0.1 meant it; what is as it is now stays. */
static void test_upgrade(void **state)
{
    (void)state;
    static const tt_cfg_field_t fields[] = {
        {"algorithm.minibatches", TT_CFG_U32, 0, "0", .help = "how many"},
        {"algorithm.minibatch_size", TT_CFG_U32, 4, "0", .help = "of rows"},
        {"algorithm.entropy_coef", TT_CFG_U32, 8, "0", .help = "weight"},
        {0},
    };
    static const struct {
        const char *yaml, *said;
        uint32_t at[3];
    } cases[] = {
        {"algorithm:\n  minibatches: 4\n  minibatch_size: 32\n  entropy: 1",
            "algorithm.entropy is algorithm.entropy_coef now, algorithm.minibatches 4 went unused beside "
            "algorithm.minibatch_size",
            {0, 32, 1}},
        {"algorithm:\n  minibatches: 4\n  minibatch_size: 0", "", {4, 0, 0}},
        {"algorithm:\n  minibatches: 4", "", {4, 0, 0}},
        {"algorithm:\n  entropy: 2", "algorithm.entropy is algorithm.entropy_coef now", {0, 0, 2}},
        {"algorithm:\n  minibatches: 0\n  minibatch_size: 32\n  entropy_coef: 1", "", {0, 32, 1}}, /* as it is today */
        {"", "", {0, 0, 0}},
    };
    for (size_t i = 0; i < TT_COUNT(cases); i++) {
        uint32_t at[3];
        tt_config_t *config = NULL;
        tt_buf_t said;
        tt_buf_init(&said, 1024);
        assert_ok(tt_config_parse(&config, cases[i].yaml, strlen(cases[i].yaml), "f.yaml"));
        assert_ok(tt_config_upgrade(config, &said));
        assert_string_equal(tt_buf_text(&said), cases[i].said);
        assert_ok(tt_config_claim(config, fields, at));
        assert_ok(tt_config_finish(config));
        assert_memory_equal(at, cases[i].at, sizeof at);
        tt_buf_free(&said);
        tt_config_destroy(&config);
    }
    /* both names: neither is taken for the other, and the old one is unknown */
    static const char both[] = "algorithm:\n  entropy: 1\n  entropy_coef: 2";
    uint32_t at[3];
    tt_config_t *config = NULL;
    tt_buf_t said;
    tt_buf_init(&said, 1024);
    assert_ok(tt_config_parse(&config, both, sizeof both - 1, "f.yaml"));
    assert_ok(tt_config_upgrade(config, &said));
    assert_ok(tt_config_claim(config, fields, at));
    assert_int_equal(tt_config_finish(config), TT_CONFIG);
    tt_buf_free(&said);
    tt_config_destroy(&config);
}

static void test_origins(void **state)
{
    (void)state;
    static const char yaml[] = "big: 3\nlearner:\n  shards: 4\n";
    thing_t thing;
    tt_config_t *config = NULL;
    assert_ok(tt_config_parse(&config, yaml, strlen(yaml), "f.yaml"));
    assert_ok(tt_config_set(config, "real=1"));
    tt_config_put(config, "text", "put: it", "environment X");
    tt_config_put(config, "hidden", "[3]", "environment X");
    assert_ok(tt_config_claim(config, s_fields, &thing));
    assert_string_equal(tt_config_origin(config, "learner.shards"), "f.yaml:3:3");
    assert_string_equal(tt_config_origin(config, "real"), "--set");
    assert_string_equal(tt_config_origin(config, "text"), "environment X");
    assert_string_equal(tt_config_origin(config, "flag"), "default");
    assert_string_equal(thing.text, "put: it");
    assert_int_equal(thing.hidden.count, 1);
    tt_buf_t out;
    tt_buf_init(&out, 1 << 16);
    assert_ok(tt_config_dump(config, &out, true));
    assert_string_equal(tt_buf_text(&out), "flag: false                                  # default\n"
                                           "learner:\n"
                                           "  shards: 4                                  # f.yaml:3:3\n"
                                           "  lr: 0.0003                                 # default\n"
                                           "big: 3                                       # f.yaml:1:1\n"
                                           "stop:\n"
                                           "  limit: null                                # default\n"
                                           "  steps: null                                # default\n"
                                           "real: 1                                      # --set\n"
                                           "text: \"put: it\"                              # environment X\n"
                                           "shape: tanh                                  # default\n"
                                           "hidden: [3]                                  # environment X\n"
                                           "a:\n"
                                           "  b:\n"
                                           "    deep: 7                                  # default\n");
    tt_buf_free(&out);
    tt_config_destroy(&config);
}

/*  A small table first, then the program decides, then the large table claims the same keys again. */
static void test_claim_twice(void **state)
{
    (void)state;
    static const char yaml[] = "text: ./x.so\n";
    static const tt_cfg_field_t first[] = {{"text", TT_CFG_STR, 0, "", .size = 16, .help = "some words"}, {0}};
    char text[16];
    thing_t thing;
    tt_config_t *config = NULL;
    assert_ok(tt_config_parse(&config, yaml, strlen(yaml), "f.yaml"));
    assert_ok(tt_config_claim(config, first, text));
    assert_string_equal(text, "./x.so");
    tt_config_put(config, "text", "/x.so", "f.yaml:1:1, made absolute");
    assert_ok(tt_config_claim(config, s_fields, &thing));
    assert_string_equal(thing.text, "/x.so");
    tt_buf_t out;
    tt_buf_init(&out, 1 << 16);
    assert_ok(tt_config_dump(config, &out, true));
    assert_non_null(strstr(tt_buf_text(&out), "text: /x.so"));
    assert_non_null(strstr(tt_buf_text(&out), "# f.yaml:1:1, made absolute\n"));
    assert_null(strstr(tt_buf_text(&out), "./x.so"));
    tt_buf_free(&out);
    tt_config_destroy(&config);
}

/*  A list of texts is the text with commas between, however it is written; it reads back from what is dumped. */
static void test_words(void **state)
{
    (void)state;
    static const tt_cfg_field_t fields[] = {{"do", TT_CFG_WORDS, 0, "none", .size = 24, .help = "words"}, {0}};
    static const char *const cases[][2] = {{"{}", "none"}, {"do: one", "one"},
        {"do: [one 2x2 /4, two (a, b)]", "one 2x2 /4, two (a, b)"}, {"do: one 2x2 /4, two", "one 2x2 /4, two"},
        {"do:\n  - one\n  - two 3\n", "one, two 3"}, {"do: []", ""}};
    for (size_t i = 0; i < TT_COUNT(cases); i++) {
        char text[24];
        tt_config_t *config = NULL, *again = NULL;
        tt_buf_t out;
        tt_buf_init(&out, 1 << 10);
        assert_ok(tt_config_parse(&config, cases[i][0], strlen(cases[i][0]), "f.yaml"));
        assert_ok(tt_config_claim(config, fields, text));
        assert_string_equal(text, cases[i][1]);
        assert_ok(tt_config_dump(config, &out, false));
        assert_ok(tt_config_parse(&again, tt_buf_text(&out), strlen(tt_buf_text(&out)), "again"));
        memset(text, 0, sizeof text);
        assert_ok(tt_config_claim(again, fields, text));
        assert_string_equal(text, cases[i][1]);
        tt_buf_free(&out);
        tt_config_destroy(&again);
        tt_config_destroy(&config);
    }
    static const char long_one[] = "do: [twelve bytes, and eleven]";
    char text[24] = "as it was";
    tt_config_t *config = NULL;
    assert_ok(tt_config_parse(&config, long_one, strlen(long_one), "f.yaml"));
    assert_int_equal(tt_config_claim(config, fields, text), TT_CONFIG);
    assert_string_equal(tt_err_text(), "f.yaml:1:1: do: a text of 24 bytes; 23 fit");
    tt_config_destroy(&config);
}

static void test_ignore(void **state)
{
    (void)state;
    static const char yaml[] = "algorithm: {lr: 1, deep: {er: 2}}\n";
    thing_t thing;
    tt_config_t *config = NULL;
    assert_ok(tt_config_parse(&config, yaml, strlen(yaml), "f.yaml"));
    assert_ok(tt_config_claim(config, s_fields, &thing));
    assert_int_equal(tt_config_finish(config), TT_CONFIG);
    tt_config_ignore(config, "algorithm.");
    assert_ok(tt_config_finish(config));
    tt_config_destroy(&config);
}

static void test_files(void **state)
{
    (void)state;
    char path[] = "/tmp/tutti-config-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "big: 5\nbug: 5\n", 14), 14);
    close(fd);
    tt_config_t *config = NULL;
    thing_t thing;
    assert_ok(tt_config_load(&config, path));
    assert_ok(tt_config_claim(config, s_fields, &thing));
    assert_int_equal(thing.big, 5);
    assert_int_equal(tt_config_finish(config), TT_CONFIG);
    char expected[128];
    snprintf(expected, sizeof expected, "%s:2:1: unknown key 'bug'; did you mean 'big'?", path);
    assert_string_equal(tt_err_text(), expected);
    tt_config_destroy(&config);
    unlink(path);
    assert_int_equal(tt_config_load(&config, path), TT_NOT_FOUND);
    assert_null(config);
    assert_int_equal(tt_config_load(&config, "/tmp"), TT_IO);
}

static void test_names_of_files(void **state)
{
    (void)state;
    tt_config_t *config = NULL;
    assert_int_equal(tt_config_parse(&config, "[", 1, "caf\xc3\xa9\n\xff\x07.yaml"), TT_CONFIG);
    assert_non_null(strstr(tt_err_text(), "caf\xc3\xa9???.yaml:"));
    assert_int_equal(tt_config_parse(&config, "- 1", 3, "\xe2\x82\xac\xe2\x82.yaml"), TT_CONFIG);
    assert_non_null(strstr(tt_err_text(), "\xe2\x82\xac??.yaml:1:1: "));
}

static void test_nearest(void **state)
{
    (void)state;
    static const char *const names[] = {"collector", "learner", "run", "rm"};
    assert_string_equal(tt_nearest("colector", names, 4), "collector");
    assert_string_equal(tt_nearest("lerner", names, 4), "learner");
    assert_string_equal(tt_nearest("rnu", names, 4), "run");
    assert_null(tt_nearest("aggregator", names, 4));
    assert_null(tt_nearest("", names, 4));
}

/*  The first part of a name, where nothing is nearer. */
static void test_nearest_that_goes_on(void **state)
{
    (void)state;
    static const char *const names[] = {"MountainCar-v0", "MountainCarContinuous-v0", "CartPole-v1", "carts"};
    assert_string_equal(tt_nearest("CartPole", names, 4), "CartPole-v1");
    assert_string_equal(tt_nearest("mountaincarcontinuous", names, 4), "MountainCarContinuous-v0");
    assert_string_equal(tt_nearest("cart", names, 4), "carts");
    assert_null(tt_nearest("Mountain", names, 4));
    assert_null(tt_nearest("ab", (const char *const[]){"ab-c-d-e-f"}, 1));
}

/*  Only what can be a slip of the hand is suggested, and the likelier of two. */
static void test_nearest_is_plausible(void **state)
{
    (void)state;
    static const char *const options[] = {"set", "seed", "force", "env", "output"};
    static const char *const algorithms[] = {"a2c", "dqn", "ppo"};
    assert_string_equal(tt_nearest("sed", options, 5), "seed"); /* a letter left out, sooner than another one */
    assert_string_equal(tt_nearest("sett", options, 5), "set");
    assert_string_equal(tt_nearest("seeds", options, 5), "seed");
    assert_string_equal(tt_nearest("ouptut", options, 5), "output");
    assert_string_equal(tt_nearest("Output", options, 5), "output");
    assert_null(tt_nearest("torch", options, 5));
    assert_null(tt_nearest("sac", algorithms, 3));
    assert_null(tt_nearest("td3", algorithms, 3));
    assert_string_equal(tt_nearest("PPO", algorithms, 3), "ppo");
    assert_string_equal(tt_nearest("pppo", algorithms, 3), "ppo");
    assert_string_equal(tt_nearest("ddqn", algorithms, 3), "dqn");
}

/*  ---- dump -> parse -> the same values, for random values ---- */

static uint32_t s_random(uint32_t *counter)
{
    uint32_t words[4];
    tt_draw(words, 7, TT_STREAM_TEST, 0, (*counter)++);
    return words[0];
}

/*  Any finite double between min and max that bits can make. */
static double s_random_real(uint32_t *counter, double min, double max)
{
    for (;;) {
        const uint64_t bits = (uint64_t)s_random(counter) << 32 | s_random(counter);
        double value;
        memcpy(&value, &bits, sizeof value);
        if (value >= min && value <= max)
            return value;
    }
}

static void s_random_text(uint32_t *counter, char out[16])
{
    static const char *const pieces[] = {"a", "Z", "-", " ", ":", "#", "\"", "\\", "\n", "\t", "null", "1", ".", "é",
        "€", "'", "{", "]", "\x01", "\x7f", "~", "%", "@", "&", "*", "!", ",", "\xc2\x85", "\xef\xbb\xbf"};
    out[0] = '\0';
    for (uint32_t n = s_random(counter) % 8; n > 0; n--) {
        const char *piece = pieces[s_random(counter) % TT_COUNT(pieces)];
        if (strlen(out) + strlen(piece) < 16)
            strcat(out, piece);
    }
}

static void test_dump_reads_back(void **state)
{
    (void)state;
    uint32_t counter = 0;
    for (int round = 0; round < 2000; round++) {
        thing_t thing, again;
        char value[64];
        tt_config_t *config = NULL, *second = NULL;
        assert_ok(tt_config_parse(&config, "", 0, "f.yaml"));
        const double lr = s_random_real(&counter, 0, 0.1), real = s_random_real(&counter, -2, 2.5);
        const double limit = s_random_real(&counter, -1e300, 1e300);
        const uint64_t big = (uint64_t)s_random(&counter) << 32 | s_random(&counter);
        char text[16];
        s_random_text(&counter, text);
        snprintf(value, sizeof value, "%.17g", lr);
        tt_config_put(config, "learner.lr", value, "test");
        snprintf(value, sizeof value, "%.17g", real);
        tt_config_put(config, "real", value, "test");
        snprintf(value, sizeof value, "%.17g", limit);
        tt_config_put(config, "stop.limit", value, "test");
        snprintf(value, sizeof value, "%llu", (unsigned long long)big);
        tt_config_put(config, "big", value, "test");
        tt_config_put(config, "text", text, "test\nline");
        tt_config_put(config, "flag", big % 2 ? "true" : "false", "test");
        assert_ok(tt_config_claim(config, s_fields, &thing));
        assert_true(thing.real == real && thing.limit == limit && thing.big == big);
        tt_buf_t out;
        tt_buf_init(&out, 1 << 16);
        assert_ok(tt_config_dump(config, &out, round % 2));
        assert_ok(tt_config_parse(&second, tt_buf_text(&out), out.size, "again"));
        assert_ok(tt_config_claim(second, s_fields, &again));
        assert_ok(tt_config_finish(second));
        if (thing.lr != again.lr || thing.real != again.real || thing.limit != again.limit || thing.big != again.big ||
            strcmp(thing.text, again.text) != 0 || strcmp(thing.text, text) != 0 || thing.flag != again.flag ||
            thing.hidden.count != again.hidden.count || again.steps != 0)
            fail_msg("round %d: %s", round, tt_buf_text(&out));
        tt_buf_free(&out);
        tt_config_destroy(&config);
        tt_config_destroy(&second);
    }
}

typedef struct {
    tt_cfg_texts_t words;
    uint32_t rare, usual;
} few_t;

static const tt_cfg_field_t s_few[] = {
    {"few.words", TT_CFG_TEXTS, offsetof(few_t, words), "", .help = "some texts", .quiet = true},
    {"few.rare", TT_CFG_U32, offsetof(few_t, rare), "3", .help = "a number", .quiet = true},
    {"usual", TT_CFG_U32, offsetof(few_t, usual), "1", .help = "a number"},
    {0},
};

/*  What a text says by s_few, and how it is dumped; NULL: it is refused. */
static char *s_dump_few(const char *yaml, few_t *out)
{
    tt_config_t *config = NULL;
    tt_buf_t dump;
    char *text = NULL;
    tt_buf_init(&dump, 1 << 16);
    assert_ok(tt_config_parse(&config, yaml, strlen(yaml), "f.yaml"));
    if (tt_config_claim(config, s_few, out) == TT_OK && tt_config_finish(config) == TT_OK) {
        assert_ok(tt_config_dump(config, &dump, false));
        text = tt_strdup(tt_buf_text(&dump));
    }
    tt_buf_free(&dump);
    tt_config_destroy(&config);
    return text;
}

static void test_texts_and_quiet_keys(void **state)
{
    (void)state;
    static const struct {
        const char *yaml, *dump;
    } cases[] = {
        {"{}", "usual: 1\n"}, /* a quiet key is not spoken of at its default */
        {"few: {rare: 3}", "few:\n  rare: 3\nusual: 1\n"},
        {"few: {words: []}", "few:\n  words: []\nusual: 1\n"},
        {"few: {words: [a, 'B(x=1, y=\"z\")']}", "few:\n  words: [\"a\", \"B(x=1, y=\\\"z\\\")\"]\nusual: 1\n"},
    };
    for (size_t i = 0; i < TT_COUNT(cases); i++) {
        few_t few, again;
        char *dump = s_dump_few(cases[i].yaml, &few), *twice = s_dump_few(cases[i].dump, &again);
        assert_string_equal(dump, cases[i].dump);
        assert_string_equal(twice, cases[i].dump);
        assert_int_equal(few.words.count, again.words.count);
        for (uint32_t k = 0; k < few.words.count; k++)
            assert_string_equal(few.words.at[k], again.words.at[k]);
        free(dump);
        free(twice);
    }
    few_t few;
    assert_null(s_dump_few("few: {words: a}", &few));
    assert_string_equal(tt_err_text(), "f.yaml:1:7: few.words: 'a' is not a list; write [ONE, OTHER]");
    assert_null(s_dump_few("few: {words: [1, 2, 3, 4, 5, 6, 7, 8, 9]}", &few));
    assert_string_equal(tt_err_text(), "f.yaml:1:7: few.words: a list of 9 texts; at most 8");
    assert_null(s_dump_few("few: {words: [a, '']}", &few));
    assert_string_equal(tt_err_text(), "f.yaml:1:7: few.words: '': a text must be 1 to 127 bytes");
}

static void test_dump_refuses_what_is_not_text(void **state)
{
    (void)state;
    thing_t thing;
    tt_config_t *config = NULL;
    assert_ok(tt_config_parse(&config, "", 0, "f.yaml"));
    tt_config_put(config, "text", "\xff\xfe", "test");
    assert_int_equal(tt_config_claim(config, s_fields, &thing), TT_INVALID);
    tt_config_destroy(&config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_reads_every_type),
        cmocka_unit_test(test_whole_numbers),
        cmocka_unit_test(test_real_numbers),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_missing),
        cmocka_unit_test(test_empty_sections_are_nothing),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_set),
        cmocka_unit_test(test_set_messages),
        cmocka_unit_test(test_rivals),
        cmocka_unit_test(test_upgrade),
        cmocka_unit_test(test_origins),
        cmocka_unit_test(test_claim_twice),
        cmocka_unit_test(test_ignore),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_names_of_files),
        cmocka_unit_test(test_nearest),
        cmocka_unit_test(test_nearest_that_goes_on),
        cmocka_unit_test(test_nearest_is_plausible),
        cmocka_unit_test(test_dump_reads_back),
        cmocka_unit_test(test_texts_and_quiet_keys),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_dump_refuses_what_is_not_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
