#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "common/base/buf.h"
#include "common/base/mem.h"
#include "common/base/base64.h"
#include "k8s/api/kubeconfig_parts.h"

enum { PEM_MAX = 1 << 20, ARGS_MAX = 256 };

/* ---- finding ----------------------------------------------------------------------------------------------------- */

/* The first file that has it wins; `list` is "clusters", `inner` "cluster". Of a file the first document counts, as with kubectl. */
static tt_status_t s_find(
    tt_manifest_t *const *files, size_t count, const char *list, const char *inner, const char *name, tt_node_t *out)
{
    for (size_t i = 0; i < count; i++) {
        const tt_node_t root = tt_node_of(files[i], 0);
        tt_node_t entries, entry;
        TT_TRY(tt_node_list(&root, list, &entries));
        for (size_t k = 0; (entry = tt_node_at(&entries, k)).value; k++) {
            const char *this = NULL;
            TT_TRY(tt_node_text(&entry, "name", &this));
            if (this && strcmp(this, name) == 0)
                return tt_node_map(&entry, inner, out);
        }
    }
    return tt_err(TT_CONFIG, "%s: there is no %s '%s' in it%s", tt_manifest_name(files[0]), inner, name,
        count > 1 ? ", nor in the other files of KUBECONFIG" : "");
}

