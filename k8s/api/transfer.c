#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "common/base/mem.h"
#include "k8s/api/call.h"

enum {
    CONNECT_MS = 10000,
    DEAD_MS = 20000, /* bytes of ours that the other side's kernel does not acknowledge for so long: the line is dead */
    ERROR_MAX = 64 << 10, /* of a stream's answer that is no 2xx */
};

#define SET(option, value) (void)call->client->curl->curl_easy_setopt(call->easy, option, value)

int kube_transfer_code(const kube_call_t *call)
{
    long code = 0;
    call->client->curl->curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &code);
    return (int)code;
}

int64_t kube_transfer_retry_after(const kube_call_t *call)
{
    curl_off_t seconds = 0;
    call->client->curl->curl_easy_getinfo(call->easy, CURLINFO_RETRY_AFTER, &seconds);
    return seconds;
}

/* ---- what libcurl calls ------------------------------------------------------------------------------------------ */

static size_t s_on_data(char *data, size_t one, size_t size, void *ctx)
{
    (void)one;
    kube_call_t *call = ctx;
    kube_client_t *client = call->client;
    client->heard_ms = call->heard_ms = tt_now_ms(tt_reactor_clock(client->loop));
    if (call->dropped)
        return CURL_WRITEFUNC_ERROR;
    if (call->data && kube_transfer_code(call) / 100 == 2) {
        client->in_data++;
        const tt_status_t status = call->data(call->ctx, data, size);
        client->in_data--;
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
    kube_call_t *call = ctx;
    call->client->heard_ms = call->heard_ms = tt_now_ms(tt_reactor_clock(call->client->loop));
    return size;
}

/* A server that is gone without a word is noticed by the kernel, not by each call's deadline alone. */
static int s_on_connect(void *ctx, curl_socket_t fd, curlsocktype purpose)
{
    (void)ctx, (void)purpose;
    const unsigned dead_ms = DEAD_MS;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &dead_ms, sizeof dead_ms);
    return CURL_SOCKOPT_OK;
}

/* ---- what libcurl is told ---------------------------------------------------------------------------------------- */

static void s_blob(kube_call_t *call, CURLoption option, const char *pem, unsigned flags)
{
    struct curl_blob blob = {.len = strlen(pem), .flags = flags};
    memcpy(&blob.data, &pem, sizeof pem); /* it is not written to, whatever its type says */
    SET(option, &blob);
}

/* libcurl puts requests onto a connection that the server has said it will close, as long as anything is on it. It never
 * shares one between transfers of different TLS settings; these three mean the same to OpenSSL. */
static void s_generation(kube_call_t *call)
{
    static const long newest[] = {CURL_SSLVERSION_MAX_NONE, CURL_SSLVERSION_MAX_DEFAULT, CURL_SSLVERSION_MAX_TLSv1_3};
    call->generation = call->client->generation;
    SET(CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2 | newest[call->generation % TT_COUNT(newest)]);
}

static void s_tls(kube_call_t *call, const kube_identity_t *identity)
{
    const kube_config_t *config = call->client->config;
    if (config->ca_pem)
        s_blob(call, CURLOPT_CAINFO_BLOB, config->ca_pem, CURL_BLOB_NOCOPY);
    if (config->insecure) {
        SET(CURLOPT_SSL_VERIFYPEER, 0L);
        SET(CURLOPT_SSL_VERIFYHOST, 0L);
    }
    if (identity->cert_pem && identity->key_pem) {
        s_blob(call, CURLOPT_SSLCERT_BLOB, identity->cert_pem, CURL_BLOB_COPY);
        s_blob(call, CURLOPT_SSLKEY_BLOB, identity->key_pem, CURL_BLOB_COPY);
        SET(CURLOPT_SSLCERTTYPE, "PEM");
        SET(CURLOPT_SSLKEYTYPE, "PEM");
    }
}

static void s_header(kube_call_t *call, const char *name, const char *value)
{
    char *line = tt_sprintf("%s: %s", name, value);
    call->headers = call->client->curl->curl_slist_append(call->headers, line);
    TT_CHECK(call->headers != NULL);
    tt_free_secret(line); /* of a token, perhaps */
}

static void s_headers(kube_call_t *call, const kube_identity_t *identity)
{
    s_header(call, "Accept", call->accept ? call->accept : "application/json");
    if (call->body)
        s_header(call, "Content-Type", call->content_type ? call->content_type : "application/json");
    if (call->client->host)
        s_header(call, "Host", call->client->host);
    call->headers = call->client->curl->curl_slist_append(call->headers, "Expect:"); /* none: it costs a round trip */
    if (identity->token) {
        char *bearer = tt_sprintf("Bearer %s", identity->token);
        s_header(call, "Authorization", bearer);
        tt_free_secret(bearer);
    } else if (identity->username) {
        SET(CURLOPT_USERNAME, identity->username);
        SET(CURLOPT_PASSWORD, identity->password ? identity->password : "");
    }
    SET(CURLOPT_HTTPHEADER, call->headers);
}

