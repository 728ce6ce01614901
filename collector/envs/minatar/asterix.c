/*  asterix - MinAtar/Asterix: walk about, take the gold, and stay away from everything else; ever faster. */
#include "collector/envs/minatar/minatar.h"

enum { PLAYER, ENEMY, TRAIL, GOLD, CHANNELS };
enum { LANES = 8, RAMP = 100, SPAWN = 10, MOVE = 5 };

/*  What crosses the board in lane i, that is row i + 1. */
typedef struct {
    uint8_t there, gold;
    int8_t x, right; /* right: -1 or 1 */
} thing_t;

typedef struct {
    thing_t thing[LANES];
    int8_t x, y;
    uint8_t spawn_every, spawn_in, move_every, move_in;
    int8_t ramp_in;
    uint8_t odd; /* the level is: then things move faster at the next */
} game_t;

static void s_begin(game_t *self, tt_env_rng_t *rng)
{
    (void)rng;
    self->x = self->y = 5;
    self->spawn_every = self->spawn_in = SPAWN;
    self->move_every = self->move_in = MOVE;
    self->ramp_in = RAMP;
}

/*  Something new at the edge of one of the free lanes, if there is one. */
static void s_spawn(game_t *self, tt_env_rng_t *rng)
{
    uint8_t lane[LANES];
    uint32_t lanes = 0;
    const bool right = minatar_chance(rng, MINATAR_HALF), gold = minatar_chance(rng, MINATAR_THIRD);
    for (int i = 0; i < LANES; i++)
        if (!self->thing[i].there)
            lane[lanes++] = (uint8_t)i;
    if (!lanes)
        return;
    thing_t *thing = &self->thing[lane[minatar_below(rng, lanes)]];
    *thing = (thing_t){.there = 1, .gold = gold, .x = right ? 0 : SIDE - 1, .right = right ? 1 : -1};
}

/*  Is the player where lane i's thing is? Gold is taken, anything else is the end. */
static inline void s_touch(game_t *self, int i, minatar_end_t *end)
{
    thing_t *thing = &self->thing[i];
    if (!thing->there || thing->x != self->x || self->y != i + 1)
        return;
    if (thing->gold) {
        *thing = (thing_t){0};
        end->reward += 1;
    } else {
        end->terminated = true;
    }
}

static void s_move_things(game_t *self, minatar_end_t *end)
{
    for (int i = 0; i < LANES; i++) {
        thing_t *thing = &self->thing[i];
        if (!thing->there)
            continue;
        thing->x = (int8_t)(thing->x + thing->right);
        if (!minatar_on_board(thing->x, 0))
            *thing = (thing_t){0};
        s_touch(self, i, end);
    }
}

/*  Every so often things come more often, and every other time they also move faster. */
static inline void s_ramp(game_t *self)
{
    if (self->spawn_every == 1 && self->move_every == 1)
        return;
    if (self->ramp_in >= 0) {
        self->ramp_in--;
        return;
    }
    if (self->move_every > 1 && self->odd)
        self->move_every--;
    if (self->spawn_every > 1)
        self->spawn_every--;
    self->odd ^= 1;
    self->ramp_in = RAMP;
}

static inline minatar_end_t s_play(game_t *self, minatar_action_t action, bool ramping, tt_env_rng_t *rng)
{
    minatar_end_t end = {0};
    if (self->spawn_in == 0) {
        s_spawn(self, rng);
        self->spawn_in = self->spawn_every;
    }
    self->x = (int8_t)minatar_moved(self->x, (action == RIGHT) - (action == LEFT), 0, SIDE - 1);
    self->y = (int8_t)minatar_moved(self->y, (action == DOWN) - (action == UP), 1, LANES);
    for (int i = 0; i < LANES; i++)
        s_touch(self, i, &end);
    if (self->move_in == 0) {
        self->move_in = self->move_every;
        s_move_things(self, &end);
    }
    self->spawn_in--;
    self->move_in--;
    if (ramping)
        s_ramp(self);
    return end;
}

static inline void s_draw(const game_t *self, uint8_t *obs)
{
    minatar_mark(obs, CHANNELS, self->x, self->y, PLAYER);
    for (int i = 0; i < LANES; i++) {
        const thing_t *thing = &self->thing[i];
        if (!thing->there)
            continue;
        minatar_mark(obs, CHANNELS, thing->x, i + 1, thing->gold ? GOLD : ENEMY);
        if (minatar_on_board(thing->x - thing->right, 0))
            minatar_mark(obs, CHANNELS, thing->x - thing->right, i + 1, TRAIL);
    }
}

static bool s_thing_sound(const thing_t *thing)
{
    return !thing->there || (thing->there == 1 && thing->gold <= 1 && minatar_on_board(thing->x, 0) &&
                                (thing->right == 1 || thing->right == -1));
}

static bool s_sound(const game_t *self)
{
    bool sound = minatar_on_board(self->x, 0) && self->y >= 1 && self->y <= LANES && self->ramp_in >= -1 &&
                 self->ramp_in <= RAMP && self->odd <= 1;
    sound = sound && self->spawn_every >= 1 && self->spawn_every <= SPAWN && self->spawn_in <= SPAWN;
    sound = sound && self->move_every >= 1 && self->move_every <= MOVE && self->move_in <= MOVE;
    for (int i = 0; i < LANES; i++)
        sound = sound && s_thing_sound(&self->thing[i]);
    return sound;
}

static const uint8_t s_minimal[] = {NOTHING, LEFT, UP, RIGHT, DOWN};
#define GAME    asterix
#define TITLE   "Asterix"
#define SUMMARY "take the gold that comes by, and stay away from all else"
#include "collector/envs/minatar/table.h"
