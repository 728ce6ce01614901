/*  kube - the members of tasks as pods of a Kubernetes: a StatefulSet and a headless Service for each type (elasticdl/objects.h).
 *
 *  An agent is asked at its pod's address, so a master has to be where pods can be reached: in a pod itself, or in their network.
 *
 *  A task goes on without its master: who starts after it reads the StatefulSets, asks each agent how far it has come, and goes on there.
 *  A task that has ended leaves its sets, without pods, as its record; one that was deleted leaves nothing.
 *
 *  Threads: the loop's. */
#pragma once
#include "elasticdl/local.h"
#include "k8s/api/kubeconfig.h"
#include "common/http/reactor.h"

typedef struct {
    kube_config_opts_t kube;
    /*  From which pods get their agent. NULL: the image of the pod that this master runs in; where it runs in none, or "none": the task's
     *  image has `tutti` in its PATH. */
    const char *agent_image;
    const gang_t
        *gang; /* by whom members are placed together or not at all (a PodGroup a task); NULL = each by itself */
    const char *queue;     /* in which tasks wait that name none; NULL = in none */
    const char *template_; /* a file (elasticdl/template.h): what else pods get; NULL = nothing */
} edl_kube_opts_t;

/*  opts: of its run directory what programs wrote is kept; dir is one of the task's image, NULL = that image's own. Strings are copied, the loop is borrowed.
 *  TT_NOT_FOUND, TT_CONFIG: the kubeconfig, the template; TT_UNAVAILABLE, TT_DENIED: the API server. */
tt_status_t edl_kube_new(
    edl_place_t **self_p, const local_place_opts_t *opts, const edl_kube_opts_t *kube, tt_reactor_t *loop);
typedef void (*edl_found_fn)(void *ctx, const edl_past_t *past);
/*  Calls fn with every task that is there, the lowest number first. A PodGroup whose task is nowhere (its master was killed before there was a set)
 *  is deleted. TT_UNAVAILABLE: there is a queue for all tasks, and no Kueue. */
tt_status_t edl_kube_recover(edl_place_t *self, edl_found_fn fn, void *ctx);
