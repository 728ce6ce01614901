/*  Lanes at the same time: threads with a lane each get the bits of one thread, and the sanitizer sees no race. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "tests/nn/fixture.h"

enum { LANES = 3, ROWS = 64, ROUNDS = 20 };

typedef struct {
    tt_net_t *net;
    const rows_t *rows;
    uint32_t lane;
    float *grad, *views, *out;
    pthread_barrier_t *together;
} worker_t;

/*  Adds up what each stage gave. */
static void view_loss(const void *ctx, const tt_loss_block_t *block)
{
    const tt_objective_t *objective = ctx;
    for (uint32_t s = 0; s < objective->stages; s++)
        for (uint32_t r = 0; r < block->rows; r++)
            block->stats[s % TT_LOSS_STATS] += block->head[s][r];
}

/*  Heads of all sets, from both frames. */
static void look(worker_t *w, size_t first)
{
    const tt_net_spec_t *spec = tt_net_spec(w->net);
    const uint32_t sets = spec->sets ? spec->sets : 1;
    tt_objective_t objective = {.name = "views", .loss = view_loss};
    for (uint32_t i = 0; i < TT_FRAMES * sets * spec->towers && objective.stages < TT_STAGES_MAX; i++) {
        const uint32_t t = spec->towers - 1 - i / (TT_FRAMES * sets), view = i % (TT_FRAMES * sets);
        if (spec->tower[t].out)
            objective.stage[objective.stages++] =
                (tt_stage_t){.tower = (uint8_t)t, .set = (uint8_t)(view / TT_FRAMES), .frame = view % TT_FRAMES};
    }
    const tt_pass_t pass = {.objective = &objective,
        .ctx = &objective,
        .obs = {w->rows->obs + first, w->rows->obs},
        .row = w->rows->row + first,
        .rows = ROWS};
    assert_ok(tt_net_shard_grad(w->net, w->lane, &pass, w->views));
}

static void work(worker_t *w)
{
    const size_t first = w->lane * ROWS;
    fixture_grad(w->net, w->lane, w->rows, first, ROWS, w->grad);
    look(w, first);
    fixture_forward(w->net, w->lane, 0, w->rows->obs + first, ROWS, w->out);
}

static void *thread(void *arg)
{
    worker_t *w = arg;
    for (int i = 0; i < ROUNDS; i++) {
        pthread_barrier_wait(w->together);
        work(w);
    }
    return NULL;
}

static worker_t new_worker(tt_net_t *net, const rows_t *rows, uint32_t lane, pthread_barrier_t *together)
{
    const tt_net_spec_t *spec = tt_net_spec(net);
    worker_t w = {.net = net, .rows = rows, .lane = lane, .together = together};
    w.grad = tt_array0(tt_net_grad_count(spec), sizeof *w.grad);
    w.views = tt_array0(tt_net_grad_count(spec), sizeof *w.views);
    w.out = tt_array0(ROWS * fixture_outs(spec), sizeof *w.out);
    return w;
}

static void free_worker(worker_t *w)
{
    free(w->grad);
    free(w->views);
    free(w->out);
}

static void check_spec(tt_device_t *device, const tt_net_spec_t *spec)
{
    tt_net_t *net = fixture_net(device, spec, LANES);
    rows_t rows = fixture_rows(spec, LANES * ROWS);
    pthread_barrier_t together;
    worker_t workers[LANES];
    pthread_t threads[LANES];
    assert_int_equal(pthread_barrier_init(&together, NULL, LANES), 0);
    for (uint32_t i = 0; i < LANES; i++) {
        workers[i] = new_worker(net, &rows, i, &together);
        assert_int_equal(pthread_create(&threads[i], NULL, thread, &workers[i]), 0);
    }
    for (uint32_t i = 0; i < LANES; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (uint32_t i = 0; i < LANES; i++) {
        worker_t alone = new_worker(net, &rows, i, NULL);
        work(&alone);
        assert_memory_equal(alone.grad, workers[i].grad, tt_net_grad_count(spec) * sizeof(float));
        assert_memory_equal(alone.views, workers[i].views, tt_net_grad_count(spec) * sizeof(float));
        assert_memory_equal(alone.out, workers[i].out, ROWS * fixture_outs(spec) * sizeof(float));
        free_worker(&alone);
        free_worker(&workers[i]);
    }
    pthread_barrier_destroy(&together);
    fixture_rows_free(&rows);
    tt_net_destroy(&net);
}

static void test_lanes(void **state)
{
    (void)state;
    tt_device_t *device = NULL;
    assert_ok(tt_device_open(&device, "cpu", 0));
    for (size_t s = 0; s < fixture_spec_count; s++)
        check_spec(device, &fixture_specs[s]);
    tt_device_close(&device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lanes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
