/*  table - the two tables of one game; included once, at the end of its file, which has said before:
 *
 *      GAME, TITLE, CHANNELS, SUMMARY          breakout, "Breakout", 4, "what it is"
 *      game_t                                  plain data, no pointers
 *      s_begin(game_t *, rng)                  a new episode
 *      s_play(game_t *, action, ramping, rng)  one step; minatar_end_t
 *      s_draw(const game_t *, obs)             into an observation of zeros
 *      s_sound(const game_t *)                 false: no state of this game (saved states are data from outside)
 *      s_minimal                               the actions of -v1 (minatar_action_t) */
#include "collector/envs/minatar/minatar.h"

#define MINATAR_JOIN_(a, b, c) a##b##c
#define MINATAR_JOIN(a, b, c)  MINATAR_JOIN_(a, b, c)
#define MINATAR_TABLE(version) MINATAR_JOIN(tt_env_minatar_, GAME, version)

typedef struct {
    minatar_args_t args;
    uint64_t last; /* the action made last, of the episode before, too: it may stick. What is saved begins here */
    game_t game;
} state_t;

enum { SAVED_AT = offsetof(state_t, last), SAVED = sizeof(state_t) - SAVED_AT };

static const char *s_init(void *state, const tt_env_arg_t *args)
{
    state_t *self = state;
    self->last = NOTHING;
    return minatar_init(&self->args, args);
}

/*  The size is hidden from the compiler, which would write `rep stos`: at a few hundred bytes a third of a step. */
static inline void s_observe(const game_t *game, uint8_t *obs)
{
    size_t size = CELLS * CHANNELS;
    __asm__("" : "+r"(size));
    memset(obs, 0, size);
    s_draw(game, obs);
}

static void s_reset(void *state, tt_env_rng_t *rng, tt_env_out_t *out)
{
    state_t *self = state;
    memset(&self->game, 0, sizeof self->game);
    s_begin(&self->game, rng);
    s_observe(&self->game, out->obs[0]);
}

static inline void s_move(state_t *self, uint32_t action, tt_env_rng_t *rng, tt_env_out_t *out)
{
    if (!minatar_chance(rng, self->args.sticky))
        self->last = action;
    const minatar_end_t end = s_play(&self->game, (minatar_action_t)self->last, self->args.ramping, rng);
    out->reward = end.reward;
    out->terminated = end.terminated;
    s_observe(&self->game, out->obs[0]);
}

static void s_step_v0(void *state, const void *const *action, tt_env_rng_t *rng, tt_env_out_t *out)
{
    const int32_t *choice = action[0];
    s_move(state, (uint32_t)*choice, rng, out);
}

static void s_step_v1(void *state, const void *const *action, tt_env_rng_t *rng, tt_env_out_t *out)
{
    const int32_t *choice = action[0];
    s_move(state, s_minimal[*choice], rng, out);
}

static void s_save(const void *state, void *bytes)
{
    memcpy(bytes, (const char *)state + SAVED_AT, SAVED);
}

static int s_load(void *state, const void *bytes)
{
    state_t copy;
    memcpy((char *)&copy + SAVED_AT, bytes, SAVED);
    if (copy.last >= MINATAR_ACTIONS || !s_sound(&copy.game))
        return 1;
    memcpy((char *)state + SAVED_AT, bytes, SAVED);
    return 0;
}

static const double s_low = 0, s_high = 1;
static const int64_t s_all_of[] = {MINATAR_ACTIONS}, s_minimal_of[] = {sizeof s_minimal};

#define MINATAR_OPS(version, choices)                \
    const tt_env_ops_t MINATAR_TABLE(_##version) = { \
        .abi = TT_ENV_ABI,                           \
        .id = "MinAtar/" TITLE "-" #version,         \
        .summary = SUMMARY,                          \
        .obs = {.kind = TT_SPACE_BOX,                \
            .dtype = TT_BOOL,                        \
            .rank = 3,                               \
            .shape = {SIDE, SIDE, CHANNELS},         \
            .low = &s_low,                           \
            .high = &s_high,                         \
            .same_bounds = 1},                       \
        .action = TT_CHOICES(choices),               \
        .options = minatar_options,                  \
        .reward_threshold = NAN,                     \
        .state_size = sizeof(state_t),               \
        .init = s_init,                              \
        .plain = true,                               \
        .reset = s_reset,                            \
        .step = s_step_##version,                    \
        .save_size = SAVED,                          \
        .save = s_save,                              \
        .load = s_load,                              \
    }

MINATAR_OPS(v0, s_all_of);
MINATAR_OPS(v1, s_minimal_of);
