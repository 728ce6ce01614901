/*  kinds - words of types and phases; names of places. */
#include <string.h>
#include <strings.h>
#include "common/base/mem.h"
#include "k8s/front/object.h"
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
    const char *name = job->meta.name, *label = tfjob_type_label(type);
    return job->old.there ? tt_sprintf("%.*s-%s-%s-%d", TFJOB_OLD_NAME, name, label, job->old.runtime_id, index)
                          : tt_sprintf("%s-%s-%d", name, label, index);
}

tfjob_type_t tfjob_decider(const tfjob_t *self)
{
    static const tfjob_type_t order[] = {TFJOB_CHIEF, TFJOB_MASTER};
    if (self->old.there)
        return self->old.chief;
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

/*  v1alpha1's list: a type that is not said is a master's. */
static json_t *s_old_spec(const json_t *list, tfjob_type_t type)
{
    size_t i;
    json_t *holder;
    json_array_foreach((json_t *)(uintptr_t)list, i, holder)
    {
        if (tfjob_type_find(parts_text(holder, "tfReplicaType", "MASTER")) == type)
            return holder;
    }
    return NULL;
}

/*  Keys of the map are in any case. */
json_t *tfjob_replica_spec(const json_t *whole, tfjob_type_t type)
{
    const json_t *spec = json_object_get(whole, "spec"), *list = parts_array(spec, "replicaSpecs");
    const char *key;
    json_t *holder;
    if (list)
        return s_old_spec(list, type);
    json_object_foreach((json_t *)(uintptr_t)parts_object(spec, "tfReplicaSpecs"), key, holder)
    {
        if (tfjob_type_find(key) == type)
            return holder;
    }
    return NULL;
}
