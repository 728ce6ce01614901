#include "tests/nn/known_fixture.h"
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"

/* ---- a loss in which each number of each head matters --------------------------------------------------------------- */

static float number_of(
    const known_head_t *head, const void *input, const tt_loss_block_t *block, uint32_t a, uint32_t r)
{
    return head->how == HEAD_INPUT ? ((const float *)input)[block->row[r] * head->outs + a]
                                   : block->head[head->number][a * TT_BLOCK + r];
}

/*  What the loss was promised of a stage. */
static void check_stage(const known_t *self, const known_head_t *head, const tt_loss_block_t *block)
{
    const uint32_t s = head->number, L = self->spec->tower[head->stage.tower].log_std;
    if (head->how == HEAD_INPUT)
        return;
    for (uint32_t a = 0; a < head->outs; a++)
        for (uint32_t r = block->rows; r < TT_BLOCK; r++)
            assert_true(block->head[s][a * TT_BLOCK + r] == 0.0f);
    assert_true((block->d_head[s] != NULL) == head->stage.grad);
    assert_true((block->log_std[s] != NULL) == (L > 0));
    assert_true((block->d_log_std[s] != NULL) == (L && head->stage.grad));
    if (L)
        assert_memory_equal(block->log_std[s], head->log_std, L * sizeof(float));
}

/*  A row's sum of all that is not trained, each number with a weight of its own. */
static void pull_of(const known_t *self, const void *const *input, const tt_loss_block_t *block, float *pull)
{
    for (uint32_t i = 0; i < self->heads; i++)
        for (uint32_t a = 0; !self->head[i].stage.grad && a < self->head[i].outs; a++) {
            const float weight = fixture_number(11, i << 16 | a);
            for (uint32_t r = 0; r < block->rows; r++)
                pull[r] += weight * number_of(&self->head[i], input[i], block, a, r);
        }
}

/*  Half the square of what a trained head's numbers miss of a target that the others move. */
static void loss(const void *params, const void *const *input, const tt_loss_block_t *block)
{
    const known_t *self = *(const known_t *const *)params;
    float pull[TT_BLOCK] = {0};
    pull_of(self, input, block, pull);
    for (uint32_t r = 0; r < block->rows; r++)
        block->stats[7] += pull[r];
    for (uint32_t i = 0; i < self->heads; i++) {
        const known_head_t *head = &self->head[i];
        const uint32_t s = head->number;
        check_stage(self, head, block);
        for (uint32_t e = 0; head->stage.grad && e < head->outs * TT_BLOCK; e++) {
            const uint32_t a = e / TT_BLOCK, r = e % TT_BLOCK;
            const bool there = r < block->rows;
            const float error = there ? block->head[s][e] - fixture_target(block->row[r], i * 100 + a) - pull[r] : 0.0f;
            block->d_head[s][e] = error;
            block->stats[i % 7] += 0.5f * error * error;
            if (a < self->spec->tower[head->stage.tower].log_std)
                block->d_log_std[s][a] += error;
        }
    }
}

/* ---- heads ---------------------------------------------------------------------------------------------------------- */

static bool is_trained_view(const tt_objective_stage_t *stage)
{
    return stage->set == 0 && stage->frame == TT_AT;
}

void known_put(known_t *self, uint32_t h, float *rows)
{
    known_head_t *head = &self->head[h];
    const place_t *place = &self->world.place;
    if (!head->table)
        assert_ok(tt_table_new(&head->table, place->device, head->outs * sizeof *rows));
    assert_ok(tt_table_put(head->table, place->stream, rows, self->world.rows.rows));
    assert_ok(tt_stream_sync(place->stream));
    free(head->rows);
    head->rows = rows;
}

static float *any_rows(const known_t *self, uint32_t h)
{
    const size_t count = self->world.rows.rows * self->head[h].outs;
    float *rows = tt_array0(count, sizeof *rows);
    for (size_t i = 0; i < count; i++)
        rows[i] = fixture_number(40 + h, i);
    return rows;
}

static void add(known_t *self, const tt_objective_stage_t *stage)
{
    const tt_tower_t *tower = &self->spec->tower[stage->tower];
    if (!tower->out || self->heads == TT_STAGES_MAX)
        return;
    for (uint32_t i = 0; i < self->heads; i++) {
        const tt_objective_stage_t *other = &self->head[i].stage;
        if (other->tower == stage->tower && other->set == stage->set && other->frame == stage->frame)
            return;
    }
    const uint32_t h = self->heads++;
    known_head_t *head = &self->head[h];
    *head = (known_head_t){.stage = *stage, .outs = tower->out};
    if (tower->log_std) {
        head->log_std = tt_array0(tower->log_std, sizeof *head->log_std);
        assert_ok(
            tt_net_get_log_std(self->world.net, self->world.place.stream, stage->set, stage->tower, head->log_std));
    }
    if (!stage->grad)
        known_put(self, h, any_rows(self, h));
}

/*  Those that another tower's forward makes in the same view first. */
static void add_all(known_t *self)
{
    const uint8_t last = (uint8_t)(tt_spec_sets(self->spec) - 1);
    const tt_objective_stage_t view[] = {{0}, {.set = last, .frame = TT_NEXT}, {.frame = TT_NEXT}, {.set = last}};
    for (uint32_t t = 0; t < self->spec->towers; t++)
        if (fixture_trained(self->spec, t))
            add(self, &(tt_objective_stage_t){.tower = (uint8_t)t, .grad = true});
    for (size_t v = 0; v < TT_COUNT(view); v++)
        for (uint32_t t = 0; t < self->spec->towers; t++)
            add(self, &(tt_objective_stage_t){.tower = (uint8_t)t, .set = view[v].set, .frame = view[v].frame});
}

