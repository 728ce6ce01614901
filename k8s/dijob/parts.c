#include "k8s/dijob/parts.h"
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"

json_t *parts_main(const json_t *spec, dijob_role_t role, const char *task)
{
    const json_t *containers = json_object_get(spec, "containers");
    json_t *found = parts_named(containers, "name", MAIN_CONTAINER);
    if (!found)
        found = parts_named(containers, "name", role == DIJOB_TASK ? task : dijob_role_label(role));
    if (!found && role == DIJOB_DDP_LEARNER)
        found = parts_named(containers, "name", dijob_role_label(DIJOB_LEARNER));
    if (!found && json_array_size(containers) == 1)
        found = json_array_get(containers, 0);
    return json_is_object(found) ? found : NULL;
}

int parts_port(const json_t *spec, dijob_role_t role, const char *task)
{
    const json_t *main_ = parts_main(spec, role, task);
    const json_t *port = parts_named(json_object_get(main_, "ports"), "name", MAIN_PORT);
    int64_t number = 0;
    bool bad = false;
    return parts_int(port, "containerPort", 1, 65535, &number, &bad) ? (int)number : dijob_role_port(role);
}

/*  limits or requests of a container: how many GPUs. A quantity may be a string or a number. */
static int s_gpus(const json_t *resources, const char *which)
{
    const json_t *value = json_object_get(json_object_get(resources, which), GPU_KEY);
    double number = json_number_value(value);
    if (json_is_string(value) && tt_quantity(&number, json_string_value(value)) != TT_OK)
        number = 0;
    return number >= 1 && number <= 4096 ? (int)number : 0;
}

int parts_gpus(const json_t *spec)
{
    int most = 0;
    size_t i;
    json_t *container;
    json_array_foreach(json_object_get(spec, "containers"), i, container)
    {
        const json_t *resources = json_object_get(container, "resources");
        const int limit = s_gpus(resources, "limits"), request = s_gpus(resources, "requests");
        most = most > limit ? most : limit;
        most = most > request ? most : request;
    }
    return most;
}

/* ---- the job ------------------------------------------------------------------------------------------------------------ */

bool parts_is_tutti(const json_t *job)
{
    return strcmp(parts_text(json_object_get(job, "spec"), "engine", ""), "tutti") == 0;
}

json_t *parts_owner(const json_t *job, bool block)
{
    const json_t *metadata = json_object_get(job, "metadata");
    const char *uid = parts_text(metadata, "uid", "");
    json_t *controller = parts_controller(metadata);
    if (!*uid && controller) /* the job is a file: what owns it owns its pods */
        return json_deep_copy(controller);
    return parts_owner_of(parts_text(job, "apiVersion", DIJOB_GROUP "/v1alpha1"), parts_text(job, "kind", "DIJob"),
        parts_job_name(job), uid, block);
}
