#include "common/nn/strict/arena.h"
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "common/base/mem.h"
#include "common/base/status.h"

enum { MAPPING = 64 << 20, LINE = 64, LARGE = 2 << 20 };

typedef struct mapping {
    struct mapping *next;
    char *base;
    size_t size, used; /* bytes that are mapped, that were taken */
    size_t blocks;     /* of those taken, not yet given back     */
} mapping_t;

struct strict_arena {
    mapping_t *newest;
    size_t page;
    bool is_open;
};

strict_arena_t *strict_arena_new(void)
{
    strict_arena_t *self = tt_new0(sizeof *self);
    self->page = (size_t)sysconf(_SC_PAGESIZE);
    return self;
}

void strict_arena_destroy(strict_arena_t **self_p)
{
    if (*self_p)
        TT_CHECK(!(*self_p)->newest);
    free(*self_p);
    *self_p = NULL;
}

/*  The pages of the first `used` bytes, and only these, are ever touched. Whole large pages: a part of one would break it up. */
static void s_protect(const strict_arena_t *self, const mapping_t *mapping)
{
    const int access = self->is_open ? PROT_READ | PROT_WRITE : PROT_NONE;
    const size_t page = mapping->used < LARGE ? self->page : LARGE;
    const int failed = mprotect(mapping->base, tt_align(mapping->used, page), access);
    TT_CHECK(!failed);
}

/*  Pages as large as there are: at each opening and closing the kernel goes through all that were touched, 14,000 small ones of a
 *  replay of frames. */
static void s_map(strict_arena_t *self, size_t bytes)
{
    mapping_t *mapping = tt_new0(sizeof *mapping);
    mapping->size = tt_align(bytes > MAPPING ? bytes : MAPPING, LARGE);
    char *whole = mmap(NULL, mapping->size + LARGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    TT_CHECK(whole != MAP_FAILED);
    const size_t before = -(uintptr_t)whole % LARGE;
    mapping->base = whole + before;
    if (before)
        munmap(whole, before);
    munmap(mapping->base + mapping->size, LARGE - before);
    madvise(mapping->base, mapping->size, MADV_HUGEPAGE); /* a kernel that has none keeps to small ones */
    mapping->next = self->newest;
    self->newest = mapping;
}

void *strict_arena_take(strict_arena_t *self, size_t bytes)
{
    bytes = tt_align(bytes ? bytes : 1, LINE);
    if (!self->newest || bytes > self->newest->size - self->newest->used)
        s_map(self, bytes);
    mapping_t *mapping = self->newest;
    void *block = mapping->base + mapping->used;
    mapping->used += bytes;
    mapping->blocks++;
    if (self->is_open)
        s_protect(self, mapping);
    return block;
}

void strict_arena_give(strict_arena_t *self, void *block)
{
    if (!block)
        return;
    mapping_t **at = &self->newest;
    while (*at && !((char *)block >= (*at)->base && (char *)block < (*at)->base + (*at)->used))
        at = &(*at)->next;
    TT_CHECK(*at);
    mapping_t *mapping = *at;
    if (--mapping->blocks)
        return;
    *at = mapping->next;
    munmap(mapping->base, mapping->size);
    free(mapping);
}

static void s_set_open(strict_arena_t *self, bool is_open)
{
    self->is_open = is_open;
    for (const mapping_t *mapping = self->newest; mapping; mapping = mapping->next)
        s_protect(self, mapping);
}

void strict_arena_open(strict_arena_t *self)
{
    s_set_open(self, true);
}

void strict_arena_close(strict_arena_t *self)
{
    s_set_open(self, false);
}
