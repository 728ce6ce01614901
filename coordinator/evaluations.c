#define TT_LOG_COMPONENT "evaluations"
#include "coordinator/evaluations.h"
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/log.h"
#include "common/base/mem.h"
#include "coordinator/metrics.h"

/*  Structure of our class */
struct evaluations {
    char path[PATH_MAX];
    metrics_t *file; /* NULL: nothing is there */
    bool any;
    double value[EVALUATIONS_METRICS]; /* of the newest */
};

/*  The one list. */
static const struct {
    const char *name, *help;
} s_metrics[EVALUATIONS_METRICS] = {
    {"eval/updates", "Version that was evaluated last."},
    {"eval/env_steps", "Transitions that it was trained on."},
    {"eval/mean_reward", "Mean return of its episodes."},
    {"eval/std_reward", "Standard deviation of their returns."},
    {"eval/min_reward", "Smallest return of them."},
    {"eval/max_reward", "Largest return of them."},
    {"eval/mean_ep_length", "Mean length of them, steps."},
    {"eval/episodes", "Episodes that were played."},
    {"eval/cut", "Those of them that a limit of steps ended."},
};
enum { AHEAD = 2 /* metrics that stand at the head of a line, without "eval/" */ };

static void s_values(const tt_msg_EVALUATED_t *m, double out[EVALUATIONS_METRICS])
{
    const double value[EVALUATIONS_METRICS] = {(double)m->update, (double)m->env_steps, m->mean_reward, m->std_reward,
        m->min_reward, m->max_reward, m->mean_ep_length, m->episodes, m->cut};
    memcpy(out, value, sizeof value);
}

/* ---- what is there already ------------------------------------------------------------------------------------------ */

static double s_number(const json_t *line, const char *name)
{
    const json_t *value = json_object_get(line, name);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static void s_take_line(void *ctx, const json_t *line)
{
    evaluations_t *self = ctx;
    for (size_t i = 0; i < EVALUATIONS_METRICS; i++)
        self->value[i] = s_number(line, s_metrics[i].name + (i < AHEAD ? strlen("eval/") : 0));
    self->any = true;
}

tt_status_t evaluations_open(evaluations_t **self_p, const char *run_dir)
{
    evaluations_t *self = tt_new0(sizeof *self);
    snprintf(self->path, sizeof self->path, "%.*s/evaluations.jsonl", PATH_MAX - 32, run_dir);
    tt_status_t status = metrics_last(self->path, s_take_line, self);
    if (status == TT_OK && self->any)
        status = metrics_open(&self->file, self->path);
    if (status != TT_OK) {
        free(self);
        return status;
    }
    *self_p = self;
    return TT_OK;
}

void evaluations_close(evaluations_t **self_p)
{
    evaluations_t *self = *self_p;
    if (!self)
        return;
    metrics_close(&self->file);
    free(self);
    *self_p = NULL;
}

/* ---- one more ------------------------------------------------------------------------------------------------------- */

tt_status_t evaluations_add(evaluations_t *self, const tt_msg_EVALUATED_t *m, double wall_s, bool *fresh)
{
    tt_rec_METRIC_t metric[EVALUATIONS_METRICS];
    double value[EVALUATIONS_METRICS];
    s_values(m, value);
    for (size_t i = 0; i < EVALUATIONS_METRICS; i++)
        metric[i] = (tt_rec_METRIC_t){.name = (char *)(uintptr_t)s_metrics[i].name, .value = value[i]};
    const tt_msg_STATS_t line = TT_MSG(STATS, .era = m->era, .update = m->update, .env_steps = m->env_steps,
        .metrics = metric + AHEAD, .metrics_count = EVALUATIONS_METRICS - AHEAD);
    if (!self->file)
        TT_TRY(metrics_open(&self->file, self->path));
    TT_TRY(metrics_add_short(self->file, &line, wall_s, fresh));
    if (!*fresh)
        return TT_OK;
    memcpy(self->value, value, sizeof value);
    self->any = true;
    return metrics_flush(self->file);
}

/* ---- the newest ----------------------------------------------------------------------------------------------------- */

size_t evaluations_newest(const evaluations_t *self, tt_rec_METRIC_t out[EVALUATIONS_METRICS])
{
    for (size_t i = 0; self && self->any && i < EVALUATIONS_METRICS; i++)
        out[i] = (tt_rec_METRIC_t){.name = (char *)(uintptr_t)s_metrics[i].name, .value = self->value[i]};
    return self && self->any ? EVALUATIONS_METRICS : 0;
}

const char *evaluations_help(size_t metric)
{
    return s_metrics[metric].help;
}

static bool s_is_count(size_t metric)
{
    return metric < AHEAD || metric >= EVALUATIONS_METRICS - 2;
}

json_t *evaluations_json(const evaluations_t *self)
{
    if (!self || !self->any)
        return json_null();
    json_t *object = json_object();
    for (size_t i = 0; i < EVALUATIONS_METRICS; i++) {
        const double value = self->value[i];
        json_t *number = !isfinite(value) ? json_null()
                         : s_is_count(i)  ? json_integer((json_int_t)value)
                                          : json_real(value);
        json_object_set_new(object, s_metrics[i].name + strlen("eval/"), number);
    }
    return object;
}
