#include <stdlib.h>
#include "k8s/dijob/dijob.h"
#include "tests/test.h"

static void test_roles_are_found_by_their_label(void **state)
{
    (void)state;
    for (int role = 0; role < DIJOB_ROLES; role++)
        assert_int_equal(dijob_role_find(dijob_role_label((dijob_role_t)role)), role);
    assert_int_equal(dijob_role_find("evaluator"), DIJOB_ROLES);
    assert_int_equal(dijob_role_find(NULL), DIJOB_ROLES);
}

static void test_a_role_has_its_port(void **state)
{
    (void)state;
    assert_string_equal(dijob_role_port_env(DIJOB_COORDINATOR), "COORDINATOR_PORT");
    assert_int_equal(dijob_role_port(DIJOB_COORDINATOR), 22273);
    assert_string_equal(dijob_role_port_env(DIJOB_DDP_LEARNER), "LEARNER_PORT");
    assert_int_equal(dijob_role_port(DIJOB_DDP_LEARNER), 22271);
    assert_string_equal(dijob_role_title(DIJOB_AGGREGATOR), "Aggregator");
}

static void test_two_phases_are_final(void **state)
{
    (void)state;
    int final = 0;
    for (int phase = 0; phase < DIJOB_PHASES; phase++)
        final += dijob_phase_final((dijob_phase_t)phase);
    assert_int_equal(final, 2);
    assert_true(dijob_phase_final(DIJOB_PHASE_SUCCEEDED) && dijob_phase_final(DIJOB_PHASE_FAILED));
    assert_string_equal(dijob_phase_name(DIJOB_PHASE_RESCHEDULING), "Rescheduling");
}

static void test_dump_is_canonical_and_keeps_quantities(void **state)
{
    (void)state;
    json_t *value = json_pack("{s:f, s:i, s:{s:f, s:f}}", "z", 0.1, "a", 7, "m", "y", 2.5, "x", 1e21);
    char *text = kube_dump(value);
    assert_string_equal(text, "{\"a\":7,\"m\":{\"x\":1e21,\"y\":2.5},\"z\":0.1}");
    free(text);
    json_decref(value);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_roles_are_found_by_their_label),
        cmocka_unit_test(test_a_role_has_its_port),
        cmocka_unit_test(test_two_phases_are_final),
        cmocka_unit_test(test_dump_is_canonical_and_keeps_quantities),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
