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
    float *grad, *head, *value;
    pthread_barrier_t *together;
} worker_t;

static void work(worker_t *w)
{
    const size_t first = w->lane * ROWS;
    const tt_net_spec_t *spec = tt_net_spec(w->net);
    assert_ok(tt_net_shard_grad(
        w->net, w->lane, w->rows->obs + first, w->rows->row + first, ROWS, fixture_loss, spec, w->grad));
    assert_ok(tt_net_forward(w->net, w->lane, w->rows->obs + first, ROWS, w->head, w->value));
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
    w.head = tt_array0(ROWS * spec->out, sizeof *w.head);
    w.value = tt_array0(ROWS, sizeof *w.value);
    return w;
}

static void free_worker(worker_t *w)
{
    free(w->grad);
    free(w->head);
    free(w->value);
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
        assert_memory_equal(alone.head, workers[i].head, ROWS * spec->out * sizeof(float));
        assert_memory_equal(alone.value, workers[i].value, ROWS * sizeof(float));
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
