/*  A table's rows are on the card what they are here, however they were put; and a frame that many rows show goes there once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/base/stack.h"
#include "common/nn/cuda/cuda.h"
#include "tests/simt/count.h"
#include "tests/test.h"

enum { FRAMES = 4, STEPS = 50, BYTES = 24 };

typedef struct {
    tt_device_t *device;
    tt_stream_t *stream;
    tt_table_t *table;
    uint8_t frame[STEPS + FRAMES][BYTES];
} fixture_t;

static const tt_stack_t s_stack = {.frames = FRAMES, .parts = 2, .part = {{0, 0, 16}, {16, 16 * FRAMES, 8}}};

static int open_card(void **state)
{
    fixture_t *self = tt_new0(sizeof *self);
    for (size_t i = 0; i < sizeof self->frame; i++)
        ((uint8_t *)self->frame)[i] = (uint8_t)(i * 7 + i / 251);
    *state = self;
    return cuda_backend.open(&self->device, 0, 1) == TT_OK && tt_stream_new(&self->stream, self->device) == TT_OK &&
                   tt_table_new(&self->table, self->device, sizeof self->frame[0] * FRAMES) == TT_OK
               ? 0
               : -1;
}

static int close_card(void **state)
{
    fixture_t *self = *state;
    tt_table_destroy(&self->table);
    tt_stream_destroy(&self->stream);
    tt_device_close(&self->device);
    free(self);
    return 0;
}

/*  What the table has on the card. */
static void assert_rows(const fixture_t *self, const void *expected, size_t rows)
{
    const cudaStream_t stream = ((const cuda_device_t *)self->device)->work;
    const size_t bytes = rows * BYTES * FRAMES;
    void *here = NULL;
    assert_int_equal(cudaMallocHost(&here, bytes), cudaSuccess);
    assert_int_equal(cudaMemcpyAsync(here, self->table->copy, bytes, cudaMemcpyDeviceToHost, stream), cudaSuccess);
    assert_int_equal(cudaStreamSynchronize(stream), cudaSuccess);
    assert_memory_equal(here, expected, bytes);
    cudaFreeHost(here);
}

/*  Row k shows frames k .. k + FRAMES - 1; the list of all, and the rows that they make. Caller frees both. */
static const void **new_list(fixture_t *self, uint32_t rows, uint8_t **expected)
{
    const void **list = tt_array0((size_t)rows * FRAMES, sizeof *list);
    *expected = tt_array0(rows, (size_t)BYTES * FRAMES);
    for (uint32_t r = 0; r < rows; r++) {
        for (uint32_t k = 0; k < FRAMES; k++)
            list[r * FRAMES + k] = self->frame[r + k];
        tt_stack_row(&s_stack, list + (size_t)r * FRAMES, *expected + (size_t)r * BYTES * FRAMES);
    }
    return list;
}

static void a_frame_goes_over_once(void **state)
{
    fixture_t *self = *state;
    for (uint32_t rows = 1; rows <= STEPS; rows += 7) {
        uint8_t *expected;
        const void **list = new_list(self, rows, &expected);
        const uint64_t before = simt_count().up;
        assert_ok(tt_table_put_frames(self->table, self->stream, &s_stack, list, rows));
        assert_rows(self, expected, rows);
        const size_t listed = tt_align(rows * FRAMES * sizeof(uint32_t), 64), frames = rows + FRAMES - 1;
        assert_int_equal(simt_count().up - before, listed + frames * BYTES);
        free(list);
        free(expected);
    }
}

/*  One frame stands for those that never were, in every row. */
static void one_frame_for_all(void **state)
{
    fixture_t *self = *state;
    const void *list[STEPS * FRAMES];
    uint8_t expected[STEPS][BYTES * FRAMES];
    for (uint32_t i = 0; i < STEPS * FRAMES; i++)
        list[i] = self->frame[3];
    for (uint32_t r = 0; r < STEPS; r++)
        tt_stack_row(&s_stack, list, expected[r]);
    assert_ok(tt_table_put_frames(self->table, self->stream, &s_stack, list, STEPS));
    assert_rows(self, expected, STEPS);
}

/*  Of none at all, too, between others. */
static void rows_however_they_lie(void **state)
{
    fixture_t *self = *state;
    uint8_t *expected;
    const void **list = new_list(self, STEPS, &expected), *row[STEPS];
    for (uint32_t r = 0; r < STEPS; r++)
        row[r] = expected + (size_t)r * BYTES * FRAMES;
    assert_ok(tt_table_put_frames(self->table, self->stream, &s_stack, list, 0));
    assert_ok(tt_table_put_rows(self->table, self->stream, row, STEPS));
    assert_rows(self, expected, STEPS);
    assert_ok(tt_table_put_frames(self->table, self->stream, &s_stack, list, 5));
    assert_ok(tt_table_put(self->table, self->stream, expected + BYTES, STEPS - 1));
    assert_rows(self, expected + BYTES, STEPS - 1);
    free(list);
    free(expected);
}

/*  The first time exactly what is asked for; and when it grows, twice that only where it fits. */
static void what_fits_once(void **state)
{
    fixture_t *self = *state;
    enum { ROWS = 10000, MORE = 500 };
    const size_t bytes = (size_t)(ROWS + MORE) * BYTES * FRAMES;
    uint8_t *rows = tt_array0(bytes, 1);
    size_t free_bytes, total;
    char limit[32];
    for (size_t i = 0; i < bytes; i++)
        rows[i] = (uint8_t)(i * 11 + i / 253);
    assert_int_equal(cudaMemGetInfo(&free_bytes, &total), cudaSuccess);
    snprintf(limit, sizeof limit, "%zu", total - free_bytes + bytes + bytes / 2);
    setenv("TT_SIMT_MEMORY", limit, 1);
    assert_ok(tt_table_put(self->table, self->stream, rows, ROWS));
    assert_rows(self, rows, ROWS);
    assert_ok(tt_table_put(self->table, self->stream, rows, ROWS + MORE));
    assert_rows(self, rows, ROWS + MORE);
    unsetenv("TT_SIMT_MEMORY");
    free(rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(a_frame_goes_over_once, open_card, close_card),
        cmocka_unit_test_setup_teardown(one_frame_for_all, open_card, close_card),
        cmocka_unit_test_setup_teardown(rows_however_they_lie, open_card, close_card),
        cmocka_unit_test_setup_teardown(what_fits_once, open_card, close_card)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
