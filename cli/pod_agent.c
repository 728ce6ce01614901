/*  pod-agent - be the agent of a member of an ElasticDL task (elasticdl/agent.h). */
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>
#include "cli/cmd.h"
#include "common/base/log.h"
#include "common/base/signals.h"
#include "common/http/token.h"
#include "controller/guard.h"
#include "elasticdl/agent.h"
#include "elasticdl/install.h"
#include "elasticdl/reply.h"

const tt_option_t tt_opt_pod_agent[] = {
    {"listen", 0, "ADDRESS:PORT", "where it serves, :7896 for every address of a pod (default 127.0.0.1:7896)"},
    {"token", 0, "FILE", "a secret that requests have to bring (default: none)"},
    {"dir", 0, "DIR", "working directory of the program (default: this one)"},
    {"program", 0, "FILE", "what is run: a .py file by Python, else a program (default exec.py)"},
    {"python", 0, "FILE", "the Python that runs it (default: python, or python3 where there is none)"},
    {"output", 0, "FILE", "where the program's output goes (default: outputs.log in --dir)"},
    {"grace", 0, "S", "from SIGTERM until the program is killed, seconds (default 10)"},
    {"announce", 0, "DIR", "write agent.json with its url there when it serves"},
    {"member", 0, "NAME", "what /status calls it"},
    {"install", 0, "DIR", "serve nothing: copy tutti and its libraries there, so that DIR/ld.so runs it in any image"},
    {0},
};

static tt_status_t s_options(const tt_args_t *args, elasticdl_agent_opts_t *opts, char token[TOKEN_SIZE])
{
    uint64_t grace = 10;
    const char *listen = tt_arg(args, "listen"), *dir = tt_arg(args, "dir"), *program = tt_arg(args, "program");
    TT_TRY(tt_arg_u64(args, "grace", &grace, 0, 3600));
    *opts = (elasticdl_agent_opts_t){.listen = listen ? listen : "127.0.0.1:7896",
        .announce = tt_arg(args, "announce"),
        .member = tt_arg(args, "member"),
        .grace_ms = (int)grace * 1000,
        .workload = {.dir = dir ? dir : ".",
            .program = program ? program : "exec.py",
            .python = tt_arg(args, "python"),
            .output = tt_arg(args, "output")}};
    if (!tt_arg(args, "token"))
        return TT_OK;
    opts->token = token;
    return token_read(token, tt_arg(args, "token"));
}

static tt_status_t s_run(elasticdl_agent_opts_t *opts)
{
    TT_TRY(tt_guard_enter(NULL, NULL)); /* what the program forked has an end, whoever of us is killed */
    TT_TRY(tt_signals_open_parent(&opts->stop_fd));
    tt_log_init("pod-agent", 0);
    if (!opts->token && !reply_is_loopback(opts->listen))
        fprintf(
            stderr, "tutti pod-agent: whoever reaches %s may start the program: it asks for no token\n", opts->listen);
    const tt_status_t status = elasticdl_agent_run(opts);
    close(opts->stop_fd);
    return status;
}

int tt_cmd_pod_agent(int argc, char **argv)
{
    int code;
    TT_AUTO(tt_args) args = tt_args_new(&code, "pod-agent", argc, argv);
    if (!args)
        return code;
    elasticdl_agent_opts_t opts;
    char token[TOKEN_SIZE];
    const char *install = tt_arg(args, "install");
    tt_status_t status = install ? elasticdl_install(install) : s_options(args, &opts, token);
    if (status == TT_OK && !install)
        status = s_run(&opts);
    return status == TT_OK ? 0 : tt_args_fail(args, status);
}
