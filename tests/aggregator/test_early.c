/*  early: what is ahead waits in order, within its limit, and not for ever. */
#include "aggregator/early.h"
#include <stdio.h>
#include <string.h>
#include "common/net/net.h"
#include "tests/test.h"

enum { SIZE = 1000 };

typedef struct {
    uint64_t roster; /* later generations are still ahead */
    bool take;       /* the frame, else it is left to be released */
    char seen[128];
} ctx_t;

static tt_status_t s_offer(void *ctx, const char *peer, const tt_msg_GRAD_t *grad, zmq_msg_t *frame)
{
    ctx_t *self = ctx;
    assert_int_equal(zmq_msg_size(frame), SIZE);
    if (grad->generation > self->roster)
        return TT_AGAIN;
    const size_t used = strlen(self->seen);
    snprintf(self->seen + used, sizeof self->seen - used, "%s:%u ", peer, (unsigned)grad->step);
    if (self->take)
        tt_frame_close(frame);
    return TT_OK;
}

static tt_status_t s_put(early_t *early, const char *peer, uint64_t generation, uint64_t step, int64_t now_ms)
{
    const tt_msg_GRAD_t grad = TT_MSG(GRAD, .era = 1, .generation = generation, .step = step);
    zmq_msg_t frame;
    tt_frame_new(&frame, SIZE);
    const tt_status_t status = early_put(early, peer, &grad, &frame, now_ms);
    assert_int_equal(zmq_msg_size(&frame), status == TT_OK ? 0 : SIZE);
    tt_frame_close(&frame);
    return status;
}

static void test_each_waits_for_its_roster(void **state)
{
    (void)state;
    early_t *early = early_new(100 * SIZE);
    ctx_t ctx = {.roster = 1};
    assert_ok(s_put(early, "a", 3, 7, 0));
    assert_ok(s_put(early, "a", 2, 5, 0));
    assert_ok(s_put(early, "b", 2, 6, 0));
    early_offer(early, s_offer, &ctx);
    assert_string_equal(ctx.seen, "");
    ctx.roster = 2;
    early_offer(early, s_offer, &ctx);
    assert_string_equal(ctx.seen, "a:5 b:6 ");
    ctx.roster = 3;
    ctx.take = true;
    early_offer(early, s_offer, &ctx);
    early_offer(early, s_offer, &ctx);
    assert_string_equal(ctx.seen, "a:5 b:6 a:7 ");
    early_destroy(&early);
    assert_null(early);
}

static void test_there_is_room_for_so_much_and_for_so_long(void **state)
{
    (void)state;
    early_t *early = early_new(3 * SIZE);
    ctx_t ctx = {.roster = 2};
    for (int round = 0; round < 3; round++) { /* the room comes back, whatever becomes of them */
        assert_ok(s_put(early, "a", 2, 1, 10));
        assert_ok(s_put(early, "b", 9, 2, 20));
        assert_ok(s_put(early, "b", 9, 3, 30));
        assert_int_equal(s_put(early, "b", 9, 4, 40), TT_AGAIN);
        ctx.take = round % 2;
        early_offer(early, s_offer, &ctx);
        assert_int_equal(early_expire(early, 19), 0);
        assert_int_equal(early_expire(early, 20), 1);
        assert_ok(s_put(early, "b", 9, 4, 40));
        assert_int_equal(early_expire(early, 40), 2);
    }
    assert_string_equal(ctx.seen, "a:1 a:1 a:1 ");
    assert_ok(s_put(early, "a", 9, 1, 10)); /* freed with the rest */
    early_destroy(&early);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_waits_for_its_roster),
        cmocka_unit_test(test_there_is_room_for_so_much_and_for_so_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
