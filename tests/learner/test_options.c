/*  The settings that algorithms share: each key is the same setting in every algorithm, and every algorithm's table fills in the
 *  whole of them. */
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "learner/algorithm.h"
#include "learner/algorithms/common_options.h"
#include "tests/test.h"

static const tt_cfg_field_t *s_row(const tt_algorithm_t *algorithm, const char *key)
{
    for (const tt_cfg_field_t *field = algorithm->fields; field->key; field++)
        if (strcmp(field->key, key) == 0)
            return field;
    return NULL;
}

static bool s_alike(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/*  Only the default, and whether a resumed run may change it, may differ. */
static void s_compare(const tt_algorithm_t *one, const tt_algorithm_t *other)
{
    for (const tt_cfg_field_t *a = one->fields; a->key; a++) {
        const tt_cfg_field_t *b = s_row(other, a->key);
        if (b && (a->type != b->type || a->min != b->min || a->max != b->max || a->null != b->null ||
                     !s_alike(a->choices, b->choices) || !s_alike(a->help, b->help) || !s_alike(a->rival, b->rival)))
            fail_msg("%s is not the same in %s and %s", a->key, one->name, other->name);
    }
}

static void test_a_key_is_the_same_everywhere(void **state)
{
    (void)state;
    size_t count = 0;
    const tt_algorithm_t *const *algorithms = tt_algorithms(&count);
    for (size_t i = 0; i < count; i++)
        for (size_t j = i + 1; j < count; j++)
            s_compare(algorithms[i], algorithms[j]);
}

static void s_claim(const tt_algorithm_t *algorithm, const char *yaml, void *cfg)
{
    tt_config_t *config = NULL;
    assert_ok(tt_config_parse(&config, yaml, strlen(yaml), "test.yaml"));
    assert_ok(tt_config_claim(config, algorithm->fields, cfg));
    assert_ok(tt_config_finish(config));
    tt_config_destroy(&config);
}

static void test_all_of_them_arrive(void **state)
{
    (void)state;
    static const char yaml[] =
        "algorithm: {learning_rate: 0.5, gamma: 0.25, max_grad_norm: 2, optimizer: sgd, adam_beta1: 0.125,\n"
        "  adam_beta2: 0.375, adam_eps: 0.625, rmsprop_alpha: 0.75, momentum: 0.875, head_gain: 3}\n";
    size_t count = 0;
    const tt_algorithm_t *const *algorithms = tt_algorithms(&count);
    for (size_t i = 0; i < count; i++) {
        const tt_algorithm_t *algorithm = algorithms[i];
        common_cfg_t *cfg = tt_new0(algorithm->cfg_size);
        s_claim(algorithm, yaml, cfg);
        const tt_opt_spec_t opt = common_opt_spec(cfg);
        assert_true(cfg->learning_rate == 0.5f && algorithm->gamma(cfg) == 0.25 && algorithm->head_gain(cfg) == 3);
        assert_true(opt.kind == TT_OPT_SGD && opt.max_norm == 2 && opt.eps == 0.625f);
        assert_true(opt.beta1 == 0.125f && opt.beta2 == 0.375f && opt.alpha == 0.75f && opt.momentum == 0.875f);
        free(cfg);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_key_is_the_same_everywhere),
        cmocka_unit_test(test_all_of_them_arrive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
