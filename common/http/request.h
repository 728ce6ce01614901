/*  request - one HTTP request over libcurl, which is loaded when the first is made: with what it goes, what it came to. On a reactor, or
 *  awaited by who makes it.
 *
 *  What is the same for all stands here: how long a connection may take to be made, when it counts as dead, which protocols may be
 *  spoken. What an answer means is its maker's.
 *
 *  Threads: the reactor's; of one without a reactor, its maker's. */
#pragma once
#include "common/http/reactor_curl.h"

typedef struct {
    tt_transfer_t transfer; /* first: the reactor calls `ended`, which is its maker's */
    const tt_curl_t *curl;
    CURLM *multi; /* NULL = of no reactor */
    CURL *easy;   /* NULL = not open      */
    struct curl_slist *headers, *connect_to;
    char error[CURL_ERROR_SIZE];
    bool (*may)(const void *ctx);
    const void *ctx;
} tt_request_t;

enum { TT_REQUEST_CONNECT_MS = 10000 };

/*  Strings are copied but for body and ca_pem, which are borrowed till the end. */
typedef struct {
    const char *url, *method; /* method: NULL = GET, or POST where there is a body         */
    const char *agent;        /* NULL = "tutti/VERSION"                                    */
    const char *body;         /* NULL = none; a POST or PUT has an empty one then          */
    size_t body_size;
    int64_t timeout_ms;     /* of all of it; 0 = its maker's to say                      */
    int quiet_s;            /* it ends when hardly anything came for so long; 0 = it waits */
    const char *proxy;      /* NULL = as the environment says                            */
    bool direct;            /* no proxy leads to this machine                            */
    const char *connect_to; /* in libcurl's words: where to connect instead; NULL        */
    const char *ca_pem;     /* NULL = the system's                                       */
    const char *cert_pem, *key_pem;
    bool insecure;       /* whoever the server is */
    unsigned generation; /* those of different ones share no connection */
    /*  What libcurl calls: an answer's pieces, its header's lines. */
    curl_write_callback data, header;
    /*  It is about to be sent: for the first time, or again by itself, over another connection, since the one that it had used before
     *  ended without a word of an answer. False: it is not, and ends with CURLE_ABORTED_BY_CALLBACK. NULL = it may. */
    bool (*may)(const void *ctx);
    void *ctx;
} tt_request_opts_t;

/*  Make it; loop NULL: for tt_request_await. TT_UNSUPPORTED: libcurl is not installed. TT_OS. To be closed, whatever comes back. */
tt_status_t tt_request_open(tt_request_t *self, tt_reactor_t *loop, const tt_request_opts_t *opts);
/*  Before it goes. */
void tt_request_header(tt_request_t *self, const char *name, const char *value);
/*  "Authorization: Bearer <token>". */
void tt_request_token(tt_request_t *self, const char *token);
void tt_request_user(tt_request_t *self, const char *name, const char *password);
/*  Off it goes: `ended` is called. TT_OS. */
tt_status_t tt_request_start(tt_request_t *self);
CURLcode tt_request_await(tt_request_t *self);
/*  Under way, ended or never begun. Not from within libcurl's calls. */
void tt_request_close(tt_request_t *self);

/*  HTTP status (0 = none came yet) and Retry-After in seconds (0 = none). */
int tt_request_code(const tt_request_t *self);
int64_t tt_request_retry_after(const tt_request_t *self);
/*  Nothing of it has left us yet. */
bool tt_request_waits(const tt_request_t *self);
/*  It failed because its connection took nothing any more: the server has not seen it, not as a whole. */
bool tt_request_unsent(const tt_request_t *self, CURLcode code);
/*  Nothing comes over its connection any more: close that, so that no other waits for it. */
void tt_request_cut(const tt_request_t *self);
/*  What went wrong on the way, for a person. Borrowed. */
const char *tt_request_words(const tt_request_t *self, CURLcode code);
