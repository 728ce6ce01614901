/*  serve: which requests of the replicas API are answered, with what, and which become work, about a job in memory. */
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "k8s/replicas/serve.h"
#include "tests/k8s/replicas/desk.h"

typedef struct {
    desk_t desk;
    bool gone, denies;
    int writes;
    const dijob_pod_t *about; /* of the last write */
    json_t *data;
} test_t;

/* ---- the host ----------------------------------------------------------------------------------------------------------- */

static void s_view(void *ctx, const char *job_uid, replicas_view_t *out)
{
    test_t *self = ctx;
    const dijob_pod_t **pods = tt_array0(DESK_PODS, sizeof *pods);
    assert_string_equal(job_uid, "uid-of-j");
    memcpy(pods, self->desk.seen, sizeof self->desk.seen);
    *out = self->desk.view;
    out->pods = pods;
    out->job = self->gone ? NULL : out->job;
}

static const dijob_pod_t *s_pod(void *ctx, const char *namespace_, const char *name)
{
    test_t *self = ctx;
    return strcmp(namespace_, "n") == 0 ? replicas_find(&self->desk.view, name) : NULL;
}

static const dijob_t *s_job(void *ctx, const char *namespace_, const char *name)
{
    test_t *self = ctx;
    return strcmp(namespace_, "n") == 0 && strcmp(name, "j") == 0 ? &self->desk.job : NULL;
}

static const dijob_pod_t *s_each(void *ctx, const void **at)
{
    test_t *self = ctx;
    const dijob_pod_t *next = *at ? (const dijob_pod_t *)*at + 1 : self->desk.pods;
    *at = next;
    return next < self->desk.pods + self->desk.view.pod_count ? next : NULL;
}

static bool s_may(void *ctx, const char *peer, const char *job_uid)
{
    assert_string_equal(peer, "10.0.0.1");
    assert_string_equal(job_uid, "uid-of-j");
    return !((test_t *)ctx)->denies;
}

static tt_status_t s_write(void *ctx, const replicas_request_t *request, const dijob_pod_t *about, json_t **data)
{
    test_t *self = ctx;
    assert_ptr_equal(request, &self->desk.request);
    self->writes++;
    self->about = about;
    *data = json_true();
    return tt_err(TT_EXISTS, "half of it is done");
}

static const replicas_host_t s_host = {
    .view = s_view, .pod = s_pod, .job = s_job, .each = s_each, .may = s_may, .write = s_write};

/* ---- helpers ------------------------------------------------------------------------------------------------------------ */

/*  With a coordinator, an aggregator and a collector. */
static int s_setup(void **state)
{
    static const dijob_role_t roles[] = {DIJOB_COORDINATOR, DIJOB_AGGREGATOR, DIJOB_COLLECTOR};
    test_t *self = tt_new0(sizeof *self);
    desk_open(&self->desk);
    desk_pod(&self->desk, "j-aggregator", DIJOB_AGGREGATOR);
    desk_pod(&self->desk, "j-collector", DIJOB_COLLECTOR);
    strcpy(self->desk.job.meta.uid, "uid-of-j");
    strcpy(self->desk.request.peer, "10.0.0.1");
    for (size_t i = 0; i < TT_COUNT(roles); i++)
        strcpy(self->desk.pods[i].job_uid, "uid-of-j");
    self->desk.request.verb = REPLICAS_GET;
    *state = self;
    return 0;
}

static int s_teardown(void **state)
{
    test_t *self = *state;
    json_decref(self->data);
    free(self);
    return 0;
}

static tt_status_t s_serve(test_t *self)
{
    json_decref(self->data);
    self->data = NULL;
    return replicas_serve(&s_host, self, &self->desk.request, &self->data);
}

static size_t s_count(const test_t *self, const char *list)
{
    return json_array_size(json_object_get(self->data, list));
}

/* ---- tests -------------------------------------------------------------------------------------------------------------- */

