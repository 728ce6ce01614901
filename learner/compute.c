#include "learner/compute.h"
#include <stdlib.h>
#include <string.h>
#include "common/base/clock.h"
#include "common/base/mem.h"
#include "learner/steps.h"
#include "learner/walk.h"

enum { BATCH_ROWS = TT_ROWS_FINAL + 1, PIECE_ROWS = 1024, PIECE_NS = 20000000 };

struct compute {
    const model_t *model;
    tt_progress_t progress;
    tt_sums_t *sums;
    tt_table_t *rows[BATCH_ROWS];    /* of the batch, by tt_batch_rows_t          */
    size_t count[BATCH_ROWS];        /* how many are there                        */
    const tt_batch_t *batch;         /* borrowed                                  */
    tt_table_t *unit[TT_FRAMES];     /* REPLAY                                    */
    tt_table_t *head[TT_STAGES_MAX]; /* of stages that are known                 */
    tt_table_t *input[TT_INPUTS_MAX];
    bool fresh; /* the batch's inputs are still to come */

    /* of a recurrent network: */
    uint32_t carries;           /* floats that an env carries; 0: nothing recurs, and there is none of this */
    tt_table_t *carry, *begins; /* of the batch, or of a replay's sequences                                 */
    walk_t *walk;               /* through these; NULL: there was none yet                                  */
    float *into;                /* [N][carries] into the batch, side by side                                */
    float *now;                 /* [N][carries] into the step in hand; behind the last one, TT_ROWS_LAST's  */
    float *final;               /* [finals][carries]                                                        */
    size_t into_room, now_room, final_room; /* rows */
    bool stepped;                           /* `now` and `final` are of this batch */

    uint32_t *position;
    uint32_t positions; /* 0, 1, 2 ...: as many as a replay's minibatch has */
    results_t *results;
};

static tt_status_t s_open(compute_t *self)
{
    const tt_net_spec_t *spec = tt_net_spec(self->model->net);
    const size_t bytes = tt_net_row_bytes(spec);
    self->carries = tt_net_carry(spec);
    self->results = results_new(self->model, tt_clock_real());
    TT_TRY(tt_sums_new(&self->sums, self->model->net, self->model->train.learner.shards));
    for (int i = 0; i < BATCH_ROWS; i++)
        TT_TRY(tt_table_new(&self->rows[i], self->model->device, bytes));
    for (int f = 0; f < TT_FRAMES; f++)
        TT_TRY(tt_table_new(&self->unit[f], self->model->device, bytes));
    if (!self->carries)
        return TT_OK;
    TT_TRY(tt_table_new(&self->carry, self->model->device, self->carries * sizeof(float)));
    return tt_table_new(&self->begins, self->model->device, sizeof(uint8_t));
}

tt_status_t compute_new(compute_t **self_p, const model_t *model)
{
    compute_t *self = tt_new0(sizeof *self);
    self->model = model;
    const tt_status_t status = s_open(self);
    if (status == TT_OK)
        *self_p = self;
    else
        compute_destroy(&self);
    return status;
}

void compute_destroy(compute_t **self_p)
{
    compute_t *self = *self_p;
    if (!self)
        return;
    results_destroy(&self->results);
    tt_sums_destroy(&self->sums);
    for (int i = 0; i < BATCH_ROWS; i++)
        tt_table_destroy(&self->rows[i]);
    for (int f = 0; f < TT_FRAMES; f++)
        tt_table_destroy(&self->unit[f]);
    for (int i = 0; i < TT_INPUTS_MAX; i++)
        tt_table_destroy(&self->input[i]);
    for (int i = 0; i < TT_STAGES_MAX; i++)
        tt_table_destroy(&self->head[i]);
    walk_destroy(&self->walk);
    tt_table_destroy(&self->carry);
    tt_table_destroy(&self->begins);
    free(self->into);
    free(self->now);
    free(self->final);
    free(self->position);
    free(self);
    *self_p = NULL;
}

void compute_progress(compute_t *self, tt_progress_t progress)
{
    self->progress = progress;
}

/* ---- the batch ------------------------------------------------------------------------------------------------------ */

static tt_status_t s_put_rows(compute_t *self, tt_batch_rows_t which, const void *const *row, size_t count)
{
    self->count[which] = count;
    return tt_table_put_frames(
        self->rows[which], self->model->stream, &tt_net_spec(self->model->net)->stack, row, count);
}

