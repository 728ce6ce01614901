/*  Memory that another process reads: the same bytes, a size that stays, nothing else opened in its place. */
#include "common/base/memfd.h"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/test.h"

enum { SIZE = 8192 };

static tt_memfd_t s_made(size_t size)
{
    tt_memfd_t memory;
    assert_ok(tt_memfd_make(&memory, "test"));
    if (size)
        assert_ok(tt_memfd_size(&memory, size));
    return memory;
}

static tt_status_t s_map(tt_memfd_t *out, int fd, const char *name, size_t size)
{
    *out = (tt_memfd_t){.fd = -1};
    return tt_memfd_map(out, (uint32_t)getpid(), fd, name, size);
}

static void test_another_process_reads_it(void **state)
{
    (void)state;
    tt_memfd_t memory = s_made(SIZE);
    const uint32_t pid = (uint32_t)getpid();
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    memcpy(memory.at, "one", 4);
    const pid_t child = fork();
    if (child == 0) {
        tt_memfd_t seen = {.fd = -1};
        const int fd = memory.fd;
        munmap(memory.at, memory.size);
        close(memory.fd); /* it has to find the other's */
        bool right = tt_memfd_map(&seen, pid, fd, "test", SIZE) == TT_OK && strcmp(seen.at, "one") == 0;
        right = right && write(pipes[1], "x", 1) == 1;
        while (right && strcmp(seen.at, "two") != 0)
            __asm__ volatile("" ::: "memory");
        _exit(right ? 0 : 1);
    }
    char byte;
    int code = 0;
    assert_int_equal(read(pipes[0], &byte, 1), 1);
    memcpy(memory.at, "two", 4);
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_int_equal(code, 0);
    close(pipes[0]);
    close(pipes[1]);
    tt_memfd_drop(&memory);
}

/*  What was mapped stays, though its owner is gone. */
static void test_it_outlives_its_owner(void **state)
{
    (void)state;
    tt_memfd_t memory = s_made(SIZE), seen;
    memcpy(memory.at, "one", 4);
    assert_ok(s_map(&seen, memory.fd, "test", SIZE));
    tt_memfd_drop(&memory);
    assert_string_equal(seen.at, "one");
    tt_memfd_drop(&seen);
    assert_null(seen.at);
}

static void test_its_size_stays(void **state)
{
    (void)state;
    tt_memfd_t memory = s_made(SIZE);
    assert_int_not_equal(ftruncate(memory.fd, 0), 0);
    assert_int_not_equal(ftruncate(memory.fd, (off_t)2 * SIZE), 0);
    tt_memfd_drop(&memory);
}

static void test_what_is_not_taken(void **state)
{
    (void)state;
    tt_memfd_t memory = s_made(0), sized = s_made(SIZE), seen;
    const int other = open("/dev/null", O_RDWR | O_CLOEXEC);
    assert_int_equal(s_map(&seen, memory.fd, "test", SIZE), TT_NOT_FOUND); /* no size yet */
    assert_int_equal(s_map(&seen, sized.fd, "test", 2 * SIZE), TT_DATA);
    assert_int_equal(s_map(&seen, sized.fd, "tes", SIZE), TT_NOT_FOUND);
    assert_int_equal(s_map(&seen, other, "test", SIZE), TT_NOT_FOUND);
    assert_int_equal(s_map(&seen, 1000000, "test", SIZE), TT_NOT_FOUND);
    assert_null(seen.at);
    assert_int_equal(seen.fd, -1);
    close(other);
    tt_memfd_drop(&memory);
    tt_memfd_drop(&sized);
}

/*  One that may still shrink would kill its reader. */
static void test_one_that_may_shrink_is_not_taken(void **state)
{
    (void)state;
    tt_memfd_t seen;
    const int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_int_equal(ftruncate(fd, SIZE), 0);
    assert_int_equal(s_map(&seen, fd, "test", SIZE), TT_NOT_FOUND);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_another_process_reads_it),
        cmocka_unit_test(test_it_outlives_its_owner),
        cmocka_unit_test(test_its_size_stays),
        cmocka_unit_test(test_what_is_not_taken),
        cmocka_unit_test(test_one_that_may_shrink_is_not_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
