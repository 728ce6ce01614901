/*  request - what GET /create asks for: the query of ElasticDL's client, checked.
 *
 *      strategy=ParameterServer&n_worker=2&n_ps=1&img=mnist&name=default
 *
 *  Threads: pure. */
#pragma once
#include "common/base/status.h"

enum {
    ELASTICDL_NAME =
        41, /* of a task, with the 0: a StatefulSet's name has room for "-worker-", a number and a pod's hash */
    ELASTICDL_IMAGE =
        256, /* of an image, with the 0                                                                       */
    ELASTICDL_MEMBERS =
        256, /* parameter servers and workers of a task together                                              */
    ELASTICDL_QUEUE =
        64, /* of a queue, with the 0                                                                        */
    ELASTICDL_QUERY =
        1536 /* room for any request as a query, with the 0                                                   */
};

typedef enum { ELASTICDL_ALL_REDUCE, ELASTICDL_PARAMETER_SERVER } elasticdl_strategy_t;

typedef struct {
    elasticdl_strategy_t strategy;
    int workers, ps; /* ps: 0 for AllReduce, whatever the query says, as the client always sends one */
    char name[ELASTICDL_NAME], image[ELASTICDL_IMAGE]; /* image: "" = none was named */
    char queue[ELASTICDL_QUEUE]; /* of Kueue's, in which it waits for all of its members' places; "" = in none */
    int deadline_s;              /* so long after it was asked for a task that is not over has failed; 0 = none */
} elasticdl_request_t;

/*  May a queue be called so? */
tt_status_t elasticdl_queue_check(const char *name);
/*  TT_INVALID: the words say which parameter, and what it may be. */
tt_status_t elasticdl_request_read(elasticdl_request_t *out, const char *query);
/*  The query that elasticdl_request_read reads as this. */
void elasticdl_request_write(char out[ELASTICDL_QUERY], const elasticdl_request_t *self);

/*  "AllReduce", "ParameterServer". */
const char *elasticdl_strategy_name(elasticdl_strategy_t strategy);
/*  A task's name is a DNS label: lower case letters, digits, '-' within. TT_INVALID. */
tt_status_t elasticdl_name_check(const char *name);
/*  Together with what they say of each other: how many of each. TT_INVALID. */
tt_status_t elasticdl_request_check(const elasticdl_request_t *self);