/*  Room for so many envs or finals; what was there is not kept. */
static void s_need_carry(const compute_t *self, float **at, size_t *room, size_t rows)
{
    if (*room >= rows)
        return;
    free(*at);
    *at = tt_array0(tt_mul(rows, self->carries), sizeof **at);
    *room = rows;
}

static tt_status_t s_put_carry(compute_t *self, const tt_batch_t *batch)
{
    tt_stream_t *stream = self->model->stream;
    if (!self->carries)
        return TT_OK;
    TT_CHECK(batch->carry && batch->begins);
    s_need_carry(self, &self->into, &self->into_room, batch->N);
    s_need_carry(self, &self->now, &self->now_room, batch->N);
    s_need_carry(self, &self->final, &self->final_room, batch->finals);
    for (uint32_t env = 0; env < batch->N; env++)
        memcpy(self->into + (size_t)env * self->carries, batch->carry[env], self->carries * sizeof *self->into);
    TT_TRY(tt_table_put(self->carry, stream, self->into, batch->N));
    return tt_table_put(self->begins, stream, batch->begins, (size_t)batch->T * batch->N);
}

tt_status_t compute_batch(compute_t *self, const tt_batch_t *batch)
{
    self->fresh = true;
    self->stepped = false;
    self->batch = batch;
    TT_TRY(s_put_carry(self, batch));
    TT_TRY(s_put_rows(self, TT_ROWS_OBS, batch->obs, (size_t)batch->T * batch->N));
    TT_TRY(s_put_rows(self, TT_ROWS_LAST, batch->last, batch->N));
    return s_put_rows(self, TT_ROWS_FINAL, batch->final_obs, batch->finals);
}

/* ---- evaluating it -------------------------------------------------------------------------------------------------- */

/*  Rows that are evaluated, and what they carry: NULL where nothing recurs. */
typedef struct {
    tt_batch_rows_t which;
    size_t first, rows;
    const float *in;
    float *out; /* NULL: nobody wants it; may be `in` */
} span_t;

/*  Rows at .. at + rows - 1 of a span. */
static tt_status_t s_forward_piece(const compute_t *self, const span_t *span, size_t at, size_t rows, float *const *out)
{
    const model_t *model = self->model;
    const tt_net_spec_t *spec = tt_net_spec(model->net);
    const size_t first = span->first + at, carried = at * self->carries;
    const tt_carry_t carry = {span->in ? span->in + carried : NULL, span->out ? span->out + carried : NULL};
    float *head[TT_TOWERS_MAX];
    for (uint32_t t = 0; t < spec->towers; t++)
        head[t] = out[t] ? out[t] + first * spec->tower[t].out : NULL;
    TT_TRY(tt_net_forward_from(
        model->net, model->stream, 0, self->rows[span->which], first, rows, span->in ? &carry : NULL, head));
    return tt_stream_sync(model->stream);
}

/*  A batch may have millions of rows, and a row take a millisecond. Pieces grow as long as one is soon done, since a card wants many rows at
 *  once; the clock decides about nothing else. */
static tt_status_t s_forward_span(const compute_t *self, const span_t *span, float *const *out)
{
    const tt_clock_t *clock = tt_clock_real();
    size_t piece = PIECE_ROWS;
    for (size_t at = 0, rows; at < span->rows; at += rows) {
        const int64_t begun_ns = tt_now_ns(clock);
        rows = span->rows - at < piece ? span->rows - at : piece;
        TT_TRY(s_forward_piece(self, span, at, rows, out));
        tt_progress(self->progress);
        if (tt_now_ns(clock) - begun_ns < PIECE_NS)
            piece *= 2;
    }
    return TT_OK;
}

/*  A recurrent network goes through the batch as its envs did. What an episode was cut at is read with what its last step left. */
static tt_status_t s_forward_steps(compute_t *self, float *const *out)
{
    const tt_batch_t *batch = self->batch;
    const size_t last = (size_t)(batch->T - 1) * batch->N;
    const tt_walk_t steps = {.apart = batch->N,
        .rows = batch->N,
        .steps = batch->T,
        .begins = batch->begins,
        .in = self->into,
        .left = self->now,
        .keeps = batch->finals,
        .keep = batch->final_row,
        .kept = self->final};
    TT_TRY(steps_run(self->model, 0, self->rows[TT_ROWS_OBS], &steps, out, self->progress));
    for (uint32_t env = 0; env < batch->N; env++)
        if (batch->terminated[last + env] || batch->truncated[last + env])
            memset(self->now + (size_t)env * self->carries, 0, self->carries * sizeof *self->now);
    self->stepped = true;
    return TT_OK;
}

