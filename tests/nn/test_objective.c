/*  Objectives: which stages there may be, what each forward of a pass sees, what of the gradient is zero, what rides. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "tests/nn/fixture.h"
#include "tests/nn/reference.h"

static const char *const s_builds[] = {"portable", "avx2", "avx512"};

static void no_loss(const void *params, const void *const *input, const tt_loss_block_t *block)
{
    (void)params;
    (void)input;
    (void)block;
}

static void test_bad_objectives(void **state)
{
    const tt_net_spec_t *spec = &fixture_specs[13]; /* towers 0 and 1 are trunks; two sets */
    const struct {
        tt_objective_t objective;
        const char *text;
    } bad[] = {
        {{.stages = 0}, "0 stages"},
        {{.stages = TT_STAGES_MAX + 1}, "13 stages"},
        {{.stages = 1, .stage = {{.tower = 6}}}, "stage 0: tower 6 of a network of 6"},
        {{.stages = 1, .stage = {{.tower = 1}}}, "high is a trunk"},
        {{.stages = 1, .stage = {{.tower = 2, .set = 2}}}, "set 2 of 2"},
        {{.stages = 1, .stage = {{.tower = 2, .frame = TT_FRAMES}}}, "frame 2"},
        {{.stages = 1, .stage = {{.tower = 2, .set = 1, .grad = true}}}, "trains x: only set 0"},
        {{.stages = 1, .stage = {{.tower = 2, .frame = TT_NEXT, .grad = true}}}, "trains x: only set 0"},
        {{.stages = 2, .stage = {{.tower = 2, .grad = true}, {.tower = 2}}},
            "stages 0 and 1 are the same forward of x"},
    };
    (void)state;
    place_t place;
    fixture_open(&place, 1);
    tt_net_t *net = fixture_net(&place, spec);
    float *grad = tt_array0(tt_net_grad_count(spec), sizeof *grad);
    for (size_t i = 0; i < TT_COUNT(bad); i++) {
        tt_objective_t objective = bad[i].objective;
        objective.name = "bad";
        objective.loss = no_loss;
        const tt_pass_t pass = {.objective = &objective, .rows = 1};
        assert_int_equal(tt_objective_check(&objective, spec), TT_INVALID);
        assert_int_equal(fixture_pass(&place, net, &pass, NULL, NULL, grad), TT_INVALID);
        if (strncmp(tt_err_text(), "objective bad: ", 15) != 0 || !strstr(tt_err_text(), bad[i].text))
            fail_msg("'%s' does not say '%s'", tt_err_text(), bad[i].text);
    }
    const tt_objective_t twice = {.name = "twice",
        .stages = 3,
        .stage = {{.tower = 3, .grad = true}, {.tower = 1}, {.tower = 2, .grad = true}},
        .loss = no_loss};
    assert_int_equal(tt_objective_check(&twice, &fixture_specs[16]), TT_INVALID);
    assert_string_equal(
        tt_err_text(), "objective twice: stages 0 and 2 both train the head of advantage, which q reads");
    const tt_objective_t deep = {.name = "deep",
        .stages = 2,
        .stage = {{.tower = 5, .grad = true}, {.tower = 2, .grad = true}},
        .loss = no_loss};
    assert_int_equal(tt_objective_check(&deep, &fixture_specs[33]), TT_INVALID);
    assert_string_equal(tt_err_text(), "objective deep: stages 0 and 1 both train the head of v, which m reads");
    const tt_objective_t expected = {
        .name = "expected", .stages = 1, .stage = {{.tower = 1, .grad = true}}, .loss = no_loss};
    assert_int_equal(tt_objective_check(&expected, &fixture_specs[33]), TT_INVALID);
    assert_string_equal(tt_err_text(),
        "objective expected: stage 0: no gradient goes through expected: train logits, of which it is made");
    const tt_objective_t fine = {
        .name = "fine", .stages = 2, .stage = {{.tower = 2}, {.tower = 2, .frame = TT_NEXT}}, .loss = no_loss};
    rows_t rows = fixture_rows(spec, 2);
    const tt_pass_t pass = {.objective = &fine, .row = rows.row, .rows = 2};
    assert_ok(fixture_pass(&place, net, &pass, &rows, &rows, grad));
    assert_int_equal(fixture_pass(&place, net, &pass, &rows, NULL, grad), TT_INVALID);
    assert_non_null(strstr(tt_err_text(), "stage 1 reads frame 1"));
    fixture_rows_free(&rows);
    free(grad);
    tt_net_destroy(&net);
    fixture_close(&place);
}

