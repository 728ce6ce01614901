#include "cli/display.h"
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cli/figures.h"
#include "cli/panel.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/text.h"

enum { LINE_EVERY_MS = 2000, WINDOW_MS = 2000, RATES_EVERY_MS = 1000, FRAME_MAX = 1 << 21 };

typedef struct {
    int64_t ns;
    uint64_t steps;
} mark_t;

struct tt_display {
    FILE *stream;
    const tt_train_cfg_t *cfg;
    int64_t start_ns;
    bool quiet, live;
    void (*training)(void);
    bool any; /* a STATS has come */
    panel_t panel;
    double sps;                     /* over the last window                                    */
    mark_t since, next;             /* where the window begins, and where the one after it does */
    int64_t rates_ms, next_line_ms; /* when the panel's rates were taken; when a line is due */

    /* the block on the screen */
    screen_t screen;
    unsigned drawn, widest; /* its lines, and cells of the widest */
    tt_buf_t shown, frame;

    /* lines for above the block, until the next frame; log lines that would have gone to this terminal, too */
    pthread_mutex_t mutex;
    tt_buf_t notes;
    bool takes_log;
};

static bool s_is_same_file(int a, int b)
{
    struct stat one, other;
    return fstat(a, &one) == 0 && fstat(b, &other) == 0 && one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

/*  Any thread: the line waits for the next frame, which puts it above the block. */
static void s_on_log(void *ctx, const char *line)
{
    tt_display_t *self = ctx;
    pthread_mutex_lock(&self->mutex);
    (void)tt_buf_str(&self->notes, line);
    pthread_mutex_unlock(&self->mutex);
}

tt_display_t *tt_display_new(FILE *stream, const tt_train_cfg_t *cfg, const tt_rundir_t *run, int64_t start_ns,
    bool quiet, void (*training)(void))
{
    tt_display_t *self = tt_new0(sizeof *self);
    const char *term = getenv("TERM");
    self->stream = stream;
    self->cfg = cfg;
    self->start_ns = start_ns;
    self->quiet = quiet;
    self->training = training;
    self->live = !quiet && isatty(fileno(stream)) && term && strcmp(term, "dumb") != 0;
    self->panel = (panel_t){.run = run->name,
        .env = cfg->env,
        .algorithm = cfg->algorithm.name,
        .seed = cfg->seed,
        .step_limit = cfg->stop.env_steps,
        .goal = isnan(cfg->stop.return_mean) ? cfg->space.threshold : cfg->stop.return_mean,
        .return_mean = NAN,
        .done = NAN,
        .left_s = NAN};
    tt_buf_init(&self->shown, FRAME_MAX);
    tt_buf_init(&self->frame, FRAME_MAX);
    tt_buf_init(&self->notes, FRAME_MAX);
    pthread_mutex_init(&self->mutex, NULL);
    self->takes_log = self->live && s_is_same_file(fileno(stream), STDERR_FILENO);
    if (self->takes_log)
        tt_log_sink(s_on_log, self);
    return self;
}

static double s_elapsed(const tt_display_t *self)
{
    return (double)(tt_now_ns(tt_clock_real()) - self->start_ns) * 1e-9;
}

/* ---- the block --------------------------------------------------------------------------------------------------- */

/*  How far the stop rules have come, and how long it takes to the nearer one. */
static void s_take_limits(tt_display_t *self)
{
    panel_t *p = &self->panel;
    const double wall_s = self->cfg->stop.wall_s;
    p->done = p->left_s = NAN;
    if (p->step_limit) {
        p->done = fmin((double)p->env_steps / (double)p->step_limit, 1);
        p->left_s =
            p->sps > 0
                ? (double)(p->step_limit - (p->env_steps < p->step_limit ? p->env_steps : p->step_limit)) / p->sps
                : NAN;
    }
    if (!isnan(wall_s)) {
        p->done = fmax(isnan(p->done) ? 0 : p->done, fmin(p->elapsed_s / wall_s, 1));
        p->left_s = fmin(p->left_s, fmax(wall_s - p->elapsed_s, 0)); /* fmin ignores a NAN */
    }
}

/*  Rates stand still for a second, so that they can be read. */
static void s_take_rates(tt_display_t *self)
{
    const int64_t now = tt_now_ms(tt_clock_real());
    self->panel.elapsed_s = s_elapsed(self);
    if (self->rates_ms && now - self->rates_ms < RATES_EVERY_MS)
        return;
    if (self->sps > 0)
        self->rates_ms = now;
    self->panel.sps = self->sps;
    s_take_limits(self);
}

static void s_add(tt_display_t *self, const char *text)
{
    (void)tt_buf_str(&self->frame, text); /* a frame over FRAME_MAX is cut */
}

/*  Each line erases what was behind it: nothing is blank in between. */
static void s_add_lines(tt_display_t *self, const char *text)
{
    for (const char *end; (end = strchr(text, '\n')) != NULL; text = end + 1) {
        (void)tt_buf_add(&self->frame, text, (size_t)(end - text));
        s_add(self, "\033[K\n");
    }
}

/*  Where the block begins. A terminal that became narrower may have broken its lines, or cut them off, and one that became
 *  lower may have moved some out of sight: then the screen is begun anew. */
static void s_add_home(tt_display_t *self, const screen_t *screen)
{
    if (self->drawn && (screen->width <= self->widest || screen->height <= self->drawn))
        s_add(self, "\033[H\033[2J");
    else if (self->drawn)
        (void)tt_buf_printf(&self->frame, "\033[%uA\r", self->drawn);
}

/*  A frame goes out in one piece, which a terminal that knows mode 2026 shows at once, and others nearly so. */
static void s_write(tt_display_t *self)
{
    const char *at = tt_buf_text(&self->frame);
    fflush(self->stream);
    for (size_t left = self->frame.size; left > 0;) {
        const ssize_t wrote = write(fileno(self->stream), at, left);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return; /* the terminal is gone: SIGHUP says the rest */
        at += wrote;
        left -= (size_t)wrote;
    }
}

/*  Draw the block, with notes above it that stay (NULL = none). */
static void s_draw(tt_display_t *self, const char *note)
{
    const screen_t screen = screen_look(fileno(self->stream));
    canvas_t block;
    canvas_init(&block, &screen);
    s_take_rates(self);
    panel_draw(&self->panel, &block);
    const bool same = !note && self->drawn && memcmp(&screen, &self->screen, sizeof screen) == 0 &&
                      strcmp(tt_buf_text(&block.text), tt_buf_text(&self->shown)) == 0;
    if (!same) {
        tt_buf_clear(&self->frame);
        s_add(self, "\033[?2026h");
        s_add_home(self, &screen);
        if (note)
            s_add_lines(self, note);
        s_add_lines(self, tt_buf_text(&block.text));
        s_add(self, "\033[J\033[?2026l");
        s_write(self);
        tt_buf_clear(&self->shown);
        (void)tt_buf_add(&self->shown, tt_buf_text(&block.text), block.text.size);
        self->screen = screen;
        self->drawn = block.lines;
        self->widest = block.widest;
    }
    canvas_free(&block);
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

static void s_line(tt_display_t *self)
{
    const panel_t *p = &self->panel;
    char steps[FIGURE], limit[FIGURE], sps[FIGURE], mean[FIGURE];
    fprintf(self->stream, "%8.2f s  steps %s", s_elapsed(self), figure_count(p->env_steps, steps));
    if (p->step_limit)
        fprintf(self->stream, " / %s", figure_count(p->step_limit, limit));
    fprintf(
        self->stream, "  %s/s  return %s", figure_count((uint64_t)self->sps, sps), figure_digits(p->return_mean, mean));
    if (!isnan(p->goal))
        fprintf(self->stream, "   goal %g", p->goal);
    for (size_t i = 0; i < p->role_count; i++)
        fprintf(self->stream, "  %s %u/%u", p->role[i].name, p->role[i].ready, p->role[i].desired);
    fprintf(self->stream, "\n");
    fflush(self->stream);
}

/*  Lines for good, as long as they must be, without escapes of their own; above the block. */
static void s_draw_notes(tt_display_t *self, char *lines)
{
    screen_t wide = screen_look(fileno(self->stream));
    canvas_t notes;
    wide.width = UINT16_MAX;
    canvas_init(&notes, &wide);
    for (char *rest = lines, *line; (line = strsep(&rest, "\n")) != NULL;)
        if (*line) {
            canvas_put(&notes, INK_PLAIN, line);
            canvas_end_line(&notes);
        }
    s_draw(self, notes.lines ? tt_buf_text(&notes.text) : NULL);
    canvas_free(&notes);
}

/*  A terminal that was told to hold on (Ctrl-S) is not waited for, but at the end: there will be another frame. */
static bool s_takes(const tt_display_t *self)
{
    struct pollfd out = {.fd = fileno(self->stream), .events = POLLOUT};
    return poll(&out, 1, 0) == 1 && (out.revents & POLLOUT);
}

static void s_draw_all(tt_display_t *self, bool last)
{
    if (!last && !s_takes(self))
        return;
    pthread_mutex_lock(&self->mutex);
    char *lines = tt_strdup(tt_buf_text(&self->notes));
    tt_buf_clear(&self->notes);
    pthread_mutex_unlock(&self->mutex);
    s_draw_notes(self, lines);
    free(lines);
}

static void s_note(tt_display_t *self, const char *text)
{
    if (self->live) {
        s_on_log(self, text);
        s_on_log(self, "\n");
        s_draw_all(self, false);
    } else {
        fprintf(self->stream, "%s\n", tt_shown(text));
        fflush(self->stream);
    }
}

/* ---- callbacks ------------------------------------------------------------------------------------------------------ */

/*  A window is never shorter than WINDOW_MS, but at the beginning: batches that are heard of together make no speed. */
static void s_take_speed(tt_display_t *self, const tt_msg_STATS_t *stats)
{
    const mark_t now = {stats->time_ns, stats->env_steps};
    if (!self->since.ns) /* a run that is resumed has steps that were not made now */
        self->since = self->next = now;
    if (now.ns - self->next.ns > (int64_t)WINDOW_MS * 1000000) {
        self->since = self->next;
        self->next = now;
    }
    const int64_t passed = now.ns - self->since.ns;
    if (passed > 0 && now.steps >= self->since.steps)
        self->sps = (double)(now.steps - self->since.steps) * 1e9 / (double)passed;
}

static void s_on_stats(void *ctx, const tt_msg_STATS_t *stats)
{
    tt_display_t *self = ctx;
    panel_t *p = &self->panel;
    if (!self->any && self->training)
        self->training();
    self->any = true;
    s_take_speed(self, stats);
    p->env_steps = stats->env_steps;
    p->updates = stats->update;
    p->episodes = stats->episodes;
    p->lag = stats->lag_max;
    p->return_mean = stats->return_mean;
    p->length_mean = stats->length_mean;
    snprintf(p->bottleneck, sizeof p->bottleneck, "%s", stats->bottleneck ? stats->bottleneck : "");
    p->metric_count = 0;
    for (size_t i = 0; i < stats->metrics_count && p->metric_count < PANEL_METRICS; i++) {
        panel_metric_t *metric = &p->metric[p->metric_count++];
        metric->value = stats->metrics[i].value;
        snprintf(metric->name, sizeof metric->name, "%s", stats->metrics[i].name ? stats->metrics[i].name : "");
    }
}

static void s_on_scale(void *ctx, const tt_msg_SCALE_t *scale)
{
    panel_t *p = &((tt_display_t *)ctx)->panel;
    p->role_count = 0;
    for (size_t i = 0; i < scale->counts_count && p->role_count < PANEL_ROLES; i++) {
        panel_role_t *role = &p->role[p->role_count++];
        snprintf(role->name, sizeof role->name, "%.31s", scale->counts[i].role ? scale->counts[i].role : "");
        role->desired = scale->counts[i].desired;
        role->ready = scale->counts[i].ready;
    }
}

static void s_on_roster(void *ctx, const tt_msg_ROSTER_t *roster)
{
    panel_t *p = &((tt_display_t *)ctx)->panel;
    for (size_t i = 0; i < p->role_count; i++) {
        const tt_peer_role_t role = tt_peer_role_find(p->role[i].name);
        p->role[i].ready = role == TT_PEER_COORDINATOR;
        for (size_t m = 0; m < roster->members_count; m++)
            p->role[i].ready += roster->members[m].role == (uint32_t)role;
    }
}

static void s_on_note(void *ctx, const char *text)
{
    s_note(ctx, text);
}

static void s_on_event(void *ctx, const tt_msg_EVENT_t *event)
{
    char text[512], mean[FIGURE];
    if (strcmp(event->kind, "solved") == 0)
        snprintf(text, sizeof text, "solved: mean return %s after %llu steps", figure_digits(event->value, mean),
            (unsigned long long)event->env_steps);
    else if (strcmp(event->kind, "warning") == 0)
        snprintf(text, sizeof text, "warning: %.400s", event->text);
    else if (strcmp(event->kind, "waiting") == 0)
        snprintf(text, sizeof text, "%.400s", event->text);
    else
        return;
    if (!((const tt_display_t *)ctx)->quiet)
        s_note(ctx, text);
}

static void s_on_tick(void *ctx)
{
    tt_display_t *self = ctx;
    const int64_t now = tt_now_ms(tt_clock_real());
    if (self->quiet)
        return;
    if (self->live) {
        s_draw_all(self, false);
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

void tt_display_finished(tt_display_t *self, const char *finished)
{
    json_t *end = finished ? json_loads(finished, 0, NULL) : NULL;
    const json_t *steps = json_object_get(end, "env_steps"), *mean = json_object_get(end, "return_mean");
    if (self->any && json_is_integer(steps)) {
        self->panel.env_steps = (uint64_t)json_integer_value(steps);
        self->panel.updates = (uint64_t)json_integer_value(json_object_get(end, "updates"));
        self->panel.episodes = (uint64_t)json_integer_value(json_object_get(end, "episodes"));
        if (json_is_number(mean))
            self->panel.return_mean = json_number_value(mean);
    }
    json_decref(end);
}

void tt_display_destroy(tt_display_t **self_p)
{
    tt_display_t *self = *self_p;
    if (!self)
        return;
    self->rates_ms = 0; /* the last word is as of now */
    if (self->takes_log)
        tt_log_sink(NULL, NULL);
    if (self->live)
        s_draw_all(self, true);
    else if (self->any && !self->quiet)
        s_line(self);
    tt_buf_free(&self->shown);
    tt_buf_free(&self->frame);
    tt_buf_free(&self->notes);
    pthread_mutex_destroy(&self->mutex);
    free(self);
    *self_p = NULL;
}
