/*  kubeconfig - which API server, and who we are there.
 *
 *  Read from, in this order: `path`; the files of $KUBECONFIG (merged: the first that says a thing wins); inside a pod
 *  its service account (KUBERNETES_SERVICE_HOST, /var/run/secrets/kubernetes.io/serviceaccount), unless a context is
 *  named, as it has none; ~/.kube/config.
 *  Every *-data field is decoded, every relative path is relative to its file. Errors name file, line and key.
 *  Threads: an instance is read-only once made. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include "common/base/status.h"

typedef struct {
    char *name, *value;
} kube_env_t;

/*  A program that makes credentials (client.authentication.k8s.io v1 and v1beta1, ExecCredential). */
typedef struct {
    char *api_version, *command, *install_hint;
    char **args; /* NULL-terminated */
    kube_env_t *env;
    size_t env_count;
    bool provide_cluster_info;
} kube_exec_t;

typedef struct {
    char *server;     /* "https://10.0.0.1:6443", no slash at the end           */
    char *context;    /* name of the context in use; "in-cluster" inside a pod  */
    char *namespace_; /* never NULL: "default" where nothing says otherwise     */
    char *ca_pem;     /* NULL = the system's                                    */
    char *tls_server_name, *proxy_url;
    bool insecure;            /* insecure-skip-tls-verify                               */
    char *cert_pem, *key_pem; /* client certificate; NULL = none                        */
    char *token, *token_file; /* the file is read again when it changes (rotation)      */
    char *username, *password;
    kube_exec_t *exec; /* NULL = none */
} kube_config_t;

typedef struct {
    const char *path;       /* --kubeconfig; NULL = look for it  */
    const char *context;    /* NULL = current-context            */
    const char *namespace_; /* NULL = the context's              */
} kube_config_opts_t;

/*  TT_NOT_FOUND: none anywhere (the text says where we looked); TT_CONFIG: file:line: what; TT_UNSUPPORTED: an auth
 *  provider that upstream has removed. */
tt_status_t kube_config_load(kube_config_t **self_p, const kube_config_opts_t *opts);
void kube_config_destroy(kube_config_t **self_p);
