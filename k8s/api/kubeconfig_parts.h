/*  kubeconfig_parts - the places a configuration may come from, one by one; for kubeconfig.c, tests and fuzzing.
 *  Threads: as kubeconfig.h. */
#pragma once
#include "k8s/api/kubeconfig.h"
#include "common/config/node.h"

/*  From files, merged. Borrows them. TT_CONFIG, TT_UNSUPPORTED, TT_NOT_FOUND (a file that one of them names). */
tt_status_t kube_config_from_files(
    kube_config_t **self_p, tt_manifest_t *const *files, size_t count, const kube_config_opts_t *opts);
/*  Inside a pod: KUBERNETES_SERVICE_HOST and _PORT, and the service account's folder. */
tt_status_t kube_config_in_cluster(
    kube_config_t **self_p, const char *host, const char *port, const char *folder, const kube_config_opts_t *opts);
/*  A PEM file, as a text. TT_NOT_FOUND, TT_IO, TT_CONFIG (no PEM). Caller frees. */
tt_status_t kube_config_read_pem(const char *path, char **out);
