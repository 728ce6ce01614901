/*  Shards that share a block: the bits of each by itself, added up along the tree. */
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/nn/tree.h"
#include "tests/nn/action_fixture.h"
#include "tests/nn/known_fixture.h"

/*  Rows that fill a block, or not, and shards of unlike numbers of them: all in one block, in several, one in each, a lane's part of
 *  three, and some without a row. */
static const struct {
    uint32_t rows, shards, lanes;
} s_ways[] = {{29, 8, 1}, {32, 32, 1}, {32, 4, 2}, {70, 8, 1}, {70, 16, 3}, {37, 2, 1}, {64, 64, 3}, {5, 8, 1}};

typedef struct {
    const place_t *place;
    tt_net_t *net;
    const tt_pass_t *pass;
    uint32_t shards;
    size_t floats;
} world_t;

/*  The sum of a node after a run of exactly its shards, where another run has left something in each gradient. */
static float *s_run(const world_t *self, uint32_t node)
{
    tt_sums_t *sums = NULL;
    const float *sum = NULL;
    uint32_t lo, hi;
    tt_tree_span(self->shards, node, &lo, &hi);
    assert_ok(tt_sums_new(&sums, self->net, self->shards));
    for (int run = 0; run < 2; run++)
        assert_ok(tt_sums_compute(sums, self->place->stream, self->pass, lo, hi));
    assert_ok(tt_sums_node(sums, self->place->stream, node, &sum));
    float *out = tt_aligned0(self->floats * sizeof *out);
    memcpy(out, sum, self->floats * sizeof *out);
    tt_sums_destroy(&sums);
    return out;
}

/*  Each shard by itself, and the tree's additions here. */
static float *s_alone(const world_t *self)
{
    float **leaf = tt_array0(self->shards, sizeof *leaf);
    for (uint32_t s = 0; s < self->shards; s++)
        leaf[s] = s_run(self, self->shards + s);
    for (uint32_t width = 1; width < self->shards; width *= 2)
        for (uint32_t s = 0; s < self->shards; s += 2 * width)
            for (size_t i = 0; i < self->floats; i++)
                leaf[s][i] += leaf[s + width][i];
    float *out = leaf[0];
    for (uint32_t s = 1; s < self->shards; s++)
        free(leaf[s]);
    free(leaf);
    return out;
}

static void s_compare(const world_t *self, const char *what, size_t number)
{
    float *want = s_alone(self), *got = s_run(self, 1);
    for (size_t i = 0; i < self->floats; i++)
        if (memcmp(&want[i], &got[i], sizeof *got) != 0)
            fail_msg("%s %zu, %u rows in %u shards: gradient[%zu] is %a, not %a", what, number, self->pass->rows,
                self->shards, i, (double)got[i], (double)want[i]);
    free(want);
    free(got);
}

/*  Heads of all kinds in two sets and both frames, some of them known; bytes, encoders, dueling and noisy towers, trunks. */
static void s_check_net(uint32_t lanes, size_t spec, uint32_t rows, uint32_t shards)
{
    place_t place;
    known_t known;
    fixture_open(&place, lanes);
    known_open(&known, &place, &fixture_specs[spec], rows, 1);
    known_choose(&known, HEAD_KNOWN, 0x492);
    const world_t world = {&place, known.world.net, &known.pass, shards, tt_net_grad_count(&fixture_specs[spec])};
    s_compare(&world, "network", spec);
    known_close(&known);
}

/*  Towers that read an action that is drawn, or given, and the way back through them. */
static void s_check_action(const place_t *place, size_t shape, uint32_t rows, uint32_t shards)
{
    stage_t stage = {.place = *place};
    tt_table_t *frame[TT_FRAMES] = {NULL};
    action_set_up(&stage, shape, rows);
    const rows_t *of[TT_FRAMES] = {&stage.at, &stage.next};
    for (int f = 0; f < TT_FRAMES; f++) {
        assert_ok(tt_table_new(&frame[f], place->device, tt_net_row_bytes(&stage.spec)));
        assert_ok(tt_table_put(frame[f], place->stream, of[f]->table, rows));
    }
    for (int critic = 0; critic < 2; critic++) {
        tt_pass_t pass = action_pass(&stage, critic ? &stage.critic : &stage.actor);
        memcpy(pass.obs, frame, sizeof frame);
        const world_t world = {place, stage.net, &pass, shards, tt_net_grad_count(&stage.spec)};
        s_compare(&world, critic ? "critics" : "actor", shape);
    }
    for (int f = 0; f < TT_FRAMES; f++)
        tt_table_destroy(&frame[f]);
    action_tear_down(&stage);
}

static void test_blocks_of_several_shards(void **state)
{
    (void)state;
    for (size_t i = 0; i < TT_COUNT(s_ways); i++) {
        for (size_t s = 0; s < fixture_spec_count; s++)
            s_check_net(s_ways[i].lanes, s, s_ways[i].rows, s_ways[i].shards);
        place_t place;
        fixture_open(&place, s_ways[i].lanes);
        for (size_t s = 0; s < ACTION_SHAPES; s++)
            s_check_action(&place, s, s_ways[i].rows, s_ways[i].shards);
        fixture_close(&place);
    }
}

/*  A layer of more weights than a tile has, with a last tile that is none. */
static void test_tiles(void **state)
{
    const tt_net_spec_t spec = {
        .obs = 301,
        .towers = 2,
        .tower = {{.name = "actor", .hidden_count = 2, .hidden = {300, 530}, .out = 3, .log_std = 3},
            {.name = "critic", .activation = TT_NN_RELU, .hidden_count = 1, .hidden = {1024}, .out = 1}},
    };
    (void)state;
    place_t place;
    known_t known;
    fixture_open(&place, 1);
    known_open(&known, &place, &spec, 31, 1);
    known_choose(&known, HEAD_KNOWN, 0);
    for (uint32_t shards = 2; shards <= 16; shards *= 2) {
        const world_t world = {&place, known.world.net, &known.pass, shards, tt_net_grad_count(&spec)};
        s_compare(&world, "wide layers", shards);
    }
    known_close(&known);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks_of_several_shards),
        cmocka_unit_test(test_tiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
