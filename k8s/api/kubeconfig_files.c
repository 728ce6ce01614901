#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "common/base/buf.h"
#include "common/base/mem.h"
#include "common/base/base64.h"
#include "k8s/api/kubeconfig_parts.h"

enum { PEM_MAX = 1 << 20, ARGS_MAX = 256 };

/* A thing that was found by its name: in which file, and where. */
typedef struct {
    tt_yaml_t *file;
    tt_yaml_node_t node;
} found_t;

/* ---- finding ----------------------------------------------------------------------------------------------------- */

/* The first file that has it wins; `list` is "clusters", `inner` "cluster". */
static tt_status_t s_find(
    tt_yaml_t *const *files, size_t count, const char *list, const char *inner, const char *name, found_t *out)
{
    for (size_t i = 0; i < count; i++) {
        tt_yaml_node_t entries = NULL, entry = NULL;
        TT_TRY(tt_yaml_list(files[i], tt_yaml_root(files[i]), list, &entries));
        for (size_t k = 0; (entry = tt_yaml_at(files[i], entries, k)) != NULL; k++) {
            const char *this = NULL;
            TT_TRY(tt_yaml_text(files[i], entry, "name", &this));
            if (!this || strcmp(this, name) != 0)
                continue;
            out->file = files[i];
            return tt_yaml_map(files[i], entry, inner, &out->node);
        }
    }
    return tt_err(TT_CONFIG, "%s: there is no %s '%s' in it%s", files[0]->path, inner, name,
        count > 1 ? ", nor in the other files of KUBECONFIG" : "");
}

