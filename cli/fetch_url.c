#include "cli/fetch_url.h"
#include <fcntl.h>
#include <jansson.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/file.h"
#include "common/base/mem.h"
#include "common/base/text.h"
#include "common/http/conns.h"
#include "common/http/token.h"
#include "common/http/request.h"

enum { QUIET_S = 30, REFUSED = 2048, URL_MAX = 1024, OK = 200 };
static const uint64_t s_beyond_all = 9999999999999999999u; /* the largest that a name has digits for */

/*  One request. */
typedef struct {
    tt_request_t request;
    handout_t *out;
    uint64_t got;
    char refused[REFUSED]; /* the beginning of an answer that is not the file */
    size_t refused_size;
    tt_status_t status; /* of writing what comes; its words are tt_err_text() */
} get_t;

/* ---- what was asked for ---------------------------------------------------------------------------------------------- */

bool fetch_is_url(const char *operand)
{
    return strncmp(operand, "http://", 7) == 0 || strncmp(operand, "https://", 8) == 0;
}

/*  base[URL_MAX]: without a slash at its end. */
static tt_status_t s_base(char *base, const char *url)
{
    const size_t length = strlen(url), scheme = (size_t)(strchr(url, '/') - url) + 2;
    for (const char *c = url; *c; c++)
        if (*c <= ' ' || *c > '~' || strchr("?#@\\\"", *c))
            return tt_err(TT_USAGE, "'%.200s' is no URL of a coordinator: http://HOST:PORT", url);
    if (length >= URL_MAX || length == scheme)
        return tt_err(TT_USAGE, "'%.200s' is no URL of a coordinator: http://HOST:PORT", url);
    snprintf(base, URL_MAX, "%s", url);
    for (size_t end = length; end > scheme && base[end - 1] == '/'; end--)
        base[end - 1] = '\0';
    return TT_OK;
}

static tt_status_t s_token(char token[TOKEN_SIZE], const char *path)
{
    const char *given = getenv("TUTTI_TOKEN");
    if (path)
        return token_read(token, path);
    if (!given || !*given)
        return tt_err(TT_USAGE, "a coordinator wants its token: --token FILE (token in the run directory), or "
                                "TUTTI_TOKEN in the environment");
    if (!token_is(given))
        return tt_err(TT_USAGE, "TUTTI_TOKEN is not a token (16 to 128 letters and digits)");
    snprintf(token, TOKEN_SIZE, "%s", given);
    return TT_OK;
}

