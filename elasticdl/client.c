#define TT_LOG_COMPONENT "submit"
#include "elasticdl/client.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/text.h"
#include "elasticdl/call.h"

enum { ANSWER_MS = 15000, LOOK_MS = 200, PATIENCE_MS = 30000 };

tt_status_t elasticdl_client_open(elasticdl_client_t *self, const char *url, const char *token)
{
    const bool http = strncmp(url, "http://", 7) == 0, https = strncmp(url, "https://", 8) == 0;
    bool good = (http || https) && strlen(url) < sizeof self->url && url[http ? 7 : 8] != '\0';
    for (const char *c = url; *c && good; c++)
        good = *c > ' ' && *c <= '~' && !strchr("?#@\\\"'", *c);
    if (!good)
        return tt_err(TT_USAGE, "'%.200s' is no URL of a master: http://HOST:PORT", url);
    snprintf(self->url, sizeof self->url, "%s", url);
    for (size_t end = strlen(self->url); self->url[end - 1] == '/'; end--)
        self->url[end - 1] = '\0';
    self->token = token;
    return tt_reactor_new(&self->loop, NULL);
}

void elasticdl_client_close(elasticdl_client_t *self)
{
    tt_reactor_destroy(&self->loop);
}

/* ---- one question ------------------------------------------------------------------------------------------------------- */

typedef struct {
    bool answered;
    int code;
    char *text;
} answer_t;

static void s_on_answer(void *ctx, int code, const char *text)
{
    answer_t *answer = ctx;
    *answer = (answer_t){.answered = true, .code = code, .text = tt_strdup(text)};
}

/*  For a terminal, in one line. */
static tt_status_t s_refused(const elasticdl_client_t *self, const answer_t *answer)
{
    char words[400];
    tt_text_copy(words, sizeof words, answer->text);
    for (char *c = words; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = ' ';
    if (answer->code == 0)
        return tt_err(TT_UNAVAILABLE, "%s: %s; is it a master's (`tutti master`), and does it run?", self->url, words);
    if (answer->code == 401)
        return tt_err(TT_DENIED, "%s: this master wants its token: --token FILE", self->url);
    if (answer->code == 400)
        return tt_err(TT_INVALID, "%s: %s", self->url, words);
    return tt_err(answer->code == 503   ? TT_UNAVAILABLE
                  : answer->code == 404 ? TT_NOT_FOUND
                                        : TT_PROTOCOL,
        "%s: HTTP %d: %s", self->url, answer->code, words);
}

static tt_status_t s_read(const elasticdl_client_t *self, const answer_t *answer, json_t **out)
{
    if (answer->code != 200)
        return s_refused(self, answer);
    json_t *task = json_loads(answer->text, 0, NULL);
    if (!json_is_string(json_object_get(task, "state")) || !json_is_string(json_object_get(task, "name")) ||
        !json_is_integer(json_object_get(task, "id"))) {
        json_decref(task);
        return tt_err(TT_PROTOCOL, "%s: what answers is no master of tutti's", self->url);
    }
    *out = task;
    return TT_OK;
}

static tt_status_t s_ask(elasticdl_client_t *self, const char *path, json_t **out)
{
    char *url = tt_sprintf("%s%s", self->url, path);
    answer_t answer = {0};
    call_t *call = NULL;
    const call_opts_t opts = {
        .url = url, .token = self->token, .timeout_ms = ANSWER_MS, .fn = s_on_answer, .ctx = &answer};
    tt_status_t status = call_start(&call, self->loop, &opts);
    while (status == TT_OK && !answer.answered) /* the call has a deadline */
        status = tt_reactor_poll(self->loop, -1);
    if (status == TT_OK)
        status = s_read(self, &answer, out);
    else
        call_cancel(&call);
    free(answer.text);
    free(url);
    return status;
}

/* ---- what it is asked ------------------------------------------------------------------------------------------------------ */

tt_status_t elasticdl_client_create(elasticdl_client_t *self, const elasticdl_request_t *request, json_t **task)
{
    char query[ELASTICDL_QUERY];
    elasticdl_request_write(query, request);
    char *path = tt_sprintf("/create?%s&answer=json", query);
    const tt_status_t status = s_ask(self, path, task);
    free(path);
    return status;
}

static bool s_over(const json_t *task)
{
    static const char *const states[] = {"succeeded", "failed", "deleted"};
    for (size_t i = 0; i < TT_COUNT(states); i++)
        if (strcmp(json_string_value(json_object_get(task, "state")), states[i]) == 0)
            return true;
    return false;
}

static void s_on_timer(void *ctx)
{
    *(bool *)ctx = true;
}

static tt_status_t s_pause(elasticdl_client_t *self)
{
    bool over = false;
    tt_reactor_timer(self->loop, LOOK_MS, s_on_timer, &over);
    while (!over)
        TT_TRY(tt_reactor_poll(self->loop, -1));
    return TT_OK;
}

/*  TT_OK: go on, as a master that is followed by another does not answer for a while. since_ms: of the first look that failed, or -1. */
static tt_status_t s_patience(const elasticdl_client_t *self, tt_status_t status, int64_t *since_ms)
{
    const int64_t now = tt_now_ms(tt_reactor_clock(self->loop));
    if (status == TT_OK)
        *since_ms = -1;
    if (status != TT_UNAVAILABLE || (*since_ms >= 0 && now - *since_ms >= PATIENCE_MS))
        return status;
    if (*since_ms < 0)
        log_warn("%s; asked again for %d s", tt_err_text(), PATIENCE_MS / 1000);
    *since_ms = *since_ms < 0 ? now : *since_ms;
    return TT_OK;
}

tt_status_t elasticdl_client_follow(
    elasticdl_client_t *self, json_t **task, void (*fn)(void *ctx, const json_t *task), void *ctx)
{
    char path[64];
    int64_t failing_ms = -1; /* since then */
    snprintf(path, sizeof path, "/status?id=%d", (int)json_integer_value(json_object_get(*task, "id")));
    for (;;) {
        fn(ctx, *task);
        if (s_over(*task))
            return TT_OK;
        TT_TRY(s_pause(self));
        json_t *next = NULL;
        const tt_status_t status = s_ask(self, path, &next);
        TT_TRY(s_patience(self, status, &failing_ms));
        if (status != TT_OK)
            continue;
        json_decref(*task);
        *task = next;
    }
}
