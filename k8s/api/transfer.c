#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "k8s/api/call.h"

enum { ERROR_MAX = 64 << 10 }; /* of a stream's answer that is no 2xx */

/* ---- what comes -------------------------------------------------------------------------------------------------- */

static void s_heard(kube_call_t *call)
{
    call->client->heard_ms = call->heard_ms = tt_now_ms(tt_reactor_clock(call->client->loop));
}

static size_t s_on_data(char *data, size_t one, size_t size, void *ctx)
{
    (void)one;
    kube_call_t *call = ctx;
    s_heard(call);
    if (call->dropped)
        return CURL_WRITEFUNC_ERROR;
    if (call->data && tt_request_code(&call->request) / 100 == 2) {
        call->client->in_data++;
        const tt_status_t status = call->data(call->ctx, data, size);
        call->client->in_data--;
        call->stopped = status;
    } else {
        call->stopped = tt_buf_add(&call->answer, data, size);
        if (call->stopped != TT_OK)
            (void)tt_err(call->stopped, "the answer is longer than the %zu bytes allowed", call->answer.max);
    }
    if (call->stopped == TT_OK && !call->dropped)
        return size;
    if (call->stopped != TT_OK && !call->why)
        call->why = tt_strdup(tt_err_text());
    return CURL_WRITEFUNC_ERROR;
}

static size_t s_on_header(char *data, size_t one, size_t size, void *ctx)
{
    (void)data, (void)one;
    s_heard(ctx);
    return size;
}

/* ---- what is asked ----------------------------------------------------------------------------------------------- */

static void s_headers(kube_call_t *call, const kube_identity_t *identity)
{
    tt_request_t *request = &call->request;
    tt_request_header(request, "Accept", call->accept ? call->accept : "application/json");
    if (call->body)
        tt_request_header(request, "Content-Type", call->content_type ? call->content_type : "application/json");
    if (call->client->host)
        tt_request_header(request, "Host", call->client->host);
    if (identity->token)
        tt_request_token(request, identity->token);
    else if (identity->username)
        tt_request_user(request, identity->username, identity->password ? identity->password : "");
}

static tt_status_t s_open(kube_call_t *call, const kube_identity_t *identity)
{
    const kube_client_t *client = call->client;
    char *url = tt_sprintf("%s%s", client->url, call->path);
    const tt_request_opts_t opts = {.url = url,
        .method = call->method,
        .agent = client->agent,
        .body = call->body,
        .body_size = call->body_size,
        .proxy = client->config->proxy_url,
        .connect_to = client->connect_to,
        .ca_pem = client->config->ca_pem,
        .cert_pem = identity->cert_pem,
        .key_pem = identity->key_pem,
        .insecure = client->config->insecure,
        .generation = call->generation,
        .data = s_on_data,
        .header = s_on_header,
        .may = kube_call_may,
        .ctx = call};
    const tt_status_t status = tt_request_open(&call->request, client->loop, &opts);
    free(url);
    return status;
}

tt_status_t kube_transfer_start(kube_call_t *call, const kube_identity_t *identity)
{
    call->stopped = TT_OK;
    call->identity = identity->version;
    call->generation = call->client->generation;
    call->sent_ms = call->heard_ms = tt_now_ms(tt_reactor_clock(call->client->loop));
    tt_buf_init(&call->answer, call->data ? ERROR_MAX : call->max_bytes);
    TT_TRY(s_open(call, identity));
    s_headers(call, identity);
    return tt_request_start(&call->request);
}

void kube_transfer_drop(kube_call_t *call)
{
    tt_request_close(&call->request);
    free(call->why);
    call->why = NULL;
    tt_buf_free(&call->answer);
}
