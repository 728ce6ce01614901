/*  Rows of what is carried: whose are made zeros, and which bytes are one. */
#include "collector/carry.h"
#include <math.h>
#include <string.h>
#include "tests/test.h"

enum { ENVS = 5, CARRY = 3 };

static carry_t s_open(tt_columns_t *columns, uint32_t floats)
{
    carry_t self;
    *columns = (tt_columns_t){.carry = floats};
    carry_init(&self, columns, ENVS);
    for (uint32_t i = 0; i < ENVS * floats; i++) {
        assert_true(self.at[i] == 0);
        self.at[i] = (float)i + 1;
    }
    return self;
}

/*  Terminated, truncated or both; nobody else's row, whichever env the flags begin with. */
static void test_ends(void **state)
{
    (void)state;
    const uint8_t terminated[] = {0, 1, 0, 1}, truncated[] = {0, 0, 1, 1};
    tt_columns_t columns;
    carry_t carry = s_open(&columns, CARRY);
    assert_int_equal(carry_bytes(&carry), 12);
    carry_end(&carry, 1, 4, terminated, truncated);
    for (uint32_t i = 0; i < ENVS * CARRY; i++)
        assert_true(carry.at[i] == (i < 2 * CARRY ? (float)i + 1 : 0));
    carry_free(&carry);
    assert_null(carry.at);
}

/*  What comes out of a step takes the place of what went in. */
static void test_steps(void **state)
{
    (void)state;
    tt_columns_t columns;
    carry_t carry = s_open(&columns, CARRY);
    const tt_carry_t step = carry_step(&carry, 2);
    assert_ptr_equal(step.in, carry.at + 6);
    assert_ptr_equal(step.out, carry.at + 6);
    assert_true(carry_row(&carry, 4)[2] == 15);
    carry_free(&carry);
}

static void test_loads(void **state)
{
    (void)state;
    const float bad[] = {NAN, INFINITY, -INFINITY};
    char bytes[1 + CARRY * sizeof(float)];
    tt_columns_t columns;
    carry_t carry = s_open(&columns, CARRY);
    memcpy(bytes + 1, (const float[]){-1, 0.5f, 7}, sizeof bytes - 1);
    assert_ok(carry_load(&carry, 3, bytes + 1, false));
    assert_memory_equal(carry_row(&carry, 3), bytes + 1, sizeof bytes - 1);
    assert_true(carry_row(&carry, 2)[2] == 9 && carry_row(&carry, 4)[0] == 13);
    assert_ok(carry_load(&carry, 3, bytes + 1, true));
    for (int k = 0; k < CARRY; k++)
        assert_true(carry_row(&carry, 3)[k] == 0);
    for (size_t i = 0; i < TT_COUNT(bad); i++) {
        memcpy(bytes + 1 + 8, &bad[i], sizeof bad[i]);
        assert_int_equal(carry_load(&carry, 3, bytes + 1, i > 0), TT_DATA);
    }
    carry_free(&carry);
}

/*  Where nothing is carried there are no rows, and nothing is done with them. */
static void test_none(void **state)
{
    (void)state;
    const uint8_t ended[ENVS] = {1, 1, 1, 1, 1};
    tt_columns_t columns;
    carry_t carry = s_open(&columns, 0);
    assert_null(carry_row(&carry, 3));
    assert_null(carry_step(&carry, 3).in);
    assert_int_equal(carry_bytes(&carry), 0);
    carry_end(&carry, 0, ENVS, ended, ended);
    assert_ok(carry_load(&carry, 3, NULL, false));
    carry_free(&carry);
}

static void test_fits(void **state)
{
    (void)state;
    tt_net_spec_t spec = tt_net_actor_critic(4, (const uint32_t[]){8}, 1, TT_NN_TANH, 2, 0);
    tt_columns_t columns = {.carry = 0};
    assert_ok(carry_check(&columns, &spec));
    tt_net_put_recurrent(&spec, TT_TOWER_LSTM, 6, false);
    assert_int_equal(carry_check(&columns, &spec), TT_INVALID);
    assert_string_equal(tt_err_text(), "the network carries 12 numbers from step to step, the job's 0");
    columns.carry = 12;
    assert_ok(carry_check(&columns, &spec));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_loads),
        cmocka_unit_test(test_none),
        cmocka_unit_test(test_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