void known_train_nothing(known_t *self)
{
    for (uint32_t h = 0; h < self->heads; h++)
        if (self->head[h].stage.grad) {
            self->head[h].stage.grad = false;
            known_put(self, h, tt_array0(self->world.rows.rows * self->head[h].outs, sizeof(float)));
        }
}

static void make_sets_differ(known_t *self)
{
    float *params = fixture_params(&self->world.place, self->world.net, 0);
    for (uint32_t set = 1; set < self->spec->sets; set++) {
        for (size_t i = 0; i < tt_net_param_count(self->spec); i++)
            params[i] *= 0.75f;
        assert_ok(tt_net_put(self->world.net, self->world.place.stream, set, params));
    }
    free(params);
}

static tt_table_t *table_of(const place_t *place, const tt_net_spec_t *spec, const rows_t *rows)
{
    tt_table_t *table = NULL;
    assert_ok(tt_table_new(&table, place->device, tt_net_row_bytes(spec)));
    assert_ok(tt_table_put(table, place->stream, rows->table, rows->rows));
    return table;
}

void known_open(known_t *self, const place_t *place, const tt_net_spec_t *spec, uint32_t sequences, uint32_t length)
{
    const size_t rows = (size_t)sequences * length;
    *self = (known_t){.spec = spec, .self = self};
    if (tt_net_carry(spec))
        recurrent_open(&self->world, place, spec, sequences, length);
    else {
        self->world = (recurrent_t){.place = *place, .net = fixture_net(place, spec), .rows = fixture_rows(spec, rows)};
        self->world.obs = table_of(place, spec, &self->world.rows);
        make_sets_differ(self);
    }
    self->next = fixture_rows_next(spec, rows);
    self->obs_next = table_of(place, spec, &self->next);
    add_all(self);
}

void known_close(known_t *self)
{
    for (uint32_t h = 0; h < self->heads; h++) {
        tt_table_destroy(&self->head[h].table);
        free(self->head[h].rows);
        free(self->head[h].log_std);
    }
    tt_table_destroy(&self->obs_next);
    fixture_rows_free(&self->next);
    recurrent_close(&self->world);
}

/* ---- passes --------------------------------------------------------------------------------------------------------- */

static void choose_head(known_t *self, known_head_t *head, uint32_t h)
{
    tt_table_t *const obs[] = {self->world.obs, self->obs_next};
    if (head->how == HEAD_INPUT) {
        self->pass.input[h] = head->table;
        return;
    }
    head->number = self->objective.stages++;
    head->stage.known = head->how == HEAD_KNOWN;
    self->objective.stage[head->number] = head->stage;
    if (head->stage.known)
        self->pass.head[head->number] = head->table;
    else
        self->pass.obs[head->stage.frame] = obs[head->stage.frame];
}

void known_choose(known_t *self, head_how_t how, uint32_t heads)
{
    const bool recurs = tt_net_carry(self->spec) > 0;
    self->objective = (tt_objective_t){.name = "known", .loss = loss};
    self->pass = recurs ? recurrent_pass(&self->world, &self->objective)
                        : (tt_pass_t){.objective = &self->objective,
                              .row = self->world.rows.row,
                              .rows = (uint32_t)self->world.rows.rows};
    self->pass.obs[TT_AT] = NULL;
    self->pass.params = &self->self;
    self->pass.params_size = sizeof self->self;
    for (uint32_t h = 0; h < self->heads; h++) {
        known_head_t *head = &self->head[h];
        const bool asked = heads >> h & 1 || (recurs && !is_trained_view(&head->stage));
        head->how = asked && !head->stage.grad ? how : HEAD_FORWARDED;
        choose_head(self, head, h);
    }
}

tt_status_t known_try(known_t *self, uint32_t shards, uint32_t lo, uint32_t hi, uint32_t node, float *grad)
{
    tt_stream_t *stream = self->world.place.stream;
    tt_sums_t *sums = NULL;
    const float *sum = NULL;
    assert_ok(tt_sums_new(&sums, self->world.net, shards));
    tt_status_t status = tt_sums_compute(sums, stream, &self->pass, lo, hi);
    if (status == TT_OK)
        status = tt_sums_node(sums, stream, node, &sum);
    if (status == TT_OK)
        memcpy(grad, sum, tt_net_grad_count(self->spec) * sizeof *grad);
    tt_sums_destroy(&sums);
    return status;
}

float *known_grad(known_t *self, uint32_t shards)
{
    float *grad = tt_array0(tt_net_grad_count(self->spec), sizeof *grad);
    assert_ok(known_try(self, shards, 0, shards, 1, grad));
    return grad;
}

void known_assert_same(const known_t *self, const float *want, const float *got, const char *what, size_t spec)
{
    for (size_t i = 0; i < tt_net_grad_count(self->spec); i++)
        if (memcmp(want + i, got + i, sizeof *got) != 0)
            fail_msg("%s, network %zu: gradient[%zu] is %a, not %a", what, spec, i, (double)got[i], (double)want[i]);
}

void known_compare(known_t *self, const float *want, uint32_t mask, uint32_t shards, const char *what, size_t spec)
{
    known_choose(self, HEAD_KNOWN, mask);
    float *got = known_grad(self, shards);
    known_assert_same(self, want, got, what, spec);
    free(got);
}
