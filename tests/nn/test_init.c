/*  Uniform initial weights. The orthogonal ones are test_spec.c's. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "tests/nn/recurrent_fixture.h"

enum { SEED = 5, MANY = 64 /* numbers that are enough to speak of their spread */ };
#define LOG_STD0 (-0.5f)

static const float s_gain[TT_TOWERS_MAX] = {0.01f, 1.0f, 0.5f, 2.0f, 1.0f, 3.0f, 1.0f, 0.25f};

/*  Within the bound, on both sides of 0, and as far apart as uniform numbers are: the square's mean is bound^2 / 3. */
static void s_check_spread(const char *name, const float *values, size_t count, double bound)
{
    double sum = 0, squares = 0, most = 0;
    for (size_t i = 0; i < count; i++) {
        sum += (double)values[i];
        squares += (double)values[i] * (double)values[i];
        most = fmax(most, fabs((double)values[i]));
    }
    if (most > bound * 1.000001 || most == 0)
        fail_msg("%s: up to %.9g, the bound is %.9g", name, most, bound);
    if (count < MANY)
        return;
    const double n = (double)count, third = bound * bound / 3, off = 5 / sqrt(n);
    if (most < bound * (1 - 10 / n) || fabs(sum / n) > off * sqrt(third) || fabs(squares / n / third - 1) > off)
        fail_msg("%s: mean %.9g, mean square %.9g, most %.9g; bound %.9g", name, sum / n, squares / n, most, bound);
}

/*  The layers of a tower, whose tensors begin at *at. */
static void s_check_tower(
    const tt_net_spec_t *spec, uint32_t t, double gain, const tt_tensor_t **at, const float *params)
{
    const tt_tower_t *tower = &spec->tower[t];
    for (uint32_t l = 0; l < tt_spec_layers(spec, t); l++) {
        const tt_tensor_t *weight = *at, *bias = weight + 1;
        *at += tt_layer_tensors(weight->kind);
        if (weight->kind == TT_TENSOR_TABLE)
            continue; /* normals, whatever the init: test_spec.c */
        const bool head = tower->kind == TT_TOWER_MLP && l == tower->hidden_count;
        const uint32_t inputs = tt_tower_recurs(tower->kind) ? tower->hidden[0] : weight->rows;
        const double bound = (head ? gain : 1) / sqrt(inputs);
        if (weight->kind == TT_TENSOR_NORM) {
            assert_true(params[weight->offset] == 1 && params[bias->offset] == 0);
            continue;
        }
        s_check_spread(weight->name, params + weight->offset, (size_t)weight->rows * weight->cols, bound);
        s_check_spread(bias->name, params + bias->offset, bias->cols, bound);
    }
    for (uint32_t a = 0; a < tower->log_std; a++)
        assert_true(params[(*at)->offset + a] == LOG_STD0);
    *at += tower->log_std > 0;
    for (uint32_t l = 0; tower->noise > 0 && l < tt_spec_layers(spec, t); l++, *at += 2)
        for (size_t i = 0; i < (size_t)(*at)->rows * (*at)->cols; i++) {
            const float deviation = (float)((double)tower->noise / sqrt((*at)->rows));
            assert_true(params[(*at)->offset + i] == deviation);
            assert_true(params[(*at)[1].offset + i % (*at)->cols] == deviation);
        }
}

static float *s_params(const place_t *place, tt_net_t *net, uint32_t set)
{
    float *params = tt_array0(tt_net_param_count(tt_net_spec(net)), sizeof *params);
    assert_ok(tt_net_get(net, place->stream, set, params));
    return params;
}

static void s_check(const place_t *place, tt_net_spec_t spec)
{
    spec.init = TT_NN_UNIFORM;
    tt_net_t *net = fixture_net(place, &spec);
    assert_ok(tt_net_init(net, place->stream, SEED, s_gain, LOG_STD0, TT_NO_PROGRESS));
    float *params = s_params(place, net, 0);
    size_t count;
    const tt_tensor_t *at = tt_net_tensors(net, &count), *end = at + count;
    for (uint32_t t = 0; t < spec.towers; t++)
        s_check_tower(&spec, t, (double)s_gain[t], &at, params);
    assert_ptr_equal(at, end);
    for (uint32_t set = 1; set < spec.sets; set++) {
        float *other = s_params(place, net, set);
        assert_memory_equal(params, other, tt_net_param_count(&spec) * sizeof *params);
        free(other);
    }
    free(params);
    tt_net_destroy(&net);
}

static void test_uniform(void **state)
{
    (void)state;
    place_t place;
    fixture_open(&place, 1);
    for (size_t s = 0; s < fixture_spec_count; s++)
        s_check(&place, fixture_specs[s]);
    for (size_t s = 0; s < recurrent_spec_count; s++)
        s_check(&place, recurrent_specs[s]);
    fixture_close(&place);
}

static uint64_t s_hash(const place_t *place, tt_net_t *net, uint64_t seed)
{
    assert_ok(tt_net_init(net, place->stream, seed, s_gain, LOG_STD0, TT_NO_PROGRESS));
    float *params = s_params(place, net, 0);
    const unsigned char *bytes = (const unsigned char *)params;
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    for (size_t i = 0; i < tt_net_param_count(tt_net_spec(net)) * sizeof *params; i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3u;
    free(params);
    return hash;
}

/*  A fixed fingerprint, as that of the orthogonal ones; and another seed gives others. */
static void test_uniform_is_the_same_everywhere(void **state)
{
    (void)state;
    place_t place;
    tt_net_spec_t spec = fixture_specs[0];
    spec.init = TT_NN_UNIFORM;
    fixture_open(&place, 1);
    tt_net_t *net = fixture_net(&place, &spec);
    const uint64_t first = s_hash(&place, net, 1), second = s_hash(&place, net, 2);
    assert_int_equal(first, 0x5519a8bda12921c3u);
    assert_true(first != second && s_hash(&place, net, 1) == first);
    tt_net_destroy(&net);
    fixture_close(&place);
}

static void test_unknown(void **state)
{
    (void)state;
    place_t place;
    tt_net_spec_t spec = fixture_specs[0];
    spec.init = (tt_nn_init_t)7;
    fixture_open(&place, 1);
    tt_net_t *net = fixture_net(&place, &spec);
    assert_int_equal(tt_net_init(net, place.stream, SEED, s_gain, LOG_STD0, TT_NO_PROGRESS), TT_INVALID);
    assert_string_equal(tt_err_text(), "init 7: there are 2");
    tt_net_destroy(&net);
    fixture_close(&place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_uniform),
        cmocka_unit_test(test_uniform_is_the_same_everywhere),
        cmocka_unit_test(test_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