/* --context, else the first current-context. */
static tt_status_t s_context_name(
    tt_yaml_t *const *files, size_t count, const kube_config_opts_t *opts, const char **out)
{
    if (opts->context) {
        *out = opts->context;
        return TT_OK;
    }
    for (size_t i = 0; i < count; i++) {
        const char *name = NULL;
        TT_TRY(tt_yaml_text(files[i], tt_yaml_root(files[i]), "current-context", &name));
        if (name) {
            *out = name;
            return TT_OK;
        }
    }
    return tt_err(TT_CONFIG, "%s: has no current-context; say which with --context", files[0]->path);
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

/* Relative to its file. */
static char *s_path(const tt_yaml_t *file, const char *path)
{
    if (path[0] == '/')
        return tt_strdup(path);
    char *copy = tt_strdup(file->path);
    char *full = tt_sprintf("%s/%s", dirname(copy), path);
    free(copy);
    return full;
}

static tt_status_t s_string(const found_t *at, const char *key, char **out)
{
    const char *text = NULL;
    TT_TRY(tt_yaml_text(at->file, at->node, key, &text));
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

/* KEY-data holds it in base64; KEY names a file with it. */
static tt_status_t s_pem(const found_t *at, const char *key, char **out)
{
    char *data_key = tt_sprintf("%s-data", key);
    const char *data = NULL, *path = NULL;
    tt_status_t status = tt_yaml_text(at->file, at->node, data_key, &data);
    if (status == TT_OK)
        status = tt_yaml_text(at->file, at->node, key, &path);
    if (status == TT_OK && data) {
        size_t size = 0;
        char *pem = tt_base64_decode(data, &size);
        if (pem && strlen(pem) == size && strstr(pem, "-----BEGIN "))
            *out = pem;
        else {
            free(pem);
            status = tt_yaml_err(at->file, tt_yaml_get(at->file, at->node, data_key), TT_CONFIG,
                "%s is not a PEM text in base64", data_key);
        }
    } else if (status == TT_OK && path) {
        char *full = s_path(at->file, path);
        status = kube_config_read_pem(full, out);
        if (status != TT_OK)
            (void)tt_yaml_err(at->file, tt_yaml_get(at->file, at->node, key), status, "%s: %s", key, tt_err_text());
        free(full);
    }
    free(data_key);
    return status;
}

/* ---- exec -------------------------------------------------------------------------------------------------------- */

static tt_status_t s_args(kube_exec_t *exec, const found_t *at)
{
    tt_yaml_node_t list = NULL, item = NULL;
    TT_TRY(tt_yaml_list(at->file, at->node, "args", &list));
    size_t count = 0;
    exec->args = tt_array0(ARGS_MAX + 1, sizeof(char *));
    for (; (item = tt_yaml_at(at->file, list, count)) != NULL; count++) {
        if (item->type != YAML_SCALAR_NODE || count >= ARGS_MAX)
            return tt_yaml_err(at->file, item, TT_CONFIG, "args must be at most %d texts", ARGS_MAX);
        exec->args[count] = tt_strdup((const char *)item->data.scalar.value);
    }
    exec->args = tt_realloc(exec->args, (count + 1) * sizeof(char *));
    return TT_OK;
}

static tt_status_t s_env(kube_exec_t *exec, const found_t *at)
{
    tt_yaml_node_t list = NULL, item = NULL;
    TT_TRY(tt_yaml_list(at->file, at->node, "env", &list));
    exec->env = tt_array0(ARGS_MAX, sizeof *exec->env);
    for (; (item = tt_yaml_at(at->file, list, exec->env_count)) != NULL; exec->env_count++) {
        const char *name = NULL, *value = "";
        TT_TRY(tt_yaml_text(at->file, item, "name", &name));
        TT_TRY(tt_yaml_text(at->file, item, "value", &value));
        if (!name || strchr(name, '=') || exec->env_count >= ARGS_MAX)
            return tt_yaml_err(at->file, item, TT_CONFIG, "env must be at most %d pairs of name and value", ARGS_MAX);
        exec->env[exec->env_count] = (kube_env_t){tt_strdup(name), tt_strdup(value)};
    }
    return TT_OK;
}

static tt_status_t s_exec_command(kube_exec_t *exec, const found_t *at)
{
    const char *command = NULL;
    TT_TRY(tt_yaml_text(at->file, at->node, "command", &command));
    if (!command)
        return tt_yaml_err(at->file, at->node, TT_CONFIG, "exec has no command");
    exec->command = strchr(command, '/') ? s_path(at->file, command) : tt_strdup(command);
    return TT_OK;
}

static tt_status_t s_exec_version(kube_exec_t *exec, const found_t *at)
{
    TT_TRY(s_string(at, "apiVersion", &exec->api_version));
    const char *version = exec->api_version ? exec->api_version : "nothing";
    if (strcmp(version, "client.authentication.k8s.io/v1") != 0 &&
        strcmp(version, "client.authentication.k8s.io/v1beta1") != 0)
        return tt_yaml_err(at->file, at->node, TT_UNSUPPORTED,
            "exec: apiVersion must be client.authentication.k8s.io/v1 or v1beta1, not %s", version);
    const char *mode = NULL;
    TT_TRY(tt_yaml_text(at->file, at->node, "interactiveMode", &mode));
    if (mode && strcmp(mode, "Always") == 0)
        return tt_yaml_err(
            at->file, at->node, TT_UNSUPPORTED, "exec: interactiveMode Always needs a terminal, and we have none");
    return TT_OK;
}

static tt_status_t s_exec(kube_config_t *self, const found_t *user)
{
    found_t at = {.file = user->file};
    TT_TRY(tt_yaml_map(user->file, user->node, "exec", &at.node));
    if (!at.node)
        return TT_OK;
    self->exec = tt_new0(sizeof *self->exec);
    TT_TRY(s_exec_version(self->exec, &at));
    TT_TRY(s_exec_command(self->exec, &at));
    TT_TRY(s_args(self->exec, &at));
    TT_TRY(s_env(self->exec, &at));
    TT_TRY(s_string(&at, "installHint", &self->exec->install_hint));
    return tt_yaml_bool(at.file, at.node, "provideClusterInfo", &self->exec->provide_cluster_info);
}

/* ---- cluster, user, context -------------------------------------------------------------------------------------- */

static tt_status_t s_cluster(kube_config_t *self, const found_t *at)
{
    TT_TRY(s_string(at, "server", &self->server));
    if (!self->server)
        return tt_yaml_err(at->file, at->node, TT_CONFIG, "the cluster has no server");
    if (strncmp(self->server, "https://", 8) != 0 && strncmp(self->server, "http://", 7) != 0)
        return tt_yaml_err(at->file, tt_yaml_get(at->file, at->node, "server"), TT_CONFIG,
            "server '%s' is not a URL like https://HOST:PORT", self->server);
    for (size_t n = strlen(self->server); n > 0 && self->server[n - 1] == '/'; n--)
        self->server[n - 1] = 0;
    TT_TRY(s_pem(at, "certificate-authority", &self->ca_pem));
    TT_TRY(s_string(at, "tls-server-name", &self->tls_server_name));
    TT_TRY(s_string(at, "proxy-url", &self->proxy_url));
    return tt_yaml_bool(at->file, at->node, "insecure-skip-tls-verify", &self->insecure);
}

/* What would make us somebody else than the file says, did we pass it over. */
static tt_status_t s_unsupported(const found_t *at)
{
    static const char *const keys[] = {"auth-provider", "as", "as-uid", "as-groups", "as-user-extra"};
    for (size_t i = 0; i < TT_COUNT(keys); i++) {
        tt_yaml_node_t node = tt_yaml_get(at->file, at->node, keys[i]);
        if (node)
            return tt_yaml_err(at->file, node, TT_UNSUPPORTED, "%s is not supported%s", keys[i],
                i == 0 ? "; Kubernetes itself has dropped it in favour of exec" : "");
    }
    return TT_OK;
}

static tt_status_t s_user(kube_config_t *self, const found_t *at)
{
    TT_TRY(s_unsupported(at));
    TT_TRY(s_pem(at, "client-certificate", &self->cert_pem));
    TT_TRY(s_pem(at, "client-key", &self->key_pem));
    if (!self->cert_pem != !self->key_pem)
        return tt_yaml_err(at->file, at->node, TT_CONFIG, "client-certificate and client-key need each other");
    TT_TRY(s_string(at, "token", &self->token));
    const char *file = NULL;
    TT_TRY(tt_yaml_text(at->file, at->node, "tokenFile", &file));
    self->token_file = file ? s_path(at->file, file) : NULL;
    TT_TRY(s_string(at, "username", &self->username));
    TT_TRY(s_string(at, "password", &self->password));
    return s_exec(self, at);
}

static tt_status_t s_fill(kube_config_t *self, tt_yaml_t *const *files, size_t count, const kube_config_opts_t *opts)
{
    const char *name = NULL, *cluster = NULL, *user = NULL, *namespace_ = opts->namespace_;
    found_t context = {0}, found = {0};
    TT_TRY(s_context_name(files, count, opts, &name));
    TT_TRY(s_find(files, count, "contexts", "context", name, &context));
    self->context = tt_strdup(name);
    TT_TRY(tt_yaml_text(context.file, context.node, "cluster", &cluster));
    TT_TRY(tt_yaml_text(context.file, context.node, "user", &user));
    if (!cluster)
        return tt_yaml_err(context.file, context.node, TT_CONFIG, "context '%s' names no cluster", name);
    if (!namespace_)
        TT_TRY(tt_yaml_text(context.file, context.node, "namespace", &namespace_));
    self->namespace_ = tt_strdup(namespace_ ? namespace_ : "default");
    TT_TRY(s_find(files, count, "clusters", "cluster", cluster, &found));
    TT_TRY(s_cluster(self, &found));
    if (!user)
        return TT_OK;
    TT_TRY(s_find(files, count, "users", "user", user, &found));
    return s_user(self, &found);
}

tt_status_t kube_config_from_files(
    kube_config_t **self_p, tt_yaml_t *const *files, size_t count, const kube_config_opts_t *opts)
{
    kube_config_t *self = tt_new0(sizeof *self);
    const tt_status_t status = s_fill(self, files, count, opts);
    if (status == TT_OK)
        *self_p = self;
    else
        kube_config_destroy(&self);
    return status;
}