static void test_what_is_read(void **state)
{
    test_t *self = *state;
    static char aggregator[] = "j-aggregator", other[] = "another";
    replicas_request_t *request = &self->desk.request;
    assert_int_equal(s_serve(self), TT_OK);
    assert_int_equal(s_count(self, "collectors"), 1);
    request->aggregator = aggregator;
    request->coordinator = NULL;
    assert_int_equal(s_serve(self), TT_OK);
    assert_string_equal(json_string_value(json_object_get(self->data, "coordinator")), "j-aggregator");
    /* nobody named: every coordinator, in every namespace */
    request->aggregator = request->namespace_ = NULL;
    assert_int_equal(s_serve(self), TT_OK);
    assert_int_equal(json_array_size(self->data), 1);
    request->namespace_ = other;
    assert_int_equal(s_serve(self), TT_OK);
    assert_int_equal(json_array_size(self->data), 0);
    request->name = other; /* by the job's name */
    assert_int_equal(s_serve(self), TT_OK);
    assert_null(self->data);
}

static void test_what_is_not_there(void **state)
{
    test_t *self = *state;
    static char collector[] = "j-collector", other[] = "another", coordinator[] = "j-coordinator";
    replicas_request_t *request = &self->desk.request;
    for (replicas_verb_t verb = REPLICAS_GET; verb <= REPLICAS_FAILED; verb++) {
        request->verb = verb;
        request->coordinator = other;
        assert_int_equal(s_serve(self), TT_NOT_FOUND);
        assert_string_equal(tt_err_text(), "pod: n/another not exists in cache");
        request->coordinator = collector; /* which asks for nobody */
        assert_int_equal(s_serve(self), TT_NOT_FOUND);
        request->coordinator = coordinator;
        self->gone = true;
        assert_int_equal(s_serve(self), TT_NOT_FOUND);
        assert_memory_equal(tt_err_text(), "dijob: n/", 9);
        self->gone = false;
    }
    assert_int_equal(self->writes, 0);
}

static void test_who_may(void **state)
{
    test_t *self = *state;
    static char job[] = "j";
    replicas_request_t *request = &self->desk.request;
    self->denies = true;
    for (replicas_verb_t verb = REPLICAS_GET; verb <= REPLICAS_FAILED; verb++) {
        request->verb = verb;
        assert_int_equal(s_serve(self), TT_DENIED);
    }
    request->v2 = true;
    request->name = job;
    assert_int_equal(s_serve(self), TT_DENIED);
    assert_string_equal(tt_err_text(), "10.0.0.1 is no pod of DIJob n/j");
    request->v2 = false;
    request->verb = REPLICAS_GET;
    request->coordinator = request->name = NULL;
    assert_int_equal(s_serve(self), TT_OK); /* of those that it may ask about there are none */
    assert_int_equal(json_array_size(self->data), 0);
    assert_int_equal(self->writes, 0);
}

static void test_what_is_work(void **state)
{
    test_t *self = *state;
    for (replicas_verb_t verb = REPLICAS_CREATE; verb <= REPLICAS_FAILED; verb++) {
        self->desk.request.verb = verb;
        assert_int_equal(s_serve(self), TT_EXISTS); /* with what was done all the same */
        assert_true(json_is_true(self->data));
        assert_ptr_equal(self->about, &self->desk.pods[0]);
    }
    assert_int_equal(self->writes, 3);
}

/*  Of tasks all is read, and what is asked for is taken and changes nothing. */
static void test_tasks(void **state)
{
    test_t *self = *state;
    static char job[] = "j", other[] = "another";
    replicas_request_t *request = &self->desk.request;
    request->v2 = true;
    request->coordinator = NULL;
    request->name = job;
    strcpy(self->desk.pods[2].ip, "10.0.0.7");
    self->desk.pods[2].rank = 0;
    assert_int_equal(s_serve(self), TT_OK);
    assert_string_equal(json_string_value(json_array_get(self->data, 0)), "10.0.0.7:1");
    request->verb = REPLICAS_CREATE;
    assert_int_equal(s_serve(self), TT_OK);
    assert_null(self->data);
    assert_int_equal(self->writes, 0);
    request->name = other;
    assert_int_equal(s_serve(self), TT_NOT_FOUND);
    assert_string_equal(tt_err_text(), "dijob: n/another not exists in cache");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_is_read, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_what_is_not_there, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_who_may, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_what_is_work, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_tasks, s_setup, s_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
