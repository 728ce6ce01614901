/*  The machine of tasks and jobs: its table, line by line, and a simulation of random histories that have to keep its promises. */
#include <string.h>
#include "../test.h"
#include "tests/draws.h"
#include "task/states.h"

enum { JOBS_MAX = 40 };

typedef struct {
    task_states_t task;
    task_job_t jobs[JOBS_MAX];
} one_t;

static void s_new(one_t *out, size_t count, uint32_t testers, uint32_t retries)
{
    *out = (one_t){.task = {.testers = testers, .pass = TASK_TEST_PASS, .retries = retries, .count = count}};
    out->task.jobs = out->jobs;
    for (size_t i = 0; i < count; i++)
        out->jobs[i].id = (int64_t)i + 1;
}

static size_t s_in(const one_t *one, job_state_t state)
{
    size_t count = 0;
    for (size_t i = 0; i < one->task.count; i++)
        count += one->jobs[i].state == state;
    return count;
}

static void s_end(one_t *one, size_t at, bool well)
{
    states_started(&one->task, at);
    states_ended(&one->task, at, well);
    states_schedule(&one->task);
}

static void s_words(void **state)
{
    (void)state;
    for (unsigned i = 0; i < JOB_STATES; i++) {
        job_state_t back;
        assert_true(job_state_of(job_state_name((job_state_t)i), &back) && back == (job_state_t)i);
    }
    for (unsigned i = 0; i < TASK_STATES; i++) {
        task_state_t back;
        assert_true(task_state_of(task_state_name((task_state_t)i), &back) && back == (task_state_t)i);
    }
    job_state_t job = JOB_DONE;
    assert_false(job_state_of("holded", &job));
}

static void s_testers_first(void **state)
{
    (void)state;
    one_t one;
    s_new(&one, 12, 10, 0);
    states_schedule(&one.task);
    assert_int_equal(one.task.state, TASK_TESTING);
    assert_int_equal(s_in(&one, JOB_ASSIGNED), 10);
    for (size_t i = 0; i < 9; i++)
        s_end(&one, i, i >= 2);                     /* two fail: eight of ten is enough */
    assert_int_equal(one.task.state, TASK_TESTING); /* until the last has ended */
    assert_int_equal(s_in(&one, JOB_REGISTERED), 2);
    s_end(&one, 9, true);
    assert_int_equal(one.task.state, TASK_RUNNING);
    s_end(&one, 10, true);
    assert_int_equal(one.task.state, TASK_RUNNING);
    s_end(&one, 11, true);
    assert_int_equal(one.task.state, TASK_FINALIZED);
    assert_ok(states_retry(&one.task));
    assert_int_equal(one.task.state, TASK_RUNNING);
    assert_int_equal(s_in(&one, JOB_ASSIGNED), 2);
    s_end(&one, 0, true);
    s_end(&one, 1, true);
    assert_int_equal(one.task.state, TASK_DONE);
}

static void s_testers_fail(void **state)
{
    (void)state;
    one_t one;
    s_new(&one, 12, 10, 0);
    states_schedule(&one.task);
    for (size_t i = 0; i < 10; i++)
        s_end(&one, i, i >= 3);
    assert_int_equal(one.task.state, TASK_BROKEN);
    assert_int_equal(s_in(&one, JOB_DONE), 7);
    assert_int_equal(s_in(&one, JOB_BROKEN), 5);
    assert_int_equal(states_kill(&one.task), TT_INVALID);
    assert_ok(states_retry(&one.task));
    states_schedule(&one.task);
    assert_int_equal(one.task.state, TASK_TESTING);
    assert_int_equal(s_in(&one, JOB_ASSIGNED), 3); /* what is done is not done again */
    s_new(&one, 3, 10, 0);                         /* fewer jobs than testers */
    states_schedule(&one.task);
    for (size_t i = 0; i < 3; i++)
        s_end(&one, i, true);
    assert_int_equal(one.task.state, TASK_DONE);
    assert_ok(states_retry(&one.task));
    assert_int_equal(s_in(&one, JOB_REGISTERED), 3);
    s_new(&one, 5, 1, 0); /* as in the code that the documents describe: one tester */
    states_schedule(&one.task);
    s_end(&one, 0, false);
    assert_int_equal(one.task.state, TASK_BROKEN);
}

static void s_retries(void **state)
{
    (void)state;
    one_t one;
    s_new(&one, 1, 1, 1);
    one.task.bypass = true;
    states_schedule(&one.task);
    s_end(&one, 0, false);
    assert_int_equal(one.jobs[0].state, JOB_ASSIGNED); /* by itself, once */
    for (int by_hand = 0; by_hand < 2; by_hand++) {
        s_end(&one, 0, false);
        assert_int_equal(one.task.state, TASK_FINALIZED);
        assert_ok(states_retry(&one.task));
    }
    s_end(&one, 0, false);
    assert_int_equal(states_retry(&one.task), TT_INVALID); /* three times in all */
    assert_int_equal(one.task.state, TASK_FINALIZED);
    s_new(&one, 1, 1, 3);
    one.task.bypass = true;
    states_schedule(&one.task);
    for (int lost = 0; lost < 20; lost++) { /* no fault of the job's */
        states_started(&one.task, 0);
        states_lost(&one.task, 0);
    }
    assert_int_equal(one.jobs[0].tried, 0);
}

