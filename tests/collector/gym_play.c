/*  gym_play - one of Gymnasium's environments through the vec: gym_play ID WORKERS FIRST COUNT STEPS SEED [frames]. Actions come in on stdin, step by
 *  step and column by column as they are stored; out go the first observations, then of each step the observations, rewards, both
 *  flags, and of every env what it was cut at (zeros where it was not). For gym_golden.py. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "collector/registry.h"
#include "collector/vec.h"
#include "common/base/mem.h"

typedef struct {
    const tt_env_ops_t *env;
    tt_columns_t *columns;
    tt_vec_t *vec;
    uint32_t first, count;
    uint64_t seed;
    void *action[TT_COLUMNS_MAX];
    float *reward;
    uint8_t *terminated, *truncated;
} play_t;

static void s_put(const void *data, size_t size)
{
    TT_CHECK(fwrite(data, 1, size, stdout) == size);
}

static void s_put_obs(const play_t *self)
{
    for (uint32_t k = 0; k < self->columns->obs_count; k++)
        s_put(tt_vec_obs(self->vec)[k], (size_t)self->count * self->columns->at[k].bytes);
}

static void s_put_finals(const play_t *self)
{
    for (uint32_t k = 0; k < self->columns->obs_count; k++) {
        const size_t bytes = self->columns->at[k].bytes;
        char *none = tt_new0(bytes);
        for (uint32_t i = 0; i < self->count; i++)
            s_put(self->truncated[i] ? tt_vec_final(self->vec, i, k) : none, bytes);
        free(none);
    }
}

static tt_status_t s_open(play_t *self, const char *id, uint32_t workers, bool frames)
{
    tt_train_cfg_t *cfg = tt_new0(sizeof *cfg);
    snprintf(cfg->env, sizeof cfg->env, "%s", id);
    cfg->gym.workers = workers;
    if (frames) { /* as gym_golden.py wraps it */
        cfg->frames.screen_size = 84;
        cfg->frames.frame_skip = 4;
        cfg->frames.noop_max = 30;
        cfg->frames.terminal_on_life_loss = cfg->frames.clip_reward = true;
    }
    const tt_status_t status = tt_env_of(&self->env, cfg);
    free(cfg);
    TT_TRY(status);
    TT_TRY(tt_columns_new(&self->columns, &self->env->obs, &self->env->action, false, true));
    for (uint32_t k = 0; k < self->columns->action_count; k++)
        self->action[k] = tt_aligned0(self->count * self->columns->at[self->columns->action + k].bytes);
    self->reward = tt_array0(self->count, sizeof *self->reward);
    self->terminated = tt_array0(self->count, 1);
    self->truncated = tt_array0(self->count, 1);
    const tt_vec_cfg_t vec = {
        .ops = self->env, .columns = self->columns, .seed = self->seed, .lo = self->first, .count = self->count};
    return tt_vec_new(&self->vec, &vec);
}

static tt_status_t s_step(play_t *self)
{
    for (uint32_t k = 0; k < self->columns->action_count; k++) {
        const size_t bytes = self->columns->at[self->columns->action + k].bytes;
        if (fread(self->action[k], bytes, self->count, stdin) != self->count)
            return tt_err(TT_DATA, "fewer actions than steps");
    }
    TT_TRY(tt_vec_step(self->vec, (const void *const *)self->action, self->reward, self->terminated, self->truncated));
    s_put_obs(self);
    s_put(self->reward, self->count * sizeof *self->reward);
    s_put(self->terminated, self->count);
    s_put(self->truncated, self->count);
    s_put_finals(self);
    return TT_OK;
}

static void s_close(play_t *self)
{
    tt_vec_destroy(&self->vec);
    tt_columns_destroy(&self->columns);
    for (size_t k = 0; k < TT_COUNT(self->action); k++)
        free(self->action[k]);
    free(self->reward);
    free(self->terminated);
    free(self->truncated);
}

int main(int argc, char **argv)
{
    if (argc != 7 && argc != 8)
        return 64;
    play_t self = {
        .first = (uint32_t)atoi(argv[3]), .count = (uint32_t)atoi(argv[4]), .seed = (uint64_t)atoll(argv[6])};
    tt_status_t status = s_open(&self, argv[1], (uint32_t)atoi(argv[2]), argc == 8);
    if (status == TT_OK)
        s_put_obs(&self);
    for (int t = 0; status == TT_OK && t < atoi(argv[5]); t++)
        status = s_step(&self);
    s_close(&self);
    if (status != TT_OK)
        fprintf(stderr, "gym_play: %s\n", tt_err_text());
    return tt_status_exit_code(status);
}
