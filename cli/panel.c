#include "cli/panel.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "cli/figures.h"

enum { LABEL = 10, GAP = 3, VALUE = 10, SECTIONS = 16, NAME_LEAST = 14, BUSY = 10, BUSY_FROM = 60 };

/*  Sections in the order on the screen; what is not there has no lines. rank: what is left out first. */
typedef struct {
    canvas_t canvas;
    unsigned rank;
} section_t;

typedef struct {
    const panel_t *panel;
    const screen_t *screen;
    section_t section[SECTIONS];
    size_t count;
} layout_t;

static canvas_t *s_section(layout_t *self, unsigned rank)
{
    section_t *section = &self->section[self->count < SECTIONS ? self->count++ : SECTIONS - 1];
    section->rank = rank;
    canvas_init(&section->canvas, self->screen);
    return &section->canvas;
}

/* ---- items that flow --------------------------------------------------------------------------------------------- */

static void s_label(canvas_t *out, const char *label)
{
    out->indent = out->screen.width > 4 * LABEL ? LABEL : 2;
    canvas_put(out, INK_DIM, label);
    if (out->indent < LABEL && label[0])
        canvas_put(out, INK_PLAIN, " ");
    canvas_tab(out, out->indent);
}

/*  What is put next has so many cells: after a gap, or in a new line when it does not fit there. */
static void s_gap(canvas_t *out, unsigned gap, unsigned cells)
{
    if (out->column <= out->indent || (out->column < LABEL && out->lines == 0))
        return;
    if (canvas_room(out) < gap + cells) {
        canvas_end_line(out);
        canvas_tab(out, out->indent);
    } else
        canvas_tab(out, out->column + gap);
}

static void s_item(canvas_t *out, ink_t ink, const char *text)
{
    s_gap(out, GAP, canvas_cells(&out->screen, text));
    canvas_put(out, ink, text);
}

/*  A sentence, broken at blanks. */
static void s_sentence(canvas_t *out, ink_t ink, const char *text)
{
    char word[256];
    while (*text) {
        const size_t length = strcspn(text, " ");
        snprintf(word, sizeof word, "%.*s", (int)length, text);
        s_gap(out, 1, canvas_cells(&out->screen, word));
        canvas_put(out, ink, word);
        text += length + (text[length] == ' ');
    }
}

/* ---- sections ---------------------------------------------------------------------------------------------------- */

static void s_head(layout_t *self)
{
    const panel_t *p = self->panel;
    char elapsed[FIGURE], text[1024];
    canvas_t *out = s_section(self, 0);
    const unsigned width = self->screen->width - 1, clock = (unsigned)strlen(figure_time(p->elapsed_s, elapsed));
    canvas_t left; /* what is said of the run ends where the clock begins */
    screen_t narrow = *self->screen;
    narrow.width = width > clock + 2 + 8 ? width - clock - 1 : self->screen->width;
    canvas_init(&left, &narrow);
    canvas_put(&left, INK_BOLD, p->run);
    snprintf(text, sizeof text, "   %s   %s   seed %llu", p->env, p->algorithm, (unsigned long long)p->seed);
    canvas_put(&left, INK_PLAIN, text);
    (void)tt_buf_add(&out->text, tt_buf_text(&left.text), left.text.size);
    out->column = left.column;
    canvas_free(&left);
    if (narrow.width < self->screen->width) {
        canvas_tab(out, width - clock);
        canvas_put(out, INK_PLAIN, elapsed);
    }
    canvas_end_line(out);
}

static void s_progress(layout_t *self)
{
    const panel_t *p = self->panel;
    char words[64], left[FIGURE];
    if (isnan(p->done))
        return;
    snprintf(words, sizeof words, "%3.0f %%  %s left", 100 * floor(p->done * 100) / 100, figure_time(p->left_s, left));
    const unsigned width = self->screen->width - 1, length = (unsigned)strlen(words) + 2;
    canvas_t *out = s_section(self, 1);
    if (width > length + 4) {
        canvas_bar(out, INK_GOOD, width - length, p->done);
        canvas_put(out, INK_PLAIN, "  ");
    }
    canvas_put(out, INK_PLAIN, words);
    canvas_end_line(out);
}

static void s_returns(layout_t *self)
{
    const panel_t *p = self->panel;
    char number[FIGURE], text[96];
    canvas_t *out = s_section(self, 0);
    s_label(out, "return");
    s_item(out, p->return_mean >= p->goal ? INK_GOOD : INK_BOLD, figure_digits(p->return_mean, number));
    if (!isnan(p->goal)) {
        snprintf(text, sizeof text, "goal %g", p->goal);
        s_item(out, INK_PLAIN, text);
    }
    snprintf(text, sizeof text, "last 100 of %s episodes", figure_count(p->episodes, number));
    s_item(out, INK_PLAIN, text);
    if (p->length_mean > 0) {
        snprintf(text, sizeof text, "length %s", figure_digits(p->length_mean, number));
        s_item(out, INK_PLAIN, text);
    }
    canvas_end_line(out);
}

