/*  Fields of manifests: what is known is let through, what is misspelled is found with its path and what was meant. */
#include "common/config/fields.h"
#include <string.h>
#include "k8s/front/front.h"
#include "tests/test.h"

/*  Those of all kinds of jobs are looked for, as each knows its own. */
static bool s_unknown(tt_fields_unknown_t *out, const json_t *object)
{
    for (size_t i = 0; i < front_end_count; i++)
        if (tt_fields_unknown(out, object, front_ends[i]->local->fields))
            return true;
    return tt_fields_unknown(out, object, NULL);
}

static bool s_find(tt_fields_unknown_t *out, const char *text)
{
    json_error_t error;
    json_t *object = json_loads(text, 0, &error);
    assert_non_null(object);
    const bool found = s_unknown(out, object);
    json_decref(object);
    return found;
}

#define JOB(container)                                                                                                \
    "{\"apiVersion\":\"x\",\"kind\":\"DIJob\",\"metadata\":{\"name\":\"a\",\"labels\":{\"any\":\"thing\"}},\"spec\":" \
    "{\"coordinator\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"x\"}," container "]}}}}}"

static void s_assert_unknown(const char *text, const char *path, const char *field, const char *type, const char *near)
{
    tt_fields_unknown_t out;
    assert_true(s_find(&out, text));
    assert_string_equal(out.path, path);
    assert_string_equal(out.field, field);
    assert_string_equal(out.type, type);
    assert_string_equal(out.near, near);
}

static void test_misspelled(void **state)
{
    (void)state;
    s_assert_unknown(JOB("{\"comand\":[]}"), "spec.coordinator.template.spec.containers[1].comand", "comand",
        "Container", "command");
    s_assert_unknown(JOB("{\"livenessProbe\":{\"exec\":{\"comand\":[]}}}"),
        "spec.coordinator.template.spec.containers[1].livenessProbe.exec.comand", "comand", "ExecAction", "command");
    s_assert_unknown(
        JOB("{\"xyzzy\":1}"), "spec.coordinator.template.spec.containers[1].xyzzy", "xyzzy", "Container", "");
    s_assert_unknown("{\"kind\":\"DIJob\",\"specs\":{}}", "specs", "specs", "DIJob", "spec");
    s_assert_unknown("{\"kind\":\"DIJob\",\"spec\":{\"tasks\":[{\"replica\":1}]}}", "spec.tasks[0].replica", "replica",
        "DIJobTasks", "replicas");
    s_assert_unknown("{\"kind\":\"AggregatorConfig\",\"spec\":{\"aggregators\":1}}", "spec.aggregators", "aggregators",
        "AggregatorConfigSpec", "aggregator");
    s_assert_unknown("{\"kind\":\"Secret\",\"stringdata\":{}}", "stringdata", "stringdata", "Secret", "stringData");
}

/*  Types of replicas are keys in any case; what is at each is known. */
static void test_in_a_map_of_free_keys(void **state)
{
    (void)state;
    tt_fields_unknown_t out;
    s_assert_unknown(
        "{\"kind\":\"TFJob\",\"spec\":{\"tfReplicaSpecs\":{\"PS\":{\"replicas\":1},\"worker\":{\"replica\":2}}}}",
        "spec.tfReplicaSpecs.worker.replica", "replica", "TFJobReplicaSpec", "replicas");
    s_assert_unknown(
        "{\"kind\":\"TFJob\",\"spec\":{\"tfReplicaSpecs\":{\"PS\":{\"template\":{\"spec\":{\"container\":[]}}}}}}",
        "spec.tfReplicaSpecs.PS.template.spec.container", "container", "PodSpec", "containers");
    s_assert_unknown("{\"kind\":\"TFJob\",\"spec\":{\"runPolicy\":{\"backofLimit\":1}}}", "spec.runPolicy.backofLimit",
        "backofLimit", "TFJobRunPolicy", "backoffLimit");
    assert_false(s_find(&out, "{\"kind\":\"TFJob\",\"spec\":{\"tfReplicaSpecs\":{\"any\":{\"replicas\":1}}}}"));
    assert_false(s_find(&out, "{\"kind\":\"TFJob\",\"spec\":{\"tfReplicaSpecs\":[7]}}"));
}

static void test_maps_and_kinds_of_others_are_free(void **state)
{
    (void)state;
    tt_fields_unknown_t out;
    assert_false(s_find(&out, JOB("{\"resources\":{\"limits\":{\"example.com/thing\":1}}}")));
    assert_false(s_find(&out, "{\"kind\":\"Deployment\",\"nonsense\":1}"));
    assert_false(s_find(&out, "{\"kind\":7}"));
    assert_false(s_find(&out, "{\"kind\":\"DIJob\",\"spec\":[[{\"tasks\":5}]]}"));
}

static void test_as_deep_as_a_manifest_may_be(void **state)
{
    (void)state;
    tt_fields_unknown_t out;
    json_t *deep = json_pack("{s:i}", "nonsense", 1);
    for (int i = 0; i < 200; i++)
        deep = json_pack("[o]", deep);
    json_t *job = json_pack("{s:s, s:o}", "kind", "DIJob", "spec", deep);
    assert_false(s_unknown(&out, job)); /* deeper than manifests are read; no end of the stack */
    json_decref(job);
}

static void test_long_names_are_cut(void **state)
{
    (void)state;
    tt_fields_unknown_t out;
    char name[1000];
    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    json_t *job = json_pack("{s:s, s:{s:i}}", "kind", "DIJob", "spec", name, 1);
    assert_true(s_unknown(&out, job));
    assert_int_equal(strlen(out.path), sizeof out.path - 1);
    assert_int_equal(strlen(out.field), sizeof out.field - 1);
    json_decref(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_misspelled),
        cmocka_unit_test(test_in_a_map_of_free_keys),
        cmocka_unit_test(test_maps_and_kinds_of_others_are_free),
        cmocka_unit_test(test_as_deep_as_a_manifest_may_be),
        cmocka_unit_test(test_long_names_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
