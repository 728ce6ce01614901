/*  breakout - MinAtar/Breakout: a ball on diagonals, three rows of bricks, and a paddle on the bottom row. */
#include <assert.h>
#include "collector/envs/minatar/minatar.h"

enum { PADDLE, BALL, TRAIL, BRICK, CHANNELS };
enum { ROWS = 3, TOP = 1, BOTTOM = SIDE - 1 }; /* rows of bricks, and where they begin */
#define ALL_BRICKS ((UINT32_C(1) << ROWS * SIDE) - 1)

typedef struct {
    uint32_t bricks; /* bit (y - TOP) * SIDE + x */
    int8_t x, y, last_x, last_y;
    int8_t right, down; /* where the ball flies: -1 or 1 */
    int8_t paddle;
    uint8_t inside; /* it has just taken a brick: the next one in its way is passed */
} game_t;

static void s_begin(game_t *self, tt_env_rng_t *rng)
{
    const bool left = minatar_below(rng, 2) == 0;
    *self = (game_t){.bricks = ALL_BRICKS, .down = 1, .right = left ? 1 : -1, .paddle = 4};
    self->x = self->last_x = left ? 0 : BOTTOM;
    self->y = self->last_y = 3;
}

static inline uint32_t s_brick_at(const game_t *self, int x, int y)
{
    return y >= TOP && y < TOP + ROWS ? self->bricks & (UINT32_C(1) << ((y - TOP) * SIDE + x)) : 0;
}

/*  The ball comes to the bottom row at x. False: the paddle is not there. */
static inline bool s_returned(game_t *self, int x)
{
    if (!self->bricks)
        self->bricks = ALL_BRICKS;
    if (self->x == self->paddle) { /* hit from above: it goes on to the same side */
        self->down = -1;
    } else if (x == self->paddle) { /* hit from the side: it goes back where it came from */
        self->down = -1;
        self->right = (int8_t)-self->right;
    } else {
        return false;
    }
    return true;
}

/*  Sideways; at a wall it stays in its column and turns. */
static inline int s_sideways(game_t *self)
{
    const int x = self->x + self->right;
    if (x >= 0 && x < SIDE)
        return x;
    self->right = (int8_t)-self->right;
    return self->x;
}

static minatar_end_t s_fly(game_t *self)
{
    minatar_end_t end = {0};
    const int x = s_sideways(self);
    int y = self->y + self->down;
    const uint32_t brick = s_brick_at(self, x, y);
    if (y < 0) {
        y = 0;
        self->down = 1;
    } else if (brick && !self->inside) {
        self->bricks &= ~brick;
        self->down = (int8_t)-self->down;
        y = self->y;
        end.reward = 1;
    } else if (!brick && y == BOTTOM) {
        end.terminated = !s_returned(self, x);
        y = end.terminated ? y : self->y;
    }
    self->inside = brick != 0;
    self->last_x = self->x;
    self->last_y = self->y;
    self->x = (int8_t)x;
    self->y = (int8_t)y;
    return end;
}

static inline minatar_end_t s_play(game_t *self, minatar_action_t action, bool ramping, tt_env_rng_t *rng)
{
    (void)ramping, (void)rng;
    self->paddle = (int8_t)minatar_moved(self->paddle, (action == RIGHT) - (action == LEFT), 0, SIDE - 1);
    return s_fly(self);
}

#define BIT5(i) 1u << (i), 1u << (i + 1), 1u << (i + 2), 1u << (i + 3), 1u << (i + 4)
static const uint32_t s_bit[ROWS * SIDE] = {BIT5(0), BIT5(5), BIT5(10), BIT5(15), BIT5(20), BIT5(25)};

/*  A cell is one word of four channels, so that a few vector instructions draw all bricks. */
static inline void s_draw_bricks(uint32_t bricks, uint8_t *obs)
{
    static_assert(CHANNELS == sizeof(uint32_t), "a cell is a word");
    const uint32_t brick = UINT32_C(1) << 8 * BRICK;
    uint32_t cell[ROWS * SIDE];
    for (int i = 0; i < ROWS * SIDE; i++)
        cell[i] = bricks & s_bit[i] ? brick : 0;
    memcpy(obs + TOP * SIDE * CHANNELS, cell, sizeof cell);
}

static inline void s_draw(const game_t *self, uint8_t *obs)
{
    s_draw_bricks(self->bricks, obs);
    minatar_mark(obs, CHANNELS, self->paddle, BOTTOM, PADDLE);
    minatar_mark(obs, CHANNELS, self->x, self->y, BALL);
    minatar_mark(obs, CHANNELS, self->last_x, self->last_y, TRAIL);
}

static bool s_one(int8_t direction)
{
    return direction == 1 || direction == -1;
}

static bool s_sound(const game_t *self)
{
    return self->bricks <= ALL_BRICKS && minatar_on_board(self->x, self->y) && self->y < BOTTOM &&
           minatar_on_board(self->last_x, self->last_y) && minatar_on_board(self->paddle, 0) && s_one(self->right) &&
           s_one(self->down) && self->inside <= 1;
}

static const uint8_t s_minimal[] = {NOTHING, LEFT, RIGHT};
#define GAME    breakout
#define TITLE   "Breakout"
#define SUMMARY "break bricks with a ball and a paddle"
#include "collector/envs/minatar/table.h"
