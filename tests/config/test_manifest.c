#include "common/config/manifest.h"
#include <stdio.h>
#include <unistd.h>
#include "k8s/dijob/dijob.h"
#include "tests/k8s/json.h"

static tt_manifest_t *s_parse(const char *text)
{
    tt_manifest_t *self = NULL;
    assert_ok(tt_manifest_parse(&self, text, strlen(text), "job.yaml"));
    return self;
}

static void s_assert_error(const char *text, const char *want)
{
    tt_manifest_t *self = NULL;
    assert_int_equal(tt_manifest_parse(&self, text, strlen(text), "job.yaml"), TT_CONFIG);
    assert_null(self);
    assert_string_equal(tt_err_text(), want);
}

/*  Every line was given to kubectl 1.32 (kubectl label --local -o json), which answered the same. */
static void test_scalars_are_what_kubectl_makes_of_them(void **state)
{
    (void)state;
    static const char *const cases[][2] = {{"yes", "true"}, {"y", "true"}, {"on", "true"}, {"TRUE", "true"},
        {"Off", "false"}, {"n", "false"}, {"N", "false"}, {"tRUE", "\"tRUE\""}, {"0644", "420"}, {"0o17", "15"},
        {"0x1F", "31"}, {"0b11", "3"}, {"08", "8"}, {"1e3", "1000"}, {"1.0", "1"}, {"1.", "1"}, {"1_000", "1000"},
        {"2001-01-01", "\"2001-01-01\""}, {"12:30", "\"12:30\""}, {".5", "0.5"}, {"+1", "1"}, {"-0", "0"}, {"-7", "-7"},
        {"1e21", "1e21"}, {"'1'", "\"1\""}, {"\"yes\"", "\"yes\""}, {"!!str 5", "\"5\""}, {"!!int \"5\"", "5"},
        {"10Gi", "\"10Gi\""}, {"0.1", "0.1"}, {"1-2", "\"1-2\""}, {"1e", "\"1e\""}, {"0x", "\"0x\""},
        {"9223372036854775807", "9223372036854775807"}};
    for (size_t i = 0; i < TT_COUNT(cases); i++) {
        char *text = tt_sprintf("v: %s\n", cases[i][0]);
        tt_manifest_t *self = s_parse(text);
        char *got = kube_dump(json_object_get(tt_manifest_at(self, 0), "v"));
        assert_string_equal(got, cases[i][1]);
        free(got);
        free(text);
        tt_manifest_destroy(&self);
    }
}

static void test_block_scalars_and_documents(void **state)
{
    (void)state;
    tt_manifest_t *self = s_parse("# first\n---\na:\n- |\n  cat <<'END'\n    x: $(Y)\n  END\n- >-\n  one\n  "
                                  "two\n---\n---\nb: {c: 1, d: ~, e: }\n...\n");
    assert_int_equal(tt_manifest_count(self), 2);
    assert_json(
        json_incref(tt_manifest_at(self, 0)), "{'a':['cat <<\\u0027END\\u0027\\n  x: $(Y)\\nEND\\n','one two']}");
    assert_json(json_incref(tt_manifest_at(self, 1)), "{'b':{'c':1}}");
    assert_null(tt_manifest_at(self, 2));
    tt_manifest_destroy(&self);
    self = s_parse("# nothing\n");
    assert_int_equal(tt_manifest_count(self), 0);
    tt_manifest_destroy(&self);
}

static void test_anchors_and_merges(void **state)
{
    (void)state;
    tt_manifest_t *self = s_parse("base: &b {x: 1, y: {z: 2}}\na: *b\nc:\n  <<: *b\n  x: 9\nd: {<<: [{q: 1}, {q: 2, r: "
                                  "3}]}\ne: {<<: *b, y: ~}\n");
    assert_json(json_incref(tt_manifest_at(self, 0)),
        "{'base':{'x':1,'y':{'z':2}},'a':{'x':1,'y':{'z':2}},'c':{'x':9,'y':{'z':2}},'d':{'q':1,'r':3},'e':{'x':1}}");
    json_object_set_new(json_object_get(json_object_get(tt_manifest_at(self, 0), "a"), "y"), "z", json_integer(7));
    assert_int_equal(json_integer_value(
                         json_object_get(json_object_get(json_object_get(tt_manifest_at(self, 0), "base"), "y"), "z")),
        2); /* a copy */
    tt_manifest_destroy(&self);
}

static void test_a_list_gives_its_items(void **state)
{
    (void)state;
    tt_manifest_t *self = s_parse("apiVersion: v1\nkind: List\nitems:\n- {kind: A}\n- {kind: B}\n");
    assert_int_equal(tt_manifest_count(self), 2);
    assert_json(json_incref(tt_manifest_at(self, 1)), "{'kind':'B'}");
    tt_manifest_destroy(&self);
}

static void test_json_is_yaml(void **state)
{
    (void)state;
    tt_manifest_t *self = s_parse("{\"kind\": \"DIJob\",\n \"n\": [1, 2.5, true, \"a\\u00e9\"]}");
    assert_json(json_incref(tt_manifest_at(self, 0)), "{'kind':'DIJob','n':[1,2.5,true,'a\\u00e9']}");
    tt_manifest_destroy(&self);
}

