/*  reactor_curl - a reactor's libcurl multi handle, for who has transfers of its own. Threads: the reactor's. */
#pragma once
#include "common/http/curl.h"
#include "common/http/reactor.h"

/*  What CURLOPT_PRIVATE of an easy handle points at. */
typedef struct tt_transfer tt_transfer_t;
struct tt_transfer {
    void (*ended)(tt_transfer_t *self, CURLcode code); /* from tt_reactor_poll, outside of libcurl's own calls */
};

/*  The handle, made when first asked for. TT_UNSUPPORTED: libcurl is not installed. */
tt_status_t tt_reactor_multi(tt_reactor_t *self, const tt_curl_t **curl, CURLM **multi);
