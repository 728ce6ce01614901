/*  The file of what pods of members get beside: what is read of it, what is refused with which words, and what becomes of a set. */
#include "elasticdl/template.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/mem.h"
#include "elasticdl/objects.h"
#include "tests/k8s/json.h"
#include "tests/test.h"

/*  Of a file f.yaml in a folder of its own, which is where we are. */
static tt_status_t s_read(edl_templates_t *out, const char *text)
{
    FILE *file = fopen("f.yaml", "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    return edl_templates_read(out, "f.yaml");
}

static int s_enter(void **state)
{
    static char folder[] = "/tmp/tt-template-XXXXXX";
    *state = folder;
    return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int s_leave(void **state)
{
    (void)unlink("f.yaml");
    return chdir("/") == 0 && rmdir(*state) == 0 ? 0 : -1;
}

/*  The pod template of a set of that type. */
static json_t *s_pod(const edl_templates_t *templates, elasticdl_type_t type)
{
    const edl_objects_t objects = {
        .namespace_ = "lab", .agent_image = "tutti:1", .grace_s = 10, .templates = *templates};
    const elasticdl_request_t request = {
        .strategy = ELASTICDL_PARAMETER_SERVER, .ps = 1, .workers = 1, .image = "mnist:2", .name = "job"};
    static const edl_task_limits_t limits = {.ready_ms = 1000, .step_ms = 1000, .silent_ms = 1000, .end_ms = 1000};
    edl_task_t *task;
    edl_task_new(&task, 7, &request, &limits, 0);
    json_t *set = edl_set(&objects, task, type), *spec = json_object_get(set, "spec");
    json_t *out = json_incref(json_object_get(spec, "template"));
    const json_t *selector = json_object_get(json_object_get(spec, "selector"), "matchLabels"), *value;
    const char *key;
    json_object_foreach((json_t *)(uintptr_t)selector, key, value) assert_true(
        json_equal(value, json_object_get(json_object_get(json_object_get(out, "metadata"), "labels"), key)));
    json_decref(set);
    edl_task_destroy(&task);
    return out;
}

#define TEMPLATE "apiVersion: v1\nkind: PodTemplate\n"

static void test_beside_what_the_master_says(void **state)
{
    (void)state;
    edl_templates_t none = {0}, both;
    json_t *plain = s_pod(&none, ELASTICDL_WORKER);
    assert_ok(s_read(&both, TEMPLATE "template:\n"
                                     "  metadata: {labels: {team: vision}, annotations: {a: b}}\n"
                                     "  spec:\n"
                                     "    nodeSelector: {gpu: a100}\n"
                                     "    tolerations: [{key: nvidia.com/gpu, operator: Exists}]\n"
                                     "    imagePullSecrets: [{name: mine}]\n"
                                     "    securityContext: {fsGroup: 7, runAsNonRoot: true}\n"
                                     "    volumes: [{name: shm, emptyDir: {medium: Memory}}]\n"
                                     "    containers:\n"
                                     "    - name: agent\n"
                                     "      imagePullPolicy: Always\n"
                                     "      resources: {limits: {nvidia.com/gpu: 1, memory: 8Gi}}\n"
                                     "      env: [{name: NCCL_DEBUG, value: INFO}]\n"
                                     "      volumeMounts: [{name: shm, mountPath: /dev/shm}]\n"));
    json_t *pod = s_pod(&both, ELASTICDL_WORKER), *again = s_pod(&both, ELASTICDL_WORKER),
           *ps = s_pod(&both, ELASTICDL_PS);
    assert_true(json_equal(pod, again)); /* what was read is as it was */
    json_t *spec = json_object_get(plain, "spec"), *agent = json_array_get(json_object_get(spec, "containers"), 0);
    json_t *labels = json_object_get(json_object_get(plain, "metadata"), "labels");
    json_object_set_new(labels, "team", json_string("vision"));
    json_object_set_new(json_object_get(plain, "metadata"), "annotations", json_of("{'a':'b'}"));
    json_object_update_new(
        spec, json_of("{'nodeSelector':{'gpu':'a100'},'tolerations':[{'key':'nvidia.com/gpu','operator':"
                      "'Exists'}],'imagePullSecrets':[{'name':'mine'}],'securityContext':{'fsGroup':7,"
                      "'runAsNonRoot':true,'seccompProfile':{'type':'RuntimeDefault'}}}"));
    json_array_append_new(json_object_get(spec, "volumes"), json_of("{'name':'shm','emptyDir':{'medium':'Memory'}}"));
    json_object_update_new(
        agent, json_of("{'imagePullPolicy':'Always','resources':{'limits':{'nvidia.com/gpu':1,'memory':'8Gi'}}}"));
    json_array_append_new(json_object_get(agent, "env"), json_of("{'name':'NCCL_DEBUG','value':'INFO'}"));
    json_array_append_new(json_object_get(agent, "volumeMounts"), json_of("{'name':'shm','mountPath':'/dev/shm'}"));
    assert_true(json_equal(pod, plain));
    assert_true(json_equal(json_object_get(ps, "spec"), spec));
    json_decref(plain);
    json_decref(pod);
    json_decref(again);
    json_decref(ps);
    edl_templates_clear(&both);
}

/*  The first of a member's limits; "" = it has none. */
static const char *s_limit(const edl_templates_t *templates, elasticdl_type_t type)
{
    static char out[64];
    json_t *pod = s_pod(templates, type);
    const json_t *agent = json_array_get(json_object_get(json_object_get(pod, "spec"), "containers"), 0);
    json_t *limits = json_object_get(json_object_get(agent, "resources"), "limits");
    snprintf(out, sizeof out, "%s", json_object_iter(limits) ? json_object_iter_key(json_object_iter(limits)) : "");
    json_decref(pod);
    return out;
}

#define LIMIT(name) "template: {spec: {containers: [{name: agent, resources: {limits: {" name ": 1}}}]}}\n"

static void test_each_type_its_own(void **state)
{
    (void)state;
    edl_templates_t two;
    assert_ok(s_read(&two,
        TEMPLATE "metadata: {name: worker}\n" LIMIT("card") "---\n" TEMPLATE "metadata: {name: ps}\n" LIMIT("memory")));
    assert_string_equal(s_limit(&two, ELASTICDL_WORKER), "card");
    assert_string_equal(s_limit(&two, ELASTICDL_PS), "memory");
    edl_templates_clear(&two);
    assert_ok(s_read(&two, TEMPLATE "metadata: {name: worker}\n" LIMIT("card")));
    assert_string_equal(s_limit(&two, ELASTICDL_PS), "");
    edl_templates_clear(&two);
}

static void check_refused(const char *text, const char *words)
{
    edl_templates_t out;
    char *whole = tt_sprintf(TEMPLATE "%s", text);
    assert_int_equal(s_read(&out, whole), TT_CONFIG);
    if (!strstr(tt_err_text(), words))
        fail_msg("'%s' and not '%s'", tt_err_text(), words);
    free(whole);
}

#define SPEC(text)  "template:\n  spec:\n    " text "\n"
#define AGENT(text) SPEC("containers: [{name: agent,\n      " text "}]")

static void test_what_is_refused_and_where(void **state)
{
    (void)state;
    edl_templates_t out;
    check_refused("", "f.yaml:1: template: is missing");
    check_refused("template: 5\n", "f.yaml:3: template: expected a mapping");
    check_refused("metadata: {name: 5}\n" SPEC("nodeName: x"), "f.yaml:3: metadata.name: expected a text");
    check_refused(SPEC("nodeSelektor: {}"),
        "f.yaml:5: template.spec.nodeSelektor: PodSpec has no field 'nodeSelektor'; did you mean 'nodeSelector'?");
    check_refused(AGENT("resource: {}"),
        "f.yaml:6: template.spec.containers[0].resource: Container has no field 'resource'; did you mean 'resources'?");
    check_refused(SPEC("restartPolicy: Never"), "f.yaml:5: template.spec.restartPolicy: the master says this itself");
    check_refused(SPEC("volumes: {}"), "f.yaml:5: template.spec.volumes: expected a list");
    check_refused(SPEC("volumes: [5]"), "template.spec.volumes[0].name: expected a text");
    check_refused(
        SPEC("volumes: [{name: x}, {name: token}]"), "template.spec.volumes[1].name: this one is the master's own");
    check_refused(
        SPEC("initContainers: [{name: tutti}]"), "template.spec.initContainers[0].name: this one is the master's own");
    check_refused(SPEC("containers: [{name: main}]"),
        "template.spec.containers[0].name: expected agent: a member has no other container");
    check_refused(SPEC("containers: [5]"), "template.spec.containers[0].name: expected agent");
    check_refused(SPEC("containers: [{name: agent}, {name: side}]"),
        "template.spec.containers[1]: a member has one container, agent");
    check_refused(AGENT("image: x"), "f.yaml:6: template.spec.containers[0].image: the master says this itself");
    check_refused(AGENT("env: [{name: TF_CONFIG, value: x}]"),
        "template.spec.containers[0].env[0].name: this one is the master's own");
    static const char *const same[] = {"/tutti", "/tutti/", "//tutti", "/./tutti/.", "/tutti-token//"};
    for (size_t i = 0; i < TT_COUNT(same); i++) {
        char *text = tt_sprintf(AGENT("volumeMounts: [{name: x, mountPath: %s}]"), same[i]);
        check_refused(text, "template.spec.containers[0].volumeMounts[0].mountPath: this one is the master's own");
        free(text);
    }
    check_refused(AGENT("volumeMounts: [{name: x, mountPath: /data/../tutti}]"),
        "template.spec.containers[0].volumeMounts[0].mountPath: a path here has no '..'");
    check_refused(
        "template: {metadata: {name: x}}\n", "template.metadata.name: only labels and annotations come with a pod");
    check_refused(
        "template: {metadata: {labels: {app: x}}}\n", "template.metadata.labels.app: the master says this itself");
    check_refused("template: {metadata: {labels: 5}}\n", "template.metadata.labels: expected a mapping");
    check_refused("metadata: {name: chief}\ntemplate: {}\n",
        "f.yaml:3: metadata.name: expected worker or ps, or no name for both");
    check_refused("template: {}\n---\n" TEMPLATE "metadata: {name: ps}\ntemplate: {}\n",
        "f.yaml:7: metadata.name: another one has said what these members get");
    assert_int_equal(s_read(&out, "apiVersion: v1\nkind: Pod\n"), TT_CONFIG);
    assert_non_null(strstr(tt_err_text(), "f.yaml:2: kind: expected a PodTemplate of v1"));
    assert_int_equal(s_read(&out, ""), TT_CONFIG);
    assert_non_null(strstr(tt_err_text(), "f.yaml: nothing in it"));
    assert_int_equal(edl_templates_read(&out, "none.yaml"), TT_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_beside_what_the_master_says),
        cmocka_unit_test(test_each_type_its_own),
        cmocka_unit_test(test_what_is_refused_and_where),
    };
    return cmocka_run_group_tests(tests, s_enter, s_leave);
}