static void s_steps(layout_t *self)
{
    const panel_t *p = self->panel;
    char number[FIGURE], limit[FIGURE], text[128];
    canvas_t *out = s_section(self, 2);
    s_label(out, "steps");
    figure_count(p->env_steps, number);
    if (p->step_limit)
        snprintf(text, sizeof text, "%s of %s", number, figure_count(p->step_limit, limit));
    else
        snprintf(text, sizeof text, "%s", number);
    s_item(out, INK_PLAIN, text);
    snprintf(text, sizeof text, "%s/s", figure_count((uint64_t)p->sps, number));
    s_item(out, INK_BOLD, text);
    snprintf(text, sizeof text, "update %s", figure_count(p->updates, number));
    s_item(out, INK_PLAIN, text);
    snprintf(text, sizeof text, "lag %llu", (unsigned long long)p->lag);
    s_item(out, INK_PLAIN, text);
    canvas_end_line(out);
}

static const panel_metric_t *s_metric(const panel_t *p, const char *name)
{
    for (size_t i = 0; i < p->metric_count; i++)
        if (strcmp(p->metric[i].name, name) == 0)
            return &p->metric[i];
    return NULL;
}

static void s_replicas(layout_t *self)
{
    const panel_t *p = self->panel;
    char text[96], bytes[FIGURE];
    canvas_t *out = s_section(self, 3);
    s_label(out, "replicas");
    for (size_t i = 0; i < p->role_count; i++) {
        if (p->role[i].desired == 0 && p->role[i].ready == 0)
            continue; /* no aggregator is needed with one learner */
        snprintf(text, sizeof text, "%s %u/%u", p->role[i].name, p->role[i].ready, p->role[i].desired);
        s_item(out, p->role[i].ready == p->role[i].desired ? INK_PLAIN : INK_WARN, text);
    }
    if (p->role_count == 0)
        s_item(out, INK_PLAIN, "starting");
    const panel_metric_t *memory = s_metric(p, "system/memory_bytes"), *cpus = s_metric(p, "system/cpus");
    if (cpus) {
        snprintf(text, sizeof text, "processors %.1f", cpus->value);
        s_item(out, INK_PLAIN, text);
    }
    if (memory) {
        snprintf(text, sizeof text, "memory %s", figure_bytes(memory->value, bytes));
        s_item(out, INK_PLAIN, text);
    }
    canvas_end_line(out);
}

/* ---- the algorithm's numbers: a grid for each group, "losses/..." first --------------------------------------------- */

static size_t s_group(const char *name)
{
    const char *slash = strchr(name, '/');
    return slash ? (size_t)(slash - name) : 0;
}

static bool s_is_ours(const char *name)
{
    return strncmp(name, "time/", 5) == 0 || strncmp(name, "system/", 7) == 0;
}

static bool s_same_group(const panel_metric_t *a, const panel_metric_t *b)
{
    return s_group(a->name) == s_group(b->name) && strncmp(a->name, b->name, s_group(a->name)) == 0;
}

static const char *s_leaf(const panel_metric_t *metric)
{
    return metric->name + s_group(metric->name) + (s_group(metric->name) > 0);
}

/*  Cells of the longest name: name and value stand in columns of one width, so that nothing jumps when numbers change. */
static unsigned s_name_cells(const layout_t *self)
{
    const panel_t *p = self->panel;
    unsigned cells = NAME_LEAST;
    for (size_t i = 0; i < p->metric_count; i++) {
        const unsigned name = canvas_cells(self->screen, s_leaf(&p->metric[i]));
        if (!s_is_ours(p->metric[i].name) && name > cells)
            cells = name;
    }
    return cells;
}

static void s_grid(layout_t *self, const panel_metric_t *first, unsigned rank)
{
    const panel_t *p = self->panel;
    const unsigned cell = s_name_cells(self) + VALUE;
    char label[PANEL_NAME], number[FIGURE];
    canvas_t *out = s_section(self, rank);
    snprintf(label, sizeof label, "%.*s", (int)s_group(first->name), first->name);
    s_label(out, label);
    for (size_t i = 0; i < p->metric_count; i++) {
        if (!s_same_group(first, &p->metric[i]))
            continue;
        s_gap(out, GAP, cell);
        const unsigned end = out->column + (canvas_room(out) < cell ? canvas_room(out) : cell);
        figure_digits(p->metric[i].value, number);
        canvas_put(out, INK_PLAIN, s_leaf(&p->metric[i]));
        canvas_tab(out, end - (unsigned)strlen(number));
        canvas_put(out, INK_BOLD, number);
    }
    canvas_end_line(out);
}

static bool s_is_first_of_group(const panel_t *p, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (s_same_group(&p->metric[i], &p->metric[at]))
            return false;
    return !s_is_ours(p->metric[at].name);
}

