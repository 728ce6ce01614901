/*  Whole learner processes: the same bits whoever takes part, joins, leaves, dies or comes back. */
#include "tests/learner/world.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/snapshot/checkpoints.h"

#define JOB    "learner: {shards: 4}\nalgorithm: {name: ppo, epochs: 2, minibatches: 3}\n"
#define NORMED "normalize: {obs: true, reward: true}\n"
#define LONG   JOB NORMED "lag: 1\nstop: {env_steps: 3840}\n" /* ends after batch 39, before update 39 */

/*  Learners of one host put partial sums into memory that they share, unless the job says that they send them. */
static const char *const s_ways[] = {LONG, LONG "# sums are sent\n"};

static char s_want[65]; /* the weights of LONG by one learner */

static fake_member_t *s_learner(world_t *world, uint32_t index)
{
    return world_start(world, TT_PEER_LEARNER, index);
}

static fake_member_t *s_start_aggregator(world_t *world, uint32_t index)
{
    fake_member_t *aggregator = world_start(world, TT_PEER_AGGREGATOR, index);
    fake_in(&world->run, aggregator);
    return aggregator;
}

static void s_finish(world_t *world, char out[65])
{
    world_until(world, world->sha[0], "EVENT finished");
    memcpy(out, world->sha, 65);
    world_stop(world);
    world_close(world);
}

/*  A run without incidents; batches are sent as soon as there is credit. */
static void s_plain(const char *job, uint32_t learners, uint32_t aggregators, bool copies, char out[65])
{
    static world_t world;
    world_open(&world, job);
    world.collector.copies = copies;
    for (uint32_t i = 0; i < learners; i++)
        fake_in(&world.run, s_learner(&world, i));
    for (uint32_t i = 0; i < aggregators; i++)
        s_start_aggregator(&world, i);
    fake_roster(&world.run, true, NULL);
    s_finish(&world, out);
}

/*  What all others are compared with, made before any of them, so that each can run alone. */
static int s_make_want(void **state)
{
    (void)state;
    s_plain(LONG, 1, 0, false, s_want);
    return 0;
}

static void test_one_learner_ends_by_its_rule(void **state)
{
    (void)state;
    static world_t world;
    world_open(&world, LONG);
    fake_member_t *learner = s_learner(&world, 0);
    fake_in(&world.run, learner);
    fake_roster(&world.run, true, NULL);
    world_until(&world, world.sha[0], "EVENT finished");
    assert_string_equal(world.reason, "env_steps");
    assert_int_equal(world.updates, 39);
    assert_int_equal(world.trained, 39 * 96);
    world_until(&world, fake_collector_to(&world.collector, learner)->acked == 39, "its last word to the collector");
    struct stat st;
    assert_int_equal(stat(world.checkpoint, &st), 0);
    assert_non_null(strstr(world.checkpoint, "final.safetensors"));
    char sha[65];
    s_finish(&world, sha);
    assert_string_equal(sha, s_want);
}

static void test_threads_and_copies_change_nothing(void **state)
{
    (void)state;
    char sha[65];
    s_plain(LONG "collector: {replicas: 1}\n", 1, 0, true, sha);
    assert_string_equal(sha, s_want);
    s_plain(JOB NORMED "lag: 1\nstop: {env_steps: 3840}\ncheckpoint: {every_s: 0.05, keep: 2}\n", 1, 0, false, sha);
    assert_string_equal(sha, s_want);
    for (int threads = 2; threads <= 4; threads += 2) {
        char job[400];
        snprintf(job, sizeof job,
            "learner: {shards: 4, threads: %d}\nalgorithm: {name: ppo, epochs: 2, minibatches: 3}\n" NORMED
            "lag: 1\nstop: {env_steps: 3840}\n",
            threads);
        s_plain(job, 1, 0, false, sha);
        assert_string_equal(sha, s_want);
    }
}