static tt_status_t s_forward(void *ctx, tt_batch_rows_t which, float *const *out)
{
    compute_t *self = ctx;
    if (self->carries && which == TT_ROWS_OBS)
        return s_forward_steps(self, out);
    TT_CHECK(!self->carries || self->stepped);
    const float *carry = !self->carries ? NULL : which == TT_ROWS_LAST ? self->now : self->final;
    return s_forward_span(self, &(span_t){which, 0, self->count[which], carry, NULL}, out);
}

static tt_status_t s_log_std(void *ctx, uint32_t tower, float *out)
{
    const model_t *model = ((const compute_t *)ctx)->model;
    return tt_net_get_log_std(model->net, model->stream, 0, tower, out);
}

tt_evaluator_t compute_evaluator(compute_t *self)
{
    return (tt_evaluator_t){self, s_forward, s_log_std};
}

/* ---- a minibatch ---------------------------------------------------------------------------------------------------- */

static tt_status_t s_put_input(compute_t *self, uint32_t i, const tt_input_t *input, size_t rows)
{
    if (input->bytes == 0)
        return TT_OK;
    if (!self->input[i])
        TT_TRY(tt_table_new(&self->input[i], self->model->device, input->bytes));
    return tt_table_put(self->input[i], self->model->stream, input->at, input->single ? 1 : rows);
}

static tt_status_t s_put_inputs(compute_t *self, const tt_minibatch_t *minibatch, size_t rows)
{
    for (uint32_t i = 0; i < minibatch->inputs; i++)
        TT_TRY(s_put_input(self, i, &minibatch->input[i], rows));
    return TT_OK;
}

/*  0, 1, 2 ...: by position. */
static const uint32_t *s_positions(compute_t *self, uint32_t rows)
{
    if (self->positions >= rows)
        return self->position;
    free(self->position);
    self->position = tt_array0(rows, sizeof *self->position);
    self->positions = rows;
    for (uint32_t i = 0; i < rows; i++)
        self->position[i] = i;
    return self->position;
}

/*  Rows of the batch, which are there; its inputs come once. */
static tt_status_t s_from_batch(compute_t *self, const tt_minibatch_t *minibatch, tt_pass_t *pass)
{
    pass->obs[TT_AT] = self->rows[TT_ROWS_OBS];
    pass->row = minibatch->row;
    pass->carry = self->carry;
    pass->begins = self->begins;
    if (!self->fresh)
        return TT_OK;
    self->fresh = false;
    return s_put_inputs(self, minibatch, self->count[TT_ROWS_OBS]);
}

/*  Heads that are known, by the stage. */
static tt_status_t s_put_heads(compute_t *self, const tt_minibatch_t *minibatch, tt_pass_t *pass)
{
    const tt_net_spec_t *spec = tt_net_spec(self->model->net);
    for (uint32_t s = 0; s < minibatch->objective->stages; s++) {
        const tt_objective_stage_t *stage = &minibatch->objective->stage[s];
        if (!stage->known)
            continue;
        if (!self->head[s])
            TT_TRY(tt_table_new(&self->head[s], self->model->device, spec->tower[stage->tower].out * sizeof(float)));
        TT_TRY(tt_table_put(self->head[s], self->model->stream, walk_head(self->walk, s), minibatch->rows));
        pass->head[s] = self->head[s];
    }
    return TT_OK;
}

/*  [units][length]: all steps of one unit after another. */
static const uint32_t *s_sequence_rows(compute_t *self, const sequences_t *sequences)
{
    const uint32_t units = sequences->units, length = sequences->length, rows = units * length;
    if (self->positions < rows) {
        free(self->position);
        self->position = tt_array0(rows, sizeof *self->position);
        self->positions = rows;
        for (uint32_t i = 0; i < rows; i++)
            self->position[i] = i % length * units + i / length;
    }
    return self->position;
}

static tt_status_t s_put_units(compute_t *self, const compute_units_t *units, int frame, size_t rows)
{
    tt_table_t *table = self->unit[frame];
    return units->stored[frame].store ? tt_table_put_stored(table, self->model->stream, &units->stored[frame])
                                      : tt_table_put(table, self->model->stream, units->rows[frame], rows);
}

