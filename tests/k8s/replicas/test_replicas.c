/*  Every line of the replicas API that DI-engine and the bundled clients send, and every byte they get. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "k8s/replicas/replicas.h"
#include "tests/test.h"

static const char *s_or(const char *text)
{
    return text ? text : "-";
}

static void s_show_names(tt_buf_t *out, char **names)
{
    for (size_t i = 0; names && names[i]; i++)
        assert_ok(tt_buf_printf(out, " %s", names[i]));
}

/*  A request as one line; of a refused one the code and the words. */
static void s_line(tt_buf_t *out, const char *method, const char *path, const char *query, const char *body)
{
    replicas_request_t *r = NULL;
    tt_buf_clear(out);
    const tt_status_t status = replicas_parse(&r, method, path, query, body, body ? strlen(body) : 0);
    if (status != TT_OK) {
        assert_null(r);
        assert_ok(tt_buf_printf(out, "%d %s", replicas_code(status), tt_err_text()));
        return;
    }
    assert_ok(tt_buf_printf(out, "%d%s %s/%s a=%s n=%s", r->verb, r->v2 ? " v2" : "", s_or(r->namespace_),
        s_or(r->coordinator), s_or(r->aggregator), s_or(r->name)));
    const replicas_ask_t *asks[] = {&r->collectors, &r->learners};
    for (size_t i = 0; i < 2; i++)
        assert_ok(tt_buf_printf(
            out, " %d(%s,%s,%s)", asks[i]->replicas, s_or(asks[i]->cpus), s_or(asks[i]->memory), s_or(asks[i]->gpus)));
    s_show_names(out, r->failed_collectors);
    if (r->failed_learners)
        assert_ok(tt_buf_str(out, " |"));
    s_show_names(out, r->failed_learners);
    replicas_request_destroy(&r);
}

typedef struct {
    const char *method, *path, *query, *body, *line;
} case_t;

#define V1     "/v1alpha1/replicas"
#define FAILED "/v1alpha1/replicas/failed"
#define WHO    "\"namespace\":\"default\",\"coordinator\":\"qbert-dqn-coordinator\""

