/*  run - the rounds of a local run: what there is, what is to be done, done; until the job has ended. */
#define TT_LOG_COMPONENT "local"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/signals.h"
#include "k8s/api/dump.h"
#include "local/run.h"
#include "k8s/replicas/replicas.h"

enum { ROUNDS_MAX = 64, WAIT_MS = 1000, TWICE_MS = 200, REFUSED_MS = 1000 };

const char *run_name(const run_t *self)
{
    return ((const kube_meta_t *)self->seen)->name;
}

front_job_t run_info(const run_t *self)
{
    return self->front->job(self->seen);
}

const char *run_phase(const run_t *self)
{
    return self->front->phases[run_info(self).phase];
}

static front_end_t s_end(const run_t *self)
{
    return self->front->end(json_object_get(self->job, "status"));
}

/* ---- services, and objects beside them and pods ------------------------------------------------------------------------------ */

static tt_status_t s_add_service(run_t *self, const front_action_t *action)
{
    json_t *object = NULL;
    void *service = NULL;
    TT_TRY(run_build(self, &object, action));
    char *text = kube_dump(object);
    const tt_status_t status = self->front->service_decode(&service, text, strlen(text));
    free(text);
    json_decref(object);
    TT_TRY(status);
    self->services = tt_realloc(self->services, tt_mul(self->service_count + 1, sizeof *self->services));
    self->services[self->service_count++] = service;
    return TT_OK;
}

static void s_drop_service(run_t *self, size_t i)
{
    tt_pool_free(self->services[i]);
    self->services[i] = self->services[--self->service_count];
}

static void s_delete_service(run_t *self, const char *name)
{
    for (size_t i = self->service_count; i-- > 0;)
        if (strcmp(((const kube_meta_t *)self->services[i])->name, name) == 0)
            s_drop_service(self, i);
}

static tt_status_t s_add_object(run_t *self, const front_action_t *action)
{
    json_t *object = NULL;
    TT_TRY(run_build(self, &object, action));
    json_array_append_new(self->objects, object);
    self->made |= 1u << action->object;
    return TT_OK;
}

static void s_delete_object(run_t *self, const front_action_t *action)
{
    for (size_t i = json_array_size(self->objects); i-- > 0;) {
        const json_t *metadata = json_object_get(json_array_get(self->objects, i), "metadata");
        const char *name = json_string_value(json_object_get(metadata, "name"));
        if (name && action->name && strcmp(name, action->name) == 0)
            json_array_remove(self->objects, i);
    }
    self->made &= ~(1u << action->object);
    self->removed |= 1u << action->object;
}

/* ---- actions --------------------------------------------------------------------------------------------------------------------- */

static tt_status_t s_act(run_t *self, const front_action_t *action)
{
    switch (action->what) {
    case FRONT_CREATE_POD:
        return run_make(self, action);
    case FRONT_DELETE_POD:
        kubelet_delete(self->kubelet, action->name, action->grace_s);
        return TT_OK;
    case FRONT_CREATE_SERVICE:
        return s_add_service(self, action);
    case FRONT_DELETE_SERVICE:
        s_delete_service(self, action->name);
        return TT_OK;
    case FRONT_CREATE_OBJECT:
        return s_add_object(self, action);
    case FRONT_DELETE_OBJECT:
        s_delete_object(self, action);
        return TT_OK;
    case FRONT_DELETE_JOB: /* there is no object here; local_read takes that time out */
        return TT_OK;
    case FRONT_EVENT:
        run_say(self, "%-40s %s %s: %s", run_name(self), action->type, action->reason, action->message);
        return TT_OK;
    }
    return TT_OK;
}

static tt_status_t s_read(const run_t *self, void **out)
{
    char *text = kube_dump(self->job);
    const tt_status_t status = self->front->job_decode(out, text, strlen(text));
    free(text);
    return status;
}

/*  The job as it is now: after its status or its numbers have changed. */
static void s_decode(run_t *self)
{
    void *seen = NULL;
    const int before = self->seen ? run_info(self).phase : 0;
    const tt_status_t read = s_read(self, &seen);
    TT_CHECK(read == TT_OK); /* it was one when it was read first */
    if (self->seen)
        self->front->job_destroy(self->seen);
    self->seen = seen;
    if (run_info(self).phase != before)
        run_say(self, "%-40s %s", run_name(self), run_phase(self));
}

