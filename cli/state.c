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

static json_t *s_read(const tt_rundir_t *run, const char *file)
{
    tt_buf_t text;
    tt_buf_init(&text, 1 << 20);
    json_t *read = tt_rundir_read(run, file, &text) == TT_OK ? json_loads(tt_buf_text(&text), 0, NULL) : NULL;
    tt_buf_free(&text);
    return read;
}

const char *tt_run_state(const tt_rundir_t *run, json_t **summary)
{
    const bool live = tt_rundir_live(run);
    json_t *read = live ? NULL : s_read(run, "summary.json");
    if (!live && !read) /* `tutti run` was killed at the end, or there was none */
        read = s_read(run, "result.json");
    const char *state = live ? "running" : s_known(json_string_value(json_object_get(read, "status")));
    if (summary)
        *summary = read;
    else
        json_decref(read);
    return state;
}
