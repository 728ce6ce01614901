#define TT_LOG_COMPONENT "learner"
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/json.h"
#include "common/base/log.h"
#include "learner/core.h"

enum { METRICS_MAX = 64, STATS_EVERY_MS = 10 };

stop_facts_t report_facts(const core_t *self)
{
    return (stop_facts_t){.env_steps = self->at.batches_counted * self->model.batch_steps,
        .episodes = tt_episodes_count(self->statistics.episodes),
        .return_mean = tt_episodes_return_mean(self->statistics.episodes),
        .wall_s = core_leads(self) ? (double)(tt_now_ns(self->clock) - self->control.start_ns) * 1e-9 : NAN};
}

/* ---- STATS ------------------------------------------------------------------------------------------------------- */

typedef struct {
    tt_rec_METRIC_t metric[METRICS_MAX];
    char name[METRICS_MAX][64];
    size_t count;
} metrics_t;

static void s_emit(void *ctx, const char *name, double value)
{
    metrics_t *metrics = ctx;
    if (metrics->count == METRICS_MAX)
        return;
    char *copy = metrics->name[metrics->count];
    snprintf(copy, sizeof metrics->name[0], "%s", name);
    metrics->metric[metrics->count++] = (tt_rec_METRIC_t){.name = copy, .value = value};
}

/*  Mean microseconds of an update since the newest STATS. */
static void s_emit_times(core_t *self, metrics_t *metrics)
{
    if (self->at.update <= self->report.stats_update)
        return;
    for (size_t i = 0; i < CORE_PHASE_COUNT; i++) {
        char name[64];
        snprintf(name, sizeof name, "time/%s_us", core_phase_names[i]);
        s_emit(metrics, name,
            (double)core_spent_ns(self, (core_phase_t)i) * 1e-3 /
                (double)(self->at.update - self->report.stats_update));
    }
}

/*  A schedule that ends before the run does: from there on it only costs time. */
static void s_say_frozen(core_t *self, const metrics_t *metrics)
{
    bool frozen = false;
    for (size_t i = 0; i < metrics->count; i++)
        frozen |= strcmp(metrics->name[i], "charts/learning_rate") == 0 && metrics->metric[i].value == 0;
    if (frozen && !self->report.frozen)
        report_event(self, "warning",
            "the learning rate is 0: its schedule ends here (algorithm.anneal_steps) and the run does not; the weights "
            "stay as they are. algorithm.anneal_steps=0 lets it end with stop.env_steps, algorithm.anneal_to leaves "
            "some",
            0);
    self->report.frozen = frozen;
}

static void s_send_stats(core_t *self, int64_t now_ns)
{
    metrics_t metrics;
    metrics.count = 0;
    self->model.algorithm->metrics(self->model.algo, s_emit, &metrics);
    s_emit(&metrics, "charts/optimizer_steps", (double)self->at.made);
    if (self->data.memory)
        memory_metrics(self->data.memory, self->at.made, s_emit, &metrics);
    if (keeping_does(self))
        s_emit(&metrics, "replay/disk_bytes", (double)keeping_disk(self));
    if (self->model.train.actor.kind == TT_ACT_ARGMAX)
        s_emit(&metrics, "rollout/exploration_rate",
            tt_epsilon(&self->model.train.actor, self->at.batches_counted * self->model.batch_steps,
                self->model.train.num_envs));
    s_say_frozen(self, &metrics);
    s_emit_times(self, &metrics);
    const tt_msg_STATS_t stats = TT_MSG(STATS, .era = self->view.era, .update = self->at.update,
        .env_steps = self->at.batches_counted * self->model.batch_steps,
        .episodes = tt_episodes_count(self->statistics.episodes),
        .return_mean = tt_episodes_return_mean(self->statistics.episodes),
        .length_mean = tt_episodes_length_mean(self->statistics.episodes), .lag_max = self->at.lag_max,
        .dropped = intake_dropped(self->data.intake), .broken_trajectories = self->statistics.broken, .time_ns = now_ns,
        .metrics = metrics.metric, .metrics_count = metrics.count);
    if (tt_link_send(self->link, &stats) != TT_OK)
        log_debug("STATS: %s", tt_err_text());
    self->report.stats_ns = now_ns;
    self->report.stats_update = self->at.update;
}

void report_begin(core_t *self)
{
    for (size_t i = 0; i < CORE_PHASE_COUNT; i++)
        core_spent_ns(self, (core_phase_t)i);
    self->report.stats_update = self->at.update;
}

void report_stats(core_t *self)
{
    const int64_t now_ns = tt_now_ns(self->clock);
    if (now_ns - self->report.stats_ns >= STATS_EVERY_MS * INT64_C(1000000))
        s_send_stats(self, now_ns);
}

