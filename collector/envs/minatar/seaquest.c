/*  seaquest - MinAtar/Seaquest: a submarine shoots fish and submarines, takes divers aboard, and comes up for air. */
#include "collector/envs/minatar/minatar.h"

enum { FRONT, BACK, OWN_SHOT, TRAIL, THEIR_SHOT, FISH, SUB, OXYGEN_GAUGE, DIVER_GAUGE, DIVER, CHANNELS };
enum { DEEPEST = SIDE - 2, GAUGES = SIDE - 1, AIR = 200, ABOARD = 6 };
enum { SPAWN = 20, MOVE = 5, FASTEST = 2, DIVERS_EVERY = 30, DIVER_MOVE = 5, RELOAD = 5, SHOOT = 10 };

/*  Enough for every game: at most one enemy comes a step, and at that level it has crossed the board after 30 steps, at
 *  slower ones after 60 at most; a shot after SIDE, and who shoots does so every SHOOT + 1 steps. */
enum { MOST = 64 };

typedef struct {
    int8_t x, y, right; /* right: -1 or 1 */
    uint8_t wait;       /* steps until it moves; shots always do */
    uint8_t shoot_in;   /* submarines */
} thing_t;

/*  In the order in which they came. */
typedef struct {
    uint32_t count;
    thing_t at[MOST];
} things_t;

typedef struct {
    things_t fish, sub, diver, own, theirs;
    int32_t oxygen, aboard; /* aboard is -1 for the while after a full load has been landed */
    int8_t x, y, right;
    uint8_t spawn_every, spawn_in, diver_in, move_every, odd, reload, surfaced;
} game_t;

static void s_begin(game_t *self, tt_env_rng_t *rng)
{
    (void)rng;
    self->oxygen = AIR;
    self->x = 5;
    self->right = -1;
    self->spawn_every = self->spawn_in = SPAWN;
    self->diver_in = DIVERS_EVERY;
    self->move_every = MOVE;
    self->surfaced = 1;
}

/*  --- things --- */

static inline void s_add(things_t *self, thing_t thing)
{
    if (self->count < MOST)
        self->at[self->count++] = thing;
}

static inline void s_remove(things_t *self, uint32_t i)
{
    self->count--;
    memmove(&self->at[i], &self->at[i + 1], (self->count - i) * sizeof self->at[0]);
    memset(&self->at[self->count], 0, sizeof self->at[0]);
}

static inline bool s_meets(const thing_t *thing, int x, int y)
{
    return thing->x == x && thing->y == y;
}

/*  The first thing there; count if there is none. */
static inline uint32_t s_first_at(const things_t *self, int x, int y)
{
    uint32_t i = 0;
    while (i < self->count && !s_meets(&self->at[i], x, y))
        i++;
    return i;
}

static inline bool s_taken(things_t *self, int x, int y)
{
    const uint32_t i = s_first_at(self, x, y);
    if (i == self->count)
        return false;
    s_remove(self, i);
    return true;
}

/*  Its move, when that is due: true if it is still on the board. */
static inline bool s_swim(thing_t *thing, uint8_t every, bool *moved)
{
    *moved = thing->wait == 0;
    if (thing->wait) {
        thing->wait--;
        return true;
    }
    thing->wait = every;
    thing->x = (int8_t)(thing->x + thing->right);
    return minatar_on_board(thing->x, 0);
}

/*  --- what comes --- */

static bool s_comes_towards(const things_t *self, int y, int right)
{
    for (uint32_t i = 0; i < self->count; i++)
        if (self->at[i].y == y && self->at[i].right != right)
            return true;
    return false;
}

/*  A fish or a submarine from one side, unless something is on its way there from the other. */
static void s_spawn_enemy(game_t *self, tt_env_rng_t *rng)
{
    const bool right = minatar_chance(rng, MINATAR_HALF), sub = minatar_chance(rng, MINATAR_THIRD);
    const thing_t enemy = {.x = right ? 0 : SIDE - 1,
        .y = (int8_t)(1 + minatar_below(rng, DEEPEST)),
        .right = right ? 1 : -1,
        .wait = self->move_every,
        .shoot_in = sub ? SHOOT : 0};
    if (s_comes_towards(&self->sub, enemy.y, enemy.right) || s_comes_towards(&self->fish, enemy.y, enemy.right))
        return;
    s_add(sub ? &self->sub : &self->fish, enemy);
}

static void s_spawn_diver(game_t *self, tt_env_rng_t *rng)
{
    const bool right = minatar_chance(rng, MINATAR_HALF);
    const thing_t diver = {.x = right ? 0 : SIDE - 1,
        .y = (int8_t)(1 + minatar_below(rng, DEEPEST)),
        .right = right ? 1 : -1,
        .wait = DIVER_MOVE};
    s_add(&self->diver, diver);
}

