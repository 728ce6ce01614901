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

const tfjob_generation_t tfjob_generations[TFJOB_GENERATIONS] = {
    [TFJOB_LABELS_OLD] = {"group-name", TFJOB_GROUP, "job-name", "replica-type", "replica-index"},
    [TFJOB_LABELS_BETWEEN] = {"group-name", TFJOB_GROUP, "job-name", TFJOB_BETWEEN "replica-type",
        TFJOB_BETWEEN "replica-index"},
    [TFJOB_LABELS_TODAY] = {TFJOB_TODAY "operator-name", TFJOB_CONTROLLER, TFJOB_TODAY "job-name",
        TFJOB_TODAY "replica-type", TFJOB_TODAY "replica-index"}};

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
static tt_status_t s_old_templates(const json_t *list, front_template_fn fn, void *ctx)
{
    size_t i;
    json_t *holder;
    char path[48];
    json_array_foreach((json_t *)(uintptr_t)list, i, holder)
    {
        const tfjob_type_t type = tfjob_type_find(parts_text(holder, "tfReplicaType", "MASTER"));
        snprintf(path, sizeof path, "spec.replicaSpecs[%zu]", i);
        if (type < TFJOB_TYPES)
            TT_TRY(fn(ctx, &(front_template_t){path, tfjob_type_label(type), holder}));
    }
    return TT_OK;
}

tt_status_t tfjob_templates(const json_t *job, front_template_fn fn, void *ctx)
{
    const json_t *spec = json_object_get(job, "spec"), *specs = parts_object(spec, "tfReplicaSpecs");
    const char *key;
    json_t *holder;
    char path[96];
    if (!specs)
        return s_old_templates(parts_array(spec, "replicaSpecs"), fn, ctx);
    json_object_foreach((json_t *)(uintptr_t)specs, key, holder)
    {
        const tfjob_type_t type = tfjob_type_find(key);
        snprintf(path, sizeof path, "spec.tfReplicaSpecs.%.40s", key);
        if (type < TFJOB_TYPES)
            TT_TRY(fn(ctx, &(front_template_t){path, tfjob_type_label(type), holder}));
    }
    return TT_OK;
}

/*  Which is looked for, and what was found. */
typedef struct {
    const char *type;
    const json_t *holder;
} wanted_t;

static tt_status_t s_on_template(void *ctx, const front_template_t *template_)
{
    wanted_t *wanted = ctx;
    if (!wanted->holder && strcmp(template_->who, wanted->type) == 0)
        wanted->holder = template_->holder;
    return TT_OK;
}

json_t *tfjob_replica_spec(const json_t *whole, tfjob_type_t type)
{
    wanted_t wanted = {.type = type < TFJOB_TYPES ? tfjob_type_label(type) : ""};
    (void)tfjob_templates(whole, s_on_template, &wanted);
    return (json_t *)(uintptr_t)wanted.holder;
}
