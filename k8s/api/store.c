/*  Entries stand in numbered slots (kube_meta_t.mark); the tables by name, by uid and by index are lists of slot numbers
 *  that run through the slots, so that an entry costs 40 bytes and 12 for each index besides itself.
 *
 *  Which of two pictures of an object is right is decided in s_take and kube_store_event alone:
 *    1. Under one name the higher version wins; another uid under that name means that the older object is gone.
 *    2. What is not in the store, and is not newer than what the watch has shown, has been removed since: ignored.
 *    3. What we know to be gone before the watch has shown it (by kube_store_gone, by a successor of its name) stays gone
 *       though the watch shows how it came. */
#include "common/base/mem.h"
#include "common/base/dict.h"
#include "k8s/api/store_fill.h"
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define TT_LOG_COMPONENT "kube"
#include "common/base/log.h"

#define NONE UINT32_MAX
#define OUT  (UINT32_MAX - 1)
enum { GRAVES = 10000 };

/*  The tables that every store has; those of kube_store_ops_t.index come behind them. */
enum { BY_NAME, BY_UID, OWN, TABLES = OWN + KUBE_INDEXES };

typedef struct {
    void *entry;   /* NULL: free                                                        */
    uint32_t list; /* number of the last list that had it; of a free one the next free one */
} slot_t;

typedef struct {
    uint32_t hash, next;
    uint32_t previous; /* NONE: the first of its bucket; OUT: not in this table */
} link_t;

struct kube_store {
    kube_store_ops_t ops;
    uint32_t tables; /* the highest one in use + 1 */
    slot_t *slots;
    link_t *links; /* [slot][tables] */
    uint32_t count, used, room, free;
    uint32_t *heads[TABLES]; /* of buckets, mask + 1 each */
    uint32_t mask;
    uint32_t lists;   /* begun so far                                        */
    uint64_t version; /* what list and watch have shown                      */
    tt_dict_t graves; /* uid of what is gone and the watch may not have shown -> lists then, as (uintptr_t) + 1 */
};

/* ---- tables ------------------------------------------------------------------------------------------------------- */

static kube_meta_t *s_meta(void *entry)
{
    return entry;
}

/*  NULL: it is not in this table. */
static const char *s_key(const kube_store_t *self, void *entry, uint32_t table)
{
    if (table < OWN)
        return table == BY_NAME ? s_meta(entry)->name : s_meta(entry)->uid;
    return self->ops.index[table - OWN] ? self->ops.index[table - OWN](entry) : NULL;
}

/*  namespace_: NULL but for names. */
static uint32_t s_hash(const char *namespace_, const char *key)
{
    return tt_dict_hash(key, strlen(key)) + (namespace_ ? 31 * tt_dict_hash(namespace_, strlen(namespace_)) : 0);
}

static link_t *s_at(const kube_store_t *self, uint32_t slot, uint32_t table)
{
    return &self->links[slot * self->tables + table];
}

static void s_push(kube_store_t *self, uint32_t slot, uint32_t table)
{
    link_t *link = s_at(self, slot, table);
    uint32_t *head = &self->heads[table][link->hash & self->mask];
    *link = (link_t){.hash = link->hash, .next = *head, .previous = NONE};
    if (*head != NONE)
        s_at(self, *head, table)->previous = slot;
    *head = slot;
}

/*  Put the slot's entry under all its keys. */
static void s_link(kube_store_t *self, uint32_t slot)
{
    void *entry = self->slots[slot].entry;
    s_meta(entry)->mark = slot;
    for (uint32_t i = 0; i < self->tables; i++) {
        const char *key = s_key(self, entry, i);
        link_t *link = s_at(self, slot, i);
        link->previous = OUT;
        if (key) {
            link->hash = s_hash(i == BY_NAME ? s_meta(entry)->namespace_ : NULL, key);
            s_push(self, slot, i);
        }
    }
}