static void test_any_number_of_learners(void **state)
{
    (void)state;
    char sha[65];
    for (uint32_t learners = 2; learners <= 4; learners++)
        for (size_t way = 0; way < TT_COUNT(s_ways); way++) {
            s_plain(s_ways[way], learners, learners == 3 ? 2 : 1, false, sha);
            assert_string_equal(sha, s_want);
        }
}

static void test_lock_step(void **state)
{
    (void)state;
    char one[65], three[65];
    s_plain(JOB "lag: 0\nstop: {env_steps: 2000}\n", 1, 0, false, one);
    s_plain(JOB "lag: 0\nstop: {env_steps: 2000}\n", 3, 1, false, three);
    assert_string_equal(one, three);
    assert_string_not_equal(one, s_want);
}

/*  A dict, a tuple and a mask: flattened, scaled where there are floats, and again the same for any number of learners. With
 *  bytes only there is nothing to scale, and a version's block of statistics is a count. */
static void test_any_spaces(void **state)
{
    (void)state;
    const char *const jobs[] = {"# any spaces\n" LONG, "# bytes only\n" JOB "lag: 1\nstop: {env_steps: 2000}\n"};
    char before[65];
    memcpy(before, s_want, sizeof before);
    for (size_t i = 0; i < TT_COUNT(jobs); i++) {
        char one[65], cut[65], three[65];
        s_plain(jobs[i], 1, 0, false, one);
        s_plain(jobs[i], 1, 0, true, cut);
        s_plain(jobs[i], 3, 1, true, three);
        assert_string_equal(one, cut);
        assert_string_equal(one, three);
        assert_string_not_equal(one, before);
        memcpy(before, one, sizeof before);
    }
}

/*  The same with one that comes into the middle of the run. */
static void s_joined(const char *job, char out[65])
{
    static world_t world;
    world_open(&world, job);
    fake_in(&world.run, s_learner(&world, 0));
    s_start_aggregator(&world, 0);
    fake_member_t *late = s_learner(&world, 1);
    world.collector.gate = 7;
    fake_roster(&world.run, true, NULL);
    world_until(&world, world_update(&world) >= 7, "some updates");
    fake_in(&world.run, late);
    fake_roster(&world.run, false, NULL);
    world_until(&world, late->holds, "the joiner to hold weights");
    world.collector.gate = UINT64_MAX;
    s_finish(&world, out);
}

/*  Minibatches of two envs for eight shards, so that learners may have none; at lag 1 evaluated anew, step by step. */
static void test_a_policy_that_remembers(void **state)
{
    (void)state;
    const char *const jobs[] = {"# two lstm of 5, # envs cannot be saved\nlearner: {shards: 8}\nalgorithm: {name: ppo, "
                                "epochs: 2, minibatches: 3}\n"
                                "network: {rnn: lstm, rnn_size: 5, hidden: [8]}\n" NORMED
                                "lag: 1\nstop: {env_steps: 2000}\n",
        "# one gru of 5, # envs cannot be saved\nlearner: {shards: 16}\nalgorithm: {name: a2c}\n"
        "network: {rnn: gru, rnn_size: 5, hidden: [8], shared: true}\nlag: 1\nstop: {env_steps: 2000}\n"};
    for (size_t i = 0; i < TT_COUNT(jobs); i++) {
        char one[65], two[65], three[65], joined[65];
        s_plain(jobs[i], 1, 0, false, one);
        s_plain(jobs[i], 2, 1, true, two);
        s_plain(jobs[i], 3, 2, false, three);
        s_joined(jobs[i], joined);
        assert_string_equal(one, two);
        assert_string_equal(one, three);
        assert_string_equal(one, joined);
    }
}

