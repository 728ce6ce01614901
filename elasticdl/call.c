#include "elasticdl/call.h"
#include <stdlib.h>
#include <string.h>
#include "common/base/buf.h"
#include "common/base/mem.h"
#include "common/http/request.h"

struct call {
    tt_request_t request; /* first: the loop calls it */
    tt_buf_t answer;
    char *body; /* it goes out later */
    call_fn fn;
    void *ctx;
};

static void s_free(call_t *self)
{
    tt_request_close(&self->request);
    tt_buf_free(&self->answer);
    free(self->body);
    free(self);
}

void call_cancel(call_t **self_p)
{
    if (*self_p)
        s_free(*self_p);
    *self_p = NULL;
}

static void s_ended(tt_transfer_t *transfer, CURLcode result)
{
    call_t *self = (call_t *)transfer;
    if (result == CURLE_OK)
        self->fn(self->ctx, tt_request_code(&self->request), tt_buf_text(&self->answer));
    else
        self->fn(self->ctx, 0, tt_request_words(&self->request, result));
    s_free(self);
}

static size_t s_on_data(char *data, size_t one, size_t size, void *ctx)
{
    (void)one;
    call_t *self = ctx;
    return tt_buf_add(&self->answer, data, size) == TT_OK ? size : CURL_WRITEFUNC_ERROR;
}

static tt_status_t s_start(call_t *self, tt_reactor_t *loop, const call_opts_t *opts)
{
    const tt_request_opts_t request = {.url = opts->url,
        .body = self->body,
        .body_size = self->body ? strlen(self->body) : 0,
        .timeout_ms = opts->timeout_ms,
        .direct = true,
        .data = s_on_data,
        .ctx = self};
    TT_TRY(tt_request_open(&self->request, loop, &request));
    if (opts->token)
        tt_request_token(&self->request, opts->token);
    if (opts->body)
        tt_request_header(&self->request, "Content-Type", "application/json");
    return tt_request_start(&self->request);
}

tt_status_t call_start(call_t **self_p, tt_reactor_t *loop, const call_opts_t *opts)
{
    call_t *self = tt_new0(sizeof *self);
    self->request.transfer.ended = s_ended;
    self->fn = opts->fn;
    self->ctx = opts->ctx;
    self->body = tt_strdup(opts->body);
    tt_buf_init(&self->answer, CALL_ANSWER);
    const tt_status_t status = s_start(self, loop, opts);
    if (status == TT_OK)
        *self_p = self;
    else
        s_free(self);
    return status;
}