static void s_kill(void **state)
{
    (void)state;
    one_t one;
    s_new(&one, 4, 2, 3);
    states_schedule(&one.task);
    states_started(&one.task, 0);
    states_started(&one.task, 1);
    assert_ok(states_kill(&one.task));
    states_schedule(&one.task);
    assert_int_equal(one.task.state, TASK_KILL);
    assert_int_equal(s_in(&one, JOB_KILLED), 2);
    assert_int_equal(states_retry(&one.task), TT_INVALID);
    states_ended(&one.task, 0, false);
    states_ended(&one.task, 1, true); /* it was faster */
    states_schedule(&one.task);
    assert_int_equal(one.task.state, TASK_KILLED);
    assert_int_equal(s_in(&one, JOB_DONE), 1);
    assert_ok(states_retry(&one.task));
    states_schedule(&one.task);
    s_end(&one, 0, true);
    assert_int_equal(one.task.state, TASK_RUNNING);
    for (size_t i = 2; i < 4; i++)
        states_started(&one.task, i);
    assert_ok(states_kill(&one.task));
    states_broke(&one.task, 2); /* killed, however it came to its end */
    states_lost(&one.task, 3);
    states_schedule(&one.task);
    assert_int_equal(s_in(&one, JOB_KILLED), 2);
    assert_int_equal(one.task.state, TASK_KILLED);
}

static void s_removing(void **state)
{
    (void)state;
    one_t one;
    s_new(&one, 2, 1, 0);
    one.jobs[0].state = JOB_FAILED;
    one.jobs[1].state = JOB_BROKEN;
    one.task.state = TASK_REMOVING;
    assert_true(task_state_ended(one.task.state));
    assert_int_equal(states_retry(&one.task), TT_INVALID);
    assert_int_equal(states_kill(&one.task), TT_INVALID);
    states_schedule(&one.task);
    assert_int_equal(one.task.state, TASK_REMOVING);
    assert_int_equal(s_in(&one, JOB_FAILED) + s_in(&one, JOB_BROKEN), 2);
}

static void s_priorities(void **state)
{
    (void)state;
    one_t first, second;
    s_new(&first, 3, 1, 0);
    s_new(&second, 2, 2, 0);
    first.task.bypass = true;
    states_schedule(&first.task);
    states_schedule(&second.task);
    states_started(&first.task, 0);
    first.jobs[0].priority = 7;
    task_states_t *tasks[] = {&first.task, &second.task};
    states_priorities(tasks, 2);
    assert_true(first.jobs[0].priority == 7); /* of who runs it is what it was */
    assert_true(first.jobs[1].priority == TASK_PRIORITY_MAX - 6.0 / 5);
    assert_true(first.jobs[2].priority == TASK_PRIORITY_MAX - 7.0 / 5);
    assert_true(second.jobs[0].priority == TASK_PRIORITY_MAX && second.jobs[1].priority == TASK_PRIORITY_MAX);
    states_ended(&first.task, 0, true);
    states_priorities(tasks, 2);
    assert_true(first.jobs[0].priority == -1);
}

/* ---- random histories ---------------------------------------------------------------------------------------------- */

typedef struct {
    one_t one;
    uint32_t failures[JOBS_MAX]; /* since the job was registered last */
    draws_t draws;
} history_t;

static uint32_t s_draw(history_t *self, uint32_t below)
{
    return draws_below(&self->draws, below);
}

static void s_promises(const history_t *self)
{
    const one_t *one = &self->one;
    const size_t count = one->task.count, testers = one->task.testers < count ? one->task.testers : count;
    const size_t busy = s_in(one, JOB_RUNNING) + s_in(one, JOB_KILL);
    for (size_t i = 0; i < count; i++) {
        assert_true(one->jobs[i].tried <= TASK_RETRIES_MAX);
        assert_true(self->failures[i] <= 1 + TASK_RETRIES_MAX);
        if (one->task.state == TASK_TESTING && i >= testers)
            assert_true(one->jobs[i].state == JOB_REGISTERED || job_state_ended(one->jobs[i].state));
    }
    if (task_state_ended(one->task.state))
        assert_int_equal(busy + s_in(one, JOB_ASSIGNED) + s_in(one, JOB_REGISTERED), 0);
    else if (one->task.state != TASK_KILL)
        assert_true(busy + s_in(one, JOB_ASSIGNED) > 0); /* something goes on, or it would hang */
    if (one->task.state == TASK_DONE)
        assert_int_equal(s_in(one, JOB_DONE), count);
    if (one->task.state == TASK_FINALIZED)
        assert_true(s_in(one, JOB_DONE) < count);
    if (one->task.state == TASK_KILL)
        assert_true(s_in(one, JOB_KILL) > 0);
    else
        assert_int_equal(s_in(one, JOB_KILL), 0);
}

