#include "common/http/request.h"
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "common/base/mem.h"

enum {
    QUIET_BYTES = 1024, /* a second */
    DEAD_MS = 20000, /* bytes of ours that the other side's kernel does not acknowledge for so long: the line is dead */
};

#define SET(option, value) (void)self->curl->curl_easy_setopt(self->easy, option, value)

/* ---- what libcurl is told ---------------------------------------------------------------------------------------- */

static void s_blob(const tt_request_t *self, CURLoption option, const char *pem, unsigned flags)
{
    struct curl_blob blob = {.len = strlen(pem), .flags = flags};
    memcpy(&blob.data, &pem, sizeof pem); /* it is not written to, whatever its type says */
    SET(option, &blob);
}

static void s_tls(const tt_request_t *self, const tt_request_opts_t *opts)
{
    /* libcurl puts requests onto a connection that the server has said it will close, as long as anything is on it. It never
     * shares one between transfers of different TLS settings; these three mean the same to OpenSSL. */
    static const long newest[] = {CURL_SSLVERSION_MAX_NONE, CURL_SSLVERSION_MAX_DEFAULT, CURL_SSLVERSION_MAX_TLSv1_3};
    SET(CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2 | newest[opts->generation % TT_COUNT(newest)]);
    if (opts->ca_pem)
        s_blob(self, CURLOPT_CAINFO_BLOB, opts->ca_pem, CURL_BLOB_NOCOPY);
    if (opts->insecure) {
        SET(CURLOPT_SSL_VERIFYPEER, 0L);
        SET(CURLOPT_SSL_VERIFYHOST, 0L);
    }
    if (opts->cert_pem && opts->key_pem) {
        s_blob(self, CURLOPT_SSLCERT_BLOB, opts->cert_pem, CURL_BLOB_COPY);
        s_blob(self, CURLOPT_SSLKEY_BLOB, opts->key_pem, CURL_BLOB_COPY);
        SET(CURLOPT_SSLCERTTYPE, "PEM");
        SET(CURLOPT_SSLKEYTYPE, "PEM");
    }
}

/*  A server that is gone without a word is noticed by the kernel, not by each request's deadline alone. */
static int s_on_connect(void *ctx, curl_socket_t fd, curlsocktype purpose)
{
    (void)ctx, (void)purpose;
    const unsigned dead_ms = DEAD_MS;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &dead_ms, sizeof dead_ms);
    return CURL_SOCKOPT_OK;
}

static bool s_is_here(const char *url)
{
    const char *scheme = strstr(url, "://"), *host = scheme ? scheme + 3 : url;
    return strncmp(host, "127.", 4) == 0 || strncmp(host, "localhost", 9) == 0 || strncmp(host, "[::1]", 5) == 0;
}

static void s_route(tt_request_t *self, const tt_request_opts_t *opts)
{
    if (opts->connect_to) {
        self->connect_to = self->curl->curl_slist_append(NULL, opts->connect_to);
        SET(CURLOPT_CONNECT_TO, self->connect_to);
    }
    if (opts->direct && s_is_here(opts->url))
        SET(CURLOPT_PROXY, "");
    else if (opts->proxy)
        SET(CURLOPT_PROXY, opts->proxy);
}

static void s_connection(const tt_request_t *self, const tt_request_opts_t *opts)
{
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    if (strncmp(opts->url, "https:", 6) == 0) /* over http it may wait for good behind a watch that has just begun */
        SET(CURLOPT_PIPEWAIT, 1L); /* rather a stream of a connection that is being made than one more connection */
    SET(CURLOPT_CONNECTTIMEOUT_MS, (long)TT_REQUEST_CONNECT_MS);
    SET(CURLOPT_TCP_KEEPALIVE, 1L);
    SET(CURLOPT_TCP_KEEPIDLE, 15L);
    SET(CURLOPT_TCP_KEEPINTVL, 5L);
    SET(CURLOPT_SOCKOPTFUNCTION, s_on_connect);
    SET(CURLOPT_BUFFERSIZE, 16384L);
    SET(CURLOPT_UPLOAD_BUFFERSIZE, 16384L);
}

static void s_asked(const tt_request_t *self, const tt_request_opts_t *opts)
{
    const char *method = opts->method ? opts->method : opts->body ? "POST" : "GET";
    SET(CURLOPT_URL, opts->url);
    if (opts->body || strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0) {
        SET(CURLOPT_POSTFIELDS, opts->body ? opts->body : "");
        SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)opts->body_size);
    }
    SET(CURLOPT_CUSTOMREQUEST, method);
    SET(CURLOPT_USERAGENT, opts->agent ? opts->agent : "tutti/" TT_VERSION);
    SET(CURLOPT_TIMEOUT_MS, (long)opts->timeout_ms);
    SET(CURLOPT_LOW_SPEED_LIMIT, (long)QUIET_BYTES);
    SET(CURLOPT_LOW_SPEED_TIME, (long)opts->quiet_s);
}

/* ---- what libcurl calls ------------------------------------------------------------------------------------------ */

