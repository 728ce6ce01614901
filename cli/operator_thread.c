#include "cli/operator_thread.h"
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "k8s/operator/operator.h"
#define TT_LOG_COMPONENT "operator_thread"
#include "common/base/log.h"

struct tt_operator_thread {
    operator_t *operator_;
    pthread_t thread;
    char *job, *manifest;
};

static const char *s_env(const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    return value && *value ? value : otherwise;
}

static void *s_thread(void *ctx)
{
    tt_operator_thread_t *self = ctx;
    if (operator_run(self->operator_) != TT_OK)
        log_error("the pods are not kept any more: %s", tt_err_text());
    return NULL;
}

static tt_status_t s_start_thread(tt_operator_thread_t *self)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    const int error = pthread_create(&self->thread, NULL, s_thread, self);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error ? tt_err(TT_OS, "no thread for the operator: %s", strerror(error)) : TT_OK;
}

static void s_free(tt_operator_thread_t *self)
{
    operator_destroy(&self->operator_);
    free(self->job);
    free(self->manifest);
    free(self);
}

tt_status_t tt_operator_thread_start(tt_operator_thread_t **self_p, const char *job)
{
    tt_operator_thread_t *self = tt_new0(sizeof *self);
    const char *file = strchr(job, '=');
    self->job = tt_strdup(job);
    if (file) {
        self->job[file - job] = '\0';
        self->manifest = tt_strdup(file + 1);
    }
    const operator_opts_t opts = {.namespace_ = s_env("KUBERNETES_POD_NAMESPACE", "default"),
        .only_job = self->job,
        .manifest = self->manifest,
        .own_pod = s_env("KUBERNETES_POD_NAME", s_env("HOSTNAME", "")),
        .listen = "",
        .probes = ""};
    tt_status_t status = operator_new(&self->operator_, &opts);
    if (status == TT_OK)
        status = s_start_thread(self);
    if (status == TT_OK)
        *self_p = self;
    else
        s_free(self);
    return status;
}

static void s_join(tt_operator_thread_t **self_p)
{
    pthread_join((*self_p)->thread, NULL);
    s_free(*self_p);
    *self_p = NULL;
}

void tt_operator_thread_end(tt_operator_thread_t **self_p, bool well)
{
    if (!*self_p)
        return;
    operator_end((*self_p)->operator_, well);
    s_join(self_p);
}

void tt_operator_thread_drop(tt_operator_thread_t **self_p)
{
    if (!*self_p)
        return;
    operator_stop((*self_p)->operator_);
    s_join(self_p);
}
