/*  cluster - what the members of a task are told of one another: NUM_WORKERS and TF_CONFIG.
 *
 *      {"cluster":{"worker":["10.0.0.7:1234","10.0.0.8:1234"],"ps":["10.0.0.9:1234"]},"task":{"type":"worker","index":1}}
 *
 *  "ps" only where there are some; no chief, no "environment". NUM_WORKERS counts workers alone.
 *
 *  Threads: pure. */
#pragma once
#include <jansson.h>
#include "elasticdl/request.h"

enum { ELASTICDL_ADDRESS = 192 }; /* "HOST:PORT" with the 0: a pod by its service and namespace */

typedef enum { ELASTICDL_PS, ELASTICDL_WORKER } elasticdl_type_t; /* in the order in which they are made and run */

/*  The members of a task as one list: its parameter servers by ordinal, then its workers by ordinal. */
typedef struct {
    int ps, workers;
    const char (*addresses)[ELASTICDL_ADDRESS]; /* of all; borrowed */
} elasticdl_cluster_t;

/*  "ps", "worker". */
const char *elasticdl_type_name(elasticdl_type_t type);
/*  Of the member at this place of the list: its type, and its number within that. */
elasticdl_type_t elasticdl_member_type(const elasticdl_cluster_t *self, int member);
int elasticdl_member_index(const elasticdl_cluster_t *self, int member);

/*  TF_CONFIG of a member; a new reference. json_dumps (JSON_COMPACT) gives the text above. */
json_t *elasticdl_tf_config(const elasticdl_cluster_t *self, int member);
/*  The body of POST /config for a member: NUM_WORKERS, TF_CONFIG, MASTER, SET_ID. Caller frees. */
char *elasticdl_config_body(const elasticdl_cluster_t *self, int member, const char *master, int set_id);
