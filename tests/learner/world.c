#include "tests/learner/world.h"
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/base/mem.h"
#include "common/base/rng.h"
#include "common/wire/segment.h"

extern char **environ;

static world_t *s_open_world; /* for world_teardown */

/* ---- the collector ----------------------------------------------------------------------------------------------- */

static uint32_t s_word(const world_t *world, uint64_t batch, uint32_t env, uint32_t t, uint32_t what)
{
    uint32_t words[4];
    tt_draw(words, world->N * 1000 + world->T, TT_STREAM_TEST, env, (batch << 24) + ((uint64_t)t << 8) + what);
    return words[0];
}

static float s_number(const world_t *world, uint64_t batch, uint32_t env, uint32_t t, uint32_t what)
{
    return tt_unit_f32(s_word(world, batch, env, t, what)) * 2 - 1;
}

static bool s_terminated(const world_t *world, uint64_t batch, uint32_t env, uint32_t t)
{
    return s_word(world, batch, env, t, 3) % 16 == 0;
}

/*  Steps since the env's last end, before the batch. */
static uint32_t s_age(const world_t *world, uint64_t batch, uint32_t env)
{
    uint32_t age = 0;
    for (uint64_t b = batch; b-- > 0;)
        for (uint32_t t = world->T; t-- > 0; age++)
            if (s_terminated(world, b, env, t) || env % world->T == t)
                return age;
    return age;
}

/*  In a twin the numbers of the segment's fields differ, as they do at lag > 1. */
static void s_fill(
    const world_t *world, const tt_segment_shape_t *shape, uint64_t batch, uint32_t lo, uint32_t twin, void *block)
{
    tt_segment_t at;
    tt_segment_map(shape, block, &at);
    uint32_t k = 0;
    for (uint32_t t = 0; t < shape->T; t++)
        for (uint32_t e = 0; e < shape->E; e++) {
            const uint32_t env = lo + e, i = t * shape->E + e;
            for (uint32_t d = 0; d < shape->D; d++)
                at.obs[i * shape->D + d] = s_number(world, batch, env, t, twin + 10 + d);
            ((int32_t *)at.action)[i] = (int32_t)(s_word(world, batch, env, t, twin + 1) % 2);
            at.reward[i] = 1 + world->poison;
            at.log_prob[i] = -0.69f;
            at.value[i] = s_number(world, batch, env, t, twin + 2);
            at.terminated[i] = s_terminated(world, batch, env, t);
            at.truncated[i] = !at.terminated[i] && env % shape->T == t;
            if (at.truncated[i]) {
                at.final_t[k] = t;
                at.final_env[k] = e;
                at.final_value[k] = s_number(world, batch, env, t, twin + 4);
                for (uint32_t d = 0; d < shape->D; d++)
                    at.final_obs[k * shape->D + d] = s_number(world, batch, env, t, twin + 100 + d);
                k++;
            }
        }
    for (uint32_t e = 0; e < shape->E; e++) {
        for (uint32_t d = 0; d < shape->D; d++)
            at.last_obs[e * shape->D + d] = s_number(world, batch, lo + e, shape->T, twin + 10 + d);
        at.last_value[e] = s_number(world, batch, lo + e, shape->T, twin + 2);
        at.age[e] = s_age(world, batch, lo + e);
        memset(at.states + (size_t)e * shape->S, (int)((batch * 16 + lo + e) & 255), shape->S);
    }
}

static uint32_t s_finals(const world_t *world, uint64_t batch, uint32_t lo, uint32_t count)
{
    uint32_t finals = 0;
    for (uint32_t env = lo; env < lo + count; env++)
        finals += !s_terminated(world, batch, env, env % world->T);
    return finals;
}

