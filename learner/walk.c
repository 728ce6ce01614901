#include "learner/walk.h"
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "learner/steps.h"

typedef struct {
    float *at;
    size_t room; /* floats */
} floats_t;

struct walk {
    const model_t *model;
    size_t carries;
    floats_t now;                 /* [units][carries]                                       */
    floats_t into;                /* the same of set 0, where the rows begin that are trained on */
    floats_t final;               /* [finals][carries] behind the steps that they follow     */
    floats_t out[TT_TOWERS_MAX];  /* [rows of the table][A] of the set in hand               */
    floats_t head[TT_STAGES_MAX]; /* [length][units][A]                                      */
};

/*  A run in hand. */
typedef struct {
    walk_t *walk;
    const sequences_t *of;
    const tt_table_t *obs;
    const tt_objective_t *objective;
    tt_progress_t progress;
    uint32_t set;
    uint32_t towers; /* whose heads are wanted, as bits          */
    uint32_t k;      /* the first final that is not behind it yet */
} run_t;

walk_t *walk_new(const model_t *model)
{
    walk_t *self = tt_new0(sizeof *self);
    self->model = model;
    self->carries = tt_net_carry(tt_net_spec(model->net));
    return self;
}

void walk_destroy(walk_t **self_p)
{
    walk_t *self = *self_p;
    if (!self)
        return;
    free(self->now.at);
    free(self->into.at);
    free(self->final.at);
    for (uint32_t t = 0; t < TT_TOWERS_MAX; t++)
        free(self->out[t].at);
    for (uint32_t s = 0; s < TT_STAGES_MAX; s++)
        free(self->head[s].at);
    free(self);
    *self_p = NULL;
}

/*  What was there is not kept. */
static float *s_need(floats_t *floats, size_t rows, size_t cols)
{
    const size_t count = tt_mul(rows, cols);
    if (floats->room < count) {
        free(floats->at);
        floats->at = tt_array0(count, sizeof *floats->at);
        floats->room = count;
    }
    return floats->at;
}

static size_t s_outs(const run_t *run, uint32_t tower)
{
    return tt_net_spec(run->walk->model->net)->tower[tower].out;
}

/* ---- forward -------------------------------------------------------------------------------------------------------- */

/*  Heads of the run's towers, for rows from `first` of the table on. */
static void s_wanted(const run_t *run, size_t first, float **out)
{
    memset(out, 0, TT_TOWERS_MAX * sizeof *out);
    for (uint32_t t = 0; run->towers >> t; t++)
        if (run->towers >> t & 1)
            out[t] = run->walk->out[t].at + first * s_outs(run, t);
}

/*  Frames lo .. hi - 1, whose blocks are neighbours, on from where the walk is; heads: whether they are wanted. */
static tt_status_t s_steps(run_t *run, uint32_t lo, uint32_t hi, bool heads)
{
    const sequences_t *of = run->of;
    walk_t *walk = run->walk;
    const size_t first = sequences_at(of, lo, of->lo);
    float *own = walk->now.at + of->lo * walk->carries, *out[TT_TOWERS_MAX] = {NULL};
    uint32_t k = run->k;
    while (k < of->finals && of->final_at[k] - first < (hi - lo) * of->units)
        k++;
    const tt_walk_t steps = {.first = first,
        .apart = of->units,
        .rows = of->hi - of->lo,
        .steps = hi - lo,
        .begins = of->begins + first,
        .in = own,
        .left = own,
        .keeps = k - run->k,
        .keep = of->final_at + run->k,
        .kept = walk->final.at + run->k * walk->carries};
    if (lo == hi || of->lo == of->hi)
        return TT_OK;
    if (heads)
        s_wanted(run, first, out);
    run->k = k;
    return steps_run(walk->model, run->set, run->obs, &steps, out, run->progress);
}

