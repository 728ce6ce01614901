/*  orders: what a request of the replicas API means, whoever serves it. */
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "tests/k8s/replicas/desk.h"

typedef struct {
    desk_t desk;
    replicas_orders_t orders;
} test_t;

static int s_setup(void **state)
{
    test_t *self = tt_new0(sizeof *self);
    desk_open(&self->desk);
    *state = self;
    return 0;
}

static int s_teardown(void **state)
{
    test_t *self = *state;
    replicas_orders_clear(&self->orders);
    free(self);
    return 0;
}

static tt_status_t s_take(test_t *self)
{
    replicas_orders_clear(&self->orders);
    return replicas_orders(&self->orders, &self->desk.view, &self->desk.request, DIJOB_COORDINATOR);
}

static tt_status_t s_report(test_t *self, char *name)
{
    char *names[] = {name, NULL};
    self->desk.request.verb = REPLICAS_FAILED;
    self->desk.request.failed_collectors = names;
    const tt_status_t status = s_take(self);
    self->desk.request.failed_collectors = NULL;
    return status;
}

static void s_assert_first(const json_t *list, const char *url)
{
    assert_string_equal(json_string_value(json_array_get(list, 0)), url);
}

/* ---- asking ---------------------------------------------------------------------------------------------------------- */

static void test_each_one_has_a_name_and_what_was_asked_for_it(void **state)
{
    static char cpus[] = "2";
    test_t *self = *state;
    desk_t *desk = &self->desk;
    desk->request.collectors = (replicas_ask_t){.replicas = 2, .cpus = cpus};
    assert_ok(s_take(self));
    assert_int_equal(self->orders.count, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(self->orders.orders[i].want.role, DIJOB_COLLECTOR);
        assert_string_equal(self->orders.orders[i].want.resources.cpus, "2");
    }
    assert_string_not_equal(self->orders.orders[0].want.name, self->orders.orders[1].want.name);
}

static void test_many_gpus_are_an_aggregator_without_them(void **state)
{
    static char gpus[] = "4";
    test_t *self = *state;
    desk_t *desk = &self->desk;
    desk->request.learners = (replicas_ask_t){.replicas = 1, .gpus = gpus};
    assert_ok(s_take(self));
    assert_int_equal(self->orders.count, 1);
    assert_int_equal(self->orders.orders[0].want.role, DIJOB_AGGREGATOR);
    assert_int_equal(self->orders.orders[0].gpus, 4);
    assert_null(self->orders.orders[0].want.resources.gpus);
}

static void test_what_cannot_be_is_an_error(void **state)
{
    static char many[] = "4097", none[] = "x";
    test_t *self = *state;
    desk_t *desk = &self->desk;
    desk->request.learners = (replicas_ask_t){.replicas = 1, .gpus = many};
    assert_int_equal(s_take(self), TT_INVALID);
    desk->request.learners.gpus = none;
    assert_int_not_equal(s_take(self), TT_OK);
    desk->request.learners.gpus = NULL;
    desk->job.has[DIJOB_LEARNER] = false;
    assert_int_equal(s_take(self), TT_INVALID);
}

static void test_bounds_hold_for_who_asks(void **state)
{
    test_t *self = *state;
    desk_t *desk = &self->desk;
    desk_pod(desk, "j-collector-a", DIJOB_COLLECTOR);
    desk_pod(desk, "j-collector-b", DIJOB_COLLECTOR);
    desk->job.most[DIJOB_COLLECTOR] = 3;
    desk->job.least[DIJOB_COLLECTOR] = 1;
    desk->request.verb = REPLICAS_CREATE;
    desk->request.collectors.replicas = 2;
    assert_int_equal(replicas_orders(&self->orders, &desk->view, &desk->request, DIJOB_COORDINATOR), TT_INVALID);
    assert_string_equal(
        tt_err_text(), "collectors.replicas: 2 more than the 2 that are there, and spec.collector.maxReplicas is 3");
    replicas_orders_clear(&self->orders);
    desk->request.collectors.replicas = 1;
    assert_ok(replicas_orders(&self->orders, &desk->view, &desk->request, DIJOB_COORDINATOR));
    assert_int_equal(self->orders.count, 1);
    replicas_orders_clear(&self->orders);
    desk->request.verb = REPLICAS_DELETE;
    desk->request.collectors.replicas = 5;
    assert_ok(replicas_orders(&self->orders, &desk->view, &desk->request, DIJOB_COORDINATOR));
    assert_int_equal(self->orders.going_count, 1); /* one is to be left */
}

static void test_a_declared_role_is_answered_with_those_that_are_there(void **state)
{
    static char a[] = "a", b[] = "b";
    test_t *self = *state;
    desk_t *desk = &self->desk;
    desk_pod(desk, a, DIJOB_COLLECTOR);
    desk_pod(desk, b, DIJOB_COLLECTOR);
    desk->job.replicas[DIJOB_COLLECTOR] = 2;
    desk->request.collectors.replicas = 1;
    assert_ok(s_take(self));
    assert_int_equal(self->orders.count, 0);
    assert_int_equal(json_array_size(self->orders.collectors), 1);
    s_assert_first(self->orders.collectors, "a:1");
    assert_int_equal(desk->declared, 1);
}

/* ---- failed ones ----------------------------------------------------------------------------------------------------- */

