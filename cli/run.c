/*  run - train: from a config file to a finished run, with every replica as a process of this machine. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include "cli/cmd.h"
#include "cli/variables.h"
#include "cli/job.h"
#include "cli/launch.h"
#include "cli/setup.h"
#include "common/base/clock.h"
#include "common/base/process.h"
#include "common/base/text.h"
#include "common/net/net.h"
#include "common/config/manifest.h"

const tt_option_t tt_opt_run[] = {
    {"set", 's', "KEY=VALUE", "override a setting; may be repeated, null switches a rule off"},
    {"seed", 0, "N", "the run's seed, as --set seed=N"},
    {"env", 0, "ENV", "another environment than the config's, as --set env=ENV"},
    {"name", 0, "NAME", "name of the run, as --set name=NAME"},
    {"run-dir", 'd', "DIR", "directory of the run (runs/<name>-<n>)"},
    {"detach", 0, NULL, "return as soon as it trains and leave it going"}, {"quiet", 'q', NULL, "show only the end"},
    {"output", 'o', "text|json", "json: one object on stdout at the end, everything else on stderr"},
    {"no-namespaces", 0, NULL, "DIJob: no mount namespaces; volumes are folders of the run directory only"},
    {"no-limits", 0, NULL, "DIJob: hold no resource limits"}, {0}};

/*  The bearer token of the run's HTTP interface. */
static tt_status_t s_write_token(const tt_rundir_t *run)
{
    unsigned char random[16];
    char text[2 * sizeof random + 2];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return tt_err_errno(TT_OS, "getrandom");
    for (size_t i = 0; i < sizeof random; i++)
        snprintf(text + 2 * i, 3, "%02x", random[i]);
    strcat(text, "\n");
    return tt_rundir_write(run, "token", text, 0600);
}

static tt_status_t s_fill(const tt_rundir_t *run, const tt_setup_t *setup)
{
    tt_keys_t keys;
    char path[4096];
    snprintf(path, sizeof path, "%s/key", run->path);
    TT_TRY(tt_rundir_write(run, "config.yaml", tt_setup_yaml(setup), 0644));
    TT_TRY(s_write_token(run));
    return tt_keys_create(&keys, path);
}

/*  A run directory with all that the roles find there, or nothing. */
static tt_status_t s_prepare(tt_rundir_t *run, const tt_args_t *args, const tt_setup_t *setup)
{
    TT_TRY(tt_rundir_create(run, tt_arg(args, "run-dir"), tt_setup_train(setup)->name));
    const tt_status_t status = s_fill(run, setup);
    if (status != TT_OK) {
        tt_buf_t text; /* removing overwrites the words */
        tt_buf_init(&text, 4096);
        (void)tt_buf_str(&text, tt_err_text());
        (void)tt_rundir_remove(run);
        tt_err(status, "%s", tt_buf_text(&text));
        tt_buf_free(&text);
    }
    return status;
}

int tt_cmd_run(int argc, char **argv)
{
    const int64_t start_ns = tt_process_start_ns();
    int code;
    TT_AUTO(tt_args) args = tt_args_new(&code, "run", argc, argv);
    if (!args)
        return code;
    tt_status_t status = variables_check();
    if (status != TT_OK)
        return tt_args_fail(args, status);
    if (tt_manifest_is(tt_operand(args, 0)))
        return tt_run_job(args, start_ns);
    TT_AUTO(tt_setup) setup = NULL;
    tt_rundir_t run;
    status = tt_setup_from_args(&setup, args, tt_operand(args, 0), NULL);
    if (status == TT_OK)
        status = s_prepare(&run, args, setup);
    if (status != TT_OK)
        return tt_args_fail(args, status);
    if (*tt_setup_note(setup) && !tt_arg_given(args, "quiet"))
        fprintf(stderr, "tutti run: %s\n", tt_shown(tt_setup_note(setup)));
    const tt_launch_t launch = {.run = &run,
        .cfg = tt_setup_train(setup),
        .config = tt_setup_yaml(setup),
        .start_ns = start_ns,
        .detach = tt_arg_given(args, "detach"),
        .json = tt_arg_is(args, "output", "json"),
        .quiet = tt_arg_given(args, "quiet")};
    return tt_launch(&launch);
}
