/*  bad_env - environments that misbehave, one way each: built once for every value of BAD. Not ours to defend: what is
 *  tested is that each of them is named. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "collector/env.h"

#define GOOD             0
#define NO_ENTRY         1
#define NULL_TABLE       2
#define OTHER_ABI        3
#define NO_ID            4
#define OVERSIZE         5
#define BOUNDS_CROSSED   6
#define SAVE_ALONE       7
#define INIT_FAILS       8
#define CRASH_IN_LOAD    9
#define CRASH_IN_INIT    10
#define CRASH_IN_STEP    11
#define ABORT_IN_RESET   12
#define EXIT_IN_STEP     13
#define OVERFLOW_STACK   14
#define NAN_IN_RESET     15
#define NAN_IN_STEP      16
#define REWARD_FORGOTTEN 17
#define OWN_SAVE         18
#define HANG_IN_LOAD     19
#define HANG_IN_ENTRY    20
#define HANG_IN_INIT     21
#define FIRST_ABI        22
#define OPTIONS_ALONE    23
#define MASK_ALONE       24
#define CHOICES_ABSENT   25
#define KEY_TWICE        26
#define PLAIN_FINI       27
#define SLOW_IN_LOAD     28
#define SLOW_IN_INIT     29

typedef struct {
    float *heap; /* what makes save and load necessary */
} state_t;

static float *volatile s_nowhere; /* NULL, but no compiler knows */

static void hang(void)
{
    while (true)
        pause();
}

/*  Till there is a file of that name: $BAD_GATE.collector in a collector, $BAD_GATE. elsewhere. */
static void linger(void)
{
    const char *gate = getenv("BAD_GATE"), *role = getenv("TT_ROLE");
    char path[4096];
    snprintf(path, sizeof path, "%s.%s", gate ? gate : "", role ? role : "");
    while (gate && access(path, F_OK) != 0)
        usleep(10000);
}

static const char *bad_init(void *state, const tt_env_arg_t *args)
{
    state_t *self = state;
    if (BAD == HANG_IN_INIT)
        hang();
    if (BAD == SLOW_IN_INIT)
        linger();
    if (BAD == CRASH_IN_INIT)
        *s_nowhere = 1;
    if (BAD == INIT_FAILS)
        return "no simulator\nat localhost";
    const char *reason = tt_env_arg_text(args, "fail", NULL);
    self->heap = reason ? NULL : calloc(1, sizeof *self->heap);
    return reason;
}

static void bad_fini(void *state)
{
    state_t *self = state;
    free(self->heap);
}

static void bad_reset(void *state, tt_env_rng_t *rng, tt_env_out_t *out)
{
    state_t *self = state;
    if (BAD == ABORT_IN_RESET)
        abort();
    *self->heap = (float)tt_env_uniform(rng, 0, 1);
    *(float *)out->obs[0] = BAD == NAN_IN_RESET ? NAN : *self->heap;
}

static int deeper(int n)
{
    volatile char room[4096] = {(char)n};
    return n > 0 ? deeper(n + 1) + room[0] : 0;
}

static void bad_step(void *state, const void *const *action, tt_env_rng_t *rng, tt_env_out_t *out)
{
    (void)rng;
    state_t *self = state;
    if (BAD == CRASH_IN_STEP)
        *s_nowhere = 1;
    if (BAD == EXIT_IN_STEP)
        exit(0);
    if (BAD == OVERFLOW_STACK)
        *self->heap = (float)deeper(1);
    *self->heap += (float)*(const int32_t *)action[0];
    *(float *)out->obs[0] = BAD == NAN_IN_STEP ? NAN : *self->heap;
    if (BAD != REWARD_FORGOTTEN)
        out->reward = 1;
}

static void bad_save(const void *state, void *bytes)
{
    const state_t *self = state;
    *(float *)bytes = *self->heap;
}

static int bad_load(void *state, const void *bytes)
{
    state_t *self = state;
    if (!(*(const float *)bytes < 1e6f))
        return -1;
    *self->heap = *(const float *)bytes;
    return 0;
}

static const double s_low[1] = {-1e9}, s_high[1] = {BAD == BOUNDS_CROSSED ? -2e9 : 1e9};
static const int64_t s_actions[] = {2};
static const tt_env_option_t s_options[] = {{"fail", "no", "why it fails"}, {0}};
static const tt_space_t s_twins[] = {
    {.kind = TT_SPACE_BOX, .key = "left", .dtype = TT_F32},
    {.kind = TT_SPACE_BOX, .key = "left", .dtype = TT_F32},
};

extern const tt_env_ops_t bad_ops;
const tt_env_ops_t bad_ops = {
    .abi = BAD == FIRST_ABI   ? 1
           : BAD == OTHER_ABI ? TT_ENV_ABI + 1
                              : TT_ENV_ABI,
    .id = BAD == NO_ID ? "" : "Bad-v0",
    .summary = "misbehaves in one way",
    .obs = {.kind = BAD == KEY_TWICE ? TT_SPACE_DICT : TT_SPACE_BOX,
        .rank = 1,
        .shape = {BAD == OVERSIZE ? 2000000000u : 1},
        .low = s_low,
        .high = s_high,
        .part = s_twins,
        .parts = 2},
    .action = {.kind = BAD == MASK_ALONE ? TT_SPACE_BOX : TT_SPACE_DISCRETE,
        .n = BAD == CHOICES_ABSENT ? 0 : s_actions},
    .mask = BAD == MASK_ALONE,
    .options = s_options,
    .reward_threshold = NAN,
    .max_episode_steps = 10,
    .state_size = sizeof(state_t),
    .init = BAD == OPTIONS_ALONE ? 0 : bad_init,
    .fini = BAD == OPTIONS_ALONE ? 0 : bad_fini,
    .plain = BAD == PLAIN_FINI,
    .reset = bad_reset,
    .step = bad_step,
    .save_size = BAD == OWN_SAVE || BAD == SAVE_ALONE ? sizeof(float) : 0,
    .save = BAD == OWN_SAVE || BAD == SAVE_ALONE ? bad_save : 0,
    .load = BAD == OWN_SAVE ? bad_load : 0,
};

#if BAD == CRASH_IN_LOAD
__attribute__((constructor)) static void crash(void)
{
    *s_nowhere = 1;
}
#endif

#if BAD == SLOW_IN_LOAD
__attribute__((constructor)) static void late(void)
{
    linger();
}
#endif

#if BAD == HANG_IN_LOAD
__attribute__((constructor)) static void stay(void)
{
    hang();
}
#endif

#if BAD != NO_ENTRY
const tt_env_ops_t *tutti_env(void);
const tt_env_ops_t *tutti_env(void)
{
    if (BAD == HANG_IN_ENTRY)
        hang();
    return BAD == NULL_TABLE ? 0 : &bad_ops;
}
#endif
