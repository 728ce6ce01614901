/*  Towers that read an action: what they see of one that is given and of one that is drawn, the way back to the draw, and what is
 *  refused. Against a plain reference in double; and the same bits from every build. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "tests/nn/action_fixture.h"

enum { STATS = 6 }; /* a stage's each */

static const char *const s_builds[] = {"portable", "avx2", "avx512"};

static double s_missing(double x, uint32_t row, uint32_t output)
{
    const double error = x - (double)fixture_target(row, output);
    return 0.5 * error * error;
}

static void s_drawn(const stage_t *self, const double *head, uint32_t row, double *action)
{
    const uint32_t A = self->spec.action;
    for (uint32_t a = 0; a < A; a++)
        action[a] = head[a] + (1 + 0.25 * head[A + a]) * (double)self->noise[row * A + a];
}

/*  What both losses come to for row k, stage by stage. still: the parameters of set 0 for those that are gone through, of which no
 *  gradient is asked. */
static void s_row(const stage_t *self, const double *still, bool critic, size_t k, double stats[STATS])
{
    const uint32_t A = self->spec.action, row = self->at.row[k];
    const float *obs = (critic ? self->next : self->at).plain[k];
    double x[1024], action[32];
    reference_tower(&self->ref, self->tower[ACTOR], self->params[0], obs, NULL, x);
    for (uint32_t a = 0; !critic && a < 2 * A; a++)
        stats[0] += s_missing(x[a], row, a);
    s_drawn(self, x, row, action);
    for (uint32_t q = 1; q <= 2; q++) {
        reference_tower(&self->ref, self->tower[q], critic ? self->params[1] : still, obs, action, x);
        stats[q] += s_missing(x[0], row, q * 50);
    }
    for (uint32_t a = 0; a < A; a++)
        action[a] = (double)self->given[row * A + a];
    for (uint32_t q = 1; critic && q <= 3 && self->tower[q] < self->spec.towers; q++) {
        reference_tower(&self->ref, self->tower[q], self->params[0], self->at.plain[k], action, x);
        stats[2 + q] += s_missing(x[0], row, (2 + q) * 50);
    }
}

/*  Those that are trained, by themselves: what is wanted of targets has no gradient. */
static double s_loss(const stage_t *self, const double *still, bool critic, double stats[STATS])
{
    memset(stats, 0, STATS * sizeof *stats);
    for (size_t k = 0; k < self->at.rows; k++)
        s_row(self, still, critic, k, stats);
    return critic ? stats[3] + stats[4] + stats[5] : stats[0] + stats[1] + stats[2];
}

static void s_close(double got, double want, const char *what, size_t i)
{
    if (!(fabs(got - want) <= 5e-5 * (1 + fabs(want))))
        fail_msg("%s[%zu]: %.9g, the reference says %.9g", what, i, got, want);
}

/*  Is it tower t or a trunk below it? */
static bool s_is_below(const tt_net_spec_t *spec, uint32_t tower, uint32_t t)
{
    return t < spec->towers &&
           (tower == t || (spec->tower[t].from && s_is_below(spec, tower, spec->tower[t].from - 1)));
}

static bool s_is_trained(const stage_t *self, bool critic, uint32_t tower)
{
    bool trained = false;
    for (uint32_t t = critic ? Q1 : ACTOR; t <= (uint32_t)(critic ? V : ACTOR); t++)
        trained |= s_is_below(&self->spec, tower, self->tower[t]);
    return trained;
}

/*  One tensor by central differences of some of its parameters. */
static void s_check_tensor(
    stage_t *self, const double *still, bool critic, const tt_tensor_t *tensor, const float *grad)
{
    const double h = 1e-6;
    const size_t count = (size_t)tensor->rows * tensor->cols, end = tensor->offset + count;
    double stats[STATS];
    for (size_t i = tensor->offset; i < end; i += 1 + count / 13) {
        const double kept = self->params[0][i];
        self->params[0][i] = kept + h;
        const double up = s_loss(self, still, critic, stats);
        self->params[0][i] = kept - h;
        const double down = s_loss(self, still, critic, stats);
        self->params[0][i] = kept;
        s_close((double)grad[i], (up - down) / (2 * h), tensor->name, i - tensor->offset);
    }
}