static void s_set_status(run_t *self, const char *text)
{
    json_object_set_new(self->job, "status", json_loads(text, 0, NULL));
    s_decode(self);
}

/*  A pod could not be made (tt_err's words): its group waits, for a second, or where it cannot be built for another spec. */
static void s_refuse(run_t *self, int group, tt_status_t status)
{
    front_refuse(
        &self->refused, &(front_refusal_t){.group = group,
                            .words = tt_err_text(),
                            .reason = "Invalid",
                            .until_ms = status == TT_NOT_FOUND ? INT64_MAX : tt_now_ms(self->clock) + REFUSED_MS});
}

/*  When one may be asked for again, INT64_MAX = never; those of another spec are forgotten. */
static int64_t s_refused_until(run_t *self)
{
    const int64_t generation = run_info(self).generation;
    if (self->refused_generation != generation)
        front_refusals_clear(&self->refused);
    self->refused_generation = generation;
    return front_refused_until(&self->refused, tt_now_ms(self->clock));
}

static void s_do(run_t *self, const front_action_t *action)
{
    const tt_status_t status = s_act(self, action);
    if (status == TT_OK)
        return;
    place_say(self->place, "%s", tt_err_text());
    if (action->what == FRONT_CREATE_POD)
        s_refuse(self, action->group, status);
}

/*  When to look again: as the plan says, and when what could not be made may be tried again. */
static int64_t s_again_ms(run_t *self, int64_t again_s)
{
    const int64_t again_ms = again_s < 0 ? INT64_MAX : tt_now_ms(self->clock) + again_s * 1000;
    const int64_t refused_ms = s_refused_until(self), next_ms = refused_ms < again_ms ? refused_ms : again_ms;
    return next_ms < INT64_MAX ? next_ms : -1;
}

static tt_status_t s_plan(const run_t *self, front_plan_t *out)
{
    front_view_t view = {.job = self->seen,
        .services = (const void *const *)self->services,
        .service_count = self->service_count,
        .made = self->made,
        .removed = self->removed,
        .now_s = tt_steady_ns() / 1000000000,
        .random = self->random,
        .refusals = self->refused.list,
        .refusal_count = self->refused.count};
    const void **pods = run_pods(self, &view.pod_count);
    view.pods = pods;
    const tt_status_t status = self->front->plan(out, &view);
    free(pods);
    return status;
}

/*  One look and what comes of it. Was there anything to do? */
static bool s_round(run_t *self)
{
    front_plan_t plan;
    (void)s_refused_until(self);
    if (s_plan(self, &plan) != TT_OK) {
        log_error("%s", tt_err_text());
        front_plan_clear(&plan);
        return false;
    }
    self->random += 0x9e3779b97f4a7c15u;
    for (size_t i = 0; i < plan.count; i++)
        s_do(self, &plan.actions[i]);
    if (plan.status)
        s_set_status(self, plan.status);
    self->again_ms = s_again_ms(self, plan.again_s);
    const bool any = plan.count > 0 || plan.status;
    front_plan_clear(&plan);
    return any;
}

/*  Restarts may be used up, or there may be none: then nobody comes in its place, and it is why the job failed. */
static int s_code_of_who_is_down(const run_t *self)
{
    for (size_t i = 0; i < kubelet_count(self->kubelet); i++) {
        const front_seen_t pod = kubelet_seen(self->kubelet, i);
        if (pod.again && pod.main_failed && pod.exit_code > 0)
            return pod.exit_code;
    }
    return 0;
}