/* ---- what the forwards see ----------------------------------------------------------------------------------------- */

/*  A loss that takes down the heads of all stages and trains the marked ones with numbers of their own. */
typedef struct {
    const tt_net_spec_t *spec;
    tt_objective_t objective;
    float *seen[TT_STAGES_MAX]; /* [rows][A], by the row's number */
} witness_t;

static void witness_loss(const void *params, const void *const *input, const tt_loss_block_t *block)
{
    (void)input;
    const witness_t *w = *(witness_t *const *)params;
    for (uint32_t s = 0; s < w->objective.stages; s++) {
        const uint32_t t = w->objective.stage[s].tower, A = w->spec->tower[t].out;
        assert_true((block->d_head[s] != NULL) == w->objective.stage[s].grad);
        assert_true((block->log_std[s] != NULL) == (w->spec->tower[t].log_std > 0));
        assert_true((block->d_log_std[s] != NULL) == (w->spec->tower[t].log_std && w->objective.stage[s].grad));
        for (uint32_t i = 0; i < A * TT_BLOCK; i++) {
            const uint32_t a = i / TT_BLOCK, r = i % TT_BLOCK;
            if (r < block->rows)
                w->seen[s][block->row[r] * A + a] = block->head[s][i];
            else
                assert_true(block->head[s][i] == 0.0f);
            if (block->d_head[s])
                block->d_head[s][i] = r < block->rows ? fixture_target(block->row[r], t * 100 + a) : 0.0f;
        }
    }
}

/*  Is it of `train` (bits), and gives no other one of these, which is made of it, its gradient? */
static bool is_trained(const tt_net_spec_t *spec, uint32_t t, uint32_t train)
{
    if (!(train >> t & 1) || spec->tower[t].kind == TT_TOWER_ATOMS)
        return false;
    for (uint32_t q = tt_spec_made_of(spec, t); q < spec->towers; q = tt_spec_made_of(spec, q))
        if ((train >> q & 1) && spec->tower[q].kind != TT_TOWER_ATOMS)
            return false;
    return true;
}

/*  Every tower in every set and frame, as many as fit; those in `train` (bits) trained, but none of which another one of them
 *  is made. */
static void fill_witness(witness_t *w, const tt_net_spec_t *spec, uint32_t train, size_t rows)
{
    *w = (witness_t){.spec = spec, .objective = {.name = "witness", .loss = witness_loss}};
    const uint32_t sets = spec->sets ? spec->sets : 1;
    for (uint32_t i = 0; i < TT_FRAMES * sets * spec->towers && w->objective.stages < TT_STAGES_MAX; i++) {
        const uint32_t t = i % spec->towers, view = i / spec->towers;
        if (spec->tower[t].out == 0)
            continue;
        w->seen[w->objective.stages] = tt_array0(rows * spec->tower[t].out, sizeof(float));
        w->objective.stage[w->objective.stages++] = (tt_objective_stage_t){.tower = (uint8_t)t,
            .set = (uint8_t)(view / TT_FRAMES),
            .frame = view % TT_FRAMES,
            .grad = view == 0 && is_trained(spec, t, train)};
    }
}

static void free_witness(witness_t *w)
{
    for (uint32_t s = 0; s < w->objective.stages; s++)
        free(w->seen[s]);
}

/*  Sets that differ from one another, so that nobody can take one for another. */
static tt_net_t *net_of_sets(const place_t *place, const tt_net_spec_t *spec)
{
    tt_net_t *net = fixture_net(place, spec);
    float *params = fixture_params(place, net, 0);
    for (uint32_t set = 1; set < spec->sets; set++) {
        for (size_t i = 0; i < tt_net_param_count(spec); i++)
            params[i] *= 0.75f;
        assert_ok(tt_net_put(net, place->stream, set, params));
    }
    free(params);
    return net;
}

