#include "tests/nn/recurrent_fixture.h"
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"

#define LSTM(units_, ...)                                                         \
    {                                                                             \
        .kind = TT_TOWER_LSTM, .hidden_count = 1, .hidden = {units_}, __VA_ARGS__ \
    }
#define GRU(units_, ...)                                                         \
    {                                                                            \
        .kind = TT_TOWER_GRU, .hidden_count = 1, .hidden = {units_}, __VA_ARGS__ \
    }
#define LAYERS(...) .hidden_count = sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t), .hidden = {__VA_ARGS__}
#define RELU        .activation = TT_NN_RELU

const tt_net_spec_t recurrent_specs[] = {
    {.obs = 4,
        .towers = 3,
        .tower = {LSTM(64, .name = "lstm"), {.name = "actor", .from = 1, .out = 2},
            {.name = "critic", .from = 1, .out = 1}}},
    {.obs = 5,
        .towers = 3,
        .tower = {GRU(48, .name = "gru"), {.name = "actor", .from = 1, LAYERS(9), .out = 3, .log_std = 2},
            {.name = "critic", .from = 1, .out = 1}}},
    {.obs = 1, .towers = 2, .tower = {LSTM(1, .name = "lstm"), {.name = "v", .from = 1, .out = 1}}},
    {.obs = 2, .towers = 2, .tower = {GRU(1, .name = "gru"), {.name = "v", .from = 1, .out = 1}}},
    /* a trunk before it, which others read too; a trunk behind it; sets and groups */
    {.obs = 7,
        .towers = 6,
        .sets = 2,
        .ride = 3,
        .tower = {{.name = "low", RELU, LAYERS(16, 13)}, {.name = "apart", .from = 1, LAYERS(5), .out = 2},
            LSTM(19, .name = "lstm", .from = 1), {.name = "high", .from = 3, LAYERS(11)},
            {.name = "a", .from = 4, .out = 3}, {.name = "b", .from = 1, .out = 1, .group = 1}}},
    {.obs = 6,
        .towers = 4,
        .tower = {{.name = "low", LAYERS(10)}, GRU(37, .name = "gru", .from = 1),
            {.name = "a", .from = 2, RELU, LAYERS(8), .out = 2}, {.name = "own", LAYERS(6), .out = 4, .log_std = 4}}},
    /* one each, of both kinds, in groups of their own */
    {.obs = 9,
        .towers = 4,
        .tower = {LSTM(17, .name = "actor_lstm"), {.name = "actor", .from = 1, LAYERS(12), .out = 5, .log_std = 5},
            GRU(33, .name = "critic_gru", .group = 1), {.name = "critic", .from = 3, .out = 1, .group = 1}}},
    /* two on one trunk */
    {.obs = 3,
        .towers = 5,
        .tower = {{.name = "low", LAYERS(20)}, GRU(15, .name = "x", .from = 1), LSTM(23, .name = "y", .from = 1),
            {.name = "a", .from = 2, .out = 2}, {.name = "b", .from = 3, .out = 1}}},
    /* behind a picture; a dueling tower, noisy, behind it */
    {.obs = 74,
        .parts = 2,
        .part = {{.bytes = true, .elements = 72, .divisor = 255}, {.elements = 2}},
        .towers = 5,
        .layers = 2,
        .layer = {{.kind = TT_LAYER_CONV2D, .units = 5, .kernel = {3, 2}, .stride = {1, 2}, .activation = TT_NN_RELU},
            {.kind = TT_LAYER_CONCAT, .part = 1, .activation = TT_NN_TANH}},
        .tower = {{.name = "encoder",
                      .kind = TT_TOWER_ENCODER,
                      .layers = 2,
                      .height = 6,
                      .width = 6,
                      .channels = 2,
                      .planes = 2},
            LSTM(20, .name = "lstm", .from = 1), {.name = "value", .from = 2, RELU, LAYERS(7), .out = 1, .noise = 0.5f},
            {.name = "advantage", .from = 2, .out = 3},
            {.name = "q", .kind = TT_TOWER_DUELING, .value = 2, .advantage = 3, .out = 3}}},
    /* bits, read where they lie; a dueling tower of which one head remembers nothing */
    {.obs = 50,
        .parts = 1,
        .part = {{.bytes = true, .elements = 50, .divisor = 1}},
        .towers = 5,
        .tower = {GRU(24, .name = "gru"), {.name = "value", LAYERS(9), .out = 1},
            {.name = "advantage", .from = 1, .out = 4},
            {.name = "q", .kind = TT_TOWER_DUELING, .value = 1, .advantage = 2, .out = 4},
            {.name = "other", .from = 1, RELU, LAYERS(5), .out = 1, .group = 1}}},
};
const size_t recurrent_spec_count = TT_COUNT(recurrent_specs);

