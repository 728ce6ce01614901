/*  substrate - the whole interface a place to run replicas must offer (docs/architecture.md section 3).
 *
 *  The controller reconciles desired and actual replicas of a job through this table and knows no other way.
 *  Threads: an instance belongs to one thread. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "common/base/status.h"
#include "common/job/job.h"
#include "controller/steps.h"

typedef uint64_t tt_replica_id_t; /* never reused within one substrate */

typedef struct {
    const char *job;                /* name of the job                                            */
    const char *role;               /* "collector"                                                */
    uint32_t index;                 /* number within the role                                     */
    const tt_template_t *template_; /* command, env, ...; borrowed                               */
    const char *log;                /* its log is logs/<log>.log; NULL = <role>-<index>          */
    const char *output;             /* processes: the path of its log instead of that; NULL = not */
    const tt_steps_t *steps;        /* processes: carried out in the child before exec; borrowed. NULL = none */
} tt_replica_spec_t;

typedef enum { TT_PHASE_RUNNING, TT_PHASE_SUCCEEDED, TT_PHASE_FAILED, TT_PHASE_LOST } tt_replica_phase_t;

typedef struct {
    tt_replica_id_t id;
    tt_replica_phase_t phase;
    int pid;          /* of what has ended, where it was a process here; 0 = not known */
    int exit_code;    /* SUCCEEDED, FAILED; 128 + signal when killed                */
    int signal;       /* 0 = none                                                   */
    char reason[384]; /* for a person: "killed by SIGKILL", "OOMKilled"             */
    char why[160];    /* behind that in a sentence: ", not by tutti: ..."; "" = nothing  */
} tt_replica_event_t;

typedef struct tt_substrate tt_substrate_t;
typedef struct {
    tt_status_t (*start)(tt_substrate_t *self, const tt_replica_spec_t *spec,
        tt_replica_id_t *out); /* the words of a failure do not name the replica: who asks knows by which name */
    tt_status_t (*stop)(
        tt_substrate_t *self, tt_replica_id_t id, int grace_ms); /* asks; kills after grace; event follows */
    tt_status_t (*poll)(
        tt_substrate_t *self, tt_replica_event_t *events, size_t *count); /* count in: room, out: used; never blocks */
    tt_status_t (*logs)(tt_substrate_t *self, tt_replica_id_t id, int fd);
    void (*destroy)(tt_substrate_t **self_p); /* stops and reaps everything it started, forks of forks included */
} tt_substrate_ops_t;

struct tt_substrate {
    const tt_substrate_ops_t *ops;
};
