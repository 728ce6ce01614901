/*  freeway - MinAtar/Freeway: a chicken crosses eight lanes of cars, again and again, for 2500 steps. */
#include "collector/envs/minatar/minatar.h"

enum { CHICKEN, CAR, SPEED_1, CHANNELS = SPEED_1 + 5 }; /* SPEED_1: the trail of a car that moves every other step */
enum { CARS = 8, COLUMN = 4, START = SIDE - 1, REST = 3, TIME = 2500, SLOWEST = 5 };

/*  The car of lane i is in row i + 1. */
typedef struct {
    int8_t x;
    int8_t right;       /* -1 or 1                                */
    uint8_t pace, wait; /* steps between moves; until its next one */
} car_t;

typedef struct {
    car_t car[CARS];
    int16_t time;
    int8_t y;
    uint8_t rest; /* steps until the chicken may move again */
} game_t;

/*  New paces for all cars, then new directions; they stay where they are. */
static void s_shuffle(game_t *self, tt_env_rng_t *rng)
{
    for (int i = 0; i < CARS; i++)
        self->car[i].pace = self->car[i].wait = (uint8_t)(1 + minatar_below(rng, SLOWEST));
    for (int i = 0; i < CARS; i++)
        self->car[i].right = minatar_chance(rng, MINATAR_HALF) ? -1 : 1;
}

static void s_begin(game_t *self, tt_env_rng_t *rng)
{
    s_shuffle(self, rng);
    self->y = START;
    self->rest = REST;
    self->time = TIME;
}

/*  The chicken walks, where it has rested; at the top it begins again. True: it got there. */
static inline bool s_walk(game_t *self, minatar_action_t action)
{
    if (!self->rest && (action == UP || action == DOWN)) {
        self->rest = REST;
        self->y = (int8_t)minatar_moved(self->y, action == UP ? -1 : 1, 0, START);
    }
    if (self->y > 0)
        return false;
    self->y = START;
    return true;
}

static inline void s_hit(game_t *self, int lane)
{
    if (self->car[lane].x == COLUMN && self->y == lane + 1)
        self->y = START;
}

static inline void s_drive(game_t *self, int lane)
{
    car_t *car = &self->car[lane];
    s_hit(self, lane);
    if (car->wait) {
        car->wait--;
        return;
    }
    car->wait = car->pace;
    car->x = (int8_t)((car->x + car->right + SIDE) % SIDE);
    s_hit(self, lane);
}

static inline minatar_end_t s_play(game_t *self, minatar_action_t action, bool ramping, tt_env_rng_t *rng)
{
    (void)ramping;
    minatar_end_t end = {0};
    if (s_walk(self, action)) {
        end.reward = 1;
        s_shuffle(self, rng);
    }
    for (int i = 0; i < CARS; i++)
        s_drive(self, i);
    if (self->rest > 0)
        self->rest--;
    end.terminated = --self->time < 0;
    return end;
}

static inline void s_draw(const game_t *self, uint8_t *obs)
{
    minatar_mark(obs, CHANNELS, COLUMN, self->y, CHICKEN);
    for (int i = 0; i < CARS; i++) {
        const car_t *car = &self->car[i];
        minatar_mark(obs, CHANNELS, car->x, i + 1, CAR);
        minatar_mark(obs, CHANNELS, (car->x - car->right + SIDE) % SIDE, i + 1, SPEED_1 + car->pace - 1);
    }
}

static bool s_car_sound(const car_t *car)
{
    return minatar_on_board(car->x, 0) && (car->right == 1 || car->right == -1) && car->pace >= 1 &&
           car->pace <= SLOWEST && car->wait <= SLOWEST;
}

static bool s_sound(const game_t *self)
{
    bool sound = self->y >= 1 && self->y <= START && self->rest <= REST && self->time >= 0 && self->time <= TIME;
    for (int i = 0; i < CARS; i++)
        sound = sound && s_car_sound(&self->car[i]);
    return sound;
}

static const uint8_t s_minimal[] = {NOTHING, UP, DOWN};
#define GAME    freeway
#define TITLE   "Freeway"
#define SUMMARY "cross a road of eight lanes as often as 2500 steps allow"
#include "collector/envs/minatar/table.h"