static tt_table_t *table_of(const place_t *place, const void *rows, size_t bytes, size_t count)
{
    tt_table_t *table = NULL;
    assert_ok(tt_table_new(&table, place->device, bytes));
    assert_ok(tt_table_put(table, place->stream, rows, count));
    return table;
}

void recurrent_open(
    recurrent_t *self, const place_t *place, const tt_net_spec_t *spec, uint32_t sequences, uint32_t length)
{
    const size_t rows = (size_t)sequences * length, C = tt_net_carry(spec);
    *self = (recurrent_t){.place = *place, .sequences = sequences, .length = length};
    self->net = fixture_net(place, spec);
    self->rows = fixture_rows(spec, rows);
    self->carry = tt_array0(rows * C, sizeof *self->carry);
    self->begins = tt_array0(rows, 1);
    for (size_t i = 0; i < rows * C; i++)
        self->carry[i] = fixture_number(5, i);
    for (size_t k = 0; k < rows; k++)
        self->begins[k] = fixture_number(6, k) < -0.6f ? 1 + k % 2 : 0;
    self->obs = table_of(place, self->rows.table, tt_net_row_bytes(spec), rows);
    self->carries = table_of(place, self->carry, C * sizeof(float), rows);
    self->begin = table_of(place, self->begins, 1, rows);
}

void recurrent_close(recurrent_t *self)
{
    tt_table_destroy(&self->obs);
    tt_table_destroy(&self->carries);
    tt_table_destroy(&self->begin);
    fixture_rows_free(&self->rows);
    free(self->carry);
    free(self->begins);
    tt_net_destroy(&self->net);
    fixture_close(&self->place);
}

tt_pass_t recurrent_pass(const recurrent_t *self, const tt_objective_t *objective)
{
    return (tt_pass_t){.objective = objective,
        .obs = {self->obs},
        .row = self->rows.row,
        .rows = self->sequences * self->length,
        .length = self->length,
        .carry = self->carries,
        .begins = self->begin};
}

static void compute(recurrent_t *self, const tt_pass_t *pass, uint32_t shards, float *grad)
{
    tt_sums_t *sums = NULL;
    const float *node = NULL;
    assert_ok(tt_sums_new(&sums, self->net, shards));
    assert_ok(tt_sums_compute(sums, self->place.stream, pass, 0, shards));
    assert_ok(tt_sums_node(sums, self->place.stream, 1, &node));
    memcpy(grad, node, tt_net_grad_count(tt_net_spec(self->net)) * sizeof *grad);
    tt_sums_destroy(&sums);
}

float *recurrent_grad(recurrent_t *self, uint32_t shards)
{
    const tt_net_spec_t *spec = tt_net_spec(self->net);
    const tt_objective_t objective = fixture_objective(spec);
    tt_pass_t pass = recurrent_pass(self, &objective);
    float *grad = tt_array0(tt_net_grad_count(spec), sizeof *grad);
    pass.params = &spec;
    pass.params_size = sizeof spec;
    compute(self, &pass, shards, grad);
    return grad;
}