static int s_on_begin(void *ctx, char *theirs, char *ours, int their_port, int our_port)
{
    (void)theirs, (void)ours, (void)their_port, (void)our_port;
    const tt_request_t *self = ctx;
    return self->may(self->ctx) ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT;
}

static void s_calls(tt_request_t *self, const tt_request_opts_t *opts)
{
    self->may = opts->may;
    self->ctx = opts->ctx;
    if (opts->may) {
        SET(CURLOPT_PREREQFUNCTION, s_on_begin);
        SET(CURLOPT_PREREQDATA, self);
    }
    SET(CURLOPT_WRITEFUNCTION, opts->data);
    SET(CURLOPT_WRITEDATA, opts->ctx);
    if (opts->header) {
        SET(CURLOPT_HEADERFUNCTION, opts->header);
        SET(CURLOPT_HEADERDATA, opts->ctx);
    }
    SET(CURLOPT_ERRORBUFFER, self->error);
    SET(CURLOPT_PRIVATE, &self->transfer);
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

tt_status_t tt_request_open(tt_request_t *self, tt_reactor_t *loop, const tt_request_opts_t *opts)
{
    self->error[0] = '\0';
    TT_TRY(loop ? tt_reactor_multi(loop, &self->curl, &self->multi) : tt_curl_load(&self->curl));
    self->easy = self->curl->curl_easy_init();
    if (!self->easy)
        return tt_err(TT_OS, "libcurl: out of memory");
    s_connection(self, opts);
    s_route(self, opts);
    s_tls(self, opts);
    s_asked(self, opts);
    s_calls(self, opts);
    tt_request_header(self, "Expect", ""); /* none: it costs a round trip */
    return TT_OK;
}

void tt_request_header(tt_request_t *self, const char *name, const char *value)
{
    char *line = tt_sprintf("%s:%s%s", name, *value ? " " : "", value);
    self->headers = self->curl->curl_slist_append(self->headers, line);
    TT_CHECK(self->headers != NULL);
    tt_free_secret(line); /* of a token, perhaps */
}

void tt_request_token(tt_request_t *self, const char *token)
{
    char *bearer = tt_sprintf("Bearer %s", token);
    tt_request_header(self, "Authorization", bearer);
    tt_free_secret(bearer);
}

void tt_request_user(tt_request_t *self, const char *name, const char *password)
{
    SET(CURLOPT_USERNAME, name);
    SET(CURLOPT_PASSWORD, password);
}

tt_status_t tt_request_start(tt_request_t *self)
{
    SET(CURLOPT_HTTPHEADER, self->headers);
    const CURLMcode code = self->curl->curl_multi_add_handle(self->multi, self->easy);
    return code == CURLM_OK ? TT_OK : tt_err(TT_OS, "libcurl: %s", self->curl->curl_multi_strerror(code));
}

CURLcode tt_request_await(tt_request_t *self)
{
    SET(CURLOPT_HTTPHEADER, self->headers);
    return self->curl->curl_easy_perform(self->easy);
}

void tt_request_close(tt_request_t *self)
{
    if (self->easy && self->multi)
        self->curl->curl_multi_remove_handle(self->multi, self->easy);
    if (self->easy)
        self->curl->curl_easy_cleanup(self->easy);
    if (self->curl) {
        self->curl->curl_slist_free_all(self->headers);
        self->curl->curl_slist_free_all(self->connect_to);
    }
    self->easy = NULL;
    self->headers = self->connect_to = NULL;
}

/* ---- what it came to --------------------------------------------------------------------------------------------- */

int tt_request_code(const tt_request_t *self)
{
    long code = 0;
    self->curl->curl_easy_getinfo(self->easy, CURLINFO_RESPONSE_CODE, &code);
    return (int)code;
}

int64_t tt_request_retry_after(const tt_request_t *self)
{
    curl_off_t seconds = 0;
    self->curl->curl_easy_getinfo(self->easy, CURLINFO_RETRY_AFTER, &seconds);
    return seconds;
}

bool tt_request_waits(const tt_request_t *self)
{
    long sent = 0;
    self->curl->curl_easy_getinfo(self->easy, CURLINFO_REQUEST_SIZE, &sent);
    return sent == 0;
}

bool tt_request_unsent(const tt_request_t *self, CURLcode code)
{
    return code == CURLE_SEND_ERROR || (tt_request_waits(self) && (code == CURLE_HTTP2 || code == CURLE_HTTP2_STREAM));
}

void tt_request_cut(const tt_request_t *self)
{
    curl_socket_t fd = CURL_SOCKET_BAD;
    if (self->curl->curl_easy_getinfo(self->easy, CURLINFO_ACTIVESOCKET, &fd) == CURLE_OK && fd != CURL_SOCKET_BAD)
        (void)shutdown(fd, SHUT_RDWR);
}

const char *tt_request_words(const tt_request_t *self, CURLcode code)
{
    return self->error[0] ? self->error : self->curl->curl_easy_strerror(code);
}
