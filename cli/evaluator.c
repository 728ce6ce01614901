#include "cli/evaluator.h"
#include <stdlib.h>
#include "collector/eval.h"
#include "collector/registry.h"
#include "collector/same_env.h"
#include "common/base/mem.h"
#include "common/job/fit.h"

typedef struct {
    tt_inference_t *net;
    tt_norm_t *norm;
} actor_t;

static tt_status_t s_open(actor_t *self, const evaluate_game_t *game)
{
    const tt_net_spec_t spec = tt_train_net(game->train, game->columns);
    /* wherever the learner learns: how a version does is a function of it and the config (evaluate.h), and a card has other bits */
    TT_TRY(tt_inference_new(&self->net, "cpu", 0, &spec));
    TT_TRY(tt_inference_put(self->net, game->params));
    if (!game->train->normalize.obs)
        return TT_OK;
    self->norm = tt_norm_new(game->columns->scaled);
    return tt_norm_load(self->norm, game->norm, tt_norm_block_count(game->columns->scaled));
}

static void s_close(actor_t *self)
{
    tt_norm_destroy(&self->norm);
    tt_inference_destroy(&self->net);
}

static tt_status_t s_play(const actor_t *self, const evaluate_game_t *game, evaluate_result_t *out)
{
    const tt_train_cfg_t *train = game->train;
    tt_env_arg_t args[TT_ENV_ARGS_MAX + 1] = {{0}};
    eval_cfg_t cfg = {.args = args,
        .columns = game->columns,
        .net = self->net,
        .norm = self->norm,
        .clip_obs = train->normalize.clip_obs,
        .squash = train->actor.squash,
        .seed = train->eval.seed,
        .episodes = train->eval.episodes,
        .max_steps = EVAL_STEPS_MAX,
        .watch = game->watch,
        .watch_ctx = game->watch_ctx};
    tt_env_args_of(args, train);
    TT_TRY(tt_env_of(&cfg.env, train));
    TT_TRY(same_env_check(cfg.env, train));
    eval_episode_t *episode = tt_array0(cfg.episodes, sizeof *episode);
    const tt_status_t status = eval_play(&cfg, episode);
    if (status == TT_OK) {
        const eval_summary_t sum = eval_summary(episode, cfg.episodes);
        *out = (evaluate_result_t){sum.mean, sum.std, sum.min, sum.max, sum.length, sum.cut};
    }
    free(episode);
    return status;
}

tt_status_t evaluator_play(const evaluate_game_t *game, evaluate_result_t *out)
{
    actor_t actor = {0};
    tt_status_t status = s_open(&actor, game);
    if (status == TT_OK)
        status = s_play(&actor, game, out);
    s_close(&actor);
    return status;
}
