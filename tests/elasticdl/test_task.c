/*  A task's steps with a clock that is turned by hand: the order of members, deadlines, failures, deletion. */
#include <stdio.h>
#include <string.h>
#include "elasticdl/task.h"
#include "k8s/front/gang.h"
#include "tests/test.h"

static const edl_task_limits_t s_limits = {
    .ready_ms = 60000, .step_ms = 30000, .silent_ms = 20000, .end_ms = 100000, .poll_ms = 20};
static const char s_running[] = "{\"state\": \"running\"}";

typedef struct {
    edl_task_t *task;
    int64_t now;
} stage_t;

static void s_begin(stage_t *stage, int ps, int workers)
{
    elasticdl_request_t request = {.strategy = ps ? ELASTICDL_PARAMETER_SERVER : ELASTICDL_ALL_REDUCE,
        .ps = ps,
        .workers = workers,
        .name = "job"};
    stage->now = 1000;
    edl_task_new(&stage->task, 7, &request, &s_limits, stage->now);
}

static void s_wants(stage_t *stage, edl_task_act_t act, int member)
{
    int got = -1;
    assert_int_equal(edl_task_next(stage->task, &got, stage->now), act);
    if (act != EDL_TASK_NOTHING)
        assert_int_equal(got, member);
}

static void s_heard(stage_t *stage, int member, const char *text)
{
    edl_task_heard(stage->task, member, 200, text, stage->now);
}

/*  A member is made, found and answers. */
static void s_ready(stage_t *stage, int member)
{
    char address[ELASTICDL_ADDRESS];
    snprintf(address, sizeof address, "127.0.0.1:%d", 4000 + member);
    edl_task_made(stage->task, member, 100 + (uint64_t)member);
    s_wants(stage, EDL_TASK_FIND, member);
    edl_task_found(stage->task, member, "http://127.0.0.1:1", address, stage->now);
    s_wants(stage, EDL_TASK_ASK_READY, member);
    s_heard(stage, member, "{}");
}

/*  One parameter server and two workers, all running. */
static void s_run(stage_t *stage)
{
    s_begin(stage, 1, 2);
    s_wants(stage, EDL_TASK_MAKE, 0);
    s_ready(stage, 0);
    s_wants(stage, EDL_TASK_MAKE, 1);
    s_wants(stage, EDL_TASK_MAKE, 2);
    s_ready(stage, 1);
    s_ready(stage, 2);
    for (int i = 0; i < 3; i++)
        s_wants(stage, EDL_TASK_SEND_CONFIG, i);
    s_wants(stage, EDL_TASK_NOTHING, 0);
    for (int i = 2; i >= 0; i--)
        s_heard(stage, i, "OK");
    s_wants(stage, EDL_TASK_SEND_RUN, 0); /* the parameter server first, and no worker before it has answered */
    s_wants(stage, EDL_TASK_NOTHING, 0);
    s_heard(stage, 0, "OK");
    s_wants(stage, EDL_TASK_WATCH, 0);
    s_wants(stage, EDL_TASK_SEND_RUN, 1);
    s_wants(stage, EDL_TASK_SEND_RUN, 2);
    s_heard(stage, 2, "OK");
    s_heard(stage, 1, "OK");
    assert_string_equal(edl_task_state(stage->task), "starting");
    s_wants(stage, EDL_TASK_WATCH, 1);
    s_wants(stage, EDL_TASK_WATCH, 2);
    s_wants(stage, EDL_TASK_NOTHING, 0);
    assert_string_equal(edl_task_state(stage->task), "running");
}