/*  Towers that are not trained stand still, and log_alpha has the 3 a row of the loss. */
static void s_check_tower(
    stage_t *self, const double *still, bool critic, uint32_t tower, const tt_tensor_t *tensor, const float *grad)
{
    for (size_t k = 0; k < tt_spec_tower_tensors(&self->spec, tower); k++) {
        const size_t count = (size_t)tensor[k].rows * tensor[k].cols;
        if (strcmp(tensor[k].name, "actor.log_alpha") == 0)
            assert_true(grad[tensor[k].offset] == (critic ? 0.0f : 3.0f * (float)self->at.rows));
        else if (s_is_trained(self, critic, tower))
            s_check_tensor(self, still, critic, &tensor[k], grad);
        else
            for (size_t i = 0; i < count; i++)
                assert_true(grad[tensor[k].offset + i] == 0.0f);
    }
}

static void s_check(stage_t *self, bool critic)
{
    double stats[STATS];
    const size_t count = tt_net_param_count(&self->spec);
    float *grad = tt_array0(tt_net_grad_count(&self->spec), sizeof *grad);
    double *still = tt_array0(count, sizeof *still);
    const tt_tensor_t *tensor = self->ref.tensors;
    const tt_pass_t pass = action_pass(self, critic ? &self->critic : &self->actor);
    memcpy(still, self->params[0], count * sizeof *still);
    assert_ok(action_gradient(self, &pass, grad));
    s_loss(self, still, critic, stats);
    for (size_t s = 0; s < STATS; s++)
        s_close((double)grad[tt_net_stats_offset(&self->spec) + s], stats[s], "statistics", s);
    for (uint32_t t = 0; t < self->spec.towers; t++) {
        s_check_tower(self, still, critic, t, tensor, grad);
        tensor += tt_spec_tower_tensors(&self->spec, t);
    }
    free(still);
    free(grad);
}

static void test_values_and_gradients(void **state)
{
    (void)state;
    static const size_t rows[] = {1, 45}; /* a block that is not whole, alone and behind another */
    for (size_t i = 0; i < ACTION_SHAPES; i++)
        for (size_t k = 0; k < TT_COUNT(rows); k++) {
            stage_t stage;
            fixture_open(&stage.place, 2);
            action_set_up(&stage, i, rows[k]);
            s_check(&stage, false);
            s_check(&stage, true);
            action_tear_down(&stage);
            fixture_close(&stage.place);
        }
}

/*  All are the first, which is kept; those behind it are freed. */
static void s_same(float **first, float *grad, size_t count)
{
    if (!*first) {
        *first = grad;
        return;
    }
    assert_memory_equal(*first, grad, count * sizeof *grad);
    free(grad);
}

static void test_the_same_bits_from_every_build(void **state)
{
    (void)state;
    for (size_t i = 0; i < ACTION_SHAPES; i++) {
        float *first[2] = {NULL, NULL};
        for (size_t b = 0; b < TT_COUNT(s_builds); b++) {
            stage_t stage;
            if (!fixture_build(&stage.place, s_builds[b]))
                continue;
            action_set_up(&stage, i, 45);
            const size_t count = tt_net_grad_count(&stage.spec);
            for (int critic = 0; critic < 2; critic++) {
                float *grad = tt_array0(count, sizeof *grad);
                const tt_pass_t pass = action_pass(&stage, critic ? &stage.critic : &stage.actor);
                assert_ok(action_gradient(&stage, &pass, grad));
                s_same(&first[critic], grad, count);
            }
            action_tear_down(&stage);
            fixture_close(&stage.place);
        }
        free(first[0]);
        free(first[1]);
    }
}

static uint64_t s_fingerprint(size_t first, size_t end)
{
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    for (size_t i = first; i < end; i++) {
        stage_t stage;
        fixture_open(&stage.place, 1);
        action_set_up(&stage, i, 37);
        const size_t count = tt_net_grad_count(&stage.spec);
        float *grad = tt_array0(count, sizeof *grad);
        for (int critic = 0; critic < 2; critic++) {
            const tt_pass_t pass = action_pass(&stage, critic ? &stage.critic : &stage.actor);
            assert_ok(action_gradient(&stage, &pass, grad));
            const unsigned char *bytes = (const unsigned char *)grad;
            for (size_t b = 0; b < count * sizeof *grad; b++)
                hash = (hash ^ bytes[b]) * 0x100000001b3u;
        }
        free(grad);
        action_tear_down(&stage);
        fixture_close(&stage.place);
    }
    return hash;
}