static inline void s_spawn(game_t *self, tt_env_rng_t *rng)
{
    if (self->spawn_in == 0) {
        s_spawn_enemy(self, rng);
        self->spawn_in = self->spawn_every;
    }
    if (self->diver_in == 0) {
        s_spawn_diver(self, rng);
        self->diver_in = DIVERS_EVERY;
    }
}

/*  --- what each does in a step --- */

static inline void s_steer(game_t *self, minatar_action_t action)
{
    if (action == FIRE && !self->reload) {
        s_add(&self->own, (thing_t){.x = self->x, .y = self->y, .right = self->right});
        self->reload = RELOAD;
    }
    if (action == LEFT || action == RIGHT)
        self->right = action == RIGHT ? 1 : -1;
    self->x = (int8_t)minatar_moved(self->x, (action == RIGHT) - (action == LEFT), 0, SIDE - 1);
    self->y = (int8_t)minatar_moved(self->y, (action == DOWN) - (action == UP), 0, DEEPEST);
}

/*  From the last to the first, so that those that stay keep their places. */
static inline void s_move_own(game_t *self, minatar_end_t *end)
{
    for (uint32_t i = self->own.count; i-- > 0;) {
        thing_t *shot = &self->own.at[i];
        shot->x = (int8_t)(shot->x + shot->right);
        if (!minatar_on_board(shot->x, 0)) {
            s_remove(&self->own, i);
        } else if (s_taken(&self->fish, shot->x, shot->y) || s_taken(&self->sub, shot->x, shot->y)) {
            s_remove(&self->own, i);
            end->reward += 1;
        }
    }
}

static inline bool s_board(game_t *self, uint32_t i)
{
    if (!s_meets(&self->diver.at[i], self->x, self->y) || self->aboard >= ABOARD)
        return false;
    s_remove(&self->diver, i);
    self->aboard++;
    return true;
}

static inline void s_move_divers(game_t *self)
{
    bool moved;
    for (uint32_t i = self->diver.count; i-- > 0;) {
        if (s_board(self, i))
            continue;
        if (!s_swim(&self->diver.at[i], DIVER_MOVE, &moved))
            s_remove(&self->diver, i);
        else if (moved)
            s_board(self, i);
    }
}

/*  An enemy's move. False: it is off the board, or shot. */
static inline bool s_move_enemy(game_t *self, thing_t *enemy, minatar_end_t *end)
{
    bool moved;
    end->terminated |= s_meets(enemy, self->x, self->y);
    if (!s_swim(enemy, self->move_every, &moved))
        return false;
    if (!moved)
        return true;
    if (s_meets(enemy, self->x, self->y)) {
        end->terminated = true;
    } else if (s_taken(&self->own, enemy->x, enemy->y)) {
        end->reward += 1;
        return false;
    }
    return true;
}

static inline void s_shoot(game_t *self, thing_t *sub)
{
    if (sub->shoot_in) {
        sub->shoot_in--;
        return;
    }
    sub->shoot_in = SHOOT;
    s_add(&self->theirs, (thing_t){.x = sub->x, .y = sub->y, .right = sub->right});
}

static inline void s_move_subs(game_t *self, minatar_end_t *end)
{
    for (uint32_t i = self->sub.count; i-- > 0;) {
        if (s_move_enemy(self, &self->sub.at[i], end))
            s_shoot(self, &self->sub.at[i]);
        else
            s_remove(&self->sub, i);
    }
}

static inline void s_move_theirs(game_t *self, minatar_end_t *end)
{
    for (uint32_t i = self->theirs.count; i-- > 0;) {
        thing_t *shot = &self->theirs.at[i];
        end->terminated |= s_meets(shot, self->x, self->y);
        shot->x = (int8_t)(shot->x + shot->right);
        end->terminated |= s_meets(shot, self->x, self->y);
        if (!minatar_on_board(shot->x, 0))
            s_remove(&self->theirs, i);
    }
}

static inline void s_move_fish(game_t *self, minatar_end_t *end)
{
    for (uint32_t i = self->fish.count; i-- > 0;)
        if (!s_move_enemy(self, &self->fish.at[i], end))
            s_remove(&self->fish, i);
}

/*  --- air --- */

/*  At each surfacing enemies come more often, and at every other one they also get faster. */
static void s_ramp(game_t *self)
{
    if (self->spawn_every == 1 && self->move_every == FASTEST)
        return;
    if (self->move_every > FASTEST && self->odd)
        self->move_every--;
    if (self->spawn_every > 1)
        self->spawn_every--;
    self->odd ^= 1;
}

