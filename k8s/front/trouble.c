/*  trouble - what a pod's status says of why it does not run, or failed: one word, and the line that a person wants to read. Of one that
 *  was not even made an event does. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/base/words.h"
#include "k8s/front/object.h"

/*  What a kubelet says of a container that waits -> our word. It alternates between an error and the back-off after it. */
static const char *const s_waiting[][2] = {
    {"ErrImagePull", "ImagePullFailed"},
    {"ImagePullBackOff", "ImagePullFailed"},
    {"InvalidImageName", "ImagePullFailed"},
    {"ErrImageNeverPull", "ImagePullFailed"},
    {"ImageInspectError", "ImagePullFailed"},
    {"RegistryUnavailable", "ImagePullFailed"},
    {"SignatureValidationFailed", "ImagePullFailed"},
    {"CrashLoopBackOff", "CrashLoop"},
    {"CreateContainerConfigError", "ContainerRefused"},
    {"CreateContainerError", "ContainerRefused"},
    {"RunContainerError", "ContainerRefused"},
    {"PostStartHookError", "ContainerRefused"},
};

static const char *s_word(const char *reason)
{
    for (size_t i = 0; i < TT_COUNT(s_waiting); i++)
        if (strcmp(reason, s_waiting[i][0]) == 0)
            return s_waiting[i][1];
    return NULL;
}

/*  The last line that says something, shortened where it is too long, without what would move a terminal. */
static void s_last_line(char out[PARTS_WORDS], const char *text)
{
    const char *end = text + strlen(text), *begin;
    while (end > text && isspace((unsigned char)end[-1]))
        end--;
    for (begin = end; begin > text && begin[-1] != '\n'; begin--)
        ;
    char *line = tt_sprintf("%.*s", (int)(end - begin), begin);
    tt_words(out, PARTS_WORDS, line);
    free(line);
    for (char *c = out; *c; c++)
        if (iscntrl((unsigned char)*c))
            *c = ' ';
}

static void s_set(parts_trouble_t *self, const char *why, const char *words)
{
    const size_t length = strspn(why, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789");
    const bool word = length > 0 && length < sizeof self->why && !why[length];
    snprintf(self->why, sizeof self->why, "%s", word ? why : "Error");
    s_last_line(self->words, words);
}

/*  A container that cannot be started, or not again. The words of one that crashed are its own, not the back-off's. */
static bool s_waits(parts_trouble_t *self, const json_t *status)
{
    const json_t *waiting = json_object_get(json_object_get(status, "state"), "waiting");
    const json_t *ended = json_object_get(json_object_get(status, "lastState"), "terminated");
    const char *word = s_word(parts_text(waiting, "reason", ""));
    if (word)
        s_set(self, word, parts_text(strcmp(word, "CrashLoop") == 0 ? ended : waiting, "message", ""));
    return word != NULL;
}

static bool s_any_waits(parts_trouble_t *self, const json_t *statuses)
{
    size_t i;
    json_t *status;
    json_array_foreach(statuses, i, status)
    {
        if (s_waits(self, status))
            return true;
    }
    return false;
}

static bool s_ended_badly(parts_trouble_t *self, const json_t *main_status)
{
    const json_t *ended = json_object_get(json_object_get(main_status, "state"), "terminated");
    if (!ended || json_integer_value(json_object_get(ended, "exitCode")) == 0)
        return false;
    s_set(self, parts_text(ended, "reason", "Error"), parts_text(ended, "message", ""));
    return true;
}

void parts_trouble(parts_trouble_t *self, const json_t *status, const json_t *main_status)
{
    *self = (parts_trouble_t){0};
    const json_t *placed = parts_named(json_object_get(status, "conditions"), "type", "PodScheduled");
    if (s_ended_badly(self, main_status) || s_waits(self, main_status) ||
        s_any_waits(self, json_object_get(status, "initContainerStatuses")) ||
        s_any_waits(self, json_object_get(status, "containerStatuses")))
        return;
    if (strcmp(parts_text(status, "phase", ""), "Failed") == 0) /* evicted, say */
        s_set(self, parts_text(status, "reason", "Error"), parts_text(status, "message", ""));
    else if (strcmp(parts_text(placed, "reason", ""), "Unschedulable") == 0)
        s_set(self, "Unschedulable", parts_text(placed, "message", ""));
}

const char *parts_without_pod(const json_t *event, const char *kind, const char **words)
{
    const json_t *about = parts_object(event, "involvedObject");
    if (!parts_is(about, "kind", kind) || !parts_is(event, "reason", "FailedCreate"))
        return NULL;
    *words = parts_text(event, "message", "");
    return parts_text(about, "name", NULL);
}

void parts_last_words(json_t *containers)
{
    size_t i;
    json_t *container;
    json_array_foreach(containers, i, container)
    {
        if (json_is_object(container) && !json_object_get(container, "terminationMessagePolicy"))
            json_object_set_new(container, "terminationMessagePolicy", json_string("FallbackToLogsOnError"));
    }
}
