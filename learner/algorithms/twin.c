#include "learner/algorithms/twin.h"
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/base/rng.h"
#include "common/base/vmath.h"
#include "common/job/fit.h"
#include "common/nn/math/activation.h"

tt_objective_t twin_critic_objective(
    const tt_net_spec_t *net, const char *name, uint8_t actor_set, tt_loss_fn loss, tt_draw_fn draw)
{
    const uint8_t actor = (uint8_t)tt_net_tower(net, "actor"), q1 = (uint8_t)tt_net_tower(net, "q1"),
                  q2 = (uint8_t)tt_net_tower(net, "q2");
    return (tt_objective_t){
        .name = name,
        .stages = TWIN_CRITIC_STAGES,
        .stage = {[TWIN_NEXT] = {.tower = actor, .set = actor_set, .frame = TT_NEXT},
            [TWIN_Q1_NEXT] = {.tower = q1, .set = 1, .frame = TT_NEXT, .action = TT_ACTION_DRAWN},
            [TWIN_Q2_NEXT] = {.tower = q2, .set = 1, .frame = TT_NEXT, .action = TT_ACTION_DRAWN},
            [TWIN_Q1_AT] = {.tower = q1, .frame = TT_AT, .action = TT_ACTION_GIVEN, .grad = true},
            [TWIN_Q2_AT] = {.tower = q2, .frame = TT_AT, .action = TT_ACTION_GIVEN, .grad = true}},
        .loss = loss,
        .given = TWIN_IN_ACTION,
        .source = TWIN_NEXT,
        .draw = draw,
    };
}

/* ---- life ------------------------------------------------------------------------------------------------------------ */

void twin_init(twin_t *self, const tt_train_cfg_t *train, const tt_columns_t *columns, const off_policy_cfg_t *off,
    float critics_rate)
{
    const float rate = off->common.learning_rate;
    const uint32_t numbers = tt_train_net(train, columns).action;
    const size_t floats = tt_mul(off->batch_size, numbers);
    *self = (twin_t){.opt = common_opt_spec(&off->common),
        .rate = {[TWIN_ACTOR] = rate, [TWIN_CRITICS] = critics_rate > 0 ? critics_rate : rate},
        .columns = columns,
        .seed = train->seed,
        .units = off->batch_size,
        .numbers = numbers};
    self->action = tt_array0(floats, sizeof *self->action);
    self->noise = tt_array0(floats, sizeof *self->noise);
    self->stored = tt_array0(floats, sizeof *self->stored);
}

void twin_destroy(tt_algo_t **self_p)
{
    twin_t *self = (twin_t *)*self_p;
    if (!self)
        return;
    free(self->action);
    free(self->noise);
    free(self->stored);
    free(self);
    *self_p = NULL;
}

const tt_opt_spec_t *twin_opt(const tt_algo_t *self, uint32_t group)
{
    (void)group;
    return &((const twin_t *)self)->opt;
}

/* ---- a step ---------------------------------------------------------------------------------------------------------- */

/*  Columns of the units' actions side by side, as the critics know them: what is stored is not yet squashed. */
static void s_gather_actions(twin_t *self, const tt_at_t *at)
{
    const replay_sample_t *sample = at->sample;
    for (uint32_t c = 0, first = 0; c < self->columns->action_count; c++) {
        const tt_column_t *column = &self->columns->at[self->columns->action + c];
        replay_gather(at->replay, sample->unit, sample->units, REPLAY_AT, self->columns->action + c, self->stored);
        for (uint32_t u = 0; u < sample->units; u++)
            for (uint32_t e = 0; e < column->elements; e++)
                self->action[(size_t)u * self->numbers + first + e] =
                    tt_tanhf(self->stored[(size_t)u * column->elements + e]);
        first += column->elements;
    }
}

/*  Standard normals of step `total`, by position alone: every learner has the same. */
static void s_draw_noise(twin_t *self, uint64_t total)
{
    for (uint32_t u = 0; u < self->units; u++)
        for (uint32_t a = 0; a < self->numbers; a += 4) {
            uint32_t word[4];
            float z[4];
            tt_draw(word, self->seed, TT_STREAM_DRAW, u, total << 16 | a / 4);
            tt_normals(word, z);
            for (uint32_t k = a; k < a + 4 && k < self->numbers; k++)
                self->noise[(size_t)u * self->numbers + k] = z[k - a];
        }
}

twin_loss_t twin_describe(twin_t *self, const tt_at_t *at, uint32_t group, bool draws, tt_minibatch_t *out)
{
    const replay_sample_t *sample = at->sample;
    const size_t row = self->numbers * sizeof(float);
    const bool critics = group == TWIN_CRITICS;
    TT_CHECK(sample->units == self->units);
    if (draws)
        s_draw_noise(self, at->total);
    if (critics)
        s_gather_actions(self, at);
    *out = (tt_minibatch_t){.rows = sample->units,
        .objective = &self->objective[group],
        .inputs = TWIN_INPUTS,
        .input = {[TWIN_IN_ACTION] = {self->action, critics ? row : 0, false},
            [TWIN_IN_NOISE] = {self->noise, draws ? row : 0, false},
            [TWIN_IN_RETURN] = {sample->ret, sizeof *sample->ret, false},
            [TWIN_IN_DISCOUNT] = {sample->discount, sizeof *sample->discount, false},
            [TWIN_IN_WEIGHT] = {sample->weight, sizeof *sample->weight, false}},
        .train = 1u << group,
        .lr = {[TWIN_ACTOR] = self->rate[TWIN_ACTOR], [TWIN_CRITICS] = self->rate[TWIN_CRITICS]}};
    return (twin_loss_t){self->numbers, 1 / (float)sample->units};
}

bool twin_after(tt_algo_t *algo, uint32_t step, const tt_result_t *result)
{
    twin_t *self = (twin_t *)algo;
    const uint32_t group = result->trained >> TWIN_CRITICS & 1 ? TWIN_CRITICS : TWIN_ACTOR;
    if (step == 0)
        memset(self->seen, 0, sizeof self->seen);
    for (int i = 0; i < TT_LOSS_STATS; i++)
        self->sums[group][i] = (self->seen[group] ? self->sums[group][i] : 0) + (double)result->stats[i];
    self->seen[group]++;
    return false;
}

void twin_metrics(const twin_t *self, const twin_metric_t *metric, size_t count, tt_metric_fn emit, void *ctx)
{
    emit(ctx, "charts/learning_rate", (double)self->rate[TWIN_ACTOR]);
    for (size_t i = 0; i < count; i++)
        if (self->seen[metric[i].group])
            emit(ctx, metric[i].name, self->sums[metric[i].group][metric[i].stat] / self->seen[metric[i].group]);
}
