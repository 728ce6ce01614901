/*  bench_envs - how fast one core steps each environment, as a collector does, in shares where it has some: with random actions,
 *  resets and checks included, actions drawn before the clock starts (where a mask forbids one, the next that it allows). The median of
 *  five runs, and the best. */
#include "cli/bench_loop.h"
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
#include <string.h>

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
    tt_columns_t *columns;
    tt_vec_t *vec;
    uint32_t n;
    char *actions[TT_COLUMNS_MAX]; /* of each action column, ACTIONS steps        */
    char *allowed[TT_COLUMNS_MAX]; /* the same of one step, moved to what the mask allows */
    float *reward;
    uint8_t *ends; /* terminated, then truncated */
    size_t *made;  /* [shares] steps that each has begun */
} bench_t;

/*  A number within one element's bounds, -1 and 1 where it has none. */
static float s_within(const tt_space_t *box, uint32_t at, float unit)
{
    const uint32_t i = box->same_bounds ? 0 : at;
    const float low = !box->low || isinf(box->low[i]) ? -1 : (float)box->low[i];
    const float high = !box->high || isinf(box->high[i]) ? 1 : (float)box->high[i];
    return low + (high - low) * unit;
}

/*  Element k of all actions of a column, from its own draw. */
static void s_draw_action(
    const tt_columns_t *columns, uint32_t column, const tt_space_t *leaf, char *actions, uint32_t k)
{
    const tt_column_t *of = &columns->at[column];
    const uint32_t at = k % of->elements;
    uint32_t words[4];
    tt_draw(words, 1, TT_STREAM_TEST, column - columns->action, k);
    if (!of->choice)
        ((float *)actions)[k] = s_within(leaf, at, tt_unit_f32(words[0]));
    else if (of->dtype == TT_U8)
        ((uint8_t *)actions)[k] = (uint8_t)tt_below(words[0], 2);
    else
        ((int32_t *)actions)[k] = (int32_t)tt_below(words[0], columns->choices[of->first + at]);
}

static void s_draw_actions(bench_t *b, const tt_env_ops_t *env)
{
    const tt_columns_t *columns = b->columns;
    const tt_space_t *leaf[TT_COLUMNS_MAX];
    tt_space_leaves(&env->action, leaf, TT_COLUMNS_MAX);
    for (uint32_t i = 0; i < columns->action_count; i++) {
        const tt_column_t *of = &columns->at[columns->action + i];
        const size_t rows = tt_mul(ACTIONS, b->n);
        b->actions[i] = tt_aligned0(tt_mul(rows, of->bytes));
        b->allowed[i] = tt_aligned0(tt_mul(b->n, of->bytes));
        for (uint32_t k = 0; k < rows * of->elements; k++)
            s_draw_action(columns, columns->action + i, leaf[i], b->actions[i], k);
    }
}

static void s_close(bench_t *b)
{
    tt_vec_destroy(&b->vec);
    for (uint32_t i = 0; i < TT_COLUMNS_MAX; i++) {
        free(b->actions[i]);
        free(b->allowed[i]);
    }
    free(b->reward);
    free(b->ends);
    free(b->made);
    tt_columns_destroy(&b->columns);
}

/*  The drawn choice, or the next one that is allowed. One is: the vec has looked. */
static uint32_t s_next_allowed(const uint8_t *mask, uint32_t n, uint32_t choice)
{
    while (!mask[choice])
        choice = choice + 1 == n ? 0 : choice + 1;
    return choice;
}

/*  The choices of one action column of env e; returns how many bytes of its mask they took. */
static uint32_t s_allow(bench_t *b, uint32_t i, uint32_t e, const uint8_t *mask)
{
    const tt_column_t *of = &b->columns->at[b->columns->action + i];
    char *row = b->allowed[i] + (size_t)e * of->bytes;
    uint32_t used = 0;
    for (uint32_t k = 0; of->choice && k < of->elements; k++) {
        const uint32_t n = b->columns->choices[of->first + k];
        if (of->dtype == TT_U8)
            ((uint8_t *)row)[k] = (uint8_t)s_next_allowed(mask + used, n, ((uint8_t *)row)[k]);
        else
            ((int32_t *)row)[k] = (int32_t)s_next_allowed(mask + used, n, (uint32_t)((int32_t *)row)[k]);
        used += n;
    }
    return used;
}

