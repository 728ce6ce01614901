/*  MinAtar's games against what the package shows (tests/golden/minatar/record.py): the same actions and the same draws
 *  give the same observations, rewards and ends, step by step. And a random player, saved states, arguments. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "collector/registry.h"
#include "common/base/buf.h"
#include "tests/collector/range.h"
#include "tests/test.h"

#define DIR TT_SOURCE_DIR "/tests/golden/minatar/"

enum { SIDE = 10, MOST_OBS = SIDE * SIDE * 10, MOST_STATE = 4096 };

/*  --- the recordings --- */

typedef struct {
    uint32_t version, actions, sticky, ramping, steps, draws, episodes, crc;
} head_t;

typedef struct {
    const char *game;
    uint32_t run, channels;
    head_t head;
    const uint8_t *step, *seen, *drawn;
} run_t;

/*  The env's randomness: the recorded bytes, each the upper 8 bits of a word, and half of the rest. */
typedef struct {
    tt_env_rng_t rng;
    const run_t *run;
    uint32_t used;
} draws_t;

static uint32_t next_drawn(tt_env_rng_t *rng)
{
    draws_t *self = (draws_t *)rng;
    if (self->used == self->run->head.draws)
        fail_msg("%s, run %u: draws more than MinAtar does", self->run->game, self->run->run);
    return (uint32_t)self->run->drawn[self->used++] << 24 | UINT32_C(1) << 23;
}

static uint32_t crc32_of(const uint8_t *bytes, size_t count, uint32_t crc)
{
    static uint32_t table[256];
    for (uint32_t i = 0; !table[1] && i < 256; i++) {
        const uint32_t at = 255 - i; /* [1] is among the last */
        table[at] = at;
        for (int bit = 0; bit < 8; bit++)
            table[at] = (table[at] & 1) ? table[at] >> 1 ^ 0xedb88320 : table[at] >> 1;
    }
    crc = ~crc;
    for (size_t i = 0; i < count; i++)
        crc = table[(crc ^ bytes[i]) & 255] ^ crc >> 8;
    return ~crc;
}

typedef struct {
    const tt_env_ops_t *ops;
    _Alignas(16) unsigned char state[MOST_STATE];
    uint8_t obs[MOST_OBS];
    uint32_t size, crc;
} played_t;

static void open_run(played_t *self, const run_t *run)
{
    char id[64], sticky[32];
    *self = (played_t){.size = SIDE * SIDE * run->channels};
    snprintf(id, sizeof id, "MinAtar/%s-v%u", run->game, run->head.version);
    snprintf(sticky, sizeof sticky, "%.17g", run->head.sticky / 256.0);
    const tt_env_arg_t args[] = {
        {"sticky_action_prob", sticky}, {"difficulty_ramping", run->head.ramping ? "true" : "false"}, {0}};
    assert_ok(tt_env_find(&self->ops, id));
    assert_true(self->ops->state_size <= sizeof self->state);
    assert_int_equal(self->ops->obs.shape[2], run->channels);
    assert_int_equal(self->ops->action.n[0], run->head.actions);
    assert_null(self->ops->init(self->state, args));
}

static void begin(played_t *self, draws_t *draws)
{
    void *leaf = self->obs;
    memset(self->obs, 0xee, self->size); /* whatever lies there, all of it is written */
    self->ops->reset(self->state, &draws->rng, &(tt_env_out_t){.obs = &leaf});
    self->crc = crc32_of(self->obs, self->size, self->crc);
}

static void check_step(played_t *self, draws_t *draws, uint32_t t)
{
    const run_t *run = draws->run;
    const uint8_t step = run->step[t];
    const int32_t choice = step & 7;
    const void *action = &choice;
    void *leaf = self->obs;
    tt_env_out_t out = {.obs = &leaf, .reward = NAN};
    memset(self->obs, 0xee, self->size);
    self->ops->step(self->state, &action, &draws->rng, &out);
    self->crc = crc32_of(self->obs, self->size, self->crc);
    if ((self->crc & 255) != run->seen[t])
        fail_msg("%s, run %u, step %u: shows something else than MinAtar", run->game, run->run, t);
    if (out.reward != step >> 4)
        fail_msg("%s, run %u, step %u: reward is %g, MinAtar's %d", run->game, run->run, t, out.reward, step >> 4);
    if (out.terminated != (step >> 3 & 1) || out.truncated)
        fail_msg("%s, run %u, step %u: terminated is %d, MinAtar's %d", run->game, run->run, t, out.terminated,
            step >> 3 & 1);
    if (out.terminated)
        begin(self, draws);
}

static void check_run(const run_t *run)
{
    played_t played;
    draws_t draws = {.rng.next = next_drawn, .run = run};
    uint32_t episodes = 1;
    open_run(&played, run);
    begin(&played, &draws);
    for (uint32_t t = 0; t < run->head.steps; t++) {
        check_step(&played, &draws, t);
        episodes += run->step[t] >> 3 & 1;
    }
    assert_int_equal(draws.used, run->head.draws);
    assert_int_equal(episodes, run->head.episodes);
    assert_int_equal(played.crc, run->head.crc);
}

