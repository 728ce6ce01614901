/*  work: a request carried out in stages, on a substrate in memory that answers within the call or later. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "k8s/replicas/work.h"
#include "tests/k8s/replicas/desk.h"

typedef struct {
    desk_t desk;
    replicas_work_t work;
    bool later;   /* nothing is made before s_answer */
    bool gone;    /* the job is */
    int fails_at; /* the create with this number has no luck; 0 = none */
    int creates, removes, commits;
    int orders[DESK_PODS]; /* under way */
    size_t order_count;
    char story[512]; /* what was asked for, in order */
    bool ended;
    tt_status_t status;
    json_t *data;
} test_t;

static void s_tell(test_t *self, const char *word)
{
    const size_t at = strlen(self->story);
    snprintf(self->story + at, sizeof self->story - at, "%s%s", at ? " " : "", word);
}

/* ---- the substrate ----------------------------------------------------------------------------------------------------- */

static void s_list(void *ctx, replicas_view_t *out)
{
    test_t *self = ctx;
    const dijob_pod_t **pods = tt_array0(DESK_PODS, sizeof *pods);
    memcpy(pods, self->desk.seen, sizeof self->desk.seen);
    *out = self->desk.view;
    out->pods = pods;
    if (self->gone)
        out->job = NULL;
}

static void s_prepare(void *ctx, int needs)
{
    test_t *self = ctx;
    s_tell(self, needs & REPLICAS_NEEDS_GPUS ? "gpus" : needs & REPLICAS_NEEDS_CONFIG ? "config" : "job");
    replicas_work_go(&self->work, TT_OK);
}

static tt_status_t s_create(void *ctx, int order, const dijob_pod_want_t *want)
{
    test_t *self = ctx;
    if (++self->creates == self->fails_at)
        return tt_err(TT_NOT_FOUND, "no template");
    s_tell(self, want->role == DIJOB_DDP_LEARNER ? "ddp" : want->replaces ? "another" : "create");
    desk_pod(&self->desk, want->name, want->role);
    if (self->later)
        self->orders[self->order_count++] = order;
    else
        replicas_work_made(&self->work, order);
    return TT_OK;
}

static void s_remove(void *ctx, const dijob_pod_t *pod)
{
    test_t *self = ctx;
    s_tell(self, "remove");
    self->desk.pods[pod - self->desk.pods].deleting = true;
    self->removes++;
}

static void s_commit(void *ctx)
{
    test_t *self = ctx;
    s_tell(self, "|");
    self->commits++;
    if (!self->later)
        replicas_work_go(&self->work, TT_OK);
}

static int s_gpus_per_node(void *ctx)
{
    (void)ctx;
    return 2;
}

static void s_done(void *ctx, tt_status_t status)
{
    test_t *self = ctx;
    assert_false(self->ended);
    self->ended = true;
    self->status = status;
    self->data = replicas_data(&self->work.orders, &self->desk.request);
}

static const replicas_substrate_t s_substrate = {.list = s_list,
    .prepare = s_prepare,
    .create = s_create,
    .remove = s_remove,
    .commit = s_commit,
    .gpus_per_node = s_gpus_per_node,
    .done = s_done};

/* ---- helpers ------------------------------------------------------------------------------------------------------------ */

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
    replicas_work_clear(&self->work);
    json_decref(self->data);
    free(self);
    return 0;
}

static void s_begin(test_t *self)
{
    replicas_work_begin(&self->work, &s_substrate, self, &self->desk.request, DIJOB_COORDINATOR);
}

/*  All that is under way comes true. */
static void s_answer(test_t *self)
{
    for (size_t i = 0; i < self->order_count; i++)
        replicas_work_made(&self->work, self->orders[i]);
    self->order_count = 0;
    replicas_work_go(&self->work, TT_OK);
}

static size_t s_answered(const test_t *self, const char *list)
{
    return json_array_size(json_object_get(self->data, list));
}

/* ---- stages ------------------------------------------------------------------------------------------------------------- */

static void test_create(void **state)
{
    test_t *self = *state;
    self->desk.request.collectors.replicas = 2;
    self->desk.request.learners.replicas = 1;
    s_begin(self);
    assert_true(self->ended);
    assert_int_equal(self->status, TT_OK);
    assert_string_equal(self->story, "job create create create | |");
    assert_int_equal(s_answered(self, "collectors"), 2);
    assert_int_equal(s_answered(self, "learners"), 1);
}

static void test_what_changes_nothing_is_answered_at_once(void **state)
{
    test_t *self = *state;
    self->desk.request.verb = REPLICAS_DELETE;
    self->desk.request.collectors.replicas = 3; /* there are none */
    s_begin(self);
    assert_true(self->ended);
    assert_int_equal(self->status, TT_OK);
    assert_string_equal(self->story, "");
}

