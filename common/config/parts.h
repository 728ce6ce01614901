/*  parts - what the files of this folder share; nobody else includes it.
 *
 *  read.c makes entries of text, value.c makes a typed value of an entry and text of a typed value, map.c takes all below a
 *  key, config.c keeps them, unknown.c says what is wrong with a key, dump.c prints. */
#pragma once
#include "common/base/text.h"
#include "common/config/config.h"

enum { TEXT_MAX = 1 << 20, KEYS_MAX = 4096, DEPTH_MAX = 16, ITEMS_MAX = 64, KEY_MAX = 127 };

typedef enum {
    ENTRY_PLAIN,  /* a scalar without quotes                                     */
    ENTRY_QUOTED, /* a scalar in quotes, or a block scalar: text, never a number */
    ENTRY_LIST,   /* scalars in [ ] or after dashes                              */
    ENTRY_OWN     /* set by the program or a default: text is taken as the field's type says */
} entry_kind_t;

/*  One key path of the file and what it holds. Owns its strings. */
typedef struct {
    char *key;
    entry_kind_t kind;
    char *text;   /* scalars; NULL for lists  */
    char **items; /* lists                    */
    size_t item_count;
    char *origin; /* "file:line:column", "--set", ... */
} entry_t;

/*  A field that no table has: one key of a map. */
typedef struct {
    tt_cfg_field_t field;
    char key[KEY_MAX + 1];
} made_t;

/*  A key that a table has claimed, with its value as canonical YAML text. */
typedef struct {
    const tt_cfg_field_t *field; /* borrowed, or `made` */
    char *value;
    const char *origin; /* an entry's, or "default"; borrowed    */
    made_t *made;       /* NULL = the field stands in a table    */
} claim_t;

/*  Keys that this job would have with another algorithm. */
typedef struct {
    const tt_cfg_field_t *fields; /* borrowed */
    char *algorithm, *ours;       /* whose they are, and what this job has */
} stranger_t;

struct tt_config {
    char *name;
    entry_t *entries; /* in the order of the file */
    size_t entry_count;
    claim_t *claims; /* in the order of the tables */
    size_t claim_count;
    char **ignored; /* prefixes */
    size_t ignored_count;
    stranger_t *strangers;
    size_t stranger_count;
};

/*  A value that is its section's, too: `key: X` is short for `key: {inner: X}`. */
typedef struct {
    const char *key, *inner, *whole; /* "env", "id", "env.id"                   */
    const char *holds;               /* what the section has, for messages      */
} short_t;

/*  config.c: find by key, NULL if there is none; add or replace (takes what the entry points to). */
entry_t *config_entry(const tt_config_t *self, const char *key);
const claim_t *config_claim(const tt_config_t *self, const char *key);
void config_add(tt_config_t *self, const entry_t *entry);
/*  config.c: keep a claim in the place of an earlier one of its key (takes value and made). */
void config_remember(tt_config_t *self, const claim_t *claim);
void entry_free(entry_t *entry);

/*  config.c: by the short key, by the whole path; NULL = it is none. */
const short_t *short_of(const char *key);
const short_t *short_of_whole(const char *path);

/*  read.c: add the entries of a text. under: key that the whole text is the value of, NULL for a file. origin: of every
 *  entry, NULL = file:line:column; a key given twice is an error within one text only;
 *  a key without anything as its value is one below `under`.
 *  code: TT_CONFIG or TT_USAGE, what errors are reported as. */
tt_status_t config_read(tt_config_t *self, const char *text, size_t size, const char *name, const char *under,
    const char *origin, tt_status_t code);
/*  Letters, digits, '_', '-' in parts divided by dots, at most KEY_MAX bytes. */
bool key_is_good(const char *key);

/*  config.c: is `key` the path of a section or value above `path`? nearest.c: the last part of a path. */
bool key_is_above(const char *key, const char *path);
const char *key_leaf(const char *key);

/*  nearest.c: "tanh|relu" in place to words; returns how many. */
enum { CHOICES_MAX = 32 };
size_t choices_split(char *text, const char *out[CHOICES_MAX]);

/*  map.c: claim all below a key of type TT_CFG_MAP. */
tt_status_t map_claim(tt_config_t *self, const tt_cfg_field_t *field, tt_cfg_map_t *target);
/*  Does a map that was claimed take the key, or is it the map's own? */
bool map_takes(const tt_config_t *self, const char *key);

/*  unknown.c: TT_CONFIG for an entry that nobody claimed, and for a required field that no entry is of. */
tt_status_t unknown_key(const tt_config_t *self, const entry_t *entry);
tt_status_t missing_key(const tt_config_t *self, const tt_cfg_field_t *field);

/*  value.c: entry -> target member. TT_CONFIG with origin and key in the text. */
tt_status_t value_read(const entry_t *entry, const tt_cfg_field_t *field, void *target);
/*  Target member -> YAML text that reads back to the same value. TT_INVALID: a string is not UTF-8. */
tt_status_t value_write(tt_buf_t *out, const tt_cfg_field_t *field, const void *target);
/*  null, ~ or nothing, without quotes. */
bool value_is_null(const entry_t *entry);
/*  A scalar as YAML: numbers, true, false and plain words as they are, anything else in quotes. */
tt_status_t value_write_scalar(tt_buf_t *out, const char *key, const char *text);

/*  utf8.c: may it stand unescaped? */
bool utf8_printable(uint32_t code);
/*  Make a file's name or a program's words fit to stand in a message and in a comment: '?' for what is not printable. */
void origin_clean(char *origin);