static void s_unlink(kube_store_t *self, uint32_t slot)
{
    for (uint32_t i = 0; i < self->tables; i++) {
        const link_t *link = s_at(self, slot, i);
        if (link->previous == OUT)
            continue;
        *(link->previous == NONE ? &self->heads[i][link->hash & self->mask] : &s_at(self, link->previous, i)->next) =
            link->next;
        if (link->next != NONE)
            s_at(self, link->next, i)->previous = link->previous;
    }
}

static void s_free_tables(kube_store_t *self)
{
    for (uint32_t i = 0; i < self->tables; i++)
        free(self->heads[i]);
}

static void s_make_tables(kube_store_t *self, uint32_t buckets)
{
    self->mask = buckets - 1;
    for (uint32_t i = 0; i < self->tables; i++) {
        self->heads[i] = tt_array0(buckets, sizeof *self->heads[i]);
        memset(self->heads[i], 0xff, buckets * sizeof *self->heads[i]); /* NONE */
    }
}

/*  Twice the slots and the buckets. */
static void s_grow(kube_store_t *self)
{
    self->room *= 2;
    self->slots = tt_realloc(self->slots, tt_mul(self->room, sizeof *self->slots));
    self->links = tt_realloc(self->links, tt_mul(tt_mul(self->room, self->tables), sizeof *self->links));
    s_free_tables(self);
    s_make_tables(self, self->room);
    for (uint32_t slot = 0; slot < self->used; slot++)
        for (uint32_t i = 0; self->slots[slot].entry && i < self->tables; i++)
            if (s_at(self, slot, i)->previous != OUT)
                s_push(self, slot, i);
}

static uint32_t s_slot(kube_store_t *self)
{
    uint32_t slot = self->free;
    if (slot != NONE) {
        self->free = self->slots[slot].list;
    } else {
        if (self->used == self->room)
            s_grow(self);
        slot = self->used++;
    }
    self->slots[slot] = (slot_t){0};
    return slot;
}

/* ---- life --------------------------------------------------------------------------------------------------------- */

tt_status_t kube_store_new(kube_store_t **self_p, const kube_store_ops_t *ops)
{
    kube_store_t *self = tt_new0(sizeof *self);
    self->ops = *ops;
    self->tables = OWN;
    for (uint32_t i = 0; i < KUBE_INDEXES; i++)
        if (ops->index[i])
            self->tables = OWN + i + 1;
    self->free = NONE;
    self->room = 16;
    self->slots = tt_array0(self->room, sizeof *self->slots);
    self->links = tt_array0(tt_mul(self->room, self->tables), sizeof *self->links);
    s_make_tables(self, self->room);
    *self_p = self;
    return TT_OK;
}

void kube_store_destroy(kube_store_t **self_p)
{
    kube_store_t *self = *self_p;
    if (!self)
        return;
    for (uint32_t slot = 0; slot < self->used; slot++)
        if (self->slots[slot].entry)
            self->ops.destroy(self->slots[slot].entry);
    s_free_tables(self);
    tt_dict_free(&self->graves);
    free(self->slots);
    free(self->links);
    free(self);
    *self_p = NULL;
}

/* ---- looking ------------------------------------------------------------------------------------------------------ */

size_t kube_store_count(const kube_store_t *self)
{
    return self->count;
}

uint64_t kube_store_version(const kube_store_t *self)
{
    return self->version;
}

/*  The first from this slot on; NULL. */
static void *s_find(const kube_store_t *self, uint32_t table, uint32_t slot, const char *namespace_, const char *key)
{
    const uint32_t hash = s_hash(namespace_, key);
    for (slot = slot == OUT ? self->heads[table][hash & self->mask] : slot; slot != NONE;
         slot = s_at(self, slot, table)->next) {
        void *entry = self->slots[slot].entry;
        const char *its = s_at(self, slot, table)->hash == hash ? s_key(self, entry, table) : NULL;
        if (its && strcmp(its, key) == 0 && (!namespace_ || strcmp(s_meta(entry)->namespace_, namespace_) == 0))
            return entry;
    }
    return NULL;
}

