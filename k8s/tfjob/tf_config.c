/*  tf_config - the variable by which TensorFlow's processes find each other, in Kubeflow's bytes: no blanks, types in the order of
 *  the alphabet.
 *
 *  Dense, everybody knows everybody: {"cluster":{"ps":[..],"worker":[..]},"task":{"type":"worker","index":0},"environment":"cloud"}.
 *  Sparse (enableDynamicWorker), so that workers may come and go: a worker knows itself and all parameter servers, one of those
 *  itself, anybody else nobody. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "k8s/tfjob/tfjob.h"

/*  "mnist-ps-0.default.svc:2222" */
static json_t *s_host(const tfjob_t *job, tfjob_type_t type, int32_t index, const char *domain)
{
    const char *namespace_ = *job->meta.namespace_ ? job->meta.namespace_ : "default";
    char *name = tfjob_place_name(job, type, index);
    const bool more = domain && *domain;
    char *host = tt_sprintf(
        "%s.%s.svc%s%s:%u", name, namespace_, more ? "." : "", more ? domain : "", (unsigned)job->types[type].port);
    json_t *text = json_string(host);
    free(host);
    free(name);
    return text;
}

static json_t *s_hosts(const tfjob_t *job, tfjob_type_t type, const char *domain)
{
    json_t *hosts = json_array();
    for (int32_t i = 0; i < job->types[type].replicas; i++)
        json_array_append_new(hosts, s_host(job, type, i, domain));
    return hosts;
}

static json_t *s_dense(const tfjob_t *job, const char *domain)
{
    json_t *cluster = json_object();
    for (int type = 0; type < TFJOB_TYPES; type++)
        if (job->types[type].there)
            json_object_set_new(
                cluster, tfjob_type_label((tfjob_type_t)type), s_hosts(job, (tfjob_type_t)type, domain));
    return cluster;
}

static json_t *s_sparse(const tfjob_t *job, const tfjob_place_t *place, const char *domain)
{
    json_t *workers = json_object(), *servers = NULL;
    char index[16];
    snprintf(index, sizeof index, "%d", place->index);
    if (place->type == TFJOB_WORKER) {
        json_object_set_new(workers, index, s_host(job, TFJOB_WORKER, place->index, domain));
        servers = s_hosts(job, TFJOB_PS, domain);
    } else {
        servers = json_array();
        if (place->type == TFJOB_PS)
            json_array_append_new(servers, s_host(job, TFJOB_PS, place->index, domain));
    }
    return json_pack("{s:o, s:o}", "worker", workers, "ps", servers);
}

char *tfjob_tf_config(const tfjob_t *job, const tfjob_place_t *place, const char *domain)
{
    const char *type = tfjob_type_label(place->type);
    if (tfjob_replicas(job) == 1)
        return NULL; /* who is alone is no cluster, and TensorFlow would wait for one */
    json_t *config = json_object();
    json_object_set_new(config, job->dynamic && job->old_sparse ? "sparseCluster" : "cluster",
        job->dynamic ? s_sparse(job, place, domain) : s_dense(job, domain));
    json_object_set_new(config, "task", json_pack("{s:s, s:i}", "type", type, "index", place->index));
    if (!job->dynamic)
        json_object_set_new(config, "environment", json_string("cloud"));
    char *text = json_dumps(config, JSON_COMPACT | JSON_PRESERVE_ORDER);
    json_decref(config);
    TT_CHECK(text);
    return text;
}
