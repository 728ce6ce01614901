#include "tests/learner/dqn_stage.h"
#include <string.h>
#include "common/base/rng.h"
#include "tests/test.h"

/*  From -0.5 to 0.5. */
static double s_random(uint32_t who, uint64_t k)
{
    uint32_t word[4];
    tt_draw(word, 7, TT_STREAM_TEST, who, k);
    return (double)tt_unit_f32(word[0]) - 0.5;
}

uint32_t dqn_stage_each(const dqn_stage_t *self)
{
    return self->how.atoms ? self->how.atoms : self->how.quantiles ? self->how.quantiles : 1;
}

static void s_fill_units(dqn_stage_t *self)
{
    const uint32_t choices = self->choices;
    for (uint32_t i = 0; i < DQN_UNITS; i++) {
        self->action[i] = (int32_t)(i * 7 % choices);
        self->ret[i] = (float)(4 * s_random(1, i));
        self->discount[i] = i % 4 ? 0.97f : 0;
        self->weight[i] = (float)(1 + s_random(2, i));
        for (uint32_t a = 0; a < choices; a++)
            self->mask[i * choices + a] = a == i % choices || s_random(10 + a, i) > 0;
        self->ride[i] = -1;
    }
}

void dqn_stage_fill(dqn_stage_t *self)
{
    const uint32_t outs = self->choices * dqn_stage_each(self);
    assert_true(self->choices <= DQN_CHOICES && outs <= DQN_NUMBERS);
    s_fill_units(self);
    for (uint32_t r = 0; r < self->rows; r++) {
        self->position[r] = (r * 11 + 3) % DQN_UNITS;
        for (uint32_t head = 0; head < DQN_HEADS; head++)
            for (uint32_t o = 0; o < outs; o++)
                self->head[head][o * TT_BLOCK + r] = (float)(4 * s_random(100 + DQN_NUMBERS * head + o, r));
    }
    memset(self->d_head, 0x7f, sizeof self->d_head);
}

void dqn_stage_run(dqn_stage_t *self, bool ride)
{
    tt_net_spec_t net = tt_net_values(1, NULL, 0, TT_NN_TANH, self->choices, &self->how);
    net.sets = 2;
    const tt_objective_t objective = dqn_objective(&net, self->twice);
    const dqn_loss_t params = {.choices = self->choices,
        .quantiles = self->how.quantiles,
        .atoms = self->how.atoms,
        .low = self->how.low,
        .high = self->how.high,
        .scale = 1.0f / DQN_UNITS,
        .rescale = self->rescale,
        .squared = self->squared};
    const void *input[TT_INPUTS_MAX] = {[DQN_IN_ACTION] = self->action,
        [DQN_IN_RETURN] = self->ret,
        [DQN_IN_DISCOUNT] = self->discount,
        [DQN_IN_WEIGHT] = self->weight,
        [DQN_IN_MASK] = self->masked ? self->mask : NULL};
    const tt_loss_block_t block = {.rows = self->rows,
        .row = self->position,
        .head = {self->head[DQN_Q_AT], self->head[DQN_TARGET_NEXT], self->twice ? self->head[DQN_Q_NEXT] : NULL},
        .d_head = {self->d_head},
        .stats = self->stats,
        .ride = ride ? self->ride : NULL};
    assert_ok(tt_objective_check(&objective, &net));
    objective.loss(&params, input, &block);
}

double dqn_stage_number(const dqn_stage_t *self, const float *head, uint32_t a, uint32_t i, uint32_t r)
{
    return (double)head[(a * dqn_stage_each(self) + i) * TT_BLOCK + r];
}

uint32_t dqn_stage_best(const dqn_stage_t *self, uint32_t r,
    double (*value)(const dqn_stage_t *self, const float *head, uint32_t a, uint32_t r))
{
    const float *chooser = self->head[self->twice ? DQN_Q_NEXT : DQN_TARGET_NEXT];
    const uint8_t *allowed = self->mask + self->position[r] * self->choices;
    uint32_t best = self->choices;
    for (uint32_t a = 0; a < self->choices; a++)
        if ((!self->masked || allowed[a]) &&
            (best == self->choices || value(self, chooser, a, r) > value(self, chooser, best, r)))
            best = a;
    return best;
}

uint32_t dqn_stage_action(const dqn_stage_t *self, uint32_t r)
{
    return (uint32_t)self->action[self->position[r]];
}

double dqn_stage_weight(const dqn_stage_t *self, uint32_t r)
{
    return (double)self->weight[self->position[r]] / DQN_UNITS;
}
