#include "learner/steps.h"
#include <string.h>
#include "common/base/clock.h"

enum { PIECE_ROWS = 1024, PIECE_NS = 20000000 };

/*  Steps before `at` are done, of step `at` so many rows, and so many of those that are kept are behind them. */
typedef struct {
    const tt_walk_t *all;
    size_t floats; /* C */
    uint32_t at, rows, kept;
} place_t;

/*  Of those that are kept: as many as come before this row of the table. */
static uint32_t s_keeps(const place_t *self, size_t end)
{
    uint32_t k = self->kept;
    while (k < self->all->keeps && self->all->keep[k] < end)
        k++;
    return k - self->kept;
}

/*  Whole steps. */
static tt_walk_t s_steps(const place_t *self, uint32_t steps)
{
    const tt_walk_t *all = self->all;
    tt_walk_t out = *all;
    out.first += self->at * all->apart;
    out.steps = all->steps - self->at < steps ? all->steps - self->at : steps;
    out.begins += self->at * all->apart;
    out.in = self->at ? all->left : all->in;
    out.keeps = s_keeps(self, out.first + out.steps * all->apart);
    if (out.keeps) {
        out.keep += self->kept;
        out.kept += self->kept * self->floats;
    }
    return out;
}

/*  Rows of a step that has more than can be done in a moment. What is kept of them is at `left` when the step is done. */
static tt_walk_t s_rows(const place_t *self, uint32_t rows)
{
    const uint32_t left = self->all->rows - self->rows;
    tt_walk_t out = s_steps(self, 1);
    out.first += self->rows;
    out.rows = left < rows ? left : rows;
    out.begins += self->rows;
    out.in += self->rows * self->floats;
    out.left += self->rows * self->floats;
    out.keeps = 0;
    return out;
}

static tt_walk_t s_piece(const place_t *self, uint32_t rows)
{
    return self->rows || self->all->rows > rows ? s_rows(self, rows) : s_steps(self, rows / self->all->rows);
}

static void s_keep(place_t *self)
{
    const tt_walk_t *all = self->all;
    const size_t first = all->first + self->at * all->apart;
    for (uint32_t left = s_keeps(self, first + all->apart); left; left--, self->kept++)
        memcpy(all->kept + self->kept * self->floats, all->left + (all->keep[self->kept] - first) * self->floats,
            self->floats * sizeof *all->left);
}

static void s_go_on(place_t *self, const tt_walk_t *piece)
{
    if (piece->rows == self->all->rows) {
        self->at += piece->steps;
        self->kept += piece->keeps;
        return;
    }
    self->rows += piece->rows;
    if (self->rows < self->all->rows)
        return;
    s_keep(self);
    self->at++;
    self->rows = 0;
}

static tt_status_t s_do(
    const model_t *model, uint32_t set, const tt_table_t *obs, const tt_walk_t *piece, size_t before, float *const *out)
{
    const tt_net_spec_t *spec = tt_net_spec(model->net);
    float *head[TT_TOWERS_MAX];
    for (uint32_t t = 0; t < spec->towers; t++)
        head[t] = out[t] ? out[t] + before * spec->tower[t].out : NULL;
    TT_TRY(tt_net_walk(model->net, model->stream, set, obs, piece, head));
    return tt_stream_sync(model->stream);
}

/*  As compute.c's pieces of rows: they grow as long as one is soon done, and the clock decides about nothing else. */
tt_status_t steps_run(const model_t *model, uint32_t set, const tt_table_t *obs, const tt_walk_t *steps,
    float *const *out, tt_progress_t progress)
{
    const tt_clock_t *clock = tt_clock_real();
    place_t place = {.all = steps, .floats = tt_net_carry(tt_net_spec(model->net))};
    for (uint32_t most = PIECE_ROWS; place.at < steps->steps;) {
        const int64_t begun_ns = tt_now_ns(clock);
        const tt_walk_t piece = s_piece(&place, most);
        TT_TRY(s_do(model, set, obs, &piece, piece.first - steps->first, out));
        s_go_on(&place, &piece);
        tt_progress(progress);
        if (tt_now_ns(clock) - begun_ns < PIECE_NS && most <= UINT32_MAX / 2)
            most *= 2;
    }
    return TT_OK;
}
