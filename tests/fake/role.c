#include "tests/fake/role.h"
#include <unistd.h>

static void *s_thread(void *ctx)
{
    fake_role_t *self = ctx;
    tt_location_t location;
    const tt_location_args_t args = {.run = self->run->dir, .clock = &self->clock};
    self->status = tt_location_take(&location, self->member->role, 0, &args);
    if (self->status == TT_OK)
        self->status = self->fn(&location, self->signals);
    self->ended = true;
    return NULL;
}

void fake_role_start(fake_role_t *self, fake_coordinator_t *run, tt_peer_role_t role, fake_role_fn fn, int signals)
{
    *self = (fake_role_t){.run = run, .fn = fn, .signals = signals, .clock = tt_clock_fake(1000000000000)};
    self->member = fake_add(run, role, 0, getpid());
    run->hands = &self->clock;
    assert_int_equal(pthread_create(&self->thread, NULL, s_thread, self), 0);
}

void fake_role_stop(fake_role_t *self)
{
    const tt_msg_STOP_t stop = TT_MSG(STOP, .reason = (char *)(uintptr_t) "the test is over");
    fake_until(self->run, self->ended || fake_try_send(self->run, self->member, &stop), "a connection");
    fake_until(self->run, self->ended, "the end of a role that was told to stop");
    pthread_join(self->thread, NULL);
    self->run->hands = NULL;
}

/*  Exactly so much: the clock stands while its heartbeats, which are due by that, are waited for. */
void fake_role_pass(fake_role_t *self, int64_t ms)
{
    const uint64_t beats = self->member->beats;
    TT_CHECK(ms >= self->run->beat_ms);
    self->run->hands = NULL;
    tt_clock_turn(&self->clock, ms * 1000000);
    fake_until(self->run, self->member->beats > beats, "a heartbeat"); /* which may have been under way */
    tt_clock_turn(&self->clock, (int64_t)self->run->beat_ms * 1000000);
    fake_until(self->run, self->member->beats > beats + 1, "a heartbeat");
    self->run->hands = &self->clock;
}
