/*  puzzle - an environment with every kind of space at once, built as a user would build it. Each step shows a mode, a picture and
 *  a speed, and pays for reading all three: 1 for the choice after the mode (the mode itself is forbidden), up to 1 for a push as
 *  fast as the speed, 1/2 for each of two lights that is what the left side of its line of the picture is. After 16 steps it is
 *  cut. At best 48; chance gives about 20. */
#include <math.h>
#include "collector/env.h"

enum { MODES = 3, STEPS = 16 };

typedef struct {
    uint32_t step, mode;
    uint8_t picture[2][2];
    double speed;
} puzzle_t;

static void s_show(puzzle_t *self, tt_env_rng_t *rng, tt_env_out_t *out)
{
    self->mode = rng->next(rng) % MODES;
    for (int i = 0; i < 4; i++)
        self->picture[i / 2][i % 2] = rng->next(rng) % 2 ? 3 : 0;
    self->speed = tt_env_uniform(rng, -1, 1);
    *(int32_t *)out->obs[0] = 5 + (int32_t)self->mode;
    memcpy(out->obs[1], self->picture, sizeof self->picture);
    *(double *)out->obs[2] = self->speed;
    out->mask[self->mode] = 0;
}

static void s_reset(void *state, tt_env_rng_t *rng, tt_env_out_t *out)
{
    puzzle_t *self = state;
    self->step = 0;
    s_show(self, rng, out);
}

static void s_step(void *state, const void *const *action, tt_env_rng_t *rng, tt_env_out_t *out)
{
    puzzle_t *self = state;
    const int32_t go = *(const int32_t *)action[0] + 1; /* it begins at -1 */
    const uint8_t *light = action[1];
    const double push = (double)*(const float *)action[2];
    out->reward = (uint32_t)go == (self->mode + 1) % MODES;
    out->reward += fmax(0, 1 - fabs(push - self->speed));
    for (int i = 0; i < 2; i++)
        out->reward += (light[i] > 0) == (self->picture[i][0] > 0) ? 0.5 : 0;
    out->truncated = ++self->step == STEPS;
    s_show(self, rng, out);
}

static const int64_t s_modes[1] = {MODES}, s_first_mode[1] = {5}, s_first_go[1] = {-1};
static const double s_low[1] = {-1}, s_high[1] = {1}, s_dark[1] = {0}, s_bright[1] = {255};

static const tt_space_t s_seen[] = {
    {.kind = TT_SPACE_DISCRETE, .key = "mode", .n = s_modes, .start = s_first_mode},
    {.kind = TT_SPACE_BOX,
        .key = "picture",
        .dtype = TT_U8,
        .rank = 2,
        .shape = {2, 2},
        .low = s_dark,
        .high = s_bright,
        .same_bounds = 1},
    {.kind = TT_SPACE_BOX, .key = "speed", .dtype = TT_F64, .low = s_low, .high = s_high},
};
static const tt_space_t s_done[] = {
    {.kind = TT_SPACE_DISCRETE, .key = "go", .n = s_modes, .start = s_first_go},
    {.kind = TT_SPACE_MULTI_BINARY, .key = "lights", .rank = 1, .shape = {2}},
    {.kind = TT_SPACE_BOX, .key = "push", .dtype = TT_F32, .rank = 1, .shape = {1}, .low = s_low, .high = s_high},
};

static const tt_env_ops_t s_ops = {
    .abi = TT_ENV_ABI,
    .id = "Puzzle-v0",
    .summary = "read a mode, a picture and a speed",
    .obs = {.kind = TT_SPACE_DICT, .part = s_seen, .parts = 3},
    .action = {.kind = TT_SPACE_DICT, .part = s_done, .parts = 3},
    .mask = true,
    .reward_threshold = 44,
    .state_size = sizeof(puzzle_t),
    .reset = s_reset,
    .step = s_step,
};

const tt_env_ops_t *tutti_env(void);
const tt_env_ops_t *tutti_env(void)
{
    return &s_ops;
}
