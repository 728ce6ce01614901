/*  A store on the card: the rows that the host would make of the frames, of which none goes over a second time. */
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/nn/cuda/cuda.h"
#include "tests/nn/store_fixture.h"
#include "tests/simt/count.h"

static int open_card(void **state)
{
    place_t *place = tt_new0(sizeof *place);
    *state = place;
    return cuda_backend.open(&place->device, 0, 1) == TT_OK && tt_stream_new(&place->stream, place->device) == TT_OK
               ? 0
               : -1;
}

static int close_card(void **state)
{
    place_t *place = *state;
    tt_stream_destroy(&place->stream);
    tt_device_close(&place->device);
    free(place);
    return 0;
}

static void rows_of_frames(void **state)
{
    store_check(*state);
}

/*  A minibatch of units: their numbers, in one copy. */
static void numbers_go_over_alone(void **state)
{
    enum { ROWS = 32, FRAMES = 4, BYTES = 4096, PLACES = 100 };
    static const tt_stack_t stack = {.frames = FRAMES, .parts = 1, .part = {{0, 0, BYTES}}};
    const place_t *place = *state;
    uint8_t *frames = tt_array0(PLACES, BYTES);
    uint32_t list[ROWS * FRAMES];
    tt_store_t *store;
    tt_table_t *table;
    assert_ok(tt_store_new(&store, place->device, BYTES, PLACES));
    assert_ok(tt_table_new(&table, place->device, (size_t)BYTES * FRAMES));
    assert_ok(tt_store_put(store, place->stream, 0, frames, PLACES));
    assert_ok(tt_stream_sync(place->stream));
    for (uint32_t i = 0; i < ROWS * FRAMES; i++)
        list[i] = i * 7 % PLACES;
    const simt_count_t before = simt_count();
    const tt_stored_t from = {.store = store, .stack = &stack, .place = list, .count = ROWS};
    assert_ok(tt_table_put_stored(table, place->stream, &from));
    assert_ok(tt_stream_sync(place->stream));
    assert_int_equal(simt_count().up - before.up, sizeof list);
    assert_int_equal(simt_count().copies - before.copies, 1);
    assert_int_equal(simt_count().kernels - before.kernels, 1);
    tt_table_destroy(&table);
    tt_store_destroy(&store);
    free(frames);
}

/*  With how far each row is moved: still one copy, and one more launch, for the picture. */
static void shifts_go_with_them(void **state)
{
    enum { ROWS = 32, FRAMES = 3, SIDE = 20, PLACES = 40 };
    static const tt_stack_t stack = {
        .frames = FRAMES, .parts = 2, .part = {{0, 0, SIDE * SIDE}, {SIDE * SIDE, FRAMES * SIDE * SIDE, 8}}};
    const place_t *place = *state;
    uint32_t list[ROWS * FRAMES] = {0};
    int8_t by[ROWS][2] = {{0}};
    tt_store_t *store;
    tt_table_t *table;
    assert_ok(tt_store_new(&store, place->device, SIDE * SIDE + 8, PLACES));
    assert_ok(tt_table_new(&table, place->device, (SIDE * SIDE + 8) * FRAMES));
    const simt_count_t before = simt_count();
    const tt_shift_t shift = {
        .planes = FRAMES, .height = SIDE, .width = SIDE, .place = 1, .by = (const int8_t(*)[2])by};
    const tt_stored_t from = {.store = store, .stack = &stack, .place = list, .shift = &shift, .count = ROWS};
    assert_ok(tt_table_put_stored(table, place->stream, &from));
    assert_ok(tt_stream_sync(place->stream));
    assert_int_equal(simt_count().up - before.up, sizeof list + sizeof by);
    assert_int_equal(simt_count().copies - before.copies, 1);
    assert_int_equal(simt_count().kernels - before.kernels, 2);
    tt_table_destroy(&table);
    tt_store_destroy(&store);
}

/*  More than is staged at once, and not a whole number of pieces. */
static void a_large_put(void **state)
{
    enum { BYTES = 1 << 20, PLACES = 21 };
    const place_t *place = *state;
    uint8_t *frames = tt_array0(PLACES, BYTES);
    void *here = NULL;
    tt_store_t *store;
    for (size_t i = 0; i < (size_t)PLACES * BYTES; i++)
        frames[i] = (uint8_t)(i * 11 + i / 509);
    assert_ok(tt_store_new(&store, place->device, BYTES, PLACES + 1));
    assert_ok(tt_store_put(store, place->stream, 1, frames, PLACES));
    assert_ok(tt_stream_sync(place->stream));
    const cudaStream_t stream = ((const cuda_device_t *)place->device)->work;
    const tt_store_t *inside = store;
    assert_int_equal(cudaMallocHost(&here, (size_t)PLACES * BYTES), cudaSuccess);
    assert_int_equal(
        cudaMemcpyAsync(here, inside->frames + BYTES, (size_t)PLACES * BYTES, cudaMemcpyDeviceToHost, stream),
        cudaSuccess);
    assert_int_equal(cudaStreamSynchronize(stream), cudaSuccess);
    assert_memory_equal(here, frames, (size_t)PLACES * BYTES);
    cudaFreeHost(here);
    tt_store_destroy(&store);
    free(frames);
}

/*  What does not fit is said in numbers, and the card goes on. */
/*  A replay that was loaded, batch by batch, and nobody waits: pinned memory for all of it there may not be. */
static void many_puts(void **state)
{
    enum { BYTES = 1 << 20, PUTS = 200 };
    const place_t *place = *state;
    const cuda_device_t *device = (const cuda_device_t *)place->device;
    uint8_t *frame = tt_array0(1, BYTES);
    tt_store_t *store;
    size_t pinned = 0;
    assert_ok(tt_store_new(&store, place->device, BYTES, 1));
    assert_ok(tt_stream_sync(place->stream));
    const simt_count_t before = simt_count();
    for (uint32_t i = 0; i < PUTS; i++) {
        frame[0] = (uint8_t)i;
        assert_ok(tt_store_put(store, place->stream, 0, frame, 1));
        tt_stream_let_go(place->stream);
    }
    for (uint32_t i = 0; i < device->staging.blocks; i++)
        pinned += device->staging.block[i].size;
    assert_true(pinned <= (size_t)256 << 20);
    const uint64_t waits = simt_count().waits - before.waits;
    assert_true(waits >= 1 && waits <= PUTS / 32);
    assert_ok(tt_stream_sync(place->stream));
    tt_store_destroy(&store);
    free(frame);
}

static void no_room(void **state)
{
    const place_t *place = *state;
    tt_store_t *store = NULL;
    const size_t unused = tt_device_free(place->device);
    assert_true(unused > 0);
    assert_int_equal(tt_store_new(&store, place->device, 1 << 20, unused / (1 << 20) + 64), TT_UNAVAILABLE);
    assert_non_null(strstr(tt_err_text(), "MiB asked for"));
    assert_null(store);
    assert_ok(tt_store_new(&store, place->device, 64, 16));
    tt_store_destroy(&store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(rows_of_frames, open_card, close_card),
        cmocka_unit_test_setup_teardown(numbers_go_over_alone, open_card, close_card),
        cmocka_unit_test_setup_teardown(shifts_go_with_them, open_card, close_card),
        cmocka_unit_test_setup_teardown(a_large_put, open_card, close_card),
        cmocka_unit_test_setup_teardown(many_puts, open_card, close_card),
        cmocka_unit_test_setup_teardown(no_room, open_card, close_card)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