/*  What a stage saw is what tt_net_forward says of its set and frame. */
static void check_stage(
    const place_t *place, tt_net_t *net, const witness_t *w, uint32_t s, const rows_t *const *frames)
{
    const tt_objective_stage_t *stage = &w->objective.stage[s];
    const rows_t *rows = frames[stage->frame];
    const uint32_t A = w->spec->tower[stage->tower].out;
    float *want = tt_array0(rows->rows * A, sizeof *want), *out[TT_TOWERS_MAX] = {NULL};
    out[stage->tower] = want;
    fixture_heads(place, net, stage->set, rows->obs, rows->rows, out);
    for (size_t k = 0; k < rows->rows; k++)
        assert_memory_equal(want + k * A, w->seen[s] + rows->row[k] * A, A * sizeof *want);
    free(want);
}

static void check_views(const place_t *place, const tt_net_spec_t *spec, size_t count)
{
    tt_net_t *net = net_of_sets(place, spec);
    rows_t at = fixture_rows(spec, count), next = fixture_rows_next(spec, count);
    const rows_t *const frames[] = {&at, &next};
    float *grad = tt_array0(2 * tt_net_grad_count(spec), sizeof *grad), *alone = grad + tt_net_grad_count(spec);
    witness_t all, own;
    fill_witness(&all, spec, UINT32_MAX, count);
    witness_t *witness = &all;
    tt_pass_t pass = {.objective = &all.objective,
        .params = &witness,
        .params_size = sizeof witness,
        .row = at.row,
        .rows = (uint32_t)count};
    assert_ok(fixture_pass(place, net, &pass, &at, &next, grad));
    for (uint32_t s = 0; s < all.objective.stages; s++)
        check_stage(place, net, &all, s, frames);
    /* the same without the other views: they leave the trained one alone */
    fill_witness(&own, spec, UINT32_MAX, count);
    while (!own.objective.stage[own.objective.stages - 1].grad)
        free(own.seen[--own.objective.stages]);
    pass.objective = &own.objective;
    witness = &own;
    assert_ok(fixture_pass(place, net, &pass, &at, NULL, alone));
    assert_memory_equal(grad, alone, tt_net_grad_count(spec) * sizeof *grad);
    free_witness(&all);
    free_witness(&own);
    free(grad);
    fixture_rows_free(&at);
    fixture_rows_free(&next);
    tt_net_destroy(&net);
}

static void test_views(void **state)
{
    (void)state;
    for (size_t b = 0; b < TT_COUNT(s_builds); b++) {
        place_t place;
        if (!fixture_build(&place, s_builds[b]))
            continue;
        for (size_t s = 0; s < fixture_spec_count; s++) {
            check_views(&place, &fixture_specs[s], 1 + s);
            check_views(&place, &fixture_specs[s], 70);
        }
        fixture_close(&place);
    }
}

/* ---- what is trained ------------------------------------------------------------------------------------------------ */

/*  d/dp of sum over rows and trained heads of target * head, by central differences in double. */
static double difference(const reference_t *ref, const witness_t *w, const rows_t *rows, double *params, size_t i)
{
    double sum[2] = {0, 0}, *out = calloc(fixture_outs(ref->spec), sizeof *out);
    const double kept = params[i], h = 1e-5;
    for (int side = 0; side < 2; side++) {
        params[i] = kept + (side ? h : -h);
        for (size_t k = 0; k < rows->rows; k++) {
            reference_forward(ref, params, rows->plain[k], out);
            for (uint32_t s = 0; s < w->objective.stages; s++) {
                const uint32_t t = w->objective.stage[s].tower;
                uint32_t first = 0;
                for (uint32_t before = 0; before < t; before++)
                    first += ref->spec->tower[before].out;
                for (uint32_t a = 0; w->objective.stage[s].grad && a < ref->spec->tower[t].out; a++)
                    sum[side] += (double)fixture_target(rows->row[k], t * 100 + a) * out[first + a];
            }
        }
    }
    params[i] = kept;
    free(out);
    return (sum[1] - sum[0]) / (2 * h);
}