static const case_t s_cases[] = {
    /* what clients send */
    {"GET", V1, "", NULL, "0 -/- a=- n=- 0(-,-,-) 0(-,-,-)"},
    {"GET", V1, "namespace=default", NULL, "0 default/- a=- n=- 0(-,-,-) 0(-,-,-)"},
    {"GET", V1, "namespace=default&coordinator=q-coordinator", NULL,
        "0 default/q-coordinator a=- n=- 0(-,-,-) 0(-,-,-)"},
    {"GET", V1, "Namespace=default&AGGREGATOR=a%2D1", NULL, "0 default/- a=a-1 n=- 0(-,-,-) 0(-,-,-)"},
    {"GET", V1, "namespace=a&namespace=b&&name=x+y", NULL, "0 a/- a=- n=x y 0(-,-,-) 0(-,-,-)"},
    {"GET", V1, "namespace=", NULL, "0 -/- a=- n=- 0(-,-,-) 0(-,-,-)"},
    {"POST", V1, "", "{" WHO ",\"collectors\":{\"replicas\":2},\"learners\":{\"replicas\":1,\"gpus\":\"0\"}}",
        "1 default/qbert-dqn-coordinator a=- n=- 2(-,-,-) 1(-,-,-)"},
    {"POST", V1, "", "{" WHO ",\"collectors\":{\"replicas\":1,\"cpus\":0.5,\"memory\":\"2Gi\",\"gpus\":2}}",
        "1 default/qbert-dqn-coordinator a=- n=- 1(0.5,2Gi,2) 0(-,-,-)"},
    {"POST", V1, "", "{" WHO ",\"collectors\":{\"replicas\":1,\"cpu\":1,\"gpu\":1},\"x\":[1],\"learners\":null}",
        "1 default/qbert-dqn-coordinator a=- n=- 1(-,-,-) 0(-,-,-)"},
    {"POST", V1, "", "{\"Namespace\":\"a\",\"COORDINATOR\":\"b\"}", "1 a/b a=- n=- 0(-,-,-) 0(-,-,-)"},
    {"DELETE", V1, "", "{" WHO ",\"collectors\":{\"replicas\":1},\"learners\":{\"replicas\":0}}",
        "2 default/qbert-dqn-coordinator a=- n=- 1(-,-,-) 0(-,-,-)"},
    {"POST", FAILED, "", "{" WHO ",\"collectors\":[\"qbert-dqn-collector-pm5gv\"],\"learners\":[]}",
        "3 default/qbert-dqn-coordinator a=- n=- 0(-,-,-) 0(-,-,-) qbert-dqn-collector-pm5gv |"},
    {"POST", FAILED, "", "{" WHO ",\"collectors\":[\"a\",\"b\",\"a\"],\"learners\":[\"c\",\"c\"]}",
        "3 default/qbert-dqn-coordinator a=- n=- 0(-,-,-) 0(-,-,-) a b | c"},
    {"GET", "/v2alpha1/job/default.qbert/replicas", "", NULL, "0 v2 default/- a=- n=qbert 0(-,-,-) 0(-,-,-)"},
    {"POST", "/v2alpha1/job/default.q.b/replicas", "", "{\"replicas\":3}",
        "1 v2 default/- a=- n=q.b 3(-,-,-) 0(-,-,-)"},
    {"DELETE", "/v2alpha1/job/default.q/replicas", "", "{\"replicas\":1}", "2 v2 default/- a=- n=q 1(-,-,-) 0(-,-,-)"},
    /* what is refused */
    {"GET", V1, "foo=1", NULL, "400 request param foo is not supported"},
    {"GET", V1, "namespace=a&%00=1", NULL, "400 request param (not text) is not supported"},
    {"GET", V1, "namespace=a%0", NULL, "400 request param namespace is not a name"},
    {"PATCH", V1, "", "{}", "501 PATCH not implemented"},
    {"PUT", V1, "", "{}", "501 PUT not implemented"},
    {"GET", FAILED, "", NULL, "501 GET not implemented"},
    {"DELETE", FAILED, "", "{}", "501 DELETE not implemented"},
    {"POST", V1, "", NULL, "400 the body is empty"},
    {"POST", V1, "", "", "400 the body is empty"},
    {"POST", V1, "", "[]", "400 the body is not a JSON object"},
    {"POST", V1, "", "{", "400 the body is not JSON: line 1: string or '}' expected near end of file"},
    {"DELETE", V1, "", "nope", "400 the body is not JSON: line 1: '[' or '{' expected near 'nope'"},
    {"POST", V1, "", "{\"namespace\":1}", "400 namespace: expected a string of at most 253 characters"},
    {"POST", V1, "", "{\"collectors\":[]}", "400 collectors: expected an object"},
    {"POST", V1, "", "{\"collectors\":{\"replicas\":-1}}",
        "400 collectors.replicas: expected an integer from 0 to 1000"},
    {"POST", V1, "", "{\"learners\":{\"replicas\":1001}}", "400 learners.replicas: expected an integer from 0 to 1000"},
    {"POST", V1, "", "{\"learners\":{\"replicas\":1.5}}", "400 learners.replicas: expected an integer from 0 to 1000"},
    {"POST", V1, "", "{\"learners\":{\"gpus\":\"many\"}}",
        "400 learners.gpus: 'many' is not a quantity, as 2, 500m, 1.5Gi or 64e6"},
    {"POST", V1, "", "{\"learners\":{\"cpus\":\"-1\"}}", "400 learners.cpus: -1 is below zero"},
    {"POST", V1, "", "{\"learners\":{\"memory\":true}}", "400 learners.memory: expected a quantity"},
    {"POST", FAILED, "", "{\"collectors\":{}}", "400 collectors: expected a list of pod names"},
    {"POST", FAILED, "", "{\"learners\":[\"\"]}", "400 learners[0]: expected a pod's name"},
    {"POST", "/v2alpha1/job/qbert/replicas", "", "{\"replicas\":1}", "400 'qbert' is not NAMESPACE.NAME"},
    {"POST", "/v2alpha1/job/.q/replicas", "", "{\"replicas\":1}", "400 '.q' is not NAMESPACE.NAME"},
    {"POST", "/v2alpha1/job/d.q/replicas", "", "{\"replicas\":\"1\"}",
        "400 replicas: expected an integer from 0 to 1000"},
    {"GET", "/v1alpha1/jobs", "", NULL, "404 there is no /v1alpha1/jobs"},
    {"GET", "/v2alpha1/job/replicas", "", NULL, "404 there is no /v2alpha1/job/replicas"},
};

