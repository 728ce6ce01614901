/*  Manifests for this machine: what is refused, in which words, and what is said to mean nothing. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "common/base/mem.h"
#include "local/local.h"
#include "tests/test.h"

static char s_said[1024];

static void s_say(void *ctx, const char *text)
{
    (void)ctx;
    snprintf(s_said, sizeof s_said, "%s", text);
}

static tt_status_t s_read(const char *text, local_manifest_t *out)
{
    char path[] = "/tmp/tutti-read-XXXXXX";
    FILE *file = fdopen(mkstemp(path), "w");
    fputs(text, file);
    fclose(file);
    s_said[0] = '\0';
    const tt_status_t status = local_read(out, path, s_say, NULL);
    unlink(path);
    return status;
}

#define HEAD "apiVersion: diengine.opendilab.org/v1alpha1\nkind: DIJob\nmetadata: {name: a}\nspec:\n"
#define COORDINATOR(more) \
    "  coordinator:\n    template:\n      spec:\n        containers:\n        - {name: x, " more "}\n"

static void s_assert_wrong(const char *text, const char *want)
{
    local_manifest_t manifest = {0};
    assert_int_equal(s_read(text, &manifest), TT_CONFIG);
    assert_null(manifest.job);
    const char *words = strchr(tt_err_text(), ':'); /* behind the file's name */
    assert_non_null(words);
    assert_string_equal(words + 1, want);
}

static void test_what_is_wrong_is_said_with_its_line(void **state)
{
    (void)state;
    s_assert_wrong(HEAD COORDINATOR("env: [{name: A, value: 1}]"),
        "9: spec.coordinator.template.spec.containers[0].env[0].value: expected text: put it in quotes");
    s_assert_wrong(HEAD COORDINATOR("args: [1]"),
        "9: spec.coordinator.template.spec.containers[0].args[0]: expected text: put it in quotes");
    s_assert_wrong(HEAD COORDINATOR("volumeMounts: [{name: v, mountPath: /v}]"),
        "9: spec.coordinator.template.spec.containers[0].volumeMounts[0]: there is no volume 'v'");
    s_assert_wrong(HEAD COORDINATOR("resources: {limits: {cpu: many}}"),
        "9: spec.coordinator.template.spec.containers[0].resources.limits.cpu: expected a quantity, such as 2, 500m or "
        "1.5Gi");
    s_assert_wrong(HEAD "  cleanPodPolicy: Sometimes\n" COORDINATOR("image: y"),
        "5: Invalid CleanPodPolicy Sometimes, expected in [None, Running, All]");
    s_assert_wrong(HEAD "  collector: {}\n" COORDINATOR("image: y"), "5: expected spec.collector.template");
    s_assert_wrong(HEAD "  group: x\n", "5: expected spec.coordinator, or spec.tasks");
    s_assert_wrong("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n",
        "2: kind 'Deployment' means nothing on this machine: DIJob, TFJob, AggregatorConfig, ConfigMap and Secret do");
    s_assert_wrong(HEAD COORDINATOR("comand: [a]"),
        "9: spec.coordinator.template.spec.containers[0].comand: Container has no field 'comand'; did you mean "
        "'command'?");
    s_assert_wrong(
        HEAD COORDINATOR("image: y") "---\n" HEAD COORDINATOR("image: y"), "12: a second DIJob; run one file for each");
    s_assert_wrong("apiVersion: v1\nkind: Secret\n", " no DIJob or TFJob in it");
    s_assert_wrong("kind: DIJob\napiVersion: diengine.opendilab.org/v9\nmetadata: {name: a}\n",
        "2: apiVersion: there is no DIJob of 'diengine.opendilab.org/v9': expected diengine.opendilab.org/v1alpha1 or "
        "diengine.opendilab.org/v2alpha1");
    s_assert_wrong("apiVersion: kubeflow.org/v2\nkind: TFJob\nmetadata: {name: a}\n",
        "1: apiVersion: there is no TFJob of 'kubeflow.org/v2': expected kubeflow.org/v1 or kubeflow.org/v1alpha1");
    s_assert_wrong(HEAD COORDINATOR("image: y") "---\nkind: AggregatorConfig\napiVersion: x\n",
        "12: apiVersion: there is no AggregatorConfig of 'x': expected diengine.opendilab.org/v1alpha1 or "
        "diengine.opendilab.org/v2alpha1");
    s_assert_wrong("apiVersion: v2\nkind: ConfigMap\n", "1: apiVersion: there is no ConfigMap of 'v2': expected v1");
    s_assert_wrong("apiVersion: diengine.opendilab.org/v1alpha1\nkind: DIJob\nmetadata: {name: n}\n",
        "3: metadata.name: expected text: put it in quotes");
    s_assert_wrong("apiVersion: diengine.opendilab.org/v1alpha1\nkind: DIJob\nmetadata:\n  generateName: a-\n",
        "4: metadata.generateName: only a cluster makes a name of it: write metadata.name");
}

