#include "common/base/mem.h"
#include "common/base/status.h"
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <string.h>
#include <sys/mman.h>

/*  Nothing is wrong with the program, so it does not ask to be reported. */
static noreturn void s_none_left(size_t size)
{
    fprintf(
        stderr, "tutti: out of memory: %zu bytes were wanted; is there a limit (ulimit -v, a container's)?\n", size);
    abort();
}

void *tt_new0(size_t size)
{
    void *memory = calloc(1, size ? size : 1);
    if (!memory)
        s_none_left(size);
    return memory;
}

void *tt_array0(size_t count, size_t size)
{
    return tt_new0(tt_mul(count, size));
}

void *tt_realloc(void *memory, size_t size)
{
    void *grown = realloc(memory, size ? size : 1);
    if (!grown)
        s_none_left(size);
    return grown;
}

void *tt_aligned0(size_t size)
{
    const size_t rounded = tt_align(size ? size : 1, 64);
    void *memory = aligned_alloc(64, rounded);
    if (!memory)
        s_none_left(rounded);
    memset(memory, 0, rounded);
    return memory;
}

void *tt_pages0(size_t size)
{
    enum { HUGE_PAGE = 2 << 20 };
    if (size < HUGE_PAGE)
        return tt_aligned0(size);
    void *memory = NULL;
    if (posix_memalign(&memory, HUGE_PAGE, tt_align(size, 64)))
        s_none_left(size);
#ifdef MADV_HUGEPAGE
    madvise(memory, size / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE); /* where there are none, small ones serve */
#endif
    memset(memory, 0, size);
    return memory;
}

char *tt_strdup(const char *text)
{
    if (!text)
        return NULL;
    char *copy = strdup(text);
    if (!copy)
        s_none_left(strlen(text) + 1);
    return copy;
}

void tt_free_secret(char *text)
{
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
}

char *tt_sprintf(const char *fmt, ...)
{
    va_list ap;
    char *text = NULL;
    va_start(ap, fmt);
    const int length = vasprintf(&text, fmt, ap);
    va_end(ap);
    TT_CHECK(length >= 0);
    return text;
}

size_t tt_mul(size_t a, size_t b)
{
    size_t product = 0;
    const int fits = tt_mul_ok(a, b, &product);
    TT_CHECK(fits);
    return product;
}

size_t tt_add(size_t a, size_t b)
{
    size_t sum = 0;
    const bool over = __builtin_add_overflow(a, b, &sum);
    TT_CHECK(!over);
    return sum;
}

int tt_mul_ok(size_t a, size_t b, size_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}