/*  Some heads trained: the gradient is theirs and their trunks', and exactly zero everywhere else. */
static void check_part(const place_t *place, const tt_net_spec_t *spec, uint32_t train)
{
    enum { ROWS = 35 };
    const size_t count = tt_net_param_count(spec);
    tt_net_t *net = fixture_net(place, spec);
    rows_t at = fixture_rows(spec, ROWS), next = fixture_rows_next(spec, ROWS);
    reference_t ref = {.spec = spec};
    ref.tensors = tt_net_tensors(net, &ref.tensor_count);
    float *params = fixture_params(place, net, 0), *grad = tt_array0(tt_net_grad_count(spec), sizeof *grad);
    double *precise = tt_array0(count, sizeof *precise);
    witness_t w;
    fill_witness(&w, spec, train, ROWS);
    for (size_t i = 0; i < count; i++)
        precise[i] = (double)params[i];
    for (size_t i = 0; i < tt_net_grad_count(spec); i++)
        grad[i] = NAN;
    witness_t *witness = &w;
    const tt_pass_t pass = {
        .objective = &w.objective, .params = &witness, .params_size = sizeof witness, .row = at.row, .rows = ROWS};
    assert_ok(fixture_pass(place, net, &pass, &at, &next, grad));
    for (size_t i = 0; i < count; i += 1 + count / (spec->layers ? 11 : 37)) {
        const double want = difference(&ref, &w, &at, precise, i);
        if (want == 0.0 ? grad[i] != 0.0f : !(fabs((double)grad[i] - want) <= 3e-5 * (1 + fabs(want))))
            fail_msg("gradient[%zu], training 0x%x: %.9g, the reference says %.9g", i, train, (double)grad[i], want);
    }
    for (size_t i = count; i < tt_net_grad_count(spec); i++)
        assert_true(grad[i] == 0.0f);
    free_witness(&w);
    free(params);
    free(precise);
    free(grad);
    fixture_rows_free(&at);
    fixture_rows_free(&next);
    tt_net_destroy(&net);
}

static void test_parts(void **state)
{
    (void)state;
    place_t place;
    fixture_open(&place, 1);
    for (size_t s = fixture_pair_count; s < fixture_spec_count; s++)
        for (uint32_t train = 0; train < 1u << fixture_specs[s].towers; train += 1 + train / 3)
            check_part(&place, &fixture_specs[s], train);
    fixture_close(&place);
}

/* ---- what rides ------------------------------------------------------------------------------------------------------ */

static void riding_loss(const void *params, const void *const *input, const tt_loss_block_t *block)
{
    (void)params;
    (void)input;
    for (uint32_t r = 0; r < block->rows; r++)
        block->ride[block->row[r]] = block->head[0][r] + 1.0f;
}

/*  Each shard fills the slots of its own rows; the sum of two shards is that of one. */
static void test_ride(void **state)
{
    enum { ROWS = 70, CUT = 33 };
    const tt_net_spec_t *spec = &fixture_specs[14];
    const tt_objective_t objective = {
        .name = "riding", .stages = 1, .stage = {{.tower = 1, .set = 2}}, .loss = riding_loss};
    (void)state;
    place_t place;
    fixture_open(&place, 1);
    tt_net_t *net = net_of_sets(&place, spec);
    rows_t rows = fixture_rows(spec, ROWS);
    const size_t floats = tt_net_grad_count(spec), ride = tt_net_stats_offset(spec) + TT_LOSS_STATS;
    assert_int_equal(spec->ride, ROWS);
    float *grad = tt_array0(2 * floats, sizeof *grad), value[ROWS], *out[TT_TOWERS_MAX] = {NULL, value};
    tt_pass_t pass = {.objective = &objective, .row = rows.row, .rows = CUT};
    assert_ok(fixture_pass(&place, net, &pass, &rows, NULL, grad));
    for (size_t k = CUT; k < ROWS; k++)
        assert_true(grad[ride + rows.row[k]] == 0.0f);
    pass = (tt_pass_t){.objective = &objective, .row = rows.row + CUT, .rows = ROWS - CUT};
    assert_ok(fixture_pass(&place, net, &pass, &rows, NULL, grad + floats));
    for (size_t i = 0; i < floats; i++)
        grad[i] += grad[floats + i];
    fixture_heads(&place, net, 2, rows.obs, ROWS, out);
    for (size_t k = 0; k < ROWS; k++)
        assert_true(grad[ride + rows.row[k]] == value[k] + 1.0f);
    for (size_t i = 0; i < tt_net_param_count(spec); i++)
        assert_true(grad[i] == 0.0f);
    free(grad);
    fixture_rows_free(&rows);
    tt_net_destroy(&net);
    fixture_close(&place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_objectives),
        cmocka_unit_test(test_views),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_ride),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
