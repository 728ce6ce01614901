/*  pool: blocks of random sizes that come and go, none touching another; and all goes back to the system in the end. */
#include "common/base/pool.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tests/test.h"

enum { BLOCKS = 20000, TURNS = 400000 };

typedef struct {
    unsigned char *bytes;
    size_t size;
} block_t;

static uint32_t s_state = 1;

static uint32_t s_random(uint32_t below)
{
    s_state = s_state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)s_state * below >> 32);
}

static unsigned char s_mark(const block_t *block)
{
    return (unsigned char)(((uintptr_t)block->bytes >> 4) | 1);
}

static void s_make(block_t *block)
{
    block->size = s_random(50) ? 200 + s_random(300) : s_random(200000);
    block->bytes = tt_pool_new0(block->size);
    assert_int_equal((uintptr_t)block->bytes % 16, 0);
    for (size_t i = 0; i < block->size; i++)
        if (block->bytes[i])
            fail_msg("byte %zu of %zu is %d", i, block->size, block->bytes[i]);
    memset(block->bytes, s_mark(block), block->size);
}

static void s_drop(block_t *block)
{
    for (size_t i = 0; i < block->size; i++)
        if (block->bytes[i] != s_mark(block))
            fail_msg("byte %zu of %zu was overwritten", i, block->size);
    tt_pool_free(block->bytes);
    block->bytes = NULL;
}

/*  KiB of address space that this process has. */
static long s_address_space(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%ld", &pages), 1);
    fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void test_blocks_come_and_go(void **state)
{
    (void)state;
    block_t *blocks = calloc(BLOCKS, sizeof *blocks);
    tt_pool_free(tt_pool_new0(0));
    tt_pool_free(NULL);
    const long before = s_address_space();
    for (int i = 0; i < TURNS; i++) {
        block_t *block = &blocks[s_random(BLOCKS)];
        if (block->bytes)
            s_drop(block);
        else
            s_make(block);
    }
    for (int i = 0; i < BLOCKS; i++)
        if (blocks[i].bytes)
            s_drop(&blocks[i]);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    assert_int_equal(s_address_space(), before);
#else
    (void)before;
#endif
    free(blocks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_blocks_come_and_go)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
