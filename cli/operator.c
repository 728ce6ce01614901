/*  operator - look after the DIJobs of a cluster (k8s/operator/operator.h). */
#include "k8s/operator/operator.h"
#include <stdint.h>
#include <unistd.h>
#include "cli/cmd.h"
#include "common/base/log.h"
#include "common/base/signals.h"
#include "k8s/front/gang.h"
#include "k8s/front/kueue.h"

const tt_option_t tt_opt_operator[] = {
    {"kubeconfig", 0, "FILE",
        "how to reach the API server (default: $KUBECONFIG, the pod's service account, ~/.kube/config)"},
    {"context", 0, "NAME", "context of the kubeconfig (default: its current one)"},
    {"namespace", 'n', "NAME", "only the jobs of this namespace (default: all)"},
    {"job", 0, "NAME", "only this job of --namespace, also one with spec.managedBy: coordinator"},
    {"also", 0, "KINDS", "other jobs to look after besides DIJobs, with commas"},
    {"gang", 0, "SCHEDULER", "a PodGroup for each job: volcano, scheduler-plugins or none (default none)"},
    {"queue", 0, "KEEPER", "jobs with a queue's label wait for admission: kueue or none (default none)"},
    {"controller-config-file", 0, "FILE",
        "folders of the node and variables for containers of TFJobs that ask for a resource (YAML: accelerators)"},
    {"server-bind-address", 0, "ADDRESS", "replicas API, \"\" for none (default :8080)"},
    {"health-probe-bind-address", 0, "ADDRESS", "/healthz /readyz /metrics, \"\" for none (default :8081)"},
    {"server-address", 0, "URL", "what pods get as KUBERNETES_SERVER_URL (default http://di-server.di-system:8080)"},
    {"leader-elect", 0, NULL, "of several replicas only the one with the Lease looks after the jobs"},
    {"lease-namespace", 0, "NAME", "of the Lease (default: $POD_NAMESPACE, else di-system)"},
    {"lease-name", 0, "NAME", "of the Lease (default tutti-operator)"},
    {"agconfig-namespace", 0, "NAME", "of the AggregatorConfig for jobs without their own (default di-system)"},
    {"agconfig-name", 0, "NAME", "of AggregatorConfigs (default aggregator-config)"},
    {"gpus-per-node", 0, "N", "GPUs of a usual node, for learners with several (default: ask the nodes)"},
    {"workers", 0, "N", "jobs worked on at a time, 0 for no limit (default 0)"},
    {"open-api", 0, NULL, "answer callers that are no pods of the job too"},
    {0},
};

static bool s_has_accelerators(const front_t *const *fronts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (fronts[i]->accelerators)
            return true;
    return false;
}

static tt_status_t s_options(const tt_args_t *args, operator_opts_t *opts)
{
    uint64_t gpus = 0, workers = 0;
    if (tt_arg(args, "job") && !tt_arg(args, "namespace"))
        return tt_err(TT_USAGE, "--job NAME needs --namespace");
    if (tt_arg(args, "job") && tt_arg(args, "also"))
        return tt_err(TT_USAGE, "--job NAME is a DIJob: --also has no meaning beside it");
    const front_t *fronts[FRONT_ENDS_MAX];
    size_t front_count;
    if (front_pick(tt_arg(args, "also"), fronts, &front_count) != TT_OK)
        return tt_err_wrap(TT_USAGE, "--also");
    if (tt_arg(args, "controller-config-file") && !s_has_accelerators(fronts, front_count))
        return tt_err(TT_USAGE, "--controller-config-file is about TFJobs: it needs --also tfjob");
    const gang_t *gang;
    if (gang_pick(&gang, tt_arg(args, "gang")) != TT_OK)
        return tt_err_wrap(TT_USAGE, "--gang");
    bool queues;
    if (kueue_pick(&queues, tt_arg(args, "queue")) != TT_OK)
        return tt_err_wrap(TT_USAGE, "--queue");
    TT_TRY(tt_arg_u64(args, "gpus-per-node", &gpus, 1, 4096));
    TT_TRY(tt_arg_u64(args, "workers", &workers, 0, 100000));
    *opts = (operator_opts_t){.kube = {.path = tt_arg(args, "kubeconfig"), .context = tt_arg(args, "context")},
        .namespace_ = tt_arg(args, "namespace"),
        .also = tt_arg(args, "also"),
        .gang = tt_arg(args, "gang"),
        .queue = tt_arg(args, "queue"),
        .controller_config = tt_arg(args, "controller-config-file"),
        .only_job = tt_arg(args, "job"),
        .listen = tt_arg(args, "server-bind-address"),
        .probes = tt_arg(args, "health-probe-bind-address"),
        .server_url = tt_arg(args, "server-address"),
        .elect = tt_arg_given(args, "leader-elect"),
        .lease_namespace = tt_arg(args, "lease-namespace"),
        .lease_name = tt_arg(args, "lease-name"),
        .agconfig_namespace = tt_arg(args, "agconfig-namespace"),
        .agconfig_name = tt_arg(args, "agconfig-name"),
        .open_api = tt_arg_given(args, "open-api"),
        .gpus_per_node = (int)gpus,
        .workers = (int)workers};
    return TT_OK;
}

static tt_status_t s_run(operator_opts_t *opts)
{
    operator_t *operator_ = NULL;
    TT_TRY(tt_signals_open(&opts->stop_fd));
    tt_status_t status = operator_new(&operator_, opts);
    if (status == TT_OK)
        status = operator_run(operator_);
    operator_destroy(&operator_);
    close(opts->stop_fd);
    return status;
}

int tt_cmd_operator(int argc, char **argv)
{
    int code;
    TT_AUTO(tt_args) args = tt_args_new(&code, "operator", argc, argv);
    if (!args)
        return code;
    operator_opts_t opts;
    tt_status_t status = s_options(args, &opts);
    if (status == TT_OK) {
        tt_log_init("operator", 0);
        status = s_run(&opts);
    }
    return status == TT_OK ? 0 : tt_args_fail(args, status);
}