static void s_groups(layout_t *self)
{
    const panel_t *p = self->panel;
    for (int losses = 1; losses >= 0; losses--)
        for (size_t i = 0; i < p->metric_count && self->count < SECTIONS - 6; i++)
            if (s_is_first_of_group(p, i) && (strncmp(p->metric[i].name, "losses/", 7) == 0) == losses)
                s_grid(self, &p->metric[i], losses ? 6 : 7);
}

/* ---- where the time goes --------------------------------------------------------------------------------------------- */

/*  The stage's name when the metric is a part of that role's time, else NULL. */
static const char *s_stage(const panel_metric_t *metric, const char *role)
{
    const size_t length = strlen(role);
    const bool is = strncmp(metric->name, "time/", 5) == 0 && strncmp(metric->name + 5, role, length) == 0 &&
                    metric->name[5 + length] == '/';
    return is ? metric->name + 5 + length + 1 : NULL;
}

static bool s_waits(const char *stage)
{
    return strncmp(stage, "wait_", 5) == 0;
}

static double s_busy(const panel_t *p, const char *role)
{
    double busy = 0;
    for (size_t i = 0; i < p->metric_count; i++) {
        const char *stage = s_stage(&p->metric[i], role);
        if (stage && !s_waits(stage) && p->metric[i].value > 0)
            busy += p->metric[i].value;
    }
    return busy;
}

/*  "wait_batch" -> "wait batch  61 %"; a hundredth at least. */
static void s_stages(canvas_t *out, const panel_t *p, const char *role)
{
    for (size_t i = 0; i < p->metric_count; i++) {
        const char *stage = s_stage(&p->metric[i], role);
        if (!stage || !(p->metric[i].value >= 0.01))
            continue;
        char text[96];
        snprintf(text, sizeof text, "%s %.0f %%", stage, 100 * p->metric[i].value);
        for (char *c = strchr(text, '_'); c; c = strchr(c, '_'))
            *c = ' ';
        s_item(out, s_waits(stage) ? INK_WARN : INK_PLAIN, text);
    }
}

static void s_time_of(layout_t *self, const char *role, const char *label, unsigned rank)
{
    canvas_t *out = s_section(self, rank);
    s_label(out, label);
    canvas_put(out, INK_PLAIN, role);
    if (self->screen->width >= BUSY_FROM) {
        canvas_tab(out, LABEL + 12);
        canvas_bar(out, INK_GOOD, BUSY, s_busy(self->panel, role));
        out->indent = out->column + GAP;
        canvas_tab(out, out->indent);
    } else
        canvas_tab(out, LABEL); /* the shortest role ends before that, where s_gap sees a label */
    s_stages(out, self->panel, role);
    canvas_end_line(out);
}

static bool s_has_time(const panel_t *p, const char *role)
{
    for (size_t i = 0; i < p->metric_count; i++)
        if (s_stage(&p->metric[i], role))
            return true;
    return false;
}

static void s_time(layout_t *self)
{
    const panel_t *p = self->panel;
    const char *label = "time";
    for (size_t i = 0; i < p->role_count && self->count < SECTIONS - 1; i++) {
        if (!s_has_time(p, p->role[i].name))
            continue;
        s_time_of(self, p->role[i].name, label, strcmp(p->role[i].name, "aggregator") == 0 ? 8 : 5);
        label = "";
    }
    if (p->bottleneck[0]) {
        canvas_t *out = s_section(self, 4);
        s_label(out, label[0] ? label : "");
        s_sentence(out, INK_HINT, p->bottleneck);
        canvas_end_line(out);
    }
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static unsigned s_lines(const layout_t *self, unsigned rank)
{
    unsigned lines = 0;
    for (size_t i = 0; i < self->count; i++)
        if (self->section[i].rank <= rank)
            lines += self->section[i].canvas.lines;
    return lines;
}

/*  Whole lines of a section, as many as there is room for. */
static void s_copy(canvas_t *out, const canvas_t *from, unsigned room)
{
    const char *text = tt_buf_text(&from->text);
    for (unsigned i = 0; i < from->lines && i < room; i++) {
        const char *end = strchr(text, '\n') + 1;
        (void)tt_buf_add(&out->text, text, (size_t)(end - text));
        out->lines++;
        text = end;
    }
    out->widest = from->widest > out->widest ? from->widest : out->widest;
}

void panel_draw(const panel_t *self, canvas_t *out)
{
    layout_t layout = {.panel = self, .screen = &out->screen};
    const unsigned height = out->screen.height - 1;
    unsigned rank = 8;
    s_head(&layout);
    s_progress(&layout);
    s_returns(&layout);
    s_steps(&layout);
    s_replicas(&layout);
    s_groups(&layout);
    s_time(&layout);
    while (rank > 0 && s_lines(&layout, rank) > height)
        rank--;
    for (size_t i = 0; i < layout.count; i++) {
        if (layout.section[i].rank <= rank && out->lines < height)
            s_copy(out, &layout.section[i].canvas, height - out->lines);
        canvas_free(&layout.section[i].canvas);
    }
}
