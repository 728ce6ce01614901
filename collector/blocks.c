#include "collector/blocks.h"
#include <pthread.h>
#include <stdlib.h>
#include "common/base/mem.h"

/*  Stands before the memory that is handed out. */
typedef struct block {
    _Alignas(64) struct block *next;
    size_t room;
} block_t;

struct blocks {
    pthread_mutex_t mutex;
    block_t *free; /* most recently used first: it is still in the cache */
    size_t out;
    bool closed;
};

blocks_t *blocks_new(void)
{
    blocks_t *self = tt_new0(sizeof *self);
    pthread_mutex_init(&self->mutex, NULL);
    return self;
}

static void s_free_list(block_t *block)
{
    while (block) {
        block_t *next = block->next;
        free(block);
        block = next;
    }
}

static void s_free(blocks_t *self)
{
    pthread_mutex_destroy(&self->mutex);
    free(self);
}

void blocks_destroy(blocks_t **self_p)
{
    blocks_t *self = *self_p;
    if (!self)
        return;
    pthread_mutex_lock(&self->mutex);
    s_free_list(self->free);
    self->free = NULL;
    self->closed = true;
    /* ZeroMQ may still be sending some: the last one to come back frees us */
    const bool last = self->out == 0;
    pthread_mutex_unlock(&self->mutex);
    if (last)
        s_free(self);
    *self_p = NULL;
}

void *blocks_take(blocks_t *self, size_t size)
{
    pthread_mutex_lock(&self->mutex);
    /* the one given back last: it may still be in the cache */
    block_t *block = self->free;
    if (block)
        self->free = block->next;
    self->out++;
    pthread_mutex_unlock(&self->mutex);
    if (block && block->room < size) {
        free(block);
        block = NULL;
    }
    if (!block) {
        block = tt_aligned0(sizeof *block + tt_align(size, 64));
        block->room = size;
    }
    return block + 1;
}

void blocks_give(blocks_t *self, void *memory)
{
    block_t *block = (block_t *)memory - 1;
    pthread_mutex_lock(&self->mutex);
    self->out--;
    const bool closed = self->closed, last = closed && self->out == 0;
    if (!closed) {
        block->next = self->free;
        self->free = block;
    }
    pthread_mutex_unlock(&self->mutex);
    if (closed)
        free(block);
    if (last)
        s_free(self);
}

static void s_done(void *memory, void *hint)
{
    blocks_give(hint, memory);
}

void blocks_wrap(blocks_t *self, void *block, size_t size, zmq_msg_t *out)
{
    tt_frame_wrap(out, block, size, s_done, self);
}
