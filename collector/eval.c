#include "collector/eval.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "collector/carry.h"
#include "collector/frames.h"
#include "collector/vec.h"
#include "common/base/mem.h"
#include "common/base/rng.h"
#include "common/rl/policy.h"

enum { TOGETHER = 128 /* episodes played side by side */ };

typedef struct {
    const eval_cfg_t *cfg;
    tt_vec_t *vec;
    const tt_policy_t *policy;
    uint32_t actor; /* tower */
    frames_t frames;
    carry_t carry;
    uint32_t E;    /* envs                          */
    uint32_t left; /* episodes that have not ended  */
    bool *ended;
    float *head, *reward;
    void *action[TT_COLUMNS_MAX];
    uint8_t *terminated, *truncated;
} game_t;

/*  The tower that the best action is looked for in; their number where there is none. */
static uint32_t s_head(const tt_net_spec_t *spec)
{
    const uint32_t actor = tt_net_tower(spec, "actor");
    return actor < spec->towers ? actor : tt_net_tower(spec, "q");
}

static void s_close(game_t *self)
{
    tt_vec_destroy(&self->vec);
    frames_free(&self->frames);
    carry_free(&self->carry);
    free(self->ended);
    free(self->head);
    free(self->reward);
    for (uint32_t k = 0; k < self->policy->parts; k++)
        free(self->action[k]);
    free(self->terminated);
    free(self->truncated);
}

static tt_status_t s_open(
    game_t *self, const eval_cfg_t *cfg, const tt_policy_t *policy, uint64_t seed, uint32_t first, uint32_t count)
{
    const tt_columns_t *columns = cfg->columns;
    const tt_vec_cfg_t vec = {.ops = cfg->env,
        .args = cfg->args,
        .columns = columns,
        .squash = cfg->squash,
        .seed = seed,
        .lo = first,
        .count = count};
    *self = (game_t){.cfg = cfg, .policy = policy, .E = count, .left = count};
    self->actor = s_head(tt_net_spec(tt_inference_net(cfg->net)));
    TT_TRY(tt_vec_new(&self->vec, &vec));
    frames_init(&self->frames, columns, cfg->norm != NULL, cfg->clip_obs);
    carry_init(&self->carry, columns, count);
    self->ended = tt_array0(count, sizeof *self->ended);
    self->head = tt_array0(tt_mul(count, policy->out), sizeof *self->head);
    self->reward = tt_array0(count, sizeof *self->reward);
    for (uint32_t k = 0; k < policy->parts; k++)
        self->action[k] = tt_aligned0(tt_mul(count, columns->at[columns->action + k].bytes));
    self->terminated = tt_array0(count, 1);
    self->truncated = tt_array0(count, 1);
    return TT_OK;
}

static tt_status_t s_act(game_t *self)
{
    const void *const *row = frames_now(&self->frames, self->vec, 0, self->E, self->cfg->norm, tt_vec_obs(self->vec));
    const tt_carry_t carry = carry_step(&self->carry, 0);
    float *out[TT_TOWERS_MAX] = {NULL};
    out[self->actor] = self->head;
    TT_TRY(tt_inference_run(self->cfg->net, row, self->E, carry.in ? &carry : NULL, out));
    for (size_t i = 0; i < (size_t)self->E * self->policy->out; i++)
        if (!isfinite(self->head[i]))
            return tt_err(TT_DIVERGED, "the policy gives numbers that are not finite");
    tt_policy_greedy(self->policy, self->head, tt_vec_mask(self->vec), self->E, self->action);
    return TT_OK;
}

/*  The one that is played. */
static tt_status_t s_look(const game_t *self, bool ended, bool last)
{
    const void *row[TT_COLUMNS_MAX];
    if (!self->cfg->look)
        return TT_OK;
    for (uint32_t k = 0; k < self->cfg->columns->obs_count; k++)
        row[k] = ended ? tt_vec_final(self->vec, 0, k) : tt_vec_obs(self->vec)[k];
    return self->cfg->look(self->cfg->look_ctx, row, last);
}

static tt_status_t s_step(game_t *self, eval_episode_t *out)
{
    const void *const *action = (const void *const *)self->action;
    TT_TRY(s_act(self));
    TT_TRY(tt_vec_step(self->vec, action, self->reward, self->terminated, self->truncated));
    carry_end(&self->carry, 0, self->E, self->terminated, self->truncated);
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
    return s_look(self, self->terminated[0] || self->truncated[0], self->left == 0);
}

static tt_status_t s_watch(const game_t *self, uint32_t first)
{
    const eval_cfg_t *cfg = self->cfg;
    if (!cfg->watch || cfg->watch(cfg->watch_ctx, first + self->E - self->left))
        return TT_OK;
    return tt_err(TT_STOPPED, "the evaluation was stopped");
}

static tt_status_t s_play(const eval_cfg_t *cfg, const tt_policy_t *policy, uint64_t seed, uint32_t first,
    uint32_t count, eval_episode_t *out)
{
    game_t game;
    tt_status_t status = s_open(&game, cfg, policy, seed, first, count);
    if (status == TT_OK)
        status = s_look(&game, false, false);
    while (status == TT_OK && game.left) {
        status = s_step(&game, out);
        if (status == TT_OK)
            status = s_watch(&game, first);
    }
    s_close(&game);
    return status;
}

tt_status_t eval_play(const eval_cfg_t *cfg, eval_episode_t *out)
{
    const tt_net_spec_t *spec = tt_net_spec(tt_inference_net(cfg->net));
    tt_policy_t policy;
    tt_policy_of(&policy, cfg->columns);
    if (s_head(spec) == spec->towers)
        return tt_err(TT_INVALID, "the network has no tower 'actor', nor one called 'q'");
    const tt_tower_t *actor = &spec->tower[s_head(spec)];
    if (tt_net_row_bytes(spec) != cfg->columns->row || spec->obs != cfg->columns->flat || actor->out != policy.out ||
        tt_tower_deviations(actor) != policy.log_std)
        return tt_err(TT_INVALID, "the policy (%u in, %u out, %u deviations) does not fit %s (%u observed, %u, %u)",
            spec->obs, actor->out, tt_tower_deviations(actor), cfg->env->id, cfg->columns->flat, policy.out,
            policy.log_std);
    TT_TRY(carry_check(cfg->columns, spec));
    uint32_t words[4];
    tt_draw(words, cfg->seed, TT_STREAM_EVAL, 0, 0);
    const uint64_t seed = (uint64_t)words[1] << 32 | words[0];
    memset(out, 0, cfg->episodes * sizeof *out);
    const uint32_t together = cfg->look ? 1 : TOGETHER;
    for (uint32_t first = 0; first < cfg->episodes; first += together) {
        const uint32_t left = cfg->episodes - first;
        TT_TRY(s_play(cfg, &policy, seed, first, left < together ? left : together, out + first));
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
