#include "elasticdl/master.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/file.h"
#include "common/base/process.h"
#include "common/base/signals.h"
#include "common/http/server.h"
#include "controller/guard.h"
#include "common/http/query.h"
#include "elasticdl/metrics.h"
#include "elasticdl/reply.h"
#include "elasticdl/tasks.h"
#define TT_LOG_COMPONENT "master"
#include "common/base/log.h"

enum { METRICS_MAX = 65536 };

typedef struct {
    const elasticdl_master_opts_t *opts;
    const tt_clock_t *clock;
    tt_reactor_t *loop;
    tt_server_t *server;
    edl_place_t *place;
    edl_tasks_t *tasks;
    edl_task_limits_t limits;
    double started_s;   /* of the process, since 1970 */
    bool stopping, now; /* now: do not wait for programs to take their leave */
    tt_asked_t asked;
} master_t;

typedef tt_status_t (*serve_fn)(master_t *self, const tt_server_request_t *request);

/* ---- which task ------------------------------------------------------------------------------------------------------------ */

static tt_status_t s_by_id(const master_t *self, edl_task_t **out, const char *text)
{
    char *end = NULL;
    const long id = strtol(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || id > INT32_MAX)
        return tt_err(TT_INVALID, "id is '%s'; a number is possible", text);
    *out = edl_tasks_find_id(self->tasks, (int)id);
    return *out ? TT_OK : tt_err(TT_NOT_FOUND, "there is no task with id %s", text);
}

static tt_status_t s_by_name(const master_t *self, edl_task_t **out, const char *name)
{
    *out = edl_tasks_find_name(self->tasks, name);
    return *out ? TT_OK : tt_err(TT_NOT_FOUND, "there is no task %s", name);
}

static tt_status_t s_task(const master_t *self, edl_task_t **out, const char *query)
{
    char text[ELASTICDL_NAME];
    tt_status_t status = tt_query_get(text, sizeof text, query, "id");
    if (status == TT_OK)
        return s_by_id(self, out, text);
    if (status == TT_NOT_FOUND)
        status = tt_query_get(text, sizeof text, query, "name");
    if (status == TT_OK)
        return s_by_name(self, out, text);
    return status == TT_NOT_FOUND ? tt_err(TT_INVALID, "id or name is missing") : status;
}

/* ---- routes ------------------------------------------------------------------------------------------------------------------ */

static tt_status_t s_create(master_t *self, const tt_server_request_t *request)
{
    elasticdl_request_t wanted;
    edl_task_t *task = NULL;
    char answer[8] = "";
    TT_TRY(elasticdl_request_read(&wanted, request->query));
    if (self->stopping)
        return tt_err(TT_UNAVAILABLE, "the master ends");
    TT_TRY(edl_tasks_create(self->tasks, &wanted, &task));
    if (tt_query_get(answer, sizeof answer, request->query, "answer") == TT_OK && strcmp(answer, "json") == 0)
        reply_json(self->server, request->id, 200, edl_task_status(task));
    else
        reply_text(self->server, request->id, 200, "OK");
    return TT_OK;
}

static tt_status_t s_status(master_t *self, const tt_server_request_t *request)
{
    edl_task_t *task = NULL;
    TT_TRY(s_task(self, &task, request->query));
    reply_json(self->server, request->id, 200, edl_task_status(task));
    return TT_OK;
}

static tt_status_t s_list(master_t *self, const tt_server_request_t *request)
{
    json_t *list = json_array();
    edl_task_t *task;
    for (size_t i = 0; (task = edl_tasks_nth(self->tasks, i)) != NULL; i++) {
        json_t *status = edl_task_status(task);
        json_object_del(status, "members");
        json_array_append_new(list, status);
    }
    reply_json(self->server, request->id, 200, list);
    return TT_OK;
}

