/*  submit - send a task to a master (elasticdl/master.h), with the flags of ElasticDL's client. */
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/cmd.h"
#include "common/base/mem.h"
#include "common/base/text.h"
#include "common/http/token.h"
#include "elasticdl/client.h"
#include "elasticdl/request.h"

const tt_option_t tt_opt_submit[] = {
    {"master", 0, "URL", "the master (default http://127.0.0.1:7897)"},
    {"strategy", 0, "AllReduce|ParameterServer", "how the workers bring their gradients together (default AllReduce)"},
    {"worker-num", 0, "N", "workers"},
    {"ps-num", 0, "N", "parameter servers, for ParameterServer (default 0)"},
    {"image", 0, "NAME", "the image of the members on a cluster; on one machine it is a word"},
    {"task", 0, "NAME", "the task's name (default `default`)"},
    {"queue", 0, "NAME", "of Kueue's: it waits there for the places of all of its members (default: none)"},
    {"token", 0, "FILE", "the secret of a master that wants one"},
    {"deadline", 0, "AGE", "a task that is not over so long after this has failed: 90s, 30m, 12h (default: none)"},
    {"wait", 0, NULL, "follow the task to its end"},
    {0},
};

static tt_status_t s_deadline(const tt_args_t *args, int *out)
{
    int64_t seconds = 0;
    TT_TRY(tt_arg_age(args, "deadline", &seconds));
    if (tt_arg(args, "deadline") && (seconds < 1 || seconds > INT32_MAX))
        return tt_err(TT_USAGE, "--deadline: expected from 1s to 3550w");
    *out = (int)seconds;
    return TT_OK;
}

static tt_status_t s_request(const tt_args_t *args, elasticdl_request_t *out)
{
    uint64_t workers = 0, ps = 0;
    const char *name = tt_arg(args, "task"), *image = tt_arg(args, "image"), *queue = tt_arg(args, "queue");
    if (!tt_arg(args, "worker-num"))
        return tt_err(TT_USAGE, "--worker-num N is missing");
    TT_TRY(tt_arg_u64(args, "worker-num", &workers, 1, ELASTICDL_MEMBERS));
    TT_TRY(tt_arg_u64(args, "ps-num", &ps, 0, ELASTICDL_MEMBERS));
    if (image && strlen(image) >= sizeof out->image)
        return tt_err(TT_USAGE, "--image: more than %zu characters", sizeof out->image - 1);
    *out = (elasticdl_request_t){.workers = (int)workers, .ps = (int)ps};
    if (tt_arg_is(args, "strategy", "ParameterServer"))
        out->strategy = ELASTICDL_PARAMETER_SERVER;
    else if (ps > 0)
        fprintf(stderr, "tutti submit: --ps-num means nothing for AllReduce, and is left out\n");
    out->ps = out->strategy == ELASTICDL_PARAMETER_SERVER ? (int)ps : 0;
    TT_TRY(s_deadline(args, &out->deadline_s));
    snprintf(out->image, sizeof out->image, "%s", image ? image : "");
    if (queue && strlen(queue) >= sizeof out->queue)
        return tt_err(TT_USAGE, "--queue: more than %zu characters", sizeof out->queue - 1);
    snprintf(out->queue, sizeof out->queue, "%s", queue ? queue : "");
    if (name && strlen(name) >= sizeof out->name)
        return tt_err(TT_USAGE, "--task: more than %zu characters", sizeof out->name - 1);
    snprintf(out->name, sizeof out->name, "%s", name ? name : "default");
    if (elasticdl_request_check(out) != TT_OK)
        return tt_err_wrap(TT_USAGE, "the task");
    return TT_OK;
}

static void s_print_task(const elasticdl_client_t *client, const json_t *task)
{
    const int id = (int)json_integer_value(json_object_get(task, "id"));
    const char *state = json_string_value(json_object_get(task, "state"));
    printf("task %s has id %d at %s: %s\n", tt_shown(json_string_value(json_object_get(task, "name"))), id, client->url,
        state ? tt_shown(state) : "");
    printf("  state  curl '%s/status?id=%d'\n", client->url, id);
    printf("  logs   curl '%s/logs?id=%d&member=worker-0'\n", client->url, id);
    printf("  end    curl '%s/delete?id=%d'\n", client->url, id);
    fflush(stdout);
}

/*  What has changed. */
static void s_print_state(void *ctx, const json_t *task)
{
    char *before = ctx, now[128];
    const char *state = json_string_value(json_object_get(task, "state"));
    const char *step = json_string_value(json_object_get(task, "step"));
    const bool starting = state && strcmp(state, "starting") == 0;
    snprintf(now, sizeof now, "%s", starting && step ? step : state ? state : "");
    if (strcmp(now, before) == 0)
        return;
    snprintf(before, sizeof now, "%s", now);
    printf("%s\n", tt_shown(now));
    fflush(stdout);
}

static int s_code(const json_t *task)
{
    const char *state = json_string_value(json_object_get(task, "state"));
    const int failed = (int)json_integer_value(json_object_get(task, "exit_code"));
    if (strcmp(state, "succeeded") == 0)
        return 0;
    if (strcmp(state, "deleted") == 0)
        return tt_status_exit_code(TT_STOPPED);
    return failed > 0 && failed < 256 ? failed : tt_status_exit_code(TT_UNAVAILABLE);
}

static tt_status_t s_follow(elasticdl_client_t *client, json_t **task, int *code)
{
    char before[128] = "";
    TT_TRY(elasticdl_client_follow(client, task, s_print_state, before));
    const char *reason = json_string_value(json_object_get(*task, "reason"));
    if (reason)
        fprintf(stderr, "tutti submit: %s\n", tt_shown(reason));
    *code = s_code(*task);
    return TT_OK;
}

static tt_status_t s_submit(elasticdl_client_t *client, const elasticdl_request_t *request, bool wait, int *code)
{
    json_t *task = NULL;
    TT_TRY(elasticdl_client_create(client, request, &task));
    s_print_task(client, task);
    const tt_status_t status = wait ? s_follow(client, &task, code) : TT_OK;
    json_decref(task);
    return status;
}

int tt_cmd_submit(int argc, char **argv)
{
    int code;
    TT_AUTO(tt_args) args = tt_args_new(&code, "submit", argc, argv);
    if (!args)
        return code;
    elasticdl_request_t request;
    elasticdl_client_t client = {0};
    char token[TOKEN_SIZE];
    const char *url = tt_arg(args, "master"), *file = tt_arg(args, "token");
    tt_status_t status = s_request(args, &request);
    if (status == TT_OK && file)
        status = token_read(token, file);
    if (status == TT_OK)
        status = elasticdl_client_open(&client, url ? url : "http://127.0.0.1:7897", file ? token : NULL);
    if (status == TT_OK)
        status = s_submit(&client, &request, tt_arg_given(args, "wait"), &code);
    elasticdl_client_close(&client);
    return status == TT_OK ? code : tt_args_fail(args, status);
}