/*  The name is the plan's as well, so asking twice, or the plan coming first, makes no second. */
static void test_one_in_anothers_place_has_its_name_from_it_and_its_resources(void **state)
{
    static char a[] = "a", asked[] = "2/1Gi/";
    test_t *self = *state;
    desk_t *desk = &self->desk;
    desk_pod(desk, a, DIJOB_COLLECTOR)->asked = asked;
    assert_ok(s_report(self, a));
    const replicas_order_t *order = &self->orders.orders[0];
    uint64_t seed = dijob_name_seed("uid-of-a");
    char *name = dijob_pod_name("j", DIJOB_COLLECTOR, &seed);
    assert_string_equal(order->want.name, name);
    assert_string_equal(order->want.replaces, "a");
    assert_string_equal(order->want.resources.cpus, "2");
    assert_string_equal(order->want.resources.memory, "1Gi");
    assert_false(order->only_delete);
    free(name);
}

static void test_of_a_declared_role_one_goes_and_the_plan_makes_another(void **state)
{
    static char a[] = "a";
    test_t *self = *state;
    desk_t *desk = &self->desk;
    desk_pod(desk, a, DIJOB_COLLECTOR);
    desk->job.replicas[DIJOB_COLLECTOR] = 1;
    assert_ok(s_report(self, a));
    assert_true(self->orders.orders[0].only_delete);
}

static void test_one_that_was_replaced_is_not_replaced_again(void **state)
{
    static char a[] = "a", b[] = "b";
    test_t *self = *state;
    desk_t *desk = &self->desk;
    dijob_pod_t *old = desk_pod(desk, a, DIJOB_COLLECTOR);
    desk_pod(desk, b, DIJOB_COLLECTOR)->replaces = a;
    assert_ok(s_report(self, a));
    assert_int_equal(self->orders.count, 1); /* it is there still: it goes */
    assert_true(self->orders.orders[0].only_delete);
    s_assert_first(self->orders.collectors, "b:1");
    old->deleting = true;
    assert_ok(s_report(self, a));
    assert_int_equal(self->orders.count, 0);
    s_assert_first(self->orders.collectors, "b:1");
}

static void test_an_address_that_was_cut_tells_where_names_lead_nowhere(void **state)
{
    static char a[] = "a", cut[] = "127.1.2";
    test_t *self = *state;
    desk_t *desk = &self->desk;
    snprintf(desk_pod(desk, a, DIJOB_COLLECTOR)->ip, sizeof desk->pods->ip, "127.1.23.1");
    assert_int_equal(s_report(self, cut), TT_NOT_FOUND);
    desk->view.cut = true;
    assert_int_equal(s_report(self, cut), TT_NOT_FOUND); /* 127.1.23 is another */
    snprintf(desk->pods[1].ip, sizeof desk->pods->ip, "127.1.2.1");
    assert_ok(s_report(self, cut));
    assert_string_equal(self->orders.orders[0].want.replaces, "a");
}

/* ---- fewer, and those that belong to an aggregator ------------------------------------------------------------------- */

static void test_an_aggregator_goes_with_its_learners(void **state)
{
    static char a[] = "a", b[] = "b", mine[] = "mine", others[] = "others";
    test_t *self = *state;
    desk_t *desk = &self->desk;
    desk_pod(desk, a, DIJOB_AGGREGATOR);
    desk_pod(desk, b, DIJOB_AGGREGATOR);
    desk_pod(desk, mine, DIJOB_DDP_LEARNER)->owner_pod = b;
    desk_pod(desk, others, DIJOB_DDP_LEARNER)->owner_pod = a;
    desk->request.verb = REPLICAS_DELETE;
    desk->request.learners.replicas = 1; /* there are none: of the aggregators, the younger */
    assert_ok(s_take(self));
    assert_int_equal(self->orders.going_count, 2);
    assert_string_equal(self->orders.going[0]->meta.name, "b");
    assert_string_equal(self->orders.going[1]->meta.name, "mine");
    assert_int_equal(json_array_size(self->orders.learners), 1);
}

typedef struct {
    int count, world, ranks;
    char master[64];
} ddp_t;

static void s_ddp(void *ctx, const dijob_pod_want_t *want)
{
    ddp_t *self = ctx;
    assert_int_equal(want->start_rank, self->ranks);
    assert_int_equal(want->master, self->count == 0);
    assert_string_equal(want->aggregator, "a");
    if (self->count == 0)
        snprintf(self->master, sizeof self->master, "%s", want->name);
    assert_string_equal(want->master_name, self->master);
    self->world = want->world_size;
    self->ranks += want->local_world_size;
    self->count++;
}

static void test_ddp_learners_have_ranks_one_after_the_other(void **state)
{
    static char a[] = "a";
    desk_t *desk = &((test_t *)*state)->desk;
    ddp_t ddp = {0};
    desk_pod(desk, a, DIJOB_AGGREGATOR);
    const replicas_order_t order = {.want = {.role = DIJOB_AGGREGATOR, .name = a}, .gpus = 5};
    replicas_ddp(&order, &desk->request, &desk->view, 2, s_ddp, &ddp);
    assert_int_equal(ddp.count, 3);
    assert_int_equal(ddp.ranks, 5);
    assert_int_equal(ddp.world, 5);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, s_setup, s_teardown)
    const struct CMUnitTest tests[] = {TEST(test_each_one_has_a_name_and_what_was_asked_for_it),
        TEST(test_many_gpus_are_an_aggregator_without_them), TEST(test_what_cannot_be_is_an_error),
        TEST(test_bounds_hold_for_who_asks), TEST(test_a_declared_role_is_answered_with_those_that_are_there),
        TEST(test_one_in_anothers_place_has_its_name_from_it_and_its_resources),
        TEST(test_of_a_declared_role_one_goes_and_the_plan_makes_another),
        TEST(test_one_that_was_replaced_is_not_replaced_again),
        TEST(test_an_address_that_was_cut_tells_where_names_lead_nowhere),
        TEST(test_an_aggregator_goes_with_its_learners), TEST(test_ddp_learners_have_ranks_one_after_the_other)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
