/*  The file of accelerators: what is read of it, what is refused with which words, and what a container gets. */
#include "k8s/front/accelerators.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/mem.h"
#include "k8s/api/dump.h"
#include "tests/k8s/json.h"
#include "tests/test.h"

/*  Of a file f.yaml in a folder of its own, which is where we are. */
static tt_status_t s_parse(json_t **out, const char *text)
{
    FILE *file = fopen("f.yaml", "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    return accelerators_read(out, "f.yaml");
}

static int s_enter(void **state)
{
    static char folder[] = "/tmp/tt-accelerators-XXXXXX";
    *state = folder;
    return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int s_leave(void **state)
{
    (void)unlink("f.yaml");
    return chdir("/") == 0 && rmdir(*state) == 0 ? 0 : -1;
}

static json_t *s_read(const char *text)
{
    json_t *all = NULL;
    assert_ok(s_parse(&all, text));
    return all;
}

#define GPU                                                                                              \
    "accelerators:\n"                                                                                    \
    "  alpha.kubernetes.io/nvidia-gpu:\n"                                                                \
    "    volumes:\n"                                                                                     \
    "    - {name: lib, mountPath: /usr/local/nvidia/lib64, hostPath: /home/kubernetes/bin/nvidia/lib}\n" \
    "    - {name: bin, mountPath: /usr/local/bin/nvidia, hostPath: /home/kubernetes/bin/nvidia/bin}\n"   \
    "    envVars: [{name: LD_LIBRARY_PATH, value: /usr/local/nvidia/lib64}, {name: COUNT, value: 2}]\n"  \
    "  example.com/tpu:\n"                                                                               \
    "    volumes: [{name: lib, mountPath: /tpu, hostPath: /home/kubernetes/bin/nvidia/lib}]\n"

static void test_the_file_as_v010_had_it(void **state)
{
    (void)state;
    assert_json(s_read("grpcServerFilePath: /opt/mlkube/x.py\n" GPU),
        "{'alpha.kubernetes.io/nvidia-gpu':{'volumes':[{'name':'lib','hostPath':'/home/kubernetes/bin/nvidia/lib',"
        "'mountPath':'/usr/local/nvidia/lib64'},{'name':'bin','hostPath':'/home/kubernetes/bin/nvidia/bin','mountPath':"
        "'/usr/local/bin/nvidia'}],'envVars':[{'name':'LD_LIBRARY_PATH','value':'/usr/local/nvidia/lib64'},{'name':"
        "'COUNT','value':'2'}]},'example.com/tpu':{'volumes':[{'name':'lib','hostPath':"
        "'/home/kubernetes/bin/nvidia/lib','mountPath':'/tpu'}],'envVars':[]}}");
    assert_json(s_read(""), "{}");
    assert_json(s_read("grpcServerFilePath: /x\naccelerators:\n"), "{}");
    assert_json(s_read("accelerators: {a: , b: {volumes: [], envVars: [{name: X}, {name: V, value: yes}, {name: Z, "
                       "value: 0.1}]}}"),
        "{'b':{'volumes':[],'envVars':[{'name':'X','value':''},{'name':'V','value':'true'},{'name':'Z','value':'0.1'}]}"
        "}");
}

#define VOLUME(text) "accelerators:\n  a:\n    volumes:\n    - {" text "}\n"
#define ENV(text)    "accelerators:\n  a:\n    envVars: [" text "]\n"

static void test_what_is_refused_and_where(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"accelerators: [", "f.yaml:2: did not find expected node content"},
        {"- a", "f.yaml:1: a document must be a mapping"},
        {"accelerator: {}", "f.yaml:1: 'accelerator' is no key here; there are: accelerators, grpcServerFilePath"},
        {"accelerators: {}\naccelerators: {}", "f.yaml:2: key 'accelerators' is there twice"},
        {"accelerators: [a]", "f.yaml:1: accelerators must be a mapping"},
        {"accelerators:\n  'a b': {}", "f.yaml:2: 'a b' is no name of a resource; expected one like nvidia.com/gpu"},
        {"accelerators:\n  /gpu: {}", "'/gpu' is no name"},
        {"accelerators:\n  a/b/c: {}", "'a/b/c' is no name"},
        {"accelerators:\n  ? [a]\n  : {}", "f.yaml:2: a key must be text"},
        {"accelerators:\n  a: {}\n  a: {}", "f.yaml:3: key 'a' is there twice"},
        {"accelerators:\n  a: [x]", "f.yaml:2: a: expected a mapping with volumes and envVars"},
        {"accelerators:\n  a:\n    env: []", "f.yaml:3: 'env' is no key here; there are: volumes, envVars"},
        {"accelerators:\n  a:\n    volumes: {}", "f.yaml:3: volumes must be a list"},
        {"accelerators:\n  a:\n    volumes:\n    - lib", "f.yaml:4: expected a mapping with name and hostPath"},
        {VOLUME("name: lib, hostPath: /a"), "f.yaml:4: mountPath is missing: expected a path of the container"},
        {VOLUME("hostPath: /a, mountPath: /b"), "f.yaml:4: name is missing: expected at most 63"},
        {VOLUME("name: Lib, hostPath: /a, mountPath: /b"), "f.yaml:4: name 'Lib': expected at most 63 of a-z"},
        {VOLUME("name: lib, hostPath: a, mountPath: /b"), "f.yaml:4: hostPath 'a': expected a path of the node"},
        {VOLUME("name: lib, hostPath: /a/../b, mountPath: /b"), "hostPath '/a/../b': expected"},
        {VOLUME("name: lib, hostPath: /a/.., mountPath: /b"), "hostPath '/a/..': expected"},
        {VOLUME("name: lib, hostPath: /a, mountPath: '/b:c'"), "mountPath '/b:c': expected"},
        {VOLUME("name: lib, hostPath: [a], mountPath: /b"), "f.yaml:4: hostPath must be a text"},
        {VOLUME("name: lib, hostPath: /a, mountPath: /b, readOnly: true"),
            "'readOnly' is no key here; there are: name, hostPath, mountPath"},
        {VOLUME("name: lib, hostPath: /a, mountPath: /b}\n    - {name: lib, hostPath: /a, mountPath: /c"),
            "f.yaml:5: volumes: another one of the resource has this name"},
        {VOLUME("name: lib, hostPath: /a, mountPath: /b}\n    - {name: bin, hostPath: /c, mountPath: /b"),
            "f.yaml:5: volumes: another one of the resource has this mountPath"},
        {ENV("{value: x}"), "f.yaml:3: name is missing: expected the name of a variable"},
        {ENV("{name: 'A=B'}"), "name 'A=B': expected"},
        {ENV("{name: TF_CONFIG, value: x}"), "TF_CONFIG is the operator's"},
        {ENV("{name: A}, {name: A}"), "f.yaml:3: envVars: another one of the resource has this name"},
    };
    for (size_t i = 0; i < TT_COUNT(cases); i++) {
        json_t *all = NULL;
        assert_int_equal(s_parse(&all, cases[i].text), TT_CONFIG);
        assert_null(all);
        if (!strstr(tt_err_text(), cases[i].words))
            fail_msg("%s: not '%s' but '%s'", cases[i].text, cases[i].words, tt_err_text());
    }
}

