#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <jansson.h>
#include "common/base/mem.h"
#include "common/base/when.h"
#include "common/base/base64.h"
#include "k8s/api/exec.h"

/* ---- in ---------------------------------------------------------------------------------------------------------- */

static void s_set(json_t *object, const char *key, const char *value)
{
    if (value)
        json_object_set_new(object, key, json_string(value));
}

/* The cluster, for plug-ins that ask for it. */
static json_t *s_cluster(const kube_config_t *config)
{
    json_t *cluster = json_object();
    s_set(cluster, "server", config->server);
    s_set(cluster, "tls-server-name", config->tls_server_name);
    s_set(cluster, "proxy-url", config->proxy_url);
    if (config->insecure)
        json_object_set_new(cluster, "insecure-skip-tls-verify", json_true());
    if (config->ca_pem) {
        char *data = tt_base64_encode(config->ca_pem, strlen(config->ca_pem));
        s_set(cluster, "certificate-authority-data", data);
        free(data);
    }
    json_object_set_new(cluster, "config", json_null());
    return cluster;
}

char *kube_exec_info(const kube_config_t *config)
{
    json_t *spec = json_pack("{s:b}", "interactive", 0);
    if (config->exec->provide_cluster_info)
        json_object_set_new(spec, "cluster", s_cluster(config));
    json_t *info =
        json_pack("{s:s, s:s, s:o}", "apiVersion", config->exec->api_version, "kind", "ExecCredential", "spec", spec);
    TT_CHECK(info != NULL);
    char *text = json_dumps(info, JSON_COMPACT);
    char *line = tt_sprintf("KUBERNETES_EXEC_INFO=%s", text);
    free(text);
    json_decref(info);
    return line;
}

/* ---- out --------------------------------------------------------------------------------------------------------- */

void kube_exec_credential_clear(kube_exec_credential_t *self)
{
    free(self->token);
    free(self->cert_pem);
    free(self->key_pem);
    *self = (kube_exec_credential_t){0};
}

/* status.KEY, a text, "" as absent. */
static tt_status_t s_text(const json_t *status, const char *key, char **out)
{
    const json_t *value = json_object_get(status, key);
    if (value && !json_is_null(value) && !json_is_string(value))
        return tt_err(TT_DATA, "its status.%s is not a text", key);
    const char *text = json_string_value(value);
    *out = text && *text ? tt_strdup(text) : NULL;
    return TT_OK;
}

static tt_status_t s_status(kube_exec_credential_t *out, const json_t *status)
{
    char *expires = NULL;
    TT_TRY(s_text(status, "token", &out->token));
    TT_TRY(s_text(status, "clientCertificateData", &out->cert_pem));
    TT_TRY(s_text(status, "clientKeyData", &out->key_pem));
    TT_TRY(s_text(status, "expirationTimestamp", &expires));
    const tt_status_t timed = !expires || tt_when_read(&out->expires_s, expires)
                                  ? TT_OK
                                  : tt_err(TT_DATA,
                                        "its status.expirationTimestamp: '%.40s' is not a time like "
                                        "2026-01-31T12:00:00Z",
                                        expires);
    free(expires);
    TT_TRY(timed);
    if (!out->cert_pem != !out->key_pem)
        return tt_err(
            TT_DATA, "its status has one of clientCertificateData and clientKeyData, and they need each other");
    if (!out->token && !out->cert_pem)
        return tt_err(TT_DATA, "its status has neither token nor clientCertificateData");
    for (const char *c = out->token ? out->token : ""; *c; c++)
        if ((unsigned char)*c <= ' ' || *c == 127)
            return tt_err(TT_DATA, "its status.token has white space in it");
    return TT_OK;
}

tt_status_t kube_exec_read(kube_exec_credential_t *out, const char *api_version, const char *json, size_t size)
{
    json_error_t error;
    json_t *root = json_loadb(json, size, 0, &error);
    if (!root)
        return tt_err(TT_DATA, "its output is not JSON: line %d: %s", error.line, error.text);
    const char *kind = json_string_value(json_object_get(root, "kind"));
    const char *version = json_string_value(json_object_get(root, "apiVersion"));
    kube_exec_credential_t credential = {0};
    tt_status_t status = TT_OK;
    if (!kind || strcmp(kind, "ExecCredential") != 0)
        status = tt_err(TT_DATA, "its output is not an ExecCredential");
    else if (!version || strcmp(version, api_version) != 0)
        status = tt_err(
            TT_DATA, "its output is of apiVersion %s, and %s was asked for", version ? version : "none", api_version);
    else
        status = s_status(&credential, json_object_get(root, "status"));
    json_decref(root);
    if (status == TT_OK)
        *out = credential;
    else
        kube_exec_credential_clear(&credential);
    return status;
}
