/*  The job as a learner sees it: what a row and a network are made of, and what is refused before anything is made. */
#include "learner/model.h"
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "tests/test.h"

/*  A resolved job; `space` and `more`: lines of YAML. */
static tt_status_t s_open(model_t *model, const char *space, const char *more)
{
    char *text = tt_sprintf("name: model\nenv: Mine-v0\n%snum_steps: 8\nnetwork: {hidden: [8]}\n"
                            "learner: {shards: 2, threads: 1}\nalgorithm: {name: ppo, minibatches: 1}\nspace: %s\n%s",
        strstr(more, "num_envs") ? "" : "num_envs: 4\n", space, more);
    const tt_status_t status = model_open(model, text, 0);
    if (status != TT_OK)
        assert_int_equal(model_check(text), status);
    free(text);
    return status;
}

static void s_refused(const char *space, const char *more, const char *part)
{
    model_t model;
    assert_int_equal(s_open(&model, space, more), TT_CONFIG);
    if (!strstr(tt_err_text(), part))
        fail_msg("'%s' lacks '%s'", tt_err_text(), part);
}

static void test_a_network_is_as_wide_as_its_spaces(void **state)
{
    (void)state;
    model_t model;
    assert_ok(s_open(&model,
        "{obs: \"{image: uint8[2, 2], mode: discrete(3), speed: float64}\", action: \"(multi_discrete(3, 2), "
        "float32[2], multi_binary[2])\", mask: true, env_state: 8}",
        "normalize: {obs: true}\n"));
    const tt_net_spec_t *spec = tt_net_spec(model.net);
    assert_int_equal(spec->obs, 4 + 3 + 1);
    assert_int_equal(spec->tower[0].out, 3 + 2 + 2 + 2 * 2);
    assert_int_equal(spec->tower[0].log_std, 2);
    assert_int_equal(model.columns->scaled, 1);
    assert_int_equal(model.columns->mask_bits, 3 + 2 + 2 * 2);
    model_close(&model);
    assert_ok(s_open(&model, "{obs: \"float32[4]\", action: discrete(2)}", ""));
    spec = tt_net_spec(model.net);
    assert_true(spec->obs == 4 && spec->tower[0].out == 2 && spec->tower[0].log_std == 0);
    model_close(&model);
}

static void test_there_must_be_something_to_normalise(void **state)
{
    (void)state;
    model_t model;
    const char *bytes = "{obs: \"(uint8[4], discrete(3))\", action: discrete(2)}";
    s_refused(bytes, "normalize: {obs: true}\n", "normalize.obs");
    s_refused(bytes, "normalize: {obs: true}\n", "no float32 numbers");
    assert_ok(s_open(&model, bytes, "normalize: {obs: false, reward: true}\n"));
    model_close(&model);
}

/*  A choice is four bytes in a segment, and as many floats as there are choices in front of a network. */
static void test_a_batch_of_rows_must_fit(void **state)
{
    (void)state;
    const char *wide = "{obs: discrete(60000), action: discrete(2)}";
    s_refused(wide, "num_envs: 2000\n", "num_steps");
    s_refused(wide, "num_envs: 2000\n", "as the networks read them");
    s_refused(wide, "num_envs: 2000\n", "4120 MiB");
    assert_ok(model_check("name: model\nenv: Mine-v0\nnum_envs: 2000\nnum_steps: 8\n"
                          "space: {obs: \"float32[6000]\", action: discrete(2)}\n")); /* read where it lies */
}

static void test_spaces_that_are_none(void **state)
{
    (void)state;
    s_refused("{obs: \"float32[4\", action: discrete(2)}", "", "space");
    s_refused("{obs: \"float32[4]\", action: \"uint8[2]\"}", "", "action");
    s_refused("{obs: \"float32[4]\", action: \"float32[2]\", mask: true}", "", "mask");
    s_refused("{obs: \"float32[4]\"}", "", "space.action");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_network_is_as_wide_as_its_spaces),
        cmocka_unit_test(test_there_must_be_something_to_normalise),
        cmocka_unit_test(test_a_batch_of_rows_must_fit),
        cmocka_unit_test(test_spaces_that_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
