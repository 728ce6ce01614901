/*  The query of /create: what ElasticDL's client sends, what is missing or wrong and how that is said. */
#include <stdio.h>
#include <string.h>
#include "elasticdl/request.h"
#include "tests/test.h"

#define GOOD "strategy=ParameterServer&n_worker=2&n_ps=1&img=mnist&name=job"

static void test_client(void **state)
{
    (void)state;
    elasticdl_request_t request;
    assert_ok(elasticdl_request_read(&request, GOOD));
    assert_int_equal(request.strategy, ELASTICDL_PARAMETER_SERVER);
    assert_int_equal(request.workers, 2);
    assert_int_equal(request.ps, 1);
    assert_string_equal(request.image, "mnist");
    assert_string_equal(request.name, "job");
    /* the client sends n_ps for every strategy; without a name it is `default`; other parameters are nobody's business */
    assert_ok(elasticdl_request_read(&request, "x=y&strategy=AllReduce&n_worker=3&n_ps=7"));
    assert_int_equal(request.strategy, ELASTICDL_ALL_REDUCE);
    assert_int_equal(request.ps, 0);
    assert_string_equal(request.name, "default");
    assert_string_equal(request.image, "");
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *query, *words;
    } cases[] = {
        {"", "strategy is missing"},
        {"strategy=&n_worker=1", "strategy is missing"},
        {"strategies=AllReduce&n_worker=1", "strategy is missing"},
        {"strategy=AllReduce", "n_worker is missing"},
        {"strategy=ParameterServer&n_worker=1", "n_ps is missing"},
        {"strategy=ParameterServer&n_worker=1&n_ps=0",
            "n_ps is 0; ParameterServer needs at least 1, without any it is AllReduce"},
        {"strategy=allreduce&n_worker=1", "strategy is 'allreduce'; AllReduce and ParameterServer are possible"},
        {"strategy=AllReduce&n_worker=0", "n_worker is '0'; a number from 1 to 256 is possible"},
        {"strategy=AllReduce&n_worker=-1", "n_worker is '-1'; a number from 1 to 256 is possible"},
        {"strategy=AllReduce&n_worker=+1", "n_worker is ' 1'; a number from 1 to 256 is possible"},
        {"strategy=AllReduce&n_worker=2x", "n_worker is '2x'; a number from 1 to 256 is possible"},
        {"strategy=AllReduce&n_worker=257", "n_worker is '257'; a number from 1 to 256 is possible"},
        {"strategy=AllReduce&n_worker=99999999999999999", "n_worker is longer than 15 characters"},
        {"strategy=ParameterServer&n_worker=200&n_ps=57",
            "n_worker and n_ps are 257 together; a task has at most 256 members"},
        {"strategy=AllReduce&n_worker=1&name=..",
            "name is '..'; lower case letters, digits and '-' within are possible, a letter "
            "first, at most 40"},
        {"strategy=AllReduce&n_worker=1&deadline_s=0", "deadline_s is '0'; a number from 1 to 2147483647 is possible"},
        {"strategy=AllReduce&n_worker=1&deadline_s=2h",
            "deadline_s is '2h'; a number from 1 to 2147483647 is possible"},
        {"strategy=AllReduce&n_worker=1&deadline_s=2147483648",
            "deadline_s is '2147483648'; a number from 1 to 2147483647 is possible"},
        {"strategy=AllReduce&n_worker=1&queue=a_b",
            "queue is 'a_b'; lower case letters, digits and '-' within are possible, at most 63"},
        {"strategy=AllReduce&n_worker=1&img=a%0ab", "img is not text"},
        {"strategy=AllReduce&n_worker=1&img=a%4", "img is not text"},
    };
    for (size_t i = 0; i < TT_COUNT(cases); i++) {
        elasticdl_request_t request = {.workers = 77};
        assert_int_equal(elasticdl_request_read(&request, cases[i].query), TT_INVALID);
        assert_string_equal(tt_err_text(), cases[i].words);
        assert_int_equal(request.workers, 77);
    }
}

static void test_names(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "", "-a", "a-", "A", "a.b", "a/b", "1a", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
    for (size_t i = 0; i < TT_COUNT(bad); i++)
        assert_int_equal(elasticdl_name_check(bad[i]), TT_INVALID);
    assert_ok(elasticdl_name_check("a"));
    assert_ok(elasticdl_name_check("mnist-2"));
    assert_ok(elasticdl_name_check("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"));
}

static void test_there_and_back(void **state)
{
    (void)state;
    const elasticdl_request_t request = {.strategy = ELASTICDL_PARAMETER_SERVER,
        .workers = 4,
        .ps = 2,
        .name = "job",
        .image = "hub.example/a b/c:1&2%"};
    char query[ELASTICDL_QUERY];
    elasticdl_request_t back;
    elasticdl_request_write(query, &request);
    assert_string_equal(
        query, "strategy=ParameterServer&n_worker=4&n_ps=2&img=hub.example%2Fa%20b%2Fc%3A1%262%25&name=job");
    assert_ok(elasticdl_request_read(&back, query));
    assert_string_equal(back.image, request.image);
    assert_string_equal(back.name, request.name);
    assert_int_equal(back.workers, 4);
    assert_int_equal(back.ps, 2);
    assert_int_equal(back.deadline_s, 0);
    elasticdl_request_t limited = request;
    limited.deadline_s = 3600;
    elasticdl_request_write(query, &limited);
    assert_ok(elasticdl_request_read(&back, query));
    assert_int_equal(back.deadline_s, 3600);
    assert_string_equal(back.queue, "");
    snprintf(limited.queue, sizeof limited.queue, "team-a");
    elasticdl_request_write(query, &limited);
    assert_ok(elasticdl_request_read(&back, query));
    assert_int_equal(back.deadline_s, 3600);
    assert_string_equal(back.queue, "team-a");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_client),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_there_and_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