static void test_a_learner_joins(void **state)
{
    (void)state;
    for (int moment = 0; moment < 3; moment++) {
        static world_t world;
        char sha[65];
        world_open(&world, s_ways[moment % 2]);
        world.collector.gate = moment == 0 ? 7 : UINT64_MAX; /* in a pause between updates, and in full run */
        fake_in(&world.run, s_learner(&world, 0));
        s_start_aggregator(&world, 0);
        fake_member_t *late = s_learner(&world, 1);
        fake_roster(&world.run, true, NULL);
        world_until(&world, world_update(&world) >= (moment == 0 ? 7u : 3u * (unsigned)moment), "some updates");
        fake_in(&world.run, late);
        fake_roster(&world.run, false, NULL);
        world_until(&world, late->holds, "the joiner to hold weights");
        world.collector.gate = UINT64_MAX;
        world_until(&world, fake_collector_to(&world.collector, late)->credited, "credit of the joiner");
        s_finish(&world, sha);
        assert_string_equal(sha, s_want);
    }
}

static tt_status_t s_keep_answer(void *ctx, tt_sock_t *sock, tt_packet_t *packet)
{
    (void)sock;
    if (packet->msg.type == TT_MSG_FETCHED)
        *(tt_msg_FETCHED_t *)ctx = packet->msg.FETCHED; /* its pointers are not looked at */
    return TT_OK;
}

/*  One that was stopped for a while asks as a member of a roster that is no more: what it got now would be behind by the
 *  time it is a member again. */
static void test_no_state_for_a_member_of_an_older_generation(void **state)
{
    (void)state;
    static world_t world;
    char sha[65];
    world_open(&world, LONG);
    world.collector.gate = 5;
    fake_member_t *first = s_learner(&world, 0);
    fake_in(&world.run, first);
    fake_roster(&world.run, true, NULL);
    world_until(&world, world_update(&world) >= 5, "some updates");
    tt_sock_t *sock = NULL;
    const tt_sock_opts_t opts = {.name = "joiner", .identity = "learner/1/99", .max_bytes = 1 << 24};
    assert_ok(tt_sock_new(&sock, TT_DEALER, &opts));
    assert_ok(tt_sock_connect(sock, first->data));
    tt_msg_FETCHED_t answer = {0};
    tt_loop_sock(world.run.loop, sock, s_keep_answer, &answer);
    tt_msg_FETCH_t question =
        TT_MSG(FETCH, .id = 1, .what = TT_FETCH_STATE, .era = world.run.era, .generation = world.run.generation - 1);
    assert_ok(tt_sock_send(sock, NULL, &question, NULL, 0));
    world_until(&world, answer.id == 1, "an answer to an old question");
    assert_true(answer.gone);
    question.id = 2;
    question.generation = world.run.generation;
    assert_ok(tt_sock_send(sock, NULL, &question, NULL, 0));
    world_until(&world, answer.id == 2, "an answer");
    assert_false(answer.gone);
    assert_int_equal(answer.version, 5);
    tt_loop_forget_sock(world.run.loop, sock);
    tt_sock_destroy(&sock);
    world.collector.gate = UINT64_MAX;
    s_finish(&world, sha);
    assert_string_equal(sha, s_want);
}

static void test_a_learner_is_killed(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 3 * TT_COUNT(s_ways); i++) {
        static world_t world;
        char sha[65];
        const uint32_t victim = i / TT_COUNT(s_ways);
        world_open(&world, s_ways[i % TT_COUNT(s_ways)]);
        fake_member_t *learner[3];
        for (uint32_t n = 0; n < 3; n++)
            fake_in(&world.run, learner[n] = s_learner(&world, n));
        s_start_aggregator(&world, 0);
        fake_roster(&world.run, true, NULL);
        world_until(&world, world_update(&world) >= 5 + victim, "some updates");
        world_kill(&world, learner[victim], SIGKILL);
        fake_out(&world.run, learner[victim]);
        fake_roster(&world.run, false, NULL);
        s_finish(&world, sha);
        assert_string_equal(sha, s_want);
    }
}

