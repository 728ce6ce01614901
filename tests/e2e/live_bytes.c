/*  live_bytes - preloaded into every process of a run: counts the bytes of memory that are allocated and not freed.
 *
 *  Resident memory says what the allocator once took from the kernel; whether something grows is better asked of what lives.
 *  $TT_LIVE_BYTES names a folder; each process keeps one file there, named by its id, with one int64: the bytes, as
 *  malloc_usable_size has them. Threads: any. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int64_t s_before; /* until the file is there */
static int64_t *s_live = &s_before;

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *block);

static void s_open(void)
{
    char path[512];
    const char *folder = getenv("TT_LIVE_BYTES");
    if (!folder || snprintf(path, sizeof path, "%s/%d", folder, (int)getpid()) >= (int)sizeof path)
        return;
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, sizeof *s_live) != 0)
        return;
    int64_t *mapped = mmap(NULL, sizeof *s_live, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (mapped == MAP_FAILED)
        return;
    *mapped = __atomic_load_n(s_live, __ATOMIC_RELAXED);
    s_live = mapped;
}

__attribute__((constructor)) static void s_begin(void)
{
    s_open();
    pthread_atfork(NULL, NULL, s_open); /* a child that does not exec counts for itself */
}

static void *s_count(void *block, int64_t sign)
{
    if (block)
        __atomic_fetch_add(s_live, sign * (int64_t)malloc_usable_size(block), __ATOMIC_RELAXED);
    return block;
}

void *malloc(size_t size)
{
    return s_count(__libc_malloc(size), 1);
}

void *calloc(size_t count, size_t size)
{
    return s_count(__libc_calloc(count, size), 1);
}

void *realloc(void *block, size_t size)
{
    const int64_t before = block ? (int64_t)malloc_usable_size(block) : 0;
    void *moved = __libc_realloc(block, size);
    if (moved || size == 0)
        __atomic_fetch_sub(s_live, before, __ATOMIC_RELAXED);
    return s_count(moved, 1);
}

void *memalign(size_t alignment, size_t size)
{
    return s_count(__libc_memalign(alignment, size), 1);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
    void *block = memalign(alignment, size);
    if (!block)
        return ENOMEM;
    *out = block;
    return 0;
}

void free(void *block)
{
    s_count(block, -1);
    __libc_free(block);
}
