/*  resume - continue an ended run from its newest snapshot, with the replica counts last asked for. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/changes.h"
#include "cli/cmd.h"
#include "cli/variables.h"
#include "cli/history.h"
#include "cli/launch.h"
#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/base/process.h"
#include "common/base/text.h"
#include "common/snapshot/checkpoints.h"
#include "learner/stop.h"

const tt_option_t tt_opt_resume[] = {
    {"set", 's', "KEY=VALUE", "change a setting from here on, where it may; recorded in the run; may be repeated"},
    {"detach", 0, NULL, "return as soon as it trains and leave it going"}, {"quiet", 'q', NULL, "show only the end"},
    {"output", 'o', "text|json", "json: one object on stdout at the end, everything else on stderr"}, {0}};

typedef struct {
    tt_rundir_t run;
    char *config; /* of the run's directory, before --set */
    bool old;     /* it is as tutti 0.1 wrote it: no life of the run was begun by a later version */
    json_t *history;
    tt_setup_t *setup;
    json_t *changed; /* against the config that the run was last begun with */
    json_t *summary; /* of the life before, NULL = none                     */
    uint64_t steps;  /* env steps of the newest snapshot                    */
} resume_t;

static void s_close(resume_t *self)
{
    tt_setup_destroy(&self->setup);
    free(self->config);
    json_decref(self->history);
    json_decref(self->changed);
    json_decref(self->summary);
}

/* ---- the config, then and now ------------------------------------------------------------------------------------------ */

/*  The config of the life that was begun last, NULL: the history knows none (a run of tutti 0.1). */
static const char *s_began(const resume_t *self)
{
    return json_string_value(json_object_get(tt_history_last(self->history, "began"), "config"));
}

/*  The settings are those of the run's beginning: its resolved config, with what --set says over it. */
static tt_status_t s_set_up(resume_t *self, const tt_args_t *args)
{
    char path[sizeof self->run.path + 16];
    tt_buf_t text;
    tt_buf_init(&text, 1 << 20);
    json_t *job =
        tt_rundir_read(&self->run, "job.json", &text) == TT_OK ? json_loads(tt_buf_text(&text), 0, NULL) : NULL;
    tt_buf_clear(&text);
    tt_status_t status = tt_rundir_read(&self->run, "config.yaml", &text);
    const char *kind = json_string_value(json_object_get(job, "kind"));
    if (status != TT_OK && kind)
        status = tt_err(
            TT_UNSUPPORTED, "%s was a %s: its manifest begins another one with 'tutti run'", self->run.name, kind);
    json_decref(job);
    self->config = tt_strdup(tt_buf_text(&text));
    tt_buf_free(&text);
    snprintf(path, sizeof path, "%s/config.yaml", self->run.path);
    TT_TRY(status);
    TT_TRY(
        tt_changes_fixed(args, path, self->config, s_began(self) ? s_began(self) : self->config, self->old, "the run"));
    return tt_setup_from_run(&self->setup, args, path, self->old);
}

/*  newest->info.config stays NULL when there is none. */
static tt_status_t s_look_at_snapshot(resume_t *self, tt_checkpoint_t *newest)
{
    char folder[sizeof self->run.path + 16];
    const tt_train_cfg_t *train = tt_setup_train(self->setup);
    snprintf(folder, sizeof folder, "%s/" TT_CHECKPOINTS, self->run.path);
    const tt_status_t status = tt_checkpoints_newest(folder, newest, NULL, NULL);
    if (status == TT_OK)
        self->steps = newest->info.update * train->num_envs * train->num_steps;
    return status == TT_NOT_FOUND ? TT_OK : status;
}

/*  The config is compared with the one that the run was last begun with. Where the history knows none (a run of tutti 0.1)
 *  the newest snapshot says what it was made with; and in any case that must be of this run. */
