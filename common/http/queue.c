#include "common/http/queue.h"
#include <sodium.h>
#include <stdlib.h>
#include "common/base/backoff.h"
#include "common/base/mem.h"
#include "common/base/dict.h"

enum {
    BASE_MS = 5,
    MAX_MS = 60000,
    BUCKET = 100,     /* failures that may come at once ... */
    BUCKET_MS = 100,  /* ... and then one in so long        */
    JITTER_MAX = 1000 /* thousandths of a tenth             */
};

/*  A key that waits, is worked on, or has failed; others are forgotten. */
typedef struct item {
    tt_queue_t *queue;
    const char *key;            /* the dictionary's */
    struct item *prev, *next;   /* those that wait  */
    uint64_t timer;             /* 0 = none         */
    int64_t due_ms;             /* of the timer     */
    int64_t added_ns, begun_ns; /* since when it waits, also to come again; is worked on */
    uint32_t failures;          /* in a row         */
    bool waits, works;
    bool again; /* added while worked on                        */
    bool held;  /* its key is in use by a call of the work's function */
} item_t;

struct tt_queue {
    tt_reactor_t *loop;
    tt_queue_fn fn;
    void *ctx;
    int64_t base_ms, max_ms;
    size_t workers, working, depth, failing;
    tt_dict_t items;
    item_t *first, *last;
    uint64_t kick; /* timer of the next turn; 0 = none */
    bool paused;
    tt_queue_stats_t stats;
    int64_t bucket_ms; /* when the bucket will be full again, in the past: it is */
};

static int64_t s_now_ms(const tt_queue_t *self)
{
    return tt_now_ms(tt_reactor_clock(self->loop));
}

tt_status_t tt_queue_new(
    tt_queue_t **self_p, tt_reactor_t *loop, const tt_queue_opts_t *opts, tt_queue_fn fn, void *ctx)
{
    tt_queue_t *self = tt_new0(sizeof *self);
    self->loop = loop;
    self->fn = fn;
    self->ctx = ctx;
    self->base_ms = opts && opts->base_ms > 0 ? opts->base_ms : BASE_MS;
    self->max_ms = opts && opts->max_ms > 0 ? opts->max_ms : MAX_MS;
    self->workers = opts && opts->workers > 0 ? (size_t)opts->workers : SIZE_MAX;
    self->bucket_ms = INT64_MIN;
    *self_p = self;
    return TT_OK;
}

static int s_free(void *ctx, void *value)
{
    item_t *item = value;
    tt_reactor_forget_timer(ctx, item->timer);
    free(item);
    return 1;
}

void tt_queue_destroy(tt_queue_t **self_p)
{
    tt_queue_t *self = *self_p;
    if (!self)
        return;
    tt_reactor_forget_timer(self->loop, self->kick);
    tt_dict_filter(&self->items, s_free, self->loop);
    tt_dict_free(&self->items);
    free(self);
    *self_p = NULL;
}

size_t tt_queue_depth(const tt_queue_t *self)
{
    return self->depth;
}

const tt_queue_stats_t *tt_queue_stats(const tt_queue_t *self)
{
    return &self->stats;
}

size_t tt_queue_failing(const tt_queue_t *self)
{
    return self->failing;
}

/* ---- turns -------------------------------------------------------------------------------------------------------- */

/*  Forget a key of which there is nothing to know. */
static void s_settle(tt_queue_t *self, item_t *item)
{
    if (item->waits || item->works || item->timer || item->failures || item->held)
        return;
    tt_dict_remove(&self->items, item->key);
    free(item);
}

static void s_take_off(tt_queue_t *self, item_t *item)
{
    *(item->prev ? &item->prev->next : &self->first) = item->next;
    *(item->next ? &item->next->prev : &self->last) = item->prev;
    item->prev = item->next = NULL;
    item->waits = false;
    self->depth--;
}

static int64_t s_now_ns(const tt_queue_t *self)
{
    return tt_now_ns(tt_reactor_clock(self->loop));
}

static void s_observe(const tt_queue_t *self, tt_histogram_t *histogram, int64_t since_ns)
{
    tt_histogram_observe(histogram, &tt_buckets_queue, (double)(s_now_ns(self) - since_ns) / 1e9);
}

static void s_work(tt_queue_t *self, item_t *item)
{
    s_take_off(self, item);
    s_observe(self, &self->stats.wait, item->added_ns);
    item->begun_ns = s_now_ns(self);
    item->works = item->held = true;
    self->working++;
    self->fn(self->ctx, item->key);
    item->held = false;
    s_settle(self, item);
}