/*  Everybody who is there is to be ended, and is gone. */
static void s_ends(stage_t *stage, const char *state, const char *reason)
{
    assert_string_equal(edl_task_state(stage->task), "ending");
    for (int i = 0; i < stage->task->count; i++)
        if (stage->task->members[i].present)
            s_wants(stage, EDL_TASK_END, i);
    s_wants(stage, EDL_TASK_NOTHING, 0);
    for (int i = 0; i < stage->task->count; i++)
        if (stage->task->members[i].present)
            edl_task_lost(stage->task, i, "killed", stage->now);
    s_wants(stage, EDL_TASK_NOTHING, 0);
    assert_string_equal(edl_task_state(stage->task), state);
    assert_string_equal(stage->task->reason, reason);
    assert_int_equal(edl_task_due_ms(stage->task, stage->now), -1);
    edl_task_destroy(&stage->task);
}

static void test_succeeds(void **state)
{
    (void)state;
    stage_t stage;
    s_run(&stage);
    s_heard(&stage, 0, s_running);
    s_wants(&stage, EDL_TASK_WATCH, 0);
    s_heard(&stage, 2, "{\"state\": \"ended\", \"exit_code\": 0, \"reason\": \"exit code 0\", \"log\": \"bye\\n\"}");
    s_wants(&stage, EDL_TASK_NOTHING, 0);
    s_heard(&stage, 1, "{\"state\": \"ended\", \"exit_code\": 0, \"reason\": \"exit code 0\"}");
    int member;
    assert_int_equal(edl_task_next(stage.task, &member, stage.now), EDL_TASK_END);
    assert_int_equal(member, 0);
    for (int i = 1; i < 3; i++)
        s_wants(&stage, EDL_TASK_END, i);
    for (int i = 0; i < 3; i++)
        stage.task->members[i].asked = false; /* so that s_ends sees them asked */
    s_ends(&stage, "succeeded", "");
}

/*  No member is placed before all are asked for, so none is waited for before; programs are started in the same order as ever. */
static void test_together(void **state)
{
    (void)state;
    stage_t stage;
    const gang_t *gang;
    s_begin(&stage, 1, 1);
    assert_int_equal(gang_pick(&gang, "volcano"), TT_OK);
    edl_task_together(stage.task, gang);
    s_wants(&stage, EDL_TASK_MAKE, 0);
    s_wants(&stage, EDL_TASK_MAKE, 1);
    json_t *status = edl_task_status(stage.task);
    assert_string_equal(json_string_value(json_object_get(status, "step")), "making members");
    json_decref(status);
    s_ready(&stage, 0);
    s_ready(&stage, 1);
    for (int i = 0; i < 2; i++)
        s_wants(&stage, EDL_TASK_SEND_CONFIG, i);
    for (int i = 0; i < 2; i++)
        s_heard(&stage, i, "OK");
    s_wants(&stage, EDL_TASK_SEND_RUN, 0);
    s_wants(&stage, EDL_TASK_NOTHING, 0);
    edl_task_destroy(&stage.task);
    s_begin(&stage, 1, 1);
    edl_task_together(stage.task, gang);
    s_wants(&stage, EDL_TASK_MAKE, 0);
    s_wants(&stage, EDL_TASK_MAKE, 1);
    edl_task_made(stage.task, 0, 100);
    edl_task_made(stage.task, 1, 101);
    s_wants(&stage, EDL_TASK_FIND, 0);
    s_wants(&stage, EDL_TASK_FIND, 1);
    edl_task_waits(stage.task, 0, "Unschedulable: 1/2 tasks in gang");
    edl_task_found(stage.task, 0, NULL, "", stage.now);
    edl_task_found(stage.task, 1, NULL, "", stage.now);
    stage.now += s_limits.ready_ms;
    int member;
    assert_int_equal(edl_task_next(stage.task, &member, stage.now), EDL_TASK_END);
    stage.task->members[member].asked = false;
    s_ends(&stage, "failed", "ps-0: making members for 60 s, and it is not done: Unschedulable: 1/2 tasks in gang");
}

static void s_queue(stage_t *stage, int workers)
{
    elasticdl_request_t request = {.workers = workers, .name = "job", .queue = "team", .deadline_s = 7200};
    stage->now = 1000;
    edl_task_new(&stage->task, 7, &request, &s_limits, stage->now);
}