/*  A container may ask for two resources, and a pod has one volume of a name. */
static void test_two_resources_agree_about_a_volume(void **state)
{
    (void)state;
    json_t *all = NULL;
    assert_int_equal(s_parse(&all, "accelerators:\n  a: {volumes: [{name: lib, hostPath: /a, mountPath: /b}]}\n"
                                   "  b: {volumes: [{name: lib, hostPath: /c, mountPath: /b}]}\n"),
        TT_CONFIG);
    assert_non_null(strstr(tt_err_text(), "f.yaml:3: volume lib has another hostPath with a: give it another name"));
}

static void test_there_are_limits(void **state)
{
    (void)state;
    char *text = tt_strdup("accelerators:\n"), *more;
    for (int i = 0; i <= 64; i++) {
        more = tt_sprintf("%s  r%d: {}\n", text, i);
        free(text);
        text = more;
    }
    json_t *all = NULL;
    assert_int_equal(s_parse(&all, text), TT_CONFIG);
    assert_non_null(strstr(tt_err_text(), "f.yaml:66: expected at most 64 resources"));
    free(text);
    text = tt_sprintf(ENV("{name: A, value: %5000d}"), 7);
    assert_int_equal(s_parse(&all, text), TT_OK); /* blanks before a plain text are none of it */
    json_decref(all);
    all = NULL;
    free(text);
    text = tt_sprintf(ENV("{name: A, value: '%5000d'}"), 7);
    assert_int_equal(s_parse(&all, text), TT_CONFIG);
    assert_non_null(strstr(tt_err_text(), "f.yaml:3: value: expected at most 4096 bytes"));
    free(text);
    text = tt_strdup("{name: A0}");
    for (int i = 1; i <= 64; i++) {
        more = tt_sprintf("%s, {name: A%d}", text, i);
        free(text);
        text = more;
    }
    more = tt_sprintf(ENV("%s"), text);
    assert_int_equal(s_parse(&all, more), TT_CONFIG);
    assert_non_null(strstr(tt_err_text(), "f.yaml:3: envVars: expected at most 64"));
    free(more);
    free(text);
}

static void test_a_file_that_is_not_there(void **state)
{
    (void)state;
    json_t *all = NULL;
    assert_int_equal(accelerators_read(&all, "/proc/nowhere.yaml"), TT_NOT_FOUND);
    assert_non_null(strstr(tt_err_text(), "/proc/nowhere.yaml"));
}

/* ---- a container --------------------------------------------------------------------------------------------------------- */

#define POD(volumes, container) "{'spec':{" volumes "'containers':[{'name':'tensorflow'" container "}]}}"

static tt_status_t s_dress(json_t *pod)
{
    json_t *all = s_read(GPU), *containers = json_object_get(json_object_get(pod, "spec"), "containers");
    const tt_status_t status = accelerators_dress(all, pod, json_array_get(containers, 0));
    json_decref(all);
    return status;
}

