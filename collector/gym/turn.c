#include "collector/gym/turn.h"
#include "common/base/clock.h"
#include "common/base/status.h"

/*  Whoever answers hands its core to us if we wait on that; else the others do so between two steps of theirs. A step may last as long as it
 *  costs to wake somebody on another core, some 40 us where that is virtual, and four times that if only a part of a step is waited for, and
 *  only by whom we do not share a core with. */
enum { BRISK_NS = 100000 };

void gym_turn_begin(gym_turn_t *self, const gym_rows_t *rows, uint32_t worker, const uint32_t slots[2])
{
    *self =
        (gym_turn_t){.post = gym_rows_post(rows, worker), .bell = gym_rows_bell(rows), .slots = {slots[0], slots[1]}};
}

bool gym_turn_ask(gym_turn_t *self, uint32_t half)
{
    TT_CHECK(!self->plays[half]);
    self->plays[half] = true;
    self->since_ns[half] = tt_now_ns(tt_clock_real());
    atomic_store(&self->post->asked[half], ++self->asked[half]);
    return atomic_exchange(&self->post->worker_sleeps, 0) != 0;
}

bool gym_turn_plays(const gym_turn_t *self)
{
    return self->plays[0] || self->plays[1];
}

static bool s_is_over(const gym_turn_t *self, uint32_t half)
{
    return self->plays[half] && atomic_load(&self->post->done[half]) == self->asked[half];
}

bool gym_turn_is_over(const gym_turn_t *self)
{
    return s_is_over(self, 0) || s_is_over(self, 1);
}

bool gym_turn_take(gym_turn_t *self)
{
    const uint32_t next = !self->came; /* in turns, where both are over */
    const uint32_t half = s_is_over(self, next) ? next : !next;
    if (!s_is_over(self, half))
        return false;
    self->plays[half] = false;
    self->came = half;
    self->step_ns = (tt_now_ns(tt_clock_real()) - self->since_ns[half]) / (self->slots[half] ? self->slots[half] : 1);
    return true;
}

bool gym_turn_is_brisk(const gym_turn_t *self)
{
    return self->step_ns > 0 && self->step_ns < BRISK_NS;
}

void gym_turn_look(gym_bell_t *bell)
{
    atomic_store(&bell->come, 0);
}

void gym_turn_sleep(gym_turn_t *self)
{
    if (gym_turn_plays(self))
        atomic_store(&self->post->collector_sleeps, 1);
}

void gym_turn_wake(gym_turn_t *self)
{
    if (gym_turn_plays(self))
        atomic_store(&self->post->collector_sleeps, 0);
}