/* ---- EVENT ------------------------------------------------------------------------------------------------------- */

static void s_tell(core_t *self, const char *kind, const char *text, double value, uint64_t update, uint64_t env_steps)
{
    const tt_msg_EVENT_t event = TT_MSG(EVENT, .kind = (char *)(uintptr_t)kind, .text = (char *)(uintptr_t)text,
        .update = update, .env_steps = env_steps, .value = value, .time_ns = tt_now_ns(self->clock));
    if (tt_link_send(self->link, &event) != TT_OK)
        log_warn("EVENT %s: %s", kind, tt_err_text());
}

void report_event(core_t *self, const char *kind, const char *text, double value)
{
    s_tell(self, kind, text, value, self->at.update, self->at.batches_counted * self->model.batch_steps);
}

void report_snapshot(core_t *self, const char *path, double return_mean, uint64_t update, uint64_t env_steps)
{
    repeat_forget(&self->report.unsaved);
    s_tell(self, "snapshot", path, return_mean, update, env_steps);
}

void report_unsaved(core_t *self, const char *why)
{
    char text[sizeof self->report.unsaved.text]; /* why may be tt_err_text(), which what follows may change */
    snprintf(text, sizeof text, "%s", why);
    report_event(self, "unsaved", text, 0);
    if (!repeat_due(&self->report.unsaved, text, tt_now_ns(self->clock)))
        return;
    log_error("no checkpoint: %s", text);
    report_event(self, "warning", text, 0);
}

void report_solved(core_t *self)
{
    record_solve(&self->record, self->at.batches_counted * self->model.batch_steps, tt_now_ns(self->clock),
        tt_episodes_return_mean(self->statistics.episodes));
    report_solved_again(self);
}

void report_solved_again(core_t *self)
{
    if (!core_leads(self) || self->record.solved_steps == 0)
        return;
    char text[128];
    snprintf(text, sizeof text, "mean return of the last %d episodes: %.1f", STOP_EPISODES, self->record.solved_mean);
    const tt_msg_EVENT_t event = TT_MSG(EVENT, .kind = (char *)(uintptr_t) "solved", .text = text,
        .update = self->at.update, .env_steps = self->record.solved_steps, .value = self->record.solved_mean,
        .time_ns = self->record.solved_ns);
    if (tt_link_send(self->link, &event) != TT_OK)
        log_warn("EVENT solved: %s", tt_err_text());
}

static json_t *s_number(double value)
{
    return isnan(value) ? json_null() : json_real(value);
}

/*  What was counted batch by batch against what so many updates need. */
static json_t *s_transitions(const core_t *self, uint64_t collected)
{
    const uint64_t due = self->at.update * self->model.batch_steps, trained = self->at.trained;
    return json_pack("{s:I, s:I, s:I, s:I}", "collected", (json_int_t)collected, "trained", (json_int_t)trained,
        "duplicated", (json_int_t)(trained > due ? trained - due : 0), "lost",
        (json_int_t)(due > trained ? due - trained : 0));
}

static json_t *s_summary(core_t *self, const char *checkpoint)
{
    const stop_facts_t facts = report_facts(self);
    char sha[65];
    tt_weights_sha256(version_params(publish_newest(self->data.publish)), self->model.params, sha);
    return json_pack("{s:o, s:I, s:I, s:I, s:o, s:s, s:o, s:I, s:I, s:o, s:o}", "reason",
        tt_json_text(self->ending.reason), "env_steps", (json_int_t)facts.env_steps, "updates",
        (json_int_t)self->at.update, "episodes", (json_int_t)facts.episodes, "return_mean", s_number(facts.return_mean),
        "weights_sha256", sha, "transitions", s_transitions(self, facts.env_steps), "lag_max",
        (json_int_t)self->at.lag_max, "dropped", (json_int_t)intake_dropped(self->data.intake), "checkpoint",
        tt_json_text(checkpoint), "weights_only",
        self->checkpoint.bare[0] ? tt_json_text(self->checkpoint.bare) : json_null());
}

void report_finished(core_t *self, const char *checkpoint)
{
    if (self->report.stats_update < self->at.update ||
        self->at.batches_counted > self->at.update) /* the batch that met a stop rule */
        s_send_stats(self, tt_now_ns(self->clock));
    json_t *summary = s_summary(self, checkpoint);
    TT_CHECK(summary != NULL);
    char *text = json_dumps(summary, JSON_COMPACT);
    report_event(self, "finished", text, tt_episodes_return_mean(self->statistics.episodes));
    log_info("finished: %s", text);
    free(text);
    json_decref(summary);
}
