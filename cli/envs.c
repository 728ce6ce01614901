/*  envs - the environments there are: spaces, time limit, threshold. Named ones also with bounds and arguments; a path shows
 *  one of the user's own. */
#include "cli/cmd.h"
#include "cli/spaces.h"
#include "collector/registry.h"
#include "common/base/json.h"
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const tt_option_t tt_opt_envs[] = {
    {"output", 0, "text|json", "text (default) or one JSON object"},
    {0},
};

/*  --- JSON: null stands for "no limit" and "no threshold" --- */

static json_t *s_options_json(const tt_env_option_t *option)
{
    json_t *array = json_array();
    for (; option && option->name; option++)
        json_array_append_new(array, json_pack("{s:o, s:o, s:o}", "name", tt_json_text(option->name), "default",
                                         option->initial ? tt_json_text(option->initial) : json_null(), "help",
                                         tt_json_text(option->help ? option->help : "")));
    return array;
}

static json_t *s_env_json(const tt_env_ops_t *env)
{
    json_t *limit = env->max_episode_steps ? json_integer(env->max_episode_steps) : json_null();
    json_t *threshold = isnan(env->reward_threshold) ? json_null() : json_real(env->reward_threshold);
    return json_pack("{s:o, s:o, s:o, s:o, s:b, s:o, s:o, s:o}", "id", tt_json_text(env->id), "summary",
        tt_json_text(env->summary), "observation", space_json(&env->obs), "action", space_json(&env->action), "mask",
        env->mask, "args", s_options_json(env->options), "max_episode_steps", limit, "reward_threshold", threshold);
}

static void s_print_json(const tt_env_ops_t *const *envs, size_t count)
{
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(array, s_env_json(envs[i]));
    json_t *all = json_pack("{s:o}", "envs", array);
    json_dumpf(all, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
    putchar('\n');
    json_decref(all);
}

/*  --- text --- */

/*  A space in a column of the table. */
static void s_cell(char *out, size_t size, const tt_space_t *space)
{
    char *words = space_words(space);
    snprintf(out, size, "%s", words);
    if (strlen(words) >= size)
        snprintf(out + size - 4, 4, "...");
    free(words);
}

static void s_print_table(const tt_env_ops_t *const *envs, size_t count)
{
    printf("%-25s %-16s %-15s %5s %9s  %s\n", "ENV", "OBSERVATION", "ACTION", "LIMIT", "THRESHOLD", "WHAT TO DO");
    for (size_t i = 0; i < count; i++) {
        char obs[17], action[16], limit[16] = "-", threshold[32] = "-";
        s_cell(obs, sizeof obs, &envs[i]->obs);
        s_cell(action, sizeof action, &envs[i]->action);
        if (envs[i]->max_episode_steps)
            snprintf(limit, sizeof limit, "%u", envs[i]->max_episode_steps);
        if (!isnan(envs[i]->reward_threshold))
            snprintf(threshold, sizeof threshold, "%g", envs[i]->reward_threshold);
        printf("%-25s %-16s %-15s %5s %9s  %s\n", envs[i]->id, obs, action, limit, threshold, envs[i]->summary);
    }
}

static void s_print_env(const tt_env_ops_t *env)
{
    printf("\n%s\n", env->id);
    space_print(stdout, "observation", &env->obs);
    space_print(stdout, "action", &env->action);
    if (env->mask)
        puts("  mask: it says which choices are allowed");
    for (const tt_env_option_t *option = env->options; option && option->name; option++)
        printf("  env.args.%s: %s%s%s%s\n", option->name, option->help ? option->help : "", option->initial ? " (" : "",
            option->initial ? option->initial : "", option->initial ? ")" : "");
}

static void s_print_text(const tt_env_ops_t *const *envs, size_t count, bool named)
{
    s_print_table(envs, count);
    for (size_t i = 0; named && i < count; i++)
        s_print_env(envs[i]);
}

int tt_cmd_envs(int argc, char **argv)
{
    enum { MOST = 64 };
    int code;
    TT_AUTO(tt_args) args = tt_args_new(&code, "envs", argc, argv);
    if (!args)
        return code;
    const tt_env_ops_t *chosen[MOST];
    const size_t named = tt_operand_count(args);
    if (named > MOST)
        return tt_args_fail(args, tt_err(TT_USAGE, "at most %d environments at a time", MOST));
    for (size_t i = 0; i < named; i++) {
        const tt_status_t status = tt_env_find(&chosen[i], tt_operand(args, i));
        if (status != TT_OK)
            return tt_args_fail(args, status);
    }
    size_t count = named;
    const tt_env_ops_t *const *envs = named ? chosen : tt_envs(&count);
    if (tt_arg_is(args, "output", "json"))
        s_print_json(envs, count);
    else
        s_print_text(envs, count, named > 0);
    return 0;
}
