#include "cli/history.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "common/base/file.h"
#include "common/base/mem.h"
#include "common/base/when.h"

enum { HISTORY_MAX = 64 << 20, SUMMARY_MAX = 1 << 20 };
static const char s_file[] = "history.jsonl";

/* ---- reading --------------------------------------------------------------------------------------------------------- */

static void s_take_line(json_t *list, const char *line, size_t length)
{
    json_t *object = json_loadb(line, length, 0, NULL);
    if (json_is_object(object))
        json_array_append(list, object);
    json_decref(object);
}

tt_status_t tt_history_read(const tt_rundir_t *run, json_t **out)
{
    tt_buf_t text;
    tt_buf_init(&text, HISTORY_MAX);
    const tt_status_t status = tt_rundir_read(run, s_file, &text);
    if (status == TT_OK || status == TT_NOT_FOUND) {
        *out = json_array();
        for (const char *line = tt_buf_text(&text), *end; *line; line = *end ? end + 1 : end) {
            end = strchrnul(line, '\n');
            s_take_line(*out, line, (size_t)(end - line));
        }
    }
    tt_buf_free(&text);
    return status == TT_NOT_FOUND ? TT_OK : status;
}

const json_t *tt_history_last(const json_t *history, const char *event)
{
    for (size_t i = json_array_size(history); i-- > 0;) {
        const json_t *line = json_array_get(history, i);
        const char *kind = json_string_value(json_object_get(line, "event"));
        if (kind && strcmp(kind, event) == 0)
            return line;
    }
    return NULL;
}

static uint32_t s_life(const json_t *history, const char *event)
{
    return (uint32_t)json_integer_value(json_object_get(tt_history_last(history, event), "life"));
}

static json_t *s_load(const tt_rundir_t *run, const char *file)
{
    tt_buf_t text;
    tt_buf_init(&text, SUMMARY_MAX);
    json_t *out = tt_rundir_read(run, file, &text) == TT_OK ? json_loads(tt_buf_text(&text), 0, NULL) : NULL;
    tt_buf_free(&text);
    return out;
}

json_t *tt_history_summary(const tt_rundir_t *run)
{
    json_t *summary = s_load(run, "summary.json");
    return summary ? summary : s_load(run, "result.json");
}

/* ---- writing --------------------------------------------------------------------------------------------------------- */

/*  Behind a line that was torn a new one begins; of one that tears now nothing stays. */
static tt_status_t s_append(const tt_rundir_t *run, const char *line)
{
    char path[sizeof run->path + sizeof s_file + 1];
    int fd = -1;
    snprintf(path, sizeof path, "%s/%s", run->path, s_file);
    TT_TRY(tt_file_append(&fd, path, 0644));
    const off_t size = lseek(fd, 0, SEEK_END);
    tt_status_t status = TT_OK;
    if (!tt_file_write(fd, line, strlen(line), NULL))
        status = tt_err_errno(TT_IO, "%s", path);
    if (status != TT_OK && ftruncate(fd, size) != 0)
        tt_err_wrap(status, "cannot be mended (%s)", strerror(errno));
    close(fd);
    return status;
}

/*  Takes line. */
static tt_status_t s_add(const tt_rundir_t *run, json_t *line)
{
    char at[TT_WHEN];
    json_object_set_new(line, "at", json_string(tt_when_text(at, time(NULL))));
    char *text = json_dumps(line, JSON_COMPACT | JSON_REAL_PRECISION(15));
    json_decref(line);
    TT_CHECK(text != NULL);
    char *whole = tt_sprintf("%s\n", text);
    const tt_status_t status = s_append(run, whole);
    free(whole);
    free(text);
    return status;
}

tt_status_t tt_history_end(const tt_rundir_t *run, uint32_t life, json_t *summary)
{
    return s_add(run, json_pack("{s:s, s:I, s:O}", "event", "ended", "life", (json_int_t)life, "summary", summary));
}

/*  The summary of the life before, if the history has none of it: it was written by tutti 0.1, or its writer was killed. */
static tt_status_t s_keep_summary(const tt_rundir_t *run, const json_t *history)
{
    const uint32_t began = s_life(history, "began"), life = began ? began : 1;
    json_t *summary = s_life(history, "ended") < life ? tt_history_summary(run) : NULL;
    tt_status_t status = TT_OK;
    if (summary)
        status = tt_history_end(run, life, summary);
    json_decref(summary);
    if (status == TT_OK)
        tt_rundir_forget(run, "summary.json");
    return status;
}

tt_status_t tt_history_begin(const tt_rundir_t *run, bool resumed, const json_t *changed, const char *upgraded,
    const char *config, uint32_t *life)
{
    json_t *history = NULL;
    TT_TRY(tt_history_read(run, &history));
    const uint32_t before = s_life(history, "began");
    tt_status_t status = resumed ? s_keep_summary(run, history) : TT_OK;
    json_decref(history);
    *life = before == 0 && resumed ? 2 : before + 1;
    if (status == TT_OK)
        status =
            s_add(run, json_pack("{s:s, s:I, s:o, s:s, s:s*}", "event", "began", "life", (json_int_t)*life, "changed",
                           changed ? json_deep_copy(changed) : json_array(), "config", config, "upgraded", upgraded));
    return status;
}
