#include "tests/learner/twin_stage.h"
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/base/rng.h"
#include "common/job/fit.h"
#include "learner/algorithms/twin_loss.h"
#include "tests/test.h"

enum { BATCHES = 3 };

tt_train_cfg_t twin_train(tt_actor_t actor)
{
    return (tt_train_cfg_t){.num_envs = 4,
        .num_steps = 8,
        .learner.shards = 2,
        .seed = 1,
        .stop.env_steps = 50000,
        .network.hidden = {2, {8, 8}},
        .space = {.obs = "float32[4]", .action = "float32[2]"},
        .actor = actor};
}

tt_status_t twin_read(const char *algorithm, const char *yaml, const tt_train_cfg_t *train, void *cfg)
{
    tt_config_t *config = NULL;
    const tt_algorithm_t *found = NULL;
    assert_ok(tt_algorithm_find(&found, algorithm));
    assert_ok(tt_config_parse(&config, yaml, strlen(yaml), "test.yaml"));
    tt_status_t status = tt_config_claim(config, found->fields, cfg);
    if (status == TT_OK)
        status = tt_config_finish(config);
    if (status == TT_OK)
        status = tt_algorithm_check(found, config, train, cfg);
    tt_config_destroy(&config);
    return status;
}

void twin_refused(
    const char *algorithm, const char *yaml, const tt_train_cfg_t *train, const char *first, const char *second)
{
    twin_stage_t room;
    assert_int_equal(twin_read(algorithm, yaml, train, &room.cfg), TT_CONFIG);
    if (!strstr(tt_err_text(), first) || !strstr(tt_err_text(), second))
        fail_msg("%s: '%s' has not '%s' and '%s'", yaml, tt_err_text(), first, second);
}

float twin_stored(uint64_t unit, uint32_t c, uint32_t e)
{
    uint32_t word[4];
    tt_draw(word, 3, TT_STREAM_TEST, c * 100 + e, unit);
    return 12 * tt_unit_f32(word[0]) - 6;
}

static void s_fill_actions(const twin_stage_t *self, uint64_t first, tt_segment_t *at)
{
    for (uint32_t c = 0; c < self->columns->action_count; c++) {
        const uint32_t column = self->columns->action + c, elements = self->columns->at[column].elements;
        for (uint32_t row = 0; row < self->train.num_envs * self->train.num_steps; row++)
            for (uint32_t e = 0; e < elements; e++)
                ((float *)at->column[column])[row * elements + e] = twin_stored(first + row, c, e);
    }
}

static void s_fill_replay(twin_stage_t *self)
{
    const tt_columns_t *columns = self->columns;
    const uint32_t N = self->train.num_envs, T = self->train.num_steps;
    const replay_cfg_t cfg = {.columns = columns,
        .store = (1ull << columns->reward) - 1,
        .N = N,
        .T = T,
        .capacity = 1 << 20,
        .stripes = self->train.learner.shards,
        .ahead = 1,
        .gamma = 0.99,
        .stack = 1,
        .seed = 1};
    tt_segment_t at = {.age = tt_array0(N, sizeof(uint32_t))};
    for (uint32_t c = 0; c <= columns->truncated; c++) {
        at.column[c] = tt_array0(N * T, columns->at[c].bytes);
        at.last[c] = columns->at[c].keep ? tt_array0(N, columns->at[c].bytes) : NULL;
    }
    assert_ok(replay_new(&self->replay, &cfg));
    for (uint32_t b = 0; b < BATCHES; b++) {
        for (uint32_t e = 0; e < N; e++)
            at.age[e] = b * T;
        s_fill_actions(self, (uint64_t)b * T * N, &at);
        assert_ok(replay_insert(self->replay, b, &(replay_part_t){.at = &at, .E = N, .count = N}, 1, NULL));
    }
    for (uint32_t c = 0; c <= columns->truncated; c++) {
        free(at.column[c]);
        free(at.last[c]);
    }
    free(at.age);
}

void twin_stage_open(twin_stage_t *self, const char *algorithm, tt_actor_t actor, const char *yaml)
{
    *self = (twin_stage_t){.train = twin_train(actor)};
    assert_ok(tt_algorithm_find(&self->algorithm, algorithm));
    strcpy(self->train.space.action, "{arm: float32[2], leg: float32[3]}");
    assert_ok(twin_read(algorithm, yaml, &self->train, &self->cfg));
    assert_ok(tt_train_columns(&self->columns, &self->train));
    assert_int_equal(self->columns->action_count, 2);
    assert_ok(self->algorithm->create(&self->algo, &self->train, self->columns, &self->cfg));
    s_fill_replay(self);
}

void twin_stage_close(twin_stage_t *self)
{
    self->algorithm->destroy(&self->algo);
    assert_null(self->algo);
    self->algorithm->destroy(&self->algo);
    replay_destroy(&self->replay);
    tt_columns_destroy(&self->columns);
}

tt_minibatch_t twin_describe_again(const twin_stage_t *self, uint64_t total, uint32_t step)
{
    tt_minibatch_t m;
    const tt_at_t at = {.total = total, .step = step, .replay = self->replay, .sample = &self->sample};
    assert_ok(self->algorithm->minibatch(self->algo, &at, &m));
    return m;
}

tt_minibatch_t twin_describe_step(twin_stage_t *self, uint64_t total, uint32_t step)
{
    assert_ok(replay_sample(self->replay, total, self->cfg.off.batch_size, 0, &self->sample));
    return twin_describe_again(self, total, step);
}

void twin_assert_inputs(const twin_stage_t *self, const tt_minibatch_t *m, bool actions, bool noise)
{
    const size_t row = TWIN_NUMBERS * sizeof(float);
    assert_true(m->rows == self->cfg.off.batch_size && !m->row && !m->length && !m->ends);
    assert_int_equal(m->inputs, TWIN_INPUTS);
    assert_int_equal(m->input[TWIN_IN_ACTION].bytes, actions ? row : 0);
    assert_int_equal(m->input[TWIN_IN_NOISE].bytes, noise ? row : 0);
    assert_ptr_equal(m->input[TWIN_IN_RETURN].at, self->sample.ret);
    assert_ptr_equal(m->input[TWIN_IN_DISCOUNT].at, self->sample.discount);
    assert_ptr_equal(m->input[TWIN_IN_WEIGHT].at, self->sample.weight);
    for (uint32_t i = 0; i < m->inputs; i++)
        assert_false(m->input[i].single);
    assert_true(m->input[TWIN_IN_RETURN].bytes == sizeof(float) && m->input[TWIN_IN_DISCOUNT].bytes == sizeof(float));
}
