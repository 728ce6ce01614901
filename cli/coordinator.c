/*  coordinator - the role that keeps the roster of a run (coordinator/coordinator.h).
 *
 *  `tutti run` starts it in a run directory that is made already. With --config it makes one itself, and somebody else
 *  keeps the replicas: an operator (docs/internals/pods.md), or people on many hosts. */
#include "cli/cmd.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/operator_thread.h"
#include "cli/pod.h"
#include "cli/setup.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "common/net/sockdir.h"
#include "controller/rundir.h"
#include "coordinator/coordinator.h"
#include "coordinator/files.h"
#include "common/http/token.h"

enum { RESULT_MAX = 1 << 16 };

const tt_option_t tt_opt_coordinator[] = {
    {"run", 0, "DIR",
        "run directory, with the resolved config.yaml; with --config it is made (in a pod: " TT_POD_RUN ")"},
    {"config", 0, "CONFIG", "begin a run of this config without a controller; members come by themselves"},
    {"set", 's', "KEY=VALUE", "with --config: override a setting; may be repeated"},
    {"seed", 0, "N", "with --config: the run's seed, as --set seed=N"},
    {"key", 0, "FILE", "the job's key (in a pod: " TT_POD_KEY "; else key in the run directory, made when missing)"},
    {"token", 0, "FILE", "the secret for HTTP (default: token in the run directory, made when missing)"},
    {"dijob", 0, "NAME[=FILE]", "with --config, in a pod: keep the pods of this DIJob (spec.managedBy: coordinator)"},
    {"index", 0, "N", "number within the role; there is only 0 (default 0)"},
    {"start-ns", 0, "N", "CLOCK_MONOTONIC of the run's process start (default: the journal's, or this process's)"},
    {0},
};

/* ---- the run directory of --config ---------------------------------------------------------------------------------- */

/*  An older version began the run, with this config as that one wrote it? Then it is brought up to date. */
static bool s_upgrade(const char *run, const char *path, const char *yaml)
{
    tt_setup_t *was = NULL;
    if (tt_setup_from_run(&was, NULL, path, true) != TT_OK)
        return false;
    const bool same = *tt_setup_upgraded(was) && strcmp(tt_setup_yaml(was), yaml) == 0 &&
                      files_replace(run, "config.yaml", yaml, 0644) == TT_OK;
    if (same)
        fprintf(stderr, "tutti coordinator: %s is of tutti 0.1 and is brought up to date: %s\n", tt_shown(path),
            tt_setup_upgraded(was));
    tt_setup_destroy(&was);
    return same;
}

/*  A directory that holds a run already must be of the same config: its journal goes on. */
static tt_status_t s_settle(const char *run, const char *yaml)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/config.yaml", run);
    tt_buf_t there;
    tt_buf_init(&there, TT_CONFIG_TEXT_MAX);
    tt_status_t status = tt_buf_read_file(&there, path);
    if (status == TT_NOT_FOUND)
        status = files_replace(run, "config.yaml", yaml, 0644);
    else if (status == TT_OK && strcmp(tt_buf_text(&there), yaml) != 0 && !s_upgrade(run, path, yaml))
        status = tt_err(TT_CONFIG,
            "%s holds a run of another config (compare its config.yaml with `tutti check`); give another directory "
            "with "
            "--run, or empty this one",
            run);
    tt_buf_free(&there);
    return status;
}

/*  Held till the process ends: it tells `tutti status` and others that the run is live. In a pod who else may read the volume
 *  is its owner's business. */
static tt_status_t s_hold(const char *path, bool in_pod)
{
    tt_rundir_t run;
    int fd = -1;
    TT_TRY(tt_rundir_adopt(&run, path, in_pod ? 0777 : 0700));
    return tt_rundir_lock(&run, &fd);
}