static tt_status_t s_delete(master_t *self, const tt_server_request_t *request)
{
    edl_task_t *task = NULL;
    TT_TRY(s_task(self, &task, request->query));
    edl_tasks_delete(self->tasks, task);
    reply_text(self->server, request->id, 200, "OK");
    return TT_OK;
}

static tt_status_t s_logs(master_t *self, const tt_server_request_t *request)
{
    edl_task_t *task = NULL;
    char member[16], folder[EDL_TASK_FOLDER], name[80];
    int fd = -1;
    struct stat info;
    TT_TRY(s_task(self, &task, request->query));
    const tt_status_t status = tt_query_get(member, sizeof member, request->query, "member");
    if (status != TT_OK || edl_task_member_find(task, member) < 0)
        return tt_err(status == TT_OK ? TT_NOT_FOUND : TT_INVALID,
            "member: expected one of the task's, ps-0 or worker-0 and so on");
    TT_TRY(edl_place_log(self->place, task, member, &fd));
    edl_task_folder(task, folder);
    snprintf(name, sizeof name, "%s-%s.log", folder, member);
    if (fstat(fd, &info) != 0) {
        close(fd);
        return tt_err_errno(TT_IO, "%s", name);
    }
    tt_server_reply_file(self->server, request->id, name, fd, (uint64_t)info.st_size);
    return TT_OK;
}

static tt_status_t s_metrics(master_t *self, const tt_server_request_t *request)
{
    tt_buf_t text;
    tt_buf_init(&text, METRICS_MAX);
    const tt_status_t status = edl_metrics(&text, self->tasks, self->started_s);
    if (status == TT_OK)
        tt_server_reply(
            self->server, request->id, 200, "text/plain; version=0.0.4; charset=utf-8", text.data, text.size);
    tt_buf_free(&text);
    return status;
}

typedef struct {
    const char *path;
    bool orders; /* may be a POST */
    serve_fn serve;
} route_t;

static const route_t s_routes[] = {
    {"/create", true, s_create},
    {"/status", false, s_status},
    {"/list", false, s_list},
    {"/logs", false, s_logs},
    {"/delete", true, s_delete},
    {"/metrics", false, s_metrics},
};

static const route_t *s_route(const char *path)
{
    for (size_t i = 0; i < TT_COUNT(s_routes); i++)
        if (strcmp(s_routes[i].path, path) == 0)
            return &s_routes[i];
    return NULL;
}

static void s_on_head(void *ctx, const tt_server_request_t *request)
{
    master_t *self = ctx;
    const route_t *route = s_route(request->path);
    const bool post = strcmp(request->method, "POST") == 0;
    if (self->opts->token && !token_matches(self->opts->token, request->authorization))
        reply_text(self->server, request->id, 401, "send 'Authorization: Bearer TOKEN' with what --token FILE holds");
    else if (!route)
        reply_text(
            self->server, request->id, 404, "there are /create, /status, /list, /logs, /delete, /metrics and /healthz");
    else if (strcmp(request->method, "GET") != 0 && !(post && route->orders))
        reply_text(self->server, request->id, 405, "this is to be asked with GET");
}

static void s_on_request(void *ctx, const tt_server_request_t *request)
{
    master_t *self = ctx;
    const tt_status_t status = s_route(request->path)->serve(self, request);
    if (status != TT_OK)
        reply_text(self->server, request->id, reply_code(status), tt_err_text());
}

/* ---- the loop -------------------------------------------------------------------------------------------------------------------- */

/*  The first ends every task in order, one that is meant seriously at once. */
static void s_on_signal(void *ctx, int fd)
{
    master_t *self = ctx;
    int sender = 0;
    for (int signal; (signal = tt_signals_next_from(fd, &sender)) != 0;) {
        const tt_asking_t asking =
            signal == SIGCHLD ? TT_ASKED_ECHO : tt_asked(&self->asked, sender, tt_now_ms(self->clock));
        if (asking == TT_ASKED_ECHO)
            continue;
        self->stopping = true;
        self->now = asking == TT_ASKED_TWICE || self->place->stays;
        if (!self->place->stays)
            edl_tasks_end_all(self->tasks);
    }
}