/*  The exit code of a job without a coordinator is that of the pod that failed first. */
static void s_look_for_failures(run_t *self)
{
    const bool over = run_info(self).final; /* who waits to be started again then is why */
    if (!over)                              /* at its end pods are ended by us */
        self->last_code = s_code_of_who_is_down(self);
    for (size_t i = 0; i < kubelet_count(self->kubelet) && !self->failed_code; i++) {
        const front_seen_t pod = kubelet_seen(self->kubelet, i);
        if (pod.tells && pod.main_failed && pod.exit_code > 0)
            self->failed_code = pod.exit_code;
        else if (pod.tells && pod.main_waits && over && pod.last_exit > 0)
            self->failed_code = pod.last_exit;
        else if (pod.tells && pod.failed)
            self->failed_code = pod.exit_code > 0 ? pod.exit_code : 1;
    }
}

static bool s_runs_tutti(const run_t *self)
{
    const front_local_t *local = self->front->local;
    return local->runs_tutti && local->runs_tutti(self->seen);
}

/*  A tutti job has its coordinator made anew for ever; one that cannot be started here will not get better by that. */
static void s_look_for_breaks(run_t *self)
{
    if (self->broken || self->stopping || !s_runs_tutti(self) || !*kubelet_broken(self->kubelet))
        return;
    self->broken = true;
    run_stop(self, 0);
}

static void s_tell_started(run_t *self)
{
    if (self->started || strcmp(run_phase(self), "Running") != 0)
        return;
    self->started = true;
    if (self->opts->started)
        self->opts->started(self->opts->ctx);
}

void run_settle(run_t *self)
{
    if (self->again_ms >= 0 && tt_now_ms(self->clock) >= self->again_ms)
        self->dirty = true;
    bool changed = false;
    for (int round = 0; round < ROUNDS_MAX; round++) {
        self->dirty |= kubelet_poll(self->kubelet);
        if (!self->dirty)
            break;
        changed = true;
        s_look_for_failures(self);
        s_look_for_breaks(self);
        run_show(self);
        self->dirty = false;
        self->idle = self->stopping || !s_round(self);
        self->dirty |= !self->idle;
    }
    if (!changed)
        return;
    s_tell_started(self);
    run_show(self);
    run_keep(self);
}

/* ---- numbers ----------------------------------------------------------------------------------------------------------------------- */

/*  May the job be as it is now? */
static tt_status_t s_check(const run_t *self)
{
    void *seen = NULL;
    TT_TRY(s_read(self, &seen));
    const char *words = self->front->job(seen).refusal;
    const tt_status_t status = words ? tt_err(TT_INVALID, "%s", words) : TT_OK;
    self->front->job_destroy(seen);
    return status;
}

static tt_status_t s_scale(run_t *self, const char *role, const json_t *replicas)
{
    const front_local_t *local = self->front->local;
    if (!local->scale)
        return tt_err(TT_UNSUPPORTED, "a %s cannot be scaled", self->front->kind);
    if (!json_is_integer(replicas))
        return tt_err(TT_USAGE, "%s: expected a number", role);
    return local->scale(self->job, role, json_integer_value(replicas));
}

tt_status_t run_scale(run_t *self, json_t *wanted)
{
    json_t *before = json_deep_copy(self->job), *metadata = json_object_get(self->job, "metadata"), *replicas;
    const char *role;
    tt_status_t status =
        json_object_size(wanted) ? TT_OK : tt_err(TT_INVALID, "say which role, for example {\"collector\": 2}");
    json_object_foreach(wanted, role, replicas)
    {
        if (status == TT_OK)
            status = s_scale(self, role, replicas);
    }
    if (status == TT_OK)
        status = s_check(self);
    if (status == TT_OK) {
        const json_int_t generation = json_integer_value(json_object_get(metadata, "generation"));
        json_object_set_new(metadata, "generation", json_integer(generation + 1));
        self->dirty = true;
    } else
        json_object_update(self->job, before);
    json_decref(before);
    s_decode(self);
    return status;
}

/* ---- the end -------------------------------------------------------------------------------------------------------------------------- */

void run_stop(run_t *self, int signal)
{
    const int64_t now = tt_now_ms(self->clock);
    if (self->stopping && now - self->asked_ms < TWICE_MS)
        return;
    if (!self->broken)
        run_say(self, self->stopping ? "asked twice: killing every process"
                                     : "stopping: every pod is asked to end; once more to kill");
    const int grace_s = self->stopping || self->broken ? 0 : -1;
    self->asked_ms = now;
    self->signal = self->stopping ? self->signal : signal;
    self->stopping = self->dirty = true;
    kubelet_end(self->kubelet, grace_s);
}

