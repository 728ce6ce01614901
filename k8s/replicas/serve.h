/*  serve - requests of the replicas API answered: which pod and job one is about, whether who asks may, what is read, and what is
 *  to be work (work.h). Once for all that serve it: the operator, from its stores, and a local run, about its one job.
 *
 *  Threads: those of the server (server.h): the loop's. */
#pragma once
#include "common/http/server.h"
#include "k8s/replicas/orders.h"

/*  Who knows jobs and pods; ctx is the same for all of them, and what they give is borrowed for the call of replicas_serve. */
typedef struct {
    /*  The job (NULL: gone) and its pods; `pods` is freed by who asked. */
    void (*view)(void *ctx, const char *job_uid, replicas_view_t *out);
    /*  NULL: there is none of that name. */
    const dijob_pod_t *(*pod)(void *ctx, const char *namespace_, const char *name);
    const dijob_t *(*job)(void *ctx, const char *namespace_, const char *name);
    /*  Each pod that may be a coordinator, from *at = NULL on; NULL: that was all. */
    const dijob_pod_t *(*each)(void *ctx, const void **at);
    /*  May that address ask about the job? NULL: everybody may. */
    bool (*may)(void *ctx, const char *peer, const char *job_uid);
    /*  Do what the request orders, which names this pod, or begin it and answer when it is done. */
    tt_status_t (*write)(void *ctx, const replicas_request_t *request, const dijob_pod_t *about, json_t **data);
} replicas_host_t;

/*  *data: a new reference; NULL = null. Not TT_OK: as replicas_code has it; there may be data all the same. */
tt_status_t replicas_serve(const replicas_host_t *host, void *ctx, const replicas_request_t *request, json_t **data);

/*  Send the answer: takes data. Returns the HTTP status. status other than TT_OK: with tt_err_text(). */
int replicas_answer(tt_server_t *server, uint64_t id, replicas_verb_t verb, tt_status_t status, json_t *data);
/*  The same of a request that could not be parsed, or of which nothing came. */
int replicas_answer_refused(tt_server_t *server, uint64_t id, const char *method, tt_status_t status);
