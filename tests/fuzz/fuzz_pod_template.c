/*  Any text as a pod template of ElasticDL's members: what is refused has words; with what is taken a set is still the master's. */
#include <stdlib.h>
#include <string.h>
#include "elasticdl/objects.h"
#include "k8s/front/object.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void s_check(const edl_templates_t *templates, elasticdl_type_t type)
{
    const edl_objects_t objects = {.namespace_ = "n", .agent_image = "a", .templates = *templates};
    const elasticdl_request_t request = {
        .strategy = ELASTICDL_PARAMETER_SERVER, .ps = 1, .workers = 1, .image = "i", .name = "job"};
    static const edl_task_limits_t limits = {1, 1, 1, 1, 1};
    edl_task_t *task;
    edl_task_new(&task, 7, &request, &limits, 0);
    json_t *set = edl_set(&objects, task, type), *spec = json_object_get(set, "spec");
    const json_t *pod = json_object_get(spec, "template"),
                 *labels = json_object_get(json_object_get(pod, "metadata"), "labels");
    const json_t *containers = json_object_get(json_object_get(pod, "spec"), "containers");
    char *text = json_dumps(set, JSON_COMPACT);
    if (!text || json_array_size(containers) != 1 || !parts_is(json_array_get(containers, 0), "image", "i") ||
        !parts_is(labels, "type", elasticdl_type_name(type)))
        abort();
    free(text);
    json_decref(set);
    edl_task_destroy(&task);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    edl_templates_t templates;
    if (edl_templates_parse(&templates, (const char *)data, size, "fuzz") != TT_OK) {
        if (!*tt_err_text())
            abort();
        return 0;
    }
    s_check(&templates, ELASTICDL_PS);
    s_check(&templates, ELASTICDL_WORKER);
    edl_templates_clear(&templates);
    return 0;
}