/*  What a learner with shards lo .. hi-1 of them knows, a subtree. */
static void compute_node(const recurrent_t *world, uint32_t shards, uint32_t lo, uint32_t hi, uint32_t node, float *out)
{
    const tt_net_spec_t *spec = tt_net_spec(world->net);
    const tt_objective_t objective = fixture_objective(spec);
    tt_sums_t *sums = NULL;
    const float *sum = NULL;
    tt_pass_t pass = recurrent_pass(world, &objective);
    pass.params = &spec;
    pass.params_size = sizeof spec;
    assert_ok(tt_sums_new(&sums, world->net, shards));
    assert_ok(tt_sums_compute(sums, world->place.stream, &pass, lo, hi));
    assert_ok(tt_sums_node(sums, world->place.stream, node, &sum));
    memcpy(out, sum, tt_net_grad_count(spec) * sizeof *out);
    tt_sums_destroy(&sums);
}

float *recurrent_runs(recurrent_t *world, uint32_t shards, uint32_t width)
{
    const size_t count = tt_net_grad_count(tt_net_spec(world->net));
    uint32_t parts = shards / width;
    float **part = tt_array0(parts, sizeof *part);
    for (uint32_t p = 0; p < parts; p++) {
        part[p] = tt_array0(count, sizeof *part[p]);
        compute_node(world, shards, p * width, (p + 1) * width, parts + p, part[p]);
    }
    for (; parts > 1; parts /= 2)
        for (uint32_t p = 0; p < parts; p += 2) {
            for (size_t i = 0; i < count; i++)
                part[p][i] += part[p + 1][i];
            free(part[p + 1]);
            part[p / 2] = part[p];
        }
    float *sum = part[0];
    free(part);
    return sum;
}

/*  Where heads go, [rows][outs], and how many floats each stage has. */
typedef struct {
    float *to;
    uint32_t stages, outs[TT_STAGES_MAX], all;
} record_t;

static void record(const void *params, const void *const *input, const tt_loss_block_t *block)
{
    (void)input;
    const record_t *record = params;
    for (uint32_t r = 0; r < block->rows; r++) {
        float *to = record->to + (size_t)block->row[r] * record->all;
        for (uint32_t s = 0; s < record->stages; s++)
            for (uint32_t a = 0; a < record->outs[s]; a++)
                *to++ = block->head[s][a * TT_BLOCK + r];
    }
}

float *recurrent_seen(recurrent_t *self, uint32_t shards)
{
    const tt_net_spec_t *spec = tt_net_spec(self->net);
    tt_objective_t objective = {.name = "record", .loss = record};
    record_t to = {.all = fixture_outs(spec)};
    for (uint32_t t = 0; t < spec->towers; t++)
        if (spec->tower[t].out) {
            objective.stage[objective.stages++] = (tt_objective_stage_t){.tower = (uint8_t)t};
            to.outs[to.stages++] = spec->tower[t].out;
        }
    float *heads = tt_array0(self->rows.rows * to.all, sizeof *heads);
    float *grad = tt_array0(tt_net_grad_count(spec), sizeof *grad);
    to.to = heads;
    tt_pass_t pass = recurrent_pass(self, &objective);
    pass.params = &to;
    pass.params_size = sizeof to;
    compute(self, &pass, shards, grad);
    for (size_t i = 0; i < tt_net_grad_count(spec); i++)
        assert_true(grad[i] == 0.0f); /* nothing is trained */
    free(grad);
    return heads;
}

