#include "cli/state.h"
#include <string.h>

static const char *s_known(const char *status)
{
    static const char *const known[] = {"succeeded", "stopped", "failed"};
    for (size_t i = 0; status && i < TT_COUNT(known); i++)
        if (strcmp(status, known[i]) == 0)
            return known[i];
    return "killed";
}

const char *tt_run_state(const tt_rundir_t *run, json_t **summary)
{
    tt_buf_t text;
    tt_buf_init(&text, 1 << 20);
    json_t *read = NULL;
    const bool live = tt_rundir_live(run);
    if (!live && tt_rundir_read(run, "summary.json", &text) == TT_OK)
        read = json_loads(tt_buf_text(&text), 0, NULL);
    tt_buf_free(&text);
    const char *state = live ? "running" : s_known(json_string_value(json_object_get(read, "status")));
    if (summary)
        *summary = read;
    else
        json_decref(read);
    return state;
}
