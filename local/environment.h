/*  environment - variables, command and arguments of a container, as a kubelet makes them: envFrom, env with valueFrom,
 *  $(NAME) in values, commands and arguments from the container's own variables and nothing else.
 *
 *  Pure but for the objects of the manifest. Threads: the run's one. */
#pragma once
#include "common/job/job.h"
#include "local/place.h"

typedef struct {
    tt_env_var_t *vars; /* owned; a name is there once */
    size_t count;
} environment_t;

/*  ip: the pod's. TT_NOT_FOUND: a key or object that is not there and not optional; TT_UNSUPPORTED: a field that means
 *  nothing here. */
tt_status_t environment_make(
    environment_t *out, const place_t *place, const json_t *pod, const json_t *container, const char *ip);
/*  Takes value. */
void environment_set(environment_t *self, const char *name, char *value);
void environment_clear(environment_t *self);
/*  NULL = not there. Borrowed. */
const char *environment_get(const environment_t *self, const char *name);
/*  $(NAME) -> its value where there is one, $$ -> $. Caller frees. */
char *environment_expand(const environment_t *self, const char *text);
