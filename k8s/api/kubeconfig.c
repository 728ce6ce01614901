#include "k8s/api/kubeconfig.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/buf.h"
#include "common/base/mem.h"
#include "k8s/api/kubeconfig_parts.h"

enum { FILES_MAX = 32, NAME_MAX_ = 253 };

static const char s_account[] = "/var/run/secrets/kubernetes.io/serviceaccount";

/* ---- destroying -------------------------------------------------------------------------------------------------- */

static void s_exec_destroy(kube_exec_t *exec)
{
    if (!exec)
        return;
    for (size_t i = 0; exec->args && exec->args[i]; i++)
        free(exec->args[i]);
    for (size_t i = 0; i < exec->env_count; i++) {
        free(exec->env[i].name);
        free(exec->env[i].value);
    }
    free(exec->args);
    free(exec->env);
    free(exec->api_version);
    free(exec->command);
    free(exec->install_hint);
    free(exec);
}

void kube_config_destroy(kube_config_t **self_p)
{
    kube_config_t *self = *self_p;
    if (!self)
        return;
    char *const texts[] = {self->server, self->context, self->namespace_, self->ca_pem, self->tls_server_name,
        self->proxy_url, self->cert_pem, self->key_pem, self->token, self->token_file, self->username, self->password};
    for (size_t i = 0; i < TT_COUNT(texts); i++)
        free(texts[i]);
    s_exec_destroy(self->exec);
    free(self);
    *self_p = NULL;
}

/* ---- inside a pod ------------------------------------------------------------------------------------------------ */

static char *s_namespace(const char *folder, const kube_config_opts_t *opts)
{
    if (opts->namespace_)
        return tt_strdup(opts->namespace_);
    char *path = tt_sprintf("%s/namespace", folder);
    tt_buf_t text;
    tt_buf_init(&text, NAME_MAX_ + 2);
    char *name = NULL;
    if (tt_buf_read_file(&text, path) == TT_OK && strcspn(tt_buf_text(&text), "\r\n") > 0)
        name = tt_sprintf("%.*s", (int)strcspn(text.data, "\r\n"), text.data);
    tt_buf_free(&text);
    free(path);
    return name ? name : tt_strdup("default");
}

tt_status_t kube_config_in_cluster(
    kube_config_t **self_p, const char *host, const char *port, const char *folder, const kube_config_opts_t *opts)
{
    kube_config_t *self = tt_new0(sizeof *self);
    char *ca = tt_sprintf("%s/ca.crt", folder);
    const bool six = strchr(host, ':') != NULL;
    self->server = tt_sprintf("https://%s%s%s:%s", six ? "[" : "", host, six ? "]" : "", port);
    self->context = tt_strdup("in-cluster");
    self->token_file = tt_sprintf("%s/token", folder);
    self->namespace_ = s_namespace(folder, opts);
    const tt_status_t status = kube_config_read_pem(ca, &self->ca_pem);
    free(ca);
    if (status == TT_OK)
        *self_p = self;
    else
        kube_config_destroy(&self);
    return status;
}

/* ---- looking ----------------------------------------------------------------------------------------------------- */

/* Files of a list parted by colons; those that are not there are passed over. */
static tt_status_t s_read_all(tt_manifest_t **files, size_t *count, const char *list)
{
    char *copy = tt_strdup(list), *rest = NULL;
    tt_status_t status = TT_OK;
    for (char *path = strtok_r(copy, ":", &rest); path && status == TT_OK; path = strtok_r(NULL, ":", &rest)) {
        if (*count == FILES_MAX)
            status = tt_err(TT_CONFIG, "KUBECONFIG names more than %d files", FILES_MAX);
        else if ((status = tt_manifest_load(&files[*count], path)) == TT_OK)
            (*count)++;
        else if (status == TT_NOT_FOUND)
            status = TT_OK;
    }
    free(copy);
    return status;
}

/* TT_NOT_FOUND: none of them is there. */
static tt_status_t s_from_list(kube_config_t **self_p, const char *list, const kube_config_opts_t *opts)
{
    tt_manifest_t *files[FILES_MAX] = {0};
    size_t count = 0;
    tt_status_t status = s_read_all(files, &count, list);
    if (status == TT_OK && count == 0)
        status = tt_err(TT_NOT_FOUND, "KUBECONFIG is '%s', and there is no such file", list);
    if (status == TT_OK)
        status = kube_config_from_files(self_p, files, count, opts);
    for (size_t i = 0; i < count; i++)
        tt_manifest_destroy(&files[i]);
    return status;
}

static tt_status_t s_from_file(kube_config_t **self_p, const char *path, const kube_config_opts_t *opts)
{
    tt_manifest_t *file = NULL;
    TT_TRY(tt_manifest_load(&file, path));
    const tt_status_t status = kube_config_from_files(self_p, &file, 1, opts);
    tt_manifest_destroy(&file);
    return status;
}

tt_status_t kube_config_load(kube_config_t **self_p, const kube_config_opts_t *opts)
{
    static const kube_config_opts_t none = {0};
    const char *list = getenv("KUBECONFIG"), *host = getenv("KUBERNETES_SERVICE_HOST"), *home = getenv("HOME");
    const char *port = getenv("KUBERNETES_SERVICE_PORT");
    opts = opts ? opts : &none;
    if (opts->path)
        return s_from_file(self_p, opts->path, opts);
    if (list && *list)
        return s_from_list(self_p, list, opts);
    if (!opts->context && host && *host && access(s_account, F_OK) == 0)
        return kube_config_in_cluster(self_p, host, port && *port ? port : "443", s_account, opts);
    char *path = tt_sprintf("%s/.kube/config", home ? home : "");
    tt_status_t status = s_from_file(self_p, path, opts);
    if (status == TT_NOT_FOUND && access(path, F_OK) != 0)
        status = tt_err(TT_NOT_FOUND, "no configuration for Kubernetes: neither --kubeconfig, nor KUBECONFIG, nor %s%s",
            opts->context ? "" : "a pod's service account, nor ", path);
    free(path);
    return status;
}
