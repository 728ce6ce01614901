/*  The strict backend: nothing before a sync, nobody else in its memory, late errors once, everything in its order. */
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/base/mem.h"
#include "common/nn/backend.h"
#include "tests/nn/fixture.h"

enum { ROWS = 40, D = 4, SHARDS = 4, OUT = 2 };

static const tt_opt_spec_t s_sgd = {.kind = TT_OPT_SGD, .momentum = 0.9f};

/*  A pair of networks with all that there is on a device. */
typedef struct {
    place_t place;
    tt_net_t *net;
    tt_table_t *obs;
    tt_sums_t *sums;
    tt_opt_t *opt;
    tt_objective_t objective;
    const tt_net_spec_t *spec;
    rows_t rows;
    float head[ROWS * OUT], value[ROWS];
} world_t;

static void open_world(world_t *w, const char *backend)
{
    *w = (world_t){.spec = &fixture_specs[0]};
    fixture_open_on(&w->place, backend, 1);
    w->net = fixture_net(&w->place, w->spec);
    w->objective = fixture_objective(w->spec);
    w->rows = fixture_rows(w->spec, ROWS);
    assert_ok(tt_table_new(&w->obs, w->place.device, D * sizeof(float)));
    assert_ok(tt_sums_new(&w->sums, w->net, SHARDS));
    assert_ok(tt_opt_new(&w->opt, w->net, 0, &s_sgd));
}

static void close_world(world_t *w)
{
    tt_opt_destroy(&w->opt);
    tt_sums_destroy(&w->sums);
    tt_table_destroy(&w->obs);
    tt_net_destroy(&w->net);
    fixture_close(&w->place);
    fixture_rows_free(&w->rows);
}

static void put(world_t *w, const float *rows)
{
    assert_ok(tt_table_put(w->obs, w->place.stream, rows, ROWS));
}

static void forward(world_t *w, float *head, float *value)
{
    assert_ok(tt_net_forward(w->net, w->place.stream, 0, w->obs, ROWS, NULL, (float *const[]){head, value}));
}

static void compute(world_t *w)
{
    const tt_pass_t pass = {.objective = &w->objective,
        .params = &w->spec,
        .params_size = sizeof w->spec,
        .obs = {w->obs},
        .row = w->rows.row,
        .rows = ROWS};
    assert_ok(tt_sums_compute(w->sums, w->place.stream, &pass, 0, SHARDS));
}

static void await(world_t *w)
{
    assert_ok(tt_stream_sync(w->place.stream));
}

static bool all_nan(const float *x, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!isnan(x[i]))
            return false;
    return true;
}

static bool no_nan(const float *x, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (isnan(x[i]))
            return false;
    return true;
}

static void test_nothing_before_a_sync(void **state)
{
    (void)state;
    world_t w;
    open_world(&w, "cpu-strict");
    put(&w, w.rows.data);
    forward(&w, w.head, w.value);
    assert_true(all_nan(w.head, ROWS * OUT) && all_nan(w.value, ROWS));
    await(&w);
    assert_true(no_nan(w.head, ROWS * OUT) && no_nan(w.value, ROWS));
    compute(&w);
    const float *node = NULL;
    assert_ok(tt_sums_node(w.sums, w.place.stream, 1, &node));
    assert_true(no_nan(node, tt_net_grad_count(w.spec)));
    compute(&w); /* what was borrowed is no longer */
    assert_true(all_nan(node, tt_net_grad_count(w.spec)));
    await(&w);
    close_world(&w);
}

/*  A child that touches `at` dies of it. */
static void check_fault(const void *at, bool write)
{
    int ended = 0;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL); /* neither cmocka's nor a sanitizer's */
        signal(SIGBUS, SIG_DFL);
        volatile char *touched = (char *)(uintptr_t)at;
        if (write)
            *touched = 1;
        _exit(*touched == 77 ? 1 : 0);
    }
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_true(WIFSIGNALED(ended) && WTERMSIG(ended) == SIGSEGV);
}