static void s_status_is(const stage_t *stage, const char *state, const char *step, const char *reason)
{
    json_t *status = edl_task_status(stage->task);
    assert_string_equal(json_string_value(json_object_get(status, "state")), state);
    assert_string_equal(json_string_value(json_object_get(status, "step")), step);
    const char *said = json_string_value(json_object_get(status, "reason"));
    assert_string_equal(said ? said : "", reason);
    assert_string_equal(json_string_value(json_object_get(status, "queue")), "team");
    json_decref(status);
}

/*  However long it waits, it is not late; when it may, it begins as ever. */
static void test_waits_in_a_queue(void **state)
{
    (void)state;
    stage_t stage;
    s_queue(&stage, 1);
    s_wants(&stage, EDL_TASK_NOTHING, 0);
    edl_task_admit(stage.task, false, "couldn't assign flavors to pod set worker");
    stage.now += 60 * s_limits.ready_ms;
    s_wants(&stage, EDL_TASK_NOTHING, 0);
    s_status_is(&stage, "queued", "waiting in its queue", "couldn't assign flavors to pod set worker");
    assert_int_equal(edl_task_due_ms(stage.task, stage.now), 1000 + 7200000 - stage.now); /* its own deadline */
    edl_task_admit(stage.task, true, "");
    s_wants(&stage, EDL_TASK_MAKE, 0);
    s_status_is(&stage, "starting", "making workers", "");
    s_ready(&stage, 0);
    s_wants(&stage, EDL_TASK_SEND_CONFIG, 0);
    edl_task_destroy(&stage.task);
}

/*  Its deadline is its own also while it waits; and who deletes it waits for nobody. */
static void test_ends_in_a_queue(void **state)
{
    (void)state;
    stage_t stage;
    s_queue(&stage, 2);
    stage.now += 7200000;
    s_wants(&stage, EDL_TASK_NOTHING, 0);
    assert_string_equal(edl_task_state(stage.task), "failed");
    assert_string_equal(stage.task->reason, "it has not ended 7200 s after it was asked for, its deadline");
    edl_task_destroy(&stage.task);
    s_queue(&stage, 2);
    edl_task_delete(stage.task, stage.now);
    s_wants(&stage, EDL_TASK_NOTHING, 0);
    assert_string_equal(edl_task_state(stage.task), "deleted");
    edl_task_destroy(&stage.task);
}

static void s_run_one(stage_t *stage)
{
    s_wants(stage, EDL_TASK_MAKE, 0);
    s_ready(stage, 0);
    s_wants(stage, EDL_TASK_SEND_CONFIG, 0);
    s_heard(stage, 0, "OK");
    s_wants(stage, EDL_TASK_SEND_RUN, 0);
    s_heard(stage, 0, "OK");
    s_wants(stage, EDL_TASK_WATCH, 0);
}

/*  Its members go before it waits again, and then it begins anew, with members of which nothing is known; their end costs it nothing. */
static void test_is_taken_back(void **state)
{
    (void)state;
    stage_t stage;
    s_queue(&stage, 1);
    edl_task_admit(stage.task, true, "");
    for (int life = 0; life < 3; life++) {
        s_run_one(&stage);
        edl_task_admit(stage.task, false, "Preempted to accommodate a workload");
        s_wants(&stage, EDL_TASK_END, 0);
        s_wants(&stage, EDL_TASK_NOTHING, 0);
        s_status_is(&stage, "queued", "giving its places back", "Preempted to accommodate a workload");
        s_heard(&stage, 0,
            "{\"state\": \"ended\", \"exit_code\": 143, \"reason\": \"exit code 143\"}"); /* its leave is no failure */
        edl_task_admit(stage.task, true, ""); /* not while it has something of the one before */
        s_wants(&stage, EDL_TASK_NOTHING, 0);
        edl_task_admit(stage.task, life == 1, "");
        edl_task_lost(stage.task, 0, "its pod was ended", stage.now);
        if (life != 1) {
            s_wants(&stage, EDL_TASK_NOTHING, 0);
            s_status_is(&stage, "queued", "waiting in its queue", "");
            edl_task_admit(stage.task, true, "");
        }
    }
    s_run_one(&stage);
    edl_task_admit(stage.task, false, "late"); /* it has ended before that */
    s_heard(&stage, 0, "{\"state\": \"ended\", \"exit_code\": 0, \"reason\": \"exit code 0\"}");
    s_wants(&stage, EDL_TASK_END, 0);
    stage.task->members[0].asked = false;
    s_ends(&stage, "succeeded", "");
}