static void test_requests(void **state)
{
    (void)state;
    tt_buf_t line;
    tt_buf_init(&line, 4096);
    for (size_t i = 0; i < TT_COUNT(s_cases); i++) {
        const case_t *c = &s_cases[i];
        s_line(&line, c->method, c->path, c->query, c->body);
        assert_string_equal(tt_buf_text(&line), c->line);
    }
    tt_buf_free(&line);
}

static void test_a_body_too_large(void **state)
{
    (void)state;
    replicas_request_t *r = NULL;
    char *body = tt_new0(REPLICAS_BODY_MAX + 2);
    memset(body, ' ', REPLICAS_BODY_MAX + 1);
    assert_int_equal(replicas_parse(&r, "POST", V1, "", body, REPLICAS_BODY_MAX + 1), TT_INVALID);
    free(body);
}

static json_t *s_list(const char *a, const char *b)
{
    json_t *list = json_array();
    if (a)
        json_array_append_new(list, json_string(a));
    if (b)
        json_array_append_new(list, json_string(b));
    return list;
}

static void s_expect(replicas_verb_t verb, int code, const char *text, json_t *data, const char *bytes)
{
    tt_buf_t out;
    tt_buf_init(&out, 65536);
    const replicas_reply_t reply = {.code = code, .text = text, .data = data};
    assert_ok(replicas_print(&out, verb, &reply));
    assert_string_equal(tt_buf_text(&out), bytes);
    json_decref(data);
    tt_buf_free(&out);
}

/*  The answers of specs 3.7, byte by byte. */
static void test_answers(void **state)
{
    (void)state;
    s_expect(REPLICAS_CREATE, 200, NULL,
        replicas_object("default", "qbert-dqn-coordinator",
            s_list("qbert-dqn-collector-pm5gv.default:22270", "qbert-dqn-collector-7xk2d.default:22270"),
            s_list("qbert-dqn-learner-rcwmc.default:22271", NULL)),
        "{\"success\":true,\"code\":0,\"message\":\"successfully create replicas\",\"data\":{\"namespace\":\"default\","
        "\"coordinator\":\"qbert-dqn-coordinator\",\"collectors\":[\"qbert-dqn-collector-pm5gv.default:22270\","
        "\"qbert-dqn-collector-7xk2d.default:22270\"],\"learners\":[\"qbert-dqn-learner-rcwmc.default:22271\"]}}");
    s_expect(REPLICAS_GET, 200, NULL,
        replicas_object("default", "qbert-dqn-coordinator", s_list(NULL, NULL), s_list(NULL, NULL)),
        "{\"success\":true,\"code\":0,\"message\":\"successfully get replicas\",\"data\":{\"namespace\":\"default\","
        "\"coordinator\":\"qbert-dqn-coordinator\",\"collectors\":[],\"learners\":[]}}");
    s_expect(REPLICAS_DELETE, 200, NULL, replicas_object("d", "c", s_list("x.d:22270", NULL), s_list(NULL, NULL)),
        "{\"success\":true,\"code\":0,\"message\":\"successfully delete replicas\",\"data\":{\"namespace\":\"d\","
        "\"coordinator\":\"c\",\"collectors\":[\"x.d:22270\"],\"learners\":[]}}");
    s_expect(REPLICAS_FAILED, 200, NULL, replicas_object("d", "c", s_list("x.d:22270", NULL), NULL),
        "{\"success\":true,\"code\":0,\"message\":\"successfully recreate replicas\",\"data\":{\"namespace\":\"d\","
        "\"coordinator\":\"c\",\"collectors\":[\"x.d:22270\"],\"learners\":null}}");
    s_expect(REPLICAS_GET, 200, NULL, NULL,
        "{\"success\":true,\"code\":0,\"message\":\"successfully get replicas\",\"data\":null}");
}

static void s_expect_refusal(const char *method, tt_status_t status, int code, const char *bytes)
{
    tt_buf_t out;
    tt_buf_init(&out, 65536);
    assert_int_equal(replicas_refuse(&out, method, status), code);
    assert_string_equal(tt_buf_text(&out), bytes);
    tt_buf_free(&out);
}

