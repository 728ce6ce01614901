/*  build - a type's template -> the pod of a place; the headless service by which it is found. */
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "k8s/front/object.h"
#include "k8s/tfjob/tfjob.h"

/*  What services select by: labels of that generation. */
static json_t *s_selector(const tfjob_t *job, const tfjob_place_t *place, tfjob_labels_t generation)
{
    const tfjob_generation_t *by = &tfjob_generations[generation];
    char *index = tt_sprintf("%d", place->index);
    json_t *labels = json_pack("{s:s, s:s, s:s, s:s}", by->key, by->value, by->job, job->meta.name, by->type,
        tfjob_type_label(place->type), by->index, index);
    free(index);
    return labels;
}

static bool s_is_chief(const tfjob_t *job, const tfjob_place_t *place)
{
    return place->type == tfjob_decider(job) && place->index == job->old.chief_index;
}

static void s_add(json_t *labels, const tfjob_t *job, const tfjob_place_t *place, tfjob_labels_t generation)
{
    json_t *own = s_selector(job, place, generation);
    json_object_update(labels, own);
    json_decref(own);
    if (s_is_chief(job, place))
        json_object_set_new(
            labels, generation == TFJOB_LABELS_TODAY ? TFJOB_TODAY "job-role" : "job-role", json_string("master"));
}

/*  A service of tf-operator's selects by all labels that it had for a place. */
static void s_between(json_t *labels, const tfjob_t *job, const tfjob_place_t *place)
{
    s_add(labels, job, place, TFJOB_LABELS_BETWEEN);
    json_object_set_new(labels, TFJOB_BETWEEN "job-name", json_string(job->meta.name));
    json_object_set_new(labels, "controller-name", json_string("tf-operator"));
}

/*  Of both generations: a service that another operator made finds a pod of ours in the place of one of its own. */
static void s_labels(json_t *labels, const tfjob_t *job, const tfjob_place_t *place)
{
    s_add(labels, job, place, TFJOB_LABELS_OLD);
    if (!job->old.there)
        s_add(labels, job, place, TFJOB_LABELS_TODAY);
    if (place->labels == TFJOB_LABELS_BETWEEN)
        s_between(labels, job, place);
    if (job->old.there)
        tfjob_old_labels(labels, job, place);
    parts_recommend(labels, "tfjob", job->meta.name, tfjob_type_label(place->type));
}

static json_t *s_owner(const tfjob_t *job)
{
    return parts_owner_of(TFJOB_API_VERSION, "TFJob", job->meta.name, job->meta.uid, true);
}

/*  A new reference; NULL = there is none. */
static json_t *s_template(const tfjob_t *job, const json_t *whole, const tfjob_place_t *place, const char *domain)
{
    if (tfjob_old_is_default(job, place))
        return tfjob_old_template(job, whole, place, tfjob_host, (void *)(uintptr_t)domain);
    return json_incref(parts_object(tfjob_replica_spec(whole, place->type), "template"));
}

/*  A job of v1alpha1 says for all of its pods who places them. */
static void s_scheduler(json_t *spec, const json_t *whole)
{
    const char *name = parts_text(json_object_get(whole, "spec"), "schedulerName", "");
    if (*name && !json_object_get(spec, "schedulerName"))
        json_object_set_new(spec, "schedulerName", json_string(name));
}

/*  By exit code: the operator decides, not the kubelet. */
static const char *s_policy(tfjob_restart_t restart)
{
    return restart == TFJOB_ALWAYS ? "Always" : restart == TFJOB_ON_FAILURE ? "OnFailure" : "Never";
}

static tt_status_t s_tf_config(json_t *container, const tfjob_t *job, const tfjob_place_t *place, const char *domain)
{
    char *text = tfjob_tf_config(job, place, domain);
    const size_t size = text ? strlen(text) + sizeof "TF_CONFIG=" : 0;
    if (text && size <= TFJOB_CONFIG_MAX)
        parts_env_of(container, "TF_CONFIG", text);
    free(text);
    if (size > TFJOB_CONFIG_MAX)
        return tt_err(TT_INVALID, "TF_CONFIG of %lld replicas has %zu bytes, and Linux takes %d: ask for fewer%s",
            (long long)tfjob_replicas(job), size, TFJOB_CONFIG_MAX,
            job->old.there ? "" : ", or set enableDynamicWorker");
    return TT_OK;
}

tt_status_t tfjob_build_pod(
    json_t **out, const tfjob_t *job, const json_t *whole, const tfjob_place_t *place, const char *domain)
{
    const tfjob_replicas_t *type = &job->types[place->type];
    json_t *template_ = s_template(job, whole, place, domain);
    if (!template_)
        return tt_err(TT_NOT_FOUND, "TFJob %s has no template of a %s", job->meta.name, tfjob_type_title(place->type));
    char *name = tfjob_place_name(job, place->type, place->index);
    json_t *pod = parts_pod_from(whole, template_, name);
    json_t *spec = json_object_get(pod, "spec");
    json_t *container = parts_named(json_object_get(spec, "containers"), "name", TFJOB_CONTAINER);
    free(name);
    json_decref(template_);
    s_labels(parts_labels(pod), job, place);
    parts_annotate_int(pod, PARTS_OWN "restarts", place->restarts);
    json_object_set_new(json_object_get(pod, "metadata"), "ownerReferences", json_pack("[o]", s_owner(job)));
    json_object_set_new(spec, "restartPolicy", json_string(s_policy(type->restart)));
    if (job->old.there) {
        parts_annotate(pod, TFJOB_OLD_NOTE, s_is_chief(job, place) ? "chief" : "other");
        s_scheduler(spec, whole);
    } else if (container)
        parts_add_port(container, TFJOB_PORT, TFJOB_PORT_NUMBER);
    const tt_status_t status = s_tf_config(container, job, place, domain);
    if (status == TT_OK)
        *out = pod;
    else
        json_decref(pod);
    return status;
}

json_t *tfjob_build_service(const tfjob_t *job, const tfjob_place_t *place)
{
    char *name = tfjob_place_name(job, place->type, place->index);
    json_t *selector = s_selector(job, place, place->labels), *labels = json_object();
    const char *port = job->old.there ? "tf-port" : TFJOB_PORT;
    json_t *ports = json_pack("[{s:s, s:i}]", "name", port, "port", (int)job->types[place->type].port);
    s_labels(labels, job, place);
    json_t *service = parts_service(job->meta.namespace_, name, labels, s_owner(job), selector, ports);
    free(name);
    return service;
}
