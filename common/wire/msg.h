/*  msg - the messages of messages.def as C structs, and one interpreter that packs, unpacks, checks and prints them.
 *
 *  A str field is `char *` owned by the message when it was unpacked (tt_msg_clear frees), borrowed when it is packed;
 *  NULL packs as "". A list field is `<field>` (pointer) and `<field>_count`.
 *
 *  Threads: pure; an instance belongs to one thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "common/base/buf.h"
#include "common/base/limits.h"
#include "common/base/status.h"
#include "common/wire/messages.def"

typedef enum {
    TT_PEER_NONE,
    TT_PEER_COORDINATOR,
    TT_PEER_COLLECTOR,
    TT_PEER_LEARNER,
    TT_PEER_AGGREGATOR,
    TT_PEER_CONTROLLER, /* `tutti run`, an operator                     */
    TT_PEER_CLIENT      /* `tutti status` and the like                  */
} tt_peer_role_t;

typedef enum { TT_FETCH_WEIGHTS = 1, TT_FETCH_STATE, TT_FETCH_ENVS, TT_FETCH_BATCH, TT_FETCH_REPLAY } tt_fetch_t;

/*  "collector" and back; TT_PEER_NONE for an unknown name. */
const char *tt_peer_role_name(tt_peer_role_t role);
tt_peer_role_t tt_peer_role_find(const char *name);

typedef enum {
#define X(name, id, from, to, frames, doc) TT_MSG_##name = id,
    TT_MESSAGES(X)
#undef X
} tt_msg_id_t;

#define TT_C_u32  uint32_t
#define TT_C_u64  uint64_t
#define TT_C_i64  int64_t
#define TT_C_f64  double
#define TT_C_flag bool
#define TT_C_str  char *

#define TT_STRUCT_F(kind, field, limit, doc) TT_C_##kind field;
#define TT_STRUCT_L(record, field, limit, doc) \
    struct tt_rec_##record *field;             \
    size_t field##_count;

/*  struct tt_rec_MEMBER / tt_rec_MEMBER_t, ... */
#define X(name, doc)                               \
    typedef struct tt_rec_##name {                 \
        TT_FIELDS_##name(TT_STRUCT_F, TT_STRUCT_L) \
    } tt_rec_##name##_t;
TT_RECORDS(X)
#undef X

/*  tt_msg_HELLO_t, ...: every message struct begins with its type. */
#define X(name, id_, from, to, frames, doc)        \
    typedef struct {                               \
        tt_msg_id_t type;                          \
        TT_FIELDS_##name(TT_STRUCT_F, TT_STRUCT_L) \
    } tt_msg_##name##_t;
TT_MESSAGES(X)
#undef X

/*  A message of any kind. */
typedef union {
    tt_msg_id_t type;
#define X(name, id, from, to, frames, doc) tt_msg_##name##_t name;
    TT_MESSAGES(X)
#undef X
} tt_msg_t;

/*  Start a message: `tt_msg_HELLO_t m = TT_MSG(HELLO, .index = 3);` */
#define TT_MSG(name, ...) ((tt_msg_##name##_t){.type = TT_MSG_##name, __VA_ARGS__})

/*  Pack any message struct (pointer to its beginning) behind what `out` holds.
 *  TT_INVALID: a field is over its limit, or `out` is full (the text names message and field). */
tt_status_t tt_msg_pack(tt_buf_t *out, const void *msg);

/*  Unpack frame 0. Allocates no more than the bytes at hand and the limits of messages.def allow. TT_PROTOCOL: not msgpack, trailing bytes, unknown
 *  message, wrong type, over a limit (the text names message and field); nothing is left to clear then. */
tt_status_t tt_msg_unpack(tt_msg_t *out, const void *data, size_t size);

/*  Free what unpack allocated; the message is then zero. */
void tt_msg_clear(tt_msg_t *self);

/*  "SEGMENT", "?" for an unknown id; most raw frames that may follow. */
const char *tt_msg_name(tt_msg_id_t id);
size_t tt_msg_frames(tt_msg_id_t id);

/*  One line for logs: "SEGMENT era=1 batch=12 ...", long texts cut. */
void tt_msg_print(tt_buf_t *out, const void *msg);

/* ---- the tables behind it, for docs, fuzzing and tests ----------------------------------------------------------- */

typedef enum { TT_KIND_u32, TT_KIND_u64, TT_KIND_i64, TT_KIND_f64, TT_KIND_flag, TT_KIND_str, TT_KIND_list } tt_kind_t;

typedef struct tt_field {
    const char *name;
    tt_kind_t kind;
    size_t offset, count_offset; /* in the struct; count_offset for lists          */
    uint64_t limit;
    const char *doc;
    const struct tt_record *record; /* lists                                          */
} tt_field_t;

typedef struct tt_record {
    const char *name;
    size_t size; /* of the struct                                  */
    const tt_field_t *fields;
    size_t field_count;
    const char *doc;
} tt_record_t;

typedef struct {
    tt_msg_id_t id;
    const char *from, *to;
    size_t frames;
    tt_record_t record;
} tt_msg_info_t;

const tt_msg_info_t *tt_msg_infos(size_t *count);
/*  NULL for an unknown id. */
const tt_msg_info_t *tt_msg_info(tt_msg_id_t id);
