/*  fetch - the trained weights of a run as one file, checked before anything of it is handed out: from here, from a living
 *  job's coordinator over HTTP, or through `kubectl exec` from a coordinator's pod, which has no shell and no cp. */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "cli/cmd.h"
#include "cli/fetch_url.h"
#include "cli/weights.h"
#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/signals.h"
#include "controller/rundir.h"
#include <jansson.h>

const tt_option_t tt_opt_fetch[] = {
    {"output", 'o', "FILE",
        "where to; - is stdout (default: the run's name, of a URL weights, with .safetensors, in this folder)"},
    {"best", 0, NULL,
        "the weights with the best mean return, at a checkpoint or with eval.every in evaluation, in place of the last "
        "ones"},
    {"token", 0, "FILE", "with a URL: the run's secret for HTTP (default: what the environment's TUTTI_TOKEN says)"},
    {"stay", 0, "S", "fetch nothing, but stay until S seconds after the run's end: keeps a pod there to fetch from"},
    {0},
};

enum { LOOK_MS = 500 };

/* ---- of a run directory ---------------------------------------------------------------------------------------------- */

/*  The final ones are those that the run's summary tells of. */
static tt_status_t s_check_summary(const handout_t *file, const tt_rundir_t *run, const char *path)
{
    tt_buf_t text;
    tt_buf_init(&text, 1 << 20);
    json_t *summary =
        tt_rundir_read(run, "result.json", &text) == TT_OK ? json_loads(tt_buf_text(&text), 0, NULL) : NULL;
    const char *wanted = json_string_value(json_object_get(summary, "weights_sha256"));
    tt_status_t status = TT_OK;
    if (wanted && strcmp(wanted, file->info.weights_sha256) != 0)
        status =
            tt_err(TT_DATA, "%s has weights %s, but %s/result.json tells of %s: try again if the run ends just now",
                path, file->info.weights_sha256, run->path, wanted);
    json_decref(summary);
    tt_buf_free(&text);
    return status;
}

static tt_status_t s_open(handout_t *file, const tt_rundir_t *run, char *path, size_t size, bool best)
{
    TT_TRY(weights_of_run(path, size, run->path, best));
    TT_TRY(tt_file_open(&file->fd, path));
    snprintf(file->name, sizeof file->name, "%s", strrchr(path, '/') + 1);
    return TT_OK;
}

static tt_status_t s_of_run(handout_t *file, const tt_rundir_t *run, bool best)
{
    char path[4300];
    tt_status_t status = s_open(file, run, path, sizeof path, best);
    if (status == TT_NOT_FOUND) /* a newer one has taken its place just now */
        status = s_open(file, run, path, sizeof path, best);
    TT_TRY(status);
    status = handout_check(file);
    if (status != TT_OK)
        return tt_err_wrap(status, "%s", path);
    return strcmp(file->name, TT_CHECKPOINT_FINAL) == 0 ? s_check_summary(file, run, path) : TT_OK;
}

static tt_status_t s_fetch_run(handout_t *file, const tt_args_t *args)
{
    tt_rundir_t run;
    char output[sizeof run.name + 16];
    if (tt_arg_given(args, "token"))
        return tt_err(TT_USAGE, "--token goes with a URL");
    TT_TRY(tt_rundir_find(&run, tt_operand(args, 0)));
    snprintf(output, sizeof output, "%s.safetensors", run.name);
    snprintf(file->of, sizeof file->of, "%s", run.name);
    const char *wanted = tt_arg(args, "output");
    TT_TRY(handout_may(wanted ? wanted : output));
    TT_TRY(s_of_run(file, &run, tt_arg_given(args, "best")));
    return handout_give(file, wanted ? wanted : output);
}

static tt_status_t s_fetch_url(handout_t *file, const tt_args_t *args)
{
    const char *wanted = tt_arg(args, "output");
    const fetch_url_t opts = {.url = tt_operand(args, 0),
        .token = tt_arg(args, "token"),
        .output = wanted ? wanted : "weights.safetensors",
        .best = tt_arg_given(args, "best")};
    TT_TRY(handout_may(opts.output));
    TT_TRY(fetch_url(file, &opts));
    return handout_give(file, opts.output);
}

static tt_status_t s_fetch(const tt_args_t *args)
{
    handout_t file = {.fd = -1};
    const tt_status_t status = fetch_is_url(tt_operand(args, 0)) ? s_fetch_url(&file, args) : s_fetch_run(&file, args);
    handout_free(&file);
    return status;
}

/* ---- a pod that stays ------------------------------------------------------------------------------------------------ */

/*  A path may not be there yet: the coordinator of the same pod makes it. A name is a run's that is there. */
static tt_status_t s_place(char *path, size_t size, const char *operand)
{
    tt_rundir_t run;
    if (strchr(operand, '/') || access(operand, F_OK) == 0) {
        snprintf(path, size, "%s/result.json", operand);
        return TT_OK;
    }
    TT_TRY(tt_rundir_find(&run, operand));
    snprintf(path, size, "%s/result.json", run.path);
    return TT_OK;
}

static tt_status_t s_stay(const char *operand, uint64_t seconds)
{
    int fd = -1;
    char result[4300];
    int64_t until_ms = INT64_MAX;
    if (fetch_is_url(operand))
        return tt_err(TT_USAGE, "--stay looks at a run directory; a URL has none");
    TT_TRY(s_place(result, sizeof result, operand));
    TT_TRY(tt_signals_open(&fd));
    for (;;) {
        struct pollfd signals = {.fd = fd, .events = POLLIN};
        const int64_t now_ms = tt_now_ms(tt_clock_real());
        if (until_ms == INT64_MAX && access(result, F_OK) == 0)
            until_ms = now_ms + (int64_t)seconds * 1000;
        if (now_ms >= until_ms || (poll(&signals, 1, LOOK_MS) > 0 && tt_signals_next(fd) != 0))
            break;
    }
    close(fd);
    return TT_OK;
}

int tt_cmd_fetch(int argc, char **argv)
{
    int code;
    uint64_t seconds = 0;
    TT_AUTO(tt_args) args = tt_args_new(&code, "fetch", argc, argv);
    if (!args)
        return code;
    tt_status_t status = tt_arg_u64(args, "stay", &seconds, 0, 366 * 86400);
    if (status == TT_OK)
        status = tt_arg_given(args, "stay") ? s_stay(tt_operand(args, 0), seconds) : s_fetch(args);
    return status == TT_OK ? 0 : tt_args_fail(args, status);
}
