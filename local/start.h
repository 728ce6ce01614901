/*  start - one container of a local pod: from its JSON to a process of the substrate.
 *
 *  Threads: the run's one. */
#pragma once
#include "controller/substrate.h"
#include "local/place.h"

typedef struct {
    place_t *place;
    tt_substrate_t *substrate;
    const json_t *pod, *container;
    const char *ip;
    bool tutti; /* a container without a command, or with one called tutti, runs this program */
} start_t;

/*  TT_NOT_FOUND, TT_INVALID, ...: it cannot be started, and why. */
tt_status_t start_container(const start_t *self, tt_replica_id_t *id);
/*  "coordinator" for container di-container of pod job-coordinator, "collector-x7k2d.shell" for another one: name of its log
 *  and of its control group. Caller frees. */
char *start_name(const place_t *place, const json_t *pod, const json_t *container);
