#include "k8s/api/exec.h"
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/http/program.h"

enum { DEADLINE_MS = 60000, OUTPUT_MAX = 1 << 20 };

struct kube_exec_run {
    tt_program_t *program;
    const kube_exec_t *exec;
    kube_exec_fn done;
    void *ctx;
};

extern char **environ;

static bool s_sets(const kube_exec_t *exec, const char *entry)
{
    const size_t name = strcspn(entry, "=");
    if (name == strlen("KUBERNETES_EXEC_INFO") && strncmp(entry, "KUBERNETES_EXEC_INFO", name) == 0)
        return true;
    for (size_t i = 0; i < exec->env_count; i++)
        if (strlen(exec->env[i].name) == name && strncmp(entry, exec->env[i].name, name) == 0)
            return true;
    return false;
}

/* Ours, less what is set anew, and that. Everything in it is to be freed. */
static char **s_environment(const kube_config_t *config)
{
    const kube_exec_t *exec = config->exec;
    size_t count = 0, n = 0;
    while (environ[count])
        count++;
    char **all = tt_array0(count + exec->env_count + 2, sizeof(char *));
    for (size_t i = 0; i < count; i++)
        if (!s_sets(exec, environ[i]))
            all[n++] = tt_strdup(environ[i]);
    for (size_t i = 0; i < exec->env_count; i++)
        all[n++] = tt_sprintf("%s=%s", exec->env[i].name, exec->env[i].value);
    all[n] = kube_exec_info(config);
    return all;
}

static char **s_arguments(const kube_exec_t *exec)
{
    size_t count = 0;
    while (exec->args && exec->args[count])
        count++;
    char **all = tt_array0(count + 2, sizeof(char *));
    all[0] = exec->command;
    for (size_t i = 0; i < count; i++)
        all[1 + i] = exec->args[i];
    return all;
}

static tt_status_t s_result(const kube_exec_t *exec, const tt_program_end_t *end, kube_exec_credential_t *credential)
{
    const char *name = exec->command;
    if (end->late)
        return tt_err(TT_TIMEOUT, "credential plug-in %s: no answer within %d s", name, DEADLINE_MS / 1000);
    if (end->signal)
        return tt_err(TT_DENIED, "credential plug-in %s was killed by signal %d", name, end->signal);
    if (end->code != 0)
        return tt_err(TT_DENIED, "credential plug-in %s: exit code %d: %s", name, end->code, end->words);
    if (end->too_much)
        return tt_err(TT_DATA, "credential plug-in %s: more than %d bytes of output", name, OUTPUT_MAX);
    const tt_status_t status = kube_exec_read(credential, exec->api_version, end->output, end->size);
    return status == TT_OK ? TT_OK : tt_err_wrap(status, "credential plug-in %s", name);
}

static void s_on_end(void *ctx, const tt_program_end_t *end)
{
    kube_exec_run_t *self = ctx;
    kube_exec_credential_t credential = {0};
    const tt_status_t status = s_result(self->exec, end, &credential);
    self->done(self->ctx, status, &credential);
}

void kube_exec_destroy(kube_exec_run_t **self_p)
{
    if (*self_p)
        tt_program_destroy(&(*self_p)->program);
    free(*self_p);
    *self_p = NULL;
}

tt_status_t kube_exec_start(
    kube_exec_run_t **self_p, tt_reactor_t *loop, const kube_config_t *config, kube_exec_fn done, void *ctx)
{
    const kube_exec_t *exec = config->exec;
    const char *hint = exec->install_hint;
    char **args = s_arguments(exec), **env = s_environment(config);
    kube_exec_run_t *self = tt_new0(sizeof *self);
    *self = (kube_exec_run_t){.exec = exec, .done = done, .ctx = ctx};
    const tt_program_opts_t opts = {
        .args = args, .env = env, .output_max = OUTPUT_MAX, .deadline_ms = DEADLINE_MS, .done = s_on_end, .ctx = self};
    const tt_status_t status = tt_program_start(&self->program, loop, &opts);
    for (char **entry = env; *entry; entry++)
        free(*entry);
    free(env);
    free(args);
    *self_p = self;
    if (status == TT_OK)
        return TT_OK;
    kube_exec_destroy(self_p);
    return tt_err(status, "credential plug-in %s%s%s", tt_err_text(), hint ? ". " : "", hint ? hint : "");
}
