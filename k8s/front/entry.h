/*  entry - what is kept of a pod and of a service, whatever kind its job is of: what those who know no kind see of them
 *  (front.h), and how that is read.
 *
 *  An entry of a kind begins with it, and has what the kind alone knows behind it. It is one block with its strings, of the
 *  pool (there may be ten thousand): made by entry_pack_*, freed by tt_pool_free. Threads: pure. */
#pragma once
#include "common/base/pool.h"
#include "common/job/plan.h"
#include "k8s/front/object.h"

/*  By which a pod is of a group: of scheduler-plugins, of Volcano. */
#define ENTRY_GROUP_LABEL "scheduling.x-k8s.io/pod-group"
#define ENTRY_GROUP_NOTE  "scheduling.k8s.io/group-name"

typedef enum { POD_PENDING, POD_RUNNING, POD_SUCCEEDED, POD_FAILED, POD_UNKNOWN } pod_phase_t;

/*  What pods and services begin with. */
#define ENTRY_OWNED                                                           \
    kube_meta_t meta;                                                         \
    char *job;        /* name of its job, by the label                     */ \
    char job_uid[37]; /* controller owner reference; "" = none             */ \
    bool deleting;

/*  "Main": of the container that counts. */
#define ENTRY_POD                                                                                       \
    ENTRY_OWNED                                                                                         \
    char ip[46];   /* status.podIP; "" = none                                                   */      \
    uint8_t phase; /* pod_phase_t                                                               */      \
    bool scheduled, ready;                                                                              \
    bool disrupted;     /* condition DisruptionTarget True                                           */ \
    bool refused;       /* its node would not take it: reason UnexpectedAdmissionError or Outof*     */ \
    bool grouped;       /* of a gang scheduler's group (gang.h) */                                      \
    uint16_t port;      /* main                                                                      */ \
    int16_t exit_code;  /* main; -1 = none                                                           */ \
    int16_t last_exit;  /* the same, or that with which it waits to be started again                 */ \
    int64_t created_s;  /* creationTimestamp, Unix                                                   */ \
    int64_t finished_s; /* main: terminated at; 0 = not                                              */ \
    char *why;          /* one word: what keeps it from running, or how it failed; NULL              */ \
    char *words;        /* what there is to be said: the last line of its log, the kubelet's; NULL   */

typedef struct {
    ENTRY_POD
} front_pod_t;

/*  All of a service, and how a pod begins. */
typedef struct {
    ENTRY_OWNED
} front_service_t;

/*  At the beginning of a kind's own entry: its members by their names, and all of them as one. */
#define ENTRY_IS_A_POD      \
    union {                 \
        front_pod_t as_pod; \
        struct {            \
            ENTRY_POD       \
        };                  \
    };
#define ENTRY_IS_A_SERVICE          \
    union {                         \
        front_service_t as_service; \
        struct {                    \
            ENTRY_OWNED             \
        };                          \
    };

/*  Phase Succeeded or Failed: its address may be another's by now. */
static inline bool entry_ended(const front_pod_t *pod)
{
    return pod->phase == POD_SUCCEEDED || pod->phase == POD_FAILED;
}

/*  What it is to the planner. One whose node does not answer is pending: nothing follows till it is known. */
tt_replica_state_t entry_state(const front_pod_t *pod);
/*  "Pending", as status.phase has it. */
const char *entry_phase(const front_pod_t *pod);
/*  What is read of a pod, for a reflector: everything else may be dropped. */
extern const char *const entry_pod_drop[];

/* ---- reading -------------------------------------------------------------------------------------------------------- */

/*  JSON of one object -> what `read` makes of it. TT_DATA: no JSON, or not such an object. */
tt_status_t entry_decode(
    void **out, const char *json, size_t size, tt_status_t (*read)(void **out, const json_t *object));
/*  The same as a function for entries of a type, freed by tt_pool_free. */
#define ENTRY_DECODE(name, type, read)                          \
    tt_status_t name(type **out, const char *json, size_t size) \
    {                                                           \
        void *entry = NULL;                                     \
        TT_TRY(entry_decode(&entry, json, size, read));         \
        *out = entry;                                           \
        return TT_OK;                                           \
    }
/*  All but what is of the main container. Strings are borrowed from the tree, but for those of meta: entry_pack_pod. */
tt_status_t entry_pod(front_pod_t *self, const json_t *object, const char *job);
/*  Exit codes, why and words, of the main container's status (NULL = it has none). `trouble` is what these point into. */
void entry_pod_main(front_pod_t *self, const json_t *status, const json_t *main_status, parts_trouble_t *trouble);
tt_status_t entry_service(front_service_t *self, const json_t *object, const char *job);
/*  A label or annotation that is a number of at most seven digits; -1. */
int32_t entry_number(const json_t *map, const char *key);
/*  For a member of an entry that is packed before the tree goes. */
static inline char *entry_borrow(const char *text)
{
    return (char *)(uintptr_t)text;
}

/*  The entry and its strings as one block; what meta owned is freed. strings: where the kind's own pointers to some are. */
void *entry_pack_pod(void *loose, size_t size, const size_t *strings, size_t count);
void *entry_pack_service(void *loose, size_t size);