static void test_memory_of_the_device_faults(void **state)
{
    (void)state;
    world_t w;
    const float sum[1 << 14] = {0};
    open_world(&w, "cpu-strict");
    assert_true(tt_net_grad_count(w.spec) <= TT_COUNT(sum));
    check_fault(w.net->params[0], false); /* before anything ran */
    put(&w, w.rows.data);
    compute(&w);
    assert_ok(tt_opt_step(w.opt, w.place.stream, w.sums, 0.1f));
    assert_ok(tt_sums_put(w.sums, w.place.stream, sum));
    await(&w);
    const void *const held[] = {w.net->params[0], w.net->params[0] + tt_net_param_count(w.spec) - 1, w.net->norms,
        w.opt->state, w.sums->leaf[0], w.sums->leaf[SHARDS - 1], w.sums->given, w.obs->copy};
    for (size_t i = 0; i < TT_COUNT(held); i++) {
        check_fault(held[i], false);
        check_fault(held[i], true);
    }
    close_world(&w);
}

/*  Said by the sync, once, with the words; what stood behind it is not done, what stood before it is. */
static void test_late_errors(void **state)
{
    (void)state;
    world_t w;
    float before[ROWS];
    open_world(&w, "cpu-strict");
    put(&w, w.rows.data);
    forward(&w, NULL, before);
    w.rows.row[7] = ROWS;
    compute(&w);
    forward(&w, NULL, w.value);
    assert_int_equal(tt_stream_sync(w.place.stream), TT_INVALID);
    assert_string_equal(tt_err_text(), "objective fixture: row 40 of tables that have 40");
    assert_true(no_nan(before, ROWS) && all_nan(w.value, ROWS));
    await(&w);
    assert_true(all_nan(w.value, ROWS));
    w.rows.row[7] = 0;
    compute(&w);
    forward(&w, NULL, w.value);
    await(&w);
    assert_memory_equal(before, w.value, sizeof before);
    close_world(&w);
}

/*  A call that waits says what was queued before it. A destroy waits too, and leaves the error to the sync. */
static void test_late_errors_of_who_waits(void **state)
{
    (void)state;
    world_t w;
    open_world(&w, "cpu-strict");
    float *params = fixture_params(&w.place, w.net, 0);
    put(&w, w.rows.data);
    w.rows.row[0] = ROWS;
    compute(&w);
    assert_int_equal(tt_net_get(w.net, w.place.stream, 0, params), TT_INVALID);
    assert_ok(tt_net_get(w.net, w.place.stream, 0, params));
    compute(&w);
    tt_table_destroy(&w.obs);
    assert_int_equal(tt_stream_sync(w.place.stream), TT_INVALID);
    await(&w);
    free(params);
    close_world(&w);
}

/*  Puts, forwards, steps and blends in turns: the bits of the backend that does each at once. */
static void run_in_turns(const char *backend, float *out)
{
    world_t w;
    open_world(&w, backend);
    float *other = tt_array0(ROWS * D, sizeof *other);
    for (size_t i = 0; i < ROWS * D; i++)
        other[i] = -0.5f * w.rows.data[i];
    for (int round = 0; round < 3; round++) {
        put(&w, round % 2 ? other : w.rows.data);
        forward(&w, NULL, out);
        compute(&w);
        assert_ok(tt_opt_step(w.opt, w.place.stream, w.sums, 0.1f));
        forward(&w, NULL, out + ROWS);
        assert_ok(tt_table_put_rows(w.obs, w.place.stream, (const void *const *)w.rows.obs, ROWS));
        forward(&w, NULL, out + 2 * ROWS);
        out += 3 * ROWS;
    }
    assert_int_equal(tt_opt_steps(w.opt), 3);
    await(&w);
    free(other);
    close_world(&w);
}

static void test_order(void **state)
{
    (void)state;
    float at_once[9 * ROWS], later[9 * ROWS];
    run_in_turns("cpu", at_once);
    run_in_turns("cpu-strict", later);
    assert_memory_equal(at_once, later, sizeof later);
    for (size_t i = 1; i < 9; i++)
        assert_true(memcmp(later, later + i * ROWS, ROWS * sizeof *later) != 0);
}