#define OLD_HEAD   "apiVersion: kubeflow.org/v1alpha1\nkind: TFJob\nmetadata: {name: a}\nspec:\n  replicaSpecs:\n"
#define OLD_MASTER "  - template: {spec: {containers: [{name: tensorflow, image: x, command: [a]}]}}\n"

static void test_a_tfjob_of_v1alpha1(void **state)
{
    (void)state;
    local_manifest_t manifest = {0};
    s_assert_wrong(OLD_HEAD OLD_MASTER "  - {tfReplicaType: PS, tfport: 1}\n",
        "7: spec.replicaSpecs[1].tfport: TFJobReplicaSpecs has no field 'tfport'; did you mean 'tfPort'?");
    s_assert_wrong(OLD_HEAD OLD_MASTER "  - {tfReplicaType: WORKER}\n",
        "7: expected spec.replicaSpecs[1].template: only a PS has one where nothing is said");
    s_assert_wrong(OLD_HEAD OLD_MASTER "  - tfReplicaType: PS\n    tfPort: 0\n",
        "8: spec.replicaSpecs[1].tfPort: expected a number from 1 to 65535");
    assert_ok(s_read(
        "apiVersion: tensorflow.org/v1alpha1\nkind: TfJob\nmetadata: {name: a}\nspec:\n  replicaSpecs:\n" OLD_MASTER,
        &manifest));
    assert_string_equal(manifest.front->kind, "TFJob");
    local_manifest_clear(&manifest);
}

static void test_names_that_leave_the_run_are_refused(void **state)
{
    (void)state;
    s_assert_wrong(HEAD "  volumes: [{name: ../../x, emptyDir: {}}]\n" COORDINATOR("image: y"),
        "5: spec.volumes[0].name: '../../x': expected at most 63 lower case letters, digits and dashes, no dash at an "
        "end");
    s_assert_wrong(HEAD
        "  volumes: [{name: v, configMap: {name: c, items: [{key: a, path: a}, {key: b}]}}]\n" COORDINATOR("image: y"),
        "5: spec.volumes[0].configMap.items[1].path: '': expected the path of a file in the volume");
    s_assert_wrong(HEAD
        "  volumes: [{name: v, secret: {secretName: c, items: [{key: a, path: a/../../b}]}}]\n" COORDINATOR("image: y"),
        "5: spec.volumes[0].secret.items[0].path: 'a/../../b': expected the path of a file in the volume");
    s_assert_wrong(HEAD
        "  volumes: [{name: v, configMap: {name: c, items: [{key: b, path: /x}]}}]\n" COORDINATOR("image: y"),
        "5: spec.volumes[0].configMap.items[0].path: '/x': expected the path of a file in the volume");
    s_assert_wrong(HEAD "  volumes: [{name: v, secret: {secretName: c, items: [{path: a}]}}]\n" COORDINATOR("image: y"),
        "5: spec.volumes[0].secret.items[0].key: expected the name of a key");
    s_assert_wrong(HEAD "  volumes: [{name: v, persistentVolumeClaim: {claimName: ../c}}]\n" COORDINATOR("image: y"),
        "5: spec.volumes[0].persistentVolumeClaim.claimName: '../c': expected lower case letters, digits, dashes and "
        "dots, none of these at an end");
    s_assert_wrong(HEAD COORDINATOR("image: y") "        volumes: [{name: ., emptyDir: {}}]\n",
        "10: spec.coordinator.template.spec.volumes[0].name: '.': expected at most 63 lower case letters, digits and "
        "dashes, no dash at an end");
    s_assert_wrong(HEAD "  coordinator: {template: {spec: {containers: [{name: a/../../b}]}}}\n",
        "5: spec.coordinator.template.spec.containers[0].name: 'a/../../b': expected at most 63 lower case letters, "
        "digits and dashes, no dash at an end");
}

