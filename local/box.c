#include "local/box.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/words.h"
#include "k8s/front/object.h"

/* ---- the last line --------------------------------------------------------------------------------------------------------- */

/*  The last of the lines that are not empty, shortened to fit; what terminals obey is '?'. */
static void s_last_line(char out[BOX_WORDS], char *text, size_t size)
{
    while (size > 0 && (text[size - 1] == '\n' || text[size - 1] == '\r' || text[size - 1] == ' '))
        size--;
    size_t begin = size;
    while (begin > 0 && text[begin - 1] != '\n')
        begin--;
    for (size_t i = begin; i < size; i++)
        if ((unsigned char)text[i] < ' ' || text[i] == 127)
            text[i] = '?';
    text[size] = '\0';
    tt_words(out, BOX_WORDS, text + begin);
}

void box_read_last_line(box_t *self, const char *run_dir)
{
    char *path = tt_sprintf("%s/logs/%s.log", run_dir, self->log), tail[4096 + 1];
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    const off_t size = fd >= 0 ? lseek(fd, 0, SEEK_END) : -1;
    const off_t room = sizeof tail - 1, from = size > room ? size - room : 0;
    const ssize_t got = size > 0 ? pread(fd, tail, (size_t)room, from) : 0;
    s_last_line(self->message, tail, got > 0 ? (size_t)got : 0);
    if (fd >= 0)
        close(fd);
    free(path);
}

/* ---- status ---------------------------------------------------------------------------------------------------------------- */

/*  How one ended last; NULL where it never has. */
static json_t *s_end(const tt_container_t *one, const box_t *box)
{
    if (box->finished_s == 0)
        return NULL;
    json_t *end = json_pack("{s:{s:i, s:s, s:o, s:o}}", "terminated", "exitCode", one->exit_code, "reason", box->reason,
        "startedAt", parts_time_text(box->started_s), "finishedAt", parts_time_text(box->finished_s));
    if (*box->message)
        json_object_set_new(json_object_get(end, "terminated"), "message", tt_json_text(box->message));
    return end;
}

static json_t *s_state(const tt_container_t *one, const box_t *box)
{
    if (one->state == TT_CONTAINER_RUNNING)
        return json_pack("{s:{s:o}}", "running", "startedAt", parts_time_text(box->started_s));
    if (one->state == TT_CONTAINER_ENDED)
        return s_end(one, box);
    const bool first = one->state == TT_CONTAINER_NEW;
    return json_pack("{s:{s:s}}", "waiting", "reason", first ? "PodInitializing" : "CrashLoopBackOff");
}

static json_t *s_container(const tt_container_t *one, const box_t *box)
{
    json_t *out = json_pack("{s:s, s:b, s:i, s:o}", "name", json_string_value(json_object_get(box->spec, "name")),
        "ready", one->state == TT_CONTAINER_RUNNING, "restartCount", one->restarts, "state", s_state(one, box));
    json_t *last = one->state == TT_CONTAINER_ENDED ? NULL : s_end(one, box);
    if (last)
        json_object_set_new(out, "lastState", last);
    return out;
}

static json_t *s_statuses(const pod_t *pod, bool init)
{
    json_t *list = json_array();
    for (size_t i = 0; i < pod->containers.count; i++)
        if (pod->containers.list[i].init == init)
            json_array_append_new(list, s_container(&pod->containers.list[i], &pod->boxes[i]));
    return list;
}

static const char *s_phase(const pod_t *pod)
{
    switch (tt_containers_phase(&pod->containers)) {
    case TT_JOB_SUCCEEDED:
        return "Succeeded";
    case TT_JOB_FAILED:
        return "Failed";
    case TT_JOB_RUNNING:
        return "Running";
    default:
        return "Pending";
    }
}

const char *pod_name(const pod_t *self)
{
    return json_string_value(json_object_get(json_object_get(self->object, "metadata"), "name"));
}

json_t *pod_status(const pod_t *self)
{
    json_t *status =
        json_pack("{s:s, s:s, s:s, s:[{s:s, s:s}, {s:s, s:s}], s:o}", "phase", s_phase(self), "podIP", self->ip,
            "hostIP", "127.0.0.1", "conditions", "type", "PodScheduled", "status", "True", "type", "Ready", "status",
            tt_containers_ready(&self->containers) ? "True" : "False", "containerStatuses", s_statuses(self, false));
    if (self->containers.list[0].init)
        json_object_set_new(status, "initContainerStatuses", s_statuses(self, true));
    return status;
}
