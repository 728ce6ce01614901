#include "common/base/pool.h"
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "common/base/chain.h"
#include "common/base/mem.h"
#include "common/base/status.h"

#ifndef __has_feature
#define __has_feature(x) 0 /* clang's way to tell */
#endif

#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)

void *tt_pool_new0(size_t size)
{
    return tt_new0(size);
}

void tt_pool_free(void *block)
{
    free(block);
}

#else

enum { SLAB = 65536, STEP = 16, LARGE = 2048 / STEP + 1, PAGE = 4096 };

typedef struct unused {
    struct unused *next;
} unused_t;

/*  The head of a slab: its blocks follow. It starts at a multiple of SLAB, so a block's address tells its slab. */
typedef struct slab {
    struct slab *next, **link; /* in the list of those with room; link NULL: not in it */
    unused_t *unused;          /* blocks that were given back                          */
    size_t mapped, size;       /* of it all, of a block                                */
    uint32_t sort;             /* size / STEP; LARGE: one block of any size            */
    uint32_t room, begun, used;
} slab_t;

enum { HEAD = (sizeof(slab_t) + STEP - 1) / STEP * STEP };

static pthread_mutex_t s_lock = PTHREAD_MUTEX_INITIALIZER;
static slab_t *s_open[LARGE + 1]; /* by sort: those with room */

/*  Zeroed pages that begin at a multiple of SLAB. */
static void *s_map(size_t size)
{
    const size_t more = tt_add(size, SLAB);
    char *all = mmap(NULL, more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    TT_CHECK(all != MAP_FAILED);
    const size_t before = (SLAB - (uintptr_t)all % SLAB) % SLAB;
    if (before)
        munmap(all, before);
    munmap(all + before + size, more - before - size);
    return all + before;
}

static void s_link(slab_t *slab)
{
    TT_CHAIN_ADD(&s_open[slab->sort], slab);
}

static void s_unlink(slab_t *slab)
{
    TT_CHAIN_REMOVE(slab);
    slab->link = NULL;
}

static slab_t *s_slab(uint32_t sort, size_t size)
{
    const size_t mapped = sort == LARGE ? tt_align(tt_add(HEAD, size), PAGE) : SLAB;
    slab_t *slab = s_map(mapped);
    slab->mapped = mapped;
    slab->sort = sort;
    slab->size = sort == LARGE ? size : sort * STEP;
    slab->room = sort == LARGE ? 1 : (uint32_t)((SLAB - HEAD) / slab->size);
    s_link(slab);
    return slab;
}

static void *s_take(slab_t *slab)
{
    unused_t *block = slab->unused;
    if (block)
        slab->unused = block->next;
    else
        block = (void *)((char *)slab + HEAD + slab->begun++ * slab->size);
    if (++slab->used == slab->room)
        s_unlink(slab);
    return block;
}

void *tt_pool_new0(size_t size)
{
    const size_t steps = size ? (size - 1) / STEP + 1 : 1;
    const uint32_t sort = steps < LARGE ? (uint32_t)steps : LARGE;
    pthread_mutex_lock(&s_lock);
    void *block = s_take(s_open[sort] ? s_open[sort] : s_slab(sort, size));
    pthread_mutex_unlock(&s_lock);
    memset(block, 0, size);
    return block;
}

void tt_pool_free(void *block)
{
    if (!block)
        return;
    slab_t *slab = (void *)((char *)block - (uintptr_t)block % SLAB);
    unused_t *unused = block;
    pthread_mutex_lock(&s_lock);
    unused->next = slab->unused;
    slab->unused = unused;
    if (slab->used-- == slab->room)
        s_link(slab);
    if (!slab->used) {
        s_unlink(slab);
        munmap(slab, slab->mapped);
    }
    pthread_mutex_unlock(&s_lock);
}

#endif
