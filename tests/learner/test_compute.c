/*  A batch is evaluated in pieces: the same numbers as all at once, and somebody hears of each piece. */
#include "learner/compute.h"
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "tests/test.h"

enum { T = 1500, N = 4, ROWS = T * N, OBS = 4, HEADS = 3 };

typedef struct {
    float obs[ROWS][OBS];
    const void *row[ROWS];
    float *out[2]; /* [ROWS][HEADS] and [ROWS]       */
    uint32_t told; /* how often; and what was there: */
    size_t filled[ROWS];
} world_t;

/*  Rows whose heads are there. */
static size_t s_filled(const world_t *world)
{
    size_t rows = 0;
    while (rows < ROWS && world->out[0][rows * HEADS] != 0)
        rows++;
    return rows;
}

static void s_on_progress(void *ctx)
{
    world_t *world = ctx;
    world->filled[world->told++] = s_filled(world);
}

static void s_open(model_t *model, const tt_net_spec_t *spec)
{
    *model = (model_t){.train.learner.shards = 2};
    assert_ok(tt_device_open(&model->device, NULL, 0, 2));
    assert_ok(tt_stream_new(&model->stream, model->device));
    assert_ok(tt_net_new(&model->net, model->device, spec));
    assert_ok(tt_net_init(model->net, model->stream, 3, (const float[]){1, 1}, 0, TT_NO_PROGRESS));
}

static void s_close(model_t *model)
{
    tt_net_destroy(&model->net);
    tt_stream_destroy(&model->stream);
    tt_device_close(&model->device);
}

static void s_fill(world_t *world)
{
    for (uint32_t i = 0; i < ROWS; i++) {
        for (uint32_t k = 0; k < OBS; k++)
            world->obs[i][k] = (float)((i * 7 + k * 131) % 997) / 500.0f - 1.0f;
        world->row[i] = world->obs[i];
    }
    world->out[0] = tt_array0(ROWS * HEADS, sizeof(float));
    world->out[1] = tt_array0(ROWS, sizeof(float));
}

/*  All rows in one call. */
static void s_at_once(const model_t *model, const world_t *world, float *const out[2])
{
    tt_table_t *table = NULL;
    assert_ok(tt_table_new(&table, model->device, sizeof world->obs[0]));
    assert_ok(tt_table_put_rows(table, model->stream, world->row, ROWS));
    assert_ok(tt_net_forward(model->net, model->stream, 0, table, ROWS, NULL, out));
    assert_ok(tt_stream_sync(model->stream));
    tt_table_destroy(&table);
}

static void test_a_batch_in_pieces(void **state)
{
    (void)state;
    world_t *world = tt_new0(sizeof *world);
    model_t model;
    compute_t *compute = NULL;
    const tt_net_spec_t spec = tt_net_actor_critic(OBS, (const uint32_t[]){16}, 1, TT_NN_TANH, HEADS, 0);
    s_open(&model, &spec);
    s_fill(world);
    const tt_batch_t batch = {.T = T, .N = N, .obs = world->row, .last = world->row, .final_obs = NULL};
    assert_ok(compute_new(&compute, &model));
    assert_ok(compute_batch(compute, &batch));
    const tt_evaluator_t net = compute_evaluator(compute, (tt_progress_t){s_on_progress, world});
    assert_ok(net.forward(net.ctx, TT_ROWS_OBS, world->out));
    assert_true(world->told >= 3);
    for (uint32_t k = 0; k < world->told; k++)
        assert_true(world->filled[k] >= 1024 && (k == 0 || world->filled[k] > world->filled[k - 1]));
    assert_true(world->filled[0] < ROWS);
    assert_int_equal(world->filled[world->told - 1], ROWS);

    float *whole[2] = {tt_array0(ROWS * HEADS, sizeof(float)), tt_array0(ROWS, sizeof(float))};
    s_at_once(&model, world, whole);
    assert_memory_equal(world->out[0], whole[0], ROWS * HEADS * sizeof(float));
    assert_memory_equal(world->out[1], whole[1], ROWS * sizeof(float));

    float *const one[2] = {NULL, world->out[1]}; /* and one head alone, of few rows */
    memset(world->out[1], 0, N * sizeof(float));
    assert_ok(net.forward(net.ctx, TT_ROWS_LAST, one));
    assert_memory_equal(world->out[1], whole[1], N * sizeof(float));
    for (int i = 0; i < 2; i++) {
        free(whole[i]);
        free(world->out[i]);
    }
    compute_destroy(&compute);
    s_close(&model);
    free(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_batch_in_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