static void s_assert_dressed(const char *pod, const char *want)
{
    json_t *made = json_of(pod);
    assert_ok(s_dress(made));
    assert_json(made, want);
}

#define TPU_VOLUME "{'name':'lib','hostPath':{'path':'/home/kubernetes/bin/nvidia/lib'}}"
#define TPU_MOUNT  "{'name':'lib','mountPath':'/tpu'}"

static void test_a_container_gets_what_it_asks_for(void **state)
{
    (void)state;
    s_assert_dressed(POD("", ",'resources':{'limits':{'example.com/tpu':1}}"),
        "{'spec':{'volumes':[" TPU_VOLUME "],'containers':[{'name':'tensorflow','resources':{'limits':{"
        "'example.com/tpu':1}},'volumeMounts':[" TPU_MOUNT "]}]}}");
    s_assert_dressed(
        POD("'volumes':[{'name':'own','emptyDir':{}}],",
            ",'env':[{'name':'COUNT','value':'9'},{'name':'X','value':'1'}],'resources':{'requests':{"
            "'alpha.kubernetes.io/nvidia-gpu':'1'},'limits':{'example.com/tpu':1,'cpu':2}},'volumeMounts':[{'name':"
            "'own','mountPath':'/own'}]"),
        "{'spec':{'volumes':[{'name':'own','emptyDir':{}}," TPU_VOLUME ",{'name':'bin','hostPath':{'path':"
        "'/home/kubernetes/bin/nvidia/bin'}}],'containers':[{'name':'tensorflow','env':[{'name':'X','value':'1'},{"
        "'name':'LD_LIBRARY_PATH','value':'/usr/local/nvidia/lib64'},{'name':'COUNT','value':'2'}],'resources':{"
        "'requests':{'alpha.kubernetes.io/nvidia-gpu':'1'},'limits':{'example.com/tpu':1,'cpu':2}},'volumeMounts':[{"
        "'name':'own','mountPath':'/own'},{'name':'lib','mountPath':'/usr/local/nvidia/lib64'},{'name':'bin',"
        "'mountPath':'/usr/local/bin/nvidia'}," TPU_MOUNT "]}]}}");
}

static void test_a_container_that_asks_for_none_stays_as_it_is(void **state)
{
    (void)state;
    static const char *const pods[] = {POD("", ""), POD("", ",'resources':{'limits':{'cpu':1}}"),
        POD("", ",'resources':{'limits':['example.com/tpu'],'requests':7}"), POD("", ",'resources':7")};
    for (size_t i = 0; i < TT_COUNT(pods); i++)
        s_assert_dressed(pods[i], pods[i]);
    json_t *pod = json_of(pods[0]);
    assert_ok(
        accelerators_dress(NULL, pod, json_array_get(json_object_get(json_object_get(pod, "spec"), "containers"), 0)));
    assert_json(pod, pods[0]);
}

/*  A template that mounts by itself at that path, or one that was written back with all of it. */
static void test_what_the_template_mounts_stays(void **state)
{
    (void)state;
    static const char *const pods[] = {
        POD("'volumes':[{'name':'mine','emptyDir':{}}],",
            ",'resources':{'limits':{'example.com/tpu':1}},'volumeMounts':[{'name':'mine','mountPath':'/tpu'}]"),
        POD("'volumes':[" TPU_VOLUME "],",
            ",'resources':{'limits':{'example.com/tpu':1}},'volumeMounts':[" TPU_MOUNT "]")};
    for (size_t i = 0; i < TT_COUNT(pods); i++)
        s_assert_dressed(pods[i], pods[i]);
    s_assert_dressed(POD("'volumes':[" TPU_VOLUME "],", ",'resources':{'limits':{'example.com/tpu':1}}"),
        POD("'volumes':[" TPU_VOLUME "],",
            ",'resources':{'limits':{'example.com/tpu':1}},'volumeMounts':[" TPU_MOUNT "]"));
}

static void test_a_name_that_the_template_has_taken(void **state)
{
    (void)state;
    json_t *pod =
        json_of(POD("'volumes':[{'name':'lib','emptyDir':{}}],", ",'resources':{'limits':{'example.com/tpu':1}}"));
    assert_int_equal(s_dress(pod), TT_INVALID);
    assert_non_null(strstr(tt_err_text(), "a volume lib that is not hostPath /home/kubernetes/bin/nvidia/lib"));
    json_decref(pod);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_file_as_v010_had_it),
        cmocka_unit_test(test_what_is_refused_and_where),
        cmocka_unit_test(test_two_resources_agree_about_a_volume),
        cmocka_unit_test(test_there_are_limits),
        cmocka_unit_test(test_a_file_that_is_not_there),
        cmocka_unit_test(test_a_container_gets_what_it_asks_for),
        cmocka_unit_test(test_a_container_that_asks_for_none_stays_as_it_is),
        cmocka_unit_test(test_what_the_template_mounts_stays),
        cmocka_unit_test(test_a_name_that_the_template_has_taken),
    };
    return cmocka_run_group_tests(tests, s_enter, s_leave);
}
