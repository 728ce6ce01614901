/*  fields - which fields the objects of a manifest may have: a misspelled one is found before anything is made of it.
 *
 *  The API server drops or refuses what its schema has not, and refuses pods with fields that it does not know; on one machine
 *  there is nobody else to say so. The tables are kubernetes.def, for what is Kubernetes' own, and the fields.def of each kind. Pure. */
#pragma once
#include <jansson.h>
#include <stdbool.h>
#include "common/base/status.h"

/*  A type and its fields, as FIELDS of such a table has them. */
typedef struct {
    const char *name, *fields; /* name: NULL at the end of a table */
} tt_fields_type_t;

typedef struct {
    char path[512];   /* "spec.coordinator.template.spec.containers[0].comand"; cut where it is longer */
    char field[64];   /* "comand"; cut where it is longer                                               */
    char near[64];    /* what is nearest to it there; "" = nothing is                                   */
    const char *type; /* what it is a field of, as Kubernetes calls it: "Container"                     */
} tt_fields_unknown_t;

/*  The first field of an object that its kind has not. False: none, or a kind that is in no table. own: the types of who knows the
 *  kind, beside Kubernetes'; NULL = none. */
bool tt_fields_unknown(tt_fields_unknown_t *out, const json_t *object, const tt_fields_type_t *own);
/*  TT_CONFIG, in words. where: "file:line". */
tt_status_t tt_fields_err(const tt_fields_unknown_t *self, const char *where);
