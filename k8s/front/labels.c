/*  labels - the labels that Kubernetes recommends, by which tools of any kind group what belongs together. Nothing selects by
 *  them: what selects has labels of its own, as DI-orchestrator's. */
#include <string.h>
#include "k8s/front/object.h"

#define PREFIX "app.kubernetes.io/"

enum { VALUE_MAX_CHARS = 63 };

/*  What a template says stays. A name that another operator let in may be too long for a label's value. */
static void s_put(json_t *labels, const char *key, const char *value)
{
    if (*value && strlen(value) <= VALUE_MAX_CHARS && !json_object_get(labels, key))
        json_object_set_new(labels, key, json_string(value));
}

void parts_recommend(json_t *labels, const char *kind, const char *job, const char *component)
{
    s_put(labels, PREFIX "name", kind);
    s_put(labels, PREFIX "instance", job);
    s_put(labels, PREFIX "component", component);
    s_put(labels, PREFIX "version", TT_VERSION); /* of who made it: what is there already keeps its own */
    s_put(labels, PREFIX "part-of", "tutti");
    s_put(labels, PREFIX "managed-by", "tutti-operator");
}