/*  Whatever rank 0 had to say of it may have died with it. */
static void test_another_rank_0_says_that_it_is_solved(void **state)
{
    (void)state;
    static world_t world;
    char sha[65];
    world_open(&world, LONG);
    world.collector.gate = 30;
    fake_member_t *first = s_learner(&world, 0), *second = s_learner(&world, 1);
    fake_in(&world.run, first);
    fake_in(&world.run, second);
    s_start_aggregator(&world, 0);
    fake_roster(&world.run, true, NULL);
    world_until(&world, world.solved == 1 && world_update(&world) == world.collector.gate,
        "EVENT solved, and updates after it");
    world_kill(&world, first, SIGKILL);
    fake_out(&world.run, first);
    fake_roster(&world.run, false, NULL);
    world_until(&world, world.solved == 2, "EVENT solved of the other one");
    world.collector.gate = UINT64_MAX;
    s_finish(&world, sha);
    assert_string_equal(sha, s_want);
}

#define KEPT "checkpoint: {every_s: 0.01, keep: 2}\n"

/*  Two updates, and a third so long after them that it leaves a snapshot. Of this one we have heard, and there is none that is newer. */
static void s_until_newest(world_t *world, const fake_member_t *leader)
{
    world_until(world, strstr(leader->state, "waiting for batch 2:"), "two updates, and what was due after them");
    const int64_t due_ms = tt_now_ms(tt_clock_real()) + 2 * 10;
    world_until(world, tt_now_ms(tt_clock_real()) >= due_ms, "a snapshot to be due");
    world->collector.gate = 3;
    world_until(world, strstr(world->snapshot, "/00000003."), "the snapshot of the third");
}

static double s_best(const world_t *world)
{
    char path[512];
    tt_snapshot_info_t info;
    snprintf(path, sizeof path, "%s/" TT_CHECKPOINTS "/" TT_CHECKPOINT_BEST, world->run.dir);
    assert_ok(tt_snapshot_inspect(path, &info));
    const double mean = info.return_mean;
    tt_snapshot_info_free(&info);
    return mean;
}

/*  It does not know what was best before it led; from then on all is worse. */
static void test_another_rank_0_leaves_the_best(void **state)
{
    (void)state;
    static world_t world;
    char sha[65];
    world_open(&world, LONG KEPT);
    world.collector.gate = 2;
    world.collector.poison = 100;
    fake_member_t *first = s_learner(&world, 0), *second = s_learner(&world, 1);
    fake_in(&world.run, first);
    fake_in(&world.run, second);
    s_start_aggregator(&world, 0);
    fake_roster(&world.run, true, NULL);
    s_until_newest(&world, first);
    world_until(&world, strstr(second->state, "waiting for batch 3:"), "the other one to have come as far");
    world_kill(&world, first, SIGKILL);
    const double best = s_best(&world);
    world.collector.poison = -10000;
    fake_out(&world.run, first);
    fake_roster(&world.run, false, NULL);
    world.collector.gate = UINT64_MAX;
    world_until(&world, world.sha[0], "EVENT finished");
    assert_true(s_best(&world) == best);
    s_finish(&world, sha);
}

static void test_all_but_one_leave_and_others_come(void **state)
{
    (void)state;
    static world_t world;
    char sha[65];
    world_open(&world, LONG);
    fake_member_t *first = s_learner(&world, 0), *second = s_learner(&world, 1), *third = s_learner(&world, 2);
    fake_in(&world.run, first);
    fake_in(&world.run, second);
    s_start_aggregator(&world, 0);
    fake_roster(&world.run, true, NULL);
    world_until(&world, world_update(&world) >= 4, "some updates");
    assert_int_equal(kill(first->pid, SIGTERM), 0);
    world_until(&world, first->drained, "DRAINED");
    fake_out(&world.run, first);
    fake_roster(&world.run, false, NULL);
    world_until(&world, first->pid == 0, "the end of the drained learner");
    assert_int_equal(first->code, 0);
    world_until(&world, world_update(&world) >= 8, "updates by the second alone");
    fake_in(&world.run, third);
    fake_roster(&world.run, false, NULL);
    world_until(&world, third->holds, "the third to hold weights");
    world_kill(&world, second, SIGKILL);
    fake_out(&world.run, second);
    fake_roster(&world.run, false, NULL);
    s_finish(&world, sha);
    assert_string_equal(sha, s_want);
}

