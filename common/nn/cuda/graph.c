/*  graph - work that comes again is recorded, and launched as one.
 *
 *  Most updates are the same launches as the one before, of the same shapes and on the same memory: what differs lies in device memory,
 *  where the caller has put it before. A key says on what the launches depend. The first time they are made one by one, and memory grows
 *  with them; the second time they are recorded; from then on there is one launch. Memory that goes takes every recording with it, for
 *  any of them may name it.
 *
 *  TT_CUDA_GRAPHS=off: every launch by itself, as tools that look at launches like it. */
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/nn/cuda/cuda.h"

enum { GRAPHS = 32 }; /* a learner has a few: the last minibatch of a pass is shorter, tables take turns */

typedef struct {
    cuda_key_t key;
    cudaGraphExec_t exec; /* NULL: seen once */
    uint64_t used;        /* when, by the clock below */
} graph_t;

struct cuda_graphs {
    bool off;
    uint64_t freed; /* the device's when these were made */
    uint64_t clock;
    uint32_t count;
    graph_t graph[GRAPHS];
};

void cuda_key_add(cuda_key_t *self, const void *part, size_t bytes)
{
    TT_CHECK(bytes <= sizeof self->data - self->bytes);
    memcpy(self->data + self->bytes, part, bytes);
    self->bytes += bytes;
}

cuda_graphs_t *cuda_graphs_new(void)
{
    cuda_graphs_t *self = tt_new0(sizeof *self);
    const char *wish = getenv("TT_CUDA_GRAPHS");
    self->off = wish && strcmp(wish, "off") == 0;
    return self;
}

static void s_forget(graph_t *graph)
{
    if (graph->exec)
        (void)cudaGraphExecDestroy(graph->exec); /* of a lost card, too */
    *graph = (graph_t){0};
}

static void s_forget_all(cuda_graphs_t *self)
{
    while (self->count)
        s_forget(&self->graph[--self->count]);
}

void cuda_graphs_free(cuda_graphs_t *self)
{
    s_forget_all(self);
    free(self);
}

static graph_t *s_find(cuda_graphs_t *self, const cuda_key_t *key)
{
    for (uint32_t i = 0; i < self->count; i++)
        if (self->graph[i].key.bytes == key->bytes && memcmp(self->graph[i].key.data, key->data, key->bytes) == 0)
            return &self->graph[i];
    return NULL;
}

/*  A place for one more: that of the one that was not used for the longest time, where all are taken. */
static graph_t *s_place(cuda_graphs_t *self)
{
    graph_t *oldest = &self->graph[0];
    if (self->count < GRAPHS)
        return &self->graph[self->count++];
    for (uint32_t i = 1; i < GRAPHS; i++)
        if (self->graph[i].used < oldest->used)
            oldest = &self->graph[i];
    s_forget(oldest);
    return oldest;
}

/*  What was freed meanwhile may be named by any of them. */
static void s_look_at_memory(cuda_device_t *device)
{
    if (device->graphs->freed == device->freed)
        return;
    s_forget_all(device->graphs);
    device->graphs->freed = device->freed;
}

static tt_status_t s_see(cuda_device_t *device, const cuda_key_t *key, cuda_work_fn work, void *self)
{
    TT_TRY(work(self));
    s_look_at_memory(device); /* it may have grown just now */
    graph_t *graph = s_place(device->graphs);
    graph->key = *key;
    graph->used = ++device->graphs->clock;
    return TT_OK;
}

static tt_status_t s_record(cuda_device_t *device, graph_t *graph, cuda_work_fn work, void *self)
{
    cudaGraph_t recorded = NULL;
    TT_TRY(cuda_said(
        device, cudaStreamBeginCapture(device->work, cudaStreamCaptureModeThreadLocal), "beginning to record work"));
    const tt_status_t status = work(self);
    const cudaError_t code = cudaStreamEndCapture(device->work, &recorded);
    if (status != TT_OK) {
        cudaGraphDestroy(recorded);
        return status;
    }
    TT_TRY(cuda_said(device, code, "recording work"));
    const cudaError_t made = cudaGraphInstantiate(&graph->exec, recorded, 0);
    cudaGraphDestroy(recorded);
    return cuda_said(device, made, "a graph of what was recorded");
}

tt_status_t cuda_again(cuda_device_t *device, const cuda_key_t *key, cuda_work_fn work, void *self)
{
    if (device->graphs->off)
        return work(self);
    s_look_at_memory(device);
    graph_t *graph = s_find(device->graphs, key);
    if (!graph)
        return s_see(device, key, work, self);
    graph->used = ++device->graphs->clock;
    if (!graph->exec)
        TT_TRY(s_record(device, graph, work, self));
    return cuda_said(device, cudaGraphLaunch(graph->exec, device->work), "launching a graph");
}
