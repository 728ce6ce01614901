/*  make_tfjob - what differs on one machine for a TFJob's pods: TensorFlow's servers listen at every address, so no two places have
 *  the same port. A place keeps its address and its port, and everybody's TF_CONFIG names them before they are taken. */
#include <stdlib.h>
#include "common/base/mem.h"
#include "k8s/front/object.h"
#include "local/run.h"
#include "k8s/tfjob/tfjob.h"

/*  0: there is none. */
static uint16_t s_port(const run_t *self, const char *name)
{
    uint16_t port = (uint16_t)json_integer_value(json_object_get(self->masters, name));
    if (port == 0 && place_ports(self->place, &port, 1) == TT_OK)
        json_object_set_new(self->masters, name, json_integer(port));
    return port;
}

static void s_address(const run_t *self, tfjob_type_t type, int32_t index, char ip[16])
{
    place_address(self->place, (unsigned)type * TFJOB_REPLICAS_MAX + (unsigned)index, ip);
}

/*  By the cluster's names where these lead somewhere. */
static char *s_host(void *ctx, const tfjob_t *job, tfjob_type_t type, int32_t index)
{
    const run_t *self = ctx;
    char ip[16], *name = tfjob_place_name(job, type, index);
    const unsigned port = s_port(self, name);
    s_address(self, type, index, ip);
    char *host = self->place->kind && job->old.there ? tt_sprintf("%s:%u", name, port)
                 : self->place->kind                 ? tt_sprintf("%s.%s.svc:%u", name, self->place->namespace_, port)
                                                     : tt_sprintf("%s:%u", ip, port);
    free(name);
    return host;
}

/*  A parameter server without a template is a script in a folder that is shown to it, and its command names who there is. Where
 *  no folder can be shown the script is in the command. */
static void s_command(run_t *self, const tfjob_t *job, const tfjob_place_t *place, json_t *container)
{
    if (!tfjob_old_is_default(job, place))
        return;
    json_t *command = tfjob_old_command(job, place, s_host, self);
    json_object_set_new(container, "command", command);
    if (self->place->kind)
        return;
    json_array_set_new(command, 1, json_string("-c"));
    json_array_insert_new(command, 2, json_string(tfjob_old_script));
    json_object_del(container, "volumeMounts");
}

tt_status_t run_settle_tfjob(run_t *self, const json_t *pod, const front_action_t *action, char ip[16], uint16_t *port)
{
    const tfjob_place_t *place = action->own;
    const tfjob_t *job = self->seen;
    json_t *containers = json_object_get(json_object_get(pod, "spec"), "containers");
    json_t *container = parts_named(containers, "name", TFJOB_CONTAINER);
    s_command(self, job, place, container);
    char *config = tfjob_tf_config_by(job, place, s_host, self);
    *port = s_port(self, action->name);
    s_address(self, place->type, place->index, ip);
    json_t *own = parts_named(json_object_get(container, "ports"), "name", TFJOB_PORT);
    if (own)
        json_object_set_new(own, "containerPort", json_integer(*port));
    if (config)
        parts_env_of(container, "TF_CONFIG", config);
    free(config);
    return *port ? TT_OK : TT_UNAVAILABLE;
}
