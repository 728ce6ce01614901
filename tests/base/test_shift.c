/*  Pictures that are shifted where they lie, and number by number: both come to what a picture padded with its edges and cropped is. */
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/base/shift.h"
#include "tests/draws.h"
#include "tests/test.h"

enum { ROWS = 5 };

/*  Padded by the word: each place of `pad` around it is the nearest one of the picture. */
static void s_naive(const tt_shift_t *shift, const int8_t by[2], const uint8_t *from, uint8_t *to)
{
    const int height = (int)shift->height, width = (int)shift->width;
    for (uint32_t p = 0; p < shift->planes; p++)
        for (int y = 0; y < height; y++)
            for (int x = 0; x < width; x++) {
                int sy = y + by[0], sx = x + by[1];
                while (sy < 0)
                    sy++;
                while (sy >= height)
                    sy--;
                while (sx < 0)
                    sx++;
                while (sx >= width)
                    sx--;
                const size_t plane = (size_t)p * shift->height;
                memcpy(to + ((plane + (size_t)y) * shift->width + (size_t)x) * shift->place,
                    from + ((plane + (size_t)sy) * shift->width + (size_t)sx) * shift->place, shift->place);
            }
}

static void s_numbers(const tt_shift_t *shift, const int8_t by[2], const uint8_t *from, uint8_t *to)
{
    for (uint32_t e = 0; e < tt_shift_bytes(shift); e++)
        to[e] = from[tt_shift_from(e, shift->height, shift->width, shift->place, by[0], by[1])];
}

static void s_check(draws_t *draws, uint32_t most)
{
    int8_t by[ROWS][2];
    const tt_shift_t shift = {.at = draws_below(draws, 9),
        .planes = 1 + draws_below(draws, 4),
        .height = 1 + draws_below(draws, 9),
        .width = 1 + draws_below(draws, 9),
        .place = 1 + draws_below(draws, 12),
        .by = (const int8_t(*)[2])by};
    const size_t bytes = tt_shift_bytes(&shift), row = shift.at + bytes + draws_below(draws, 5);
    uint8_t *rows = tt_array0(ROWS, row), *want = tt_array0(ROWS, row), *numbers = tt_array0(1, bytes);
    for (size_t b = 0; b < ROWS * row; b++)
        want[b] = rows[b] = (uint8_t)draws_word(draws);
    for (uint32_t i = 0; i < ROWS; i++) {
        by[i][0] = (int8_t)((int)draws_below(draws, 2 * most + 1) - (int)most);
        by[i][1] = (int8_t)((int)draws_below(draws, 2 * most + 1) - (int)most);
        s_naive(&shift, by[i], rows + i * row + shift.at, want + i * row + shift.at);
        s_numbers(&shift, by[i], rows + i * row + shift.at, numbers);
        assert_memory_equal(numbers, want + i * row + shift.at, bytes);
        tt_shift_row(&shift, i, rows + i * row);
    }
    assert_memory_equal(rows, want, ROWS * row); /* and nothing beside the pictures */
    free(rows);
    free(want);
    free(numbers);
}

static void test_any_picture(void **state)
{
    (void)state;
    draws_t draws = {.seed = 7};
    for (int i = 0; i < 400; i++)
        s_check(&draws, 1 + (uint32_t)i % 6);
}

/*  Farther than the picture is wide: its edge alone. */
static void test_too_far(void **state)
{
    (void)state;
    draws_t draws = {.seed = 8};
    for (int i = 0; i < 100; i++)
        s_check(&draws, 127);
}

static void test_places(void **state)
{
    (void)state;
    static const struct {
        uint32_t place;
        int by;
        uint32_t want;
    } cases[] = {{0, -1, 0}, {0, 0, 0}, {0, 4, 4}, {3, -3, 0}, {3, -4, 0}, {3, 1, 4}, {3, 2, 4}, {4, 1, 4},
        {4, -128, 0}, {4, 127, 4}};
    for (size_t i = 0; i < TT_COUNT(cases); i++)
        assert_int_equal(tt_shifted(cases[i].place, cases[i].by, 5), cases[i].want);
    assert_int_equal(tt_shifted(UINT32_MAX - 1, 1, UINT32_MAX), UINT32_MAX - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_picture),
        cmocka_unit_test(test_too_far),
        cmocka_unit_test(test_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
