/*  NUM_WORKERS and TF_CONFIG of every member, byte for byte. */
#include <stdlib.h>
#include "elasticdl/cluster.h"
#include "tests/test.h"

static const char s_all[][ELASTICDL_ADDRESS] = {"10.0.0.9:1234", "10.0.0.7:1234", "10.0.0.8:1234"};

static void s_is(const elasticdl_cluster_t *cluster, int member, const char *expected)
{
    json_t *config = elasticdl_tf_config(cluster, member);
    char *text = json_dumps(config, JSON_COMPACT);
    assert_string_equal(text, expected);
    free(text);
    json_decref(config);
}

static void test_parameter_server(void **state)
{
    (void)state;
    const elasticdl_cluster_t cluster = {.ps = 1, .workers = 2, .addresses = s_all};
#define CLUSTER "{\"cluster\":{\"worker\":[\"10.0.0.7:1234\",\"10.0.0.8:1234\"],\"ps\":[\"10.0.0.9:1234\"]}"
    s_is(&cluster, 0, CLUSTER ",\"task\":{\"type\":\"ps\",\"index\":0}}");
    s_is(&cluster, 1, CLUSTER ",\"task\":{\"type\":\"worker\",\"index\":0}}");
    s_is(&cluster, 2, CLUSTER ",\"task\":{\"type\":\"worker\",\"index\":1}}");
}

static void test_all_reduce(void **state)
{
    (void)state;
    const elasticdl_cluster_t cluster = {.ps = 0, .workers = 2, .addresses = s_all + 1};
    s_is(&cluster, 1,
        "{\"cluster\":{\"worker\":[\"10.0.0.7:1234\",\"10.0.0.8:1234\"]},\"task\":{\"type\":\"worker\",\"index\":1}}");
}

static void test_body(void **state)
{
    (void)state;
    const elasticdl_cluster_t cluster = {.ps = 0, .workers = 1, .addresses = s_all};
    char *body = elasticdl_config_body(&cluster, 0, "10.0.0.1", 3);
    assert_string_equal(body,
        "{\"NUM_WORKERS\":1,\"TF_CONFIG\":{\"cluster\":{\"worker\":[\"10.0.0.9:1234\"]},\"task\":{\"type\":"
        "\"worker\",\"index\":0}},\"MASTER\":\"10.0.0.1\",\"SET_ID\":3}");
    free(body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parameter_server),
        cmocka_unit_test(test_all_reduce),
        cmocka_unit_test(test_body),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
