/*  tables - messages.def as data: one row a field, found by message id. */
#include "common/wire/msg.h"
#include <stddef.h>
#include <string.h>

/*  offsetof needs the struct's name, which a field of messages.def does not know: every table stands in a function of
 *  its own in which `self_t` is that struct, and s_fill collects them before main. */
#define ROW_F(kind_, field, limit_, doc_) \
    {.name = #field, .kind = TT_KIND_##kind_, .offset = offsetof(self_t, field), .limit = limit_, .doc = doc_},
#define ROW_L(record_, field, limit_, doc_)              \
    {.name = #field,                                     \
        .kind = TT_KIND_list,                            \
        .offset = offsetof(self_t, field),               \
        .count_offset = offsetof(self_t, field##_count), \
        .limit = limit_,                                 \
        .doc = doc_,                                     \
        .record = &s_record_##record_},

#define X(name, doc) static tt_record_t s_record_##name;
TT_RECORDS(X)
#undef X

#define TABLE(name_, type, doc_)                                                      \
    static tt_record_t s_table_##name_(void)                                          \
    {                                                                                 \
        typedef type self_t;                                                          \
        static const tt_field_t fields[] = {TT_FIELDS_##name_(ROW_F, ROW_L)};         \
        return (tt_record_t){#name_, sizeof(self_t), fields, TT_COUNT(fields), doc_}; \
    }

#define X(name, doc) TABLE(name, tt_rec_##name##_t, doc)
TT_RECORDS(X)
#undef X
#define X(name, id, from, to, frames, doc) TABLE(name, tt_msg_##name##_t, doc)
TT_MESSAGES(X)
#undef X

enum {
#define X(name, id, from, to, frames, doc) INDEX_##name,
    TT_MESSAGES(X)
#undef X
        MESSAGES
};
enum { ID_END = 256 };

static tt_msg_info_t s_infos[MESSAGES];
static const tt_msg_info_t *s_by_id[ID_END];

__attribute__((constructor)) static void s_fill(void)
{
#define X(name, doc) s_record_##name = s_table_##name();
    TT_RECORDS(X)
#undef X
#define X(name, id_, from_, to_, frames_, doc)                                                     \
    _Static_assert(id_ > 0 && id_ < ID_END, "message id of " #name);                               \
    s_infos[INDEX_##name] = (tt_msg_info_t){TT_MSG_##name, from_, to_, frames_, s_table_##name()}; \
    s_by_id[id_] = &s_infos[INDEX_##name];
    TT_MESSAGES(X)
#undef X
}

const tt_msg_info_t *tt_msg_infos(size_t *count)
{
    *count = MESSAGES;
    return s_infos;
}

const tt_msg_info_t *tt_msg_info(tt_msg_id_t id)
{
    const unsigned number = (unsigned)id;
    return number < ID_END ? s_by_id[number] : NULL;
}

const char *tt_msg_name(tt_msg_id_t id)
{
    const tt_msg_info_t *info = tt_msg_info(id);
    return info ? info->record.name : "?";
}

size_t tt_msg_frames(tt_msg_id_t id)
{
    const tt_msg_info_t *info = tt_msg_info(id);
    return info ? info->frames : 0;
}

static const char *const s_roles[] = {
    "none", "coordinator", "collector", "learner", "aggregator", "controller", "client"};

const char *tt_peer_role_name(tt_peer_role_t role)
{
    const unsigned number = (unsigned)role;
    return number < TT_COUNT(s_roles) ? s_roles[number] : "none";
}

tt_peer_role_t tt_peer_role_find(const char *name)
{
    for (size_t i = 1; i < TT_COUNT(s_roles); i++)
        if (strcmp(name, s_roles[i]) == 0)
            return (tt_peer_role_t)i;
    return TT_PEER_NONE;
}
