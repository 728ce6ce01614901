#include "k8s/front/draft.h"
#include <stdio.h>
#include <stdlib.h>
#include "common/base/mem.h"
#include "common/base/words.h"
#include "k8s/api/dump.h"
#include "k8s/api/recorder.h"
#include "k8s/front/object.h"

static json_t *s_status(const char *text)
{
    json_t *status = text ? json_loads(text, 0, NULL) : NULL;
    if (json_is_object(status))
        return status;
    json_decref(status);
    return json_object();
}

void draft_open(draft_t *self, front_plan_t *out, const char *status, int64_t now_s)
{
    *self = (draft_t){.out = out, .before = status, .status = s_status(status), .now_s = now_s};
    *out = (front_plan_t){.again_s = -1};
}

void draft_close(draft_t *self)
{
    /* as values: the server's text has its members in an order of its own, and what only looks different would be written for ever */
    json_t *before = s_status(self->before);
    if (!json_equal(before, self->status))
        self->out->status = kube_dump(self->status);
    json_decref(before);
    json_decref(self->status);
}

front_action_t *draft_add(draft_t *self, front_do_t what, const char *name)
{
    front_plan_t *out = self->out;
    if (out->count == self->room) {
        self->room = self->room ? 2 * self->room : 8;
        out->actions = tt_realloc(out->actions, tt_mul(self->room, sizeof *out->actions));
    }
    front_action_t *action = &out->actions[out->count++];
    *action = (front_action_t){.what = what, .name = tt_strdup(name), .grace_s = -1};
    return action;
}

char *draft_words(const char *fmt, va_list args)
{
    char *text = NULL, words[KUBE_EVENT_WORDS + 1];
    const int size = vasprintf(&text, fmt, args);
    TT_CHECK(size >= 0);
    tt_words(words, sizeof words, text);
    free(text);
    return tt_strdup(words);
}

void draft_event(draft_t *self, const char *type, const char *reason, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    front_action_t *action = draft_add(self, FRONT_EVENT, NULL);
    action->type = type;
    action->reason = reason;
    action->message = draft_words(fmt, args);
    va_end(args);
}

void draft_again(draft_t *self, int64_t seconds)
{
    if (seconds < 0)
        seconds = 0;
    if (self->out->again_s < 0 || seconds < self->out->again_s)
        self->out->again_s = seconds;
}

int64_t draft_count(const draft_t *self, const char *key)
{
    const json_int_t count = json_integer_value(json_object_get(self->status, key));
    return count < 0 ? 0 : count < INT32_MAX ? count : INT32_MAX - 1;
}

int64_t draft_ended_s(const draft_t *self, const char *key, const char *condition)
{
    const int64_t ended_s = parts_time(parts_text(self->status, key, NULL));
    const json_t *entry = draft_condition(self, condition);
    return ended_s > 0 ? ended_s : parts_time(parts_text(entry, "lastTransitionTime", NULL));
}

json_t *draft_condition(const draft_t *self, const char *type)
{
    return parts_condition(json_object_get(self->status, "conditions"), type);
}

json_t *draft_conditions(draft_t *self)
{
    json_t *conditions = json_object_get(self->status, "conditions");
    if (!json_is_array(conditions)) {
        conditions = json_array();
        json_object_set_new(self->status, "conditions", conditions);
    }
    return conditions;
}

void front_plan_clear(front_plan_t *self)
{
    for (size_t i = 0; i < self->count; i++) {
        free((void *)(uintptr_t)self->actions[i].name);
        free((void *)(uintptr_t)self->actions[i].message);
        free((void *)(uintptr_t)self->actions[i].own);
    }
    free(self->actions);
    free((void *)(uintptr_t)self->status);
    *self = (front_plan_t){.again_s = -1};
}