static void test_worker_fails(void **state)
{
    (void)state;
    stage_t stage;
    s_run(&stage);
    s_heard(&stage, 2,
        "{\"state\": \"ended\", \"exit_code\": 3, \"reason\": \"exit code 3\", \"log\": \"a\\nValueError: b\\n \\n\"}");
    assert_int_equal(stage.task->failed_code, 3);
    s_ends(&stage, "failed", "worker-1: exit code 3: ValueError: b");
}

static void test_parameter_server_ends(void **state)
{
    (void)state;
    stage_t stage;
    s_run(&stage); /* one that ends well is not missed; one that fails ends the task */
    s_heard(&stage, 0, "{\"state\": \"ended\", \"exit_code\": 0}");
    s_wants(&stage, EDL_TASK_NOTHING, 0);
    edl_task_lost(stage.task, 0, "its agent has ended", stage.now);
    assert_string_equal(edl_task_state(stage.task), "running");
    edl_task_delete(stage.task, stage.now);
    s_ends(&stage, "deleted", "");
    s_run(&stage);
    s_heard(&stage, 0, "{\"state\": \"ended\", \"exit_code\": 1, \"reason\": \"exit code 1\", \"log\": \"\"}");
    s_ends(&stage, "failed", "ps-0: exit code 1");
}

static void test_lost(void **state)
{
    (void)state;
    stage_t stage;
    s_run(&stage);
    edl_task_lost(stage.task, 1, "its agent has ended: killed by SIGKILL", stage.now);
    s_ends(&stage, "failed", "worker-0: its agent has ended: killed by SIGKILL");
    s_run(&stage);
    s_heard(&stage, 1, "{\"state\": \"idle\"}");
    s_ends(&stage, "failed", "worker-0: its agent was started anew: its program is gone");
    s_run(&stage);
    s_heard(&stage, 1, "[]");
    s_ends(&stage, "failed", "worker-0: what answers at its agent's address is no agent");
}

/*  A question that fails is asked again; who has not answered for silent_ms is lost. */
static void test_silent(void **state)
{
    (void)state;
    stage_t stage;
    s_run(&stage);
    stage.now += s_limits.silent_ms - 1;
    s_heard(&stage, 0, s_running);
    s_heard(&stage, 2, s_running);
    edl_task_heard(stage.task, 1, 0, "timed out", stage.now);
    s_wants(&stage, EDL_TASK_WATCH, 0);
    s_wants(&stage, EDL_TASK_WATCH, 2);
    assert_int_equal(edl_task_due_ms(stage.task, stage.now), 1);
    s_wants(&stage, EDL_TASK_NOTHING, 0); /* not before poll_ms */
    stage.now++;
    assert_int_equal(edl_task_due_ms(stage.task, stage.now), 0);
    assert_int_equal(stage.task->step, EDL_TASK_RUNNING);
    int member;
    assert_int_equal(edl_task_next(stage.task, &member, stage.now), EDL_TASK_END);
    stage.task->members[member].asked = false;
    s_ends(&stage, "failed", "worker-0: its agent has not answered for 20 s");
}

