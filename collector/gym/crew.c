#include "collector/gym/crew.h"
#include <sched.h>
#include <stdlib.h>
#include "collector/guard.h"
#include "common/base/mem.h"

enum { STEP_S = 30 };

static int64_t s_now_ms(const gym_crew_t *self)
{
    return tt_now_ms(tt_clock_or_real(self->clock));
}

/*  As many as this process may run on. */
static uint32_t s_cores(void)
{
    cpu_set_t set;
    const int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return count < 1 ? 1 : (uint32_t)count;
}

uint32_t gym_crew_size(uint32_t wanted, uint32_t slots)
{
    const uint32_t most = wanted ? wanted : s_cores();
    return most < slots ? most : slots;
}

/*  Slots of the first half. There are two where each worker has some in both, so that it plays one while we act for the other, and only where a
 *  core is left for that: else the acting takes a worker's time wherever it is done, and one that answers half as often is woken for half as
 *  often. */
static uint32_t s_half(uint32_t slots, uint32_t playing)
{
    return playing < s_cores() && slots / 2 >= playing ? slots / 2 : 0;
}

/*  Behind the last slot of the workers before i, of so many. */
static uint32_t s_first(uint32_t slots, uint32_t i, uint32_t playing)
{
    return (uint32_t)((uint64_t)slots * i / playing);
}

/*  Worker i's of one half. */
static gym_share_t s_share(uint32_t slots, uint32_t i, uint32_t playing, uint32_t which)
{
    const uint32_t half = s_half(slots, playing), from = which ? half : 0, all = which || !half ? slots - from : half;
    if (which && !half)
        return (gym_share_t){0};
    return (gym_share_t){from + s_first(all, i, playing), from + s_first(all, i + 1, playing)};
}

static uint32_t s_slots(gym_share_t share)
{
    return share.end - share.first;
}

/* ---- from range to range --------------------------------------------------------------------------------------------------- */

/*  In their order, so that each finds as many envs as it has slots for, or nearly. */
static void s_take_over(gym_crew_t *self, gym_crew_t *from)
{
    uint32_t *keep = tt_array0(from->hired, sizeof *keep);
    for (uint32_t i = 0; i < from->hired && i < self->playing; i++)
        keep[i] = s_slots(self->share[i][0]) + s_slots(self->share[i][1]);
    gym_worker_shed(from->worker, from->hired, keep);
    for (uint32_t i = 0; i < from->hired; i++)
        if (from->worker[i].pid)
            self->worker[self->hired++] = from->worker[i];
    from->hired = 0;
    free(keep);
}

void gym_crew_gather(gym_crew_t *self, uint32_t playing, uint32_t slots, gym_crew_t *from)
{
    self->playing = playing;
    self->room = from && from->hired > playing ? from->hired : playing;
    self->worker = tt_array0(self->room, sizeof *self->worker);
    self->half = s_half(slots, playing);
    self->share = tt_array0(playing, sizeof *self->share);
    for (uint32_t i = 0; i < playing; i++)
        for (uint32_t which = 0; which < 2; which++)
            self->share[i][which] = s_share(slots, i, playing, which);
    self->shares = self->half ? 2 * playing : playing;
    self->share_end = tt_array0(self->shares, sizeof *self->share_end);
    for (uint32_t k = 0; k < self->shares; k++)
        self->share_end[k] = self->share[k % playing][k / playing].end;
    self->since_ms = s_now_ms(self);
    if (from && from->hired)
        s_take_over(self, from);
}

void gym_crew_dismiss(gym_crew_t *self)
{
    if (self->hired <= self->playing || s_now_ms(self) - self->since_ms < guard_idle_ms())
        return;
    gym_worker_end(self->worker + self->playing, self->hired - self->playing);
    self->hired = self->playing;
}

void gym_crew_end(gym_crew_t *self)
{
    if (self->hired)
        gym_worker_end(self->worker, self->hired);
    free(self->worker);
    free(self->share);
    free(self->share_end);
    *self = (gym_crew_t){0};
}

/* ---- slots ------------------------------------------------------------------------------------------------------------------- */

static json_t *s_told(const gym_crew_t *self, uint32_t i, const gym_rows_t *rows, uint32_t slots, bool loads)
{
    const gym_share_t *share = self->share[i];
    json_t *out = json_copy(self->asked);
    json_object_set(out, "layout", rows->layout);
    json_object_set_new(out, "progress", json_integer((json_int_t)gym_rows_progress_at(rows, i)));
    json_object_set_new(out, "post", json_integer((json_int_t)gym_rows_post_at(rows, i)));
    json_object_set_new(out, "bell", json_integer((json_int_t)rows->bell));
    json_object_set_new(out, "slots", json_integer(slots));
    json_object_set_new(out, "halves",
        json_pack("[[i, i], [i, i]]", (int)share[0].first, (int)share[0].end, (int)share[1].first, (int)share[1].end));
    json_object_set_new(out, "lo", json_integer(self->worker[i].lo));
    json_object_set_new(out, "loads", json_boolean(loads));
    json_object_set_new(out, "spin_us", json_integer(self->playing <= s_cores() ? GYM_SPIN_US : 0));
    return out;
}

static tt_status_t s_begin(gym_crew_t *self, uint32_t i, const gym_rows_t *rows, uint32_t slots, bool loads)
{
    gym_worker_t *worker = &self->worker[i];
    const bool fresh = i >= self->hired;
    if (fresh) {
        self->hired++;
        TT_TRY(gym_worker_start(worker, self->python, self->package, rows->fd));
    }
    json_t *told = s_told(self, i, rows, slots, loads);
    if (fresh)
        gym_worker_tell(worker, told);
    else
        gym_worker_move(worker, told, rows->fd);
    json_decref(told);
    return TT_OK;
}

tt_status_t gym_crew_share(gym_crew_t *self, const gym_rows_t *rows, uint32_t lo, uint32_t slots, bool loads)
{
    for (uint32_t i = 0; i < self->hired; i++)
        self->worker[i].progress = gym_rows_progress(rows, i); /* where it was before is no memory any more */
    for (uint32_t i = 0; i < self->playing; i++) {
        gym_worker_t *worker = &self->worker[i];
        worker->id = self->id;
        worker->clock = self->clock;
        worker->number = (int)i;
        worker->lo = lo;
        worker->first = self->share[i][0].first;
        worker->progress = gym_rows_progress(rows, i);
        gym_turn_begin(&worker->turn, rows, i, (uint32_t[2]){s_slots(self->share[i][0]), s_slots(self->share[i][1])});
        worker->start_s = guard_seconds("TT_ENV_START_S", GYM_START_S);
        worker->step_s = guard_seconds("TT_ENV_STEP_S", STEP_S);
        TT_TRY(s_begin(self, i, rows, slots, loads));
    }
    return TT_OK;
}
