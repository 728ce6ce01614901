#include "cli/state.h"
#include <string.h>
#include "common/base/json.h"

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

/*  One without an end is none: somebody else's, or an empty object. */
static json_t *s_read_end(const tt_rundir_t *run, const char *file)
{
    json_t *read = s_read(run, file);
    if (json_is_string(json_object_get(read, "status")))
        return read;
    json_decref(read);
    return NULL;
}

/*  What the coordinator writes does not know where its run is, and what is copied or moved says where it was. */
static void s_place(const tt_rundir_t *run, json_t *summary)
{
    json_object_set_new(summary, "run", tt_json_text(run->name));
    json_object_set_new(summary, "run_dir", tt_json_text(run->path));
}

const char *tt_run_state(const tt_rundir_t *run, json_t **summary)
{
    const bool live = tt_rundir_live(run);
    json_t *read = live ? NULL : s_read_end(run, "summary.json");
    if (!live && !read) /* `tutti run` was killed at the end, or there was none */
        read = s_read_end(run, "result.json");
    if (read)
        s_place(run, read);
    const char *state = live ? "running" : s_known(json_string_value(json_object_get(read, "status")));
    if (summary)
        *summary = read;
    else
        json_decref(read);
    return state;
}
