/*  objects - what a task is on a Kubernetes: a StatefulSet and a headless Service for each type, made and read again.
 *
 *      <task>-<worker|ps>-<id>      of both; labels app=<task>-<id> and type=<worker|ps> as the original's, and tutti-elasticdl=<id>
 *      <set>-<ordinal>.<set>.<namespace>.svc:1234    where a member's program serves
 *
 *  The StatefulSet is the record of its task: annotations say the request, and how it ended. Where its members are placed together or not at
 *  all, there is a PodGroup <task>-<id>, and an annotation says whose.
 *
 *  Threads: pure. */
#pragma once
#include <jansson.h>
#include "elasticdl/task.h"
#include "elasticdl/template.h"

enum {
    EDL_AGENT_PORT = 7896,
    EDL_PROGRAM_PORT = 1234,
    EDL_SET_NAME = 53, /* with the 0: its pods have a label of its name and a hash */
};

#define EDL_LABEL        "tutti-elasticdl"
#define EDL_SECRET       "tutti-master" /* "token" in it: what agents want to see */
#define EDL_NOTE_REQUEST "tutti-elasticdl-request"
#define EDL_NOTE_END     "tutti-elasticdl-end"
#define EDL_NOTE_GANG    "tutti-elasticdl-gang" /* gang_t.name */

/*  What is the same for all tasks of a master; strings are borrowed. */
typedef struct {
    const char *namespace_;
    const char *agent_image; /* from which a pod gets its agent; NULL = the task's image has `tutti` in its PATH    */
    const char *dir, *program, *python; /* as pod-agent's options; NULL = its defaults                              */
    int grace_s;
    edl_templates_t templates; /* what else pods get; borrowed, too                                                  */
} edl_objects_t;

/*  TT_INVALID: too long with its number. */
tt_status_t edl_set_name(char out[EDL_SET_NAME], const char *task, elasticdl_type_t type, int id);
/*  New references. */
json_t *edl_set(const edl_objects_t *self, const edl_task_t *task, elasticdl_type_t type);
json_t *edl_service(const edl_objects_t *self, const edl_task_t *task, elasticdl_type_t type);
/*  The PodGroup of all members of a task that has one. */
json_t *edl_group(const edl_objects_t *self, const edl_task_t *task);
/*  The Workload of a task with a queue, which has its name and its owner when the workers' set is there (uid). */
json_t *edl_workload(const edl_objects_t *self, const edl_task_t *task);
void edl_workload_own(json_t *workload, const edl_task_t *task, const char *uid);
/*  The patch (JSON) by which the pods of a set are made that is admitted, with what Kueue's updates have for it and nothing of those before; and
 *  that (merge) by which they go. */
json_t *edl_set_raise(const edl_objects_t *self, const edl_task_t *task, elasticdl_type_t type, const json_t *updates);
json_t *edl_set_lower(void);
/*  The patch (merge) by which a set ends: no pods, and why. Takes record. */
json_t *edl_set_end(json_t *record);
/*  Where the program of a member of that set serves. */
void edl_set_address(char out[ELASTICDL_ADDRESS], const edl_objects_t *self, const char *set, int ordinal);

/*  A StatefulSet of the API server's, read: the number of its task, its request and end (NULL = none; borrowed), its type, and when it was made
 *  (seconds since 1970). TT_DATA: it is none of a master's. */
typedef struct {
    int id;
    elasticdl_type_t type;
    elasticdl_request_t request;
    const gang_t *gang; /* by whom its members are placed together; NULL */
    const char *end, *uid;
    bool raised; /* it has pods, or is to have them */
    int64_t made_s;
} edl_found_t;
tt_status_t edl_set_read(edl_found_t *out, const json_t *object);

/*  What is to be known of a pod. */
typedef struct {
    char set[EDL_SET_NAME], uid[40], ip[46];
    int ordinal;
    bool ready, leaving, restarted; /* restarted: its agent has ended, and was started again                          */
    char trouble[EDL_TASK_WAITS];   /* why it does not begin, or failed: "ImagePullFailed: ..."; "" = nothing known   */
} edl_pod_t;
/*  TT_DATA: it is no member's. */
tt_status_t edl_pod_read(edl_pod_t *out, const json_t *object);
/*  Why a StatefulSet could make no pod, of an event of the API server's. TT_DATA: it is not about one. */
tt_status_t edl_event_read(char set[EDL_SET_NAME], char why[EDL_TASK_WAITS], const json_t *object);