static void s_on_server(void *ctx, int fd)
{
    (void)fd;
    tt_server_serve(((master_t *)ctx)->server);
}

static int64_t s_wait_ms(const master_t *self)
{
    const int64_t tasks = edl_tasks_due_ms(self->tasks), server = tt_server_due_ms(self->server);
    return server < 0 || (tasks >= 0 && tasks < server) ? tasks : server;
}

static tt_status_t s_serve(master_t *self)
{
    while (!self->now && (!self->stopping || edl_tasks_living(self->tasks) > 0)) {
        TT_TRY(tt_reactor_poll(self->loop, s_wait_ms(self)));
        edl_tasks_step(self->tasks);
        if (tt_server_due_ms(self->server) == 0)
            tt_server_serve(self->server);
    }
    return TT_OK;
}

/* ---- life -------------------------------------------------------------------------------------------------------------------------- */

static tt_status_t s_announce(const master_t *self)
{
    char url[128], text[256];
    reply_url(url, self->opts->listen, tt_server_port(self->server));
    snprintf(text, sizeof text, "{\"url\": \"%s\", \"pid\": %d}\n", url, (int)getpid());
    TT_TRY(tt_file_replace(self->opts->place.run_dir, "master.json", text, 0644));
    log_info("serving %s; logs are in %s", url, self->opts->place.run_dir);
    if (!reply_is_loopback(self->opts->listen))
        log_warn("%s is open to other hosts%s", url,
            self->opts->token ? ": the token travels in the clear; a tunnel or a TLS proxy belongs before it"
                              : " and asks for no token: whoever reaches it may start tasks");
    return TT_OK;
}

static void s_on_found(void *ctx, const edl_past_t *past)
{
    master_t *self = ctx;
    edl_tasks_adopt(self->tasks, past);
    log_info("task %s, id %d, was there%s", past->request->name, past->id,
        past->record ? " and has ended" : ", and goes on");
}

static tt_status_t s_open_place(master_t *self)
{
    const elasticdl_master_opts_t *opts = self->opts;
    self->limits = opts->cluster ? edl_tasks_in_pods : edl_tasks_usual;
    if (opts->ready_ms)
        self->limits.ready_ms = opts->ready_ms;
    TT_TRY(opts->cluster ? edl_kube_new(&self->place, &opts->place, opts->cluster, self->loop)
                         : local_place_new(&self->place, &opts->place));
    edl_tasks_new(&self->tasks, self->place, self->loop, &self->limits, self->clock);
    return opts->cluster ? edl_kube_recover(self->place, s_on_found, self) : TT_OK;
}

static tt_status_t s_start(master_t *self)
{
    const tt_server_opts_t server = {.address = self->opts->listen,
        .on_head = s_on_head,
        .on_request = s_on_request,
        .ctx = self,
        .clock = self->clock};
    TT_TRY(tt_reactor_new(&self->loop, self->clock));
    TT_TRY(s_open_place(self));
    TT_TRY(tt_server_start(&self->server, &server));
    tt_reactor_fd(self->loop, tt_server_fd(self->server), s_on_server, self);
    tt_reactor_fd(self->loop, self->opts->stop_fd, s_on_signal, self);
    return s_announce(self);
}

tt_status_t elasticdl_master_run(const elasticdl_master_opts_t *opts)
{
    master_t self = {.opts = opts, .clock = tt_clock_or_real(opts->place.clock), .started_s = tt_process_started_s()};
    tt_status_t status = s_start(&self);
    if (status == TT_OK)
        status = s_serve(&self);
    if (self.server)
        tt_server_stop(&self.server);
    edl_tasks_destroy(&self.tasks);
    if (self.place)
        self.place->ops->destroy(&self.place);
    tt_reactor_destroy(&self.loop);
    return status;
}
