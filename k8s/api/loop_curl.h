/*  loop_curl - the loop's libcurl multi handle, for the client. Not for others. Threads: the loop's. */
#pragma once
#include "k8s/api/curl_lib.h"
#include "k8s/api/loop.h"

/*  What CURLOPT_PRIVATE of an easy handle points at. */
typedef struct kube_transfer kube_transfer_t;
struct kube_transfer {
    void (*ended)(kube_transfer_t *self, CURLcode code); /* from kube_loop_poll, outside of libcurl's own calls */
};

/*  The handle, made when first asked for. TT_UNSUPPORTED: libcurl is not installed. */
tt_status_t kube_loop_multi(kube_loop_t *self, const kube_curl_t **curl, CURLM **multi);
