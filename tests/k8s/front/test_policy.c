/*  spec.podFailurePolicy: which exit codes end a job, and in which words a policy is refused. */
#include "k8s/front/policy.h"
#include "tests/k8s/json.h"

#define RULES(...) "{'podFailurePolicy':{'rules':[" __VA_ARGS__ "]}}"
#define RULE(action, operator_, list) \
    "{'action':'" action "','onExitCodes':{'operator':'" operator_ "','values':[" list "]}}"

static const int s_all[] = {0, 1, 2, 75, 78, 127, 137, 255, 256, -1};

/*  Those of s_all that end the job, "2 78"; 78 does where nothing is said. */
static void s_assert(const char *spec, const char *want)
{
    json_t *object = json_of(spec);
    tt_code_set_t codes = {0};
    char *wrong = NULL, *got = tt_strdup("");
    tt_code_set_put(&codes, 78, true);
    policy_read(&wrong, object, &codes);
    assert_null(wrong);
    for (size_t i = 0; i < TT_COUNT(s_all); i++)
        if (tt_code_set_has(&codes, s_all[i])) {
            char *longer = tt_sprintf("%s%s%d", got, *got ? " " : "", s_all[i]);
            free(got);
            got = longer;
        }
    assert_string_equal(got, want);
    free(got);
    json_decref(object);
}

static void test_the_first_rule_that_a_code_meets_decides(void **state)
{
    (void)state;
    s_assert("{}", "78");
    s_assert("{'podFailurePolicy':null}", "78");
    s_assert(RULES(), "78");
    s_assert(RULES(RULE("FailJob", "In", "2,127,255")), "2 78 127 255");
    s_assert(RULES(RULE("FailJob", "NotIn", "0,75,137")), "1 2 78 127 255");
    s_assert(RULES(RULE("Count", "In", "78")), "");
    s_assert(RULES(RULE("Count", "In", "2") "," RULE("FailJob", "In", "1,2")), "1 78");
    s_assert(RULES(RULE("FailJob", "In", "2") "," RULE("Count", "NotIn", "1")), "2");
    s_assert(RULES(RULE("FailJob", "NotIn", "1") "," RULE("FailJob", "In", "1")), "1 2 75 78 127 137 255");
}

static void s_refused(const char *spec, const char *want)
{
    json_t *object = json_of(spec);
    tt_code_set_t codes = {0};
    char *wrong = NULL;
    assert_true(policy_read(&wrong, object, &codes));
    assert_string_equal(wrong ? wrong : "", want);
    free(wrong);
    json_decref(object);
}

static void test_what_is_wrong_is_said(void **state)
{
    (void)state;
#define FIRST "spec.podFailurePolicy.rules[0]"
    s_refused("{'podFailurePolicy':[]}", "spec.podFailurePolicy.rules: expected at most 20 rules");
    s_refused("{'podFailurePolicy':{}}", "spec.podFailurePolicy.rules: expected at most 20 rules");
    s_refused(RULES("7"), "expected " FIRST ".action");
    s_refused(RULES("{'onExitCodes':{'operator':'In','values':[1]}}"), "expected " FIRST ".action");
    s_refused(RULES("{'action':'FailJob'}"), "expected " FIRST ".onExitCodes");
    s_refused(RULES("{'action':'FailJob','onExitCodes':{'values':[1]}}"), "expected " FIRST ".onExitCodes.operator");
    s_refused(RULES("{'action':'FailJob','onExitCodes':{'operator':'In'}}"),
        FIRST ".onExitCodes.values: expected 1 to 255 exit codes");
    s_refused(RULES(RULE("FailJob", "In", "")), FIRST ".onExitCodes.values: expected 1 to 255 exit codes");
    s_refused(RULES(RULE("FailJob", "In", "0")), FIRST ".onExitCodes.values: 0 is no failure");
    s_refused(RULES(RULE("FailJob", "In", "1,256")), FIRST ".onExitCodes.values[1]: expected a number from 0 to 255");
    s_refused(RULES(RULE("FailJob", "In", "-1")), FIRST ".onExitCodes.values[0]: expected a number from 0 to 255");
    s_refused(RULES(RULE("FailJob", "In", "'1'")), FIRST ".onExitCodes.values[0]: expected a number from 0 to 255");
    s_refused(RULES(RULE("failjob", "In", "1")),
        FIRST ".action: 'failjob' is none of FailJob, Count; did you mean 'FailJob'?");
    s_refused(RULES(RULE("FailJob", "Is", "1")),
        FIRST ".onExitCodes.operator: 'Is' is none of In, NotIn; did you mean 'In'?");
#undef FIRST
}

/*  Many at once: no more are read than may be. */
static void test_a_policy_has_bounds(void **state)
{
    (void)state;
    json_t *spec = json_object(), *policy = json_object(), *rules = json_array();
    char *wrong = NULL;
    tt_code_set_t codes = {0};
    json_object_set_new(spec, "podFailurePolicy", policy);
    json_object_set_new(policy, "rules", rules);
    for (int i = 0; i < 21; i++)
        json_array_append_new(rules, json_of(RULE("FailJob", "In", "1")));
    assert_true(policy_read(&wrong, spec, &codes));
    assert_string_equal(wrong, "spec.podFailurePolicy.rules: expected at most 20 rules");
    assert_false(tt_code_set_has(&codes, 1));
    free(wrong);
    wrong = NULL;
    json_array_remove(rules, 20);
    assert_true(policy_read(&wrong, spec, &codes));
    assert_null(wrong);
    json_t *values = json_object_get(json_object_get(json_array_get(rules, 0), "onExitCodes"), "values");
    for (int i = 0; i < 255; i++)
        json_array_append_new(values, json_integer(i));
    assert_true(policy_read(&wrong, spec, &codes));
    assert_string_equal(wrong, "spec.podFailurePolicy.rules[0].onExitCodes.values: expected 1 to 255 exit codes");
    free(wrong);
    json_decref(spec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_first_rule_that_a_code_meets_decides),
        cmocka_unit_test(test_what_is_wrong_is_said),
        cmocka_unit_test(test_a_policy_has_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
