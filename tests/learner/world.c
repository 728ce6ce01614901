#include "tests/learner/world.h"
#include <jansson.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include "common/base/mem.h"
#include "tests/learner/segments.h"

enum { PATIENCE_MS = 60000 };

extern char **environ;

static world_t *s_open_world; /* for world_teardown */

/* ---- what is said of the run --------------------------------------------------------------------------------------- */

static void s_on_finished(world_t *world, const tt_msg_EVENT_t *event)
{
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

static void s_on_event(void *ctx, const tt_msg_EVENT_t *event)
{
    world_t *world = ctx;
    if (strcmp(event->kind, "failed") == 0)
        snprintf(world->failed, sizeof world->failed, "%s", event->text);
    if (strcmp(event->kind, "snapshot") == 0) {
        snprintf(world->snapshot, sizeof world->snapshot, "%s", event->text);
        world->snapshots++;
    }
    world->solved += strcmp(event->kind, "solved") == 0;
    if (strcmp(event->kind, "finished") == 0)
        s_on_finished(world, event);
}

static void s_on_roster(void *ctx)
{
    fake_collector_attach(&((world_t *)ctx)->collector);
}

uint64_t world_update(const world_t *world)
{
    for (size_t i = 0; i < world->run.members; i++) {
        const fake_member_t *member = &world->run.member[i];
        const uint64_t upto = fake_collector_to(&world->collector, member)->upto, lag = world->collector.lag;
        if (member->role == TT_PEER_LEARNER && member->in && member->rank == 0)
            return upto > lag ? upto - lag - 1 : 0;
    }
    return 0;
}

/* ---- processes --------------------------------------------------------------------------------------------------- */

static void s_reap(world_t *world)
{
    int status;
    for (size_t i = 0; i < world->run.members; i++) {
        fake_member_t *member = &world->run.member[i];
        if (!member->pid || waitpid(member->pid, &status, WNOHANG) != member->pid)
            continue;
        member->pid = 0;
        member->code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
}

static void s_on_turn(void *ctx)
{
    world_t *world = ctx;
    fake_collector_feed(&world->collector);
    s_reap(world);
    if (world->failed[0] && !world->may_fail)
        fail_msg("the run failed in update %llu: %s", (unsigned long long)world_update(world), world->failed);
}

fake_member_t *world_start(world_t *world, tt_peer_role_t role, uint32_t index)
{
    char number[16];
    pid_t pid;
    snprintf(number, sizeof number, "%u", index);
    char *argv[] = {(char *)(uintptr_t)TT_BINARY, (char *)(uintptr_t)tt_peer_role_name(role),
        (char *)(uintptr_t) "--run", world->run.dir, (char *)(uintptr_t) "--index", number, NULL};
    assert_int_equal(posix_spawn(&pid, TT_BINARY, NULL, NULL, argv, environ), 0);
    fake_member_t *member = fake_add(&world->run, role, index, pid);
    world_until(world, member->hello, "HELLO");
    return member;
}

void world_kill(world_t *world, fake_member_t *member, int signal)
{
    assert_true(member->pid > 0);
    assert_int_equal(kill(member->pid, signal), 0);
    world_until(world, member->pid == 0, "the end of a process that was sent a signal");
}

void world_stop(world_t *world)
{
    const tt_msg_STOP_t stop = TT_MSG(STOP, .reason = (char *)(uintptr_t) "the test is over");
    for (size_t i = 0; i < world->run.members; i++)
        if (world->run.member[i].pid)
            fake_send(&world->run, &world->run.member[i], &stop);
    for (size_t i = 0; i < world->run.members; i++)
        if (world->run.member[i].pid) {
            world_until(world, world->run.member[i].pid == 0, "the end of a process that was told to stop");
            assert_int_equal(world->run.member[i].code, 0);
        }
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

typedef struct {
    const char *mark, *obs, *action; /* mark: among the lines of YAML */
    bool mask;
    uint32_t carry; /* floats: as the lines of YAML say of the network */
} spaces_t;

static const spaces_t s_spaces[] = {
    {"# any spaces", "{image: uint8[2, 2], mode: discrete(3), speed: float32[2]}",
        "(multi_discrete(3, 2), float32[2], multi_binary[2])", true, 0},
    {"# bytes only", "uint8[2, 2]", "multi_binary[2]", false, 0},
    {"# two lstm of 5", "float32[4]", "discrete(2)", false, 20},
    {"# one gru of 5", "float32[4]", "discrete(2)", false, 5},
    {"", "float32[4]", "discrete(2)", false, 0},
};

void world_open(world_t *world, const char *more)
{
    memset(world, 0, sizeof *world);
    fake_collector_t *plays = &world->collector;
    plays->N = 6;
    plays->T = 16;
    const spaces_t *spaces = s_spaces;
    while (!strstr(more, spaces->mark))
        spaces++;
    plays->columns = world->columns = made_columns(spaces->obs, spaces->action, spaces->mask);
    tt_columns_put_carry(world->columns, spaces->carry);
    plays->S = strstr(more, "# envs cannot be saved") ? 0 : 8;
    plays->lag = strstr(more, "lag: 0") ? 0 : strstr(more, "lag: 3") ? 3 : 1;
    fake_open(
        &world->run, tt_sprintf("name: world\nenv: CartPole-v1\nnum_envs: %u\nnum_steps: %u\nseed: 5\n"
                                "space: {obs: \"%s\", action: \"%s\", mask: %s, env_state: %u, threshold: -1000}\n"
                                "net: {beat_ms: 100, lease_ms: 2000, stall_s: 20, shared_memory: %s}\n"
                                "%s%s",
                         plays->N, plays->T, spaces->obs, spaces->action, spaces->mask ? "true" : "false", plays->S,
                         strstr(more, "# sums are sent") ? "false" : "true",
                         strstr(more, "network:") ? "" : "network: {hidden: [16, 16]}\n", more));
    s_open_world = world;
    world->run.patience_ms = PATIENCE_MS;
    world->run.on_event = s_on_event;
    world->run.on_roster = s_on_roster;
    world->run.on_turn = s_on_turn;
    world->run.ctx = world;
    fake_collector_open(plays, &world->run);
}

void world_close(world_t *world)
{
    s_open_world = NULL;
    for (size_t i = 0; i < world->run.members; i++)
        if (world->run.member[i].pid) {
            kill(world->run.member[i].pid, SIGKILL);
            waitpid(world->run.member[i].pid, NULL, 0);
        }
    fake_collector_close(&world->collector);
    fake_close(&world->run);
    tt_columns_destroy(&world->columns);
}

int world_teardown(void **state)
{
    (void)state;
    if (s_open_world)
        world_close(s_open_world);
    return 0;
}
