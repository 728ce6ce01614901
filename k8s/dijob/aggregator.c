/*  aggregator - the template of an aggregator for jobs that bring none: that of an AggregatorConfig, else one made of the
 *  learner's: its image, variables and mounts, the aggregator's program, no GPU. */
#include "k8s/dijob/parts.h"

/*  What a container may keep when it runs another program: nothing that speaks of the first one's ports, probes or size. */
static const char *const s_copied[] = {
    "image", "imagePullPolicy", "env", "envFrom", "volumeMounts", "workingDir", "securityContext"};

static json_t *s_container(const json_t *like, bool tutti)
{
    json_t *container = json_pack("{s:s}", "name", MAIN_CONTAINER);
    for (size_t i = 0; i < TT_COUNT(s_copied); i++) {
        const json_t *value = json_object_get(like, s_copied[i]);
        if (value)
            json_object_set_new(container, s_copied[i], json_deep_copy(value));
    }
    json_object_set_new(container, "command",
        tutti ? json_pack("[s, s]", "tutti", "aggregator")
              : json_pack("[s, s, s, s, s]", "ding", "-m", "dist", "--module", "learner_aggregator"));
    return container;
}

static json_t *s_built_in(const json_t *job, const json_t *like)
{
    const json_t *spec = json_object_get(like, "spec");
    const json_t *main_ = parts_main(spec, DIJOB_LEARNER, NULL);
    json_t *copy = json_deep_copy(like), *new_spec = json_object_get(copy, "spec");
    json_object_set_new(new_spec, "containers", json_pack("[o]", s_container(main_, parts_is_tutti(job))));
    json_object_del(new_spec, "initContainers");
    return copy;
}

tt_status_t parts_aggregator(json_t **out, const json_t *job, const json_t *agconfig)
{
    const json_t *spec = json_object_get(agconfig, "spec");
    json_t *given = parts_object(json_object_get(spec, "aggregator"), "template");
    const json_t *learner = parts_object(json_object_get(json_object_get(job, "spec"), "learner"), "template");
    if (given)
        *out = json_incref(given);
    else if (parts_main(json_object_get(learner, "spec"), DIJOB_LEARNER, NULL))
        *out = s_built_in(job, learner);
    else
        return tt_err(TT_NOT_FOUND,
            "DIJob %s: an aggregator is made of spec.aggregator, an AggregatorConfig, or the learner's template; it "
            "has none",
            parts_job_name(job));
    return TT_OK;
}