static tt_status_t s_compare(resume_t *self)
{
    tt_checkpoint_t newest = {.name = ""};
    tt_status_t status = s_look_at_snapshot(self, &newest);
    const char *snapshot = newest.info.config, *before = s_began(self);
    if (!before)
        before = snapshot ? snapshot : self->config;
    if (status == TT_OK)
        status = tt_changes(&self->changed, self->setup, before, self->old, "the run");
    if (status == TT_OK && snapshot)
        status = tt_changes(NULL, self->setup, snapshot, !newest.info.sealed, newest.name);
    tt_snapshot_info_free(&newest.info);
    return status;
}

/* ---- is there anything left to do? ------------------------------------------------------------------------------------- */

/*  ("return_mean_100" is what tutti 0.1 called it.) */
static double s_number(const json_t *object, const char *key, double otherwise)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : otherwise;
}

/*  A run that came to its end goes on only to another one; and one that is reached already is a mistake. */
static tt_status_t s_check_end(resume_t *self)
{
    const char *status = json_string_value(json_object_get(self->summary, "status"));
    const bool succeeded = status && strcmp(status, "succeeded") == 0, other = tt_changes_any(self->changed, "stop.");
    if (!succeeded && !other)
        return TT_OK;
    const stop_facts_t facts = {.env_steps = (uint64_t)s_number(self->summary, "env_steps", (double)self->steps),
        .episodes = (uint64_t)s_number(self->summary, "episodes", 0),
        .return_mean = s_number(self->summary, "return_mean", s_number(self->summary, "return_mean_100", NAN)),
        .wall_s = NAN};
    if (succeeded && !other)
        return tt_err(TT_USAGE,
            "run %s has succeeded after %llu steps; it goes on to another end: 'tutti resume %s --set "
            "stop.env_steps=N' "
            "(or stop.return_mean, stop.wall_s)",
            self->run.name, (unsigned long long)facts.env_steps, self->run.name);
    const char *met = stop_reason(tt_setup_train(self->setup), &facts);
    if (!met)
        return TT_OK;
    const bool steps = strcmp(met, "env_steps") == 0;
    return tt_err(TT_USAGE, "stop.%s is reached already: run %s is at %.*f; set it further on, or null", met,
        self->run.name, steps ? 0 : 2, steps ? (double)facts.env_steps : facts.return_mean);
}

static tt_status_t s_prepare(resume_t *self, const tt_args_t *args)
{
    TT_TRY(tt_rundir_find(&self->run, tt_operand(args, 0)));
    if (tt_rundir_live(&self->run))
        return tt_err(TT_EXISTS, "run %s is running already", self->run.name);
    TT_TRY(tt_history_read(&self->run, &self->history));
    self->old = !s_began(self);
    TT_TRY(s_set_up(self, args));
    TT_TRY(s_compare(self));
    self->summary = tt_history_summary(&self->run);
    return s_check_end(self);
}

int tt_cmd_resume(int argc, char **argv)
{
    const int64_t start_ns = tt_process_start_ns();
    int code;
    TT_AUTO(tt_args) args = tt_args_new(&code, "resume", argc, argv);
    if (!args)
        return code;
    resume_t self = {0};
    tt_status_t status = variables_check();
    if (status == TT_OK)
        status = s_prepare(&self, args);
    if (status != TT_OK) {
        s_close(&self);
        return tt_args_fail(args, status);
    }
    const char *upgraded = tt_setup_upgraded(self.setup);
    if (*upgraded)
        fprintf(stderr, "tutti resume: %s/config.yaml is of tutti 0.1 and is brought up to date: %s\n",
            tt_shown(self.run.path), upgraded);
    const tt_launch_t launch = {.run = &self.run,
        .cfg = tt_setup_train(self.setup),
        .config = tt_setup_yaml(self.setup),
        .start_ns = start_ns,
        .resume = true,
        .changed = self.changed,
        .upgraded = *upgraded ? upgraded : NULL,
        .detach = tt_arg_given(args, "detach"),
        .json = tt_arg_is(args, "output", "json"),
        .quiet = tt_arg_given(args, "quiet")};
    code = tt_launch(&launch);
    s_close(&self);
    return code;
}
