/*  state - between the process and a snapshot. */
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/job/fit.h"
#include "learner/core.h"

void state_expect(core_t *self, tt_snapshot_t *out)
{
    const tt_train_cfg_t *train = &self->model.train;
    *out = (tt_snapshot_t){.config = self->model.text,
        .env = train->env,
        .algorithm = self->model.algorithm->name,
        .param_count = self->model.params,
        .opts = self->model.opts,
        .norm_count = tt_norm_block_count(self->model.columns->scaled),
        .reward_count = tt_norm_block_count(1),
        .sum_count = self->model.grads,
        .envs = train->num_envs,
        .env_bytes = tt_train_state_bytes(train, self->model.columns),
        .episodes_count = tt_episodes_block_count(train->num_envs),
        .sets = self->model.shape.sets,
        .replays = self->data.memory != NULL};
    for (uint32_t g = 0; g < out->opts; g++)
        out->opt[g] = (tt_snapshot_opt_t){.name = self->model.groups.at[g].name, .count = self->model.opt_count[g]};
    out->tensor = tt_net_tensors(self->model.net, &out->tensors);
}

/* ---- capture ----------------------------------------------------------------------------------------------------- */

static void s_capture_versions(core_t *self, tt_snapshot_t *out)
{
    const uint64_t lag = self->model.train.lag;
    for (uint64_t v = self->at.update > lag ? self->at.update - lag : 0; v <= self->at.update; v++) {
        version_t *version = publish_find(self->data.publish, v);
        if (!version || out->versions == TT_SNAPSHOT_VERSIONS_MAX)
            continue;
        out->version[out->versions++] =
            (tt_snapshot_version_t){v, version_params(version), version_norm(version), version->reward};
    }
}

static tt_status_t s_capture_params(core_t *self, tt_snapshot_t *out)
{
    float *params = tt_aligned0(tt_mul(self->model.params, sizeof(float)));
    out->params = out->owned = params;
    if (!self->data.resume)
        return tt_net_get(self->model.net, self->model.stream, 0, params);
    memcpy(params, self->data.resume, self->model.params * sizeof(float));
    return TT_OK;
}

static tt_status_t s_capture_opts(core_t *self, tt_snapshot_t *out)
{
    for (uint32_t g = 0; g < out->opts; g++) {
        float *state = tt_aligned0(tt_mul(self->model.opt_count[g], sizeof(float)));
        out->opt[g].state = state;
        out->opt[g].step = tt_opt_steps(self->model.opt[g]);
        TT_TRY(tt_opt_get(self->model.opt[g], self->model.stream, state));
    }
    return TT_OK;
}

/*  As of before the batch in hand: whoever restores counts it again. */
static double *s_episodes_now(core_t *self, size_t count)
{
    double *block = tt_array0(count, sizeof *block);
    if (self->at.batches_counted > self->at.update)
        memcpy(block, self->statistics.before, count * sizeof *block);
    else
        tt_episodes_save(self->statistics.episodes, block);
    return block;
}

static uint8_t *s_states_now(core_t *self)
{
    const tt_train_cfg_t *train = &self->model.train;
    const size_t each = tt_train_state_bytes(train, self->model.columns);
    uint8_t *states = tt_new0(tt_mul(train->num_envs, each));
    if (each && intake_states(self->data.intake, self->at.update, 0, train->num_envs, states) == TT_OK)
        return states;
    free(states);
    return NULL;
}

static tt_status_t s_capture_sets(core_t *self, tt_snapshot_t *out)
{
    for (uint32_t k = 1; k < out->sets; k++) {
        float *params = tt_aligned0(tt_mul(self->model.params, sizeof(float)));
        out->set[k] = params;
        TT_TRY(tt_net_get(self->model.net, self->model.stream, k, params));
    }
    return TT_OK;
}

/*  What lies on the device, which may be lost. */
static tt_status_t s_capture_network(core_t *self, tt_snapshot_t *out)
{
    TT_TRY(s_capture_opts(self, out));
    TT_TRY(s_capture_params(self, out));
    return s_capture_sets(self, out);
}

/*  With the batch in hand once that is in: who restores it does not put it in again. */
static void s_capture_replay(core_t *self, state_replay_t how, uint64_t since, tt_snapshot_t *out)
{
    tt_buf_t bytes;
    if (!self->data.memory || how == STATE_REPLAY_NONE)
        return;
    const replay_t *replay = memory_replay(self->data.memory);
    const uint64_t oldest = replay_oldest(replay), settled = replay_settled(replay);
    uint64_t from = since < oldest ? oldest : since > settled ? settled : since;
    if (how == STATE_REPLAY_BESIDE)
        out->piece = keep_pieces(self->keeping.keep, oldest, &out->pieces);
    if (out->pieces)
        from = out->piece[out->pieces - 1].next;
    tt_buf_init(&bytes, SIZE_MAX / 2);
    const tt_status_t saved = replay_save(replay, from, &bytes);
    TT_CHECK(saved == TT_OK);
    out->replay = bytes.data;
    out->replay_bytes = bytes.size;
}