/*  twin: 0, or which other numbers it holds. */
static void s_send_segment(
    world_t *world, world_member_t *to, uint64_t batch, uint32_t lo, uint32_t count, uint32_t twin)
{
    const uint64_t oldest = batch > world->lag ? batch - world->lag : 0;
    const tt_segment_shape_t shape = {
        .T = world->T, .E = count, .D = world->D, .K = s_finals(world, batch, lo, count), .S = world->S};
    size_t bytes = 0;
    assert_ok(tt_segment_size(&shape, &bytes));
    zmq_msg_t frame;
    tt_frame_new(&frame, bytes);
    memset(zmq_msg_data(&frame), 0, bytes);
    s_fill(world, &shape, batch, lo, twin, zmq_msg_data(&frame));
    const tt_msg_SEGMENT_t msg =
        TT_MSG(SEGMENT, .era = world->era, .instance = 77, .batch = batch, .version = oldest + (twin > 0), .env_lo = lo,
            .env_count = count, .steps = shape.T, .obs = shape.D, .finals = shape.K, .state_bytes = shape.S);
    const tt_status_t status = tt_sock_send(to->feed, NULL, &msg, &frame, 1);
    if (status != TT_OK && status != TT_AGAIN)
        assert_ok(status);
    tt_frame_close(&frame);
}

/*  Where copies differ, only whole ranges as the roster names them count. */
static void s_send_whole(world_t *world, world_member_t *to, uint64_t batch)
{
    if (world->starve && to->index > 0)
        return;
    if (world->copies)
        s_send_segment(world, to, batch, 0, world->N / 2, batch > 0 ? 100000 : 0); /* a range that nobody has */
    s_send_segment(world, to, batch, 0, world->N, world->twins && batch > 0 ? 200 * to->index : 0);
}

static void s_send_batch(world_t *world, world_member_t *to, uint64_t batch)
{
    const uint32_t cut = 1 + (uint32_t)(batch % (world->N - 1)); /* ranges move from batch to batch */
    if (world->lag > 1 || world->S == 0) {
        s_send_whole(world, to, batch);
        return;
    }
    s_send_segment(world, to, batch, 0, cut, 0);
    if (world->copies)
        s_send_segment(world, to, batch, cut / 2, world->N - cut / 2 - 1, 0);
    s_send_segment(world, to, batch, cut, world->N - cut, 0);
    if (world->copies)
        s_send_segment(world, to, batch, 0, world->N, 0);
}

/*  Does every learner of the roster have credit of this epoch? */
static bool s_all_credited(const world_t *world)
{
    for (size_t i = 0; i < world->members; i++)
        if (world->member[i].role == TT_PEER_LEARNER && world->member[i].in && !world->member[i].credited)
            return false;
    return true;
}

static void s_feed_all(world_t *world)
{
    for (size_t i = 0; i < world->members && s_all_credited(world); i++) {
        world_member_t *to = &world->member[i];
        for (; to->in && to->feed && to->next < to->upto && to->next < world->gate; to->next++)
            s_send_batch(world, to, to->next);
    }
}

static tt_status_t s_on_feed(void *ctx, tt_sock_t *sock, tt_packet_t *packet)
{
    world_t *world = ctx;
    world_member_t *from = NULL;
    for (size_t i = 0; i < world->members; i++)
        if (world->member[i].feed == sock)
            from = &world->member[i];
    assert_non_null(from);
    if (packet->msg.type == TT_MSG_ACK && packet->msg.ACK.era == world->era)
        from->acked = packet->msg.ACK.below;
    if (packet->msg.type != TT_MSG_CREDIT || packet->msg.CREDIT.era != world->era ||
        packet->msg.CREDIT.epoch != world->epoch)
        return TT_OK;
    const tt_msg_CREDIT_t *credit = &packet->msg.CREDIT;
    if (!from->credited)
        from->next = credit->base;
    from->credited = true;
    from->upto = credit->upto;
    from->base = credit->base;
    s_feed_all(world);
    return TT_OK;
}

/* ---- the coordinator --------------------------------------------------------------------------------------------- */

static world_member_t *s_by_peer(world_t *world, const char *peer)
{
    for (size_t i = 0; i < world->members; i++)
        if (strcmp(world->member[i].peer, peer) == 0)
            return &world->member[i];
    return NULL;
}

