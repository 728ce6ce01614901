/*  template - the pod that is made of a template. What we do not know of a template stays as it is. */
#include <stdio.h>
#include "common/base/mem.h"
#include "k8s/front/object.h"

static void s_put(json_t *pod, const char *where, const char *key, const char *value)
{
    json_t *metadata = json_object_get(pod, "metadata"), *map = json_object_get(metadata, where);
    if (!map)
        json_object_set_new(metadata, where, map = json_object());
    json_object_set_new(map, key, json_string(value));
}

json_t *parts_labels(json_t *pod)
{
    return json_object_get(json_object_get(pod, "metadata"), "labels");
}

void parts_label(json_t *pod, const char *key, const char *value)
{
    s_put(pod, "labels", key, value);
}

void parts_annotate(json_t *pod, const char *key, const char *value)
{
    s_put(pod, "annotations", key, value);
}

void parts_annotate_int(json_t *pod, const char *key, int64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)value);
    parts_annotate(pod, key, text);
}

/*  A copy of an object; an empty one where there is none. */
static json_t *s_copy(const json_t *object)
{
    return json_is_object(object) ? json_deep_copy(object) : json_object();
}

json_t *parts_pod_from(const json_t *job, const json_t *template_, const char *name)
{
    const json_t *metadata = json_object_get(template_, "metadata");
    json_t *spec = s_copy(json_object_get(template_, "spec"));
    parts_last_words(json_object_get(spec, "containers"));
    parts_last_words(json_object_get(spec, "initContainers"));
    return json_pack("{s:s, s:s, s:{s:s, s:s, s:o, s:o}, s:o}", "apiVersion", "v1", "kind", "Pod", "metadata", "name",
        name, "namespace", parts_job_namespace(job), "labels", s_copy(json_object_get(metadata, "labels")),
        "annotations", s_copy(json_object_get(metadata, "annotations")), "spec", spec);
}

void parts_add_port(json_t *container, const char *name, int port)
{
    json_t *ports = parts_member(container, "ports", json_array());
    if (!parts_named(ports, "name", name))
        json_array_append_new(ports, json_pack("{s:s, s:i}", "name", name, "containerPort", port));
}

void parts_set_port(json_t *container, const char *name, int port)
{
    json_t *own = parts_named(json_object_get(container, "ports"), "name", name);
    if (own)
        json_object_set_new(own, "containerPort", json_integer(port));
}