/*  Not ready is asked again until the deadline, which names who is late. */
static void test_not_ready(void **state)
{
    (void)state;
    stage_t stage;
    s_begin(&stage, 0, 2);
    s_wants(&stage, EDL_TASK_MAKE, 0);
    s_wants(&stage, EDL_TASK_MAKE, 1);
    s_ready(&stage, 0);
    edl_task_made(stage.task, 1, 101);
    s_wants(&stage, EDL_TASK_FIND, 1);
    edl_task_found(stage.task, 1, NULL, NULL, stage.now);
    s_wants(&stage, EDL_TASK_NOTHING, 0);
    assert_int_equal(edl_task_due_ms(stage.task, stage.now), s_limits.poll_ms);
    stage.now += s_limits.poll_ms;
    s_wants(&stage, EDL_TASK_FIND, 1);
    edl_task_found(stage.task, 1, "http://127.0.0.1:1", "127.0.0.1:5", stage.now);
    s_wants(&stage, EDL_TASK_ASK_READY, 1);
    edl_task_heard(stage.task, 1, 0, "refused", stage.now);
    s_wants(&stage, EDL_TASK_NOTHING, 0);
    stage.now = 1000 + s_limits.ready_ms - 1;
    s_wants(&stage, EDL_TASK_ASK_READY, 1);
    assert_int_equal(edl_task_due_ms(stage.task, stage.now), 1);
    stage.now++;
    int member;
    assert_int_equal(edl_task_next(stage.task, &member, stage.now), EDL_TASK_END);
    stage.task->members[member].asked = false;
    s_ends(&stage, "failed", "worker-1: making workers for 60 s, and it is not done");
}

/*  All of its members are there, and are ended. */
static void s_is_late(stage_t *stage)
{
    for (int i = 0; i < stage->task->count; i++)
        s_wants(stage, EDL_TASK_END, i);
    for (int i = 0; i < stage->task->count; i++)
        edl_task_lost(stage->task, i, "killed", stage->now);
    s_wants(stage, EDL_TASK_NOTHING, 0);
    assert_string_equal(edl_task_state(stage->task), "failed");
    assert_string_equal(stage->task->reason, "it has not ended 5 s after it was asked for, its deadline");
    assert_int_equal(stage->task->failed_code, 0);
    edl_task_destroy(&stage->task);
}

/*  That of the request, in whatever step the task is. One that has ended meanwhile has ended. */
static void test_deadline(void **state)
{
    (void)state;
    stage_t stage;
    s_begin(&stage, 0, 1);
    stage.task->request.deadline_s = 5;
    s_wants(&stage, EDL_TASK_MAKE, 0);
    s_ready(&stage, 0);
    stage.now += 4999;
    s_wants(&stage, EDL_TASK_SEND_CONFIG, 0);
    assert_int_equal(edl_task_due_ms(stage.task, stage.now), 1);
    stage.now += 1;
    s_is_late(&stage);

    s_run(&stage);
    stage.task->request.deadline_s = 5;
    stage.now += 4999;
    for (int i = 0; i < 3; i++)
        s_heard(&stage, i, s_running);
    for (int i = 0; i < 3; i++)
        s_wants(&stage, EDL_TASK_WATCH, i);
    s_wants(&stage, EDL_TASK_NOTHING, 0);
    assert_int_equal(edl_task_due_ms(stage.task, stage.now), 1);
    stage.now += 1;
    s_is_late(&stage);

    s_run(&stage);
    stage.task->request.deadline_s = 5;
    stage.now += 5000;
    s_heard(&stage, 1, "{\"state\": \"ended\", \"exit_code\": 0, \"reason\": \"exit code 0\"}");
    s_heard(&stage, 2, "{\"state\": \"ended\", \"exit_code\": 0, \"reason\": \"exit code 0\"}");
    s_wants(&stage, EDL_TASK_END, 0);
    edl_task_lost(stage.task, 0, "killed", stage.now);
    edl_task_lost(stage.task, 1, "killed", stage.now);
    edl_task_lost(stage.task, 2, "killed", stage.now);
    s_wants(&stage, EDL_TASK_NOTHING, 0);
    assert_string_equal(edl_task_state(stage.task), "succeeded");
    edl_task_destroy(&stage.task);
}

