#include "learner/results.h"
#include <stdlib.h>
#include "common/base/mem.h"
#include "common/base/text.h"

enum { RESULTS_MAX = 64, MOMENT_NS = 20000000 };

typedef struct {
    uint32_t trained;
    float rate;
    bool ends;
    tt_norms_t norms;
    float *stats; /* [TT_LOSS_STATS + ride] */
} slot_t;

struct results {
    const model_t *model;
    const tt_clock_t *clock;
    slot_t slot[RESULTS_MAX];
    uint32_t count, depth; /* queued; how many may be */
    int64_t begun_ns;      /* when the first of them was */
    tt_status_t failed;
    char text[1024]; /* its words */
};

results_t *results_new(const model_t *model, const tt_clock_t *clock)
{
    results_t *self = tt_new0(sizeof *self);
    self->model = model;
    self->clock = clock;
    self->depth = 1;
    for (uint32_t i = 0; i < RESULTS_MAX; i++)
        self->slot[i].stats = tt_array0(TT_LOSS_STATS + tt_net_spec(model->net)->ride, sizeof(float));
    return self;
}

/*  They are still to be filled. */
static void s_wait(results_t *self)
{
    if (self->count)
        (void)tt_stream_sync(self->model->stream); /* what failed matters to nobody */
    self->count = 0;
}

void results_destroy(results_t **self_p)
{
    results_t *self = *self_p;
    if (!self)
        return;
    s_wait(self);
    for (uint32_t i = 0; i < RESULTS_MAX; i++)
        free(self->slot[i].stats);
    free(self);
    *self_p = NULL;
}

/*  Of the first group that is trained. */
static float s_rate(const tt_minibatch_t *minibatch)
{
    for (uint32_t g = 0; g < TT_TOWERS_MAX; g++)
        if (minibatch->train >> g & 1)
            return minibatch->lr[g];
    return 0;
}

tt_status_t results_queue(results_t *self, const tt_sums_t *sums, const tt_minibatch_t *minibatch)
{
    const model_t *model = self->model;
    TT_CHECK(self->count < RESULTS_MAX);
    slot_t *slot = &self->slot[self->count];
    if (!self->count)
        self->begun_ns = tt_now_ns(self->clock);
    slot->trained = minibatch->train;
    slot->rate = s_rate(minibatch);
    slot->ends = minibatch->ends;
    TT_TRY(tt_net_report(model->net, model->stream, sums, slot->stats, &slot->norms));
    self->count++;
    return TT_OK;
}

uint32_t results_count(const results_t *self)
{
    return self->count;
}

bool results_due(const results_t *self)
{
    return self->failed != TT_OK || self->count >= self->depth;
}

tt_status_t results_check(const results_t *self)
{
    return self->failed == TT_OK ? TT_OK : tt_err(self->failed, "%s", self->text);
}

static tt_status_t s_hand_over(const results_t *self, slot_t *slot, result_fn on_result, void *ctx)
{
    const tt_status_t taken = tt_norms_check(&slot->norms);
    for (uint32_t g = 0; g < self->model->opts; g++)
        if (!(slot->trained >> g & 1))
            slot->norms.newest[g] = 0;
    const results_step_t step = {.taken = taken,
        .rate = slot->rate,
        .ends = slot->ends,
        .result = {slot->trained, slot->stats, slot->stats + TT_LOSS_STATS, slot->norms.newest}};
    return on_result(ctx, &step);
}

/*  A queue as deep as a moment is long: twice as deep next time where this one was full and soon done, half as deep where it lasted. */
static void s_adapt(results_t *self)
{
    const int64_t lasted_ns = tt_now_ns(self->clock) - self->begun_ns;
    if (lasted_ns > MOMENT_NS && self->depth > 1)
        self->depth /= 2;
    else if (2 * lasted_ns <= MOMENT_NS && self->count >= self->depth && self->depth < RESULTS_MAX)
        self->depth *= 2;
}

tt_status_t results_settle(results_t *self, result_fn on_result, void *ctx)
{
    if (!self->count || self->failed != TT_OK)
        return results_check(self);
    tt_status_t status = tt_stream_sync(self->model->stream);
    s_adapt(self);
    for (uint32_t i = 0; i < self->count && status == TT_OK; i++)
        status = s_hand_over(self, &self->slot[i], on_result, ctx);
    self->count = 0;
    self->failed = status;
    if (status != TT_OK)
        tt_text_copy(self->text, sizeof self->text, tt_err_text());
    return status;
}

void results_drop(results_t *self)
{
    s_wait(self);
    self->failed = TT_OK;
}