/*  One step of all sequences. out: [towers][sequences][A]. */
static void forward(recurrent_t *self, uint32_t set, uint32_t step, float *carry, float *const *out)
{
    tt_table_t *table = NULL;
    const size_t bytes = tt_net_row_bytes(tt_net_spec(self->net)), C = tt_net_carry(tt_net_spec(self->net));
    const void **obs = tt_array0(self->sequences, sizeof *obs);
    for (uint32_t q = 0; q < self->sequences; q++) {
        const uint32_t k = self->rows.row[q * self->length + step];
        obs[q] = self->rows.by_number[k];
        if (step == 0)
            memcpy(carry + q * C, self->carry + k * C, C * sizeof *carry);
        if (self->begins[k])
            memset(carry + q * C, 0, C * sizeof *carry);
    }
    assert_ok(tt_table_new(&table, self->place.device, bytes));
    assert_ok(tt_table_put_rows(table, self->place.stream, obs, self->sequences));
    assert_ok(
        tt_net_forward(self->net, self->place.stream, set, table, self->sequences, &(tt_carry_t){carry, carry}, out));
    assert_ok(tt_stream_sync(self->place.stream));
    tt_table_destroy(&table);
    free(obs);
}

float *recurrent_stepped(recurrent_t *self, uint32_t set)
{
    const tt_net_spec_t *spec = tt_net_spec(self->net);
    const uint32_t all = fixture_outs(spec), N = self->sequences;
    float *heads = tt_array0(self->rows.rows * all, sizeof *heads), *out[TT_TOWERS_MAX] = {NULL};
    float *carry = tt_array0(N * (size_t)tt_net_carry(spec), sizeof *carry);
    float *step = tt_array0(N * (size_t)all, sizeof *step), *at = step;
    for (uint32_t t = 0; t < spec->towers; at += N * spec->tower[t++].out)
        out[t] = at;
    for (uint32_t s = 0; s < self->length; s++) {
        forward(self, set, s, carry, out);
        for (uint32_t q = 0; q < N; q++) {
            float *to = heads + (size_t)self->rows.row[q * self->length + s] * all;
            for (uint32_t t = 0; t < spec->towers; to += spec->tower[t++].out)
                memcpy(to, out[t] + q * spec->tower[t].out, spec->tower[t].out * sizeof *to);
        }
    }
    free(step);
    free(carry);
    return heads;
}

/* ---- walks ---------------------------------------------------------------------------------------------------------- */

enum { BEFORE = 5, BETWEEN = 2, EVERY = 3 };

/*  A walk, and where its results go. */
typedef struct {
    const place_t *place;
    tt_net_t *net;
    tt_table_t *table;
    tt_walk_t of;
    float *head[TT_TOWERS_MAX]; /* [steps][apart][A] */
} walked_t;

static size_t table_rows(const tt_walk_t *of)
{
    return of->first + of->steps * of->apart + BEFORE;
}

static void open_walk(walked_t *self, const tt_net_spec_t *spec, const recurrent_walk_t *walk, rows_t *rows)
{
    const size_t C = tt_net_carry(spec);
    tt_walk_t *of = &self->of;
    *of = (tt_walk_t){.first = BEFORE, .apart = walk->rows + BETWEEN, .rows = walk->rows, .steps = walk->steps};
    *rows = fixture_rows(spec, table_rows(of));
    self->net = fixture_net(self->place, spec);
    assert_ok(tt_table_new(&self->table, self->place->device, tt_net_row_bytes(spec)));
    assert_ok(tt_table_put(self->table, self->place->stream, rows->table, table_rows(of)));
    uint8_t *begins = tt_array0(of->steps * of->apart, sizeof *begins);
    for (size_t i = 0; i < of->steps * of->apart; i++)
        begins[i] = i % 7 == 3;
    float *in = tt_array0(of->rows * C, sizeof *in);
    for (size_t i = 0; i < of->rows * C; i++)
        in[i] = fixture_number(77, i);
    uint32_t *keep = tt_array0((size_t)of->steps * of->rows, sizeof *keep);
    for (uint32_t k = 0; k < of->steps; k++)
        for (uint32_t r = 0; r < of->rows; r++)
            if ((k * of->rows + r) % EVERY == 1)
                keep[of->keeps++] = (uint32_t)(of->first + k * of->apart + r);
    of->begins = begins;
    of->in = in;
    of->left = walk->in_place ? in : tt_array0(of->rows * C, sizeof *in);
    of->keep = keep;
    of->kept = tt_array0((of->keeps + 1) * C, sizeof *in);
    for (uint32_t t = 0; t < spec->towers; t++)
        if (spec->tower[t].out)
            self->head[t] = tt_array0(of->steps * of->apart * spec->tower[t].out, sizeof *in);
}

