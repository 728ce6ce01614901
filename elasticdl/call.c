#include "elasticdl/call.h"
#include <stdlib.h>
#include <string.h>
#include "common/base/buf.h"
#include "common/base/mem.h"
#include "common/http/reactor_curl.h"

struct call {
    tt_transfer_t transfer; /* first: libcurl's private pointer is it */
    const tt_curl_t *curl;
    CURLM *multi;
    CURL *easy;
    struct curl_slist *headers;
    tt_buf_t answer;
    call_fn fn;
    void *ctx;
    char error[CURL_ERROR_SIZE];
};

static void s_free(call_t *self)
{
    if (self->easy) {
        self->curl->curl_multi_remove_handle(self->multi, self->easy);
        self->curl->curl_easy_cleanup(self->easy);
    }
    self->curl->curl_slist_free_all(self->headers);
    tt_buf_free(&self->answer);
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
    long code = 0;
    self->curl->curl_easy_getinfo(self->easy, CURLINFO_RESPONSE_CODE, &code);
    if (result == CURLE_OK)
        self->fn(self->ctx, (int)code, tt_buf_text(&self->answer));
    else
        self->fn(self->ctx, 0, self->error[0] ? self->error : self->curl->curl_easy_strerror(result));
    s_free(self);
}

static size_t s_on_data(char *data, size_t one, size_t size, void *ctx)
{
    (void)one;
    call_t *self = ctx;
    return tt_buf_add(&self->answer, data, size) == TT_OK ? size : CURL_WRITEFUNC_ERROR;
}

#define SET(option, value) (void)self->curl->curl_easy_setopt(self->easy, option, value)

static void s_header(call_t *self, const char *line)
{
    self->headers = self->curl->curl_slist_append(self->headers, line);
    TT_CHECK(self->headers != NULL);
}

static bool s_is_loopback(const char *url)
{
    const char *scheme = strstr(url, "://"), *host = scheme ? scheme + 3 : url;
    return strncmp(host, "127.", 4) == 0 || strncmp(host, "localhost", 9) == 0 || strncmp(host, "[::1]", 5) == 0;
}

static void s_set(call_t *self, const call_opts_t *opts)
{
    if (opts->token) {
        char *line = tt_sprintf("Authorization: Bearer %s", opts->token);
        s_header(self, line);
        tt_free_secret(line);
    }
    if (opts->body) {
        s_header(self, "Content-Type: application/json");
        SET(CURLOPT_POSTFIELDSIZE, (long)strlen(opts->body));
        SET(CURLOPT_COPYPOSTFIELDS, opts->body);
    }
    SET(CURLOPT_URL, opts->url);
    SET(CURLOPT_HTTPHEADER, self->headers);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_USERAGENT, "tutti/" TT_VERSION);
    SET(CURLOPT_TIMEOUT_MS, (long)opts->timeout_ms);
    SET(CURLOPT_WRITEFUNCTION, s_on_data);
    SET(CURLOPT_WRITEDATA, self);
    SET(CURLOPT_ERRORBUFFER, self->error);
    SET(CURLOPT_PRIVATE, &self->transfer);
    if (s_is_loopback(opts->url)) /* no proxy leads there */
        SET(CURLOPT_PROXY, "");
}

tt_status_t call_start(call_t **self_p, tt_reactor_t *loop, const call_opts_t *opts)
{
    const tt_curl_t *curl;
    CURLM *multi;
    TT_TRY(tt_reactor_multi(loop, &curl, &multi));
    call_t *self = tt_new0(sizeof *self);
    self->transfer.ended = s_ended;
    self->curl = curl;
    self->multi = multi;
    self->fn = opts->fn;
    self->ctx = opts->ctx;
    tt_buf_init(&self->answer, CALL_ANSWER);
    self->easy = curl->curl_easy_init();
    if (!self->easy) {
        s_free(self);
        return tt_err(TT_OS, "libcurl: out of memory");
    }
    s_set(self, opts);
    curl->curl_multi_add_handle(multi, self->easy);
    *self_p = self;
    return TT_OK;
}
