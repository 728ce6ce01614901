/*  master - take ElasticDL's tasks over HTTP (elasticdl/master.h). */
#include "elasticdl/master.h"
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cli/cmd.h"
#include "common/base/descriptors.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/signals.h"
#include "controller/guard.h"
#include "k8s/front/gang.h"

enum { RUNS = 100000 };

const tt_option_t tt_opt_master[] = {
    {"listen", 0, "ADDRESS:PORT", "where it serves, :7897 for every address (default 127.0.0.1:7897)"},
    {"token", 0, "FILE", "a secret that requests have to bring (default: none, as ElasticDL's client has none)"},
    {"dir", 0, "DIR", "working directory of the programs (default: this one)"},
    {"program", 0, "FILE", "what members run: a .py file by Python, else a program (default exec.py)"},
    {"python", 0, "FILE", "the Python that runs it (default: python, or python3 where there is none)"},
    {"run-dir", 0, "DIR", "a new directory for logs (default: runs/master-<n>)"},
    {"ready-timeout", 0, "S", "for all members of a type to answer, seconds (default 60, on a cluster 600)"},
    {"grace", 0, "S", "from SIGTERM to a program until it is killed, seconds (default 10)"},
    {"on", 0, "here|kubernetes", "where members are: processes of this machine, or pods (default here)"},
    {"kubeconfig", 0, "FILE",
        "on kubernetes: how to reach the API server (default: $KUBECONFIG, the pod's service account, ~/.kube/config)"},
    {"context", 0, "NAME", "on kubernetes: context of the kubeconfig (default: its current one)"},
    {"namespace", 'n', "NAME", "on kubernetes: where the pods are made (default: the context's)"},
    {"agent-image", 0, "NAME",
        "on kubernetes: an image with tutti, from which pods get their agent; none: theirs has it (default: this "
        "pod's)"},
    {"gang", 0, "SCHEDULER",
        "on kubernetes: a PodGroup for each task: volcano, scheduler-plugins or none (default none)"},
    {"queue", 0, "NAME", "on kubernetes: of Kueue's, in which tasks wait that name none (default: in none)"},
    {"template", 0, "FILE",
        "on kubernetes: a PodTemplate with what else the pods get: cards, nodes, volumes (default: nothing)"},
    {0},
};

/*  Caller frees *out. */
static tt_status_t s_make_run(char **out, const char *given)
{
    char *path = tt_strdup(given);
    tt_status_t status = tt_file_check_umask();
    if (status == TT_OK && !given)
        status = tt_file_make_path("runs", 0755);
    int made = -1;
    for (int n = 1; status == TT_OK && made != 0 && n < RUNS; n++) {
        if (!given) {
            free(path);
            path = tt_sprintf("runs/master-%d", n);
        }
        made = mkdir(path, 0755);
        if (made != 0 && (given || errno != EEXIST))
            status = tt_err_errno(errno == EEXIST ? TT_EXISTS : TT_IO, "--run-dir %s", path);
    }
    if (status == TT_OK)
        *out = path;
    else
        free(path);
    return status;
}

/*  Of a master that could not begin nothing stays. One that had tasks keeps its folder: rmdir says no. */
static void s_remove_run(const char *run_dir)
{
    char *token = tt_sprintf("%s/token", run_dir), *logs = tt_sprintf("%s/logs", run_dir);
    if (rmdir(logs) == 0 || errno == ENOENT) {
        unlink(token);
        rmdir(run_dir);
    }
    free(token);
    free(logs);
}

static tt_status_t s_cluster(const tt_args_t *args, elasticdl_master_opts_t *opts, edl_kube_opts_t *cluster)
{
    static const char *const wanted[] = {
        "kubeconfig", "context", "namespace", "agent-image", "gang", "queue", "template"};
    *cluster = (edl_kube_opts_t){.kube = {.path = tt_arg(args, "kubeconfig"),
                                     .context = tt_arg(args, "context"),
                                     .namespace_ = tt_arg(args, "namespace")},
        .agent_image = tt_arg(args, "agent-image"),
        .queue = tt_arg(args, "queue"),
        .template_ = tt_arg(args, "template")};
    if (cluster->queue && elasticdl_queue_check(cluster->queue) != TT_OK)
        return tt_err_wrap(TT_USAGE, "--queue");
    if (gang_pick(&cluster->gang, tt_arg(args, "gang")) != TT_OK)
        return tt_err_wrap(TT_USAGE, "--gang");
    const bool there = tt_arg_is(args, "on", "kubernetes");
    for (size_t i = 0; i < TT_COUNT(wanted) && !there; i++)
        if (tt_arg_given(args, wanted[i]))
            return tt_err(TT_USAGE, "--%s is for a master with --on kubernetes", wanted[i]);
    opts->cluster = there ? cluster : NULL;
    if (!there && !opts->place.dir)
        opts->place.dir = "."; /* of a pod it is its image's */
    return TT_OK;
}

static tt_status_t s_options(
    const tt_args_t *args, elasticdl_master_opts_t *opts, edl_kube_opts_t *cluster, char token[TOKEN_SIZE])
{
    uint64_t grace = 10, ready = 0;
    const char *listen = tt_arg(args, "listen");
    TT_TRY(tt_arg_u64(args, "grace", &grace, 0, 3600));
    TT_TRY(tt_arg_u64(args, "ready-timeout", &ready, 1, 86400));
    *opts = (elasticdl_master_opts_t){.listen = listen ? listen : "127.0.0.1:7897",
        .ready_ms = (int)ready * 1000,
        .place = {.dir = tt_arg(args, "dir"),
            .program = tt_arg(args, "program"),
            .python = tt_arg(args, "python"),
            .grace_s = (int)grace}};
    TT_TRY(s_cluster(args, opts, cluster));
    if (!tt_arg(args, "token"))
        return TT_OK;
    opts->token = token;
    return token_read(token, tt_arg(args, "token"));
}

static tt_status_t s_run(elasticdl_master_opts_t *opts)
{
    tt_descriptors_raise();
    TT_TRY(tt_guard_enter(NULL, NULL)); /* no agent outlives us, whoever of us is killed */
    TT_TRY(tt_signals_open_parent(&opts->stop_fd));
    tt_log_init("master", 0);
    const tt_status_t status = elasticdl_master_run(opts);
    close(opts->stop_fd);
    return status;
}

int tt_cmd_master(int argc, char **argv)
{
    int code;
    TT_AUTO(tt_args) args = tt_args_new(&code, "master", argc, argv);
    if (!args)
        return code;
    elasticdl_master_opts_t opts;
    edl_kube_opts_t cluster;
    char token[TOKEN_SIZE], *run_dir = NULL;
    tt_status_t status = s_options(args, &opts, &cluster, token);
    if (status == TT_OK)
        status = s_make_run(&run_dir, tt_arg(args, "run-dir"));
    opts.place.run_dir = run_dir;
    if (status == TT_OK)
        status = s_run(&opts);
    if (status != TT_OK && run_dir)
        s_remove_run(run_dir);
    free(run_dir);
    return status == TT_OK ? 0 : tt_args_fail(args, status);
}
