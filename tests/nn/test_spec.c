/*  Shapes that are refused, the layout of the flat vector, orthogonal initial weights. */
#include <math.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include "common/base/mem.h"
#include "tests/nn/fixture.h"

static void test_bad_shapes(void **state)
{
    const tt_net_spec_t bad[] = {
        {.obs = 0, .out = 1},
        {.obs = 1, .out = 0},
        {.obs = 1, .out = 1, .hidden_count = 1},
        {.obs = 1, .out = 1, .hidden_count = TT_HIDDEN_MAX + 1},
        {.obs = UINT32_MAX, .out = 1},
        {.obs = 1, .out = 1, .hidden_count = 2, .hidden = {65536, 65536}},
        {.obs = 1, .out = 1, .activation = (tt_nn_activation_t)7},
    };
    (void)state;
    tt_device_t *device = NULL;
    tt_net_t *net = NULL;
    assert_ok(tt_device_open(&device, "cpu", 0));
    for (size_t i = 0; i < TT_COUNT(bad); i++) {
        assert_int_equal(tt_net_new(&net, device, &bad[i], 1), TT_INVALID);
        assert_null(net);
        assert_true(strncmp(tt_err_text(), "network: ", 9) == 0);
    }
    assert_int_equal(tt_net_new(&net, device, &fixture_specs[0], 0), TT_INVALID);
    tt_device_close(&device);
    assert_null(device);
}

static void test_unknown_devices(void **state)
{
    (void)state;
    tt_device_t *device = NULL;
    assert_int_equal(tt_device_open(&device, "abacus", 0), TT_NOT_FOUND);
    assert_int_equal(tt_device_open(&device, "cpu", 1), TT_NOT_FOUND);
    assert_int_equal(setenv("TT_CPU", "mmx", 1), 0);
    assert_int_equal(tt_device_open(&device, "cpu", 0), TT_UNSUPPORTED);
    assert_non_null(strstr(tt_err_text(), "TT_CPU=mmx"));
    assert_int_equal(unsetenv("TT_CPU"), 0);
    assert_null(device);
}

static void test_device_memory(void **state)
{
    (void)state;
    tt_device_t *device = NULL;
    void *memory = NULL;
    float in[3] = {1.0f, -2.0f, 3.0f}, out[4] = {9.0f, 9.0f, 9.0f, 9.0f};
    assert_ok(tt_device_open(&device, "cpu", 0));
    assert_ok(tt_device_alloc(device, &memory, sizeof out));
    assert_ok(tt_device_put(device, memory, in, sizeof in));
    assert_ok(tt_device_get(device, out, memory, sizeof out));
    assert_ok(tt_device_sync(device));
    assert_memory_equal(out, in, sizeof in);
    assert_true(out[3] == 0.0f);
    tt_device_free(device, memory);
    tt_device_free(device, NULL);
    tt_device_close(&device);
}

/*  Tensors fill the vector without overlap. */
static void test_layout(void **state)
{
    (void)state;
    tt_device_t *device = NULL;
    assert_ok(tt_device_open(&device, "cpu", 0));
    for (size_t s = 0; s < fixture_spec_count; s++) {
        const size_t params = tt_net_param_count(&fixture_specs[s]);
        size_t count = 0, total = 0;
        tt_net_t *net = fixture_net(device, &fixture_specs[s], 1);
        const tt_tensor_t *tensors = tt_net_tensors(net, &count);
        char *seen = tt_new0(params);
        for (size_t t = 0; t < count; t++)
            for (size_t i = 0; i < (size_t)tensors[t].rows * tensors[t].cols; i++, total++) {
                assert_true(tensors[t].offset + i < params);
                assert_int_equal(seen[tensors[t].offset + i]++, 0);
            }
        assert_int_equal(total, params);
        assert_true(tt_net_stats_offset(&fixture_specs[s]) >= params);
        assert_true(tt_net_grad_count(&fixture_specs[s]) >= tt_net_stats_offset(&fixture_specs[s]) + TT_LOSS_STATS);
        assert_int_equal(tt_net_grad_count(&fixture_specs[s]) % 16, 0);
        assert_true((tt_net_log_std(net) != NULL) == (fixture_specs[s].log_std > 0));
        free(seen);
        tt_net_destroy(&net);
    }
    tt_device_close(&device);
}