/* --context, else the first current-context. */
static tt_status_t s_context_name(
    tt_manifest_t *const *files, size_t count, const kube_config_opts_t *opts, const char **out)
{
    *out = opts->context;
    for (size_t i = 0; i < count && !*out; i++) {
        const tt_node_t root = tt_node_of(files[i], 0);
        TT_TRY(tt_node_text(&root, "current-context", out));
    }
    return *out ? TT_OK
                : tt_err(TT_CONFIG, "%s: has no current-context; say which with --context", tt_manifest_name(files[0]));
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

/* Relative to its file. */
static char *s_path(const tt_node_t *at, const char *path)
{
    if (path[0] == '/')
        return tt_strdup(path);
    char *copy = tt_strdup(tt_manifest_name(at->file));
    char *full = tt_sprintf("%s/%s", dirname(copy), path);
    free(copy);
    return full;
}

static tt_status_t s_string(const tt_node_t *at, const char *key, char **out)
{
    const char *text = NULL;
    TT_TRY(tt_node_text(at, key, &text));
    *out = tt_strdup(text);
    return TT_OK;
}

tt_status_t kube_config_read_pem(const char *path, char **out)
{
    struct stat file;
    if (stat(path, &file) == 0 && !S_ISREG(file.st_mode))
        return tt_err(TT_CONFIG, "%s is not a file", path);
    tt_buf_t text;
    tt_buf_init(&text, PEM_MAX);
    tt_status_t status = tt_buf_read_file(&text, path);
    if (status == TT_OK && (!strstr(tt_buf_text(&text), "-----BEGIN ") || strlen(text.data) != text.size))
        status = tt_err(TT_CONFIG, "%s is not in PEM format", path);
    if (status == TT_OK)
        *out = tt_strdup(text.data);
    tt_buf_free(&text);
    return status;
}

/* A PEM text in base64. */
static tt_status_t s_decode(const tt_node_t *at, const char *key, const char *data, char **out)
{
    size_t size = 0;
    char *pem = tt_base64_decode(data, &size);
    if (pem && strlen(pem) == size && strstr(pem, "-----BEGIN ")) {
        *out = pem;
        return TT_OK;
    }
    free(pem);
    const tt_node_t member = tt_node_get(at, key);
    return tt_node_err(&member, TT_CONFIG, "%s is not a PEM text in base64", key);
}

/* KEY-data holds it in base64; KEY names a file with it. */
static tt_status_t s_pem(const tt_node_t *at, const char *key, char **out)
{
    char data_key[64];
    const char *data = NULL, *path = NULL;
    snprintf(data_key, sizeof data_key, "%s-data", key);
    TT_TRY(tt_node_text(at, data_key, &data));
    TT_TRY(tt_node_text(at, key, &path));
    if (data || !path)
        return data ? s_decode(at, data_key, data, out) : TT_OK;
    const tt_node_t member = tt_node_get(at, key);
    char *full = s_path(at, path);
    tt_status_t status = kube_config_read_pem(full, out);
    if (status != TT_OK)
        status = tt_node_err(&member, status, "%s: %s", key, tt_err_text());
    free(full);
    return status;
}

/* ---- exec -------------------------------------------------------------------------------------------------------- */

static tt_status_t s_args(kube_exec_t *exec, const tt_node_t *at)
{
    tt_node_t list, item;
    TT_TRY(tt_node_list(at, "args", &list));
    size_t count = 0;
    exec->args = tt_array0(ARGS_MAX + 1, sizeof(char *));
    for (; (item = tt_node_at(&list, count)).value; count++) {
        if (!json_is_string(item.value) || count >= ARGS_MAX)
            return tt_node_err(&item, TT_CONFIG, "args must be at most %d texts; numbers in quotes", ARGS_MAX);
        exec->args[count] = tt_strdup(json_string_value(item.value));
    }
    exec->args = tt_realloc(exec->args, (count + 1) * sizeof(char *));
    return TT_OK;
}

static tt_status_t s_env(kube_exec_t *exec, const tt_node_t *at)
{
    tt_node_t list, item;
    TT_TRY(tt_node_list(at, "env", &list));
    exec->env = tt_array0(ARGS_MAX, sizeof *exec->env);
    for (; (item = tt_node_at(&list, exec->env_count)).value; exec->env_count++) {
        const char *name = NULL, *value = "";
        TT_TRY(tt_node_text(&item, "name", &name));
        TT_TRY(tt_node_text(&item, "value", &value));
        if (!name || strchr(name, '=') || exec->env_count >= ARGS_MAX)
            return tt_node_err(&item, TT_CONFIG, "env must be at most %d pairs of name and value", ARGS_MAX);
        exec->env[exec->env_count] = (kube_env_t){tt_strdup(name), tt_strdup(value)};
    }
    return TT_OK;
}

static tt_status_t s_exec_command(kube_exec_t *exec, const tt_node_t *at)
{
    const char *command = NULL;
    TT_TRY(tt_node_text(at, "command", &command));
    if (!command)
        return tt_node_err(at, TT_CONFIG, "exec has no command");
    exec->command = strchr(command, '/') ? s_path(at, command) : tt_strdup(command);
    return TT_OK;
}

static tt_status_t s_exec_version(kube_exec_t *exec, const tt_node_t *at)
{
    TT_TRY(s_string(at, "apiVersion", &exec->api_version));
    const char *version = exec->api_version ? exec->api_version : "nothing";
    if (strcmp(version, "client.authentication.k8s.io/v1") != 0 &&
        strcmp(version, "client.authentication.k8s.io/v1beta1") != 0)
        return tt_node_err(
            at, TT_UNSUPPORTED, "exec: apiVersion must be client.authentication.k8s.io/v1 or v1beta1, not %s", version);
    const char *mode = NULL;
    TT_TRY(tt_node_text(at, "interactiveMode", &mode));
    if (mode && strcmp(mode, "Always") == 0)
        return tt_node_err(at, TT_UNSUPPORTED, "exec: interactiveMode Always needs a terminal, and we have none");
    return TT_OK;
}

static tt_status_t s_exec(kube_config_t *self, const tt_node_t *user)
{
    tt_node_t at;
    TT_TRY(tt_node_map(user, "exec", &at));
    if (!at.value)
        return TT_OK;
    self->exec = tt_new0(sizeof *self->exec);
    TT_TRY(s_exec_version(self->exec, &at));
    TT_TRY(s_exec_command(self->exec, &at));
    TT_TRY(s_args(self->exec, &at));
    TT_TRY(s_env(self->exec, &at));
    TT_TRY(s_string(&at, "installHint", &self->exec->install_hint));
    return tt_node_bool(&at, "provideClusterInfo", &self->exec->provide_cluster_info);
}

/* ---- cluster, user, context -------------------------------------------------------------------------------------- */

static tt_status_t s_cluster(kube_config_t *self, const tt_node_t *at)
{
    TT_TRY(s_string(at, "server", &self->server));
    if (!self->server)
        return tt_node_err(at, TT_CONFIG, "the cluster has no server");
    if (strncmp(self->server, "https://", 8) != 0 && strncmp(self->server, "http://", 7) != 0) {
        const tt_node_t server = tt_node_get(at, "server");
        return tt_node_err(&server, TT_CONFIG, "server '%s' is not a URL like https://HOST:PORT", self->server);
    }
    for (size_t n = strlen(self->server); n > 0 && self->server[n - 1] == '/'; n--)
        self->server[n - 1] = 0;
    TT_TRY(s_pem(at, "certificate-authority", &self->ca_pem));
    TT_TRY(s_string(at, "tls-server-name", &self->tls_server_name));
    TT_TRY(s_string(at, "proxy-url", &self->proxy_url));
    return tt_node_bool(at, "insecure-skip-tls-verify", &self->insecure);
}

/* What would make us somebody else than the file says, did we pass it over. */
static tt_status_t s_unsupported(const tt_node_t *at)
{
    static const char *const keys[] = {"auth-provider", "as", "as-uid", "as-groups", "as-user-extra"};
    for (size_t i = 0; i < TT_COUNT(keys); i++) {
        const tt_node_t member = tt_node_get(at, keys[i]);
        if (member.value)
            return tt_node_err(&member, TT_UNSUPPORTED, "%s is not supported%s", keys[i],
                i == 0 ? "; Kubernetes itself has dropped it in favour of exec" : "");
    }
    return TT_OK;
}

static tt_status_t s_user(kube_config_t *self, const tt_node_t *at)
{
    TT_TRY(s_unsupported(at));
    TT_TRY(s_pem(at, "client-certificate", &self->cert_pem));
    TT_TRY(s_pem(at, "client-key", &self->key_pem));
    if (!self->cert_pem != !self->key_pem)
        return tt_node_err(at, TT_CONFIG, "client-certificate and client-key need each other");
    TT_TRY(s_string(at, "token", &self->token));
    const char *file = NULL;
    TT_TRY(tt_node_text(at, "tokenFile", &file));
    self->token_file = file ? s_path(at, file) : NULL;
    TT_TRY(s_string(at, "username", &self->username));
    TT_TRY(s_string(at, "password", &self->password));
    return s_exec(self, at);
}

static tt_status_t s_fill(
    kube_config_t *self, tt_manifest_t *const *files, size_t count, const kube_config_opts_t *opts)
{
    const char *name = NULL, *cluster = NULL, *user = NULL, *namespace_ = opts->namespace_;
    tt_node_t context, found;
    TT_TRY(s_context_name(files, count, opts, &name));
    TT_TRY(s_find(files, count, "contexts", "context", name, &context));
    self->context = tt_strdup(name);
    TT_TRY(tt_node_text(&context, "cluster", &cluster));
    TT_TRY(tt_node_text(&context, "user", &user));
    if (!cluster)
        return tt_node_err(&context, TT_CONFIG, "context '%s' names no cluster", name);
    if (!namespace_)
        TT_TRY(tt_node_text(&context, "namespace", &namespace_));
    self->namespace_ = tt_strdup(namespace_ ? namespace_ : "default");
    TT_TRY(s_find(files, count, "clusters", "cluster", cluster, &found));
    TT_TRY(s_cluster(self, &found));
    if (!user)
        return TT_OK;
    TT_TRY(s_find(files, count, "users", "user", user, &found));
    return s_user(self, &found);
}

tt_status_t kube_config_from_files(
    kube_config_t **self_p, tt_manifest_t *const *files, size_t count, const kube_config_opts_t *opts)
{
    kube_config_t *self = tt_new0(sizeof *self);
    const tt_status_t status = s_fill(self, files, count, opts);
    if (status == TT_OK)
        *self_p = self;
    else
        kube_config_destroy(&self);
    return status;
}
