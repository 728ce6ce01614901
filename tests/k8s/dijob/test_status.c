/*  How a pod counts, and the rules of conditions in both shapes. */
#include <stdlib.h>
#include "tests/k8s/dijob/cluster.h"

static void test_how_a_pod_counts(void **state)
{
    static const struct {
        pod_phase_t phase;
        dijob_main_t main;
        bool deleting;
        char counts;
        bool alive;
    } rows[] = {
        {POD_PENDING, MAIN_NONE, false, 0, true},
        {POD_PENDING, MAIN_WAITING, false, 0, true},
        {POD_RUNNING, MAIN_RUNNING, false, 'a', true},
        {POD_RUNNING, MAIN_WAITING, false, 'a', true}, /* between two starts */
        {POD_RUNNING, MAIN_NONE, false, 'a', true},
        {POD_RUNNING, MAIN_COMPLETED, false, 's', false}, /* a sidecar runs on */
        {POD_RUNNING, MAIN_ERROR, false, 'f', false},
        {POD_RUNNING, MAIN_RUNNING, true, 0, false},
        {POD_SUCCEEDED, MAIN_COMPLETED, false, 's', false},
        {POD_SUCCEEDED, MAIN_COMPLETED, true, 0, false},
        {POD_FAILED, MAIN_ERROR, false, 'f', false},
        {POD_FAILED, MAIN_NONE, false, 'f', false}, /* evicted before it began */
        {POD_FAILED, MAIN_ERROR, true, 0, false},
        {POD_UNKNOWN, MAIN_RUNNING, false, 0, true},
    };
    (void)state;
    for (size_t i = 0; i < TT_COUNT(rows); i++) {
        const dijob_pod_t pod = {
            .phase = (uint8_t)rows[i].phase, .main = (uint8_t)rows[i].main, .deleting = rows[i].deleting};
        assert_int_equal(dijob_pod_counts(&pod), rows[i].counts);
        assert_int_equal(dijob_pod_alive(&pod), rows[i].alive);
    }
}

static void s_is(const json_t *conditions, const char *expected)
{
    char *text = kube_dump(conditions);
    assert_string_equal(text, expected);
    free(text);
}

#define AT(time) "\"2027-01-15T08:00:0" #time "Z\""
#define ENTRY(type, status, reason, message, changed, updated)                                          \
    "{\"lastTransitionTime\":" AT(changed) ",\"lastUpdateTime\":" AT(updated) ",\"message\":\"" message \
                                                                              "\",\"reason\":\"" reason \
                                                                              "\",\"status\":\"" status \
                                                                              "\",\"type\":\"" type "\"}"

static void test_conditions_of_roles(void **state)
{
    json_t *conditions = json_array();
    const int64_t t = 1800000000;
    (void)state;
    dijob_condition_set(conditions, false, "Created", "R", "m", t);
    dijob_condition_set(conditions, false, "Created", "R", "other words", t + 1); /* dropped */
    s_is(conditions, "[" ENTRY("Created", "True", "R", "m", 0, 0) "]");
    dijob_condition_set(conditions, false, "Created", "S", "n", t + 1); /* another reason: the transition is older */
    s_is(conditions, "[" ENTRY("Created", "True", "S", "n", 0, 1) "]");
    dijob_condition_set(conditions, false, "Running", "R", "m", t + 2);
    dijob_condition_set(conditions, false, "Succeeded", "R", "m", t + 3);
    s_is(conditions, "[" ENTRY("Created", "True", "S", "n", 0, 1) "," ENTRY(
                         "Running", "False", "R", "m", 3, 3) "," ENTRY("Succeeded", "True", "R", "m", 3, 3) "]");
    dijob_condition_set(conditions, false, "Running", "R", "m", t + 4); /* False before: True from now on */
    s_is(conditions, "[" ENTRY("Created", "True", "S", "n", 0, 1) "," ENTRY(
                         "Succeeded", "True", "R", "m", 3, 3) "," ENTRY("Running", "True", "R", "m", 4, 4) "]");
    json_decref(conditions);
}

static void test_conditions_of_tasks(void **state)
{
    json_t *conditions = json_array();
    const int64_t t = 1800000000;
    (void)state;
    dijob_condition_set(conditions, true, "Pending", "R", "m", t);
    dijob_condition_set(conditions, true, "Starting", "R", "m", t + 1);
    dijob_condition_set(conditions, true, "Running", "R", "m", t + 2); /* turns every other one */
    s_is(conditions, "[" ENTRY("Pending", "False", "R", "m", 1, 1) "," ENTRY(
                         "Starting", "False", "R", "m", 2, 2) "," ENTRY("Running", "True", "R", "m", 2, 2) "]");
    dijob_condition_set(conditions, true, "Starting", "R", "m", t + 3);
    s_is(conditions, "[" ENTRY("Pending", "False", "R", "m", 1, 1) "," ENTRY(
                         "Running", "False", "R", "m", 3, 3) "," ENTRY("Starting", "True", "R", "m", 3, 3) "]");
    json_decref(conditions);
}

static void test_foreign_entries_are_borne(void **state)
{
    json_t *conditions = json_loads("[1,null,{},{\"type\":7},{\"type\":\"Running\",\"status\":3}]", 0, NULL);
    (void)state;
    dijob_condition_set(conditions, false, "Failed", "R", "m", 1800000000);
    dijob_condition_set(conditions, true, "Running", "R", "m", 1800000000);
    assert_int_equal(json_array_size(conditions), 6);
    json_decref(conditions);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_how_a_pod_counts),
        cmocka_unit_test(test_conditions_of_roles),
        cmocka_unit_test(test_conditions_of_tasks),
        cmocka_unit_test(test_foreign_entries_are_borne),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