static void test_an_aggregator_is_killed_and_comes_back(void **state)
{
    (void)state;
    static world_t world;
    char sha[65];
    world_open(&world, s_ways[1]);
    fake_in(&world.run, s_learner(&world, 0));
    fake_in(&world.run, s_learner(&world, 1));
    fake_member_t *aggregator = s_start_aggregator(&world, 0);
    fake_roster(&world.run, true, NULL);
    world_until(&world, world_update(&world) >= 5, "some updates");
    world_kill(&world, aggregator, SIGKILL);
    fake_out(&world.run, aggregator);
    fake_roster(&world.run, false, NULL);
    s_start_aggregator(&world, 0);
    fake_roster(&world.run, false, NULL);
    s_finish(&world, sha);
    assert_string_equal(sha, s_want);
}

/*  The only learner dies: a new one starts from the newest snapshot, and comes to the same weights. */
static void test_a_roll_back(void **state)
{
    (void)state;
    static world_t world;
    char sha[65], snapshot[256];
    world_open(&world, LONG KEPT);
    world.collector.gate = 2;
    fake_member_t *first = s_learner(&world, 0);
    fake_in(&world.run, first);
    fake_roster(&world.run, true, NULL);
    s_until_newest(&world, first);
    memcpy(snapshot, world.snapshot, sizeof snapshot);
    world_kill(&world, first, SIGKILL);
    fake_out(&world.run, first);
    world.collector.gate = UINT64_MAX;
    fake_in(&world.run, s_learner(&world, 0));
    fake_roster(&world.run, true, snapshot);
    s_finish(&world, sha);
    assert_string_equal(sha, s_want);
}

/*  The only learner is asked to leave: it leaves a checkpoint first. */
static void test_the_last_learner_leaves_a_checkpoint(void **state)
{
    (void)state;
    static world_t world;
    char sha[65], snapshot[256];
    world_open(&world, LONG);
    world.collector.gate = 9;
    fake_member_t *first = s_learner(&world, 0);
    fake_in(&world.run, first);
    fake_roster(&world.run, true, NULL);
    world_until(&world, world_update(&world) >= 9, "some updates");
    assert_int_equal(kill(first->pid, SIGTERM), 0);
    world_until(&world, first->drained && world.snapshots == 1, "DRAINED and a snapshot");
    memcpy(snapshot, world.snapshot, sizeof snapshot);
    fake_out(&world.run, first);
    fake_roster(&world.run, true, NULL);
    world_until(&world, first->pid == 0, "its end");
    world.collector.gate = UINT64_MAX;
    fake_in(&world.run, s_learner(&world, 1));
    fake_roster(&world.run, true, snapshot);
    s_finish(&world, sha);
    assert_string_equal(sha, s_want);
}

static void test_asked_to_finish(void **state)
{
    (void)state;
    static world_t world;
    char sha[65];
    world_open(&world, JOB);
    world.collector.gate = 5;
    fake_member_t *learner = s_learner(&world, 0);
    fake_in(&world.run, learner);
    fake_roster(&world.run, true, NULL);
    world_until(&world, world_update(&world) >= 5, "five updates");
    fake_send(&world.run, learner, &TT_MSG(STOP, .finish = true, .reason = (char *)(uintptr_t) "stopped", .code = 130));
    world_until(&world, world.sha[0], "EVENT finished");
    assert_string_equal(world.reason, "stopped");
    assert_int_equal(world.updates, 5);
    s_finish(&world, sha);
}

