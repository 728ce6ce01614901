/*  Who acts asks for the same rows' heads again and again: a step is one copy there, one graph, one copy back and one wait, with the
 *  CPU's bits, while rows, parameters, noise and the number of rows change between recordings. */
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/nn/backend.h"
#include "tests/nn/fixture.h"
#include "tests/simt/count.h"

enum { MOST = 70, VERSIONS = 3, SOME = 4 };

extern const tt_backend_ops_t cuda_backend;

/*  A network in a place, and its table of observations. */
typedef struct {
    place_t place;
    tt_net_t *net;
    tt_table_t *obs;
} actor_t;

/*  The same on a card and on the CPU. */
typedef struct {
    actor_t card, cpu;
    const tt_net_spec_t *spec;
    rows_t rows;
    const void **list;
    float *got, *want;
} both_t;

static void open_actor(actor_t *self, const tt_net_spec_t *spec)
{
    self->net = fixture_net(&self->place, spec);
    assert_ok(tt_table_new(&self->obs, self->place.device, tt_net_row_bytes(spec)));
}

static void close_actor(actor_t *self)
{
    tt_table_destroy(&self->obs);
    tt_net_destroy(&self->net);
    fixture_close(&self->place);
}

static both_t *new_both(const tt_net_spec_t *spec)
{
    both_t *self = tt_new0(sizeof *self);
    assert_ok(cuda_backend.open(&self->card.place.device, 0, 1));
    assert_ok(tt_stream_new(&self->card.place.stream, self->card.place.device));
    fixture_open_on(&self->cpu.place, "cpu", 1);
    self->spec = spec;
    open_actor(&self->card, spec);
    open_actor(&self->cpu, spec);
    self->rows = fixture_rows(spec, MOST);
    self->list = tt_array0(MOST, sizeof *self->list);
    self->got = tt_array0((size_t)MOST * fixture_outs(spec), sizeof(float));
    self->want = tt_array0((size_t)MOST * fixture_outs(spec), sizeof(float));
    return self;
}

static void free_both(both_t *self)
{
    close_actor(&self->card);
    close_actor(&self->cpu);
    fixture_rows_free(&self->rows);
    free(self->list);
    free(self->got);
    free(self->want);
    free(self);
}

/*  Heads of the towers in the mask, one behind the other. */
static void act(actor_t *self, const both_t *both, uint32_t rows, uint32_t towers, float *heads)
{
    const tt_net_spec_t *spec = both->spec;
    float *out[TT_TOWERS_MAX] = {NULL};
    for (uint32_t t = 0; t < spec->towers; heads += rows * spec->tower[t++].out)
        out[t] = towers >> t & 1 ? heads : NULL;
    assert_ok(tt_table_put_frames(self->obs, self->place.stream, &spec->stack, both->list, rows));
    assert_ok(tt_net_forward(self->net, self->place.stream, 0, self->obs, rows, NULL, out));
    assert_ok(tt_stream_sync(self->place.stream));
}

/*  A step of so many rows on both, and what the card's host asked for. */
static simt_count_t step(both_t *both, uint32_t turn, uint32_t rows, uint32_t towers)
{
    const size_t bytes = (size_t)MOST * fixture_outs(both->spec) * sizeof(float);
    for (uint32_t k = 0; k < rows; k++)
        both->list[k] = both->rows.obs[(k * 3 + turn * 7) % MOST];
    memset(both->got, 0xee, bytes);
    memset(both->want, 0xee, bytes);
    const simt_count_t before = simt_count();
    act(&both->card, both, rows, towers, both->got);
    const simt_count_t after = simt_count();
    act(&both->cpu, both, rows, towers, both->want);
    assert_memory_equal(both->got, both->want, bytes);
    return (simt_count_t){.kernels = after.kernels - before.kernels,
        .graphs = after.graphs - before.graphs,
        .copies = after.copies - before.copies,
        .waits = after.waits - before.waits};
}

static void put_params(both_t *both, uint32_t turn)
{
    const size_t count = tt_net_param_count(both->spec);
    float *params = fixture_params(&both->cpu.place, both->cpu.net, 0);
    for (size_t i = 0; i < count; i++)
        params[i] *= 1.0f + 0.1f * fixture_number(900 + turn, i);
    assert_ok(tt_net_put(both->card.net, both->card.place.stream, 0, params));
    assert_ok(tt_net_put(both->cpu.net, both->cpu.place.stream, 0, params));
    free(params);
}

static void draw_noise(both_t *both, uint64_t clock)
{
    const tt_noise_t noise = {.seed = 5, .stream = TT_STREAM_NOISE, .clock = clock};
    assert_ok(tt_net_noise(both->card.net, both->card.place.stream, 0, &noise));
    assert_ok(tt_net_noise(both->cpu.net, both->cpu.place.stream, 0, &noise));
}

