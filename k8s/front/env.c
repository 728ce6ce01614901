/*  env - variables that every container of a pod gets. Ours come last and win: kubelets let a later one replace an earlier. */
#include <stdio.h>
#include <string.h>
#include "k8s/front/object.h"

static void s_drop(json_t *env, const char *name)
{
    for (size_t i = json_array_size(env); i-- > 0;) {
        const char *text = parts_text(json_array_get(env, i), "name", NULL);
        if (text && strcmp(text, name) == 0)
            json_array_remove(env, i);
    }
}

void parts_env_of(json_t *container, const char *name, const char *value)
{
    json_t *env = parts_member(container, "env", json_array());
    s_drop(env, name);
    json_array_append_new(env, json_pack("{s:s, s:s}", "name", name, "value", value));
}

static void s_all(json_t *containers, const char *name, const char *value)
{
    size_t i;
    json_t *container;
    json_array_foreach(containers, i, container)
    {
        parts_env_of(container, name, value);
    }
}

void parts_env(json_t *spec, const char *name, const char *value)
{
    s_all(json_object_get(spec, "containers"), name, value);
    s_all(json_object_get(spec, "initContainers"), name, value);
}

void parts_env_int(json_t *spec, const char *name, int64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)value);
    parts_env(spec, name, text);
}