static bool s_is_over(const run_t *self)
{
    if (self->stopping)
        return kubelet_running(self->kubelet) == 0;
    if (!run_info(self).final || !self->idle)
        return false;
    for (size_t i = 0; i < kubelet_count(self->kubelet); i++)
        if (kubelet_info(self->kubelet, i)->deleting)
            return false;
    return true;
}

static tt_status_t s_on_signal(void *ctx, int fd)
{
    run_t *self = ctx;
    int sender;
    for (int number; (number = tt_signals_next_from(fd, &sender)) != 0;)
        if (number != SIGCHLD && tt_asked(&self->asked, sender, tt_now_ms(self->clock)) != TT_ASKED_ECHO)
            run_stop(self, number);
    return TT_OK;
}

static tt_status_t s_on_server(void *ctx, int fd)
{
    (void)fd;
    tt_server_serve(((run_t *)ctx)->server);
    return TT_OK;
}

static int64_t s_sooner(int64_t a, int64_t b)
{
    return b >= 0 && b < a ? b : a;
}

static tt_status_t s_turn(run_t *self)
{
    const int64_t now = tt_now_ms(self->clock);
    int64_t wait = s_sooner(WAIT_MS, kubelet_due_ms(self->kubelet));
    const int64_t due = tt_server_due_ms(self->server);
    wait = s_sooner(wait, due);
    if (self->again_ms >= 0)
        wait = s_sooner(wait, self->again_ms > now ? self->again_ms - now : 0);
    const tt_status_t status = tt_loop_poll(self->loop, self->dirty ? 0 : wait);
    if (status != TT_OK && status != TT_AGAIN)
        return status;
    if (due >= 0)
        tt_server_serve(self->server);
    run_settle(self);
    return TT_OK;
}

/* ---- beginning ------------------------------------------------------------------------------------------------------------------------- */

/*  As the API server would have it. */
static void s_admit(run_t *self)
{
    json_t *metadata = json_object_get(self->job, "metadata");
    json_object_del(self->job, "status");
    json_object_del(metadata, "ownerReferences");
    json_object_set_new(metadata, "namespace", json_string(self->place->namespace_));
    json_object_set_new(metadata, "uid", json_sprintf("local-%d-%lld", (int)getpid(), (long long)tt_wall_ns()));
    json_object_set_new(metadata, "generation", json_integer(1));
    s_decode(self);
}

/*  Port 8080 of an address that nobody else has, which is how two runs have nets of their own; any port where that does
 *  not work. */
static tt_status_t s_serve(run_t *self)
{
    char address[32];
    const tt_server_opts_t opts = {
        .address = address, .on_request = run_api, .ctx = self, .healthz = REPLICAS_HEALTHZ, .clock = self->clock};
    tt_status_t status;
    do {
        snprintf(address, sizeof address, "127.%u.0.1:8080", self->place->net);
        status = tt_server_start(&self->server, &opts);
    } while (status == TT_EXISTS && place_next_net(self->place));
    place_name_server(self->place, status == TT_OK);
    if (status != TT_OK) {
        snprintf(address, sizeof address, "127.0.0.1:0");
        TT_TRY(tt_server_start(&self->server, &opts));
    }
    address[strcspn(address, ":")] = '\0';
    snprintf(self->server_url, sizeof self->server_url, "http://%s:%d", address, tt_server_port(self->server));
    tt_loop_fd(self->loop, tt_server_fd(self->server), s_on_server, self);
    return TT_OK;
}

static tt_status_t s_open_signals(run_t *self)
{
    TT_TRY(tt_signals_open_parent(&self->signal_fd));
    tt_loop_fd(self->loop, self->signal_fd, s_on_signal, self);
    return TT_OK;
}

