/*  api_server - the Python server of server.py as a child of a test, and configurations that reach it. */
#pragma once
#include "k8s/api/kubeconfig.h"
#include "tests/k8s/api/child.h"

typedef struct {
    char folder[64]; /* ca.crt, client.crt, client.key, accepted; gone with the server */
    child_t child;
} api_server_t;

void api_server_start(api_server_t *self);
void api_server_stop(api_server_t *self);
/*  A configuration with the server's address and CA; the rest is the caller's. */
kube_config_t *api_server_config(const api_server_t *self);
/*  A file of its folder, as text; and writing one (by rename, as a kubelet does). */
char *api_server_read(const api_server_t *self, const char *name);
void api_server_write(const api_server_t *self, const char *name, const char *text);
/*  FOLDER/name. Caller frees. */
char *api_server_path(const api_server_t *self, const char *name);