static void test_refusals(void **state)
{
    (void)state;
    s_expect_refusal("POST", tt_err(TT_NOT_FOUND, "pod: default/nope not exists in cache"), 404,
        "{\"success\":false,\"code\":1,\"message\":\"pod: default/nope not exists in "
        "cache\",\"data\":{\"namespace\":\"\","
        "\"coordinator\":\"\",\"collectors\":null,\"learners\":null}}");
    s_expect_refusal("GET", tt_err(TT_INVALID, "request param foo is not supported"), 400,
        "{\"success\":false,\"code\":1,\"message\":\"request param foo is not supported\",\"data\":null}");
    s_expect_refusal("PATCH", tt_err(TT_UNSUPPORTED, "PATCH not implemented"), 501,
        "{\"success\":false,\"code\":1,\"message\":\"PATCH not implemented\",\"data\":null}");
    const int codes[][2] = {
        {TT_EXISTS, 409}, {TT_DENIED, 403}, {TT_UNAVAILABLE, 503}, {TT_INTERNAL, 500}, {TT_OK, 200}};
    for (size_t i = 0; i < TT_COUNT(codes); i++)
        assert_int_equal(replicas_code((tt_status_t)codes[i][0]), codes[i][1]);
}

/*  Where the answer does not fit, it is an error and no half of an answer counts as one. */
static void test_an_answer_too_large(void **state)
{
    (void)state;
    tt_buf_t out;
    tt_buf_init(&out, 16);
    const replicas_reply_t reply = {.code = 200};
    assert_int_equal(replicas_print(&out, REPLICAS_GET, &reply), TT_INTERNAL);
    tt_buf_free(&out);
}

static bool s_is_about(const replicas_request_t *request, dijob_role_t role)
{
    const dijob_pod_t pod = {.role = (uint8_t)role};
    return replicas_check_about(request, &pod) == TT_OK;
}

/*  An aggregator may report, and its own learners only. */
static void test_who_may_report_whom(void **state)
{
    (void)state;
    char mine[] = "a1", another[] = "a2", asks[] = "a1";
    const replicas_request_t report = {.verb = REPLICAS_FAILED, .coordinator = asks},
                             make = {.verb = REPLICAS_CREATE, .coordinator = asks},
                             get = {.verb = REPLICAS_GET, .aggregator = asks};
    assert_true(s_is_about(&report, DIJOB_COORDINATOR) && s_is_about(&report, DIJOB_AGGREGATOR));
    assert_false(s_is_about(&report, DIJOB_LEARNER) || s_is_about(&make, DIJOB_AGGREGATOR));
    assert_true(s_is_about(&get, DIJOB_AGGREGATOR) && !s_is_about(&get, DIJOB_COORDINATOR));
    assert_string_equal(replicas_about(&report), "a1");
    assert_int_equal(replicas_check_about(&get, NULL), TT_NOT_FOUND);
    assert_string_equal(tt_err_text(), "pod: /a1 not exists in cache");
    const struct {
        dijob_role_t by, role;
        char *owner;
        bool may;
    } cases[] = {{DIJOB_COORDINATOR, DIJOB_COLLECTOR, NULL, true}, {DIJOB_COORDINATOR, DIJOB_AGGREGATOR, NULL, true},
        {DIJOB_COORDINATOR, DIJOB_DDP_LEARNER, another, true}, {DIJOB_COORDINATOR, DIJOB_COORDINATOR, NULL, false},
        {DIJOB_AGGREGATOR, DIJOB_DDP_LEARNER, mine, true}, {DIJOB_AGGREGATOR, DIJOB_DDP_LEARNER, another, false},
        {DIJOB_AGGREGATOR, DIJOB_DDP_LEARNER, NULL, false}, {DIJOB_AGGREGATOR, DIJOB_COLLECTOR, NULL, false}};
    for (size_t i = 0; i < TT_COUNT(cases); i++) {
        const dijob_pod_t pod = {.role = (uint8_t)cases[i].role, .owner_pod = cases[i].owner};
        assert_int_equal(replicas_may_report(&report, cases[i].by, "x", &pod) == TT_OK, cases[i].may);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_may_report_whom),
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_a_body_too_large),
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_an_answer_too_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
