#define TT_LOG_COMPONENT "exchange"
#include "learner/exchange.h"
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/relax.h"
#include "common/net/wake.h"
#include "common/nn/tree.h"

/*  ThreadSanitizer knows no fences. What these order is read by other processes, where it does not look. */
#ifdef __SANITIZE_THREAD__
#define FENCE(order) ((void)0)
#else
#define FENCE(order) atomic_thread_fence(order)
#endif

#define MAGIC UINT64_C(0x73756d7369747574) /* "tutisums" */

/*  PAGE: what an area begins with, and what its nodes are aligned to. BLOCK: floats that are added up before the next, so that what lies
 *  between stays in the cache. SPIN, YIELD: for so long we look before we sleep, about what waking takes; later with a chance for others. */
enum { SLOTS = 2, PAGE = 4096, BLOCK = 2048, DEPTH = 16, SPIN_NS = 15000, YIELD_NS = 50000 };

/*  Where a step's nodes are, written by its owner alone: `writes` is odd while that goes on. */
typedef struct {
    _Atomic uint64_t writes, era, generation, step;
} slot_t;

/*  An area: this, on a page of its own, then [SLOTS][nodes] of `stride` bytes. */
typedef struct {
    _Atomic uint64_t magic; /* written last */
    uint64_t instance, count;
    uint32_t shards, nodes;
    char wake[TT_WAKE_PATH];
    _Atomic uint32_t sleeps; /* its owner waits for others, and wants to be woken */
    slot_t slot[SLOTS];
} area_t;
_Static_assert(sizeof(area_t) <= PAGE, "an area begins with a page");

typedef struct {
    uint64_t instance;
    uint32_t index, pid;
    int fd;
    tt_memfd_t memory; /* of another learner; at NULL: not reached (yet) */
    uint64_t writes;   /* to its nodes, when we began to read them       */
} peer_t_;

/*  A node that a learner has: the `index`th of rank `owner`. */
typedef struct {
    uint32_t node, owner, index;
} leaf_t;

struct exchange {
    exchange_cfg_t cfg;
    uint32_t nodes; /* most of a run */
    size_t stride;
    area_t *own; /* NULL: nothing is shared */
    tt_wake_t wake;
    peer_t_ *peer; /* [peers] by rank         */
    uint32_t peers, rank;
    uint32_t looks; /* for areas that are missing, in this generation */
    leaf_t *leaf;   /* [leaves] from left to right */
    uint32_t leaves;
    float *between; /* [DEPTH][BLOCK] sums on the way to the root */
};

/* ---- our own ------------------------------------------------------------------------------------------------------------ */

/*  Of a run of fewer than all shards: two of each size at most. */
static uint32_t s_most_nodes(uint32_t shards)
{
    uint32_t nodes = 0;
    for (; shards > 1; shards /= 2)
        nodes += 2;
    return nodes ? nodes : 1;
}

static bool s_size(const exchange_t *self, size_t *out)
{
    size_t all;
    if (!tt_mul_ok(self->stride, (size_t)SLOTS * self->nodes, &all) || all > SIZE_MAX - PAGE)
        return false;
    *out = all + PAGE;
    return true;
}

static tt_status_t s_on_wake(void *ctx, int fd)
{
    (void)fd;
    tt_wake_drain(&((exchange_t *)ctx)->wake);
    return TT_OK;
}

static tt_status_t s_make(exchange_t *self, size_t size)
{
    char path[2 * TT_WAKE_PATH];
    snprintf(path, sizeof path, "%s/learner-%u-%d.wake", self->cfg.dir, self->cfg.index, (int)getpid());
    TT_TRY(tt_wake_open(&self->wake, path));
    return tt_memfd_size(self->cfg.memory, size);
}

static void s_open(exchange_t *self)
{
    const tt_memfd_t *memory = self->cfg.memory;
    size_t size;
    if (!memory || memory->fd < 0 || !s_size(self, &size))
        return;
    if (s_make(self, size) != TT_OK) {
        log_info("partial sums are sent, and not shared: %s", tt_err_text());
        return;
    }
    tt_loop_fd(self->cfg.loop, self->wake.fd, s_on_wake, self);
    self->own = memory->at;
    memcpy(self->own->wake, self->wake.path, sizeof self->own->wake);
    self->own->instance = self->cfg.instance;
    self->own->count = self->cfg.count;
    self->own->shards = self->cfg.shards;
    self->own->nodes = self->nodes;
    atomic_store(&self->own->magic, MAGIC);
}

exchange_t *exchange_new(const exchange_cfg_t *cfg)
{
    exchange_t *self = tt_new0(sizeof *self);
    self->cfg = *cfg;
    self->wake.fd = -1;
    self->nodes = s_most_nodes(cfg->shards);
    self->stride = tt_align(tt_mul(cfg->count, sizeof(float)), PAGE);
    self->between = tt_aligned0((size_t)DEPTH * BLOCK * sizeof *self->between);
    s_open(self);
    return self;
}