#define ASYNC JOB NORMED "lag: 3\nstop: {env_steps: 2880}\n"

/*  Two learners at lag 3; `how` switches on what makes their copies differ. */
static void s_async(uint32_t learners, bool twins, bool starve, bool copies, char out[65])
{
    static world_t world;
    world_open(&world, ASYNC);
    world.collector.twins = twins;
    world.collector.starve = starve;
    world.collector.copies = copies;
    for (uint32_t i = 0; i < learners; i++)
        fake_in(&world.run, s_learner(&world, i));
    s_start_aggregator(&world, 0);
    fake_roster(&world.run, true, NULL);
    s_finish(&world, out);
}

/*  At lag > 1 copies differ; rank 0's count, so learners agree, with one another and with one alone. */
static void test_rank_0_decides_what_a_batch_is_made_of(void **state)
{
    (void)state;
    char one[65], other[65];
    s_async(1, false, false, false, one);
    s_async(1, false, false, true, other);
    assert_string_equal(one, other);
    s_async(2, true, false, false, other);
    assert_string_equal(one, other);
    s_async(3, false, true, false, other);
    assert_string_equal(one, other);
}

/*  Envs that cannot be saved are reset when they move, so copies differ at any lag: the same rules hold. */
static void test_envs_that_cannot_be_saved(void **state)
{
    (void)state;
    char sha[2][65];
    for (uint32_t learners = 1; learners <= 2; learners++) {
        static world_t world;
        world_open(&world, JOB "lag: 1\nstop: {env_steps: 2000} # envs cannot be saved\n");
        world.collector.starve = true;
        for (uint32_t i = 0; i < learners; i++)
            fake_in(&world.run, s_learner(&world, i));
        s_start_aggregator(&world, 0);
        fake_roster(&world.run, true, NULL);
        s_finish(&world, sha[learners - 1]);
    }
    assert_string_equal(sha[0], sha[1]);
}

/*  Rank 0 dies with its compositions: the next one decides, and all that are left come to one end. */
static void test_another_rank_0_decides(void **state)
{
    (void)state;
    static world_t world;
    char sha[65];
    world_open(&world, ASYNC);
    world.collector.twins = true;
    fake_member_t *learner[3];
    for (uint32_t i = 0; i < 3; i++)
        fake_in(&world.run, learner[i] = s_learner(&world, i));
    s_start_aggregator(&world, 0);
    fake_roster(&world.run, true, NULL);
    world_until(&world, world_update(&world) >= 6, "some updates");
    world_kill(&world, learner[0], SIGKILL);
    fake_out(&world.run, learner[0]);
    fake_roster(&world.run, false, NULL);
    s_finish(&world, sha);
}

/*  A joiner at lag > 1 gets the batch in training from rank 0, whatever the collectors send it. */
static void test_a_learner_joins_at_lag_3(void **state)
{
    (void)state;
    static world_t world;
    char one[65], sha[65];
    s_async(1, false, false, false, one);
    world_open(&world, ASYNC);
    world.collector.starve = true;
    fake_in(&world.run, s_learner(&world, 0));
    s_start_aggregator(&world, 0);
    fake_member_t *late = s_learner(&world, 1);
    fake_roster(&world.run, true, NULL);
    world_until(&world, world_update(&world) >= 4, "some updates");
    fake_in(&world.run, late);
    fake_roster(&world.run, false, NULL);
    s_finish(&world, sha);
    assert_string_equal(one, sha);
}

