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

typedef struct {
    const tfjob_t *job;
    tfjob_host_fn host;
    void *ctx;
} cluster_t;

/*  "mnist-ps-0.default.svc:2222"; of v1alpha1 "mnist-ps-x7f2-0:2222" */
char *tfjob_host(void *ctx, const tfjob_t *job, tfjob_type_t type, int32_t index)
{
    const char *domain = ctx, *namespace_ = *job->meta.namespace_ ? job->meta.namespace_ : "default";
    char *name = tfjob_place_name(job, type, index);
    const bool more = domain && *domain;
    const unsigned port = job->types[type].port;
    char *host = job->old.there
                     ? tt_sprintf("%s:%u", name, port)
                     : tt_sprintf("%s.%s.svc%s%s:%u", name, namespace_, more ? "." : "", more ? domain : "", port);
    free(name);
    return host;
}

static json_t *s_host(const cluster_t *self, tfjob_type_t type, int32_t index)
{
    char *host = self->host(self->ctx, self->job, type, index);
    json_t *text = json_string(host);
    free(host);
    return text;
}

static json_t *s_hosts(const cluster_t *self, tfjob_type_t type)
{
    json_t *hosts = json_array();
    for (int32_t i = 0; i < self->job->types[type].replicas; i++)
        json_array_append_new(hosts, s_host(self, type, i));
    return hosts;
}

static json_t *s_dense(const cluster_t *self)
{
    json_t *cluster = json_object();
    for (int type = 0; type < TFJOB_TYPES; type++)
        if (self->job->types[type].there)
            json_object_set_new(cluster, tfjob_type_label((tfjob_type_t)type), s_hosts(self, (tfjob_type_t)type));
    return cluster;
}

static json_t *s_sparse(const cluster_t *self, const tfjob_place_t *place)
{
    json_t *workers = json_object(), *servers = NULL;
    char index[16];
    snprintf(index, sizeof index, "%d", place->index);
    if (place->type == TFJOB_WORKER) {
        json_object_set_new(workers, index, s_host(self, TFJOB_WORKER, place->index));
        servers = s_hosts(self, TFJOB_PS);
    } else {
        servers = json_array();
        if (place->type == TFJOB_PS)
            json_array_append_new(servers, s_host(self, TFJOB_PS, place->index));
    }
    return json_pack("{s:o, s:o}", "worker", workers, "ps", servers);
}

char *tfjob_tf_config_by(const tfjob_t *job, const tfjob_place_t *place, tfjob_host_fn host, void *ctx)
{
    const cluster_t self = {job, host, ctx};
    const char *type = tfjob_type_label(place->type);
    if (tfjob_replicas(job) == 1 && !job->old.there)
        return NULL; /* who is alone is no cluster, and TensorFlow would wait for one; programs of v1alpha1 read it */
    json_t *config = json_object();
    json_object_set_new(config, job->dynamic && job->old_sparse ? "sparseCluster" : "cluster",
        job->dynamic ? s_sparse(&self, place) : s_dense(&self));
    json_object_set_new(config, "task", json_pack("{s:s, s:i}", "type", type, "index", place->index));
    if (!job->dynamic)
        json_object_set_new(config, "environment", json_string("cloud"));
    char *text = json_dumps(config, JSON_COMPACT | JSON_PRESERVE_ORDER);
    json_decref(config);
    TT_CHECK(text);
    return text;
}

char *tfjob_tf_config(const tfjob_t *job, const tfjob_place_t *place, const char *domain)
{
    return tfjob_tf_config_by(job, place, tfjob_host, (void *)(uintptr_t)domain);
}