tt_status_t state_capture(core_t *self, state_replay_t replay, uint64_t since, tt_snapshot_t *out)
{
    TT_TRY(update_settle(self));
    state_expect(self, out);
    const tt_status_t status = s_capture_network(self, out);
    if (status != TT_OK) {
        state_release(out);
        return status;
    }
    out->return_mean = tt_episodes_return_mean(self->statistics.episodes);
    out->update = self->at.update;
    out->steps = self->at.steps;
    out->made = self->at.made;
    out->trained = self->at.trained;
    out->lag_max = self->at.lag_max;
    out->step = self->at.step;
    out->solved = self->record.solved_steps;
    out->best = self->record.best;
    out->episodes = s_episodes_now(self, out->episodes_count);
    out->env_states = s_states_now(self);
    out->returns = tt_returns_state(self->statistics.returns);
    s_capture_versions(self, out);
    s_capture_replay(self, replay, since, out);
    if (self->evaluate)
        evaluate_capture(self->evaluate, out);
    return TT_OK;
}

void state_release(tt_snapshot_t *snapshot)
{
    free(snapshot->owned);
    for (uint32_t g = 0; g < snapshot->opts; g++)
        free((void *)(uintptr_t)snapshot->opt[g].state);
    free((void *)(uintptr_t)snapshot->episodes);
    free((void *)(uintptr_t)snapshot->env_states);
    for (uint32_t k = 1; k < snapshot->sets; k++)
        free((void *)(uintptr_t)snapshot->set[k]);
    free((void *)(uintptr_t)snapshot->replay);
    *snapshot = (tt_snapshot_t){0};
}

/* ---- restore ----------------------------------------------------------------------------------------------------- */

static tt_status_t s_restore_versions(core_t *self, const tt_snapshot_t *from)
{
    const uint64_t lag = self->model.train.lag, needed = from->update > lag ? from->update - lag : 0;
    if (from->versions == 0 || from->version[0].version > needed)
        return tt_err(TT_DATA,
            "the snapshot of update %llu lacks version %llu: it was made with a smaller lag; set lag as it was then",
            (unsigned long long)from->update, (unsigned long long)needed);
    publish_reset(self->data.publish);
    for (size_t i = 0; i < from->versions; i++) {
        const tt_snapshot_version_t *version = &from->version[i];
        version_t *slot = publish_add(self->data.publish, version->version);
        memcpy(version_params(slot), version->params, from->param_count * sizeof(float));
        memcpy(version_norm(slot), version->norm, from->norm_count * sizeof(double));
        memcpy(slot->reward, version->reward, from->reward_count * sizeof(double));
        TT_TRY(statistics_load(&self->statistics, slot)); /* they may be no such blocks */
    }
    return TT_OK;
}

tt_status_t state_restore(core_t *self, const tt_snapshot_t *from, const char *folder)
{
    const position_mark_t mark = {.update = from->update,
        .step = from->step,
        .steps = from->steps,
        .made = from->made,
        .trained = from->trained,
        .lag_max = from->lag_max};
    TT_TRY(keeping_load(self, from, folder));
    TT_TRY(s_restore_versions(self, from));
    if (self->evaluate)
        evaluate_restore(self->evaluate, from);
    TT_TRY(statistics_restore(&self->statistics, from->episodes, from->returns));
    TT_TRY(tt_net_put(self->model.net, self->model.stream, 0, version_params(publish_newest(self->data.publish))));
    for (uint32_t k = 1; k < from->sets; k++)
        TT_TRY(tt_net_put(self->model.net, self->model.stream, k, from->set[k]));
    for (uint32_t g = 0; g < from->opts; g++)
        TT_TRY(tt_opt_put(self->model.opt[g], self->model.stream, from->opt[g].state, from->opt[g].step));
    /* begin needs version n, the next step needs the weights now */
    data_resume(&self->data, from->step > 0 ? from->params : NULL, from->param_count);
    if (from->sum)
        allreduce_keep(self->data.allreduce, from->sum_step, from->sum);
    intake_reset(self->data.intake, from->update);
    if (from->env_states)
        intake_put_states(self->data.intake, from->env_states);
    position_join(&self->at, &mark);
    record_restore(&self->record, from->solved, from->return_mean, from->best);
    return TT_OK;
}
