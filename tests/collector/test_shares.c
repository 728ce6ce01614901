/*  Shares of a herd (herd.h), each at its own pace, against the whole moved at once. */
#include <string.h>
#include "collector/rollout.h"
#include "collector/vec.h"
#include "tests/collector/herd.h"
#include "tests/collector/world.h"

enum { BATCHES = 3, CUTS = 3 };

/*  Batches of 7 envs of a herd, which is cut into segments of `most`, moves in shares so wide, and is looked at after each `slice` steps. */
static void s_play_herd(
    const world_t *w, uint32_t wide, uint32_t most, uint32_t slice, played_t segment[BATCHES][CUTS], uint32_t *parts)
{
    herd.wide = wide;
    ROLLOUT *rollout = world_rollout_cut(w, 0, 7, most);
    *parts = rollout_segments(rollout);
    assert_true(*parts <= CUTS);
    for (int b = 0; b < BATCHES; b++) {
        rollout_segment_t played[CUTS];
        played_all(rollout, slice, played);
        for (uint32_t p = 0; p < *parts; p++)
            segment[b][p] = played_take(&played[p]);
    }
}

static void s_assert_shares_are_the_whole(const world_t *w, uint32_t wide, uint32_t most, uint32_t slice)
{
    played_t whole[BATCHES][CUTS], shares[BATCHES][CUTS];
    uint32_t parts;
    s_play_herd(w, 0, most, 1, whole, &parts);
    assert_int_equal(herd.apart, 0);
    s_play_herd(w, wide, most, slice, shares, &parts);
    assert_true(herd.apart >= BATCHES * w->steps);
    herd.apart = 0;
    for (int b = 0; b < BATCHES; b++)
        for (uint32_t p = 0; p < parts; p++) {
            assert_int_equal(whole[b][p].shape.K, shares[b][p].shape.K);
            assert_part(&whole[b][p], 0, &shares[b][p]);
            played_close(&whole[b][p]);
            played_close(&shares[b][p]);
        }
}

/*  Every number: actions, estimates, truncations in their order, stacks, states; with one segment, and with such as do not end where a share does. */
static void s_assert_every_way(tt_actor_t actor, uint32_t frames, tt_tower_kind_t rnn)
{
    for (int way = 0; way < 8; way++) {
        memset(&herd, 0, sizeof herd);
        herd.begins = way & 1;
        herd.swaps = way & 2;
        herd.ready = way & 4;
        WORLD w = world_recurrent(&herd_ops.env, 10, true, actor, frames, TT_PAD_ZERO, rnn);
        s_assert_shares_are_the_whole(&w, 3, 7, 1);
        s_assert_shares_are_the_whole(&w, 1, 7, UINT32_MAX);
        s_assert_shares_are_the_whole(&w, 4, 3, 4);
    }
    memset(&herd, 0, sizeof herd);
}

static void test_shares_are_the_whole(void **state)
{
    (void)state;
    const tt_actor_t actors[] = {{0}, {.kind = TT_ACT_ARGMAX, .epsilon = 0.5, .epsilon_end = 0.5}};
    for (size_t a = 0; a < TT_COUNT(actors); a++)
        for (uint32_t frames = 1; frames <= 3; frames += 2)
            s_assert_every_way(actors[a], frames, TT_TOWER_MLP);
}

/*  What is carried is each env's own, wherever its share is. */
static void test_shares_that_carry_are_the_whole(void **state)
{
    (void)state;
    s_assert_every_way((tt_actor_t){0}, 1, TT_TOWER_LSTM);
    s_assert_every_way((tt_actor_t){0}, 3, TT_TOWER_GRU);
}

/*  A state that a batch could not save is an env that begins anew, and nothing is carried into it. */
static void test_who_begins_anew_carries_nothing(void **state)
{
    (void)state;
    memset(&herd, 0, sizeof herd);
    WORLD w = world_recurrent(&herd_ops.env, 10, false, (tt_actor_t){0}, 1, TT_PAD_RESET, TT_TOWER_GRU);
    ROLLOUT *rollout = world_rollout(&w, 0, 7);
    PLAYED first = played_one(rollout, UINT32_MAX);
    const size_t each = rollout_state_bytes(rollout), C = w.columns->carry, carried = C * sizeof(float);
    static const float zeros[7 * 64];
    for (uint32_t i = 0; i < 7; i++) /* behind what the vec keeps of it */
        memset(first.at.states + (i + 1) * each - carried - herd_ops.env.save_size, 0, herd_ops.env.save_size);
    assert_memory_not_equal(first.at.states + 7 * each - carried, zeros, carried);
    assert_ok(rollout_load(rollout, first.at.states, 7 * each));
    PLAYED next = played_one(rollout, UINT32_MAX);
    assert_int_equal(next.at.age[6], 0);
    assert_memory_equal(next.at.carry, zeros, 7 * carried);
}

/*  A batch is given up while shares play, of which some are ahead of others: what comes of it is nobody's, and stacks go on as if it had
 *  not been. */
static void s_abandon_shares(uint32_t frames, tt_tower_kind_t rnn)
{
    memset(&herd, 0, sizeof herd);
    herd.wide = 3;
    herd.swaps = true;
    WORLD w = world_recurrent(&herd_ops.env, 10, false, (tt_actor_t){0}, frames, TT_PAD_ZERO, rnn);
    assert_no_trace(&w, 7, 4);
}

static void test_shares_that_play_are_abandoned(void **state)
{
    (void)state;
    s_abandon_shares(1, TT_TOWER_MLP);
    s_abandon_shares(3, TT_TOWER_MLP);
    s_abandon_shares(1, TT_TOWER_LSTM);
}

/*  Who leaves in the middle of a step waits for it, so that the envs are whole and may be drawn upon; of those that fail in it nothing stays. */
static void test_shares_that_play_are_left(void **state)
{
    (void)state;
    bool done;
    memset(&herd, 0, sizeof herd);
    herd.wide = 3;
    WORLD w = world_acting(&herd_ops.env, 10, (tt_actor_t){0});
    ROLLOUT *rollout = world_rollout(&w, 0, 7);
    assert_ok(rollout_begin(rollout));
    assert_ok(rollout_play(rollout, 1, &done));
    tt_vec_t *vec = rollout_leave(&rollout);
    assert_non_null(vec);
    char state_of_0[256];
    assert_ok(tt_vec_save(vec, 0, state_of_0));
    tt_vec_destroy(&vec);
    rollout = world_rollout(&w, 0, 7);
    assert_ok(rollout_begin(rollout));
    assert_ok(rollout_play(rollout, 1, &done));
    herd.fail_recv = "it was killed";
    assert_null(rollout_leave(&rollout));
    assert_int_equal(herd.opened, herd.closed);
    memset(&herd, 0, sizeof herd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shares_are_the_whole),
        cmocka_unit_test(test_shares_that_carry_are_the_whole),
        cmocka_unit_test(test_who_begins_anew_carries_nothing),
        cmocka_unit_test(test_shares_that_play_are_abandoned),
        cmocka_unit_test(test_shares_that_play_are_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