static size_t s_some(history_t *self, job_state_t state)
{
    const size_t count = self->one.task.count, from = s_draw(self, (uint32_t)count);
    for (size_t i = 0; i < count; i++)
        if (self->one.jobs[(from + i) % count].state == state)
            return (from + i) % count;
    return count;
}

static void s_end_one(history_t *self, bool may_fail)
{
    const job_state_t from = s_draw(self, 2) || s_in(&self->one, JOB_KILL) == 0 ? JOB_RUNNING : JOB_KILL;
    const size_t at = s_some(self, from);
    if (at == self->one.task.count)
        return;
    const uint32_t what = may_fail ? s_draw(self, 8) : 7;
    if (what == 0)
        states_lost(&self->one.task, at);
    else if (what == 1)
        states_broke(&self->one.task, at);
    else
        states_ended(&self->one.task, at, what > 3);
    if (what >= 1 && what <= 3 && from == JOB_RUNNING)
        self->failures[at]++;
}

static void s_retry_some(history_t *self)
{
    task_job_t before[JOBS_MAX];
    for (size_t i = 0; i < self->one.task.count; i++)
        before[i] = self->one.jobs[i];
    if (states_retry(&self->one.task) != TT_OK)
        return;
    for (size_t i = 0; i < self->one.task.count; i++)
        if (self->one.jobs[i].tried == 0 && before[i].state != self->one.jobs[i].state)
            self->failures[i] = 0;
}

static void s_act(history_t *self)
{
    const uint32_t what = s_draw(self, 20);
    const size_t next = s_some(self, JOB_ASSIGNED);
    if (what < 9 && next < self->one.task.count)
        states_started(&self->one.task, next);
    else if (what < 18)
        s_end_one(self, true);
    else if (what == 18)
        s_retry_some(self);
    else if (s_draw(self, 4) == 0)
        (void)states_kill(&self->one.task);
    states_schedule(&self->one.task);
}

/*  Left alone, it comes to an end. */
static void s_let_end(history_t *self)
{
    for (int round = 0; round < 100 * JOBS_MAX && !task_state_ended(self->one.task.state); round++) {
        const size_t next = s_some(self, JOB_ASSIGNED);
        if (next < self->one.task.count)
            states_started(&self->one.task, next);
        s_end_one(self, false);
        states_schedule(&self->one.task);
        s_promises(self);
    }
    assert_true(task_state_ended(self->one.task.state));
}

static void s_histories(void **state)
{
    (void)state;
    size_t ends[TASK_STATES] = {0};
    for (uint64_t seed = 1; seed <= 6000; seed++) {
        history_t self = {.draws.seed = seed};
        s_new(&self.one, 1 + s_draw(&self, JOBS_MAX), 1 + s_draw(&self, 12), s_draw(&self, TASK_RETRIES_MAX + 1));
        self.one.task.pass = 1 + s_draw(&self, 100);
        self.one.task.bypass = s_draw(&self, 4) == 0;
        states_schedule(&self.one.task);
        for (int step = 0; step < 200; step++) {
            s_act(&self);
            task_states_t again = self.one.task;
            task_job_t jobs[JOBS_MAX];
            memcpy(jobs, self.one.jobs, sizeof jobs);
            states_schedule(&self.one.task); /* twice is once */
            assert_int_equal(again.state, self.one.task.state);
            assert_memory_equal(jobs, self.one.jobs, sizeof jobs);
            s_promises(&self);
        }
        s_let_end(&self);
        ends[self.one.task.state]++;
    }
    for (task_state_t end = TASK_DONE; end <= TASK_KILLED; end++)
        assert_true(ends[end] > 50); /* the histories reach all of them */
}

/*  By its tries and by the end that was written, whoever looks; ends are whole seconds, so one more is waited for. */
static void s_back_off(void **state)
{
    (void)state;
    static const struct {
        uint32_t tried;
        int64_t ended, now, left;
    } all[] = {{0, 100, 100, 0}, {1, 0, 100, 0}, {1, 100, 100, 2}, {1, 100, 101, 1}, {1, 100, 102, 0}, {2, 100, 100, 3},
        {3, 100, 104, 1}, {3, 100, 105, 0}, {50, 100, 100, 61}, {3, 100, 100000, 0}, {3, 100, 99, 0}};
    for (size_t i = 0; i < TT_COUNT(all); i++) {
        const task_job_t job = {.state = JOB_ASSIGNED, .tried = all[i].tried};
        assert_int_equal(states_wait_s(&job, all[i].ended, all[i].now), all[i].left);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(s_words),
        cmocka_unit_test(s_testers_first),
        cmocka_unit_test(s_testers_fail),
        cmocka_unit_test(s_retries),
        cmocka_unit_test(s_back_off),
        cmocka_unit_test(s_kill),
        cmocka_unit_test(s_removing),
        cmocka_unit_test(s_priorities),
        cmocka_unit_test(s_histories),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