static uint32_t check_file(const char *game, const tt_buf_t *file)
{
    uint32_t runs, at = 16;
    run_t run = {.game = game};
    memcpy(&runs, file->data + 8, sizeof runs);
    memcpy(&run.channels, file->data + 12, sizeof run.channels);
    for (; run.run < runs; run.run++) {
        assert_true(at + sizeof run.head <= file->size);
        memcpy(&run.head, file->data + at, sizeof run.head);
        run.step = (const uint8_t *)file->data + at + sizeof run.head;
        run.seen = run.step + run.head.steps;
        run.drawn = run.seen + run.head.steps;
        at += (uint32_t)sizeof run.head + ((2 * run.head.steps + run.head.draws + 3) & ~3u);
        assert_true(at <= file->size && run.head.steps >= 2000);
        check_run(&run);
    }
    assert_int_equal(at, file->size);
    return runs;
}

static void check_game(const char *game)
{
    char path[512];
    tt_buf_t file;
    snprintf(path, sizeof path, DIR "%s.bin", game);
    tt_buf_init(&file, 1 << 20);
    assert_ok(tt_buf_read_file(&file, path));
    assert_true(file.size >= 16);
    assert_memory_equal(file.data, "TTMNA\0\0\1", 8);
    assert_true(check_file(game, &file) >= 5);
    tt_buf_free(&file);
}

#define GAME_TEST(name, title)            \
    static void test_##name(void **state) \
    {                                     \
        (void)state;                      \
        check_game(title);                \
    }
GAME_TEST(asterix, "Asterix")
GAME_TEST(breakout, "Breakout")
GAME_TEST(freeway, "Freeway")
GAME_TEST(seaquest, "Seaquest")
GAME_TEST(space_invaders, "SpaceInvaders")

/*  --- in a vec, as they are collected --- */

enum { ENVS = 64 };

typedef struct {
    int32_t action[ENVS];
    float reward[ENVS];
    uint8_t terminated[ENVS], truncated[ENVS];
} io_t;

static const tt_env_ops_t *find(const char *id)
{
    const tt_env_ops_t *ops = NULL;
    assert_ok(tt_env_find(&ops, id));
    return ops;
}

static uint32_t s_random;

static uint32_t random_below(uint32_t n)
{
    s_random = s_random * 1664525 + 1013904223;
    return (uint32_t)(((uint64_t)s_random * n) >> 32);
}

static void random_step(const range_t *range, io_t *io)
{
    for (uint32_t i = 0; i < range->count; i++)
        io->action[i] = (int32_t)random_below((uint32_t)range->ops->action.n[0]);
    assert_ok(range_step(range, io->action, io->reward, io->terminated, io->truncated));
}

/*  The mean return of a player that does anything at all. Each env plays as many episodes: short ones count no more. */
static double random_return(const char *id, uint32_t episodes)
{
    io_t io = {0};
    double all = 0, now[ENVS] = {0};
    uint32_t done[ENVS] = {0}, left = ENVS;
    RANGE range = range_open(find(id), 1, 0, ENVS);
    s_random = 1;
    while (left) {
        random_step(&range, &io);
        for (uint32_t i = 0; i < ENVS; i++) {
            now[i] += (double)io.reward[i];
            if (!(io.terminated[i] | io.truncated[i]) || done[i] == episodes)
                continue;
            all += now[i];
            now[i] = 0;
            left -= ++done[i] == episodes;
        }
    }
    return all / (ENVS * (double)episodes);
}

/*  MinAtar's README: 0.5 within 0.02 over 1000 episodes, with all six actions. */
static void test_a_random_player_of_breakout(void **state)
{
    (void)state;
    const double mean = random_return("MinAtar/Breakout-v0", 16), more = random_return("MinAtar/Breakout-v0", 200);
    print_message("a random player gets %.3f over 1024 episodes, %.4f over 12800\n", mean, more);
    assert_true(fabs(mean - 0.5) <= 0.02);
    assert_true(fabs(more - 0.5) <= 0.02);
}

/*  Freeway's time is up after 2500 steps, and that is an end, not a cut. */
static void test_freeway_ends(void **state)
{
    (void)state;
    io_t io;
    RANGE range = range_open(find("MinAtar/Freeway-v1"), 1, 0, 1);
    for (int t = 0; t < 2 * 2501; t++) {
        random_step(&range, &io);
        assert_int_equal(io.terminated[0], t % 2501 == 2500);
        assert_int_equal(io.truncated[0], 0);
    }
}

/*  --- saved states: data from outside --- */

static uint32_t next_random(tt_env_rng_t *rng)
{
    (void)rng;
    return random_below(UINT32_MAX);
}

/*  What is shown: zeros and ones, and nothing before or behind the observation has been touched. */
static void check_shown(const uint8_t *room, uint32_t size)
{
    for (uint32_t i = 0; i < 3 * MOST_OBS; i++)
        if (i >= MOST_OBS && i < MOST_OBS + size ? room[i] > 1 : room[i] != 0xee)
            fail_msg("byte %d of an observation of %u is %u", (int)i - MOST_OBS, size, room[i]);
}

