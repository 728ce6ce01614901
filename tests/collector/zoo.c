#include "tests/collector/zoo.h"

zoo_fault_t zoo_fault;

/*  A multiple of 16 bytes, for step_many. */
typedef struct {
    double count, noise, push[2];
    float force;
    int32_t go, moves[2];
    uint8_t bits[3], zero[13];
} zoo_t;

/* ---- spaces ---------------------------------------------------------------------------------------------------------- */

static const int64_t s_five[] = {5}, s_minus_two[] = {-2}, s_pair_n[] = {3, 4}, s_pair_start[] = {0, 10};
static const int64_t s_four[] = {4}, s_minus_one[] = {-1}, s_moves_n[] = {2, 3}, s_moves_start[] = {0, 5};
static const double s_low[] = {-1}, s_high[] = {1};

static const tt_space_t s_pair[] = {
    {.kind = TT_SPACE_MULTI_DISCRETE, .rank = 1, .shape = {2}, .n = s_pair_n, .start = s_pair_start},
    {.kind = TT_SPACE_MULTI_BINARY, .rank = 2, .shape = {2, 2}},
};
static const tt_space_t s_obs[] = {
    {.kind = TT_SPACE_MULTI_BINARY, .key = "bits", .rank = 1, .shape = {3}},
    {.kind = TT_SPACE_BOX, .key = "bool", .dtype = TT_BOOL, .rank = 1, .shape = {3}},
    {.kind = TT_SPACE_DISCRETE, .key = "choice", .n = s_five, .start = s_minus_two},
    {.kind = TT_SPACE_BOX, .key = "image", .dtype = TT_U8, .rank = 3, .shape = {2, 2, 3}},
    {.kind = TT_SPACE_BOX, .key = "long", .dtype = TT_I64},
    {.kind = TT_SPACE_BOX, .key = "near", .dtype = TT_F32, .rank = 1, .shape = {2}},
    {.kind = TT_SPACE_TUPLE, .key = "pair", .part = s_pair, .parts = 2},
    {.kind = TT_SPACE_BOX, .key = "wide", .dtype = TT_F64, .rank = 1, .shape = {2}},
};
static const tt_space_t s_action[] = {
    {.kind = TT_SPACE_MULTI_BINARY, .key = "bits", .rank = 1, .shape = {3}},
    {.kind = TT_SPACE_BOX, .key = "force", .dtype = TT_F32},
    {.kind = TT_SPACE_DISCRETE, .key = "go", .n = s_four, .start = s_minus_one},
    {.kind = TT_SPACE_MULTI_DISCRETE, .key = "moves", .rank = 1, .shape = {2}, .n = s_moves_n, .start = s_moves_start},
    {.kind = TT_SPACE_BOX,
        .key = "push",
        .dtype = TT_F64,
        .rank = 1,
        .shape = {2},
        .low = s_low,
        .high = s_high,
        .same_bounds = 1},
};

/* ---- what it shows ---------------------------------------------------------------------------------------------------- */

static void s_look(const zoo_t *self, void *const *obs)
{
    const int32_t count = (int32_t)self->count;
    for (int i = 0; i < 12; i++)
        ((uint8_t *)obs[ZOO_IMAGE])[i] = (uint8_t)(20 * i + count);
    for (int i = 0; i < 3; i++) {
        ((uint8_t *)obs[ZOO_BITS])[i] = self->bits[i];
        ((uint8_t *)obs[ZOO_BOOL])[i] = (uint8_t)(zoo_fault == ZOO_BAD_BOOL && i == 1 ? 2 : (count >> i) & 1);
    }
    *(int32_t *)obs[ZOO_CHOICE] = zoo_fault == ZOO_BAD_CHOICE ? 3 : self->go;
    *(int64_t *)obs[ZOO_LONG] = (int64_t)count << 33;
    ((float *)obs[ZOO_NEAR])[0] = self->force;
    ((float *)obs[ZOO_NEAR])[1] = (float)self->noise;
    ((int32_t *)obs[ZOO_PAIR_0])[0] = self->moves[0];
    ((int32_t *)obs[ZOO_PAIR_0])[1] = self->moves[1] + 5;
    for (int i = 0; i < 4; i++)
        ((uint8_t *)obs[ZOO_PAIR_1])[i] = (uint8_t)(zoo_fault == ZOO_BAD_BITS && i == 3 ? 255 : i == count % 4);
    ((double *)obs[ZOO_WIDE])[0] = zoo_fault == ZOO_BAD_WIDE ? 1e300 : self->push[0];
    ((double *)obs[ZOO_WIDE])[1] = self->push[1];
}

