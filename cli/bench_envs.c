/*  bench_envs - how fast one core steps each environment: tt_vec_step with random actions, resets and checks included,
 *  actions drawn before the clock starts. The median of five runs, and the best. */
#include "cli/cmd.h"
#include "collector/registry.h"
#include "collector/vec.h"
#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/rng.h"
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

const tt_option_t tt_opt_bench_envs[] = {
    {"num-envs", 'n', "N", "environments stepped together, 1 to 65536 (default 256)"},
    {"seconds", 's', "SECONDS", "time for each environment, 0.01 to 60 (default 1)"},
    {"output", 0, "text|json", "text (default) or one JSON object"},
    {0},
};

enum { RUNS = 5, ACTIONS = 64 /* steps' worth, used round and round */ };

typedef struct {
    double median, best; /* steps a second */
    uint64_t steps;
} speed_t;

typedef struct {
    tt_vec_t *vec;
    uint32_t n;
    size_t row; /* bytes of one step's actions */
    char *actions;
    float *reward;
    uint8_t *ends; /* terminated, then truncated */
} bench_t;

static float s_within(float low, float high, float unit)
{
    low = isinf(low) ? -1 : low;
    high = isinf(high) ? 1 : high;
    return low + (high - low) * unit;
}

/*  Element k of all actions, from its own draw. */
static void s_draw_action(const tt_space_t *space, char *actions, uint32_t k)
{
    uint32_t words[4];
    tt_draw(words, 1, TT_STREAM_TEST, 0, k);
    if (space->kind == TT_SPACE_DISCRETE) {
        ((int32_t *)actions)[k] = (int32_t)tt_below(words[0], space->n);
        return;
    }
    const uint32_t at = k % space->n;
    ((float *)actions)[k] = s_within(space->low[at], space->high[at], tt_unit_f32(words[0]));
}

static tt_status_t s_open(bench_t *b, const tt_env_ops_t *env, uint32_t n)
{
    const uint32_t each = env->action.kind == TT_SPACE_BOX ? env->action.n : 1;
    TT_TRY(tt_vec_new(&b->vec, env, 1, 0, n, 0));
    b->n = n;
    b->row = tt_mul(tt_mul(n, each), 4);
    b->actions = tt_aligned0(tt_mul(ACTIONS, b->row));
    b->reward = tt_array0(n, sizeof(float));
    b->ends = tt_array0(n, 2);
    for (uint32_t k = 0; k < ACTIONS * b->row / 4; k++)
        s_draw_action(&env->action, b->actions, k);
    return TT_OK;
}

static void s_close(bench_t *b)
{
    tt_vec_destroy(&b->vec);
    free(b->actions);
    free(b->reward);
    free(b->ends);
}

/*  Steps until `ns` have passed; the clock is read every ACTIONS steps. */
static tt_status_t s_run(bench_t *b, int64_t ns, double *per_second, speed_t *total)
{
    const tt_clock_t *clock = tt_clock_real();
    const int64_t start = tt_now_ns(clock);
    uint64_t steps = 0;
    int64_t now = start;
    while (now - start < ns) {
        for (size_t t = 0; t < ACTIONS; t++)
            TT_TRY(tt_vec_step(b->vec, b->actions + t * b->row, b->reward, b->ends, b->ends + b->n));
        steps += (uint64_t)ACTIONS * b->n;
        now = tt_now_ns(clock);
    }
    *per_second = (double)steps * 1e9 / (double)(now - start);
    total->steps += steps;
    return TT_OK;
}

static int s_ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static tt_status_t s_measure(const tt_env_ops_t *env, uint32_t n, double seconds, speed_t *out)
{
    bench_t b = {0};
    double runs[RUNS], warm;
    speed_t total = {0};
    tt_status_t status = s_open(&b, env, n);
    if (status == TT_OK)
        status = s_run(&b, (int64_t)(seconds * 1e9 / 20), &warm, &(speed_t){0});
    for (int i = 0; status == TT_OK && i < RUNS; i++)
        status = s_run(&b, (int64_t)(seconds * 1e9 / RUNS), &runs[i], &total);
    s_close(&b);
    if (status != TT_OK)
        return status;
    qsort(runs, RUNS, sizeof runs[0], s_ascending);
    total.median = runs[RUNS / 2];
    total.best = runs[RUNS - 1];
    *out = total;
    return TT_OK;
}

/*  Bench the named envs, or all. TT_OK: *rows is a JSON array, owned by the caller. */
static tt_status_t s_bench(const tt_args_t *args, uint32_t n, double seconds, json_t **rows)
{
    size_t count;
    const tt_env_ops_t *const *all = tt_envs(&count);
    const size_t named = tt_operand_count(args);
    json_t *array = json_array();
    for (size_t i = 0; i < (named ? named : count); i++) {
        const tt_env_ops_t *env = named ? NULL : all[i];
        speed_t speed;
        tt_status_t status = named ? tt_env_find(&env, tt_operand(args, i)) : TT_OK;
        if (status == TT_OK)
            status = s_measure(env, n, seconds, &speed);
        if (status != TT_OK) {
            json_decref(array);
            return status;
        }
        json_array_append_new(array,
            json_pack("{s:o, s:f, s:f, s:f, s:I}", "env", tt_json_text(env->id), "steps_per_s", speed.median,
                "best_steps_per_s", speed.best, "ns_per_step", 1e9 / speed.median, "steps", (json_int_t)speed.steps));
    }
    *rows = array;
    return TT_OK;
}

static void s_print(json_t *rows)
{
    size_t i;
    json_t *row;
    printf("%-25s %12s %12s %8s\n", "ENV", "M STEPS/S", "BEST", "NS/STEP");
    json_array_foreach(rows, i, row)
    {
        printf("%-25s %12.2f %12.2f %8.1f\n", json_string_value(json_object_get(row, "env")),
            json_real_value(json_object_get(row, "steps_per_s")) / 1e6,
            json_real_value(json_object_get(row, "best_steps_per_s")) / 1e6,
            json_real_value(json_object_get(row, "ns_per_step")));
    }
}

int tt_cmd_bench_envs(int argc, char **argv)
{
    int code;
    TT_AUTO(tt_args) args = tt_args_new(&code, "bench envs", argc, argv);
    if (!args)
        return code;
    uint64_t n = 256;
    double seconds = 1;
    json_t *rows = NULL;
    tt_status_t status = tt_arg_u64(args, "num-envs", &n, 1, 65536);
    if (status == TT_OK)
        status = tt_arg_f64(args, "seconds", &seconds, 0.01, 60);
    if (status == TT_OK)
        status = s_bench(args, (uint32_t)n, seconds, &rows);
    if (status != TT_OK)
        return tt_args_fail(args, status);
    if (tt_arg_is(args, "output", "json")) {
        json_t *all = json_pack("{s:s, s:I, s:f, s:i, s:O}", "bench", "envs", "num_envs", (json_int_t)n, "seconds",
            seconds, "runs", RUNS, "envs", rows);
        json_dumpf(all, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6));
        putchar('\n');
        json_decref(all);
    } else {
        s_print(rows);
    }
    json_decref(rows);
    return 0;
}
