/*  desk - a job "n/j" with its pods in memory, and what its coordinator asks for: what a request of the replicas API is about.
 *
 *  Threads: an instance belongs to one thread. */
#pragma once
#include "k8s/replicas/orders.h"
#include "tests/test.h"

enum { DESK_PODS = 16, DESK_NAME = 64 };

typedef struct {
    dijob_t job; /* collectors and learners have templates, and no numbers */
    dijob_pod_t pods[DESK_PODS];
    char names[DESK_PODS][DESK_NAME];
    const dijob_pod_t *seen[DESK_PODS];
    replicas_view_t view;       /* of all these; its addresses are "NAME:PORT" */
    replicas_request_t request; /* to create nobody                            */
    uint64_t random;
    int declared; /* how often that was said */
} desk_t;

/*  With the coordinator alone, which is pods[0]. It stays where it is. */
void desk_open(desk_t *self);
/*  One more that runs, the youngest, with the uid "uid-of-NAME". */
dijob_pod_t *desk_pod(desk_t *self, const char *name, dijob_role_t role);