void *kube_store_get(const kube_store_t *self, const char *namespace_, const char *name)
{
    return s_find(self, BY_NAME, OUT, namespace_, name);
}

void *kube_store_by_uid(const kube_store_t *self, const char *uid)
{
    return s_find(self, BY_UID, OUT, NULL, uid);
}

void *kube_store_next(const kube_store_t *self, int index, const char *key, const void **at)
{
    const uint32_t table = OWN + (uint32_t)index;
    TT_CHECK(index >= 0 && table < self->tables);
    const uint32_t from = *at ? s_at(self, ((const kube_meta_t *)*at)->mark, table)->next : OUT;
    void *entry = s_find(self, table, from, NULL, key);
    if (entry)
        *at = entry;
    return entry;
}

void *kube_store_each(const kube_store_t *self, const void **at)
{
    uint32_t slot = *at ? ((const kube_meta_t *)*at)->mark + 1 : 0;
    while (slot < self->used && !self->slots[slot].entry)
        slot++;
    if (slot >= self->used)
        return NULL;
    *at = self->slots[slot].entry;
    return self->slots[slot].entry;
}

/* ---- changing ----------------------------------------------------------------------------------------------------- */

static void s_changed(kube_store_t *self, void *before, const void *now)
{
    if (self->ops.changed)
        self->ops.changed(self->ops.ctx, before, now);
    if (before)
        self->ops.destroy(before);
}

static void s_remove(kube_store_t *self, uint32_t slot)
{
    void *entry = self->slots[slot].entry;
    s_unlink(self, slot);
    self->slots[slot] = (slot_t){.list = self->free};
    self->free = slot;
    self->count--;
    s_changed(self, entry, NULL);
}

static void s_insert(kube_store_t *self, void *entry, uint32_t list)
{
    const uint32_t slot = s_slot(self);
    self->slots[slot].entry = entry;
    self->slots[slot].list = list;
    self->count++;
    s_link(self, slot);
    s_changed(self, NULL, entry);
}

static void s_replace(kube_store_t *self, uint32_t slot, void *entry)
{
    void *before = self->slots[slot].entry;
    s_unlink(self, slot);
    self->slots[slot].entry = entry;
    s_link(self, slot);
    s_changed(self, before, entry);
}

/*  The watch may still have to show how it came and went; a list that is begun later has nothing of it. */
static void s_bury(kube_store_t *self, const char *uid)
{
    if (self->graves.count >= GRAVES) /* a watch that never shows them: selectors that do not fit our own objects */
        tt_dict_filter(&self->graves, NULL, NULL);
    tt_dict_set(&self->graves, uid, (void *)((uintptr_t)self->lists + 1)); /* NOLINT: a number, not an address */
}

typedef enum { BY_LIST, BY_WATCH, BY_US } by_t;

/*  Takes the entry, or drops it because we know better. */
static void s_take(kube_store_t *self, void *entry, by_t by)
{
    const kube_meta_t *meta = s_meta(entry);
    void *old = kube_store_get(self, meta->namespace_, meta->name);
    const uint32_t slot = old ? s_meta(old)->mark : NONE;
    const bool buried = tt_dict_get(&self->graves, meta->uid) != NULL;
    const bool late = old ? meta->version <= s_meta(old)->version : by != BY_LIST && meta->version <= self->version;
    const uint32_t list = by == BY_LIST ? self->lists : 0;
    if (old && list)
        self->slots[slot].list = list;
    if (buried || late) {
        self->ops.destroy(entry);
    } else if (!old) {
        s_insert(self, entry, list);
    } else if (strcmp(s_meta(old)->uid, meta->uid) == 0) {
        s_replace(self, slot, entry);
    } else {
        s_bury(self, s_meta(old)->uid);
        s_remove(self, slot);
        s_insert(self, entry, list);
    }
}