/*  Up for air, and a diver leaves; a full load is worth the air that was left. Without a diver it is the end. */
static void s_surface(game_t *self, bool ramping, minatar_end_t *end)
{
    self->surfaced = 1;
    if (self->aboard == 0) {
        end->terminated = true;
        return;
    }
    if (self->aboard == ABOARD) {
        end->reward += self->oxygen * 10 / AIR;
        self->aboard = 0;
    }
    self->oxygen = AIR;
    self->aboard--;
    if (ramping)
        s_ramp(self);
}

static inline void s_breathe(game_t *self, bool ramping, minatar_end_t *end)
{
    end->terminated |= self->oxygen <= 0;
    if (self->y > 0) {
        self->oxygen--;
        self->surfaced = 0;
    } else if (!self->surfaced) {
        s_surface(self, ramping, end);
    }
}

static inline minatar_end_t s_play(game_t *self, minatar_action_t action, bool ramping, tt_env_rng_t *rng)
{
    minatar_end_t end = {0};
    s_spawn(self, rng);
    s_steer(self, action);
    s_move_own(self, &end);
    s_move_divers(self);
    s_move_subs(self, &end);
    s_move_theirs(self, &end);
    s_move_fish(self, &end);
    if (self->spawn_in > 0)
        self->spawn_in--;
    if (self->diver_in > 0)
        self->diver_in--;
    if (self->reload > 0)
        self->reload--;
    s_breathe(self, ramping, &end);
    return end;
}

/*  --- what is seen --- */

static inline void s_draw_things(const things_t *self, uint8_t *obs, int channel, bool trail)
{
    for (uint32_t i = 0; i < self->count; i++) {
        const thing_t *thing = &self->at[i];
        const int behind = thing->x - thing->right;
        minatar_mark(obs, CHANNELS, thing->x, thing->y, channel);
        if (trail && minatar_on_board(behind, 0))
            minatar_mark(obs, CHANNELS, behind, thing->y, TRAIL);
    }
}

static inline void s_draw(const game_t *self, uint8_t *obs)
{
    const int air = self->oxygen * SIDE / AIR;
    minatar_mark(obs, CHANNELS, self->x, self->y, FRONT);
    minatar_mark(obs, CHANNELS, self->x - self->right, self->y, BACK);
    for (int x = 0; x < air; x++)
        minatar_mark(obs, CHANNELS, x, GAUGES, OXYGEN_GAUGE);
    for (int x = GAUGES - self->aboard; x < GAUGES; x++)
        minatar_mark(obs, CHANNELS, x, GAUGES, DIVER_GAUGE);
    s_draw_things(&self->own, obs, OWN_SHOT, false);
    s_draw_things(&self->theirs, obs, THEIR_SHOT, false);
    s_draw_things(&self->fish, obs, FISH, true);
    s_draw_things(&self->sub, obs, SUB, true);
    s_draw_things(&self->diver, obs, DIVER, true);
}

static bool s_things_sound(const things_t *self)
{
    bool sound = self->count <= MOST;
    for (uint32_t i = 0; sound && i < self->count; i++) {
        const thing_t *thing = &self->at[i];
        sound = minatar_on_board(thing->x, thing->y) && thing->y <= DEEPEST && thing->wait <= MOVE &&
                thing->shoot_in <= SHOOT && (thing->right == 1 || thing->right == -1);
    }
    return sound;
}

static bool s_sound(const game_t *self)
{
    return s_things_sound(&self->fish) && s_things_sound(&self->sub) && s_things_sound(&self->diver) &&
           s_things_sound(&self->own) && s_things_sound(&self->theirs) && self->oxygen >= -1 && self->oxygen <= AIR &&
           self->aboard >= -(1 << 30) && self->aboard <= ABOARD && minatar_on_board(self->x, self->y) &&
           minatar_on_board(self->x - self->right, 0) && self->y <= DEEPEST &&
           (self->right == 1 || self->right == -1) && self->spawn_every >= 1 && self->spawn_every <= SPAWN &&
           self->spawn_in <= SPAWN && self->diver_in <= DIVERS_EVERY && self->move_every >= FASTEST &&
           self->move_every <= MOVE && self->odd <= 1 && self->reload <= RELOAD && self->surfaced <= 1;
}

static const uint8_t s_minimal[] = {NOTHING, LEFT, UP, RIGHT, DOWN, FIRE};
#define GAME    seaquest
#define TITLE   "Seaquest"
#define SUMMARY "shoot fish and submarines, rescue divers, and mind the air"
#include "collector/envs/minatar/table.h"
