#include "cli/display.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/clock.h"
#include "common/base/mem.h"

enum { ROLES_MAX = 8, LINE_EVERY_MS = 2000, WINDOW_MS = 2000 };

struct tt_display {
    FILE *stream;
    const tt_train_cfg_t *cfg;
    const tt_rundir_t *run;
    int64_t start_ns;
    bool quiet, live;
    void (*training)(void);
    int drawn; /* lines of the block on the screen */
    int64_t next_line_ms;
    bool any;
    tt_msg_STATS_t stats; /* lists and texts not kept         */
    double sps;           /* over the last window             */
    uint64_t window_steps;
    int64_t window_ns;
    size_t count;
    struct {
        char name[32];
        uint32_t desired, ready;
    } roles[ROLES_MAX];
};

tt_display_t *tt_display_new(FILE *stream, const tt_train_cfg_t *cfg, const tt_rundir_t *run, int64_t start_ns,
    bool quiet, void (*training)(void))
{
    tt_display_t *self = tt_new0(sizeof *self);
    const char *term = getenv("TERM");
    self->stream = stream;
    self->cfg = cfg;
    self->run = run;
    self->start_ns = start_ns;
    self->quiet = quiet;
    self->training = training;
    self->live = !quiet && isatty(fileno(stream)) && term && strcmp(term, "dumb") != 0;
    return self;
}

static double s_elapsed(const tt_display_t *self)
{
    return (double)(tt_now_ns(tt_clock_real()) - self->start_ns) * 1e-9;
}

/*  12345678 -> "12,345,678" */
static const char *s_grouped(uint64_t number, char out[32])
{
    char digits[32];
    const int length = snprintf(digits, sizeof digits, "%llu", (unsigned long long)number);
    int used = 0;
    for (int i = 0; i < length; i++) {
        out[used++] = digits[i];
        if ((length - i) % 3 == 1 && i + 1 < length)
            out[used++] = ',';
    }
    out[used] = '\0';
    return out;
}

static void s_clear(tt_display_t *self)
{
    if (self->drawn)
        fprintf(self->stream, "\033[%dA\r\033[J", self->drawn);
    self->drawn = 0;
}

static void s_steps_text(const tt_display_t *self, char *out, size_t size)
{
    char steps[32], limit[32];
    if (self->cfg->stop.env_steps)
        snprintf(
            out, size, "%s / %s", s_grouped(self->stats.env_steps, steps), s_grouped(self->cfg->stop.env_steps, limit));
    else
        snprintf(out, size, "%s", s_grouped(self->stats.env_steps, steps));
}

static void s_return_text(const tt_display_t *self, char *out, size_t size)
{
    const double goal = isnan(self->cfg->stop.return_mean) ? self->cfg->space.threshold : self->cfg->stop.return_mean;
    int used = isnan(self->stats.return_mean) ? snprintf(out, size, "-")
                                              : snprintf(out, size, "%.1f", self->stats.return_mean);
    if (!isnan(goal))
        snprintf(out + used, size - (size_t)used, "   goal %g", goal);
}

/*  Seconds to the step limit at the present speed; NAN when unknown. */
static double s_eta(const tt_display_t *self)
{
    const uint64_t limit = self->cfg->stop.env_steps;
    if (!limit || !(self->sps > 0) || limit <= self->stats.env_steps)
        return NAN;
    return (double)(limit - self->stats.env_steps) / self->sps;
}

static void s_roles_text(const tt_display_t *self, char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < self->count && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%s %u/%u", i ? "  " : "", self->roles[i].name,
            self->roles[i].ready, self->roles[i].desired);
}

static void s_draw(tt_display_t *self)
{
    char steps[80], returns[80], roles[256], sps[32];
    s_steps_text(self, steps, sizeof steps);
    s_return_text(self, returns, sizeof returns);
    s_roles_text(self, roles, sizeof roles);
    s_clear(self);
    fprintf(self->stream, "%s  %s  %s  seed %llu  %.1f s\n", self->run->name, self->cfg->env, self->cfg->algorithm.name,
        (unsigned long long)self->cfg->seed, s_elapsed(self));
    fprintf(self->stream, "  steps     %s   %s steps/s   updates %llu   lag %llu\n", steps,
        s_grouped((uint64_t)self->sps, sps), (unsigned long long)self->stats.update,
        (unsigned long long)self->stats.lag_max);
    fprintf(self->stream, "  return    %s   (last 100 episodes)   episodes %llu\n", returns,
        (unsigned long long)self->stats.episodes);
    fprintf(self->stream, "  replicas  %s\n", roles[0] ? roles : "starting");
    self->drawn = 4;
    const double eta = s_eta(self);
    if (!isnan(eta)) {
        fprintf(self->stream, "  ETA       %.1f s to the step limit\n", eta);
        self->drawn++;
    }
    fflush(self->stream);
}