static void close_walk(walked_t *self, const recurrent_walk_t *walk)
{
    tt_table_destroy(&self->table);
    tt_net_destroy(&self->net);
    free((void *)(uintptr_t)self->of.begins);
    free((void *)(uintptr_t)self->of.keep);
    if (!walk->in_place)
        free((void *)(uintptr_t)self->of.in);
    free(self->of.left);
    free(self->of.kept);
    for (uint32_t t = 0; t < TT_TOWERS_MAX; t++)
        free(self->head[t]);
}

/*  As whoever acts would go through them. */
static void walk_by_hand(const walked_t *self)
{
    const tt_walk_t *of = &self->of;
    const tt_net_spec_t *spec = tt_net_spec(self->net);
    const size_t C = tt_net_carry(spec);
    memmove(of->left, of->in, of->rows * C * sizeof *of->in);
    for (uint32_t k = 0, kept = 0; k < of->steps; k++) {
        float *out[TT_TOWERS_MAX] = {NULL};
        for (uint32_t t = 0; t < spec->towers; t++)
            out[t] = self->head[t] ? self->head[t] + k * of->apart * spec->tower[t].out : NULL;
        for (uint32_t r = 0; r < of->rows; r++)
            if (of->begins[k * of->apart + r])
                memset(of->left + r * C, 0, C * sizeof *of->left);
        assert_ok(tt_net_forward_from(self->net, self->place->stream, 0, self->table, of->first + k * of->apart,
            of->rows, &(tt_carry_t){of->left, of->left}, out));
        assert_ok(tt_stream_sync(self->place->stream));
        for (uint32_t r = 0; r < of->rows; r++)
            if ((k * of->rows + r) % EVERY == 1)
                memcpy(of->kept + kept++ * C, of->left + r * C, C * sizeof *of->left);
    }
}

/*  Nothing is written between the steps' rows. */
static float *add_heads(const walked_t *self, float *to)
{
    const tt_walk_t *of = &self->of;
    for (uint32_t t = 0; t < TT_TOWERS_MAX; t++) {
        const size_t outs = self->head[t] ? tt_net_spec(self->net)->tower[t].out : 0;
        for (size_t i = 0; i < of->steps * of->apart * outs; i++)
            if (i / outs % of->apart < of->rows)
                *to++ = self->head[t][i];
            else
                assert_true(self->head[t][i] == 0.0f);
    }
    return to;
}

float *recurrent_walked(
    const place_t *place, const tt_net_spec_t *spec, const recurrent_walk_t *walk, bool by_hand, size_t *count)
{
    walked_t self = {.place = place};
    const size_t C = tt_net_carry(spec), heads = (size_t)walk->steps * walk->rows * fixture_outs(spec);
    rows_t rows;
    open_walk(&self, spec, walk, &rows);
    if (by_hand)
        walk_by_hand(&self);
    else
        assert_ok(tt_net_walk(self.net, place->stream, 0, self.table, &self.of, self.head));
    assert_ok(tt_stream_sync(place->stream));
    *count = heads + (walk->rows + self.of.keeps) * C;
    float *all = tt_array0(*count, sizeof *all), *to = add_heads(&self, all);
    assert_ptr_equal(to, all + heads);
    memcpy(to, self.of.left, walk->rows * C * sizeof *to);
    memcpy(to + walk->rows * C, self.of.kept, self.of.keeps * C * sizeof *to);
    close_walk(&self, walk);
    fixture_rows_free(&rows);
    return all;
}
