#include "common/base/dict.h"
#include "common/base/mem.h"
#include <pthread.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

static unsigned char s_key[crypto_shorthash_KEYBYTES];
static pthread_once_t s_once = PTHREAD_ONCE_INIT;

static void s_make_key(void)
{
    randombytes_buf(s_key, sizeof s_key);
}

uint32_t tt_dict_hash(const char *data, size_t size)
{
    pthread_once(&s_once, s_make_key);
    unsigned char out[crypto_shorthash_BYTES];
    uint32_t hash;
    crypto_shorthash(out, (const unsigned char *)data, size, s_key);
    memcpy(&hash, out, sizeof hash);
    return hash;
}

void tt_dict_free(tt_dict_t *self)
{
    for (uint32_t i = 0; self->buckets && i <= self->mask; i++) {
        for (tt_dict_node_t *node = self->buckets[i], *next; node; node = next) {
            next = node->next;
            free(node);
        }
    }
    free(self->buckets);
    *self = (tt_dict_t){0};
}

/*  Where the pointer to the entry is, or would be. The table must have buckets. */
static tt_dict_node_t **s_find(const tt_dict_t *self, const char *key, uint32_t hash)
{
    tt_dict_node_t **at = &self->buckets[hash & self->mask];
    while (*at && ((*at)->hash != hash || strcmp((*at)->key, key) != 0))
        at = &(*at)->next;
    return at;
}

static void s_grow(tt_dict_t *self)
{
    const uint32_t size = self->buckets ? 2 * (self->mask + 1) : 16;
    tt_dict_node_t **buckets = tt_array0(size, sizeof(tt_dict_node_t *));
    for (uint32_t i = 0; self->buckets && i <= self->mask; i++) {
        for (tt_dict_node_t *node = self->buckets[i], *next; node; node = next) {
            next = node->next;
            node->next = buckets[node->hash & (size - 1)];
            buckets[node->hash & (size - 1)] = node;
        }
    }
    free(self->buckets);
    self->buckets = buckets;
    self->mask = size - 1;
}

void *tt_dict_get(const tt_dict_t *self, const char *key)
{
    if (!self->count)
        return NULL;
    const tt_dict_node_t *node = *s_find(self, key, tt_dict_hash(key, strlen(key)));
    return node ? node->value : NULL;
}

const char *tt_dict_set(tt_dict_t *self, const char *key, void *value)
{
    if (!self->buckets || self->count > self->mask)
        s_grow(self);
    const size_t size = strlen(key) + 1;
    const uint32_t hash = tt_dict_hash(key, size - 1);
    tt_dict_node_t **at = s_find(self, key, hash);
    if (!*at) {
        *at = tt_new0(sizeof **at + size);
        (*at)->hash = hash;
        memcpy((*at)->key, key, size);
        self->count++;
    }
    (*at)->value = value;
    return (*at)->key;
}

void *tt_dict_remove(tt_dict_t *self, const char *key)
{
    if (!self->count)
        return NULL;
    tt_dict_node_t **at = s_find(self, key, tt_dict_hash(key, strlen(key))), *node = *at;
    if (!node)
        return NULL;
    void *value = node->value;
    *at = node->next;
    free(node);
    self->count--;
    return value;
}

void tt_dict_filter(tt_dict_t *self, int (*drop)(void *ctx, void *value), void *ctx)
{
    for (uint32_t i = 0; self->buckets && i <= self->mask; i++) {
        for (tt_dict_node_t **at = &self->buckets[i]; *at;) {
            tt_dict_node_t *node = *at;
            if (drop && !drop(ctx, node->value)) {
                at = &node->next;
                continue;
            }
            *at = node->next;
            free(node);
            self->count--;
        }
    }
}