/*  Of sequences of a replay: what the network remembers where they begin, and what is known of it, is found first. */
static tt_status_t s_from_sequences(
    compute_t *self, const tt_minibatch_t *minibatch, const compute_units_t *units, tt_pass_t *pass)
{
    const sequences_t *of = units->sequences;
    tt_stream_t *stream = self->model->stream;
    TT_CHECK(self->carries && self->carries == of->carries && minibatch->length == of->length &&
             minibatch->rows == of->length * of->units);
    if (!self->walk)
        self->walk = walk_new(self->model);
    TT_TRY(s_put_units(self, units, TT_AT, (size_t)sequences_rows(of) + of->finals));
    TT_TRY(walk_run(self->walk, of, self->unit[TT_AT], minibatch->objective, self->progress));
    TT_TRY(tt_table_put(self->carry, stream, walk_carry(self->walk), of->units));
    TT_TRY(tt_table_put(self->begins, stream, of->begins, minibatch->rows));
    TT_TRY(s_put_heads(self, minibatch, pass));
    pass->row = s_sequence_rows(self, of);
    pass->obs[TT_AT] = self->unit[TT_AT];
    pass->carry = self->carry;
    pass->begins = self->begins;
    return s_put_inputs(self, minibatch, minibatch->rows);
}

static tt_status_t s_from_replay(
    compute_t *self, const tt_minibatch_t *minibatch, const compute_units_t *units, tt_pass_t *pass)
{
    if (units->sequences)
        return s_from_sequences(self, minibatch, units, pass);
    pass->row = s_positions(self, minibatch->rows);
    for (int f = 0; f < TT_FRAMES; f++) {
        pass->obs[f] = self->unit[f];
        TT_TRY(s_put_units(self, units, f, minibatch->rows));
    }
    return s_put_inputs(self, minibatch, minibatch->rows);
}

/*  One for each step and set: whoever computes a part of the step, now or again, has the same. */
tt_status_t compute_noise(compute_t *self, uint64_t step)
{
    const model_t *model = self->model;
    const tt_noise_t noise = {.seed = model->train.seed, .stream = TT_STREAM_NOISE_LEARN, .clock = step};
    const uint32_t sets = tt_net_spec(model->net)->sets;
    for (uint32_t set = 0; set == 0 || set < sets; set++)
        TT_TRY(tt_net_noise(model->net, model->stream, set, &noise));
    return TT_OK;
}

tt_status_t compute_gradients(
    compute_t *self, const tt_minibatch_t *minibatch, const compute_units_t *units, uint32_t lo, uint32_t hi)
{
    tt_pass_t pass = {.rows = 0, .progress = self->progress};
    if (minibatch) {
        pass.objective = minibatch->objective;
        pass.params = minibatch->params;
        pass.params_size = minibatch->params_size;
        pass.rows = minibatch->rows;
        pass.length = minibatch->length;
        TT_TRY(units ? s_from_replay(self, minibatch, units, &pass) : s_from_batch(self, minibatch, &pass));
        for (uint32_t i = 0; i < minibatch->inputs; i++)
            pass.input[i] = minibatch->input[i].bytes ? self->input[i] : NULL;
    }
    return tt_sums_compute(self->sums, self->model->stream, &pass, lo, hi);
}

tt_status_t compute_node(void *ctx, uint32_t node, const float **out)
{
    const compute_t *self = ctx;
    return tt_sums_node(self->sums, self->model->stream, node, out);
}

/* ---- a step --------------------------------------------------------------------------------------------------------- */

static tt_status_t s_step_groups(compute_t *self, const tt_minibatch_t *minibatch)
{
    const model_t *model = self->model;
    if (minibatch->train >> model->opts)
        return tt_err(TT_INVALID, "groups 0x%x are to be trained, and there are %u", minibatch->train, model->opts);
    for (uint32_t g = 0; g < model->opts; g++)
        if (minibatch->train >> g & 1)
            TT_TRY(tt_opt_step(model->opt[g], model->stream, self->sums, minibatch->lr[g]));
    return TT_OK;
}

tt_status_t compute_step(compute_t *self, const tt_minibatch_t *minibatch, const float *sum)
{
    const model_t *model = self->model;
    if (sum)
        TT_TRY(tt_sums_put(self->sums, model->stream, sum));
    TT_TRY(s_step_groups(self, minibatch));
    for (uint32_t b = 0; b < minibatch->blends; b++) {
        const tt_blend_t *blend = &minibatch->blend[b];
        TT_TRY(tt_net_blend(model->net, model->stream, blend->to, blend->from, blend->groups, blend->tau));
    }
    TT_TRY(results_queue(self->results, self->sums, minibatch));
    tt_stream_let_go(model->stream);
    return TT_OK;
}

results_t *compute_results(compute_t *self)
{
    return self->results;
}
