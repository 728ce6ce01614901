/*  rules - the rules of a job: what its replicas are called, what follows when one fails, when the job is done.
 *
 *  Plain data, made by a front end for one call of tt_plan; strings are the front end's. docs/internals/job.md tells what each
 *  rule means and how the kinds of jobs map onto it. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/job/job.h"

typedef enum {
    TT_ID_RANDOM, /* anyone of the group is as good as any other; one in another's place has a name of its own */
    TT_ID_ORDINAL /* places 0 .. want-1; who takes a place has the name that goes with it                       */
} tt_identity_t;

typedef enum {
    TT_FAILURE_REPLACE,     /* another comes in its place, after a back-off                                    */
    TT_FAILURE_RESTART_JOB, /* the groups of this rule are in step: what failed is made anew in a counted round */
    TT_FAILURE_FAIL,        /* the job has failed                                                              */
    TT_FAILURE_RULES
} tt_failure_t;

/*  Exit codes after which the same can only come again: the job fails, whatever the rule. */
typedef enum {
    TT_CODES_NONE,
    TT_CODES_TUTTI,  /* those of our own programs (tt_exit_is_final)                                         */
    TT_CODES_PLAIN,  /* 1 .. 127 are the program's own mistake; from 128 on a signal ended it: "by exit code" */
    TT_CODES_SIGNAL, /* all but 130, 137, 138 and 143 (SIGINT, SIGKILL, SIGUSR1, SIGTERM): a crash by a signal is the
                        program's own mistake, too. TFJob's "ExitCode"                                          */
    TT_CODES_LISTED, /* those of tt_group_t.listed; as TUTTI also of one that waits to be started again     */
    TT_CODES_RULES
} tt_codes_t;

/*  Some of the codes 0 .. 255, which are all there are. */
enum { TT_EXIT_CODES = 256 };
typedef struct {
    uint64_t bits[TT_EXIT_CODES / 64];
} tt_code_set_t;
bool tt_code_set_has(const tt_code_set_t *self, int code); /* any int */
void tt_code_set_put(tt_code_set_t *self, int code, bool on);

typedef enum {
    TT_DECIDES_NONE,  /* works for others: who ends well is wanted still            */
    TT_DECIDES_ALL,   /* done when all that are wanted ended well                   */
    TT_DECIDES_ANY,   /* done when one did                                          */
    TT_DECIDES_FIRST, /* done when the one of place `deciding` did; ordinal only */
    TT_DECIDES_RULES
} tt_decides_t;

typedef enum {
    TT_SERVE_NONE,
    TT_SERVE_REPLICA, /* one a replica, from when it is there till it is gone                                     */
    TT_SERVE_PLACE,   /* one a place of an ordinal group, whoever is in it: a name that outlives a restart          */
    TT_SERVE_JOB,     /* one for the job                                                                           */
    TT_SERVE_RULES
} tt_serve_t;

enum { TT_GROUP_NONE = -1 };

typedef struct {
    const char *name;
    tt_identity_t identity;
    tt_failure_t on_failure;
    tt_codes_t final_codes;
    const tt_code_set_t *listed; /* TT_CODES_LISTED */
    tt_decides_t decides;
    int32_t deciding; /* TT_DECIDES_FIRST: whose end is the job's; below `want` */
    int64_t want; /* -1 = as they are: somebody else makes and removes, only who failed or was disrupted is replaced */
    int64_t min;  /* so many ready are enough for the job to count as running; -1 = all that are wanted              */
    int after;    /* group of which place 0 is to be there before any of this one is made; TT_GROUP_NONE             */
    int owner;    /* group to one of which each of this belongs: it goes with it, or follows to its successor        */
    uint32_t
        keep_failed;    /* newest failed replicas that stay for reading (random identity)                            */
    int64_t fail_after; /* random identity: so many that failed in a row in one place are the job's failure
                           (tt_plan_failures); 0 = none are                                                          */
    bool blocked;       /* none can be made now: no template, or the place refused it                                */
    bool once;          /* ordinal, decides none: who ended well has done its part and stays; else it is wanted still */
} tt_group_t;

typedef struct {
    const tt_group_t *groups;
    size_t group_count;
    int64_t backoff_limit; /* counted restarts before the job fails; -1 = no limit. Those of containers inside replicas
                              that run count by themselves, as batch/v1's Job counts them     */
    int64_t deadline_s;    /* from its start; -1 = none                                     */
    int64_t ttl_s;         /* from its end till the job itself goes; -1 = it stays          */
    tt_clean_t clean;      /* what of it is removed once it is over                         */
    tt_serve_t serve;
    bool clean_gently; /* who is removed then has its own time to end; else none at all      */
    bool servable;     /* TT_SERVE_JOB: the name can be one of a service             */
    bool suspend;      /* nobody of it runs; it goes on when this is off             */
    bool whole;        /* in step, and the numbers change: all go before any comes   */
    bool hold;         /* what new replicas need is not there: none is made or removed */
    bool watch_only;   /* nothing is made or removed, only the stage is decided, by whoever is left */
} tt_rules_t;

/*  Which rules exclude each other: tests/job/sound.c. */