/*  False: it is not let in. Else it can be played, whatever it is. */
static bool plays_on(const tt_env_ops_t *ops, const unsigned char *bytes)
{
    _Alignas(16) unsigned char state[MOST_STATE] = {0};
    static uint8_t room[3 * MOST_OBS];
    tt_env_rng_t rng = {.next = next_random};
    void *leaf = room + MOST_OBS;
    assert_null(ops->init(state, NULL));
    if (ops->load(state, bytes) != 0)
        return false;
    memset(room, 0xee, sizeof room);
    for (int t = 0; t < 40; t++) {
        const int32_t choice = (int32_t)random_below((uint32_t)ops->action.n[0]);
        const void *action = &choice;
        tt_env_out_t out = {.obs = &leaf};
        ops->step(state, &action, &rng, &out);
        check_shown(room, SIDE * SIDE * ops->obs.shape[2]);
        if (out.terminated)
            ops->reset(state, &rng, &(tt_env_out_t){.obs = &leaf});
    }
    return true;
}

static void check_damaged(const tt_env_ops_t *ops)
{
    enum { ROUNDS = 1000 };
    unsigned char good[MOST_OBS + MOST_STATE], bad[MOST_STATE];
    const size_t at = tt_vec_save_size(ops, 1) - ops->save_size;
    uint32_t taken = 0;
    io_t io;
    assert_true(at + ops->save_size <= sizeof good && ops->save_size <= sizeof bad && ops->state_size <= MOST_STATE);
    RANGE from = range_open(ops, 3, 0, 1);
    for (int k = 0; k < ROUNDS; k++) {
        random_step(&from, &io);
        tt_vec_save(from.vec, 0, good);
        memcpy(bad, good + at, ops->save_size);
        assert_true(plays_on(ops, bad));
        for (uint32_t i = 1 + random_below(3); i > 0; i--) /* anywhere in it: any byte, or one that is nearly right */
            bad[random_below((uint32_t)ops->save_size)] =
                (uint8_t)(random_below(2) ? random_below(256) : random_below(12));
        taken += plays_on(ops, bad);
    }
    assert_in_range(taken, 1, ROUNDS - 1);
}

static void test_a_damaged_state_is_refused_or_can_be_played(void **state)
{
    (void)state;
    static const char *const ids[] = {"MinAtar/Asterix-v1", "MinAtar/Breakout-v1", "MinAtar/Freeway-v0",
        "MinAtar/Seaquest-v1", "MinAtar/SpaceInvaders-v1"};
    for (size_t i = 0; i < TT_COUNT(ids); i++)
        check_damaged(find(ids[i]));
}

/*  --- arguments --- */

static tt_status_t open_with(range_t *range, const char *key, const char *value)
{
    const tt_env_arg_t args[] = {{key, value}, {0}};
    return range_try(range, find("MinAtar/Breakout-v1"), args, (tt_vec_cfg_t){.seed = 1, .count = 1});
}

static void test_a_wrong_argument_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *key, *value, *words;
    } cases[] = {
        {"sticky_action_prob", "1.5", "sticky_action_prob must be a number from 0 to 1"},
        {"sticky_action_prob", "-0.1", "sticky_action_prob must be"},
        {"sticky_action_prob", "nan", "sticky_action_prob must be"},
        {"sticky_action_prob", "often", "sticky_action_prob must be"},
        {"difficulty_ramping", "maybe", "difficulty_ramping must be true or false"},
        {"sticky", "0", "it takes sticky_action_prob, difficulty_ramping"},
    };
    for (size_t i = 0; i < TT_COUNT(cases); i++) {
        RANGE range = {0};
        assert_true(open_with(&range, cases[i].key, cases[i].value) != TT_OK);
        if (!strstr(tt_err_text(), cases[i].words))
            fail_msg("'%s' lacks '%s'", tt_err_text(), cases[i].words);
    }
}

/*  With 1 the paddle never moves: the action that sticks is the first one, which is none. */
static void test_an_action_that_always_sticks(void **state)
{
    (void)state;
    io_t io = {.action = {1}};
    RANGE range = {0};
    assert_ok(open_with(&range, "sticky_action_prob", "1"));
    for (int t = 0; t < 100; t++) {
        assert_ok(range_step(&range, io.action, io.reward, io.terminated, io.truncated));
        assert_int_equal(((const uint8_t *)tt_vec_obs(range.vec)[0])[(9 * SIDE + 4) * 4], 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_asterix),
        cmocka_unit_test(test_breakout),
        cmocka_unit_test(test_freeway),
        cmocka_unit_test(test_seaquest),
        cmocka_unit_test(test_space_invaders),
        cmocka_unit_test(test_a_random_player_of_breakout),
        cmocka_unit_test(test_freeway_ends),
        cmocka_unit_test(test_a_damaged_state_is_refused_or_can_be_played),
        cmocka_unit_test(test_a_wrong_argument_is_named),
        cmocka_unit_test(test_an_action_that_always_sticks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