static tt_status_t s_decode(kube_store_t *self, const char *json, size_t size, void **entry)
{
    TT_TRY(self->ops.decode(self->ops.ctx, json, size, entry));
    const kube_meta_t *meta = s_meta(*entry);
    if (meta->uid[0] && meta->version)
        return TT_OK;
    const tt_status_t status = tt_err(TT_DATA, "%s: no uid or no resourceVersion", meta->name);
    self->ops.destroy(*entry);
    return status;
}

tt_status_t kube_store_put(kube_store_t *self, const char *json, size_t size)
{
    void *entry = NULL;
    TT_TRY(s_decode(self, json, size, &entry));
    s_take(self, entry, BY_US);
    return TT_OK;
}

void kube_store_gone(kube_store_t *self, const char *namespace_, const char *name, uint64_t version)
{
    void *entry = kube_store_get(self, namespace_, name);
    if (!entry || s_meta(entry)->version > version)
        return;
    s_bury(self, s_meta(entry)->uid);
    s_remove(self, s_meta(entry)->mark);
}

/* ---- list and watch ----------------------------------------------------------------------------------------------- */

void kube_store_list_begin(kube_store_t *self)
{
    self->lists++;
}

void kube_store_list_object(kube_store_t *self, const char *json, size_t size)
{
    void *entry = NULL;
    if (s_decode(self, json, size, &entry) == TT_OK)
        s_take(self, entry, BY_LIST);
    else
        log_warn("an object of a list is left out: %s", tt_err_text());
}

/*  Versions mean nothing any more: whatever comes next is newer. */
static void s_forget_versions(kube_store_t *self)
{
    for (uint32_t slot = 0; slot < self->used; slot++)
        if (self->slots[slot].entry)
            s_meta(self->slots[slot].entry)->version = 0;
    tt_dict_filter(&self->graves, NULL, NULL);
    self->version = 0;
}

static int s_not_needed(void *ctx, void *value)
{
    return (uintptr_t)value - 1 < *(const uint32_t *)ctx;
}

tt_status_t kube_store_list_end(kube_store_t *self, uint64_t version)
{
    if (version < self->version) {
        const unsigned long long before = self->version;
        s_forget_versions(self);
        return tt_err(
            TT_AGAIN, "the server was at version %llu and is at %llu now", before, (unsigned long long)version);
    }
    self->version = version;
    for (uint32_t slot = 0; slot < self->used; slot++) {
        const slot_t *at = &self->slots[slot];
        if (at->entry && at->list != self->lists && s_meta(at->entry)->version <= version)
            s_remove(self, slot);
    }
    tt_dict_filter(&self->graves, s_not_needed, &self->lists);
    return TT_OK;
}

/*  What a watch says is gone, or is none of ours any more. */
static void s_take_away(kube_store_t *self, const kube_meta_t *meta)
{
    void *old = kube_store_get(self, meta->namespace_, meta->name);
    tt_dict_remove(&self->graves, meta->uid);
    if (old && strcmp(s_meta(old)->uid, meta->uid) == 0 && s_meta(old)->version <= meta->version)
        s_remove(self, s_meta(old)->mark);
}

void kube_store_event(kube_store_t *self, const char *type, const char *json, size_t size)
{
    const bool deleted = strcmp(type, "DELETED") == 0;
    void *entry = NULL;
    if (!deleted && s_decode(self, json, size, &entry) == TT_OK) {
        const uint64_t version = s_meta(entry)->version;
        s_take(self, entry, BY_WATCH);
        kube_store_passed(self, version);
        return;
    }
    if (!deleted)
        log_warn("an object of a watch is left out: %s", tt_err_text());
    json_error_t error;
    json_t *object = json_loadb(json, size, 0, &error);
    kube_meta_t meta = {0};
    if (object && kube_meta_read(&meta, object) == TT_OK) {
        s_take_away(self, &meta);
        kube_store_passed(self, meta.version);
    } else {
        log_warn("%s of something unreadable: %s", type, object ? tt_err_text() : error.text);
    }
    kube_meta_clear(&meta);
    json_decref(object);
}

void kube_store_passed(kube_store_t *self, uint64_t version)
{
    if (version > self->version)
        self->version = version;
}
