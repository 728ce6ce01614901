/*  A batch of envs as a shared object, and what a table of one must not be: BAD says which. */
#include <math.h>
#include <stdlib.h>
#include "collector/env_batch.h"

#define GOOD          1
#define SEND_ABSENT   2
#define STEP_TOO      3
#define SAVE_ALONE    4
#define STATE_LARGE   5
#define CRASH_IN_SEND 6
#define CRASH_IN_OPEN 7
#define HANG_IN_OPEN  8

typedef struct {
    uint8_t *todo, *ends;
    uint32_t *seed;
    int32_t *told;
    float *seen, *reward;
    void *obs[1], *action[1];
    uint32_t count;
} batch_t;

static volatile int *s_nowhere;

static bool s_open(void **self, const tt_env_open_t *how, tt_env_rows_t *rows, tt_env_why_t *why)
{
    (void)why;
    if (BAD == CRASH_IN_OPEN)
        *s_nowhere = 1;
    while (BAD == HANG_IN_OPEN)
        continue;
    batch_t *b = calloc(1, sizeof *b);
    b->count = how->count;
    b->todo = calloc(how->count, 1);
    b->ends = calloc(how->count, 2);
    b->seed = calloc(how->count, sizeof *b->seed);
    b->told = calloc(how->count, sizeof *b->told);
    b->obs[0] = b->seen = calloc(how->count, sizeof *b->seen);
    b->reward = calloc(how->count, sizeof *b->reward);
    b->action[0] = b->told;
    *rows = (tt_env_rows_t){.todo = b->todo,
        .seed = b->seed,
        .action = b->action,
        .obs = b->obs,
        .reward = b->reward,
        .terminated = b->ends,
        .truncated = b->ends + how->count};
    *self = b;
    return true;
}

static bool s_send(void *self, tt_env_why_t *why)
{
    batch_t *b = self;
    (void)why;
    if (BAD == CRASH_IN_SEND && b->todo[0] == TT_ENV_STEP)
        *s_nowhere = 1;
    for (uint32_t i = 0; i < b->count; i++)
        b->seen[i] = b->todo[i] == TT_ENV_BEGIN ? 0 : b->seen[i] + 1;
    return true;
}

static bool s_recv(void *self, uint32_t *first, uint32_t *count, tt_env_why_t *why)
{
    (void)why;
    *first = 0;
    *count = ((batch_t *)self)->count;
    return true;
}

static void s_close(void *self)
{
    batch_t *b = self;
    free(b->todo);
    free(b->ends);
    free(b->seed);
    free(b->told);
    free(b->seen);
    free(b->reward);
    free(b);
}

static bool s_save(void *self, uint32_t slot, void *bytes, tt_env_why_t *why)
{
    (void)why;
    memcpy(bytes, &((batch_t *)self)->seen[slot], sizeof(float));
    return true;
}

static bool s_load(void *self, uint32_t slot, const void *bytes, tt_env_why_t *why)
{
    (void)why;
    memcpy(&((batch_t *)self)->seen[slot], bytes, sizeof(float));
    return true;
}

static void s_step(void *state, const void *const *action, tt_env_rng_t *rng, tt_env_out_t *out)
{
    (void)state, (void)action, (void)rng, (void)out;
}

static const int64_t s_two[] = {2};
static const tt_env_batch_ops_t s_ops = {
    .env = {.abi = TT_ENV_BATCH_ABI,
        .id = "Batch-v0",
        .summary = "many that count",
        .obs = TT_BOX(1, NULL, NULL),
        .action = TT_CHOICES(s_two),
        .reward_threshold = (double)NAN,
        .max_episode_steps = 3,
        .save_size = BAD == STATE_LARGE ? TT_ENV_MAX_STATE + 1 : sizeof(float),
        .step = BAD == STEP_TOO ? s_step : NULL},
    .open = s_open,
    .send = BAD == SEND_ABSENT ? NULL : s_send,
    .recv = s_recv,
    .close = s_close,
    .save = s_save,
    .load = BAD == SAVE_ALONE ? NULL : s_load,
};

const tt_env_ops_t *tutti_env(void);
const tt_env_ops_t *tutti_env(void)
{
    return &s_ops.env;
}
