#include "learner/data.h"
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/job/fit.h"

static void s_open_experience(data_t *self, const model_t *model)
{
    const tt_train_cfg_t *train = &model->train;
    const intake_cfg_t intake = {.N = train->num_envs,
        .T = train->num_steps,
        .columns = model->columns,
        .state_bytes = tt_train_state_bytes(train, model->columns),
        .lag = train->lag};
    const batch_cfg_t batch = {.N = train->num_envs,
        .T = train->num_steps,
        .columns = model->columns,
        .scale_obs = train->normalize.obs,
        .scale_reward = train->normalize.reward,
        .clip_obs = train->normalize.clip_obs,
        .clip_reward = train->normalize.clip_reward};
    self->intake = intake_new(&intake);
    self->batch = batch_new(&batch);
}

static tt_status_t s_open_memory(data_t *self, const model_t *model)
{
    const tt_feed_t *feed = &model->shape.feed;
    if (feed->source != TT_FEED_REPLAY)
        return TT_OK;
    TT_TRY(memory_new(&self->memory, &model->train, model->columns, feed, model->algorithm->gamma(model->cfg)));
    return memory_place(self->memory, model->device, model->stream);
}

static tt_status_t s_open_compute(data_t *self, const model_t *model, const data_net_t *net)
{
    const allreduce_cfg_t allreduce = {.loop = net->loop,
        .keys = net->keys,
        .index = net->index,
        .instance = net->instance,
        .shards = model->train.learner.shards,
        .count = model->grads,
        .memory = model->train.net.shared_memory ? net->memory : NULL,
        .dir = net->dir,
        .resend_ms = model->train.net.lease_ms,
        .clock = net->clock};
    self->allreduce = allreduce_new(&allreduce);
    return compute_new(&self->compute, model);
}

static void s_open_ends(data_t *self, const model_t *model, const data_net_t *net)
{
    const publish_cfg_t publish = {.params = model->params,
        .norm = tt_norm_block_count(model->columns->scaled),
        .reward = tt_norm_block_count(1),
        .keep = model->train.lag + 2};
    const ask_cfg_t ask = {.loop = net->loop,
        .keys = net->keys,
        .index = net->index,
        .instance = net->instance,
        .repeat_ms = model->train.net.lease_ms,
        .clock = net->clock};
    self->publish = publish_new(&publish);
    self->ask = ask_new(&ask);
}

tt_status_t data_open(data_t *self, const model_t *model, const data_net_t *net)
{
    s_open_experience(self, model);
    TT_TRY(s_open_compute(self, model, net));
    TT_TRY(s_open_memory(self, model)); /* takes what room the device has left */
    s_open_ends(self, model, net);
    return TT_OK;
}

void data_close(data_t *self)
{
    allreduce_destroy(&self->allreduce);
    ask_destroy(&self->ask);
    intake_destroy(&self->intake);
    batch_destroy(&self->batch);
    publish_destroy(&self->publish);
    compute_destroy(&self->compute);
    memory_destroy(&self->memory); /* its frames are in tables of the former */
    data_resume(self, NULL, 0);
}

void data_reset(data_t *self)
{
    data_resume(self, NULL, 0);
    results_drop(compute_results(self->compute));
    publish_reset(self->publish);
    intake_reset(self->intake, 0);
    allreduce_forget(self->allreduce);
    if (self->memory)
        memory_reset(self->memory);
}

void data_assemble(
    data_t *self, uint64_t update, uint64_t env_steps, const tt_norm_t *obs_norm, const tt_norm_t *reward_norm)
{
    batch_assemble(self->batch, intake_batch(self->intake, update), obs_norm, reward_norm, &self->current);
    self->current.env_steps = env_steps;
}

void data_resume(data_t *self, const float *params, size_t count)
{
    free(self->resume);
    self->resume = NULL;
    if (!params)
        return;
    self->resume = tt_aligned0(tt_mul(count, sizeof(float)));
    memcpy(self->resume, params, count * sizeof(float));
}
