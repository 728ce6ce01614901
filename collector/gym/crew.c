#include "collector/gym/crew.h"
#include <sched.h>
#include <stdlib.h>
#include "collector/guard.h"
#include "common/base/clock.h"
#include "common/base/mem.h"

enum { STEP_S = 30, SPIN_US = 300 };

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

/*  Behind the last slot of the workers before i. */
static uint32_t s_first(uint32_t slots, uint32_t i, uint32_t playing)
{
    return (uint32_t)((uint64_t)slots * i / playing);
}

/* ---- from range to range --------------------------------------------------------------------------------------------------- */

/*  In their order, so that each finds as many envs as it has slots for, or nearly. */
static void s_take_over(gym_crew_t *self, uint32_t slots, gym_crew_t *from)
{
    uint32_t *keep = tt_array0(from->hired, sizeof *keep);
    for (uint32_t i = 0; i < from->hired && i < self->playing; i++)
        keep[i] = s_first(slots, i + 1, self->playing) - s_first(slots, i, self->playing);
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
    self->end = tt_array0(playing, sizeof *self->end);
    self->since_ms = tt_now_ms(tt_clock_real());
    if (from && from->hired)
        s_take_over(self, slots, from);
}

void gym_crew_dismiss(gym_crew_t *self)
{
    if (self->hired <= self->playing || tt_now_ms(tt_clock_real()) - self->since_ms < guard_idle_ms())
        return;
    gym_worker_end(self->worker + self->playing, self->hired - self->playing);
    self->hired = self->playing;
}

void gym_crew_end(gym_crew_t *self)
{
    if (self->hired)
        gym_worker_end(self->worker, self->hired);
    free(self->worker);
    free(self->end);
    *self = (gym_crew_t){0};
}

/* ---- slots ------------------------------------------------------------------------------------------------------------------- */

static json_t *s_share_of(const gym_crew_t *self, uint32_t i, const gym_rows_t *rows, bool loads)
{
    const gym_worker_t *worker = &self->worker[i];
    json_t *out = json_copy(self->asked);
    json_object_set(out, "layout", rows->layout);
    json_object_set_new(out, "progress", json_integer((json_int_t)gym_rows_progress_at(rows, i)));
    json_object_set_new(out, "first", json_integer(worker->first));
    json_object_set_new(out, "last", json_integer(self->end[i]));
    json_object_set_new(out, "lo", json_integer(worker->lo));
    json_object_set_new(out, "loads", json_boolean(loads));
    json_object_set_new(out, "spin_us", json_integer(self->playing <= s_cores() ? SPIN_US : 0));
    return out;
}

static tt_status_t s_begin(gym_crew_t *self, uint32_t i, const gym_rows_t *rows, bool loads)
{
    gym_worker_t *worker = &self->worker[i];
    const bool fresh = i >= self->hired;
    if (fresh) {
        self->hired++;
        TT_TRY(gym_worker_start(worker, self->python, self->package, rows->fd));
    }
    json_t *share = s_share_of(self, i, rows, loads);
    const tt_status_t status = fresh ? gym_worker_tell(worker, share) : gym_worker_move(worker, share, rows->fd);
    json_decref(share);
    return status;
}

tt_status_t gym_crew_share(gym_crew_t *self, const gym_rows_t *rows, uint32_t lo, uint32_t slots, bool loads)
{
    for (uint32_t i = 0; i < self->hired; i++)
        self->worker[i].progress = gym_rows_progress(rows, i); /* where it was before is no memory any more */
    for (uint32_t i = 0; i < self->playing; i++) {
        gym_worker_t *worker = &self->worker[i];
        worker->id = self->id;
        worker->number = (int)i;
        worker->lo = lo;
        worker->first = s_first(slots, i, self->playing);
        worker->progress = gym_rows_progress(rows, i);
        worker->start_s = guard_seconds("TT_ENV_START_S", GYM_START_S);
        worker->step_s = guard_seconds("TT_ENV_STEP_S", STEP_S);
        self->end[i] = s_first(slots, i + 1, self->playing);
        TT_TRY(s_begin(self, i, rows, loads));
    }
    return TT_OK;
}