/*  A collector that stands still: of all the versions that are made meanwhile only a few wait for it. */
static void test_a_stopped_collector_keeps_few_versions(void **state)
{
    (void)state;
    static world_t world;
    world_open(&world, JOB "lag: 1\nnetwork: {hidden: [300, 300]}\n"); /* larger than what the kernel's buffers hold */
    fake_member_t *learner = s_learner(&world, 0);
    const tt_sock_opts_t opts = {.name = "stopped", .hwm = 1};
    tt_sock_t *stopped;
    assert_ok(tt_sock_new(&stopped, TT_SUB, &opts));
    assert_ok(tt_sock_connect(stopped, learner->weights));
    world.collector.gate = 40;
    fake_in(&world.run, learner);
    fake_roster(&world.run, true, NULL);
    world_until(&world, world_update(&world) == 40, "forty updates");
    uint64_t held = 0, newest = 0;
    tt_packet_t packet = {0};
    for (int64_t until = fake_deadline(&world.run); newest <= 40;
         fake_wait(&world.run, until, "a version made after that")) {
        while (newest <= 40 && tt_sock_recv(stopped, &packet) != TT_AGAIN) {
            assert_int_equal(packet.msg.type, TT_MSG_WEIGHTS);
            newest = packet.msg.WEIGHTS.version;
            held += newest <= 40;
        }
        world.collector.gate++; /* it has read: there is room for another one */
    }
    tt_packet_clear(&packet);
    tt_sock_destroy(&stopped);
    assert_in_range(held, 1, 8);
    world_stop(&world);
    world_close(&world);
}

/*  Thousands of questions that can never be answered do not keep out one that can. */
static void test_a_flood_of_questions_keeps_out_nobody(void **state)
{
    (void)state;
    static world_t world;
    world_open(&world, LONG);
    fake_member_t *learner = s_learner(&world, 0);
    world.collector.gate = 3;
    fake_in(&world.run, learner);
    fake_roster(&world.run, true, NULL);
    world_until(&world, world_update(&world) == 3, "three updates");
    tt_sock_t *bad, *good;
    assert_ok(tt_sock_new(&bad, TT_DEALER, &(tt_sock_opts_t){.name = "bad", .identity = "bad", .hwm = 10000}));
    assert_ok(tt_sock_new(&good, TT_DEALER, &(tt_sock_opts_t){.name = "good", .identity = "good"}));
    assert_ok(tt_sock_connect(bad, learner->data));
    assert_ok(tt_sock_connect(good, learner->data));
    for (uint32_t i = 0; i < 5000; i++)
        assert_ok(tt_sock_send(bad, NULL,
            &TT_MSG(FETCH, .id = i, .what = TT_FETCH_ENVS, .era = UINT32_MAX, .env_lo = i, .batch = UINT64_MAX), NULL,
            0));
    /* answered at once, and after all of those */
    assert_ok(
        tt_sock_send(bad, NULL, &TT_MSG(FETCH, .id = 9999, .what = TT_FETCH_WEIGHTS, .version = 3, .era = 1), NULL, 0));
    tt_packet_t packet = {0};
    world_until(&world, tt_sock_recv(bad, &packet) == TT_OK && packet.msg.FETCHED.id == 9999, "an answer to the flood");
    assert_ok(
        tt_sock_send(good, NULL, &TT_MSG(FETCH, .id = 1, .what = TT_FETCH_WEIGHTS, .version = 4, .era = 1), NULL, 0));
    assert_ok(tt_sock_send(
        good, NULL, &TT_MSG(FETCH, .id = 2, .what = TT_FETCH_ENVS, .era = 1, .batch = 3, .env_count = 1), NULL, 0));
    world_until(&world, tt_sock_recv(good, &packet) == TT_OK && packet.msg.FETCHED.id == 2, "an answer that is there");
    world.collector.gate = UINT64_MAX; /* version 4 can be made now */
    world_until(&world, tt_sock_recv(good, &packet) == TT_OK && packet.msg.FETCHED.id == 1, "one that had to wait");
    assert_int_equal(packet.frame_count, 2);
    tt_packet_clear(&packet);
    tt_sock_destroy(&bad);
    tt_sock_destroy(&good);
    char sha[65];
    s_finish(&world, sha);
    assert_string_equal(s_want, sha);
}