static void test_refuses_config(void **state)
{
    (void)state;
    stage_t stage;
    s_begin(&stage, 0, 1);
    s_wants(&stage, EDL_TASK_MAKE, 0);
    s_ready(&stage, 0);
    s_wants(&stage, EDL_TASK_SEND_CONFIG, 0);
    edl_task_heard(stage.task, 0, 400, "TF_CONFIG is missing", stage.now);
    s_ends(&stage, "failed", "worker-0: its agent answers 400: TF_CONFIG is missing");
    s_begin(&stage, 0, 1);
    s_wants(&stage, EDL_TASK_MAKE, 0);
    s_ready(&stage, 0);
    s_wants(&stage, EDL_TASK_SEND_CONFIG, 0);
    edl_task_heard(stage.task, 0, 0, "connection reset", stage.now);
    s_ends(&stage, "failed", "worker-0: its agent does not answer: connection reset");
}

/*  In every step: who is not made is not ended; what comes late changes nothing. */
static void test_deleted(void **state)
{
    (void)state;
    stage_t stage;
    s_begin(&stage, 1, 1);
    edl_task_delete(stage.task, stage.now);
    s_ends(&stage, "deleted", "");
    s_begin(&stage, 1, 1);
    s_wants(&stage, EDL_TASK_MAKE, 0);
    s_ready(&stage, 0);
    s_wants(&stage, EDL_TASK_MAKE, 1);
    edl_task_delete(stage.task, stage.now);
    edl_task_fail(stage.task, "too late", stage.now);
    edl_task_heard(stage.task, 0, 500, "too late", stage.now);
    s_ends(&stage, "deleted", "");
}

/*  Members that do not end are not waited for without end. */
static void test_end_is_late(void **state)
{
    (void)state;
    stage_t stage;
    s_run(&stage);
    edl_task_delete(stage.task, stage.now);
    for (int i = 0; i < 3; i++)
        s_wants(&stage, EDL_TASK_END, i);
    s_wants(&stage, EDL_TASK_NOTHING, 0);
    assert_int_equal(edl_task_due_ms(stage.task, stage.now), s_limits.end_ms);
    stage.now += s_limits.end_ms;
    s_wants(&stage, EDL_TASK_NOTHING, 0);
    assert_string_equal(edl_task_state(stage.task), "deleted");
    edl_task_destroy(&stage.task);
}

/*  A member that cannot begin says why, and so does the task that gives it up. */
static void test_waits(void **state)
{
    (void)state;
    stage_t stage;
    s_begin(&stage, 0, 1);
    s_wants(&stage, EDL_TASK_MAKE, 0);
    edl_task_made(stage.task, 0, 100);
    s_wants(&stage, EDL_TASK_FIND, 0);
    edl_task_waits(stage.task, 0, "ImagePullFailed: no such image");
    edl_task_found(stage.task, 0, NULL, NULL, stage.now);
    assert_string_equal(stage.task->members[0].reason, "ImagePullFailed: no such image");
    stage.now += s_limits.ready_ms;
    int member;
    assert_int_equal(edl_task_next(stage.task, &member, stage.now), EDL_TASK_END);
    stage.task->members[0].asked = false;
    s_ends(&stage, "failed", "worker-0: making workers for 60 s, and it is not done: ImagePullFailed: no such image");
}

/*  A member of a task that another master began, found and heard. */
static void s_resume(stage_t *stage, int member, const char *status)
{
    char address[ELASTICDL_ADDRESS];
    snprintf(address, sizeof address, "127.0.0.1:%d", 4000 + member);
    s_wants(stage, EDL_TASK_FIND, member);
    edl_task_found(stage->task, member, "http://127.0.0.1:1", address, stage->now);
    s_wants(stage, EDL_TASK_ASK_READY, member);
    s_heard(stage, member, status);
}

