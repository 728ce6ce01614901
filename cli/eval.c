/*  eval - how good a checkpoint's policy is: episodes with its most probable actions, in this process. */
#include "cli/cmd.h"
#include "cli/variables.h"
#include "cli/render.h"
#include "cli/weights.h"
#include "collector/checkpoint.h"
#include "collector/eval.h"
#include "collector/registry.h"
#include "collector/same_env.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/text.h"
#include "common/job/diverged.h"
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const tt_option_t tt_opt_eval[] = {
    {"episodes", 'n', "N", "episodes to play, 1 to 1000000 (default 100, with --render 1)"},
    {"seed", 0, "N", "of the environments; never the starts that training saw (default 1)"},
    {"env", 0, "ENV", "another environment of the same spaces (default: the checkpoint's)"},
    {"max-steps", 0, "N", "cut an episode there, 0 = never (default 1000000)"},
    {"device", 0, "DEVICE",
        "where the policy is evaluated: cpu (default), cuda, cuda:N or auto; the result is the same"},
    {"render", 0, "FILE", "show the episodes as an animation, FILE.gif, or as PNG files in a folder, FOLDER/"},
    {"force", 'f', NULL, "with --render: put the file in the place of one that is there"},
    {"output", 0, "text|json", "text (default) or one JSON object"},
    {0},
};

typedef struct {
    char path[4096];
    uint64_t episodes, seed, max_steps;
    checkpoint_t checkpoint;
    const tt_env_ops_t *env;
    eval_episode_t *episode;
    render_t *render; /* NULL = nobody looks */
} eval_t;

/*  own: the env that it was trained in, with the arguments that it was trained with. */
static tt_status_t s_play(eval_t *self, bool own)
{
    tt_env_arg_t args[TT_ENV_ARGS_MAX + 1] = {{0}};
    if (own)
        tt_env_args_of(args, &self->checkpoint.cfg);
    const eval_cfg_t cfg = {.env = self->env,
        .args = args,
        .columns = self->checkpoint.columns,
        .net = self->checkpoint.net,
        .norm = self->checkpoint.norm,
        .clip_obs = self->checkpoint.cfg.normalize.clip_obs,
        .squash = self->checkpoint.cfg.actor.squash,
        .seed = self->seed,
        .episodes = (uint32_t)self->episodes,
        .max_steps = (uint32_t)self->max_steps,
        .look = self->render ? render_look : NULL,
        .look_ctx = self->render};
    self->episode = tt_array0(self->episodes, sizeof *self->episode);
    const tt_status_t status = eval_play(&cfg, self->episode);
    if (status != TT_OK)
        return status == TT_DIVERGED ? tt_diverged("%s: %s", self->path, tt_err_text()) : status;
    return self->render ? render_finish(self->render) : TT_OK;
}

static tt_status_t s_run(eval_t *self, const tt_args_t *args)
{
    static const same_env_words_t words = {"checkpoint", "its policy can play an environment of those spaces alone"};
    const char *picture = tt_arg(args, "render");
    const char *device = tt_arg_given(args, "device") ? tt_arg(args, "device") : "cpu";
    self->episodes = picture ? 1 : 100;
    self->seed = 1;
    self->max_steps = EVAL_STEPS_MAX;
    TT_TRY(variables_check());
    const tt_status_t known = tt_device_check_wish(device);
    if (known != TT_OK)
        return tt_err_wrap(known, "--device");
    TT_TRY(weights_of(self->path, sizeof self->path, tt_operand(args, 0), false));
    TT_TRY(tt_arg_u64(args, "episodes", &self->episodes, 1, 1000000));
    TT_TRY(tt_arg_u64(args, "seed", &self->seed, 0, UINT64_MAX));
    TT_TRY(tt_arg_u64(args, "max-steps", &self->max_steps, 0, UINT32_MAX));
    TT_TRY(checkpoint_open(&self->checkpoint, self->path, device));
    const char *trained = self->checkpoint.cfg.env, *env = tt_arg_given(args, "env") ? tt_arg(args, "env") : trained;
    const bool own = strcmp(env, trained) == 0;
    if (picture)
        TT_TRY(render_new(&self->render, picture, tt_arg_given(args, "force"), env));
    TT_TRY(own ? tt_env_of(&self->env, &self->checkpoint.cfg) : tt_env_find(&self->env, env));
    TT_TRY(same_spaces_check(self->env, env, &self->checkpoint.cfg, &words));
    if (self->render)
        TT_TRY(render_env(self->render, self->env, self->checkpoint.columns));
    return s_play(self, own);
}

static json_t *s_render_json(const eval_t *self)
{
    const render_about_t about = render_about(self->render);
    return json_pack("{s:o, s:I, s:i, s:i, s:f, s:I}", "path", tt_json_text(about.path), "pictures",
        (json_int_t)about.pictures, "width", (int)about.width, "height", (int)about.height, "fps", about.fps, "bytes",
        (json_int_t)about.bytes);
}

static void s_print_json(const eval_t *self, const eval_summary_t *sum)
{
    json_t *threshold = isnan(self->env->reward_threshold) ? json_null() : json_real(self->env->reward_threshold);
    json_t *render = self->render ? s_render_json(self) : json_null();
    json_t *all = json_pack("{s:o, s:o, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:I, s:o, s:o}", "checkpoint",
        tt_json_text(self->path), "env", tt_json_text(self->env->id), "updates", (json_int_t)self->checkpoint.update,
        "episodes", (json_int_t)self->episodes, "seed", (json_int_t)self->seed, "return_mean", sum->mean, "return_std",
        sum->std, "return_min", sum->min, "return_max", sum->max, "length_mean", sum->length, "cut",
        (json_int_t)sum->cut, "threshold", threshold, "render", render);
    json_dumpf(all, stdout, JSON_COMPACT | JSON_REAL_PRECISION(17));
    putchar('\n');
    json_decref(all);
}

static void s_print_text(const eval_t *self, const eval_summary_t *sum)
{
    printf("%s  %s, version %llu\n", tt_shown(self->path), self->env->id, (unsigned long long)self->checkpoint.update);
    printf("  return %.2f +- %.2f over %llu episodes (%.2f to %.2f), %.1f steps each\n", sum->mean, sum->std,
        (unsigned long long)self->episodes, sum->min, sum->max, sum->length);
    if (!isnan(self->env->reward_threshold))
        printf("  %s counts as solved from %g on\n", self->env->id, self->env->reward_threshold);
    if (sum->cut)
        printf("  %u episodes were cut at %llu steps\n", sum->cut, (unsigned long long)self->max_steps);
    if (!self->render)
        return;
    const render_about_t about = render_about(self->render);
    printf("  %s: %llu pictures of %u x %u, %g a second, %llu bytes\n", tt_shown(about.path),
        (unsigned long long)about.pictures, about.width, about.height, about.fps, (unsigned long long)about.bytes);
}

int tt_cmd_eval(int argc, char **argv)
{
    int code;
    TT_AUTO(tt_args) args = tt_args_new(&code, "eval", argc, argv);
    if (!args)
        return code;
    eval_t self = {0};
    const tt_status_t status = s_run(&self, args);
    if (status == TT_OK) {
        const eval_summary_t sum = eval_summary(self.episode, (uint32_t)self.episodes);
        if (tt_arg_is(args, "output", "json"))
            s_print_json(&self, &sum);
        else
            s_print_text(&self, &sum);
    }
    render_destroy(&self.render);
    checkpoint_close(&self.checkpoint);
    free(self.episode);
    return status == TT_OK ? 0 : tt_args_fail(args, status);
}