static void s_kick(tt_queue_t *self);

/*  Those that wait now; what comes meanwhile is for the next turn, so that the loop sees to other things. */
static void s_turn(void *ctx)
{
    tt_queue_t *self = ctx;
    self->kick = 0;
    for (size_t n = self->depth; n > 0 && self->first && !self->paused && self->working < self->workers; n--)
        s_work(self, self->first);
    s_kick(self);
}

static void s_kick(tt_queue_t *self)
{
    if (!self->kick && self->first && !self->paused && self->working < self->workers)
        self->kick = tt_reactor_timer(self->loop, 0, s_turn, self);
}

void tt_queue_pause(tt_queue_t *self, bool paused)
{
    self->paused = paused;
    s_kick(self);
}

/* ---- adding ------------------------------------------------------------------------------------------------------- */

static item_t *s_item(tt_queue_t *self, const char *key)
{
    item_t *item = tt_dict_get(&self->items, key);
    if (!item) {
        item = tt_new0(sizeof *item);
        item->queue = self;
        item->key = tt_dict_set(&self->items, key, item);
    }
    return item;
}

static void s_forget_timer(item_t *item)
{
    tt_reactor_forget_timer(item->queue->loop, item->timer);
    item->timer = 0;
}

/*  At the end of the queue. */
static void s_push(tt_queue_t *self, item_t *item)
{
    item->waits = true;
    item->prev = self->last;
    *(self->last ? &self->last->next : &self->first) = item;
    self->last = item;
    self->depth++;
    s_kick(self);
}

static void s_add(tt_queue_t *self, item_t *item)
{
    s_forget_timer(item);
    if (item->waits || item->again)
        return;
    self->stats.adds++;
    item->added_ns = s_now_ns(self);
    item->again = item->works;
    if (!item->works)
        s_push(self, item);
}

static void s_due(void *ctx)
{
    item_t *item = ctx;
    item->timer = 0;
    s_add(item->queue, item);
}

static void s_add_after(tt_queue_t *self, item_t *item, int64_t after_ms)
{
    const int64_t due_ms = s_now_ms(self) + after_ms;
    if (item->waits || item->again || (item->timer && item->due_ms <= due_ms))
        return;
    s_forget_timer(item);
    item->due_ms = due_ms;
    item->timer = tt_reactor_timer(self->loop, after_ms, s_due, item);
}

void tt_queue_add(tt_queue_t *self, const char *key)
{
    s_add(self, s_item(self, key));
}

void tt_queue_add_after(tt_queue_t *self, const char *key, int64_t after_ms)
{
    item_t *item = s_item(self, key);
    if (after_ms > 0)
        s_add_after(self, item, after_ms);
    else
        s_add(self, item);
}

/* ---- the end of work ---------------------------------------------------------------------------------------------- */

/*  One out of the bucket: how long until it is this one's turn. */
static int64_t s_bucket_ms(tt_queue_t *self)
{
    const int64_t now_ms = s_now_ms(self);
    self->bucket_ms = (self->bucket_ms > now_ms ? self->bucket_ms : now_ms) + BUCKET_MS;
    const int64_t wait_ms = self->bucket_ms - now_ms - BUCKET * BUCKET_MS;
    return wait_ms > 0 ? wait_ms : 0;
}

static int64_t s_backoff_ms(const tt_queue_t *self, uint32_t failures)
{
    const tt_backoff_rule_t rule = {.first = self->base_ms, .most = self->max_ms};
    const int64_t ms = tt_backoff_wait(&rule, failures);
    return ms + ms * (int64_t)randombytes_uniform(JITTER_MAX + 1) / (10 * JITTER_MAX);
}

void tt_queue_done(tt_queue_t *self, const char *key, bool well)
{
    item_t *item = tt_dict_get(&self->items, key);
    if (!item || !item->works)
        return;
    s_observe(self, &self->stats.work, item->begun_ns);
    self->stats.retries += !well;
    item->works = false;
    self->working--;
    self->failing -= item->failures > 0;
    self->failing += !well;
    item->failures = well ? 0 : item->failures + 1;
    const int64_t backoff_ms = well ? 0 : s_backoff_ms(self, item->failures);
    const int64_t bucket_ms = well ? 0 : s_bucket_ms(self);
    if (item->again) {
        item->again = false;
        s_forget_timer(item);
        s_push(self, item);
    } else if (!well)
        s_add_after(self, item, backoff_ms > bucket_ms ? backoff_ms : bucket_ms);
    s_kick(self);
    s_settle(self, item);
}
