/*  No memory left: the process ends, and says how much it wanted. And memory in large pages. */
#include "common/base/mem.h"
#include "tests/test.h"
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WANTED = 1 << 30 };

typedef void *(*make_fn)(size_t size);

static void *s_grow(size_t size)
{
    return tt_realloc(NULL, size);
}

/*  In a child whose address space ends before that. */
static void s_exhaust(make_fn make, int out)
{
    const struct rlimit core = {0}, limit = {.rlim_cur = WANTED, .rlim_max = WANTED};
    if (setrlimit(RLIMIT_CORE, &core) == 0 && setrlimit(RLIMIT_AS, &limit) == 0 && dup2(out, STDERR_FILENO) >= 0 &&
        signal(SIGABRT, SIG_DFL) != SIG_ERR)
        _exit(make(WANTED) != NULL);
    _exit(2);
}

static void s_check_says(make_fn make)
{
    int pipes[2], ended;
    char said[256] = {0};
    assert_int_equal(pipe(pipes), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        s_exhaust(make, pipes[1]);
    close(pipes[1]);
    size_t used = 0;
    for (ssize_t got; used + 1 < sizeof said && (got = read(pipes[0], said + used, sizeof said - 1 - used)) > 0;)
        used += (size_t)got;
    close(pipes[0]);
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_true(WIFSIGNALED(ended) && WTERMSIG(ended) == SIGABRT);
    assert_non_null(strstr(said, "out of memory: 1073741824 bytes"));
}

static void test_no_memory_left_is_said(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* their allocators end the process themselves, and want more address space than any limit leaves */
#endif
    s_check_says(tt_new0);
    s_check_says(s_grow);
    s_check_says(tt_aligned0);
    s_check_says(tt_pages0);
}

/*  In huge pages or not: zeros to the last byte, and on a cache line. */
static void test_pages_are_zeroed(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 4096, (2 << 20) - 1, 2 << 20, (2 << 20) + 1, (6 << 20) + 13};
    for (size_t i = 0; i < TT_COUNT(sizes); i++)
        for (int again = 0; again < 2; again++) { /* what was written is given back, and perhaps taken again */
            unsigned char *memory = tt_pages0(sizes[i]), any = 0;
            assert_int_equal((uintptr_t)memory % 64, 0);
            for (size_t k = 0; k < sizes[i]; k++)
                any |= memory[k];
            assert_int_equal(any, 0);
            memset(memory, 0xff, sizes[i]);
            free(memory);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_memory_left_is_said),
        cmocka_unit_test(test_pages_are_zeroed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
