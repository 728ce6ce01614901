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
    {"requests", 0, "LIST", "with --claim: what each pod asks for, cpu=2,memory=4Gi; '' = nothing (default: cpu=1)"},
    {"limits", 0, "LIST",
        "with --claim: what each pod may take, memory=8Gi,nvidia.com/gpu=2 (default: nothing but its card)"},
    {"queue", 0, "NAME", "with --claim: a queue of Kueue's; a Job is suspended till it is admitted"},
    {"deadline", 0, "AGE", "with --claim: a job that has run so long has failed: 90s, 30m, 12h (default 5d)"},
    {"ttl", 0, "AGE", "with --claim: a Job whose end no 'task run' sees is deleted so long after it (default 1h)"},
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

static tt_status_t s_rules(const tt_args_t *args, cluster_rules_t *out)
{
    *out = (cluster_rules_t){.queue = tt_arg(args, "queue"),
        .requests = tt_arg(args, "requests"),
        .limits = tt_arg(args, "limits"),
        .deadline_s = CLUSTER_DEADLINE_S,
        .ttl_s = CLUSTER_TTL_S};
    TT_TRY(tt_arg_age(args, "deadline", &out->deadline_s));
    TT_TRY(tt_arg_age(args, "ttl", &out->ttl_s));
    if (out->deadline_s < 1 || out->deadline_s > INT32_MAX)
        return tt_err(TT_USAGE, "--deadline: expected from 1s to 3550w");
    if (out->ttl_s < CLUSTER_TTL_MIN_S || out->ttl_s > INT32_MAX)
        return tt_err(TT_USAGE, "--ttl: expected from %ds, so that its end can be seen, to 3550w", CLUSTER_TTL_MIN_S);
    return TT_OK;
}

/*  Its claim is NULL where jobs run here: nothing else may be said of a cluster then. */
static tt_status_t s_cluster(const tt_args_t *args, engine_cluster_t *out)
{
    static const char *const about[] = {
        "kubeconfig", "context", "namespace", "requests", "limits", "queue", "deadline", "ttl"};
    *out = (engine_cluster_t){.kube = {.path = tt_arg(args, "kubeconfig"),
                                  .context = tt_arg(args, "context"),
                                  .namespace_ = tt_arg(args, "namespace")},
        .claim = tt_arg(args, "claim")};
    for (size_t i = 0; i < TT_COUNT(about) && !out->claim; i++)
        if (tt_arg_given(args, about[i]))
            return tt_err(TT_USAGE, "--%s is about jobs on a cluster, which run with --claim only", about[i]);
    return s_rules(args, &out->rules);
}

static tt_status_t s_run(const tt_args_t *args, int *signal)
{
    TT_AUTO(store) store = NULL;
    char volume[PATH_MAX];
    engine_cluster_t cluster;
    TT_TRY(s_cluster(args, &cluster));
    cluster.volume = volume;
    const engine_options_t options = {
        .stay = tt_arg_given(args, "stay"), .say = s_say, .cluster = cluster.claim ? &cluster : NULL};
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
