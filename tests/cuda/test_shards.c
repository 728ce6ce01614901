/*  More shards than an argument of a kernel holds, and rows for the last ones alone: a loss begins where there is one, and nothing is launched
 *  for those before. */
#include "common/nn/loss.h"
#include "learner/algorithms/dqn_loss.h"
#include "tests/cuda/card.h"

void tt_cuda_loss_dqn(cudaStream_t stream, const cuda_loss_t *job);

enum { SHARDS = 256, CHOICES = 3, STAGES = 2, HEAD = CHOICES * TT_BLOCK, INPUTS = 4 };

typedef struct {
    dqn_loss_t params;
    float head[STAGES][HEAD], d_head[HEAD], stats[TT_LOSS_STATS], input[INPUTS][1];
} row_t;

/*  The only row's numbers; action 0 is a choice as an integer, too. */
static row_t s_row(uint32_t seed)
{
    row_t self = {.params = {.choices = CHOICES, .scale = 1.0f}};
    for (uint32_t s = 0; s < STAGES; s++)
        for (uint32_t a = 0; a < CHOICES; a++)
            self.head[s][a * TT_BLOCK] = (float)ops_pick(seed, 10 * s + a, 1, 1000) / 100.0f;
    for (uint32_t i = 1; i < INPUTS; i++)
        self.input[i][0] = (float)ops_pick(seed, 50 + i, 1, 100) / 100.0f;
    return self;
}

static void s_expect(row_t *self)
{
    static const uint32_t row[] = {0};
    const void *input[TT_INPUTS_MAX] = {self->input[0], self->input[1], self->input[2], self->input[3]};
    const tt_loss_block_t block = {
        .rows = 1, .row = row, .head = {self->head[0], self->head[1]}, .d_head = {self->d_head}, .stats = self->stats};
    dqn_loss(&self->params, input, &block);
}

static void s_one_row(uint32_t seed)
{
    row_t row = s_row(seed);
    float *grad[SHARDS];
    for (uint32_t s = 0; s < SHARDS; s++)
        grad[s] = card_room(1);
    cuda_loss_t job = {.run = {.shards = SHARDS, .rows = 1, .lo = 0, .hi = SHARDS, .grad = grad},
        .blocks = {.blocks = 1,
            .first = card_put_u32((const uint32_t[]){0}, 1),
            .rows = card_put_u32((const uint32_t[]){1}, 1),
            .shard = card_put_u32((const uint32_t[]){SHARDS - 1}, 1)},
        .row = card_put_u32((const uint32_t[]){0}, 1),
        .params = card_put_bytes((const uint8_t *)&row.params, sizeof row.params),
        .stages = STAGES,
        .outs = {CHOICES, CHOICES},
        .head = {card_put(row.head[0], HEAD), card_put(row.head[1], HEAD)},
        .d_head = {card_room(HEAD)},
        .stats = card_room(TT_LOSS_STATS)};
    for (uint32_t i = 0; i < INPUTS; i++)
        job.input[i] = card_put(row.input[i], 1);
    s_expect(&row);
    tt_cuda_loss_dqn(card_stream(), &job);
    assert_int_equal(cudaGetLastError(), cudaSuccess);
    card_assert(row.d_head, job.d_head[0], HEAD, "a head's derivatives");
    card_assert(row.stats, job.stats, TT_LOSS_STATS, "statistics");
}

static void the_last_shard_has_the_only_row(void **state)
{
    (void)state;
    card_each(s_one_row, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_last_shard_has_the_only_row)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
