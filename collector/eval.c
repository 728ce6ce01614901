#include "collector/eval.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "collector/vec.h"
#include "common/base/mem.h"
#include "common/base/rng.h"
#include "common/rl/dist.h"

enum { TOGETHER = 128 /* episodes played side by side */ };

typedef struct {
    const eval_cfg_t *cfg;
    tt_vec_t *vec;
    uint32_t E, D, A; /* envs, observed elements, actions or their elements */
    uint32_t left;    /* episodes that have not ended                       */
    bool *ended;
    float *scaled, *head, *reward;
    const float **row;
    int32_t *choice;
    uint8_t *terminated, *truncated;
} game_t;

static void s_close(game_t *self)
{
    tt_vec_destroy(&self->vec);
    free(self->ended);
    free(self->scaled);
    free(self->head);
    free(self->reward);
    free(self->row);
    free(self->choice);
    free(self->terminated);
    free(self->truncated);
}

static tt_status_t s_open(game_t *self, const eval_cfg_t *cfg, uint64_t seed, uint32_t first, uint32_t count)
{
    *self = (game_t){.cfg = cfg, .E = count, .D = cfg->env->obs.n, .A = cfg->env->action.n, .left = count};
    TT_TRY(tt_vec_new(&self->vec, cfg->env, seed, first, count, 0));
    self->ended = tt_array0(count, sizeof *self->ended);
    self->scaled = tt_array0(tt_mul(count, self->D), sizeof *self->scaled);
    self->head = tt_array0(tt_mul(count, self->A), sizeof *self->head);
    self->reward = tt_array0(count, sizeof *self->reward);
    self->row = tt_array0(count, sizeof *self->row);
    self->choice = tt_array0(count, sizeof *self->choice);
    self->terminated = tt_array0(count, 1);
    self->truncated = tt_array0(count, 1);
    return TT_OK;
}

static tt_status_t s_act(game_t *self, const void **action)
{
    const float *obs = tt_vec_obs(self->vec);
    if (self->cfg->norm) {
        tt_norm_scale(self->cfg->norm, obs, self->E, self->cfg->clip_obs, self->scaled);
        obs = self->scaled;
    }
    for (uint32_t i = 0; i < self->E; i++)
        self->row[i] = obs + (size_t)i * self->D;
    TT_TRY(tt_net_forward(self->cfg->net, 0, self->row, self->E, self->head, NULL));
    for (size_t i = 0; i < (size_t)self->E * self->A; i++)
        if (!isfinite(self->head[i]))
            return tt_err(TT_INTERNAL, "the policy gives numbers that are not finite");
    *action = self->head;
    if (self->cfg->env->action.kind == TT_SPACE_DISCRETE) {
        tt_cat_greedy(self->head, self->E, self->A, self->choice);
        *action = self->choice;
    }
    return TT_OK;
}

static tt_status_t s_step(game_t *self, eval_episode_t *out)
{
    const void *action = NULL;
    TT_TRY(s_act(self, &action));
    TT_TRY(tt_vec_step(self->vec, action, self->reward, self->terminated, self->truncated));
    for (uint32_t i = 0; i < self->E; i++) {
        if (self->ended[i])
            continue; /* its env goes on with another episode, which does not count */
        out[i].ret += (double)self->reward[i];
        out[i].length++;
        out[i].cut = !self->terminated[i] && !self->truncated[i] && out[i].length == self->cfg->max_steps;
        if (self->terminated[i] || self->truncated[i] || out[i].cut) {
            self->ended[i] = true;
            self->left--;
        }
    }
    return TT_OK;
}

static tt_status_t s_play(const eval_cfg_t *cfg, uint64_t seed, uint32_t first, uint32_t count, eval_episode_t *out)
{
    game_t game;
    tt_status_t status = s_open(&game, cfg, seed, first, count);
    while (status == TT_OK && game.left)
        status = s_step(&game, out);
    s_close(&game);
    return status;
}

tt_status_t eval_play(const eval_cfg_t *cfg, eval_episode_t *out)
{
    const tt_net_spec_t *spec = tt_net_spec(cfg->net);
    const bool box = cfg->env->action.kind == TT_SPACE_BOX;
    if (spec->obs != cfg->env->obs.n || spec->out != cfg->env->action.n || spec->continuous != box)
        return tt_err(TT_INVALID, "the policy (%u in, %u %s) does not fit %s (%u observed, %u %s)", spec->obs,
            spec->out, spec->continuous ? "action elements" : "actions", cfg->env->id, cfg->env->obs.n,
            cfg->env->action.n, box ? "action elements" : "actions");
    uint32_t words[4];
    tt_draw(words, cfg->seed, TT_STREAM_EVAL, 0, 0);
    const uint64_t seed = (uint64_t)words[1] << 32 | words[0];
    memset(out, 0, cfg->episodes * sizeof *out);
    for (uint32_t first = 0; first < cfg->episodes; first += TOGETHER) {
        const uint32_t left = cfg->episodes - first;
        TT_TRY(s_play(cfg, seed, first, left < TOGETHER ? left : TOGETHER, out + first));
    }
    return TT_OK;
}

eval_summary_t eval_summary(const eval_episode_t *episode, uint32_t count)
{
    eval_summary_t out = {.min = INFINITY, .max = -INFINITY};
    for (uint32_t i = 0; i < count; i++) {
        out.mean += episode[i].ret / count;
        out.length += (double)episode[i].length / count;
        out.min = fmin(out.min, episode[i].ret);
        out.max = fmax(out.max, episode[i].ret);
        out.cut += episode[i].cut;
    }
    for (uint32_t i = 0; i < count; i++)
        out.std += (episode[i].ret - out.mean) * (episode[i].ret - out.mean) / count;
    out.std = sqrt(out.std);
    return out;
}
