/*  mem - memory that is there or ends the process, and sizes that cannot overflow.
 *
 *  Out of memory aborts, and says so: a controller restarts us, and branches that nobody can test are worse than none.
 *  Threads: as malloc. */
#pragma once
#include <stddef.h>
#include <stdint.h>

/*  Zeroed memory of `size` bytes (size 0 gives a valid pointer). Free with free(). */
void *tt_new0(size_t size);

/*  Zeroed array of count elements; aborts on overflow. */
void *tt_array0(size_t count, size_t size);

/*  realloc that aborts; new bytes are not cleared. */
void *tt_realloc(void *memory, size_t size);

/*  Zeroed memory aligned to 64 bytes (a cache line, an AVX-512 register). Free with free(). */
void *tt_aligned0(size_t size);
/*  The same for what is read all over again and again: from 2 MiB on in huge pages, where the system gives them, all but its tail. */
void *tt_pages0(size_t size);

/*  Copies of a string; tt_strdup(NULL) is NULL. */
char *tt_strdup(const char *text);
char *tt_sprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*  Overwrite a string that nobody is to find in memory, then free it. NULL is fine. */
void tt_free_secret(char *text);

/*  a * b and a + b, checked: abort on overflow. For sizes from outside use tt_mul_ok first. */
size_t tt_mul(size_t a, size_t b);
size_t tt_add(size_t a, size_t b);
int tt_mul_ok(size_t a, size_t b, size_t *out);

/*  Round up to a multiple of align (a power of two). */
static inline size_t tt_align(size_t size, size_t align)
{
    return (size + align - 1) & ~(align - 1);
}