/*  w^T w, or w w^T of a wide one, is gain^2 times the identity. */
static void check_orthogonal(const float *w, const tt_tensor_t *tensor, double gain)
{
    const size_t in = tensor->rows, out = tensor->cols, count = in < out ? in : out, n = in < out ? out : in;
    const size_t step = in < out ? 1 : out, next = in < out ? out : 1;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j <= i; j++) {
            double dot = 0;
            for (size_t k = 0; k < n; k++)
                dot += (double)w[i * next + k * step] * (double)w[j * next + k * step];
            const double expected = i == j ? gain * gain : 0;
            if (fabs(dot - expected) > 1e-6)
                fail_msg("%s: vectors %zu and %zu: %.9g, not %.9g", tensor->name, i, j, dot, expected);
        }
}

static void test_init(void **state)
{
    (void)state;
    tt_device_t *device = NULL;
    assert_ok(tt_device_open(&device, "cpu", 0));
    for (size_t s = 0; s < fixture_spec_count; s++) {
        const tt_net_spec_t *spec = &fixture_specs[s];
        tt_net_t *net = fixture_net(device, spec, 1);
        float *params = tt_array0(tt_net_param_count(spec), sizeof *params);
        size_t count = 0;
        const tt_tensor_t *tensors = tt_net_tensors(net, &count);
        assert_ok(tt_net_init(net, 5, 0.01f, -0.5f));
        assert_ok(tt_net_get(net, params));
        char head[24];
        snprintf(head, sizeof head, "%u.weight", 2 * spec->hidden_count);
        for (size_t t = 0; t < count; t++) {
            const char *part = strchr(tensors[t].name, '.') + 1;
            const float *at = params + tensors[t].offset;
            if (strcmp(part, "log_std") == 0)
                assert_true(at[0] == -0.5f && at[tensors[t].cols - 1] == -0.5f);
            else if (strstr(part, "bias"))
                assert_true(at[0] == 0.0f && at[tensors[t].cols - 1] == 0.0f);
            else if (strcmp(part, head) == 0)
                check_orthogonal(at, &tensors[t], tensors[t].name[0] == 'a' ? (double)0.01f : 1.0);
            else
                check_orthogonal(at, &tensors[t], sqrt(2.0));
        }
        free(params);
        tt_net_destroy(&net);
    }
    tt_device_close(&device);
}

/*  A fixed fingerprint: initial weights are part of what a seed means, on every machine. */
static void test_init_is_the_same_everywhere(void **state)
{
    (void)state;
    tt_device_t *device = NULL;
    tt_net_t *net = NULL;
    float params[9155];
    assert_ok(tt_device_open(&device, "cpu", 0));
    assert_ok(tt_net_new(&net, device, &fixture_specs[0], 1));
    assert_int_equal(tt_net_param_count(&fixture_specs[0]), TT_COUNT(params));
    uint64_t hash[2];
    for (uint64_t seed = 1; seed <= 2; seed++) {
        assert_ok(tt_net_init(net, seed, 0.01f, 0.0f));
        assert_ok(tt_net_get(net, params));
        const unsigned char *bytes = (const unsigned char *)params;
        hash[seed - 1] = 0xcbf29ce484222325u; /* FNV-1a */
        for (size_t i = 0; i < sizeof params; i++)
            hash[seed - 1] = (hash[seed - 1] ^ bytes[i]) * 0x100000001b3u;
    }
    assert_int_equal(hash[0], 0x5d733b71bbd6b22du);
    assert_true(hash[0] != hash[1]);
    tt_net_destroy(&net);
    tt_device_close(&device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_shapes),
        cmocka_unit_test(test_unknown_devices),
        cmocka_unit_test(test_device_memory),
        cmocka_unit_test(test_layout),
        cmocka_unit_test(test_init),
        cmocka_unit_test(test_init_is_the_same_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