static void test_what_means_nothing_is_said(void **state)
{
    (void)state;
    local_manifest_t manifest = {0};
    assert_ok(s_read(HEAD "  priorityClassName: ''\n" COORDINATOR(
                         "image: y, command: [sh], livenessProbe: {}") "        nodeSelector: {a: b}\n---\nkind: "
                                                                       "AggregatorConfig\napiVersion: "
                                                                       "diengine.opendilab.org/v1alpha1\n---\nkind: "
                                                                       "Secret\napiVersion: v1\n",
        &manifest));
    assert_string_equal(s_said, "without meaning on this machine: nodeSelector, image, livenessProbe");
    assert_non_null(manifest.config);
    assert_int_equal(json_array_size(manifest.objects), 1);
    local_manifest_clear(&manifest);
    assert_ok(s_read(HEAD COORDINATOR("command: [sh]"), &manifest));
    assert_string_equal(s_said, "");
    local_manifest_clear(&manifest);
}

static void test_what_a_cluster_does_with_the_object_is_said_and_left_out(void **state)
{
    (void)state;
    local_manifest_t manifest = {0};
    assert_ok(s_read(
        HEAD "  activeDeadlineSeconds: 9\n  ttlSecondsAfterFinished: 0\n" COORDINATOR("command: [sh]"), &manifest));
    assert_string_equal(
        s_said, "ttlSecondsAfterFinished has no effect on this machine: the run's files stay till 'tutti rm'");
    const json_t *spec = json_object_get(manifest.job, "spec");
    assert_int_equal(json_integer_value(json_object_get(spec, "activeDeadlineSeconds")), 9);
    assert_null(json_object_get(spec, "ttlSecondsAfterFinished"));
    local_manifest_clear(&manifest);
    assert_ok(s_read(HEAD "  suspend: true\n" COORDINATOR("command: [sh]"), &manifest));
    assert_string_equal(s_said, "suspend has no effect on this machine: the job runs");
    assert_null(json_object_get(json_object_get(manifest.job, "spec"), "suspend"));
    local_manifest_clear(&manifest);
    assert_ok(s_read(HEAD "  suspend: false\n" COORDINATOR("command: [sh]"), &manifest));
    assert_string_equal(s_said, "");
    local_manifest_clear(&manifest);
    s_assert_wrong(HEAD "  suspend: 1\n" COORDINATOR("command: [sh]"), "5: spec.suspend: expected true or false");
    s_assert_wrong(HEAD "  activeDeadlineSeconds: 0\n" COORDINATOR("command: [sh]"),
        "5: spec.activeDeadlineSeconds: expected a number from 1 to 2147483647");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_wrong_is_said_with_its_line),
        cmocka_unit_test(test_a_tfjob_of_v1alpha1),
        cmocka_unit_test(test_names_that_leave_the_run_are_refused),
        cmocka_unit_test(test_what_means_nothing_is_said),
        cmocka_unit_test(test_what_a_cluster_does_with_the_object_is_said_and_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