static void assert_few(simt_count_t count)
{
    assert_int_equal(count.kernels, 0);
    assert_int_equal(count.graphs, 1);
    assert_int_equal(count.copies, 2);
    assert_int_equal(count.waits, 1);
}

static uint32_t all_towers(const tt_net_spec_t *spec)
{
    return (1u << spec->towers) - 1;
}

/*  Of every shape of network: the first step launches what it needs, the second is recorded, later ones are launched whole. */
static void a_step_is_four_calls(void **state)
{
    (void)state;
    for (size_t s = 0; s < fixture_spec_count; s++) {
        both_t *both = new_both(&fixture_specs[s]);
        const uint32_t all = all_towers(both->spec);
        assert_true(step(both, 0, 8, all).kernels > 0);
        for (uint32_t turn = 1; turn < 4; turn++)
            assert_few(step(both, turn, 8, all));
        free_both(both);
    }
}

/*  Parameters and noise lie where they lay: what was recorded computes with them. Of networks with noise, and some of the others. */
static void parameters_and_noise_change(void **state)
{
    (void)state;
    for (size_t s = 0; s < fixture_spec_count; s++) {
        if (s % SOME && !tt_net_noisy(&fixture_specs[s]))
            continue;
        both_t *both = new_both(&fixture_specs[s]);
        const uint32_t all = all_towers(both->spec);
        for (uint32_t turn = 0; turn < VERSIONS; turn++) {
            put_params(both, turn);
            for (uint32_t t = 0; t < 2; t++) {
                draw_noise(both, turn * 2 + t);
                step(both, turn * 2 + t, 5, all);
            }
        }
        assert_few(step(both, 99, 5, all));
        free_both(both);
    }
}

/*  Noise is one copy and one graph, however many layers have it. */
static void noise_is_two_calls(void **state)
{
    (void)state;
    const uint32_t hidden[] = {6, 5, 4};
    tt_net_spec_t spec = tt_net_values(4, hidden, 3, TT_NN_RELU, 3, &(tt_values_t){.dueling = true});
    spec.sets = 2; /* each has noise of its own */
    for (uint32_t t = 0; t < spec.towers; t++)
        spec.tower[t].noise = spec.tower[t].kind == TT_TOWER_MLP ? 0.5f : 0;
    both_t *both = new_both(&spec);
    for (uint32_t turn = 0; turn < 4; turn++) { /* its first was drawn when it was made */
        const simt_count_t before = simt_count();
        draw_noise(both, turn);
        const simt_count_t after = simt_count();
        assert_int_equal(after.copies - before.copies, 1);
        assert_int_equal(after.kernels - before.kernels, 0);
        assert_int_equal(after.graphs - before.graphs, 1);
        step(both, turn, 9, all_towers(&spec));
    }
    free_both(both);
}

/*  Shares, finals and whole ranges take turns, and other heads are asked for: each has a recording of its own, and memory that grows takes
 *  all of them with it. */
static void rows_and_heads_take_turns(void **state)
{
    (void)state;
    static const uint32_t rows[] = {8, 3, 8, 1, 33, 8, 3, MOST, 33, 1};
    both_t *both = new_both(&fixture_specs[0]);
    const uint32_t all = all_towers(both->spec);
    for (uint32_t turn = 0; turn < 40; turn++)
        step(both, turn, rows[turn % TT_COUNT(rows)], turn % 3 ? all : 1u << turn % both->spec->towers);
    assert_few(step(both, 40, 8, all));
    assert_int_equal(step(both, 41, MOST / 2, all).graphs, 0);
    free_both(both);
}

