/*  ddp - learners that share one model over GPUs of several nodes (torch's DistributedDataParallel): how many pods, and
 *  what each is told. */
#include <stdio.h>
#include <stdlib.h>
#include "k8s/dijob/parts.h"

size_t dijob_ddp_split(int gpus, int per_node, int *parts, size_t room)
{
    if (per_node < 1 || gpus <= per_node)
        per_node = gpus > 1 ? gpus : 1;
    size_t count = 0;
    for (int left = gpus > 1 ? gpus : 1; left > 0; left -= per_node, count++)
        if (parts && count < room)
            parts[count] = left < per_node ? left : per_node;
    return count;
}

int dijob_gpus_per_node(const int *gpus, size_t nodes)
{
    int mode = 0, largest = 0;
    size_t most = 0;
    for (size_t i = 0; i < nodes; i++) {
        size_t same = 0;
        for (size_t k = 0; k < nodes; k++)
            same += gpus[k] == gpus[i];
        if (same > most || (same == most && gpus[i] > mode)) {
            most = same;
            mode = gpus[i];
        }
        largest = gpus[i] > largest ? gpus[i] : largest;
    }
    return mode > 0 ? mode : largest;
}

static void s_ports(json_t *spec, const dijob_pod_want_t *want)
{
    json_t *container = parts_named(json_object_get(spec, "containers"), "name", MAIN_CONTAINER);
    const int port = parts_port(spec, DIJOB_DDP_LEARNER, NULL);
    if (!container)
        return;
    for (int i = 1; i < want->gpus && port + i < 65536; i++) {
        char name[24];
        snprintf(name, sizeof name, "gpu-port-%d", i);
        parts_add_port(container, name, port + i);
    }
    if (want->split && want->master)
        parts_add_port(container, "master-port", PORT_MASTER);
}

void parts_ddp(json_t *pod, const dijob_pod_want_t *want)
{
    json_t *spec = json_object_get(pod, "spec");
    const bool leads = want->master || !want->master_name;
    if (want->split)
        parts_label(pod, "ddp-learner-type", want->master ? "ddp-learner-master" : "ddp-learner-worker");
    parts_env_int(spec, "WORLD_SIZE", want->world_size);
    parts_env_int(spec, "LOCAL_WORLD_SIZE", want->local_world_size);
    parts_env_int(spec, "START_RANK", want->start_rank);
    parts_env(spec, "MASTER_ADDR", leads ? "localhost" : want->master_name);
    parts_env_int(spec, "MASTER_PORT", PORT_MASTER);
    s_ports(spec, want);
}
