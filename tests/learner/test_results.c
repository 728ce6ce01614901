/*  results: in their order, late, each step's own; how many may be queued hangs on a clock that is turned by hand. */
#include "learner/results.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "tests/test.h"

enum { MS = 1000000, QUEUE_MAX = 64 };

static const tt_opt_spec_t s_sgd = {.kind = TT_OPT_SGD, .max_norm = 1};

typedef struct {
    model_t model;
    tt_clock_t clock;
    tt_sums_t *sums;
    float *sum; /* what the next step is made with */
    size_t at;  /* of stats in it */
    results_t *results;
} world_t;

static void s_open(world_t *w)
{
    tt_net_spec_t spec = tt_net_actor_critic(3, NULL, 0, TT_NN_TANH, 2, 0);
    *w = (world_t){.clock = tt_clock_fake(0)};
    spec.ride = 2;
    assert_ok(tt_device_open(&w->model.device, NULL, 0, 1));
    assert_ok(tt_stream_new(&w->model.stream, w->model.device));
    assert_ok(tt_net_new(&w->model.net, w->model.device, &spec));
    assert_ok(tt_opt_new(&w->model.opt[0], w->model.net, 0, &s_sgd));
    w->model.opts = 1;
    assert_ok(tt_sums_new(&w->sums, w->model.net, 1));
    w->sum = tt_array0(tt_net_grad_count(&spec), sizeof *w->sum);
    w->at = tt_net_stats_offset(&spec);
    w->results = results_new(&w->model, &w->clock);
}

static void s_close(world_t *w)
{
    results_destroy(&w->results);
    tt_sums_destroy(&w->sums);
    tt_opt_destroy(&w->model.opt[0]);
    tt_net_destroy(&w->model.net);
    tt_stream_destroy(&w->model.stream);
    tt_device_close(&w->model.device);
    free(w->sum);
}

/*  A step whose norm and numbers are `number`; of a group that is not trained where it is negative. */
static void s_step(world_t *w, float number)
{
    const bool trains = !(number < 0);
    const tt_minibatch_t minibatch = {.train = trains, .lr = {0.5f}, .ends = number == 3};
    w->sum[0] = number;
    w->sum[w->at] = w->sum[w->at + TT_LOSS_STATS] = number;
    assert_ok(tt_sums_put(w->sums, w->model.stream, w->sum));
    if (trains)
        assert_ok(tt_opt_step(w->model.opt[0], w->model.stream, w->sums, 0.5f));
    assert_ok(results_queue(w->results, w->sums, &minibatch));
    tt_stream_let_go(w->model.stream); /* `sum` is ours again */
}

typedef struct {
    uint32_t count, trained;
    float number[QUEUE_MAX], norm[QUEUE_MAX];
    tt_status_t taken;
    char text[256];
} told_t;

static tt_status_t s_tell(void *ctx, const results_step_t *step)
{
    told_t *told = ctx;
    const tt_result_t *result = &step->result;
    if (step->taken != TT_OK) {
        told->taken = step->taken;
        snprintf(told->text, sizeof told->text, "%s", tt_err_text());
        return tt_err(TT_DIVERGED, "no");
    }
    assert_true(step->rate == (result->trained ? 0.5f : 0.0f) && step->ends == (result->stats[0] == 3));
    assert_true(result->ride[0] == result->stats[0] && result->ride[1] == 0);
    told->number[told->count] = result->stats[0];
    told->norm[told->count++] = result->norm[0];
    told->trained += result->trained;
    return TT_OK;
}

static void test_they_come_late_and_in_order(void **state)
{
    (void)state;
    world_t w;
    told_t told = {0};
    s_open(&w);
    assert_ok(results_settle(w.results, s_tell, &told)); /* of nothing */
    for (uint32_t i = 0; i < 4; i++)
        s_step(&w, i == 2 ? -1.0f : (float)i);
    assert_int_equal(results_count(w.results), 4);
    assert_int_equal(told.count, 0);
    assert_ok(results_settle(w.results, s_tell, &told));
    assert_int_equal(results_count(w.results), 0);
    const float number[] = {0, 1, -1, 3}, norm[] = {0, 1, 0, 3};
    assert_true(told.count == 4 && told.trained == 3);
    assert_memory_equal(told.number, number, sizeof number);
    assert_memory_equal(told.norm, norm, sizeof norm);
    s_close(&w);
}