static void s_forget(exchange_t *self)
{
    for (uint32_t i = 0; i < self->peers; i++)
        tt_memfd_drop(&self->peer[i].memory);
    free(self->peer);
    free(self->leaf);
    self->peer = NULL;
    self->leaf = NULL;
    self->peers = self->leaves = 0;
}

void exchange_destroy(exchange_t **self_p)
{
    exchange_t *self = *self_p;
    if (!self)
        return;
    s_forget(self);
    if (self->wake.fd >= 0)
        tt_loop_forget_fd(self->cfg.loop, self->wake.fd);
    tt_wake_close(&self->wake);
    free(self->between);
    free(self);
    *self_p = NULL;
}

/* ---- those of the others ------------------------------------------------------------------------------------------------- */

/*  What a peer of the newest roster has mapped already stays. */
static tt_memfd_t s_take_mapped(exchange_t *self, uint64_t instance)
{
    for (uint32_t i = 0; i < self->peers; i++) {
        peer_t_ *peer = &self->peer[i];
        if (peer->instance != instance || !peer->memory.at)
            continue;
        const tt_memfd_t memory = peer->memory;
        peer->memory = (tt_memfd_t){.fd = -1};
        return memory;
    }
    return (tt_memfd_t){.fd = -1};
}

/*  Which nodes there are, and who has them. */
static void s_plan(exchange_t *self)
{
    self->leaf = tt_array0((size_t)self->peers * TT_TREE_RUN_MAX, sizeof *self->leaf);
    for (uint32_t rank = 0; rank < self->peers; rank++) {
        uint32_t lo, hi, nodes[TT_TREE_RUN_MAX];
        tt_tree_run(self->cfg.shards, self->peers, rank, &lo, &hi);
        const size_t count = tt_tree_nodes(self->cfg.shards, lo, hi, nodes);
        for (uint32_t i = 0; i < count; i++)
            self->leaf[self->leaves++] = (leaf_t){nodes[i], rank, i};
    }
}

void exchange_enter(exchange_t *self, const view_t *view)
{
    peer_t_ *peer = tt_array0(view->learners, sizeof *peer);
    for (uint32_t rank = 0; rank < view->learners; rank++) {
        const view_peer_t *from = &view->learner[rank];
        peer[rank] = (peer_t_){.instance = from->instance,
            .index = from->index,
            .pid = from->pid,
            .fd = from->memory,
            .memory = s_take_mapped(self, from->instance)};
    }
    s_forget(self);
    self->peer = peer;
    self->peers = view->learners;
    self->rank = view->rank;
    self->looks = 0;
    if (self->own)
        atomic_store_explicit(&self->own->sleeps, 0, memory_order_relaxed);
    if (self->own && view->member && view->learners > 1)
        s_plan(self);
}

static bool s_is_fit(const exchange_t *self, const area_t *area, uint64_t instance)
{
    return atomic_load(&area->magic) == MAGIC && memchr(area->wake, 0, sizeof area->wake) &&
           area->instance == instance && area->count == self->cfg.count && area->shards == self->cfg.shards &&
           area->nodes == self->nodes;
}

static bool s_reach(const exchange_t *self, peer_t_ *peer)
{
    if (peer->memory.at)
        return true;
    size_t size;
    if (peer->fd < 0 || !s_size(self, &size) ||
        tt_memfd_map(&peer->memory, peer->pid, peer->fd, EXCHANGE_NAME, size) != TT_OK)
        return false;
    if (s_is_fit(self, peer->memory.at, peer->instance))
        return true;
    tt_memfd_drop(&peer->memory);
    return false;
}

bool exchange_reaches(exchange_t *self)
{
    if (!self->leaves)
        return false;
    uint32_t missing = 0;
    for (uint32_t i = 0; i < self->peers; i++)
        missing += i != self->rank && !self->peer[i].memory.at;
    if (!missing)
        return true;
    const uint32_t before = self->looks++;
    if (before & (before - 1)) /* the 1st time, the 2nd, the 3rd, the 5th, the 9th, ... */
        return false;
    for (uint32_t i = 0; i < self->peers; i++)
        if (i != self->rank && !s_reach(self, &self->peer[i]))
            return false;
    log_debug("partial sums of %u learners lie in memory that they share", self->peers);
    return true;
}

/* ---- a step -------------------------------------------------------------------------------------------------------------- */

static float *s_node(const exchange_t *self, const area_t *area, uint64_t step, uint32_t index)
{
    const size_t place = step % SLOTS * self->nodes + index;
    return (float *)((char *)(uintptr_t)area + PAGE + place * self->stride);
}

static const area_t *s_area(const exchange_t *self, uint32_t rank)
{
    return rank == self->rank ? self->own : self->peer[rank].memory.at;
}

/*  How often it has been written to, if it has the nodes of that step; else an odd number. */
static uint64_t s_writes(const exchange_t *self, uint32_t rank, const exchange_step_t *which)
{
    const slot_t *slot = &s_area(self, rank)->slot[which->step % SLOTS];
    const uint64_t writes = atomic_load(&slot->writes);
    const bool fits = atomic_load_explicit(&slot->era, memory_order_relaxed) == which->era &&
                      atomic_load_explicit(&slot->generation, memory_order_relaxed) == which->generation &&
                      atomic_load_explicit(&slot->step, memory_order_relaxed) == which->step;
    return fits ? writes : 1;
}