/*  bits 0-5, go 6-9, moves 10-11 and 12-14. */
static void s_allow(const zoo_t *self, uint8_t *mask)
{
    const int count = (int)self->count;
    mask[1] = count % 2 == 0; /* the first bit may be set every other time */
    mask[6 + count % 4] = 0;  /* one way is barred                          */
    mask[12] = mask[13] = count % 3 == 0;
    if (zoo_fault == ZOO_NO_CHOICE || zoo_fault == ZOO_NO_CHOICE_END)
        mask[12] = mask[13] = mask[14] = 0;
}

static void s_reset(void *state, tt_env_rng_t *rng, tt_env_out_t *out)
{
    zoo_t *self = state;
    const zoo_fault_t fault = zoo_fault;
    *self = (zoo_t){.noise = tt_env_uniform(rng, 0, 1), .moves = {0, 5}};
    zoo_fault = ZOO_SOUND;
    s_look(self, out->obs);
    s_allow(self, out->mask);
    zoo_fault = fault;
}

static void s_move(zoo_t *self, const void *const *action, tt_env_out_t *out)
{
    memcpy(self->bits, action[ZOO_A_BITS], sizeof self->bits);
    self->force = *(const float *)action[ZOO_A_FORCE];
    self->go = *(const int32_t *)action[ZOO_A_GO];
    memcpy(self->moves, action[ZOO_A_MOVES], sizeof self->moves);
    memcpy(self->push, action[ZOO_A_PUSH], sizeof self->push);
    self->count++;
    self->noise = self->noise * 0.5 + 0.1 * (double)self->force;
    s_look(self, out->obs);
    s_allow(self, out->mask);
    out->reward = self->go + self->bits[0] + self->push[0] + 0.25 * self->moves[1];
    out->terminated = zoo_fault == ZOO_NO_CHOICE_END || (self->count >= 4 && self->go == 2 && self->bits[2]);
    out->truncated = zoo_fault == ZOO_CUT || (self->count >= 3 && self->go == -1 && self->bits[1]);
}

static void s_step(void *state, const void *const *action, tt_env_rng_t *rng, tt_env_out_t *out)
{
    (void)rng;
    s_move(state, action, out);
}

static void s_step_many(void *states, uint32_t count, const void *const *action, const tt_env_many_t *out)
{
    static const size_t seen[] = {3, 3, 4, 12, 8, 8, 8, 4, 16}, told[] = {3, 4, 4, 8, 16}; /* bytes of a row */
    enum { MASK = 15 };
    for (uint32_t i = 0; i < count; i++) {
        void *obs[9];
        const void *row[ZOO_ACTIONS];
        for (int k = 0; k < 9; k++)
            obs[k] = (char *)out->obs[k] + i * seen[k];
        for (int k = 0; k < ZOO_ACTIONS; k++)
            row[k] = (const char *)action[k] + i * told[k];
        tt_env_out_t one = {.obs = obs, .mask = out->mask + (size_t)i * MASK};
        s_move((zoo_t *)states + i, row, &one);
        out->reward[i] = (float)one.reward;
        out->terminated[i] = one.terminated ? 7 : 0; /* true may be any byte */
        out->truncated[i] = one.truncated ? 9 : 0;
    }
}

static void s_save(const void *state, void *bytes)
{
    memcpy(bytes, state, sizeof(zoo_t));
}

/*  What it computes with must be what it could have come to. */
static int s_load(void *state, const void *bytes)
{
    zoo_t other;
    memcpy(&other, bytes, sizeof other);
    const bool counts =
        other.count >= 0 && other.count < 1e6 && fabs(other.noise) < 1e6 && fabs((double)other.force) < 1e6;
    const bool chose = other.go >= -1 && other.go <= 2 && other.moves[0] >= 0 && other.moves[0] <= 1 &&
                       other.moves[1] >= 5 && other.moves[1] <= 7;
    if (!counts || !chose)
        return -1;
    *(zoo_t *)state = other;
    return 0;
}

#define ZOO(many)                                                                                                  \
    {                                                                                                              \
        .abi = TT_ENV_ABI, .id = "Zoo-v0", .summary = "shows what it was told",                                    \
        .obs = {.kind = TT_SPACE_DICT, .part = s_obs, .parts = 8},                                                 \
        .action = {.kind = TT_SPACE_DICT, .part = s_action, .parts = 5}, .mask = true, .reward_threshold = NAN,    \
        .max_episode_steps = 11, .state_size = sizeof(zoo_t), .reset = s_reset, .step = s_step, .step_many = many, \
        .save_size = sizeof(zoo_t), .save = s_save, .load = s_load                                                 \
    }
const tt_env_ops_t zoo_env = ZOO(NULL);
const tt_env_ops_t zoo_env_many = ZOO(s_step_many);