/*  What episodes were cut at, with what their last steps left. */
static tt_status_t s_finals(const run_t *run)
{
    const sequences_t *of = run->of;
    const model_t *model = run->walk->model;
    const tt_carry_t carry = {.in = run->walk->final.at};
    float *out[TT_TOWERS_MAX];
    s_wanted(run, sequences_rows(of), out);
    TT_TRY(tt_net_forward_from(
        model->net, model->stream, run->set, run->obs, sequences_rows(of), of->finals, &carry, out));
    return tt_stream_sync(model->stream);
}

/*  One set over all frames, or as far as somebody reads it. What a return goes on from lies behind the burn-in. */
static tt_status_t s_walk_set(run_t *run)
{
    const sequences_t *of = run->of;
    walk_t *walk = run->walk;
    const size_t carried = of->units * walk->carries * sizeof(float);
    memcpy(walk->now.at, of->carry, carried);
    run->k = 0;
    TT_TRY(s_steps(run, 0, of->burn, false));
    if (run->set == 0)
        memcpy(walk->into.at, walk->now.at, carried);
    if (!run->towers)
        return TT_OK;
    TT_TRY(s_steps(run, of->burn, of->burn + of->length, true));
    TT_TRY(s_steps(run, of->burn + of->length, of->frames, true));
    return of->finals ? s_finals(run) : TT_OK;
}

/* ---- what came of it ------------------------------------------------------------------------------------------------ */

/*  Heads of a stage, from where each row's return goes on. */
static void s_pick(const run_t *run, uint32_t s)
{
    const sequences_t *of = run->of;
    const uint32_t tower = run->objective->stage[s].tower;
    const size_t outs = s_outs(run, tower);
    const float *out = run->walk->out[tower].at;
    float *head = s_need(&run->walk->head[s], tt_mul(of->length, of->units), outs);
    for (uint32_t t = 0; t < of->length; t++)
        for (uint32_t u = of->lo; u < of->hi; u++) {
            const size_t i = (size_t)t * of->units + u;
            memcpy(head + i * outs, out + of->next[i] * outs, outs * sizeof *head);
        }
}

static bool s_wants(const run_t *run, uint32_t s)
{
    const tt_objective_stage_t *stage = &run->objective->stage[s];
    return stage->known && stage->set == run->set;
}

static tt_status_t s_run_set(run_t *run)
{
    const sequences_t *of = run->of;
    const size_t rows = (size_t)sequences_rows(of) + of->finals;
    run->towers = 0;
    for (uint32_t s = 0; s < run->objective->stages; s++)
        if (s_wants(run, s)) {
            const uint32_t tower = run->objective->stage[s].tower;
            TT_CHECK(run->objective->stage[s].frame == TT_NEXT);
            run->towers |= 1u << tower;
            s_need(&run->walk->out[tower], rows, s_outs(run, tower));
        }
    if (!run->towers && run->set)
        return TT_OK;
    TT_TRY(s_walk_set(run));
    for (uint32_t s = 0; s < run->objective->stages; s++)
        if (s_wants(run, s))
            s_pick(run, s);
    return TT_OK;
}

tt_status_t walk_run(walk_t *self, const sequences_t *sequences, const tt_table_t *obs, const tt_objective_t *objective,
    tt_progress_t progress)
{
    run_t run = {.walk = self, .of = sequences, .obs = obs, .objective = objective, .progress = progress};
    const uint32_t sets = tt_net_spec(self->model->net)->sets;
    s_need(&self->now, sequences->units, self->carries);
    s_need(&self->into, sequences->units, self->carries);
    s_need(&self->final, sequences->finals, self->carries);
    for (run.set = 0; run.set == 0 || run.set < sets; run.set++)
        TT_TRY(s_run_set(&run));
    return TT_OK;
}

const float *walk_carry(const walk_t *self)
{
    return self->into.at;
}

const float *walk_head(const walk_t *self, uint32_t stage)
{
    return self->head[stage].at;
}