/*  What the bits are (test_builds.c). */
static void test_fingerprint(void **state)
{
    (void)state;
    assert_int_equal(s_fingerprint(0, ACTION_PLAIN), 0x1b075920e650d4edu);
    assert_int_equal(s_fingerprint(ACTION_PLAIN, ACTION_SHAPES), 0xedf17b27531ae4bcu);
}

/*  Some lanes at once, each with rows of its own and blocks that are not whole. */
static void test_the_same_bits_from_any_lanes(void **state)
{
    (void)state;
    enum { SHARDS = 8 };
    for (size_t i = 0; i < ACTION_SHAPES; i++) {
        float *first[2] = {NULL, NULL};
        for (uint32_t lanes = 1; lanes <= 3; lanes += 2) {
            stage_t stage;
            fixture_open(&stage.place, lanes);
            action_set_up(&stage, i, 150);
            const size_t count = tt_net_grad_count(&stage.spec);
            for (int critic = 0; critic < 2; critic++) {
                float *grad = tt_array0(count, sizeof *grad);
                const tt_pass_t pass = action_pass(&stage, critic ? &stage.critic : &stage.actor);
                action_sum(&stage, &pass, ACTION_ROWS, SHARDS, grad);
                s_same(&first[critic], grad, count);
            }
            action_tear_down(&stage);
            fixture_close(&stage.place);
        }
        free(first[0]);
        free(first[1]);
    }
}

/*  What a loss sees of a row among others is what it sees of it alone: its sums are these, one after the other. */
static void check_alone(stage_t *stage, const tt_objective_t *objective)
{
    const size_t count = tt_net_grad_count(&stage->spec), at = tt_net_stats_offset(&stage->spec);
    float *together = tt_array0(2 * count, sizeof *together), *alone = together + count, sum[STATS] = {0};
    tt_pass_t pass = action_pass(stage, objective);
    assert_ok(action_gradient(stage, &pass, together));
    pass.rows = 1;
    for (size_t k = 0; k < stage->at.rows; k++) {
        pass.row = &stage->at.row[k];
        assert_ok(action_gradient(stage, &pass, alone));
        for (size_t s = 0; s < STATS; s++)
            sum[s] += alone[at + s];
    }
    for (size_t s = 1; s < STATS; s++) /* of heads of one number */
        assert_true(together[at + s] == sum[s]);
    free(together);
}

static void test_rows_are_alone(void **state)
{
    (void)state;
    for (size_t i = 0; i < ACTION_SHAPES; i++) {
        stage_t stage;
        fixture_open(&stage.place, 1);
        action_set_up(&stage, i, 37);
        check_alone(&stage, &stage.actor);
        check_alone(&stage, &stage.critic);
        action_tear_down(&stage);
        fixture_close(&stage.place);
    }
}

static void test_rows_of_frames(void **state)
{
    (void)state;
    stage_t stage;
    fixture_open(&stage.place, 1);
    action_set_up(&stage, ACTION_STACKED, 45);
    const size_t count = tt_net_grad_count(&stage.spec);
    float *want = tt_array0(2 * count, sizeof *want), *got = want + count;
    for (int critic = 0; critic < 2; critic++) {
        const tt_pass_t pass = action_pass(&stage, critic ? &stage.critic : &stage.actor);
        assert_ok(action_gradient(&stage, &pass, want));
        for (int way = 0; way < ACTION_WAYS; way++) {
            action_sum(&stage, &pass, (action_way_t)way, 1, got);
            assert_memory_equal(want, got, count * sizeof *want);
        }
    }
    free(want);
    action_tear_down(&stage);
    fixture_close(&stage.place);
}