static void s_connection(kube_call_t *call)
{
    const kube_client_t *client = call->client;
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    if (strncmp(client->url, "https:", 6) == 0) /* over http it may wait for good behind a watch that has just begun */
        SET(CURLOPT_PIPEWAIT, 1L); /* rather a stream of a connection that is being made than one more connection */
    SET(CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
    SET(CURLOPT_TCP_KEEPALIVE, 1L);
    SET(CURLOPT_TCP_KEEPIDLE, 15L);
    SET(CURLOPT_TCP_KEEPINTVL, 5L);
    SET(CURLOPT_SOCKOPTFUNCTION, s_on_connect);
    SET(CURLOPT_BUFFERSIZE, 16384L);
    SET(CURLOPT_UPLOAD_BUFFERSIZE, 16384L);
    SET(CURLOPT_USERAGENT, client->agent);
    if (client->connect_to)
        SET(CURLOPT_CONNECT_TO, client->connect_to);
    if (client->config->proxy_url)
        SET(CURLOPT_PROXY, client->config->proxy_url);
}

/*  libcurl is about to send it: for the first time, or again by itself, over another connection, since the one that it had used before ended
 *  without a word of an answer. */
static int s_on_begin(void *ctx, char *theirs, char *ours, int their_port, int our_port)
{
    (void)theirs, (void)ours, (void)their_port, (void)our_port;
    return kube_call_may(ctx) ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT;
}

static void s_request(kube_call_t *call)
{
    char *url = tt_sprintf("%s%s", call->client->url, call->path);
    SET(CURLOPT_URL, url);
    free(url);
    if (call->body || strcmp(call->method, "POST") == 0 || strcmp(call->method, "PUT") == 0) {
        SET(CURLOPT_POSTFIELDS, call->body ? call->body : "");
        SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->body_size);
    }
    SET(CURLOPT_CUSTOMREQUEST, call->method);
    SET(CURLOPT_PREREQFUNCTION, s_on_begin);
    SET(CURLOPT_PREREQDATA, call);
    SET(CURLOPT_WRITEFUNCTION, s_on_data);
    SET(CURLOPT_WRITEDATA, call);
    SET(CURLOPT_HEADERFUNCTION, s_on_header);
    SET(CURLOPT_HEADERDATA, call);
    SET(CURLOPT_ERRORBUFFER, call->error);
    SET(CURLOPT_PRIVATE, &call->transfer);
}

tt_status_t kube_transfer_start(kube_call_t *call, const kube_identity_t *identity)
{
    kube_client_t *client = call->client;
    call->easy = client->curl->curl_easy_init();
    if (!call->easy)
        return tt_err(TT_OS, "libcurl: out of memory");
    call->error[0] = 0;
    call->stopped = TT_OK;
    call->identity = identity->version;
    call->sent_ms = call->heard_ms = tt_now_ms(tt_reactor_clock(client->loop));
    tt_buf_init(&call->answer, call->data ? ERROR_MAX : call->max_bytes);
    s_connection(call);
    s_generation(call);
    s_tls(call, identity);
    s_request(call);
    s_headers(call, identity);
    const CURLMcode code = client->curl->curl_multi_add_handle(client->multi, call->easy);
    if (code == CURLM_OK)
        return TT_OK;
    client->curl->curl_easy_cleanup(call->easy);
    call->easy = NULL;
    return tt_err(TT_OS, "libcurl: %s", client->curl->curl_multi_strerror(code));
}

void kube_transfer_drop(kube_call_t *call)
{
    const kube_client_t *client = call->client;
    if (call->easy) {
        client->curl->curl_multi_remove_handle(client->multi, call->easy);
        client->curl->curl_easy_cleanup(call->easy);
        call->easy = NULL;
    }
    client->curl->curl_slist_free_all(call->headers);
    call->headers = NULL;
    free(call->why);
    call->why = NULL;
    tt_buf_free(&call->answer);
}

bool kube_transfer_waits(const kube_call_t *call)
{
    long sent = 0;
    call->client->curl->curl_easy_getinfo(call->easy, CURLINFO_REQUEST_SIZE, &sent);
    return sent == 0;
}

bool kube_transfer_unsent(const kube_call_t *call, CURLcode code)
{
    return code == CURLE_SEND_ERROR ||
           (kube_transfer_waits(call) && (code == CURLE_HTTP2 || code == CURLE_HTTP2_STREAM));
}

/* ---- what went wrong --------------------------------------------------------------------------------------------- */

void kube_transfer_words(const kube_call_t *call, CURLcode code, char *out, size_t size)
{
    const char *words = call->error[0] ? call->error : call->client->curl->curl_easy_strerror(code);
    char *text = call->why
                     ? tt_strdup(call->why)
                     : tt_sprintf("%s %s at %s: %s", call->method, call->path, call->client->config->server, words);
    const size_t n = strnlen(text, size - 1);
    memcpy(out, text, n);
    out[n] = 0;
    free(text);
}

void kube_transfer_cut(const kube_call_t *call)
{
    curl_socket_t fd = CURL_SOCKET_BAD;
    if (call->client->curl->curl_easy_getinfo(call->easy, CURLINFO_ACTIVESOCKET, &fd) == CURLE_OK &&
        fd != CURL_SOCKET_BAD)
        (void)shutdown(fd, SHUT_RDWR);
}
