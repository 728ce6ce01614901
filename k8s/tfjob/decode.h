/*  decode - reading a spec, whatever its generation: what is wrong is said in the job's `invalid`. Internal to k8s/tfjob.
 *
 *  `where` is the path of what holds a member: "spec.tfReplicaSpecs.PS". Threads: pure. */
#pragma once
#include "k8s/front/spec.h"
#include "k8s/tfjob/tfjob.h"

#define INVALID(job, ...) SPEC_WRONG(&(job)->invalid, __VA_ARGS__)

/*  Of a template: a container of the name, port and restart policy. type->restart is known by then. */
void tfjob_containers(tfjob_t *self, tfjob_replicas_t *type, const json_t *template_, const char *where);

/* ---- decode_old.c --------------------------------------------------------------------------------------------------------- */

/*  Is it a spec of v1alpha1? By what it holds, for an API server gives it in the version in which it is asked for. */
bool tfjob_is_old(const json_t *spec);
void tfjob_old_spec(tfjob_t *self, const json_t *spec);
