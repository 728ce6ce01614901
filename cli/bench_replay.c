/*  bench_replay - what a replay costs on one core: rows in, minibatches of units out with both of their observations, beside
 *  the rate at which this core copies memory, and a step that says where frames are instead. Full and evicting, as it is for most of a run. The median of five runs. */
#include "cli/bench_loop.h"
#include "cli/cmd.h"
#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/base/rng.h"
#include "learner/replay/replay.h"
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const tt_option_t tt_opt_bench_replay[] = {
    {"rows", 'n', "N", "rows of 4 floats that are held, 65536 to 16777216 (default 1048576)"},
    {"images", 'i', "N", "rows of 84x84 bytes that are held, 2048 to 4194304 (default 51200)"},
    {"units", 'u', "N", "units of a step, 1 to 65536 (default 256)"},
    {"seconds", 's', "SECONDS", "time for each run, 0.01 to 60 (default 0.3)"},
    {"output", 0, "text|json", "text (default) or one JSON object"},
    {0},
};

enum { RUNS = 5, ENVS = 16, STEPS = 64, COPIED = 1 << 28 /* bytes: beyond the caches */ };

typedef struct {
    uint64_t rows, images;
    uint32_t units;
    double seconds, copy; /* copy: bytes a second, those that are read */
    json_t *results;
} bench_t;

/*  One kind of row, uniform or prioritised. */
typedef struct {
    const bench_t *bench;
    tt_columns_t *columns;
    replay_t *replay;
    uint32_t stack;
    bool prioritised;
    tt_segment_t batch;
    uint32_t finals;
    uint64_t next, total;
    void *obs;
    uint32_t *place;
    int32_t *action;
    float *error;
} case_t;

/* ---- measuring -------------------------------------------------------------------------------------------------------- */

/*  How often a second something can be done, in the median of the runs. */
static tt_status_t s_rate(double seconds, tt_status_t (*once)(void *), void *ctx, double *rate)
{
    const tt_clock_t *clock = tt_clock_real();
    double rates[RUNS];
    for (int run = 0; run < RUNS; run++) {
        const int64_t start = tt_now_ns(clock);
        int64_t now = start;
        uint64_t times = 0;
        for (; (double)(now - start) < seconds * 1e9; now = tt_now_ns(clock), times++)
            TT_TRY(once(ctx));
        rates[run] = (double)times * 1e9 / (double)(now - start);
    }
    qsort(rates, RUNS, sizeof *rates, bench_ascending);
    *rate = rates[RUNS / 2];
    return TT_OK;
}

static tt_status_t s_copy(void *ctx)
{
    char *memory = ctx;
    memcpy(memory, memory + COPIED, COPIED);
    return TT_OK;
}

static tt_status_t s_insert(void *ctx)
{
    case_t *c = ctx;
    const replay_part_t part = {.at = &c->batch, .E = ENVS, .K = c->finals, .count = ENVS};
    return replay_insert(c->replay, c->next++, &part, 1, NULL);
}

/*  A step as DQN's: draw, both observations, actions, and what comes back. Of observations the rows; or where their frames are, for a
 *  device that has a copy of them. */
static tt_status_t s_step_of(case_t *c, bool places)
{
    replay_sample_t got;
    const uint32_t units = c->bench->units;
    TT_TRY(replay_sample(c->replay, c->total, units, 0.4f, &got));
    for (int which = REPLAY_AT; which <= REPLAY_NEXT; which++) {
        if (places)
            replay_places(c->replay, got.unit, units, (replay_frame_t)which, c->place);
        else if (c->stack > 1)
            replay_gather(c->replay, got.unit, units, (replay_frame_t)which, 0, c->obs);
        else
            replay_gather_rows(c->replay, got.unit, units, (replay_frame_t)which, c->obs);
    }
    replay_gather(c->replay, got.unit, units, REPLAY_AT, c->columns->action, c->action);
    return replay_priorities(c->replay, c->total++, c->error, units);
}

static tt_status_t s_step(void *ctx)
{
    return s_step_of(ctx, false);
}

static tt_status_t s_step_places(void *ctx)
{
    return s_step_of(ctx, true);
}

/* ---- cases ------------------------------------------------------------------------------------------------------------ */

static tt_status_t s_columns(case_t *c, bool image)
{
    static const int64_t choices = 4;
    const tt_space_t action = TT_CHOICES(&choices);
    const tt_space_t obs = image ? (tt_space_t){.kind = TT_SPACE_BOX, .dtype = TT_U8, .rank = 2, .shape = {84, 84}}
                                 : (tt_space_t){.kind = TT_SPACE_BOX, .dtype = TT_F32, .rank = 1, .shape = {4}};
    return tt_columns_new_stacked(&c->columns, &obs, &action, false, false, c->stack, TT_PAD_RESET);
}

