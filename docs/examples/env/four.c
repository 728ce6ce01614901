/*  four - Connect Four against an opponent of one's choice: an environment with an observation of several parts, choices that
 *  are not always allowed, and an argument.
 *
 *  Build:  cc -O2 -shared -fPIC -I PREFIX/include/tutti four.c -o four.so     (in the source tree: -I .)
 *  Try:    tutti envs ./four.so && tutti bench envs ./four.so
 *  Train:  tutti run four.yaml
 *
 *  The page that goes with it: docs/guide/add-an-env.md */
#include "collector/env.h"

enum { ROWS = 6, COLUMNS = 7, ME = 0, THEM = 1, NOBODY = -1 };

typedef struct {
    uint8_t board[2][ROWS][COLUMNS]; /* mine and theirs, row 0 is the lowest: 1 where a disc lies */
    double skill;                    /* the argument                                              */
} four_t;

/* ---- the game ------------------------------------------------------------------------------------------------------ */

static int height_of(const four_t *self, int column)
{
    int row = 0;
    while (row < ROWS && (self->board[ME][row][column] || self->board[THEM][row][column]))
        row++;
    return row;
}

/*  Discs of one side in a line from a place, which is not counted. */
static int run(const four_t *self, int side, int row, int column, int up, int right)
{
    int count = 0;
    for (row += up, column += right; row >= 0 && row < ROWS && column >= 0 && column < COLUMNS;
         row += up, column += right) {
        if (!self->board[side][row][column])
            break;
        count++;
    }
    return count;
}

/*  Does a disc of this side there make four? */
static bool makes_four(const four_t *self, int side, int row, int column)
{
    static const int lines[4][2] = {{0, 1}, {1, 0}, {1, 1}, {1, -1}};
    for (int i = 0; i < 4; i++) {
        const int up = lines[i][0], right = lines[i][1];
        if (run(self, side, row, column, up, right) + run(self, side, row, column, -up, -right) >= 3)
            return true;
    }
    return false;
}

/*  Returns whether it has won. */
static bool drop(four_t *self, int side, int column)
{
    const int row = height_of(self, column);
    self->board[side][row][column] = 1;
    return makes_four(self, side, row, column);
}

static int columns_left(const four_t *self)
{
    int left = 0;
    for (int c = 0; c < COLUMNS; c++)
        left += height_of(self, c) < ROWS;
    return left;
}

/*  Where this side would make four at once; NOBODY = nowhere. */
static int winning_column(const four_t *self, int side)
{
    for (int c = 0; c < COLUMNS; c++)
        if (height_of(self, c) < ROWS && makes_four(self, side, height_of(self, c), c))
            return c;
    return NOBODY;
}

/*  Randomness comes from rng alone: then the game can be played again, anywhere. */
static int opponents_column(const four_t *self, tt_env_rng_t *rng)
{
    if (tt_env_uniform(rng, 0, 1) < self->skill) {
        const int wins = winning_column(self, THEM), stops = winning_column(self, ME);
        if (wins != NOBODY || stops != NOBODY)
            return wins != NOBODY ? wins : stops;
    }
    int nth = (int)tt_env_uniform(rng, 0, columns_left(self)), column = 0;
    while (height_of(self, column) == ROWS || nth-- > 0)
        column++;
    return column;
}

/* ---- the environment ------------------------------------------------------------------------------------------------- */

/*  One pointer for each leaf of the observation, in order, and one byte for each choice. */
static void show(const four_t *self, tt_env_out_t *out)
{
    float *heights = out->obs[1];
    memcpy(out->obs[0], self->board, sizeof self->board);
    for (int c = 0; c < COLUMNS; c++) {
        heights[c] = (float)height_of(self, c) / ROWS;
        out->mask[c] = height_of(self, c) < ROWS;
    }
}

static const char *four_init(void *state, const tt_env_arg_t *args)
{
    four_t *self = state;
    self->skill = tt_env_arg_number(args, "skill", 0.5);
    return self->skill >= 0 && self->skill <= 1 ? NULL : "skill must be a number from 0 to 1";
}

static void four_reset(void *state, tt_env_rng_t *rng, tt_env_out_t *out)
{
    four_t *self = state;
    memset(self->board, 0, sizeof self->board);
    if (tt_env_uniform(rng, 0, 1) < 0.5)
        drop(self, THEM, opponents_column(self, rng));
    show(self, out);
}

/*  My disc, then theirs. The column is one that the mask allowed: Tutti has looked. */
static void four_step(void *state, const void *const *action, tt_env_rng_t *rng, tt_env_out_t *out)
{
    four_t *self = state;
    out->reward = 0;
    if (drop(self, ME, *(const int32_t *)action[0]))
        out->reward = 1;
    else if (columns_left(self) > 0 && drop(self, THEM, opponents_column(self, rng)))
        out->reward = -1;
    out->terminated = out->reward != 0 || columns_left(self) == 0; /* nothing need be allowed then */
    show(self, out);
}

static const tt_space_t s_obs[] = {
    {.key = "board", .kind = TT_SPACE_BOX, .dtype = TT_U8, .rank = 3, .shape = {2, ROWS, COLUMNS}},
    {.key = "heights", .kind = TT_SPACE_BOX, .dtype = TT_F32, .rank = 1, .shape = {COLUMNS}},
};
static const int64_t s_columns[] = {COLUMNS};
static const tt_env_option_t s_options[] = {
    {"skill", "0.5", "how often the opponent makes four, or prevents mine, when it can: 0 to 1"},
    {0},
};

static const tt_env_ops_t s_ops = {
    .abi = TT_ENV_ABI,
    .id = "ConnectFour-v0",
    .summary = "four in a row against an opponent who sees some threats",
    .obs = {.kind = TT_SPACE_DICT, .part = s_obs, .parts = 2},
    .action = TT_CHOICES(s_columns),
    .mask = true,
    .options = s_options,
    .reward_threshold = NAN,
    .state_size = sizeof(four_t),
    .init = four_init,
    .plain = true, /* init makes nothing that the state points to */
    .reset = four_reset,
    .step = four_step,
};

/*  The one name that Tutti looks for. */
const tt_env_ops_t *tutti_env(void);
const tt_env_ops_t *tutti_env(void)
{
    return &s_ops;
}
