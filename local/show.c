/*  show - what a person sees of a local run: lines as phases change, and the files that `tutti status` reads later. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "local/run.h"
#define TT_LOG_COMPONENT "local"
#include "common/base/log.h"

void run_say(run_t *self, const char *fmt, ...)
{
    char text[2048], line[2100], when[16];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    const time_t now = (time_t)(tt_wall_ns() / 1000000000);
    struct tm tm;
    localtime_r(&now, &tm);
    strftime(when, sizeof when, "%H:%M:%S", &tm);
    snprintf(line, sizeof line, "%s  %s", when, text);
    if (self->opts->say)
        self->opts->say(self->opts->ctx, line);
}

/*  As kubectl's STATUS column: the phase, or what is the matter with it. */
static void s_state(const kubelet_t *kubelet, size_t index, char out[64])
{
    const front_seen_t pod = kubelet_seen(kubelet, index);
    if (kubelet_info(kubelet, index)->deleting)
        snprintf(out, 64, "Terminating");
    else if (pod.failed && pod.exit_code >= 0)
        snprintf(out, 64, "Failed (exit code %d)", pod.exit_code);
    else if (strcmp(pod.phase, "Running") == 0 && pod.main_waits)
        snprintf(out, 64, "CrashLoopBackOff");
    else
        snprintf(out, 64, "%s", pod.phase);
}

/*  A container that has failed and does not run now: how it ended last. NULL = there is none. */
static const json_t *s_failed(const json_t *pod, const char **container)
{
    static const char *const lists[] = {"initContainerStatuses", "containerStatuses"}, *const states[] = {
                                                                                           "state", "lastState"};
    size_t i;
    json_t *item;
    for (size_t l = 0; l < TT_COUNT(lists); l++)
        json_array_foreach(json_object_get(json_object_get(pod, "status"), lists[l]), i, item)
        {
            const bool running = json_object_get(json_object_get(item, "state"), "running") != NULL;
            for (size_t s = 0; s < TT_COUNT(states) && !running; s++) {
                const json_t *end = json_object_get(json_object_get(item, states[s]), "terminated");
                *container = json_string_value(json_object_get(item, "name"));
                if (json_integer_value(json_object_get(end, "exitCode")) != 0)
                    return end;
            }
        }
    return NULL;
}

/*  Where its log is, and the last line of it: what people look for first. */
static void s_show_failure(run_t *self, const json_t *pod)
{
    const char *container = "";
    const json_t *end = s_failed(pod, &container);
    const char *words = json_string_value(json_object_get(end, "message"));
    if (end)
        run_say(self, "  container %s ended with exit code %d%s%s", container,
            (int)json_integer_value(json_object_get(end, "exitCode")), words ? ": " : "", words ? words : "");
}

static void s_show_pod(run_t *self, size_t index)
{
    char state[64];
    const char *name = kubelet_name(self->kubelet, index);
    const front_seen_t pod = kubelet_seen(self->kubelet, index);
    s_state(self->kubelet, index, state);
    const char *before = json_string_value(json_object_get(self->shown, name));
    if (before && strcmp(before, state) == 0)
        return;
    json_object_set_new(self->shown, name, json_string(state));
    if (before || strcmp(state, "Pending") != 0) /* Pending is over before it can be read */
        run_say(self, "%-40s %s", name, state);
    if (pod.failed || pod.main_waits)
        s_show_failure(self, kubelet_object(self->kubelet, index));
}

static void s_show_gone(run_t *self)
{
    const char *name;
    json_t *state;
    void *next;
    json_object_foreach_safe(self->shown, next, name, state)
    {
        if (kubelet_find(self->kubelet, name) < kubelet_count(self->kubelet))
            continue;
        run_say(self, "%-40s gone", name);
        json_object_del(self->shown, name);
    }
}

void run_show(run_t *self)
{
    for (size_t i = 0; i < kubelet_count(self->kubelet); i++)
        s_show_pod(self, i);
    s_show_gone(self);
}

/* ---- files and answers -------------------------------------------------------------------------------------------------------- */

static json_t *s_members(const run_t *self)
{
    json_t *list = json_array();
    for (size_t i = 0; i < kubelet_count(self->kubelet); i++) {
        const front_pod_t *pod = kubelet_info(self->kubelet, i);
        char state[64];
        s_state(self->kubelet, i, state);
        json_array_append_new(
            list, json_pack("{s:s, s:s, s:s, s:s, s:i}", "name", kubelet_name(self->kubelet, i), "role",
                      kubelet_seen(self->kubelet, i).group, "state", state, "ip", pod->ip, "port", pod->port));
    }
    return list;
}

static void s_count(json_t *counts, const char *name, int64_t desired, size_t ready, size_t there)
{
    json_object_set_new(counts, name,
        json_pack(
            "{s:I, s:I}", "desired", (json_int_t)(desired < 0 ? (int64_t)there : desired), "ready", (json_int_t)ready));
}

/*  {"collector": {"desired", "ready"}}; without a number in the spec the desired one is what there is. */
static json_t *s_counts(const run_t *self)
{
    json_t *counts = json_object();
    front_group_t group;
    for (size_t g = 0; self->front->group_at(self->seen, g, &group); g++) {
        size_t ready = 0, there = 0;
        for (size_t i = 0; i < kubelet_count(self->kubelet); i++) {
            const front_seen_t pod = kubelet_seen(self->kubelet, i);
            const bool of = strcmp(pod.group, group.name) == 0;
            ready += of && pod.ready && !kubelet_info(self->kubelet, i)->deleting;
            there += of && pod.alive;
        }
        if (group.asked || there)
            s_count(counts, group.name, group.desired, ready, there);
    }
    return counts;
}

json_t *run_status(const run_t *self)
{
    const json_t *status = json_object_get(self->job, "status");
    return json_pack("{s:o, s:s, s:s, s:s, s:s, s:O?, s:o, s:o, s:o}", "run", tt_json_text(self->opts->run->name),
        "kind", self->front->kind, "name", run_name(self), "namespace", self->place->namespace_, "phase",
        run_phase(self), "job_status", status, "replicas", s_counts(self), "members", s_members(self), "run_dir",
        tt_json_text(self->opts->run->path));
}

static void s_write(const run_t *self, const char *file, const json_t *value)
{
    char *text = json_dumps(value, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
    if (tt_rundir_write(self->opts->run, file, text, 0644) != TT_OK)
        log_warn("%s", tt_err_text());
    free(text);
}

void run_keep(run_t *self)
{
    json_t *pods = json_array();
    for (size_t i = 0; i < kubelet_count(self->kubelet); i++)
        json_array_append(pods, (json_t *)(uintptr_t)kubelet_object(self->kubelet, i));
    s_write(self, "job.json", self->job);
    s_write(self, "pods.json", pods);
    json_decref(pods);
}