uint32_t exchange_awaited(const exchange_t *self, const exchange_step_t *which)
{
    for (uint32_t rank = 0; rank < self->peers; rank++)
        if (s_writes(self, rank, which) % 2)
            return self->peer[rank].index;
    return UINT32_MAX;
}

/*  Others compute meanwhile, whatever a test's clock says. */
static void s_look(const exchange_t *self, const exchange_step_t *which)
{
    const int64_t begun_ns = tt_now_ns(tt_clock_real());
    for (int64_t gone_ns = 0; gone_ns < YIELD_NS;) {
        for (int i = 0; i < 16; i++) {
            if (exchange_awaited(self, which) == UINT32_MAX)
                return;
            tt_relax();
        }
        gone_ns = tt_now_ns(tt_clock_real()) - begun_ns;
        if (gone_ns >= SPIN_NS)
            sched_yield();
    }
}

/*  Who said that he sleeps before he saw what we have put there sees us here: one of both orders it is (all of these are sequentially
 *  consistent). */
static void s_wake_others(const exchange_t *self)
{
    for (uint32_t rank = 0; rank < self->peers; rank++)
        if (rank != self->rank && atomic_load(&s_area(self, rank)->sleeps))
            tt_wake_other(&self->wake, s_area(self, rank)->wake);
}

void exchange_put(exchange_t *self, const exchange_step_t *which, const float *const *node)
{
    slot_t *slot = &self->own->slot[which->step % SLOTS];
    atomic_fetch_add_explicit(&slot->writes, 1, memory_order_relaxed);
    FENCE(memory_order_release);
    for (uint32_t i = 0; i < self->leaves; i++) {
        const leaf_t *leaf = &self->leaf[i];
        if (leaf->owner == self->rank)
            memcpy(
                s_node(self, self->own, which->step, leaf->index), node[leaf->index], self->cfg.count * sizeof(float));
    }
    atomic_store_explicit(&slot->era, which->era, memory_order_relaxed);
    atomic_store_explicit(&slot->generation, which->generation, memory_order_relaxed);
    atomic_store_explicit(&slot->step, which->step, memory_order_relaxed);
    atomic_fetch_add(&slot->writes, 1);
    s_wake_others(self);
    s_look(self, which);
}

/*  The same sum as tt_tree_add's: adding element by element has one result, whatever the width of the registers. */
static void s_add(float *to, const float *left, const float *right, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i] = left[i] + right[i];
}

typedef struct {
    uint32_t node;
    const float *at;
} part_t;

/*  Floats from .. from + count - 1, at most BLOCK of them. From left to right; two siblings that stand side by side become their parent. */
static void s_sum_block(const exchange_t *self, uint64_t step, size_t from, size_t count, float *out)
{
    part_t stack[DEPTH + 1];
    uint32_t top = 0;
    for (uint32_t i = 0; i < self->leaves; i++) {
        const leaf_t *leaf = &self->leaf[i];
        stack[top++] = (part_t){leaf->node, s_node(self, s_area(self, leaf->owner), step, leaf->index) + from};
        while (top > 1 && (stack[top - 1].node ^ 1) == stack[top - 2].node) {
            top--;
            float *to = stack[top].node / 2 == 1 ? out : self->between + (size_t)(top - 1) * BLOCK;
            s_add(to, stack[top - 1].at, stack[top].at, count);
            stack[top - 1] = (part_t){stack[top].node / 2, to};
        }
    }
    TT_CHECK(top == 1 && stack[0].node == 1);
}

/*  False: somebody's nodes are not of that step, or ceased to be while we read them. */
static bool s_sum(exchange_t *self, const exchange_step_t *which, float *out)
{
    for (uint32_t rank = 0; rank < self->peers; rank++) {
        self->peer[rank].writes = s_writes(self, rank, which);
        if (self->peer[rank].writes % 2)
            return false;
    }
    for (size_t from = 0; from < self->cfg.count; from += BLOCK) {
        const size_t left = self->cfg.count - from;
        s_sum_block(self, which->step, from, left < BLOCK ? left : BLOCK, out + from);
    }
    FENCE(memory_order_acquire);
    for (uint32_t rank = 0; rank < self->peers; rank++)
        if (s_writes(self, rank, which) != self->peer[rank].writes)
            return false;
    return true;
}

bool exchange_sum(exchange_t *self, const exchange_step_t *which, float *out)
{
    TT_CHECK(self->leaves && self->peers > 1);
    if (!s_sum(self, which, out)) {
        atomic_store(&self->own->sleeps, 1);
        if (!s_sum(self, which, out)) /* what came before we said so woke nobody */
            return false;
    }
    atomic_store_explicit(&self->own->sleeps, 0, memory_order_relaxed);
    return true;
}