/*  Members of a pod's run come over tcp, so it listens. */
static tt_status_t s_begin(const tt_args_t *args, const char *run, const tt_pod_t *pod)
{
    char listen[64];
    snprintf(listen, sizeof listen, "coordinator.listen=tcp://*:%u", pod->port);
    tt_setup_t *setup = NULL;
    TT_TRY(tt_setup_from_args(&setup, args, tt_arg(args, "config"), pod->port ? listen : NULL));
    if (*tt_setup_note(setup))
        fprintf(stderr, "tutti coordinator: %s\n", tt_shown(tt_setup_note(setup)));
    tt_status_t status = s_hold(run, pod->port != 0);
    if (status == TT_OK)
        status = s_settle(run, tt_setup_yaml(setup));
    tt_setup_destroy(&setup);
    return status;
}

/*  The summary, one line on stdout: the log of a pod is where it is looked for. */
static void s_print_result(const char *run)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/result.json", run);
    tt_buf_t text;
    tt_buf_init(&text, RESULT_MAX);
    if (tt_buf_read_file(&text, path) == TT_OK)
        printf("%s\n", tt_buf_text(&text));
    fflush(stdout);
    tt_buf_free(&text);
}

/* ---- the command ----------------------------------------------------------------------------------------------------- */

/*  In a run that is made already they would be ignored: its settings are resolved. */
static tt_status_t s_check_options(const tt_args_t *args)
{
    static const char *const with_config[] = {"set", "seed", "dijob"};
    for (size_t i = 0; i < TT_COUNT(with_config) && !tt_arg_given(args, "config"); i++)
        if (tt_arg_given(args, with_config[i]))
            return tt_err(
                TT_USAGE, "--%s goes with --config; a run that is made already has its settings", with_config[i]);
    return TT_OK;
}

static tt_status_t s_run(const tt_args_t *args, int *code)
{
    uint64_t index = 0, start_ns = 0;
    bool in_pod = false;
    tt_pod_t pod;
    TT_TRY(s_check_options(args));
    TT_TRY(tt_arg_u64(args, "index", &index, 0, 0));
    TT_TRY(tt_arg_u64(args, "start-ns", &start_ns, 0, INT64_MAX));
    TT_TRY(tt_pod_look(&pod, TT_PEER_COORDINATOR, &in_pod));
    char token[TOKEN_SIZE];
    if (tt_arg(args, "token")) /* read when HTTP is first served: a bad one is better said now */
        TT_TRY(token_read(token, tt_arg(args, "token")));
    const bool alone = tt_arg(args, "config") != NULL;
    const char *run = tt_arg(args, "run");
    if (!run && alone && in_pod)
        run = pod.run;
    if (!run)
        return tt_err(TT_USAGE, "--run DIR is needed");
    if (alone)
        TT_TRY(s_begin(args, run, &pod));
    const char *key = tt_arg(args, "key");
    const coordinator_opts_t opts = {.run_dir = run,
        .start_ns = (int64_t)start_ns,
        .key = key || !alone ? key : pod.key,
        .token = tt_arg(args, "token"),
        .again = alone && pod.again,
        .alone = alone};
    tt_operator_thread_t *operator_thread = NULL;
    *code = 0;
    if (alone && tt_arg(args, "dijob"))
        TT_TRY(tt_operator_thread_start(&operator_thread, tt_arg(args, "dijob")));
    const tt_status_t status = coordinator_run(&opts, code);
    const bool over = *code != 128 + 15; /* else this process ends, and not the job */
    if (alone && over && status == TT_OK)
        s_print_result(run); /* who waits for the job's phase reads the log next */
    if (over)
        tt_operator_thread_end(&operator_thread, status == TT_OK && *code == 0);
    else
        tt_operator_thread_drop(&operator_thread);
    if (alone && over && status == TT_OK)
        tt_sockdir_close(run);
    return status;
}

int tt_cmd_coordinator(int argc, char **argv)
{
    int code;
    TT_AUTO(tt_args) args = tt_args_new(&code, "coordinator", argc, argv);
    if (!args)
        return code;
    tt_log_init("coordinator", 0);
    const tt_status_t status = s_run(args, &code);
    return status == TT_OK ? code : tt_args_fail(args, status);
}
