/*  decode - reading a spec, whatever its generation: what is wrong is said in the job's `invalid`. Internal to k8s/tfjob.
 *
 *  `where` is the path of what holds a member: "spec.tfReplicaSpecs.PS". Threads: pure. */
#pragma once
#include "common/base/mem.h"
#include "k8s/front/object.h"
#include "k8s/tfjob/tfjob.h"

/*  The first reason stays. */
#define INVALID(job, ...)                             \
    do {                                              \
        if (!(job)->invalid)                          \
            (job)->invalid = tt_sprintf(__VA_ARGS__); \
    } while (0)

/*  The first of these words, the empty one, is the default; their count: it is none of them. An absent or null member is none. */
size_t tfjob_word(
    tfjob_t *self, const json_t *holder, const char *where, const char *key, const char *const *words, size_t count);
int64_t tfjob_number(tfjob_t *self, const json_t *holder, const char *where, const char *key, int64_t otherwise,
    int64_t min, int64_t max);
/*  Of a template: a container of the name, port and restart policy. type->restart is known by then. */
void tfjob_containers(tfjob_t *self, tfjob_replicas_t *type, const json_t *template_, const char *where);

/* ---- decode_old.c --------------------------------------------------------------------------------------------------------- */

/*  Is it a spec of v1alpha1? By what it holds, for an API server gives it in the version in which it is asked for. */
bool tfjob_is_old(const json_t *spec);
void tfjob_old_spec(tfjob_t *self, const json_t *spec);
