/*  record - how a task ended, as it is kept where the next master finds it (task.h). */
#include <stdio.h>
#include <string.h>
#include "common/base/json.h"
#include "common/base/mem.h"
#include "elasticdl/task.h"

static const char *const s_outcomes[] = {"", "succeeded", "failed", "deleted"};

json_t *edl_task_record(const edl_task_t *self)
{
    json_t *codes = json_array();
    for (int i = 0; i < self->count; i++)
        json_array_append_new(
            codes, self->members[i].exit_code >= 0 ? json_integer(self->members[i].exit_code) : json_null());
    return json_pack("{s:s, s:o, s:i, s:o}", "outcome", s_outcomes[self->outcome], "reason", tt_json_text(self->reason),
        "exit_code", self->failed_code, "exit_codes", codes);
}

static void s_restore_member(edl_task_member_t *member, const json_t *code)
{
    const json_int_t value = json_integer_value(code);
    if (!json_is_integer(code) || value < 0 || value > 255)
        return;
    member->state = MEMBER_ENDED;
    member->exit_code = (int)value;
    snprintf(member->reason, sizeof member->reason, "exit code %d", (int)value);
}

tt_status_t edl_task_restore(edl_task_t *self, const json_t *record, int64_t now_ms)
{
    const char *outcome = json_string_value(json_object_get(record, "outcome"));
    const char *reason = json_string_value(json_object_get(record, "reason"));
    const json_int_t code = json_integer_value(json_object_get(record, "exit_code"));
    for (size_t i = 1; outcome && i < TT_COUNT(s_outcomes); i++)
        if (strcmp(outcome, s_outcomes[i]) == 0)
            self->outcome = (edl_task_outcome_t)i;
    if (self->outcome == EDL_TASK_UNDECIDED)
        return tt_err(TT_DATA, "an end of a task without its outcome");
    self->step = EDL_TASK_ENDING;
    self->since_ms = now_ms;
    self->failed_code = code > 0 && code < 256 ? (int)code : 0;
    tt_text_copy(self->reason, sizeof self->reason, reason ? reason : "");
    for (int i = 0; i < self->count; i++)
        s_restore_member(&self->members[i], json_array_get(json_object_get(record, "exit_codes"), (size_t)i));
    return TT_OK;
}
