#include "cli/job.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/cmd.h"
#include "cli/launch.h"
#include "cli/members.h"
#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/text.h"
#include "local/local.h"

typedef struct {
    const tt_args_t *args;
    tt_rundir_t run;
    local_manifest_t manifest;
    int64_t start_ns;
    void (*started)(void);
    bool json, quiet;
} job_t;

static void s_say(void *ctx, const char *text)
{
    const job_t *self = ctx;
    if (self->quiet)
        return;
    fprintf(self->json ? stderr : stdout, "%s\n", tt_shown(text));
    fflush(NULL);
}

static void s_started(void *ctx)
{
    ((job_t *)ctx)->started();
}

/* ---- the summary ----------------------------------------------------------------------------------------------------------- */

static json_t *s_summary(const job_t *self, const local_outcome_t *out)
{
    const json_t *status = json_object_get(self->manifest.job, "status");
    const double wall_s = (double)(tt_now_ns(tt_clock_real()) - self->start_ns) * 1e-9;
    return json_pack("{s:o, s:s, s:s, s:o, s:O?, s:i, s:f, s:o}", "run", tt_json_text(self->run.name), "kind",
        self->manifest.front->kind, "status", tt_job_end_name(out->phase), "reason", tt_json_text(out->reason),
        "job_status", status, "exit_code", out->exit_code, "wall_s", wall_s, "run_dir", tt_json_text(self->run.path));
}

static void s_report(const job_t *self, const local_outcome_t *out)
{
    json_t *summary = s_summary(self, out);
    char *text = json_dumps(summary, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
    if (tt_rundir_write(&self->run, "summary.json", text, 0644) != TT_OK)
        tt_cli_fail("run", TT_IO);
    free(text);
    if (self->json) {
        json_dumpf(summary, stdout, JSON_COMPACT | JSON_REAL_PRECISION(15));
        putchar('\n');
    } else
        printf("%s: %s\n  %s\n", tt_job_end_name(out->phase), tt_shown(out->reason), tt_shown(self->run.path));
    fflush(NULL);
    json_decref(summary);
}

static int s_work(void *ctx, void (*started)(void))
{
    job_t *self = ctx;
    local_outcome_t out;
    self->started = started;
    const local_opts_t opts = {.run = &self->run,
        .manifest = &self->manifest,
        .no_namespaces = tt_arg_given(self->args, "no-namespaces"),
        .no_limits = tt_arg_given(self->args, "no-limits"),
        .say = s_say,
        .started = s_started,
        .ctx = self};
    const tt_status_t status = local_run(&out, &opts);
    if (status != TT_OK)
        return tt_cli_fail("run", status);
    s_report(self, &out);
    return out.exit_code;
}

/* ---- the command -------------------------------------------------------------------------------------------------------------- */

tt_status_t tt_job_refuse_settings(const tt_args_t *args)
{
    static const char *const ours[] = {"set", "seed", "env"};
    for (size_t i = 0; i < TT_COUNT(ours); i++)
        if (tt_arg(args, ours[i]))
            return tt_err(TT_USAGE, "--%s is for configs of ours: a DIJob is what its manifest says", ours[i]);
    return TT_OK;
}

static tt_status_t s_prepare(job_t *self)
{
    TT_TRY(tt_job_refuse_settings(self->args));
    TT_TRY(local_read(&self->manifest, tt_operand(self->args, 0), s_say, self));
    TT_TRY(members_check(&self->manifest, s_say, self)); /* what `tutti check` asks, before a pod finds out */
    const char *name = json_string_value(json_object_get(json_object_get(self->manifest.job, "metadata"), "name"));
    const char *called = tt_arg(self->args, "name");
    TT_TRY(tt_rundir_create(&self->run, tt_arg(self->args, "run-dir"), called ? called : name));
    char text[1024];
    snprintf(text, sizeof text, "%s.%s/%s created", self->manifest.front->name, self->manifest.front->group, name);
    s_say(self, text);
    return TT_OK;
}

int tt_run_job(const tt_args_t *args, int64_t start_ns)
{
    job_t self = {.args = args,
        .start_ns = start_ns,
        .json = tt_arg_is(args, "output", "json"),
        .quiet = tt_arg_given(args, "quiet")};
    const tt_status_t status = s_prepare(&self);
    const tt_launch_t launch = {.run = &self.run,
        .start_ns = start_ns,
        .detach = tt_arg_given(args, "detach"),
        .json = self.json,
        .quiet = self.quiet,
        .work = s_work,
        .ctx = &self};
    const int code = status == TT_OK ? tt_launch(&launch) : tt_args_fail(args, status);
    local_manifest_clear(&self.manifest);
    return code;
}