/*  It has no name, and its room is free again when we are gone. */
static tt_status_t s_open_room(int *fd, const char *output)
{
    const char *tmp = getenv("TMPDIR");
    char *path = tt_strdup(output);
    const char *folder = strcmp(output, "-") != 0 ? dirname(path) : tmp && *tmp ? tmp : "/tmp";
    char *room = tt_sprintf("%s/.tutti-fetch.XXXXXX", folder);
    bool named = false;
    *fd = open(folder, O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    if (*fd < 0) { /* not every file system has files without a name */
        *fd = mkostemp(room, O_CLOEXEC);
        named = *fd >= 0;
    }
    const tt_status_t status = *fd >= 0 ? TT_OK : tt_err_errno(TT_IO, "no room for the weights in %s", folder);
    if (named)
        unlink(room);
    free(room);
    free(path);
    return status;
}

/* ---- one request ------------------------------------------------------------------------------------------------------ */

static tt_status_t s_write(get_t *get, const char *data, size_t size)
{
    if (size > TT_SNAPSHOT_FILE_MAX - get->got)
        return tt_err(TT_PROTOCOL, "more bytes come than a snapshot has");
    if (!tt_file_write(get->out->fd, data, size, NULL))
        return tt_err_errno(TT_IO, "no room for the weights");
    get->got += size;
    return TT_OK;
}

static size_t s_on_data(char *data, size_t one, size_t size, void *ctx)
{
    (void)one;
    get_t *get = ctx;
    if (tt_request_code(&get->request) == OK) {
        get->status = s_write(get, data, size);
        return get->status == TT_OK ? size : CURL_WRITEFUNC_ERROR;
    }
    const size_t room = sizeof get->refused - 1 - get->refused_size, part = size < room ? size : room;
    memcpy(get->refused + get->refused_size, data, part);
    get->refused_size += part;
    return size;
}

static bool s_is_name(const char *name)
{
    return tt_checkpoint_is_name(name) || strcmp(name, TT_CHECKPOINT_BEST) == 0;
}

/*  The file's name. Anything that is none is not taken: it goes to a terminal. */
static size_t s_on_header(char *data, size_t one, size_t size, void *ctx)
{
    (void)one;
    static const char head[] = "content-disposition: attachment; filename=\"";
    get_t *get = ctx;
    char name[TT_CHECKPOINT_NAME] = "";
    if (size <= sizeof head - 1 || strncasecmp(data, head, sizeof head - 1) != 0)
        return size;
    for (size_t i = 0, at = sizeof head - 1; at < size && data[at] != '"' && i < sizeof name - 1; i++, at++)
        name[i] = data[at];
    if (s_is_name(name))
        snprintf(get->out->name, sizeof get->out->name, "%s", name);
    return size;
}

/*  The coordinator's words, or somebody else's: printable, in one line, and not without end. */
static void s_words(const get_t *get, char out[300])
{
    json_t *said = json_loads(get->refused, 0, NULL);
    const char *error = json_string_value(json_object_get(said, "error"));
    tt_text_copy(out, 300, error ? error : "no words of a coordinator");
    for (char *c = out; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = '?';
    json_decref(said);
}

static tt_status_t s_refused(const get_t *get, const char *url)
{
    char words[300];
    const int code = tt_request_code(&get->request);
    s_words(get, words);
    if (code == 401)
        return tt_err(TT_DENIED, "%s: this is not its token", url);
    if (code == 404)
        return tt_err(TT_NOT_FOUND, "%s: %s", url, words);
    return tt_err(code == 503 ? TT_UNAVAILABLE : TT_PROTOCOL, "%s: HTTP %d: %s", url, code, words);
}

static tt_status_t s_perform(get_t *get, const char *url)
{
    const CURLcode code = tt_request_await(&get->request);
    if (get->status != TT_OK)
        return tt_err_wrap(get->status, "%s", url);
    if (code != CURLE_OK && get->got > 0)
        return tt_err(TT_UNAVAILABLE, "%s: it broke off after %llu bytes: %s; if the job has not ended, try again", url,
            (unsigned long long)get->got, tt_request_words(&get->request, code));
    if (code != CURLE_OK)
        return tt_err(
            TT_UNAVAILABLE, "%s: %s; is it a job's, and does it run?", url, tt_request_words(&get->request, code));
    return tt_request_code(&get->request) == OK ? TT_OK : s_refused(get, url);
}

static tt_status_t s_ask(get_t *get, const char *url, const char *token)
{
    const tt_request_opts_t opts = {.url = url,
        .timeout_ms =
            TT_REQUEST_CONNECT_MS + CONN_READ_MS + CONN_WRITE_MS + TT_SNAPSHOT_FILE_MAX / CONN_WRITE_BYTES * 1000,
        .quiet_s = QUIET_S,
        .direct = true,
        .data = s_on_data,
        .header = s_on_header,
        .ctx = get};
    TT_TRY(tt_request_open(&get->request, NULL, &opts));
    tt_request_token(&get->request, token);
    TT_TRY(s_perform(get, url));
    return s_is_name(get->out->name)
               ? TT_OK
               : tt_err(TT_PROTOCOL, "%s: no coordinator of a job: it sends a file without a snapshot's name", url);
}

/*  What the query stands for, into out->fd from its beginning. */
static tt_status_t s_get(handout_t *out, const char *base, const char *query, const char *token)
{
    get_t get = {.out = out};
    if (ftruncate(out->fd, 0) != 0 || lseek(out->fd, 0, SEEK_SET) != 0)
        return tt_err_errno(TT_IO, "the room for the weights");
    char *url = tt_sprintf("%s/weights%s", base, query);
    snprintf(out->name, sizeof out->name, "?");
    const tt_status_t status = s_ask(&get, url, token);
    tt_request_close(&get.request);
    free(url);
    return status;
}

/* ---- the newest that is whole ------------------------------------------------------------------------------------------ */

/*  The newest; where it is damaged, the one before. */
static tt_status_t s_newest(handout_t *out, const char *base, const char *token)
{
    char query[64] = "", first[600] = "";
    uint64_t below = UINT64_MAX, update;
    for (;;) {
        tt_status_t status = s_get(out, base, query, token);
        if (status == TT_NOT_FOUND && first[0])
            return tt_err(TT_DATA, "%s: no snapshot is whole: %s", base, first);
        TT_TRY(status);
        status = handout_check(out);
        if (status != TT_DATA)
            return status;
        update = s_beyond_all; /* final.safetensors is after all that have a number */
        tt_checkpoint_update(out->name, &update);
        if (update >= below)
            return tt_err(TT_PROTOCOL, "%s: asked for a snapshot before update %llu it sends %s", base,
                (unsigned long long)below, out->name);
        fprintf(stderr, "%s is passed over: %s\n", tt_shown(out->name), tt_shown(tt_err_text()));
        if (!first[0])
            snprintf(first, sizeof first, "%s: %.500s", out->name, tt_err_text());
        below = update;
        snprintf(query, sizeof query, "?below=%llu", (unsigned long long)below);
    }
}

static tt_status_t s_best(handout_t *out, const char *base, const char *token)
{
    TT_TRY(s_get(out, base, "?best", token));
    const tt_status_t status = handout_check(out);
    return status == TT_OK ? TT_OK : tt_err_wrap(status, "%s: %s", base, out->name);
}

tt_status_t fetch_url(handout_t *out, const fetch_url_t *opts)
{
    char base[URL_MAX], token[TOKEN_SIZE];
    TT_TRY(s_base(base, opts->url));
    TT_TRY(s_token(token, opts->token));
    TT_TRY(s_open_room(&out->fd, opts->output));
    snprintf(out->of, sizeof out->of, "%.299s", base);
    return opts->best ? s_best(out, base, token) : s_newest(out, base, token);
}