static void s_on_hello(world_t *world, const char *peer, const tt_msg_HELLO_t *hello)
{
    world_member_t *member = NULL;
    for (size_t i = 0; i < world->members; i++)
        if (world->member[i].role == (tt_peer_role_t)hello->role && (int64_t)world->member[i].index == hello->index &&
            (uint32_t)world->member[i].pid == hello->pid)
            member = &world->member[i];
    if (!member)
        return; /* of one that was killed */
    member->instance = hello->instance;
    snprintf(member->peer, sizeof member->peer, "%s", peer);
    snprintf(member->data, sizeof member->data, "%s", hello->data_ipc);
    snprintf(member->weights, sizeof member->weights, "%s", hello->weights_ipc ? hello->weights_ipc : "");
    const tt_msg_WELCOME_t welcome =
        TT_MSG(WELCOME, .wire = TT_WIRE_VERSION, .index = member->index, .beat_ms = 100, .lease_ms = WORLD_WAIT_MS,
            .config = world->config, .run_dir = world->dir, .start_ns = tt_now_ns(tt_clock_real()));
    world_send(world, member, &welcome);
    member->hello = true;
}

static void s_on_event(world_t *world, const tt_msg_EVENT_t *event)
{
    if (strcmp(event->kind, "failed") == 0)
        snprintf(world->failed, sizeof world->failed, "%s", event->text);
    if (strcmp(event->kind, "snapshot") == 0) {
        snprintf(world->snapshot, sizeof world->snapshot, "%s", event->text);
        world->snapshots++;
    }
    world->solved += strcmp(event->kind, "solved") == 0;
    if (strcmp(event->kind, "finished") != 0)
        return;
    json_error_t error;
    json_t *json = json_loads(event->text, 0, &error);
    assert_non_null(json);
    const char *sha = NULL, *reason = NULL, *checkpoint = NULL;
    json_int_t updates = 0, trained = 0, lost = -1, duplicated = -1;
    assert_int_equal(json_unpack(json, "{s:s, s:s, s:s, s:I, s:{s:I, s:I, s:I}}", "weights_sha256", &sha, "reason",
                         &reason, "checkpoint", &checkpoint, "updates", &updates, "transitions", "trained", &trained,
                         "lost", &lost, "duplicated", &duplicated),
        0);
    assert_int_equal(lost, 0);
    assert_int_equal(duplicated, 0);
    snprintf(world->sha, sizeof world->sha, "%s", sha);
    snprintf(world->reason, sizeof world->reason, "%s", reason);
    snprintf(world->checkpoint, sizeof world->checkpoint, "%s", checkpoint);
    world->updates = (uint64_t)updates;
    world->trained = (uint64_t)trained;
    json_decref(json);
}

static tt_status_t s_on_control(void *ctx, tt_sock_t *sock, tt_packet_t *packet)
{
    (void)sock;
    world_t *world = ctx;
    world_member_t *from = s_by_peer(world, packet->peer);
    switch (packet->msg.type) {
    case TT_MSG_HELLO:
        s_on_hello(world, packet->peer, &packet->msg.HELLO);
        break;
    case TT_MSG_HEARTBEAT:
        if (from) {
            from->holds = packet->msg.HEARTBEAT.holds && packet->msg.HEARTBEAT.era == world->era;
            world_send(world, from, &TT_MSG(HEARTBEAT, .seq = packet->msg.HEARTBEAT.seq));
        }
        break;
    case TT_MSG_STATS:
        world->stats_update = packet->msg.STATS.update;
        break;
    case TT_MSG_EVENT:
        s_on_event(world, &packet->msg.EVENT);
        break;
    case TT_MSG_DRAINED:
        if (from)
            from->drained = true;
        break;
    default:
        break;
    }
    return TT_OK;
}

void world_send(world_t *world, world_member_t *to, const void *msg)
{
    const tt_status_t status = tt_sock_send(world->control, to->peer, msg, NULL, 0);
    if (status != TT_OK && status != TT_UNAVAILABLE) /* it may have ended */
        assert_ok(status);
}

void world_in(world_t *world, world_member_t *member)
{
    uint32_t learners = 0;
    for (size_t i = 0; i < world->members; i++)
        learners += world->member[i].role == TT_PEER_LEARNER && world->member[i].in;
    member->in = true;
    member->rank = learners;
    if (member->role == TT_PEER_LEARNER)
        world->generation++;
}

