/*  catch - a ball falls, a paddle goes left, stays or goes right: 1 for a ball that is caught, -1 for one that is missed. It has to
 *  be seen where both are. Three pictures of the same game, each a shared object of its own, and one with another action:
 *
 *      catch         bool[10, 10, 2]: a channel for the ball, one for the paddle
 *      catch_frames  uint8[84, 84]: a ball and a paddle of 8 pixels, white on black
 *      catch_parts   {paddle: float32[10], picture: bool[1, 10, 10]}: the picture shows the ball alone, channels
 *                    first; the paddle is where a 1 is
 *      catch_slide   as catch; the action is float32[1] from -1 to 1, which is as far as the paddle goes: two places
 *
 *  With CATCH_QUICK=n in its environment a process plays n steps as quickly as it can, and each one after these takes half a
 *  millisecond: for runs that somebody looks at until he has seen something, and that are to have trained little by then. */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include "collector/env.h"

enum { SIDE = 10, PIXELS = 84, CELL = 8 };

typedef struct {
    int32_t row, ball, paddle;
} catch_t;

#if defined CATCH_FRAMES
static const double s_low[] = {0}, s_high[] = {255};
static void draw(const catch_t *self, tt_env_out_t *out)
{
    uint8_t *frame = out->obs[0];
    memset(frame, 0, PIXELS * PIXELS);
    for (int y = 0; y < CELL; y++) {
        memset(frame + (self->row * CELL + y) * PIXELS + self->ball * CELL, 255, CELL);
        memset(frame + ((SIDE - 1) * CELL + y) * PIXELS + self->paddle * CELL, 255, CELL);
    }
}
#elif defined CATCH_PARTS
static const double s_one[] = {1}, s_none[] = {0};
static const tt_space_t s_parts[] = {{.key = "paddle",
                                         .kind = TT_SPACE_BOX,
                                         .dtype = TT_F32,
                                         .rank = 1,
                                         .shape = {SIDE},
                                         .low = s_none,
                                         .high = s_one,
                                         .same_bounds = true},
    {.key = "picture", .kind = TT_SPACE_BOX, .dtype = TT_BOOL, .rank = 3, .shape = {1, SIDE, SIDE}}};
static void draw(const catch_t *self, tt_env_out_t *out)
{
    uint8_t *picture = out->obs[1];
    float *paddle = out->obs[0];
    for (int i = 0; i < SIDE; i++)
        paddle[i] = i == self->paddle;
    memset(picture, 0, SIDE * SIDE);
    picture[self->row * SIDE + self->ball] = 1;
}
#else
static void draw(const catch_t *self, tt_env_out_t *out)
{
    uint8_t *picture = out->obs[0];
    memset(picture, 0, SIDE * SIDE * 2);
    picture[(self->row * SIDE + self->ball) * 2] = 1;
    picture[((SIDE - 1) * SIDE + self->paddle) * 2 + 1] = 1;
}
#endif

#if defined CATCH_SLIDE
static const double s_left[] = {-1}, s_right[] = {1};
static int32_t moved(const void *const *action)
{
    return (int32_t)lrintf(2 * *(const float *)action[0]);
}
#else
static int32_t moved(const void *const *action)
{
    return *(const int32_t *)action[0] - 1;
}
#endif

static void reset(void *state, tt_env_rng_t *rng, tt_env_out_t *out)
{
    catch_t *self = state;
    *self = (catch_t){.ball = (int32_t)tt_env_uniform(rng, 0, SIDE), .paddle = (int32_t)tt_env_uniform(rng, 0, SIDE)};
    draw(self, out);
}

static void pace(void)
{
    static atomic_long played;
    const char *quick = getenv("CATCH_QUICK");
    if (quick && atomic_fetch_add(&played, 1) >= strtol(quick, NULL, 10))
        nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
}

static void step(void *state, const void *const *action, tt_env_rng_t *rng, tt_env_out_t *out)
{
    catch_t *self = state;
    (void)rng;
    pace();
    self->paddle += moved(action);
    self->paddle = self->paddle < 0 ? 0 : self->paddle < SIDE ? self->paddle : SIDE - 1;
    self->row++;
    out->terminated = self->row == SIDE - 1;
    out->reward = !out->terminated ? 0 : self->paddle == self->ball ? 1 : -1;
    draw(self, out);
}

const tt_env_ops_t *tutti_env(void);

const tt_env_ops_t *tutti_env(void)
{
#if !defined CATCH_SLIDE
    static const int64_t three[] = {3};
#endif
    static const tt_env_ops_t ops = {
        .abi = TT_ENV_ABI,
        .id = "Catch-v0",
        .summary = "a ball falls, a paddle catches it",
#if defined CATCH_FRAMES
        .obs = {.kind = TT_SPACE_BOX,
            .dtype = TT_U8,
            .rank = 2,
            .shape = {PIXELS, PIXELS},
            .low = s_low,
            .high = s_high,
            .same_bounds = true},
#elif defined CATCH_PARTS
        .obs = {.kind = TT_SPACE_DICT, .part = s_parts, .parts = 2},
#else
        .obs = {.kind = TT_SPACE_BOX, .dtype = TT_BOOL, .rank = 3, .shape = {SIDE, SIDE, 2}},
#endif
#if defined CATCH_SLIDE
        .action = {.kind = TT_SPACE_BOX,
            .dtype = TT_F32,
            .rank = 1,
            .shape = {1},
            .low = s_left,
            .high = s_right,
            .same_bounds = true},
#else
        .action = TT_CHOICES(three),
#endif
        .reward_threshold = 0.9,
        .state_size = sizeof(catch_t),
        .reset = reset,
        .step = step
    };
    return &ops;
}
