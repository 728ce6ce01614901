/*  replicas - the HTTP API by which a job's coordinator asks for collectors and learners (DI-engine's operator server).
 *
 *    GET|POST|DELETE /v1alpha1/replicas      POST /v1alpha1/replicas/failed      GET /healthz
 *    GET|POST|DELETE /v2alpha1/job/<ns>.<name>/replicas
 *
 *  Here: parsing, checking, envelope and codes. What it means is done by a backend: the operator's, on the API server, or
 *  the local one, on processes. Bodies at most 64 KiB. docs/internals/k8s-api.md has every code.
 *  Threads: those of the server (server.h): the loop's. */
#pragma once
#include "common/base/buf.h"
#include "k8s/dijob/dijob.h"

#define REPLICAS_HEALTHZ "" /* DI-orchestrator answers GET /healthz with 200 and nothing */

enum { REPLICAS_BODY_MAX = 65536, REPLICAS_MAX = 1000 /* asked for at a time, a role */ };

typedef struct {
    int replicas;               /* asked for; 0 = none     */
    char *cpus, *memory, *gpus; /* quantities; NULL = as the template says (absent, empty or zero in the body) */
} replicas_ask_t;

typedef enum { REPLICAS_GET, REPLICAS_CREATE, REPLICAS_DELETE, REPLICAS_FAILED } replicas_verb_t;

typedef struct {
    replicas_verb_t verb;
    char peer[46];                                      /* address of who asks; the caller's to fill in */
    char *namespace_, *coordinator, *aggregator, *name; /* NULL = not given                             */
    replicas_ask_t collectors, learners;
    char **failed_collectors, **failed_learners; /* pod names, each once; NULL-terminated; FAILED only         */
    bool v2; /* /v2alpha1/job/NS.NAME/replicas: name is set, collectors.replicas = n */
} replicas_request_t;

/*  Parse and check; body may be NULL. TT_INVALID: 400 with tt_err_text(); TT_NOT_FOUND 404; TT_UNSUPPORTED: 501. */
tt_status_t replicas_parse(
    replicas_request_t **out, const char *method, const char *path, const char *query, const char *body, size_t size);
void replicas_request_destroy(replicas_request_t **self_p);

/*  The name of the pod that a request is about; NULL = of none. */
const char *replicas_about(const replicas_request_t *self);
/*  May it be about this one, which was found by that name (NULL: there is none)? DI-engine's aggregator reports its learners as if it were a
 *  coordinator. TT_NOT_FOUND. */
tt_status_t replicas_check_about(const replicas_request_t *self, const dijob_pod_t *pod);
/*  May the pod that a FAILED request is about, of role `by`, report this one (or the one that took its place)? An aggregator
 *  its own learners and nobody else. TT_INVALID. */
tt_status_t replicas_may_report(
    const replicas_request_t *self, dijob_role_t by, const char *name, const dijob_pod_t *pod);

/*  What has come of a request. A list may be NULL where the spec says null. */
typedef struct {
    int code;         /* HTTP status                                     */
    const char *text; /* message of a failure; NULL = the verb's success text */
    json_t *data;     /* borrowed; NULL = null                           */
} replicas_reply_t;
/*  {"success":...,"code":...,"message":...,"data":...} */
tt_status_t replicas_print(tt_buf_t *out, replicas_verb_t verb, const replicas_reply_t *reply);
/*  The HTTP status of a failure: 400, 403, 404, 409, 500, 501, 503. */
int replicas_code(tt_status_t status);
/*  The envelope of a failure with tt_err_text(), for one that replicas_parse refused too. Returns the HTTP status. data is
 *  null where the method only reads or is not served, otherwise the object with nothing in it. */
int replicas_refuse(tt_buf_t *out, const char *method, tt_status_t status);

/*  {"namespace","coordinator","collectors":[...],"learners":[...]}; lists are taken (NULL = null). */
json_t *replicas_object(const char *namespace_, const char *coordinator, json_t *collectors, json_t *learners);