void world_out(world_t *world, world_member_t *member)
{
    if (!member->in)
        return;
    member->in = false;
    for (size_t i = 0; i < world->members; i++)
        if (world->member[i].role == TT_PEER_LEARNER && world->member[i].in && world->member[i].rank > member->rank)
            world->member[i].rank--;
    if (member->role == TT_PEER_LEARNER)
        world->generation++;
    if (member->feed) {
        tt_loop_forget_sock(world->loop, member->feed);
        tt_sock_destroy(&member->feed);
    }
}

static void s_attach(world_t *world, world_member_t *learner)
{
    learner->credited = false;
    if (!learner->feed) {
        const tt_sock_opts_t opts = {.name = "feed", .identity = "collector/0/4d"};
        assert_ok(tt_sock_new(&learner->feed, TT_DEALER, &opts));
        assert_ok(tt_sock_connect(learner->feed, learner->data));
        tt_loop_sock(world->loop, learner->feed, s_on_feed, world);
    }
    const tt_msg_ATTACH_t attach =
        TT_MSG(ATTACH, .role = TT_PEER_COLLECTOR, .instance = 77, .era = world->era, .epoch = world->epoch);
    assert_ok(tt_sock_send(learner->feed, NULL, &attach, NULL, 0));
}

void world_roster(world_t *world, bool fresh, const char *restore)
{
    tt_rec_MEMBER_t members[WORLD_MEMBERS + 1];
    size_t count = 0;
    world->epoch++;
    world->era += fresh;
    for (size_t i = 0; i < world->members; i++) {
        const world_member_t *m = &world->member[i];
        if (m->in)
            members[count++] = (tt_rec_MEMBER_t){.role = m->role,
                .index = m->index,
                .instance = m->instance,
                .rank = m->rank,
                .data_ipc = (char *)(uintptr_t)m->data};
    }
    members[count++] = (tt_rec_MEMBER_t){.role = TT_PEER_COLLECTOR, .instance = 77, .env_count = world->N};
    const tt_msg_ROSTER_t roster =
        TT_MSG(ROSTER, .era = world->era, .epoch = world->epoch, .generation = world->generation,
            .restore = (char *)(uintptr_t)restore, .fresh = fresh, .members = members, .members_count = count);
    for (size_t i = 0; i < world->members; i++)
        if (world->member[i].pid && world->member[i].hello)
            world_send(world, &world->member[i], &roster);
    for (size_t i = 0; i < world->members; i++)
        if (world->member[i].in && world->member[i].role == TT_PEER_LEARNER)
            s_attach(world, &world->member[i]);
}

/* ---- processes --------------------------------------------------------------------------------------------------- */

