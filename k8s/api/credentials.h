/*  credentials - what we say of ourselves to the API server, made anew when it is old.
 *
 *  A certificate, a token or a password stands in the configuration and stays. A token file is looked at again every
 *  second (a kubelet replaces it long before its token ends). An exec plug-in runs beside the loop, with 60 s to answer;
 *  its answer is good until its expiry.
 *
 *  Threads: the loop's. */
#pragma once
#include <stdint.h>
#include "k8s/api/kubeconfig.h"
#include "common/http/reactor.h"

typedef struct kube_credentials kube_credentials_t; /* opaque */

/*  Any of them may be NULL. Borrowed until the loop's next turn. */
typedef struct {
    const char *token, *username, *password, *cert_pem, *key_pem;
    uint64_t version; /* of these; rises when they change */
} kube_identity_t;

/*  changed: a run of the plug-in is over, well or not; ask again. Borrows loop and config. */
tt_status_t kube_credentials_new(kube_credentials_t **self_p, tt_reactor_t *loop, const kube_config_t *config,
    void (*changed)(void *ctx), void *ctx);
/*  A plug-in that runs is killed. */
void kube_credentials_destroy(kube_credentials_t **self_p);

/*  TT_AGAIN: they are being made, changed() will tell. Anything else: there are none, and the text says why. */
tt_status_t kube_credentials_get(kube_credentials_t *self, kube_identity_t *out);

/*  The server refused those of `version`. True: there are others, or will be; ask again. A plug-in whose answer to a
 *  refusal was refused as well is not run again before 5 s have passed. */
bool kube_credentials_refused(kube_credentials_t *self, uint64_t version);
