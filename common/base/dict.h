/*  dict - pointers by name: a chained hash table with a seeded hash (names come from outside).
 *
 *  Threads: an instance belongs to one thread. tt_dict_hash: any. */
#pragma once
#include <stddef.h>
#include <stdint.h>

typedef struct tt_dict_node {
    struct tt_dict_node *next;
    void *value;
    uint32_t hash;
    char key[];
} tt_dict_node_t;

typedef struct {
    tt_dict_node_t **buckets; /* mask + 1 of them, or NULL */
    uint32_t mask;
    uint32_t count;
} tt_dict_t; /* all zero: empty */

/*  SipHash-2-4 with a key of this process. */
uint32_t tt_dict_hash(const char *data, size_t size);

/*  Frees the table; values are the owner's. Empty and usable again. */
void tt_dict_free(tt_dict_t *self);
/*  NULL when there is none. */
void *tt_dict_get(const tt_dict_t *self, const char *key);
/*  The name's value from now on; the key is copied. Returns the copy, which lives as long as the entry. */
const char *tt_dict_set(tt_dict_t *self, const char *key, void *value);
/*  Returns what was there, or NULL. */
void *tt_dict_remove(tt_dict_t *self, const char *key);
/*  Remove every entry for which drop says so (NULL: all); drop frees the value itself. */
void tt_dict_filter(tt_dict_t *self, int (*drop)(void *ctx, void *value), void *ctx);