static void test_places(void **state)
{
    (void)state;
    tt_manifest_t *self = s_parse("a: 1\n---\nspec:\n  list:\n  - name: x\n    value: 1\n  - name: y\n");
    assert_string_equal(tt_manifest_where(self, 0, "a"), "job.yaml:1");
    assert_string_equal(tt_manifest_where(self, 1, "spec.list[1].name"), "job.yaml:7");
    assert_string_equal(tt_manifest_where(self, 1, "spec.list[0].value"), "job.yaml:6");
    assert_string_equal(tt_manifest_where(self, 1, "spec.list[0].missing"), "job.yaml:5");
    assert_string_equal(tt_manifest_where(self, 1, "spec.list[10]"), "job.yaml:5");
    tt_manifest_destroy(&self);
}

static void test_errors_name_the_line(void **state)
{
    (void)state;
    s_assert_error("a: 1\nb: 2\na: 3\n", "job.yaml:3: key 'a' is there twice");
    s_assert_error("a: 1\nb: ~\nb: 3\n", "job.yaml:3: key 'b' is there twice");
    s_assert_error(
        "a:\n  b: [1\nc: 2\n", "job.yaml:3: did not find expected ',' or ']', while parsing a flow sequence");
    s_assert_error("a: *x\n", "job.yaml:1: *x: no such anchor above");
    s_assert_error("a: &x\n  b: *x\n", "job.yaml:2: *x: no such anchor above");
    s_assert_error("\na: .inf\n", "job.yaml:2: '.inf' cannot be said in JSON, or not with tag none");
    s_assert_error("a: !mine 3\n", "job.yaml:1: '3' cannot be said in JSON, or not with tag !mine");
    s_assert_error("a: !!int x\n", "job.yaml:1: 'x' cannot be said in JSON, or not with tag tag:yaml.org,2002:int");
    s_assert_error("{[a]: b}\n", "job.yaml:1: a key must be text");
    s_assert_error("a: {<<: 3}\n", "job.yaml:1: << wants a mapping, or a list of them");
    s_assert_error("- a\n", "job.yaml:1: a document must be a mapping");
    s_assert_error("a: \"\\0\"\n", "job.yaml:1: a zero byte");
}

static void test_bombs_do_not_go_off(void **state)
{
    (void)state;
    char text[4096] = "a0: &a0 [1,1,1,1,1,1,1,1,1,1]\n", deep[256] = "a: ";
    for (int i = 1; i < 10; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text),
            "a%d: &a%d [*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d]\n", i, i, i - 1, i - 1, i - 1, i - 1, i - 1,
            i - 1, i - 1, i - 1, i - 1, i - 1);
    s_assert_error(text, "job.yaml:6: more than 200000 values (aliases filled in)");
    memset(deep + 3, '[', 100);
    s_assert_error(deep, "job.yaml:1: nested more than 64 deep");
}

static void s_assert_is(const char *text, bool want)
{
    char path[] = "/tmp/tutti-manifest-XXXXXX";
    FILE *file = fdopen(mkstemp(path), "w");
    fputs(text, file);
    fclose(file);
    assert_int_equal(tt_manifest_is(path), want);
    unlink(path);
}

static void test_a_manifest_is_told_from_a_config(void **state)
{
    (void)state;
    s_assert_is("apiVersion: diengine.opendilab.org/v1alpha1\nkind: DIJob\n", true);
    s_assert_is("{\"apiVersion\": \"v1\", \"kind\": \"Pod\"}", true);
    s_assert_is("env:\n  id: CartPole-v1\n", false);
    s_assert_is("a: [\n", false);
    assert_false(tt_manifest_is("/nonexistent/job.yaml"));
}

/*  Every sample that we ship is read, and is a job that can be run. */
static void test_the_samples(void **state)
{
    (void)state;
    static const char *const files[] = {"dijob-qbert.yaml", "dijob-qbert-gpu.yaml", "dijob-qbert-roles.yaml",
        "dijob-cartpole.yaml", "dijob-cartpole-labelled.yaml", "di-mock/di-mock-dijob.yaml", "e2e/dijob.yaml",
        "e2e/dijob-sidecar.yaml", "v2alpha1/atari-dqn-dist.yaml", "v2alpha1/dijob-gobigger.yaml",
        "v2alpha1/dijob-serial.yaml"};
    for (size_t i = 0; i < TT_COUNT(files); i++) {
        tt_manifest_t *self = NULL;
        dijob_t *job = NULL;
        char *path = tt_sprintf(TT_SOURCE_DIR "/k8s/samples/%s", files[i]);
        assert_ok(tt_manifest_load(&self, path));
        assert_ok(dijob_from_json(&job, tt_manifest_at(self, 0)));
        assert_null(job->invalid);
        dijob_destroy(&job);
        tt_manifest_destroy(&self);
        free(path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scalars_are_what_kubectl_makes_of_them),
        cmocka_unit_test(test_block_scalars_and_documents),
        cmocka_unit_test(test_anchors_and_merges),
        cmocka_unit_test(test_a_list_gives_its_items),
        cmocka_unit_test(test_json_is_yaml),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_errors_name_the_line),
        cmocka_unit_test(test_bombs_do_not_go_off),
        cmocka_unit_test(test_a_manifest_is_told_from_a_config),
        cmocka_unit_test(test_the_samples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
