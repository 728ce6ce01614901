/*  owned - what a job owns: the reference that says so, and a headless service. */
#include "common/base/mem.h"
#include "k8s/front/object.h"

json_t *parts_owner_of(const char *api_version, const char *kind, const char *name, const char *uid, bool block)
{
    json_t *owner = json_pack("{s:s, s:s, s:s, s:s, s:b}", "apiVersion", api_version, "kind", kind, "name", name, "uid",
        uid, "controller", 1);
    if (block)
        json_object_set_new(owner, "blockOwnerDeletion", json_true());
    return owner;
}

/*  Found before it is ready: processes that start wait for each other. */
json_t *parts_service(
    const char *namespace_, const char *name, json_t *labels, json_t *owner, json_t *selector, json_t *ports)
{
    return json_pack("{s:s, s:s, s:{s:s, s:s, s:o, s:[o]}, s:{s:s, s:b, s:o, s:o}}", "apiVersion", "v1", "kind",
        "Service", "metadata", "name", name, "namespace", *namespace_ ? namespace_ : "default", "labels", labels,
        "ownerReferences", owner, "spec", "clusterIP", "None", "publishNotReadyAddresses", 1, "selector", selector,
        "ports", ports);
}
