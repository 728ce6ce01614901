/*  exec - runs a credential plug-in (client.authentication.k8s.io) without blocking the loop.
 *
 *  The program (common/http/program.h) gets our environment, what the configuration adds to it, and KUBERNETES_EXEC_INFO; it has
 *  60 s, and room for 1 MiB of output.
 *
 *  Source: https://kubernetes.io/docs/reference/config-api/client-authentication.v1/
 *  Threads: the loop's. */
#pragma once
#include <stdint.h>
#include "k8s/api/kubeconfig.h"
#include "common/http/reactor.h"

typedef struct kube_exec_run kube_exec_run_t; /* opaque */

/*  What the plug-in answered. */
typedef struct {
    char *token, *cert_pem, *key_pem; /* NULL where it gave none */
    int64_t expires_s;                /* Unix; 0 = never         */
} kube_exec_credential_t;
void kube_exec_credential_clear(kube_exec_credential_t *self);

/*  It is over: TT_OK, and the credential is the called one's to clear; else tt_err_text() says why. The run is to be
 *  destroyed after this (or within it). */
typedef void (*kube_exec_fn)(void *ctx, tt_status_t status, kube_exec_credential_t *credential);

/*  Start it. Borrows loop and config. TT_NOT_FOUND: there is no such program; TT_OS. */
tt_status_t kube_exec_start(
    kube_exec_run_t **self_p, tt_reactor_t *loop, const kube_config_t *config, kube_exec_fn done, void *ctx);
/*  Killed when it runs still, without a call. */
void kube_exec_destroy(kube_exec_run_t **self_p);

/* ---- exec_data.c: what goes in and comes out --------------------------------------------------------------------- */

/*  "KUBERNETES_EXEC_INFO={...}". Caller frees. */
char *kube_exec_info(const kube_config_t *config);
/*  Read an ExecCredential, which must be of the apiVersion that the configuration has. TT_DATA. */
tt_status_t kube_exec_read(kube_exec_credential_t *out, const char *api_version, const char *json, size_t size);