/*  Log alpha stands where deviations do, and is none. */
static void test_it_has_no_deviations(void **state)
{
    (void)state;
    stage_t stage;
    float log_std = 42;
    fixture_open(&stage.place, 1);
    action_set_up(&stage, 1, 2);
    assert_ok(tt_net_get_log_std(stage.net, stage.place.stream, 0, stage.tower[ACTOR], &log_std));
    assert_true(log_std == 42);
    action_tear_down(&stage);
    fixture_close(&stage.place);
}

/* ---- heads that are known -------------------------------------------------------------------------------------------- */

/*  What a loss sees of a target is the table's; all else is as if it had been forwarded from what was drawn. */
static void check_known_target(stage_t *stage, const float *value, const tt_table_t *table)
{
    const size_t count = tt_net_grad_count(&stage->spec), at = tt_net_stats_offset(&stage->spec) + 1;
    float *want = tt_array0(2 * count, sizeof *want), *got = want + count, missing = 0;
    tt_objective_t known = stage->critic;
    known.stage[1].action = TT_ACTION_NONE;
    known.stage[1].known = true;
    tt_pass_t pass = action_pass(stage, &stage->critic);
    assert_ok(action_gradient(stage, &pass, want));
    pass = action_pass(stage, &known);
    pass.head[1] = table;
    assert_ok(action_gradient(stage, &pass, got));
    for (size_t k = 0; k < stage->at.rows; k++) {
        const float error = value[stage->at.row[k]] - fixture_target(stage->at.row[k], 50);
        missing += 0.5f * error * error;
    }
    assert_true(want[at] != got[at] && got[at] == missing);
    got[at] = want[at];
    assert_memory_equal(want, got, count * sizeof *got);
    free(want);
}

/*  Of any set and frame, though all that is forwarded is of the view that is drawn from and trained. */
static void check_known_beside_a_draw(stage_t *stage, const tt_table_t *table)
{
    const size_t count = tt_net_grad_count(&stage->spec);
    float *want = tt_array0(2 * count, sizeof *want), *got = want + count;
    tt_objective_t known = stage->actor;
    known.stage[known.stages++] =
        (tt_objective_stage_t){.tower = (uint8_t)stage->tower[Q1], .set = 1, .frame = TT_NEXT, .known = true};
    tt_pass_t pass = action_pass(stage, &stage->actor);
    assert_ok(action_gradient(stage, &pass, want));
    pass = action_pass(stage, &known);
    pass.head[known.stages - 1] = table;
    assert_ok(action_gradient(stage, &pass, got));
    assert_memory_equal(want, got, count * sizeof *got);
    free(want);
}

static void test_known_heads(void **state)
{
    (void)state;
    enum { ROWS = 45 };
    stage_t stage;
    tt_table_t *table = NULL;
    float value[ROWS];
    for (size_t i = 0; i < ROWS; i++)
        value[i] = fixture_number(9, i);
    fixture_open(&stage.place, 1);
    action_set_up(&stage, 1, ROWS);
    assert_ok(tt_table_new(&table, stage.place.device, sizeof *value));
    assert_ok(tt_table_put(table, stage.place.stream, value, ROWS));
    check_known_target(&stage, value, table);
    check_known_beside_a_draw(&stage, table);
    tt_table_destroy(&table);
    action_tear_down(&stage);
    fixture_close(&stage.place);
}

/* ---- what is refused ------------------------------------------------------------------------------------------------ */

static void s_refuse(const stage_t *stage, const tt_objective_t *objective, const char *text)
{
    const tt_pass_t pass = action_pass(stage, objective);
    float *grad = tt_array0(tt_net_grad_count(&stage->spec), sizeof *grad);
    assert_int_equal(action_gradient(stage, &pass, grad), TT_INVALID);
    if (!strstr(tt_err_text(), text))
        fail_msg("'%s' does not say '%s'", tt_err_text(), text);
    free(grad);
}

