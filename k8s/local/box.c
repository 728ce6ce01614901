#include "k8s/local/box.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "common/base/json.h"
#include "common/base/mem.h"

/* ---- the last line --------------------------------------------------------------------------------------------------------- */

/*  The last of the lines that are not empty, cut to fit; what terminals obey is '?'. */
static void s_last_line(char *out, size_t room, const char *text, size_t size)
{
    while (size > 0 && (text[size - 1] == '\n' || text[size - 1] == '\r' || text[size - 1] == ' '))
        size--;
    size_t begin = size;
    while (begin > 0 && text[begin - 1] != '\n')
        begin--;
    size_t length = 0;
    for (; begin < size && length + 1 < room; begin++)
        out[length++] = (unsigned char)text[begin] >= ' ' && text[begin] != 127 ? text[begin] : '?';
    out[length] = '\0';
}

void box_read_last_line(box_t *self, const char *run_dir)
{
    char *path = tt_sprintf("%s/logs/%s.log", run_dir, self->log), tail[4096];
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    const off_t size = fd >= 0 ? lseek(fd, 0, SEEK_END) : -1;
    const off_t from = size > (off_t)sizeof tail ? size - (off_t)sizeof tail : 0;
    const ssize_t got = size > 0 ? pread(fd, tail, sizeof tail, from) : 0;
    s_last_line(self->message, sizeof self->message, tail, got > 0 ? (size_t)got : 0);
    if (fd >= 0)
        close(fd);
    free(path);
}

/* ---- status ---------------------------------------------------------------------------------------------------------------- */

json_t *pod_time(int64_t seconds)
{
    char text[32];
    struct tm tm;
    const time_t when = (time_t)seconds;
    gmtime_r(&when, &tm);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm);
    return json_string(text);
}

/*  How it ended last; NULL where it never has. */
static json_t *s_end(const box_t *box)
{
    if (box->finished_s == 0)
        return NULL;
    json_t *end = json_pack("{s:{s:i, s:s, s:o, s:o}}", "terminated", "exitCode", box->exit_code, "reason", box->reason,
        "startedAt", pod_time(box->started_s), "finishedAt", pod_time(box->finished_s));
    if (*box->message)
        json_object_set_new(json_object_get(end, "terminated"), "message", tt_json_text(box->message));
    return end;
}

static json_t *s_state(const box_t *box)
{
    if (box->state == BOX_RUNNING)
        return json_pack("{s:{s:o}}", "running", "startedAt", pod_time(box->started_s));
    if (box->state == BOX_ENDED)
        return s_end(box);
    const bool first = box->state == BOX_NEW;
    return json_pack("{s:{s:s}}", "waiting", "reason", first ? "PodInitializing" : "CrashLoopBackOff");
}

static json_t *s_container(const box_t *box)
{
    json_t *out = json_pack("{s:s, s:b, s:i, s:o}", "name", json_string_value(json_object_get(box->spec, "name")),
        "ready", box->state == BOX_RUNNING, "restartCount", box->restarts, "state", s_state(box));
    json_t *last = box->state == BOX_ENDED ? NULL : s_end(box);
    if (last)
        json_object_set_new(out, "lastState", last);
    return out;
}

static json_t *s_statuses(const pod_t *pod, bool init)
{
    json_t *list = json_array();
    for (size_t i = 0; i < pod->count; i++)
        if (pod->boxes[i].init == init)
            json_array_append_new(list, s_container(&pod->boxes[i]));
    return list;
}

bool box_is_sidecar(const box_t *self)
{
    return self->init && self->restart == RESTART_ALWAYS;
}

static const char *s_phase(const pod_t *pod)
{
    bool started = false, over = true, failed = false;
    for (size_t i = 0; i < pod->count; i++) {
        const box_t *box = &pod->boxes[i];
        if (box->init) {
            if (!box_is_sidecar(box) && box->state == BOX_ENDED && box->exit_code != 0)
                return "Failed";
            continue;
        }
        started |= box->state != BOX_NEW && (box->state != BOX_WAITING || box->restarts > 0);
        over &= box->state == BOX_ENDED;
        failed |= box->state == BOX_ENDED && box->exit_code != 0;
    }
    if (over)
        return failed ? "Failed" : "Succeeded";
    return started ? "Running" : "Pending";
}

static bool s_ready(const pod_t *pod)
{
    for (size_t i = 0; i < pod->count; i++)
        if (!pod->boxes[i].init && pod->boxes[i].state != BOX_RUNNING)
            return false;
    return true;
}

const char *pod_name(const pod_t *self)
{
    return json_string_value(json_object_get(json_object_get(self->object, "metadata"), "name"));
}

json_t *pod_status(const pod_t *self)
{
    json_t *status = json_pack("{s:s, s:s, s:s, s:[{s:s, s:s}, {s:s, s:s}], s:o}", "phase", s_phase(self), "podIP",
        self->ip, "hostIP", "127.0.0.1", "conditions", "type", "PodScheduled", "status", "True", "type", "Ready",
        "status", s_ready(self) ? "True" : "False", "containerStatuses", s_statuses(self, false));
    if (self->boxes[0].init)
        json_object_set_new(status, "initContainerStatuses", s_statuses(self, true));
    return status;
}
