/*  envs - the environments there are: spaces, time limit, threshold. A path shows one of the user's own. */
#include "cli/cmd.h"
#include "cli/comes_to.h"
#include "collector/registry.h"
#include "common/base/json.h"
#include <jansson.h>
#include <math.h>
#include <stdio.h>

const tt_option_t tt_opt_envs[] = {
    {"output", 0, "text|json", "text (default) or one JSON object"},
    {0},
};

/*  --- JSON: null stands for "no bound", "no limit" and "no threshold" --- */

static json_t *s_bounds(const float *bounds, uint32_t n)
{
    json_t *array = json_array();
    for (uint32_t i = 0; i < n; i++)
        json_array_append_new(array, isinf(bounds[i]) ? json_null() : json_real((double)bounds[i]));
    return array;
}

static json_t *s_space_json(const tt_space_t *space)
{
    if (space->kind == TT_SPACE_DISCRETE)
        return json_pack("{s:s, s:I}", "kind", "discrete", "n", (json_int_t)space->n);
    return json_pack("{s:s, s:I, s:o, s:o}", "kind", "box", "n", (json_int_t)space->n, "low",
        s_bounds(space->low, space->n), "high", s_bounds(space->high, space->n));
}

static json_t *s_env_json(const tt_env_ops_t *env)
{
    json_t *limit = env->max_episode_steps ? json_integer(env->max_episode_steps) : json_null();
    json_t *threshold = isnan(env->reward_threshold) ? json_null() : json_real(env->reward_threshold);
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "id", tt_json_text(env->id), "summary",
        tt_json_text(env->summary), "observation", s_space_json(&env->obs), "action", s_space_json(&env->action),
        "max_episode_steps", limit, "reward_threshold", threshold);
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

static void s_print_table(const tt_env_ops_t *const *envs, size_t count)
{
    printf("%-25s %-11s %-12s %5s %9s  %s\n", "ENV", "OBSERVATION", "ACTION", "LIMIT", "THRESHOLD", "WHAT TO DO");
    for (size_t i = 0; i < count; i++) {
        char obs[32], action[32], limit[16] = "-", threshold[32] = "-";
        space_text(obs, sizeof obs, &envs[i]->obs);
        space_text(action, sizeof action, &envs[i]->action);
        if (envs[i]->max_episode_steps)
            snprintf(limit, sizeof limit, "%u", envs[i]->max_episode_steps);
        if (!isnan(envs[i]->reward_threshold))
            snprintf(threshold, sizeof threshold, "%g", envs[i]->reward_threshold);
        printf("%-25s %-11s %-12s %5s %9s  %s\n", envs[i]->id, obs, action, limit, threshold, envs[i]->summary);
    }
}

static void s_print_bounds(const char *what, const tt_space_t *space)
{
    enum { SHOWN = 16 };
    if (space->kind == TT_SPACE_DISCRETE) {
        printf("  %s: a number 0 to %u\n", what, space->n - 1);
        return;
    }
    printf("  %s: %u float32", what, space->n);
    for (uint32_t i = 0; i < space->n && i < SHOWN; i++)
        printf("%s [%g, %g]", i ? "," : ":", (double)space->low[i], (double)space->high[i]);
    puts(space->n > SHOWN ? ", ..." : "");
}

static void s_print_text(const tt_env_ops_t *const *envs, size_t count, bool bounds)
{
    s_print_table(envs, count);
    for (size_t i = 0; bounds && i < count; i++) {
        printf("\n%s\n", envs[i]->id);
        s_print_bounds("observation", &envs[i]->obs);
        s_print_bounds("action", &envs[i]->action);
    }
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