static void test_fewer(void **state)
{
    test_t *self = *state;
    desk_pod(&self->desk, "a", DIJOB_COLLECTOR);
    desk_pod(&self->desk, "b", DIJOB_COLLECTOR);
    self->desk.request.verb = REPLICAS_DELETE;
    self->desk.request.collectors.replicas = 1;
    s_begin(self);
    assert_string_equal(self->story, "remove |");
    assert_int_equal(s_answered(self, "collectors"), 1);
}

static void test_one_goes_when_its_successor_is_there(void **state)
{
    static char a[] = "a", *names[] = {a, NULL};
    test_t *self = *state;
    desk_pod(&self->desk, "a", DIJOB_COLLECTOR);
    self->desk.request.verb = REPLICAS_FAILED;
    self->desk.request.failed_collectors = names;
    self->later = true;
    s_begin(self);
    assert_string_equal(self->story, "job another |");
    assert_int_equal(self->removes, 0);
    s_answer(self);
    assert_string_equal(self->story, "job another | remove |");
    assert_false(self->ended);
    s_answer(self);
    assert_true(self->ended);
    assert_int_equal(s_answered(self, "collectors"), 1);
}

static void test_ddp_learners_come_after_their_aggregator(void **state)
{
    static char gpus[] = "4";
    test_t *self = *state;
    self->desk.request.learners = (replicas_ask_t){.replicas = 1, .gpus = gpus};
    self->later = true;
    s_begin(self);
    assert_string_equal(self->story, "config create |");
    s_answer(self);
    assert_string_equal(self->story, "config create | |"); /* nobody is replaced */
    s_answer(self);
    assert_string_equal(self->story, "config create | | gpus ddp ddp |"); /* four GPUs, two a node */
    s_answer(self);
    assert_true(self->ended);
    assert_int_equal(self->status, TT_OK);
}

/* ---- what goes wrong ---------------------------------------------------------------------------------------------------- */

static void test_the_rest_is_brought_to_its_end(void **state)
{
    static char a[] = "a", b[] = "b", *names[] = {a, b, NULL};
    test_t *self = *state;
    desk_pod(&self->desk, "a", DIJOB_COLLECTOR);
    desk_pod(&self->desk, "b", DIJOB_COLLECTOR);
    self->desk.request.verb = REPLICAS_FAILED;
    self->desk.request.failed_collectors = names;
    self->fails_at = 1;
    s_begin(self);
    assert_int_equal(self->status, TT_INVALID); /* no template is who asks' mistake */
    assert_non_null(strstr(tt_err_text(), "create replicas"));
    assert_false(self->desk.pods[1].deleting); /* it has no successor */
    assert_true(self->desk.pods[2].deleting);
    assert_int_equal(s_answered(self, "collectors"), 1);
}

static void test_the_first_fault_counts(void **state)
{
    test_t *self = *state;
    self->desk.request.collectors.replicas = 1;
    self->later = true;
    s_begin(self);
    replicas_work_fault(&self->work, tt_err(TT_INTERNAL, "the first"));
    replicas_work_fault(&self->work, tt_err(TT_INVALID, "the second"));
    s_answer(self);
    s_answer(self);
    assert_int_equal(self->status, TT_INTERNAL);
    assert_string_equal(tt_err_text(), "the first");
}

static void test_a_job_that_goes_meanwhile(void **state)
{
    test_t *self = *state;
    self->desk.request.collectors.replicas = 1;
    self->later = true;
    s_begin(self);
    self->gone = true;
    s_answer(self);
    assert_true(self->ended);
    assert_int_equal(self->status, TT_NOT_FOUND);
    assert_string_equal(tt_err_text(), "DIJob j is gone");
}

static void test_an_aggregator_that_goes_before_its_learners(void **state)
{
    static char gpus[] = "2";
    test_t *self = *state;
    self->desk.request.learners = (replicas_ask_t){.replicas = 1, .gpus = gpus};
    self->later = true;
    s_begin(self);
    s_answer(self);
    self->desk.view.pod_count--;
    s_answer(self);
    s_answer(self);
    assert_true(self->ended);
    assert_int_equal(self->status, TT_INTERNAL);
    assert_non_null(strstr(tt_err_text(), "is gone before its learners came"));
}

static void test_what_pods_are_made_of_cannot_be_had(void **state)
{
    test_t *self = *state;
    self->desk.request.collectors.replicas = 1;
    self->later = true;
    s_begin(self);
    replicas_work_go(&self->work, tt_err(TT_UNAVAILABLE, "not now"));
    assert_true(self->ended);
    assert_int_equal(self->status, TT_UNAVAILABLE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_create, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_what_changes_nothing_is_answered_at_once, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_fewer, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_one_goes_when_its_successor_is_there, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_ddp_learners_come_after_their_aggregator, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_the_rest_is_brought_to_its_end, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_the_first_fault_counts, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_job_that_goes_meanwhile, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_an_aggregator_that_goes_before_its_learners, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_what_pods_are_made_of_cannot_be_had, s_setup, s_teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