/*  Episodes of 200 steps or so, one in five of them cut. Env e's goes on where the batch's end left it: it is inserted again
 *  and again. */
static void s_ends(case_t *c)
{
    uint8_t *terminated = c->batch.column[c->columns->terminated], *truncated = c->batch.column[c->columns->truncated];
    for (uint32_t row = 0; row < ENVS * STEPS; row++) {
        uint32_t word[4];
        tt_draw(word, 1, TT_STREAM_TEST, 0, row);
        const uint32_t end = tt_below(word[0], 1000), e = row % ENVS;
        terminated[row] = end < 4;
        truncated[row] = end == 4;
        ((float *)c->batch.column[c->columns->reward])[row] = tt_unit_f32(word[1]);
        c->batch.age[e] = end <= 4 ? 0 : c->batch.age[e] + 1;
        if (end == 4) {
            c->batch.final_t[c->finals] = row / ENVS;
            c->batch.final_env[c->finals++] = e;
        }
    }
}

static void s_fill(case_t *c)
{
    const size_t rows = ENVS * STEPS;
    for (uint32_t i = 0; i < c->columns->count; i++) {
        c->batch.column[i] = tt_array0(rows, c->columns->at[i].bytes);
        c->batch.last[i] = tt_array0(ENVS, c->columns->at[i].bytes);
        c->batch.final[i] = tt_array0(rows, c->columns->at[i].bytes);
    }
    c->batch.age = tt_array0(ENVS, sizeof(uint32_t));
    c->batch.final_t = tt_array0(rows, sizeof(uint32_t));
    c->batch.final_env = tt_array0(rows, sizeof(uint32_t));
    s_ends(c);
}

static tt_status_t s_open(case_t *c, bool image)
{
    const uint64_t rows = image ? c->bench->images : c->bench->rows;
    c->stack = image ? 4 : 1;
    TT_TRY(s_columns(c, image));
    s_fill(c);
    const uint64_t row = c->columns->at[0].bytes + sizeof(int32_t) + sizeof(float) + 2;
    const replay_cfg_t cfg = {.columns = c->columns,
        .store = 1u | 1u << c->columns->action,
        .N = ENVS,
        .T = STEPS,
        .capacity = rows * row + rows / 100 * c->columns->at[0].bytes, /* with finals */
        .stripes = 1,
        .ahead = 1,
        .gamma = 0.99,
        .stack = c->stack,
        .alpha = c->prioritised ? 0.6f : 0,
        .epsilon = 1e-6f,
        .priority_delay = 1,
        .seed = 1};
    c->obs = tt_array0(c->bench->units, tt_mul(c->stack, c->columns->at[0].bytes));
    c->place = tt_array0(c->bench->units, c->stack * sizeof *c->place);
    c->action = tt_array0(c->bench->units, sizeof *c->action);
    c->error = tt_array0(c->bench->units, sizeof *c->error);
    for (uint32_t i = 0; i < c->bench->units; i++) {
        uint32_t word[4];
        tt_draw(word, 1, TT_STREAM_TEST, 1, i);
        c->error[i] = tt_unit_f32(word[0]);
    }
    return replay_new(&c->replay, &cfg);
}

static void s_close(case_t *c)
{
    for (uint32_t i = 0; c->columns && i < c->columns->count; i++) {
        free(c->batch.column[i]);
        free(c->batch.last[i]);
        free(c->batch.final[i]);
    }
    free(c->batch.age);
    free(c->batch.final_t);
    free(c->batch.final_env);
    free(c->obs);
    free(c->place);
    free(c->action);
    free(c->error);
    replay_destroy(&c->replay);
    tt_columns_destroy(&c->columns);
}

/*  Batches until the oldest has gone. */
static tt_status_t s_until_full(case_t *c, replay_stats_t *stats)
{
    do {
        TT_TRY(s_insert(c));
        replay_stats(c->replay, stats);
    } while (stats->oldest == 0);
    return TT_OK;
}

/*  One save and one load of all of it. */
static tt_status_t s_save(case_t *c, double *save_s, double *load_s)
{
    const tt_clock_t *clock = tt_clock_real();
    tt_buf_t out;
    replay_stats_t stats;
    replay_stats(c->replay, &stats);
    tt_buf_init(&out, replay_save_size(c->replay, stats.oldest));
    const int64_t start = tt_now_ns(clock);
    tt_status_t status = replay_save(c->replay, stats.oldest, &out);
    const int64_t saved = tt_now_ns(clock);
    if (status == TT_OK)
        status = replay_load(c->replay, out.data, out.size, NULL);
    *save_s = (double)(saved - start) * 1e-9;
    *load_s = (double)(tt_now_ns(clock) - saved) * 1e-9;
    tt_buf_free(&out);
    return status;
}

