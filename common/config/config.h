/*  config - YAML in, typed structs out, through tables of fields.
 *
 *  A file is read once into a flat list of (key path, value, file, line, column). Tables then claim keys: each entry
 *  gives type, place in a struct, default, range and help. What nobody claimed is an error that names the nearest known
 *  key. The same tables print help, the resolved file, and the origin of every value.
 *
 *  `env: X` is short for `env: {id: X}`, wherever it is written: the key is "env", and the dump takes the long form only
 *  where something else stands in that section.
 *
 *  Limits: 1 MiB of text, 4096 keys, depth 16; no anchors, aliases or tags; a key given twice is an error.
 *  Threads: an instance belongs to one thread. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "common/base/buf.h"
#include "common/base/limits.h"
#include "common/base/status.h"

typedef enum {
    TT_CFG_BOOL,  /* bool                                                                         */
    TT_CFG_U32,   /* uint32_t                                                                     */
    TT_CFG_U64,   /* uint64_t; 1_000_000, 1e6, 100k and 1M are read too, as for U32               */
    TT_CFG_F32,   /* float                                                                        */
    TT_CFG_F64,   /* double; `null` = NAN, where the table allows it (whole numbers: 0)           */
    TT_CFG_STR,   /* char[size]                                                                   */
    TT_CFG_ENUM,  /* int; `choices` is "tanh|relu"; the value is the position in it               */
    TT_CFG_LIST,  /* tt_cfg_list_t: up to 8 positive integers, [64, 64]                           */
    TT_CFG_WORDS, /* char[size]: text, or a list of texts, which is the same with commas between   */
    TT_CFG_TEXTS, /* tt_cfg_texts_t: a list of texts, [one, "the other"]                         */
    TT_CFG_MAP    /* tt_cfg_map_t: all that stands below the key; nobody here knows its names     */
} tt_cfg_type_t;

typedef struct {
    uint32_t count, at[8];
} tt_cfg_list_t;

typedef struct {
    uint32_t count;
    char at[8][128];
} tt_cfg_texts_t;

/*  In the order of the keys. Nested ones are joined by '.'; scalars are text as they stand, a list is "[1, 2]", and what is
 *  null is not there. */
typedef struct {
    uint32_t count;
    struct {
        char key[64], value[256];
    } at[TT_ENV_ARGS_MAX];
} tt_cfg_map_t;

/*  May the value change when a run is resumed? */
typedef enum {
    TT_CFG_FIXED, /* no: what was trained so far was trained for it                             */
    TT_CFG_GIVEN, /* it changes what is learned from there on: when it is given, and recorded   */
    TT_CFG_FREE   /* yes: it changes how the run is run, and nothing that is learned            */
} tt_cfg_resume_t;

typedef struct {
    const char *key; /* full path: "learner.shards"; {0} ends a table    */
    tt_cfg_type_t type;
    size_t offset;       /* of the member in the target struct               */
    const char *def;     /* default, as YAML text; NULL = must be given      */
    double min, max;     /* numbers (both inclusive) and length of lists; ignored when equal */
    const char *help;    /* what it is, with its unit                        */
    const char *choices; /* TT_CFG_ENUM                                      */
    size_t size;         /* TT_CFG_STR, TT_CFG_WORDS: bytes with the ending 0 */
    const char *rival;   /* key that says the same in other words: only one of the two may be set to
                            something else than its default (tt_config_finish); NULL = none         */
    tt_cfg_resume_t resume;
    bool null;  /* a number may be null; so may one whose default is that */
    bool quiet; /* where it is the default it is not dumped: a key for few  */
} tt_cfg_field_t;

typedef struct tt_config tt_config_t; /* opaque */

/*  Read a file (or a pipe; "-" = standard input, "<stdin>" in messages) / a text (`name` stands in messages for the file's name). Caller owns *self_p.
 *  TT_NOT_FOUND, TT_IO: the file; TT_CONFIG: not YAML, or over a limit: "file:line:column: what". */
tt_status_t tt_config_load(tt_config_t **self_p, const char *path);
tt_status_t tt_config_parse(tt_config_t **self_p, const char *text, size_t size, const char *name);
void tt_config_destroy(tt_config_t **self_p);

