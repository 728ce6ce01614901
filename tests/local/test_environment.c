/*  Variables as a kubelet makes them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "local/environment.h"
#include "tests/k8s/json.h"

static const char s_pod[] =
    "{'metadata':{'name':'p','namespace':'ns','uid':'u','labels':{'app':'web'},'annotations':{'a/b':'c'}},"
    "'spec':{'nodeName':'host'}}";
static const char s_objects[] =
    "[{'kind':'ConfigMap','metadata':{'name':'m'},'data':{'k':'v','K2':'w'}},"
    "{'kind':'Secret','metadata':{'name':'s'},'data':{'pass':'c2VjcmV0'},'stringData':{'x':'y'}}]";

static tt_status_t s_make(environment_t *out, const char *container_text)
{
    json_t *pod = json_of(s_pod), *container = json_of(container_text), *objects = json_of(s_objects);
    const place_t place = {.objects = objects};
    const tt_status_t status = environment_make(out, &place, pod, container, "127.1.2.1");
    json_decref(pod);
    json_decref(container);
    json_decref(objects);
    return status;
}

static void s_assert_value(const environment_t *self, const char *name, const char *want)
{
    const char *value = environment_get(self, name);
    assert_non_null(value);
    assert_string_equal(value, want);
}

static void test_values_are_expanded_in_order(void **state)
{
    (void)state;
    environment_t env = {0};
    assert_ok(s_make(&env,
        "{'env':[{'name':'A','value':'1'},{'name':'B','value':'$(A) $(C) $$(A) $x'},{'name':'C','value':'3'},"
        "{'name':'A','value':'2'}]}"));
    assert_int_equal(env.count, 3);
    s_assert_value(&env, "A", "2");
    s_assert_value(&env, "B", "1 $(C) $(A) $x");
    char *text = environment_expand(&env, "$(A)$(HOME)$(date) $$(A) $(");
    assert_string_equal(text, "2$(HOME)$(date) $(A) $(");
    free(text);
    environment_clear(&env);
}

static void test_fields_of_the_pod(void **state)
{
    (void)state;
    environment_t env = {0};
    assert_ok(
        s_make(&env, "{'resources':{'limits':{'memory':'1Gi','cpu':'1500m'}},'env':["
                     "{'name':'NAME','valueFrom':{'fieldRef':{'fieldPath':'metadata.name'}}},"
                     "{'name':'LABEL','valueFrom':{'fieldRef':{'fieldPath':'metadata.labels[\\u0027app\\u0027]'}}},"
                     "{'name':'NOTE','valueFrom':{'fieldRef':{'fieldPath':'metadata.annotations[\\u0027a/b\\u0027]'}}},"
                     "{'name':'IP','valueFrom':{'fieldRef':{'fieldPath':'status.podIP'}}},"
                     "{'name':'NODE','valueFrom':{'fieldRef':{'fieldPath':'spec.nodeName'}}},"
                     "{'name':'CPU','valueFrom':{'resourceFieldRef':{'resource':'limits.cpu'}}},"
                     "{'name':'MIB','valueFrom':{'resourceFieldRef':{'resource':'limits.memory','divisor':'1Mi'}}}]}"));
    s_assert_value(&env, "NAME", "p");
    s_assert_value(&env, "LABEL", "web");
    s_assert_value(&env, "NOTE", "c");
    s_assert_value(&env, "IP", "127.1.2.1");
    s_assert_value(&env, "NODE", "host");
    s_assert_value(&env, "CPU", "2");
    s_assert_value(&env, "MIB", "1024");
    environment_clear(&env);
}

static void test_objects_of_the_manifest(void **state)
{
    (void)state;
    environment_t env = {0};
    assert_ok(s_make(&env, "{'envFrom':[{'prefix':'M_','configMapRef':{'name':'m'}},{'secretRef':{'name':'s'}}],'env':["
                           "{'name':'A','valueFrom':{'configMapKeyRef':{'name':'m','key':'k'}}},"
                           "{'name':'B','valueFrom':{'secretKeyRef':{'name':'s','key':'pass'}}},"
                           "{'name':'NONE','valueFrom':{'secretKeyRef':{'name':'s','key':'no','optional':true}}}]}"));
    s_assert_value(&env, "M_k", "v");
    s_assert_value(&env, "M_K2", "w");
    s_assert_value(&env, "pass", "secret");
    s_assert_value(&env, "x", "y");
    s_assert_value(&env, "A", "v");
    s_assert_value(&env, "B", "secret");
    assert_null(environment_get(&env, "NONE"));
    environment_clear(&env);
}

static void s_assert_wrong(const char *container, const char *want)
{
    environment_t env = {0};
    assert_int_not_equal(s_make(&env, container), TT_OK);
    assert_string_equal(tt_err_text(), want);
}

static void test_what_is_not_there(void **state)
{
    (void)state;
    s_assert_wrong("{'env':[{'name':'A','valueFrom':{'configMapKeyRef':{'name':'m','key':'zz'}}}]}",
        "env A: the manifest has no ConfigMap m with key zz");
    s_assert_wrong("{'envFrom':[{'secretRef':{'name':'zz'}}]}", "envFrom: the manifest has no Secret zz");
    s_assert_wrong("{'env':[{'name':'A','valueFrom':{'fieldRef':{'fieldPath':'spec.what'}}}]}",
        "env A: fieldRef spec.what means nothing on this machine");
    static const char *const paths[] = {"metadata.labels[", "metadata.labels['", "metadata.labels['']",
        "metadata.labels['app'", "metadata.labels['app']x", "metadata.labels[app]", "metadata.annotations["};
    for (size_t i = 0; i < TT_COUNT(paths); i++) {
        char quoted[128] = "", container[256], want[128];
        for (const char *c = paths[i]; *c; c++)
            snprintf(quoted + strlen(quoted), sizeof quoted - strlen(quoted), *c == '\'' ? "\\u0027" : "%c", *c);
        snprintf(
            container, sizeof container, "{'env':[{'name':'A','valueFrom':{'fieldRef':{'fieldPath':'%s'}}}]}", quoted);
        snprintf(want, sizeof want, "env A: fieldRef %s means nothing on this machine", paths[i]);
        s_assert_wrong(container, want);
    }
    s_assert_wrong("{'env':[{'name':'A=B','value':'1'}]}", "env: 'A=B' is not the name of a variable");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_are_expanded_in_order),
        cmocka_unit_test(test_fields_of_the_pod),
        cmocka_unit_test(test_objects_of_the_manifest),
        cmocka_unit_test(test_what_is_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