static tt_status_t s_measure(case_t *c, bool image)
{
    replay_stats_t stats;
    double inserts, steps, with_places, save_s, load_s;
    TT_TRY(s_open(c, image));
    TT_TRY(s_until_full(c, &stats));
    TT_TRY(s_rate(c->bench->seconds, s_insert, c, &inserts));
    TT_TRY(s_rate(c->bench->seconds, s_step, c, &steps));
    TT_TRY(s_rate(c->bench->seconds, s_step_places, c, &with_places));
    TT_TRY(s_save(c, &save_s, &load_s));
    const double obs = (double)c->columns->at[0].bytes, row = obs + 10;
    json_array_append_new(c->bench->results,
        json_pack("{s:s, s:s, s:b, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "name",
            image ? "84x84 bytes, stack 4" : "4 floats", "kind", image ? "image" : "vector", "prioritised",
            c->prioritised, "rows", (json_int_t)stats.rows, "bytes", (json_int_t)stats.bytes, "physical_bytes",
            (json_int_t)stats.physical, "inserts_per_s", inserts * ENVS * STEPS, "insert_bytes_per_s",
            inserts * ENVS * STEPS * row, "step_us", 1e6 / steps, "places_us", 1e6 / with_places, "units_per_s",
            steps * c->bench->units, "step_bytes_per_s", steps * c->bench->units * 2 * c->stack * obs, "save_s", save_s,
            "load_s", load_s));
    return TT_OK;
}

/* ---- the command ------------------------------------------------------------------------------------------------------ */

static tt_status_t s_run(bench_t *b)
{
    char *memory = tt_array0(2, COPIED);
    memset(memory, 1, 2 * (size_t)COPIED); /* pages of its own */
    tt_status_t status = s_rate(b->seconds, s_copy, memory, &b->copy);
    b->copy *= COPIED;
    free(memory);
    for (int i = 0; status == TT_OK && i < 4; i++) {
        case_t c = {.bench = b, .prioritised = i % 2};
        status = s_measure(&c, i >= 2);
        s_close(&c);
    }
    return status;
}

static void s_print(const bench_t *b)
{
    size_t i;
    json_t *row;
    printf("memcpy         %.1f GB/s, beyond the caches\n\n", b->copy / 1e9);
    printf("%-34s %10s %10s %6s %10s %10s %6s %10s\n", "", "rows", "rows/s in", "GB/s", "us a step", "units/s", "GB/s",
        "us, places");
    json_array_foreach(b->results, i, row)
    {
        char name[64];
        snprintf(name, sizeof name, "%s, %s", json_string_value(json_object_get(row, "name")),
            json_is_true(json_object_get(row, "prioritised")) ? "prioritised" : "uniform");
        printf("%-34s %10lld %10.0f %6.2f %10.1f %10.0f %6.2f %10.1f\n", name,
            (long long)json_integer_value(json_object_get(row, "rows")),
            json_real_value(json_object_get(row, "inserts_per_s")),
            json_real_value(json_object_get(row, "insert_bytes_per_s")) / 1e9,
            json_real_value(json_object_get(row, "step_us")), json_real_value(json_object_get(row, "units_per_s")),
            json_real_value(json_object_get(row, "step_bytes_per_s")) / 1e9,
            json_real_value(json_object_get(row, "places_us")));
    }
}

static void s_print_json(const bench_t *b)
{
    json_t *all = json_pack("{s:s, s:I, s:f, s:i, s:f, s:O}", "bench", "replay", "units", (json_int_t)b->units,
        "seconds", b->seconds, "runs", RUNS, "memcpy_bytes_per_s", b->copy, "results", b->results);
    json_dumpf(all, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6));
    putchar('\n');
    json_decref(all);
}

static tt_status_t s_options(const tt_args_t *args, bench_t *b)
{
    uint64_t units = 256;
    *b = (bench_t){.rows = 1 << 20, .images = 51200, .seconds = 0.3};
    TT_TRY(tt_arg_u64(args, "rows", &b->rows, 1 << 16, 1 << 24));
    TT_TRY(tt_arg_u64(args, "images", &b->images, 2048, 1 << 22));
    TT_TRY(tt_arg_u64(args, "units", &units, 1, 65536));
    TT_TRY(tt_arg_f64(args, "seconds", &b->seconds, 0.01, 60));
    b->units = (uint32_t)units;
    return TT_OK;
}

int tt_cmd_bench_replay(int argc, char **argv)
{
    int code;
    TT_AUTO(tt_args) args = tt_args_new(&code, "bench replay", argc, argv);
    if (!args)
        return code;
    bench_t b = {0};
    tt_status_t status = s_options(args, &b);
    if (status == TT_OK) {
        b.results = json_array();
        status = s_run(&b);
    }
    if (status == TT_OK && tt_arg_is(args, "output", "json"))
        s_print_json(&b);
    else if (status == TT_OK)
        s_print(&b);
    json_decref(b.results);
    return status == TT_OK ? 0 : tt_args_fail(args, status);
}