/*  What an older version wrote as a run's resolved config, as it was meant then: its keys become ours (upgrade.c has the table).
 *  To be called before anything is claimed. said: what was done, a few words for each key, appended; nothing where all is as it is
 *  now. Nothing that a person writes goes through here. */
tt_status_t tt_config_upgrade(tt_config_t *self, tt_buf_t *said);
/*  The same for what only programs write (space.*, as numbers once), whichever version did: for every resolved config that
 *  is read. Before anything is claimed. */
void tt_config_upgrade_spaces(tt_config_t *self);

/*  Set "key=value" over what the file says, its origin in messages is "--set". `null` as value means null.
 *  Setting a mapping or list: "network.hidden=[32, 32]". TT_USAGE: not of that form, or no value. */
tt_status_t tt_config_set(tt_config_t *self, const char *assignment);
/*  The same for an option that has a name of its own, as "--seed": its value, and that it came from there. */
tt_status_t tt_config_set_by(tt_config_t *self, const char *option, const char *key, const char *value);

/*  Set a value that the program decides (origin names who: "environment CartPole-v1"). After a claim
 *  of the key, claim it again. value: text of the field's type, a string as it is, a list as "[64, 64]". */
void tt_config_put(tt_config_t *self, const char *key, const char *value, const char *origin);

/*  Fill target from the table. The table is borrowed until destroy. A key may be claimed more than once.
 *  TT_CONFIG: wrong type, out of range, missing: "file:line:column: learner.shards: 12 is not ...". */
tt_status_t tt_config_claim(tt_config_t *self, const tt_cfg_field_t *fields, void *target);

/*  Keys below "prefix." need no table (a role that does not know the algorithm's options). */
void tt_config_ignore(tt_config_t *self, const char *prefix);

/*  Is there a key below "prefix."? */
bool tt_config_has(const tt_config_t *self, const char *prefix);

/*  Keys that this config has not, but one with another algorithm would have: of an unknown key all those are named that have it, and `ours`, which
 *  this config has. The table is borrowed. */
void tt_config_foreign(tt_config_t *self, const tt_cfg_field_t *fields, const char *algorithm, const char *ours);

/*  TT_CONFIG: two rivals are set, or a key was not claimed; the text names it, its place and what it may be: our word for
 *  another trainer's (synonyms.h), a key of somebody else, the nearest known key. */
tt_status_t tt_config_finish(const tt_config_t *self);

/*  "file:line:column" of a key, its default's origin otherwise ("default"). For errors that only the caller can see. */
const char *tt_config_origin(const tt_config_t *self, const char *key);

/*  Everything claimed so far as YAML that reads back to the same values; with_origins adds a comment a line. */
tt_status_t tt_config_dump(const tt_config_t *self, tt_buf_t *out, bool with_origins);

/*  Call fn for every claimed key in the order of the tables (but for quiet ones at their defaults); value is YAML text. Everything is borrowed. */
typedef void (*tt_config_fn)(void *ctx, const tt_cfg_field_t *field, const char *value, const char *origin);
void tt_config_each(const tt_config_t *self, tt_config_fn fn, void *ctx);

/*  Call fn for every key claimed in `now` or in `before`, by the same tables, whose values differ. Values are YAML text, "none"
 *  for a key of a map that only one of them has; origin is now's; everything is borrowed. */
typedef void (*tt_config_diff_fn)(
    void *ctx, const tt_cfg_field_t *field, const char *before, const char *now, const char *origin);
void tt_config_diff(const tt_config_t *before, const tt_config_t *now, tt_config_diff_fn fn, void *ctx);

/*  The nearest of `count` names to `wrong` by edit distance, NULL if none is near. */
const char *tt_nearest(const char *wrong, const char *const *names, size_t count);

/*  For the end of an error: "; did you mean 'lstm'?", or "" if none of "none|lstm|gru" is near. Returns out. */
enum { TT_MEANT_MAX = 96 };
const char *tt_meant(char out[TT_MEANT_MAX], const char *wrong, const char *choices);
