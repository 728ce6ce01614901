#include "learner/statistics.h"
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"

void statistics_open(statistics_t *self, const model_t *model)
{
    const uint32_t envs = model->train.num_envs;
    self->envs = envs;
    self->scaled = model->columns->scaled;
    self->episodes = tt_episodes_new(envs);
    self->before = tt_array0(tt_episodes_block_count(envs), sizeof(double));
    self->returns = tt_returns_new(envs, model->algorithm->gamma(model->cfg));
    self->obs_norm = tt_norm_new(self->scaled);
    self->reward_norm = tt_norm_new(1);
}

void statistics_close(statistics_t *self)
{
    tt_episodes_destroy(&self->episodes);
    tt_returns_destroy(&self->returns);
    tt_norm_destroy(&self->obs_norm);
    tt_norm_destroy(&self->reward_norm);
    free(self->before);
    self->before = NULL;
}

void statistics_reset(statistics_t *self)
{
    tt_episodes_destroy(&self->episodes);
    self->episodes = tt_episodes_new(self->envs);
    memset(tt_returns_state(self->returns), 0, self->envs * sizeof(double));
}

tt_status_t statistics_restore(statistics_t *self, const double *episodes, const double *returns)
{
    const size_t count = tt_episodes_block_count(self->envs);
    double *block = tt_array0(count, sizeof *block); /* what a file holds may not be aligned */
    memcpy(block, episodes, count * sizeof *block);
    const tt_status_t status = tt_episodes_load(self->episodes, block, count);
    free(block);
    memcpy(tt_returns_state(self->returns), returns, self->envs * sizeof(double));
    return status;
}

/* ---- episodes ---------------------------------------------------------------------------------------------------- */

uint32_t statistics_count(statistics_t *self, const batch_t *from, const tt_batch_t *batch)
{
    /* kept as they were: a snapshot holds these, because who restores it assembles this batch, and counts it, again */
    tt_episodes_save(self->episodes, self->before);
    const uint32_t broken = tt_episodes_join(self->episodes, batch_age(from));
    tt_episodes_feed(self->episodes, batch->T, batch_raw_reward(from), batch->terminated, batch->truncated, NULL, NULL);
    self->broken += broken;
    return broken;
}

tt_status_t statistics_uncount(statistics_t *self)
{
    return tt_episodes_load(self->episodes, self->before, tt_episodes_block_count(self->envs));
}

/* ---- normalisers ------------------------------------------------------------------------------------------------- */

tt_status_t statistics_load(statistics_t *self, version_t *version)
{
    TT_TRY(tt_norm_load(self->obs_norm, version_norm(version), tt_norm_block_count(self->scaled)));
    return tt_norm_load(self->reward_norm, version->reward, tt_norm_block_count(1));
}

void statistics_learn(statistics_t *self, const tt_train_cfg_t *train, const batch_t *from, const tt_batch_t *batch)
{
    if (train->normalize.obs)
        tt_norm_merge(self->obs_norm, batch_raw_obs(from), (size_t)batch->T * batch->N);
    tt_returns_forget(self->returns, tt_episodes_broken(self->episodes));
    if (train->normalize.reward)
        tt_returns_feed(
            self->returns, self->reward_norm, batch->T, batch_raw_reward(from), batch->terminated, batch->truncated);
}

void statistics_save(const statistics_t *self, version_t *version)
{
    tt_norm_save(self->obs_norm, version_norm(version));
    tt_norm_save(self->reward_norm, version->reward);
}