static void test_bad_objectives(void **state)
{
    (void)state;
    stage_t stage;
    fixture_open(&stage.place, 1);
    action_set_up(&stage, 1, 4);
    tt_objective_t bad = stage.actor;
    bad.stage[1].action = TT_ACTION_NONE;
    s_refuse(&stage, &bad, "stage 1: q1 reads an action");
    bad = stage.actor;
    bad.stage[0].action = TT_ACTION_GIVEN;
    s_refuse(&stage, &bad, "it draws from stage 0 of 3, which must read no action");
    bad = stage.actor;
    bad.source = 3;
    s_refuse(&stage, &bad, "it draws from stage 3 of 3");
    bad = stage.critic;
    bad.stage[0].known = true;
    s_refuse(&stage, &bad, "it draws from stage 0, which is known and not forwarded");
    bad = stage.critic;
    bad.stage[1].known = true;
    s_refuse(&stage, &bad, "stage 1: q1 is known: it is neither trained nor gone through, and reads no action");
    bad = stage.critic;
    bad.stage[1].action = bad.stage[2].action = TT_ACTION_GIVEN;
    s_refuse(&stage, &bad, "it draws, and no stage reads that");
    bad = stage.actor;
    bad.draw = NULL;
    s_refuse(&stage, &bad, "stage 1 reads what is drawn, and nothing is");
    bad = stage.actor;
    bad.d_draw = NULL;
    s_refuse(&stage, &bad, "stage 1: a gradient goes through q1 only to what was drawn");
    bad = stage.actor;
    bad.stage[1].grad = true;
    s_refuse(&stage, &bad, "stage 1: a gradient goes through q1 only");
    bad = stage.actor;
    bad.stage[0].grad = false;
    s_refuse(&stage, &bad, "stage 1: a gradient goes through q1 only");
    bad = stage.actor;
    bad.stage[2].through = false;
    bad.stage[2].set = 1;
    s_refuse(&stage, &bad, "stage 2 is not of set 0 and the row's own frame, and what is drawn from is trained");
    bad = stage.critic;
    bad.stage[4].action = TT_ACTION_DRAWN;
    s_refuse(&stage, &bad, "stages 3 and 4 see one set and frame with two actions");
    bad = stage.critic;
    bad.given = TT_INPUTS_MAX;
    s_refuse(&stage, &bad, "stage 3 reads the actions of input 80");
    bad = stage.critic;
    bad.given = 2;
    s_refuse(&stage, &bad, "stage 3 reads actions of 3 numbers, and input 2 has none");
    action_tear_down(&stage);
    fixture_close(&stage.place);
}

static void test_bad_networks(void **state)
{
    (void)state;
    const struct {
        const char *text;
        tt_tower_t tower;
        uint32_t action;
    } bad[] = {
        {"q2 reads an action: it needs hidden layers", {.out = 1, .group = 1}, 3},
        {"q2 reads an action: it needs hidden layers",
            {.out = 1, .group = 1, .hidden_count = 1, .hidden = {4}, .noise = 1}, 3},
        {"an observation of 15 numbers and an action of 0", {.out = 1, .group = 1, .hidden_count = 1, .hidden = {4}},
            0},
        {"an observation of 15 numbers and an action of 65522",
            {.out = 1, .group = 1, .hidden_count = 1, .hidden = {4}}, 65522},
        {"only layers of its own can", {.kind = TT_TOWER_LSTM, .hidden_count = 1, .hidden = {4}, .group = 1}, 3},
    };
    for (size_t i = 0; i < TT_COUNT(bad); i++) {
        tt_net_spec_t spec = action_spec(1);
        spec.action = bad[i].action;
        spec.tower[2] = bad[i].tower;
        spec.tower[2].action = true;
        strcpy(spec.tower[2].name, "q2");
        spec.tower[1].action = bad[i].action == 3;
        assert_int_equal(tt_spec_check(&spec), TT_INVALID);
        if (!strstr(tt_err_text(), bad[i].text))
            fail_msg("'%s' does not say '%s'", tt_err_text(), bad[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_and_gradients),
        cmocka_unit_test(test_the_same_bits_from_every_build),
        cmocka_unit_test(test_fingerprint),
        cmocka_unit_test(test_the_same_bits_from_any_lanes),
        cmocka_unit_test(test_rows_are_alone),
        cmocka_unit_test(test_rows_of_frames),
        cmocka_unit_test(test_it_has_no_deviations),
        cmocka_unit_test(test_known_heads),
        cmocka_unit_test(test_bad_objectives),
        cmocka_unit_test(test_bad_networks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