/*  Those before it are told; it is said which it was; those behind it are dropped. Whoever asks after that hears the same, since who asked first
 *  may have been somebody who can do nothing about it; until nobody wants to know any more. */
static void test_a_step_that_could_not_be_taken(void **state)
{
    (void)state;
    world_t w;
    told_t told = {0};
    s_open(&w);
    for (uint32_t i = 0; i < 5; i++)
        s_step(&w, i == 2 ? INFINITY : 1.0f);
    assert_int_equal(results_settle(w.results, s_tell, &told), TT_DIVERGED);
    assert_int_equal(told.count, 2);
    assert_int_equal(told.taken, TT_INVALID);
    assert_string_equal(told.text, "optimiser step 3: the gradient's norm is inf; the loss has diverged");
    assert_int_equal(results_count(w.results), 0);
    assert_true(results_due(w.results));
    tt_err(TT_IO, "something else");
    assert_int_equal(results_check(w.results), TT_DIVERGED);
    assert_string_equal(tt_err_text(), "no");
    s_step(&w, 6);
    assert_int_equal(results_settle(w.results, s_tell, &told), TT_DIVERGED);
    assert_string_equal(tt_err_text(), "no");
    assert_int_equal(told.count, 2);
    results_drop(w.results);
    assert_ok(results_check(w.results));
    s_step(&w, 7);
    assert_ok(results_settle(w.results, s_tell, &told));
    assert_true(told.count == 3 && told.number[2] == 7);
    s_close(&w);
}

static void test_what_nobody_wants_any_more(void **state)
{
    (void)state;
    world_t w;
    told_t told = {0};
    s_open(&w);
    s_step(&w, 1);
    s_step(&w, INFINITY);
    results_drop(w.results);
    assert_int_equal(results_count(w.results), 0);
    s_step(&w, 2);
    assert_ok(results_settle(w.results, s_tell, &told));
    assert_true(told.count == 1 && told.number[0] == 2);
    s_step(&w, 3); /* it goes with what it was to be written to */
    s_close(&w);
}

/*  Steps that take so long, until it is time to wait; how many. */
static uint32_t s_until_due(world_t *w, int64_t each_ns)
{
    told_t told = {0};
    do {
        s_step(w, 1);
        tt_clock_turn(&w->clock, each_ns);
    } while (!results_due(w->results));
    const uint32_t count = results_count(w->results);
    assert_ok(results_settle(w->results, s_tell, &told));
    assert_int_equal(told.count, count);
    return count;
}

/*  Nobody waits longer than a moment for who waits for a device. */
static void test_as_many_as_are_soon_done(void **state)
{
    (void)state;
    world_t w;
    s_open(&w);
    for (uint32_t depth = 1; depth <= QUEUE_MAX; depth *= 2)
        assert_int_equal(s_until_due(&w, MS / 100), depth);
    assert_int_equal(s_until_due(&w, MS / 100), QUEUE_MAX); /* and no more */
    assert_int_equal(s_until_due(&w, MS), QUEUE_MAX);       /* 64 ms */
    assert_int_equal(s_until_due(&w, MS), QUEUE_MAX / 2);   /* 32 */
    for (int i = 0; i < 3; i++)
        assert_int_equal(s_until_due(&w, MS), QUEUE_MAX / 4); /* 16: neither long nor soon */
    for (uint32_t depth = QUEUE_MAX / 4; depth > 1; depth /= 2)
        assert_int_equal(s_until_due(&w, 100 * MS), depth);
    assert_int_equal(s_until_due(&w, 100 * MS), 1);
    s_close(&w);
}

/*  One that ends an update early tells nothing of how long a full queue takes. */
static void test_a_short_queue_does_not_deepen_it(void **state)
{
    (void)state;
    world_t w;
    told_t told = {0};
    s_open(&w);
    for (uint32_t depth = 1; depth <= 4; depth *= 2)
        assert_int_equal(s_until_due(&w, MS / 100), depth);
    for (int i = 0; i < 5; i++) {
        s_step(&w, 1);
        assert_ok(results_settle(w.results, s_tell, &told));
    }
    assert_int_equal(s_until_due(&w, MS / 100), 8);
    s_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_they_come_late_and_in_order),
        cmocka_unit_test(test_a_step_that_could_not_be_taken),
        cmocka_unit_test(test_what_nobody_wants_any_more),
        cmocka_unit_test(test_as_many_as_are_soon_done),
        cmocka_unit_test(test_a_short_queue_does_not_deepen_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