static tt_status_t s_begin(run_t *self)
{
    const local_opts_t *opts = self->opts;
    const json_t *metadata = json_object_get(self->job, "metadata");
    const char *namespace_ = json_string_value(json_object_get(metadata, "namespace"));
    TT_TRY(place_new(&self->place, opts->run->path, namespace_ && *namespace_ ? namespace_ : "default",
        json_string_value(json_object_get(metadata, "name")), !opts->no_namespaces, !opts->no_limits, opts->say,
        opts->ctx));
    self->place->objects = self->objects;
    s_admit(self);
    TT_TRY(tt_loop_new(&self->loop, self->clock));
    TT_TRY(s_open_signals(self));
    TT_TRY(kubelet_new(&self->kubelet, self->place, self->front, s_runs_tutti(self), self->clock));
    TT_TRY(s_serve(self));
    return control_serve(self);
}

static bool s_was_late(const run_t *self)
{
    const char *reason = s_end(self).reason;
    return reason && strcmp(reason, "DeadlineExceeded") == 0;
}

static int s_failed_code(const run_t *self)
{
    return self->failed_code ? self->failed_code : self->last_code ? self->last_code : 1;
}

static void s_judge(const run_t *self, local_outcome_t *out)
{
    const bool final = run_info(self).final, well = final && s_end(self).well;
    out->phase = !final ? TT_JOB_STOPPED : well ? TT_JOB_SUCCEEDED : TT_JOB_FAILED;
    out->exit_code = well               ? 0
                     : s_was_late(self) ? tt_status_exit_code(TT_TIMEOUT) /* how its pods ended then is our doing */
                     : final            ? s_failed_code(self)
                     : self->signal     ? 128 + self->signal
                                        : 143;
    if (self->broken) {
        out->phase = TT_JOB_FAILED;
        out->exit_code = 128;
        snprintf(out->reason, sizeof out->reason, "%s", kubelet_broken(self->kubelet));
        return;
    }
    if (!final)
        snprintf(out->reason, sizeof out->reason, "%s%s, before the job ended", self->signal ? "SIG" : "tutti stop",
            self->signal ? sigabbrev_np(self->signal) : "");
    const json_t *conditions = json_object_get(json_object_get(self->job, "status"), "conditions");
    size_t i;
    json_t *entry;
    json_array_foreach((json_t *)(uintptr_t)conditions, i, entry)
    {
        const char *type = json_string_value(json_object_get(entry, "type"));
        const char *message = json_string_value(json_object_get(entry, "message"));
        if (final && type && message && strcmp(type, run_phase(self)) == 0)
            snprintf(out->reason, sizeof out->reason, "%s", message);
    }
}

static void s_close(run_t *self)
{
    tt_server_stop(&self->server);
    kubelet_destroy(&self->kubelet);
    if (self->control) {
        tt_loop_forget_sock(self->loop, self->control);
        tt_sock_destroy(&self->control);
    }
    tt_loop_destroy(&self->loop);
    while (self->service_count)
        s_drop_service(self, self->service_count - 1);
    free(self->services);
    front_refusals_clear(&self->refused);
    if (self->seen)
        self->front->job_destroy(self->seen);
    place_destroy(&self->place);
    json_decref(self->objects);
    json_decref(self->ports);
    json_decref(self->shown);
    if (self->signal_fd >= 0)
        close(self->signal_fd);
}

tt_status_t local_run(local_outcome_t *out, const local_opts_t *opts)
{
    run_t self = {.opts = opts,
        .clock = tt_clock_or_real(opts->clock),
        .front = opts->manifest->front,
        .job = opts->manifest->job,
        .objects = json_deep_copy(opts->manifest->objects),
        .ports = json_object(),
        .shown = json_object(),
        .signal_fd = -1,
        .random = (uint64_t)tt_wall_ns() ^ ((uint64_t)getpid() << 40),
        .dirty = true,
        .again_ms = -1};
    *out = (local_outcome_t){0};
    tt_status_t status = s_begin(&self);
    if (status == TT_OK)
        run_settle(&self);
    while (status == TT_OK && !s_is_over(&self))
        status = s_turn(&self);
    if (status == TT_OK) {
        const size_t left = kubelet_running(self.kubelet);
        if (left)
            run_say(&self, "%zu processes that cleanPodPolicy keeps end with this run; their logs stay", left);
        s_judge(&self, out);
    }
    s_close(&self);
    return status;
}
