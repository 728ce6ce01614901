/*  space_invaders - MinAtar/SpaceInvaders: shoot the aliens before they, or what they shoot, come down. */
#include "collector/envs/minatar/minatar.h"

enum { CANNON, ALIEN, ALIEN_LEFT, ALIEN_RIGHT, OWN_SHOT, THEIR_SHOT, CHANNELS };
enum { BOTTOM = SIDE - 1, RELOAD = 5, MOVE = 12, FASTEST = 6, SHOOT = 10 };
enum { WAVE_ROWS = 4, WAVE = 0xfc, BOARD = (1 << SIDE) - 1 }; /* a wave: columns 2 to 7 of the first four rows */

/*  Rows of the board: bit x is column x. */
typedef struct {
    uint16_t alien[SIDE], own[SIDE], theirs[SIDE];
    int8_t x;
    int8_t right; /* where the aliens go: -1 or 1 */
    uint8_t move_every, move_in, shoot_in, reload;
} game_t;

static void s_new_wave(game_t *self)
{
    for (int y = 0; y < WAVE_ROWS; y++)
        self->alien[y] = WAVE;
}

static void s_begin(game_t *self, tt_env_rng_t *rng)
{
    (void)rng;
    s_new_wave(self);
    self->x = 5;
    self->right = -1;
    self->move_every = self->move_in = MOVE;
    self->shoot_in = SHOOT;
}

static uint32_t s_columns(const game_t *self)
{
    uint32_t columns = 0;
    for (int y = 0; y < SIDE; y++)
        columns |= self->alien[y];
    return columns;
}

static uint32_t s_count(const game_t *self)
{
    uint32_t count = 0;
    for (int y = 0; y < SIDE; y++)
        count += (uint32_t)__builtin_popcount(self->alien[y]);
    return count;
}

static inline bool s_at_cannon(const game_t *self, const uint16_t *rows)
{
    return rows[BOTTOM] >> self->x & 1;
}

/*  One row down; what was in the last comes out as the first. */
static inline void s_roll_down(uint16_t *rows)
{
    const uint16_t last = rows[BOTTOM];
    memmove(rows + 1, rows, BOTTOM * sizeof *rows);
    rows[0] = last;
}

static inline void s_cannon(game_t *self, minatar_action_t action)
{
    if (action == FIRE && !self->reload) {
        self->own[BOTTOM] |= (uint16_t)(1u << self->x);
        self->reload = RELOAD;
    }
    self->x = (int8_t)minatar_moved(self->x, (action == RIGHT) - (action == LEFT), 0, SIDE - 1);
}

/*  Ours fly up, theirs down, both off the board. */
static inline void s_fly(game_t *self)
{
    memmove(self->own, self->own + 1, BOTTOM * sizeof *self->own);
    self->own[BOTTOM] = 0;
    s_roll_down(self->theirs);
    self->theirs[0] = 0;
}

/*  The aliens' move: sideways; at a side down, and back. True: they have landed. */
static bool s_march(game_t *self)
{
    const uint32_t edge = self->right > 0 ? 1u << (SIDE - 1) : 1u, count = s_count(self);
    bool landed = false;
    self->move_in = count < self->move_every ? (uint8_t)count : self->move_every;
    if (s_columns(self) & edge) {
        self->right = (int8_t)-self->right;
        landed = self->alien[BOTTOM] != 0;
        s_roll_down(self->alien);
        return landed;
    }
    for (int y = 0; y < SIDE; y++)
        self->alien[y] = (uint16_t)(self->right > 0 ? self->alien[y] << 1 : self->alien[y] >> 1);
    return landed;
}

/*  The nearest column with aliens, the left one of two; its lowest alien shoots. */
static void s_shoot(game_t *self)
{
    const uint32_t columns = s_columns(self);
    for (int away = 0; away < SIDE; away++) {
        for (int x = self->x - away; x <= self->x + away; x += away ? 2 * away : 1) {
            if (x < 0 || x >= SIDE || !(columns >> x & 1))
                continue;
            int y = BOTTOM;
            while (!(self->alien[y] >> x & 1))
                y--;
            self->theirs[y] |= (uint16_t)(1u << x);
            return;
        }
    }
}

static inline uint32_t s_hits(game_t *self)
{
    uint32_t hits = 0;
    for (int y = 0; y < SIDE; y++) {
        const uint16_t hit = self->alien[y] & self->own[y];
        if (!hit)
            continue;
        hits += (uint32_t)__builtin_popcount(hit);
        self->alien[y] ^= hit;
        self->own[y] ^= hit;
    }
    return hits;
}

static inline void s_tick(game_t *self, bool ramping)
{
    if (self->reload > 0)
        self->reload--;
    self->move_in--;
    self->shoot_in--;
    if (s_columns(self))
        return;
    if (ramping && self->move_every > FASTEST)
        self->move_every--;
    s_new_wave(self);
}

static inline minatar_end_t s_play(game_t *self, minatar_action_t action, bool ramping, tt_env_rng_t *rng)
{
    (void)rng;
    minatar_end_t end = {0};
    s_cannon(self, action);
    s_fly(self);
    end.terminated = s_at_cannon(self, self->theirs) || s_at_cannon(self, self->alien);
    if (self->move_in == 0) {
        end.terminated |= s_march(self);
        end.terminated |= s_at_cannon(self, self->alien);
    }
    if (self->shoot_in == 0) {
        self->shoot_in = SHOOT;
        s_shoot(self);
    }
    end.reward = s_hits(self);
    s_tick(self, ramping);
    return end;
}

static inline void s_draw_rows(const uint16_t *rows, uint8_t *obs, int channel, int other)
{
    for (int y = 0; y < SIDE; y++)
        for (uint32_t left = rows[y]; left; left &= left - 1) {
            minatar_mark(obs, CHANNELS, __builtin_ctz(left), y, channel);
            minatar_mark(obs, CHANNELS, __builtin_ctz(left), y, other);
        }
}

static inline void s_draw(const game_t *self, uint8_t *obs)
{
    minatar_mark(obs, CHANNELS, self->x, BOTTOM, CANNON);
    s_draw_rows(self->alien, obs, ALIEN, self->right < 0 ? ALIEN_LEFT : ALIEN_RIGHT);
    s_draw_rows(self->own, obs, OWN_SHOT, OWN_SHOT);
    s_draw_rows(self->theirs, obs, THEIR_SHOT, THEIR_SHOT);
}

static bool s_sound(const game_t *self)
{
    bool sound = minatar_on_board(self->x, 0) && (self->right == 1 || self->right == -1) && self->move_in <= MOVE &&
                 self->shoot_in <= SHOOT && self->reload <= RELOAD;
    for (int y = 0; y < SIDE; y++)
        sound = sound && ((self->alien[y] | self->own[y] | self->theirs[y]) & ~BOARD) == 0;
    return sound && s_columns(self) && self->move_every >= FASTEST && self->move_every <= MOVE;
}

static const uint8_t s_minimal[] = {NOTHING, LEFT, RIGHT, FIRE};
#define GAME    space_invaders
#define TITLE   "SpaceInvaders"
#define SUMMARY "shoot the aliens, and what they shoot must not meet you"
#include "collector/envs/minatar/table.h"