static void s_reap(world_t *world)
{
    int status;
    for (size_t i = 0; i < world->members; i++) {
        world_member_t *member = &world->member[i];
        if (!member->pid || waitpid(member->pid, &status, WNOHANG) != member->pid)
            continue;
        member->pid = 0;
        member->code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
}

world_member_t *world_start(world_t *world, tt_peer_role_t role, uint32_t index)
{
    assert_true(world->members < WORLD_MEMBERS);
    world_member_t *member = &world->member[world->members++];
    *member = (world_member_t){.role = role, .index = index};
    char number[16];
    snprintf(number, sizeof number, "%u", index);
    char *argv[] = {(char *)(uintptr_t)TT_BINARY, (char *)(uintptr_t)tt_peer_role_name(role),
        (char *)(uintptr_t) "--run", world->dir, (char *)(uintptr_t) "--index", number, NULL};
    assert_int_equal(posix_spawn(&member->pid, TT_BINARY, NULL, NULL, argv, environ), 0);
    world_until(world, member->hello, "HELLO");
    return member;
}

void world_kill(world_t *world, world_member_t *member, int signal)
{
    assert_true(member->pid > 0);
    assert_int_equal(kill(member->pid, signal), 0);
    world_until(world, member->pid == 0, "the end of a process that was sent a signal");
}

/* ---- time -------------------------------------------------------------------------------------------------------- */

int64_t world_deadline(void)
{
    return tt_now_ms(tt_clock_real()) + WORLD_WAIT_MS;
}

void world_tick(world_t *world)
{
    const tt_status_t status = tt_loop_poll(world->loop, 20);
    if (status != TT_OK && status != TT_AGAIN)
        assert_ok(status);
    s_feed_all(world);
    s_reap(world);
}

void world_wait(world_t *world, int64_t until_ms, const char *what)
{
    world_tick(world);
    if (world->failed[0])
        fail_msg("the run failed: %s", world->failed);
    if (tt_now_ms(tt_clock_real()) > until_ms)
        fail_msg("waited too long for %s (update %llu)", what, (unsigned long long)world_update(world));
}

uint64_t world_update(const world_t *world)
{
    for (size_t i = 0; i < world->members; i++)
        if (world->member[i].role == TT_PEER_LEARNER && world->member[i].in && world->member[i].rank == 0)
            return world->member[i].upto > world->lag ? world->member[i].upto - world->lag - 1 : 0;
    return 0;
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

void world_open(world_t *world, const char *more)
{
    memset(world, 0, sizeof *world);
    s_open_world = world;
    snprintf(world->dir, sizeof world->dir, "/tmp/tt_world_XXXXXX");
    assert_non_null(mkdtemp(world->dir));
    char path[128];
    snprintf(path, sizeof path, "%s/sock", world->dir);
    assert_int_equal(mkdir(path, 0700), 0);
    world->N = 6;
    world->T = 16;
    world->D = 4;
    world->S = strstr(more, "# envs cannot be saved") ? 0 : 8;
    world->lag = strstr(more, "lag: 0") ? 0 : strstr(more, "lag: 3") ? 3 : 1;
    world->gate = UINT64_MAX;
    world->config = tt_sprintf("name: world\nenv: CartPole-v1\nnum_envs: %u\nnum_steps: %u\nseed: 5\n"
                               "space: {obs: %u, actions: 2, action_dims: 1, env_state: %u, threshold: -1000}\n"
                               "net: {beat_ms: 100, lease_ms: 2000, stall_s: 20}\n"
                               "%s%s",
        world->N, world->T, world->D, world->S, strstr(more, "network:") ? "" : "network: {hidden: [16, 16]}\n", more);
    assert_ok(tt_loop_new(&world->loop, NULL));
    const tt_sock_opts_t opts = {.name = "control"};
    assert_ok(tt_sock_new(&world->control, TT_ROUTER, &opts));
    snprintf(path, sizeof path, "ipc://%s/sock/control", world->dir);
    assert_ok(tt_sock_bind(world->control, path, NULL, 0));
    tt_loop_sock(world->loop, world->control, s_on_control, world);
}

void world_stop(world_t *world)
{
    for (size_t i = 0; i < world->members; i++)
        if (world->member[i].pid)
            world_send(world, &world->member[i], &TT_MSG(STOP, .reason = (char *)(uintptr_t) "the test is over"));
    for (size_t i = 0; i < world->members; i++)
        if (world->member[i].pid) {
            world_until(world, world->member[i].pid == 0, "the end of a process that was told to stop");
            assert_int_equal(world->member[i].code, 0);
        }
}

int world_teardown(void **state)
{
    (void)state;
    if (s_open_world)
        world_close(s_open_world);
    return 0;
}

void world_close(world_t *world)
{
    s_open_world = NULL;
    for (size_t i = 0; i < world->members; i++) {
        world_member_t *member = &world->member[i];
        if (member->pid) {
            kill(member->pid, SIGKILL);
            waitpid(member->pid, NULL, 0);
        }
        if (member->feed) {
            tt_loop_forget_sock(world->loop, member->feed);
            tt_sock_destroy(&member->feed);
        }
    }
    tt_loop_forget_sock(world->loop, world->control);
    tt_sock_destroy(&world->control);
    tt_loop_destroy(&world->loop);
    free(world->config);
    char *command = tt_sprintf("rm -rf '%s'", world->dir);
    assert_int_equal(system(command), 0);
    free(command);
}
