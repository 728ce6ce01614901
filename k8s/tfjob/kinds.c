/*  kinds - words of types and phases; names of places. */
#include <string.h>
#include <strings.h>
#include "common/base/mem.h"
#include "k8s/tfjob/tfjob.h"

typedef struct {
    const char *label, *title;
} type_row_t;

static const type_row_t s_types[TFJOB_TYPES] = {
#define X(name, label, title) [TFJOB_##name] = {label, title},
    TFJOB_TYPE_MAP(X)
#undef X
};

const char *const tfjob_phases[TFJOB_PHASES + 1] = {
#define X(name, text) [TFJOB_PHASE_##name] = text,
    TFJOB_PHASE_MAP(X)
#undef X
};

const char *tfjob_type_label(tfjob_type_t type)
{
    TT_CHECK((unsigned)type < TFJOB_TYPES);
    return s_types[type].label;
}

const char *tfjob_type_title(tfjob_type_t type)
{
    TT_CHECK((unsigned)type < TFJOB_TYPES);
    return s_types[type].title;
}

tfjob_type_t tfjob_type_find(const char *text)
{
    int type = 0;
    while (type < TFJOB_TYPES && (!text || strcasecmp(s_types[type].label, text) != 0))
        type++;
    return (tfjob_type_t)type;
}

char *tfjob_place_name(const tfjob_t *job, tfjob_type_t type, int32_t index)
{
    return tt_sprintf("%s-%s-%d", job->meta.name, tfjob_type_label(type), index);
}

tfjob_type_t tfjob_decider(const tfjob_t *self)
{
    static const tfjob_type_t order[] = {TFJOB_CHIEF, TFJOB_MASTER};
    for (size_t i = 0; i < TT_COUNT(order); i++)
        if (self->types[order[i]].there)
            return order[i];
    return TFJOB_WORKER;
}

int64_t tfjob_replicas(const tfjob_t *self)
{
    int64_t sum = 0;
    for (int type = 0; type < TFJOB_TYPES; type++)
        sum += self->types[type].there ? self->types[type].replicas : 0;
    return sum;
}