/*  Of rows that are made of frames there is one kernel more, which puts them together. */
static void frames_are_one_kernel_more(void **state)
{
    (void)state;
    enum { FRAMES = 3, WIDTH = 4, ROWS = 9 };
    tt_net_spec_t spec = tt_net_actor_critic(FRAMES * WIDTH, (const uint32_t[]){7}, 1, TT_NN_TANH, 2, 0);
    spec.stack = (tt_stack_t){.frames = FRAMES, .parts = 1, .part = {{0, 0, WIDTH * sizeof(float)}}};
    both_t *both = new_both(&spec);
    free(both->list);
    both->list = tt_array0(ROWS * FRAMES, sizeof *both->list);
    float *out[2][TT_TOWERS_MAX] = {{both->got, both->got + ROWS * 2}, {both->want, both->want + ROWS * 2}};
    for (uint32_t turn = 0; turn < 4; turn++) {
        actor_t *of[] = {&both->card, &both->cpu};
        for (uint32_t k = 0; k < ROWS * FRAMES; k++)
            both->list[k] = both->rows.data + (k * 5 + turn * 3) % MOST * WIDTH;
        const simt_count_t before = simt_count();
        for (int i = 0; i < 2; i++) {
            const place_t *place = &of[i]->place;
            assert_ok(tt_table_put_frames(of[i]->obs, place->stream, &spec.stack, both->list, ROWS));
            assert_ok(tt_net_forward(of[i]->net, place->stream, 0, of[i]->obs, ROWS, NULL, out[i]));
            assert_ok(tt_stream_sync(place->stream));
        }
        const simt_count_t after = simt_count();
        assert_memory_equal(both->got, both->want, sizeof(float) * ROWS * 3);
        if (turn == 0)
            continue;
        assert_int_equal(after.kernels - before.kernels, 1);
        assert_int_equal(after.graphs - before.graphs, 1);
        assert_int_equal(after.copies - before.copies, 2);
        assert_int_equal(after.waits - before.waits, 1);
    }
    free_both(both);
}

/*  Heads of the first 8 rows of a table, with the parameters of a set. */
static void act_on(actor_t *self, tt_table_t *obs, uint32_t set, float *heads)
{
    float *out[TT_TOWERS_MAX] = {NULL};
    out[0] = heads;
    assert_ok(tt_net_forward(self->net, self->place.stream, set, obs, 8, NULL, out));
    assert_ok(tt_stream_sync(self->place.stream));
}

/*  Copies of the parameters, and tables, take turns. */
static void sets_and_tables_take_turns(void **state)
{
    (void)state;
    tt_net_spec_t spec = tt_net_one("q", 4, (const uint32_t[]){7}, 1, TT_NN_RELU, 3);
    spec.sets = 2;
    both_t *both = new_both(&spec);
    actor_t *of[] = {&both->card, &both->cpu};
    tt_table_t *table[2][2];
    put_params(both, 0); /* of set 0 alone */
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 2; k++) {
            assert_ok(tt_table_new(&table[i][k], of[i]->place.device, tt_net_row_bytes(&spec)));
            assert_ok(tt_table_put(table[i][k], of[i]->place.stream, both->rows.data + k * 4, 8));
        }
    for (uint32_t turn = 0; turn < 16; turn++) {
        act_on(&both->card, table[0][turn % 2], turn / 2 % 2, both->got);
        act_on(&both->cpu, table[1][turn % 2], turn / 2 % 2, both->want);
        assert_memory_equal(both->got, both->want, sizeof(float) * 8 * 3);
    }
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 2; k++)
            tt_table_destroy(&table[i][k]);
    free_both(both);
}

/*  A long table that is gone through in pieces is not expected again: it takes no recording's place. */
static void pieces_are_not_recorded(void **state)
{
    (void)state;
    both_t *both = new_both(&fixture_specs[0]);
    const tt_net_spec_t *spec = both->spec;
    float *out[TT_TOWERS_MAX] = {NULL};
    out[0] = both->got;
    for (uint32_t turn = 0; turn < 3; turn++)
        step(both, turn, MOST, 1);
    const uint64_t before = simt_count().graphs;
    for (uint32_t turn = 0; turn < 3; turn++)
        for (uint32_t first = 0; first < MOST; first += 10) {
            assert_ok(
                tt_net_forward_from(both->card.net, both->card.place.stream, 0, both->card.obs, first, 10, NULL, out));
            assert_ok(tt_stream_sync(both->card.place.stream));
            assert_memory_equal(both->got, both->want + (size_t)first * spec->tower[0].out,
                (size_t)10 * spec->tower[0].out * sizeof(float));
        }
    assert_int_equal(simt_count().graphs, before);
    assert_few(step(both, 7, MOST, 1));
    free_both(both);
}

static void none_are_wanted(void **state)
{
    (void)state;
    setenv("TT_CUDA_GRAPHS", "off", 1);
    both_t *both = new_both(&fixture_specs[0]);
    unsetenv("TT_CUDA_GRAPHS");
    for (uint32_t turn = 0; turn < 3; turn++) {
        const simt_count_t count = step(both, turn, 8, all_towers(both->spec));
        assert_int_equal(count.graphs, 0);
        assert_int_equal(count.copies, 2);
    }
    free_both(both);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_step_is_four_calls),
        cmocka_unit_test(parameters_and_noise_change), cmocka_unit_test(noise_is_two_calls),
        cmocka_unit_test(rows_and_heads_take_turns), cmocka_unit_test(frames_are_one_kernel_more),
        cmocka_unit_test(sets_and_tables_take_turns), cmocka_unit_test(pieces_are_not_recorded),
        cmocka_unit_test(none_are_wanted)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