static void s_adopt(stage_t *stage, int ps, int workers)
{
    s_begin(stage, ps, workers);
    stage->task->adopted = true;
    for (int i = 0; i < ps; i++) {
        s_wants(stage, EDL_TASK_MAKE, i);
        edl_task_made(stage->task, i, 100);
        s_resume(stage, i, s_running);
    }
    if (ps)
        s_wants(stage, EDL_TASK_WATCH, 0);
    for (int i = ps; i < ps + workers; i++)
        s_wants(stage, EDL_TASK_MAKE, i);
    for (int i = ps; i < ps + workers; i++)
        edl_task_made(stage->task, i, 100 + (uint64_t)i);
}

/*  Its programs run: nobody is configured or started once more. */
static void test_adopted_running(void **state)
{
    (void)state;
    stage_t stage;
    s_adopt(&stage, 1, 2);
    s_resume(&stage, 1, s_running);
    s_wants(&stage, EDL_TASK_WATCH, 1);
    s_resume(&stage, 2, "{\"state\": \"ended\", \"exit_code\": 0}");
    s_wants(&stage, EDL_TASK_NOTHING, 0);
    assert_string_equal(edl_task_state(stage.task), "running");
    edl_task_delete(stage.task, stage.now);
    s_ends(&stage, "deleted", "");
}

/*  It was about to begin: what is left of that is done. */
static void test_adopted_configured(void **state)
{
    (void)state;
    stage_t stage;
    s_adopt(&stage, 0, 2);
    s_resume(&stage, 0, "{\"state\": \"configured\"}");
    s_resume(&stage, 1, "{\"state\": \"idle\"}");
    s_wants(&stage, EDL_TASK_SEND_CONFIG, 1);
    s_heard(&stage, 1, "OK");
    s_wants(&stage, EDL_TASK_SEND_RUN, 0);
    s_wants(&stage, EDL_TASK_SEND_RUN, 1);
    edl_task_delete(stage.task, stage.now);
    s_ends(&stage, "deleted", "");
}

/*  Of its programs one is gone, as its agent was started anew meanwhile; or it has failed. */
static void test_adopted_lost(void **state)
{
    (void)state;
    stage_t stage;
    s_adopt(&stage, 0, 2);
    s_resume(&stage, 0, s_running);
    s_wants(&stage, EDL_TASK_WATCH, 0);
    s_resume(&stage, 1, "{\"state\": \"idle\"}");
    s_wants(&stage, EDL_TASK_END, 0);
    stage.task->members[0].asked = false;
    s_ends(&stage, "failed", "worker-1: its agent was started anew: its program is gone");
    s_adopt(&stage, 0, 1);
    s_resume(&stage, 0, "{\"state\": \"ended\", \"exit_code\": 3, \"reason\": \"exit code 3\", \"log\": \"no\\n\"}");
    s_wants(&stage, EDL_TASK_END, 0);
    stage.task->members[0].asked = false;
    s_ends(&stage, "failed", "worker-0: exit code 3: no");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_succeeds),
        cmocka_unit_test(test_together),
        cmocka_unit_test(test_waits_in_a_queue),
        cmocka_unit_test(test_ends_in_a_queue),
        cmocka_unit_test(test_is_taken_back),
        cmocka_unit_test(test_worker_fails),
        cmocka_unit_test(test_parameter_server_ends),
        cmocka_unit_test(test_lost),
        cmocka_unit_test(test_silent),
        cmocka_unit_test(test_not_ready),
        cmocka_unit_test(test_deadline),
        cmocka_unit_test(test_refuses_config),
        cmocka_unit_test(test_deleted),
        cmocka_unit_test(test_end_is_late),
        cmocka_unit_test(test_waits),
        cmocka_unit_test(test_adopted_running),
        cmocka_unit_test(test_adopted_configured),
        cmocka_unit_test(test_adopted_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