static void test_a_foreign_snapshot_fails_the_run(void **state)
{
    (void)state;
    static world_t world;
    world_open(&world, LONG);
    world.may_fail = true;
    char path[128];
    snprintf(path, sizeof path, "%s/foreign.safetensors", world.run.dir);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("this is no snapshot", file);
    assert_int_equal(fclose(file), 0);
    fake_member_t *learner = s_learner(&world, 0);
    fake_in(&world.run, learner);
    fake_roster(&world.run, true, path);
    world_until(&world, world.failed[0] && !learner->pid, "the run to fail");
    assert_non_null(strstr(world.failed, "foreign.safetensors"));
    assert_int_equal(learner->code, 65);
    world_close(&world);
}

/*  Rewards that no float32 loss survives: the run fails with words, not with weights that are not numbers. */
static void test_a_gradient_that_is_not_finite_fails_the_run(void **state)
{
    (void)state;
    static world_t world;
    world_open(&world, JOB "lag: 1\n");
    world.may_fail = true;
    world.collector.poison = 3e37f;
    fake_member_t *learner = s_learner(&world, 0);
    fake_in(&world.run, learner);
    fake_roster(&world.run, true, NULL);
    world_until(&world, world.failed[0] && learner->drained && !learner->pid, "the run to fail");
    assert_non_null(strstr(world.failed, "training has diverged: update 0, optimiser step"));
    assert_non_null(strstr(world.failed, "; lower algorithm.learning_rate, "));
    assert_int_equal(learner->code, 79);
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_one_learner_ends_by_its_rule, world_teardown),
        cmocka_unit_test_teardown(test_threads_and_copies_change_nothing, world_teardown),
        cmocka_unit_test_teardown(test_any_number_of_learners, world_teardown),
        cmocka_unit_test_teardown(test_lock_step, world_teardown),
        cmocka_unit_test_teardown(test_any_spaces, world_teardown),
        cmocka_unit_test_teardown(test_a_policy_that_remembers, world_teardown),
        cmocka_unit_test_teardown(test_a_learner_joins, world_teardown),
        cmocka_unit_test_teardown(test_no_state_for_a_member_of_an_older_generation, world_teardown),
        cmocka_unit_test_teardown(test_a_learner_is_killed, world_teardown),
        cmocka_unit_test_teardown(test_another_rank_0_says_that_it_is_solved, world_teardown),
        cmocka_unit_test_teardown(test_another_rank_0_leaves_the_best, world_teardown),
        cmocka_unit_test_teardown(test_all_but_one_leave_and_others_come, world_teardown),
        cmocka_unit_test_teardown(test_an_aggregator_is_killed_and_comes_back, world_teardown),
        cmocka_unit_test_teardown(test_a_roll_back, world_teardown),
        cmocka_unit_test_teardown(test_the_last_learner_leaves_a_checkpoint, world_teardown),
        cmocka_unit_test_teardown(test_asked_to_finish, world_teardown),
        cmocka_unit_test_teardown(test_rank_0_decides_what_a_batch_is_made_of, world_teardown),
        cmocka_unit_test_teardown(test_envs_that_cannot_be_saved, world_teardown),
        cmocka_unit_test_teardown(test_another_rank_0_decides, world_teardown),
        cmocka_unit_test_teardown(test_a_learner_joins_at_lag_3, world_teardown),
        cmocka_unit_test_teardown(test_a_stopped_collector_keeps_few_versions, world_teardown),
        cmocka_unit_test_teardown(test_a_flood_of_questions_keeps_out_nobody, world_teardown),
        cmocka_unit_test_teardown(test_a_foreign_snapshot_fails_the_run, world_teardown),
        cmocka_unit_test_teardown(test_a_gradient_that_is_not_finite_fails_the_run, world_teardown),
    };
    return cmocka_run_group_tests(tests, s_make_want, NULL);
}
