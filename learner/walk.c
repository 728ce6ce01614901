#include "learner/walk.h"
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"

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

/*  Rows of the table; heads: whether they are wanted, of the run's towers. */
static tt_status_t s_forward(const run_t *run, size_t first, size_t rows, const tt_carry_t *carry, bool heads)
{
    const model_t *model = run->walk->model;
    float *out[TT_TOWERS_MAX] = {NULL};
    for (uint32_t t = 0; heads && run->towers >> t; t++)
        if (run->towers >> t & 1)
            out[t] = run->walk->out[t].at + first * s_outs(run, t);
    TT_TRY(tt_net_forward_from(model->net, model->stream, run->set, run->obs, first, rows, carry, out));
    return tt_stream_sync(model->stream);
}

/*  What the steps leave that a final follows. */
static void s_keep_finals(run_t *run, uint32_t k)
{
    const sequences_t *of = run->of;
    walk_t *walk = run->walk;
    const size_t carries = walk->carries;
    for (; run->k < of->finals && of->final_at[run->k] / of->units == k; run->k++)
        memcpy(walk->final.at + run->k * carries, walk->now.at + of->final_at[run->k] % of->units * carries,
            carries * sizeof(float));
}

/*  Frame k of all units. What a return goes on from lies behind the burn-in. */
static tt_status_t s_step(run_t *run, uint32_t k)
{
    const sequences_t *of = run->of;
    float *now = run->walk->now.at;
    const size_t carries = run->walk->carries, first = sequences_at(of, k, of->lo);
    for (uint32_t u = of->lo; u < of->hi; u++)
        if (of->begins[sequences_at(of, k, u)])
            memset(now + u * carries, 0, carries * sizeof *now);
    float *own = now + of->lo * carries;
    TT_TRY(s_forward(run, first, of->hi - of->lo, &(tt_carry_t){own, own}, k > of->burn));
    s_keep_finals(run, k);
    tt_progress(run->progress);
    return TT_OK;
}

/*  One set over all frames, or as far as somebody reads it. */
static tt_status_t s_walk_set(run_t *run)
{
    const sequences_t *of = run->of;
    walk_t *walk = run->walk;
    const size_t carried = of->units * walk->carries * sizeof(float);
    const uint32_t frames = run->towers ? of->frames : of->burn;
    memcpy(walk->now.at, of->carry, carried);
    run->k = 0;
    for (uint32_t k = 0; k <= frames; k++) {
        if (k == of->burn && run->set == 0)
            memcpy(walk->into.at, walk->now.at, carried);
        if (k < frames)
            TT_TRY(s_step(run, k));
    }
    return run->towers && of->finals
               ? s_forward(run, sequences_rows(of), of->finals, &(tt_carry_t){.in = walk->final.at}, true)
               : TT_OK;
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
