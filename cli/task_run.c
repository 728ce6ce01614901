/*  task run - the engine in the foreground (task/engine.h). */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include "cli/cmd.h"
#include "cli/task.h"
#include "controller/guard.h"
#include "task/engine.h"

const tt_option_t tt_opt_task_run[] = {
    {"cpu", 0, "N", "jobs at once that want no card; 'all' = one a processor (the default)"},
    {"gpu", 0, "LIST", "cards, for one job each: 0,1; '' = none (the default)"},
    {"claim", 0, "NAME", "run them as Jobs of a cluster; this PersistentVolumeClaim holds the current directory"},
    {"kubeconfig", 0, "FILE",
        "with --claim: how to reach the API server (default: $KUBECONFIG, the pod's service account, ~/.kube/config)"},
    {"context", 0, "NAME", "with --claim: context of the kubeconfig (default: its current one)"},
    {"namespace", 'n', "NAME", "with --claim: where the Jobs are made (default: the context's)"},
    {"stay", 0, NULL, "wait for new tasks when nothing is left"}, {0}};

static void s_say(void *ctx, const char *line)
{
    (void)ctx;
    puts(line);
    fflush(stdout);
}

static void s_lost(void *ctx, int signal)
{
    (void)ctx;
    fprintf(stderr, "tutti task run: killed by signal %d; 'tutti task run' goes on\n", signal);
}

static tt_status_t s_run(const tt_args_t *args, int *signal)
{
    TT_AUTO(store) store = NULL;
    char volume[PATH_MAX];
    const engine_cluster_t cluster = {.kube = {.path = tt_arg(args, "kubeconfig"),
                                          .context = tt_arg(args, "context"),
                                          .namespace_ = tt_arg(args, "namespace")},
        .claim = tt_arg(args, "claim"),
        .volume = volume};
    const engine_options_t options = {
        .stay = tt_arg_given(args, "stay"), .say = s_say, .cluster = cluster.claim ? &cluster : NULL};
    if (!cluster.claim && (cluster.kube.path || cluster.kube.context || cluster.kube.namespace_))
        return tt_err(TT_USAGE, "jobs run on a cluster with --claim only");
    if (!realpath(".", volume))
        return tt_err_errno(TT_IO, "the current directory");
    TT_TRY(store_open(&store));
    TT_TRY(task_set_slots(args, store));
    return engine_run(store, &options, signal);
}

int tt_cmd_task_run(int argc, char **argv)
{
    int code, signal = 0;
    TT_AUTO(tt_args) args = tt_args_new(&code, "task run", argc, argv);
    if (!args)
        return code;
    tt_status_t status =
        tt_guard_enter(s_lost, NULL); /* one process of two may be killed, and nothing is left behind */
    if (status == TT_OK)
        status = s_run(args, &signal);
    if (status != TT_OK)
        return tt_args_fail(args, status);
    return signal ? 128 + signal : 0;
}