static void s_line(tt_display_t *self)
{
    char steps[80], returns[80], roles[256], sps[32];
    s_steps_text(self, steps, sizeof steps);
    s_return_text(self, returns, sizeof returns);
    s_roles_text(self, roles, sizeof roles);
    fprintf(self->stream, "%8.2f s  steps %s  %s/s  return %s  %s\n", s_elapsed(self), steps,
        s_grouped((uint64_t)self->sps, sps), returns, roles);
    fflush(self->stream);
}

/* ---- callbacks ------------------------------------------------------------------------------------------------------ */

static void s_on_stats(void *ctx, const tt_msg_STATS_t *stats)
{
    tt_display_t *self = ctx;
    if (!self->any && self->training)
        self->training();
    if (!self->window_ns)
        self->window_ns = self->start_ns;
    const int64_t passed = stats->time_ns - self->window_ns;
    if (passed > 0 && stats->env_steps >= self->window_steps)
        self->sps = (double)(stats->env_steps - self->window_steps) * 1e9 / (double)passed;
    if (passed > (int64_t)WINDOW_MS * 1000000) {
        self->window_ns = stats->time_ns;
        self->window_steps = stats->env_steps;
    }
    self->stats = *stats;
    self->stats.metrics = NULL;
    self->stats.metrics_count = 0;
    self->any = true;
}

static void s_on_scale(void *ctx, const tt_msg_SCALE_t *scale)
{
    tt_display_t *self = ctx;
    self->count = 0;
    for (size_t i = 0; i < scale->counts_count && self->count < ROLES_MAX; i++) {
        snprintf(self->roles[self->count].name, sizeof self->roles[0].name, "%.31s", scale->counts[i].role);
        self->roles[self->count].desired = scale->counts[i].desired;
        self->roles[self->count++].ready = scale->counts[i].ready;
    }
}

static void s_on_roster(void *ctx, const tt_msg_ROSTER_t *roster)
{
    tt_display_t *self = ctx;
    for (size_t i = 0; i < self->count; i++) {
        const tt_peer_role_t role = tt_peer_role_find(self->roles[i].name);
        self->roles[i].ready = role == TT_PEER_COORDINATOR;
        for (size_t m = 0; m < roster->members_count; m++)
            self->roles[i].ready += roster->members[m].role == (uint32_t)role;
    }
}

static void s_on_note(void *ctx, const char *text)
{
    tt_display_t *self = ctx;
    if (self->live)
        s_clear(self);
    fprintf(self->stream, "%s\n", text);
    fflush(self->stream);
}

static void s_on_event(void *ctx, const tt_msg_EVENT_t *event)
{
    char text[512];
    if (strcmp(event->kind, "solved") == 0)
        snprintf(text, sizeof text, "solved: mean return %.1f after %llu steps", event->value,
            (unsigned long long)event->env_steps);
    else if (strcmp(event->kind, "warning") == 0)
        snprintf(text, sizeof text, "warning: %.400s", event->text);
    else
        return;
    if (!((const tt_display_t *)ctx)->quiet)
        s_on_note(ctx, text);
}

static void s_on_tick(void *ctx)
{
    tt_display_t *self = ctx;
    const int64_t now = tt_now_ms(tt_clock_real());
    if (self->quiet)
        return;
    if (self->live) {
        s_draw(self);
    } else if (self->any && now >= self->next_line_ms) {
        s_line(self);
        self->next_line_ms = now + LINE_EVERY_MS;
    }
}

tt_watcher_t tt_display_watcher(tt_display_t *self)
{
    return (tt_watcher_t){.stats = s_on_stats,
        .event = s_on_event,
        .roster = s_on_roster,
        .scale = s_on_scale,
        .note = s_on_note,
        .tick = s_on_tick,
        .ctx = self};
}

void tt_display_destroy(tt_display_t **self_p)
{
    tt_display_t *self = *self_p;
    if (!self)
        return;
    if (self->live)
        s_draw(self);
    else if (self->any && !self->quiet)
        s_line(self);
    free(self);
    *self_p = NULL;
}
