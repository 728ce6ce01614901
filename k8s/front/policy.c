#include "k8s/front/policy.h"
#include <stdio.h>

enum { WHERE_ROOM = 80 };

/*  What a rule asks about a code. */
typedef struct {
    tt_code_set_t values;
    bool others, fails; /* others: NotIn */
} rule_t;

static void s_values(char **wrong, const json_t *holder, const char *where, rule_t *rule)
{
    const json_t *values = parts_array(holder, "values");
    const size_t count = json_array_size(values);
    if (count < 1 || count > POLICY_VALUES_MAX)
        SPEC_WRONG(wrong, "%s.values: expected 1 to %d exit codes", where, POLICY_VALUES_MAX);
    for (size_t i = 0; i < count && count <= POLICY_VALUES_MAX; i++) {
        const json_t *value = json_array_get(values, i);
        const json_int_t code = json_is_integer(value) ? json_integer_value(value) : -1;
        if (code < 0 || code >= TT_EXIT_CODES)
            SPEC_WRONG(wrong, "%s.values[%zu]: expected a number from 0 to %d", where, i, TT_EXIT_CODES - 1);
        else
            tt_code_set_put(&rule->values, (int)code, true);
    }
    if (!rule->others && tt_code_set_has(&rule->values, 0))
        SPEC_WRONG(wrong, "%s.values: 0 is no failure", where);
}

static void s_rule(char **wrong, const json_t *item, size_t index, rule_t *rule)
{
    static const char *const actions[] = {"", "FailJob", "Count"}, *const operators[] = {"", "In", "NotIn"};
    char where[WHERE_ROOM];
    snprintf(where, sizeof where, "spec.podFailurePolicy.rules[%zu]", index);
    const size_t action = spec_word(wrong, item, where, "action", actions, TT_COUNT(actions));
    if (action == 0)
        SPEC_WRONG(wrong, "expected %s.action", where);
    rule->fails = action == 1;
    const json_t *holder = parts_object(item, "onExitCodes");
    if (!holder)
        SPEC_WRONG(wrong, "expected %s.onExitCodes", where);
    snprintf(where, sizeof where, "spec.podFailurePolicy.rules[%zu].onExitCodes", index);
    const size_t operator_ = spec_word(wrong, holder, where, "operator", operators, TT_COUNT(operators));
    if (operator_ == 0)
        SPEC_WRONG(wrong, "expected %s.operator", where);
    rule->others = operator_ == 2;
    s_values(wrong, holder, where, rule);
}

bool policy_read(char **wrong, const json_t *spec, tt_code_set_t *codes)
{
    const json_t *policy = json_object_get(spec, "podFailurePolicy");
    if (!policy || json_is_null(policy))
        return false;
    const json_t *rules = parts_array(policy, "rules");
    if (!rules || json_array_size(rules) > POLICY_RULES_MAX) {
        SPEC_WRONG(wrong, "spec.podFailurePolicy.rules: expected at most %d rules", POLICY_RULES_MAX);
        return true;
    }
    for (size_t i = json_array_size(rules); i-- > 0;) { /* backwards, so that the first has the last word */
        rule_t rule = {0};
        s_rule(wrong, json_array_get(rules, i), i, &rule);
        for (int code = 1; code < TT_EXIT_CODES; code++)
            if (tt_code_set_has(&rule.values, code) != rule.others)
                tt_code_set_put(codes, code, rule.fails);
    }
    return true;
}