/*  The host's rows are read when the put's turn comes, and never again; a list of rows too. */
static void test_when_rows_are_read(void **state)
{
    (void)state;
    world_t w;
    float value[ROWS];
    open_world(&w, "cpu-strict");
    put(&w, w.rows.data);
    forward(&w, NULL, value);
    await(&w);
    for (int list = 0; list < 2; list++) {
        memset(w.rows.data, 0, ROWS * D * sizeof *w.rows.data);
        forward(&w, NULL, w.value);
        await(&w);
        assert_memory_equal(value, w.value, sizeof value);
        if (list)
            break;
        rows_t again = fixture_rows(w.spec, ROWS);
        assert_ok(tt_table_put_rows(w.obs, w.place.stream, (const void *const *)w.rows.by_number, ROWS));
        memcpy(w.rows.data, again.data, ROWS * D * sizeof *again.data);
        await(&w);
        memset(w.rows.by_number, 0, ROWS * sizeof *w.rows.by_number);
        fixture_rows_free(&again);
    }
    close_world(&w);
}

/*  The call takes the loss's parameters with it, and the pass; row numbers are read later. */
static void test_what_a_pass_borrows(void **state)
{
    (void)state;
    world_t w;
    const size_t bytes = tt_net_grad_count(&fixture_specs[0]) * sizeof(float);
    float *want = tt_aligned0(bytes);
    const float *node = NULL;
    open_world(&w, "cpu-strict");
    put(&w, w.rows.data);
    compute(&w);
    assert_ok(tt_sums_node(w.sums, w.place.stream, 1, &node));
    memcpy(want, node, bytes);
    const tt_net_spec_t *param = w.spec;
    tt_pass_t pass = {.objective = &w.objective,
        .params = &param,
        .params_size = sizeof param,
        .obs = {w.obs},
        .row = w.rows.row,
        .rows = ROWS};
    uint32_t kept = w.rows.row[3];
    w.rows.row[3] = 1u << 30;
    assert_ok(tt_sums_compute(w.sums, w.place.stream, &pass, 0, SHARDS));
    memset(&pass, 0xff, sizeof pass);
    param = NULL;
    w.rows.row[3] = kept;
    assert_ok(tt_sums_node(w.sums, w.place.stream, 1, &node));
    assert_memory_equal(node, want, bytes);
    free(want);
    close_world(&w);
}

/*  Each stream has a queue of its own; a destroy waits for all of them. */
static void test_streams(void **state)
{
    (void)state;
    world_t w;
    tt_stream_t *second = NULL;
    open_world(&w, "cpu-strict");
    assert_ok(tt_stream_new(&second, w.place.device));
    put(&w, w.rows.data);
    await(&w);
    forward(&w, w.head, w.value);
    assert_ok(tt_stream_sync(second));
    assert_true(all_nan(w.value, ROWS));
    tt_stream_destroy(&second);
    assert_true(all_nan(w.value, ROWS));
    tt_table_destroy(&w.obs);
    assert_true(no_nan(w.value, ROWS));
    float again[ROWS];
    assert_ok(tt_table_new(&w.obs, w.place.device, D * sizeof(float)));
    put(&w, w.rows.data);
    forward(&w, NULL, again);
    tt_stream_destroy(&w.place.stream);
    assert_memory_equal(again, w.value, sizeof again);
    assert_ok(tt_stream_new(&w.place.stream, w.place.device));
    close_world(&w);
}

/*  Tables that grow while work that reads the smaller one is queued; memory comes and goes with its handles. */
static void test_growing_tables(void **state)
{
    (void)state;
    world_t w;
    open_world(&w, "cpu-strict");
    for (size_t rows = 1; rows <= ROWS; rows += 3) {
        assert_ok(tt_table_put(w.obs, w.place.stream, w.rows.data, rows));
        w.value[rows - 1] = 0;
        assert_ok(tt_net_forward(w.net, w.place.stream, 0, w.obs, rows, NULL, (float *const[]){NULL, w.value}));
    }
    await(&w);
    for (int i = 0; i < 50; i++) {
        tt_net_t *net = fixture_net(&w.place, &fixture_specs[14]);
        float *params = fixture_params(&w.place, net, 2);
        assert_true(no_nan(params, tt_net_param_count(&fixture_specs[14])));
        free(params);
        tt_net_destroy(&net);
    }
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_before_a_sync),
        cmocka_unit_test(test_memory_of_the_device_faults),
        cmocka_unit_test(test_late_errors),
        cmocka_unit_test(test_late_errors_of_who_waits),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_when_rows_are_read),
        cmocka_unit_test(test_what_a_pass_borrows),
        cmocka_unit_test(test_streams),
        cmocka_unit_test(test_growing_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
