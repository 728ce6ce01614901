#include "tests/replay/frames.h"
#include <string.h>
#include "tests/test.h"

enum { ROW_MAX = FRAMES_STACK * 16 };

/*  A frame, and what it must be. */
typedef struct {
    const naive_t *naive;
    const replay_t *replay;
    uint64_t id;
    replay_frame_t which;
    uint32_t env, episode, index, back;
} frame_t;

static void s_check_image(const frame_t *frame)
{
    const uint32_t stack = frame->naive->cfg.stack;
    uint8_t got[FRAMES_STACK][4] = {{0}}, want[FRAMES_STACK][4] = {{0}};
    replay_gather(frame->replay, &frame->id, 1, frame->which, frame->naive->world->image, got);
    naive_stack(frame->naive, frame->env, frame->episode, frame->index, frame->back, want);
    assert_memory_equal(got, want, stack * sizeof *got);
}

/*  As a network reads it: the images of all frames, then their vectors. */
static void s_check_row(const frame_t *frame)
{
    const uint32_t stack = frame->naive->cfg.stack;
    uint8_t got[ROW_MAX], image[FRAMES_STACK][4];
    assert_int_equal(frame->naive->world->columns->row, stack * 16);
    replay_gather_rows(frame->replay, &frame->id, 1, frame->which, got);
    naive_stack(frame->naive, frame->env, frame->episode, frame->index, frame->back, image);
    assert_memory_equal(got, image, stack * sizeof *image);
    for (uint32_t k = 0; k < stack; k++) {
        float vector[3] = {0};
        const bool there = k <= frame->back;
        if (there || frame->naive->cfg.pad == TT_PAD_RESET)
            world_vector(frame->env, frame->episode, frame->index - (there ? k : frame->back), vector);
        assert_memory_equal(got + 4 * stack + (stack - 1 - k) * sizeof vector, vector, sizeof vector);
    }
}

/*  The same normalised: the vector of each frame that there is; images, and zeros before an episode, stay. */
static void s_check_scaled(const frame_t *frame)
{
    const uint32_t stack = frame->naive->cfg.stack;
    const bool zeros = frame->naive->cfg.pad == TT_PAD_ZERO;
    uint8_t raw[ROW_MAX], got[ROW_MAX];
    tt_norm_t *norm = tt_norm_new(3);
    assert_ok(tt_norm_load(norm, (double[7]){100, 1, -2, 3, 400, 25, 900}, 7));
    replay_gather_rows(frame->replay, &frame->id, 1, frame->which, raw);
    replay_gather_scaled(frame->replay, &frame->id, 1, frame->which, norm, 2.5f, got);
    assert_memory_equal(got, raw, 4 * stack);
    for (uint32_t k = 0; k < stack; k++) {
        float *vector = (float *)(raw + 4 * stack) + 3 * k;
        if (!zeros || stack - k <= frame->back + 1)
            tt_norm_scale(norm, vector, 1, 2.5f, vector);
        assert_memory_equal(got + 4 * stack + 12 * k, vector, 12);
    }
    tt_norm_destroy(&norm);
}

/*  Of what is not a row there is only what is kept. */
static void s_check_columns(const frame_t *frame, const naive_row_t *row)
{
    const world_t *world = frame->naive->world;
    const void *column[TT_COLUMNS_MAX];
    float vector[3];
    uint8_t image[4];
    world_vector(frame->env, frame->episode, frame->index, vector);
    world_image(frame->env, frame->episode, frame->index, image);
    replay_row(frame->replay, frame->id, frame->which, column);
    assert_memory_equal(column[world->vector], vector, sizeof vector);
    assert_memory_equal(column[world->image], image, sizeof image);
    assert_null(column[world->columns->log_prob]);
    assert_null(column[world->columns->value]);
    if (frame->which != REPLAY_AT || row->clock == world->batches * world->T) {
        assert_null(column[world->action]);
        assert_null(column[world->columns->reward]);
    } else {
        assert_int_equal(*(const int32_t *)column[world->action], (row->clock + row->env) % 3);
        assert_true(*(const float *)column[world->columns->reward] == world->row[row->env][row->clock].reward);
    }
}

void frames_check(
    const naive_t *naive, const replay_t *replay, uint64_t id, replay_frame_t which, const naive_row_t *row)
{
    frame_t frame = {.naive = naive, .replay = replay, .id = id, .which = which, .env = row->env};
    frame.episode = row->episode;
    frame.index = which == REPLAY_NEXT ? row->next : row->at + (which == REPLAY_FINAL);
    frame.back = which == REPLAY_NEXT ? row->next_back : row->at_back + (which == REPLAY_FINAL);
    s_check_columns(&frame, row);
    s_check_row(&frame);
    s_check_scaled(&frame);
    s_check_image(&frame);
}