/*  Actions number t, those of a share's envs as far as they are allowed now. */
static void s_actions_of(bench_t *b, size_t t, uint32_t share, const void **action)
{
    const tt_columns_t *columns = b->columns;
    uint32_t first, count;
    tt_vec_share(b->vec, share, &first, &count);
    for (uint32_t i = 0; i < columns->action_count; i++) {
        const size_t bytes = columns->at[columns->action + i].bytes, row = b->n * bytes;
        action[i] = columns->mask < 0 ? b->actions[i] + t * row : b->allowed[i];
        if (columns->mask >= 0)
            memcpy(b->allowed[i] + first * bytes, b->actions[i] + t * row + first * bytes, count * bytes);
    }
    for (uint32_t e = first; columns->mask >= 0 && e < first + count; e++) {
        const uint8_t *mask = tt_vec_mask(b->vec) + (size_t)e * columns->mask_bits;
        for (uint32_t i = 0; i < columns->action_count; i++)
            mask += s_allow(b, i, e, mask);
    }
}

/*  A share's next step. */
static tt_status_t s_send(bench_t *b, uint32_t share)
{
    const void *action[TT_COLUMNS_MAX];
    s_actions_of(b, b->made[share]++ % ACTIONS, share, action);
    return tt_vec_send(b->vec, share, action, b->reward, b->ends, b->ends + b->n);
}

static tt_status_t s_open(bench_t *b, const tt_env_ops_t *env, uint32_t n)
{
    TT_TRY(tt_columns_new(&b->columns, &env->obs, &env->action, env->mask, true));
    TT_TRY(tt_vec_new(&b->vec, &(tt_vec_cfg_t){.ops = env, .columns = b->columns, .seed = 1, .count = n}));
    b->n = n;
    b->reward = tt_array0(n, sizeof(float));
    b->ends = tt_array0(n, 2);
    b->made = tt_array0(tt_vec_shares(b->vec), sizeof *b->made);
    s_draw_actions(b, env);
    for (uint32_t k = 0; k < tt_vec_shares(b->vec); k++)
        TT_TRY(s_send(b, k));
    return TT_OK;
}

/*  So many steps of shares. Each begins its next one as soon as its last one is over; nobody waits for the others. */
static tt_status_t s_go_on(bench_t *b, size_t shares, uint64_t *steps)
{
    for (; shares; shares--) {
        uint32_t share = 0, first, count;
        TT_TRY(tt_vec_recv(b->vec, true, &share));
        tt_vec_share(b->vec, share, &first, &count);
        *steps += count;
        TT_TRY(s_send(b, share));
    }
    return TT_OK;
}

/*  Steps until `ns` have passed; the clock is read every ACTIONS steps or so. */
static tt_status_t s_run(bench_t *b, int64_t ns, double *per_second, speed_t *total)
{
    const tt_clock_t *clock = tt_clock_real();
    const int64_t start = tt_now_ns(clock);
    uint64_t steps = 0;
    int64_t now = start;
    while (now - start < ns) {
        TT_TRY(s_go_on(b, (size_t)ACTIONS * tt_vec_shares(b->vec), &steps));
        now = tt_now_ns(clock);
    }
    *per_second = (double)steps * 1e9 / (double)(now - start);
    total->steps += steps;
    return TT_OK;
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
    qsort(runs, RUNS, sizeof runs[0], bench_ascending);
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
        const double median = json_real_value(json_object_get(row, "steps_per_s")) / 1e6;
        const double best = json_real_value(json_object_get(row, "best_steps_per_s")) / 1e6;
        const int digits = median < 1 ? 4 : 2; /* those that Python plays are slower by far */
        printf("%-25s %12.*f %12.*f %8.1f\n", json_string_value(json_object_get(row, "env")), digits, median, digits,
            best, json_real_value(json_object_get(row, "ns_per_step")));
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
