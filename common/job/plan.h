/*  plan - what is to be done about a job, as a pure function of its rules and of what is seen: no I/O, no clock.
 *
 *  Whoever runs a job looks, tt_plan decides, the front end words and keeps the facts, and then the actions are done.
 *  Looked at twice in one state the plan is the same, and where all is as wanted it is empty. What is counted (restarts,
 *  reshapes) is in the state, which is to be written before anything is done.
 *
 *  All strings of the input are borrowed, and the plan refers to the input by index. Threads: pure. */
#pragma once
#include "common/job/rules.h"

#define TT_PLAN_NONE SIZE_MAX

enum {
    TT_PLAN_CREATES_MAX = 500, /* replicas a round: the next round makes the rest     */
    TT_PLAN_BACKOFF_MAX_S = 60,
    TT_PLAN_RESET_S = 600,  /* who lived so long begins its back-off anew          */
    TT_PLAN_SUCCESS_S = 10, /* first back-off of one that ended well though wanted */
    TT_PLAN_REFUSED_S = 5,  /* in step: one that its place refused waits so long   */
    TT_PLAN_RESHAPES_MAX = 9999999
};

typedef enum {
    TT_REPLICA_PENDING, /* or nobody knows how it is */
    TT_REPLICA_RUNNING,
    TT_REPLICA_SUCCEEDED,
    TT_REPLICA_FAILED
} tt_replica_state_t;

typedef struct {
    const char *name, *uid;
    size_t group;        /* index; group_count or more: of no group of this job, it goes  */
    int32_t index, rank; /* its place in the group, and a number in the job; -1 = none    */
    tt_replica_state_t state;
    bool deleting;
    bool disrupted; /* on its way out, or failed, by its place's doing                     */
    bool lost;      /* ended, and nobody's fault: another comes and nothing is counted     */
    bool refused;   /* the same, by a place that would not take it: after a little while   */
    bool scheduled, ready;
    bool runs;                  /* holds what others could use: TT_CLEAN_RUNNING removes it         */
    bool over;                  /* nothing of it works any more: it is kept for reading only       */
    bool named;                 /* of several in one place it has the right name                    */
    bool servable;              /* its name can be one of a service                                 */
    int32_t exit_code;          /* -1 = none                                                        */
    int32_t restarts, reshapes; /* of the state when it was made (action)                  */
    bool waits;                 /* what is in it failed, and its place is to start it again         */
    int32_t own_restarts;       /* how often its place started what is in it again, it being there all the time */
    int64_t created_s, ended_s; /* ended_s: its creation where nobody knows                */
    int64_t backoff_s;          /* waited before it was made                               */
    int32_t failures;           /* in a row, in its place, before it was made              */
    const char *replaces;       /* name of the one whose place it took; NULL               */
    const char *owner;          /* of an owned group: name of the one it belongs to; NULL  */
    bool leads;                 /* of its owner's: all others know its address             */
    int32_t weight;             /* the heaviest come first; ranks are counted by it        */
} tt_replica_t;

typedef struct {
    const char *name; /* of its replica, or anything */
    bool deleting;
    bool of_job;   /* the job's one                                                           */
    size_t group;  /* TT_SERVE_PLACE: of which group; group_count or more: of none, it goes */
    int32_t index; /* and of which place of it                                              */
} tt_service_t;

typedef enum {
    TT_STAGE_NEW,
    TT_STAGE_PENDING,
    TT_STAGE_STARTING,
    TT_STAGE_RUNNING,
    TT_STAGE_RESTARTING,
    TT_STAGE_RESHAPING, /* the numbers changed */
    TT_STAGE_SUSPENDED,
    TT_STAGE_SUCCEEDED,
    TT_STAGE_FAILED
} tt_stage_t;

/*  What a front end keeps of a job from one look to the next. */
typedef struct {
    tt_stage_t stage;
    int64_t restarts, reshapes;
    int64_t started_s, ended_s; /* 0 = not                                                       */
    const char *first;          /* uid of the first that decides, last seen; "" = none; borrowed */
} tt_plan_state_t;

typedef struct {
    const tt_replica_t *replicas;
    size_t replica_count;
    const tt_service_t *services;
    size_t service_count;
    int64_t now_s;
} tt_seen_t;

typedef enum {
    TT_WHY_RULES,      /* as the groups' rules have it                                 */
    TT_WHY_FIRST,      /* the first that decides (replica)                             */
    TT_WHY_REPLICA,    /* one failed that may not (replica)                            */
    TT_WHY_CODE,       /* one ended in a way that can only come again (replica)        */
    TT_WHY_LIMIT,      /* restarts reached the limit (replica: who failed, or restarted most; count) */
    TT_WHY_IN_A_ROW,   /* too many failed in a row in one place (replica: the last; count)           */
    TT_WHY_DEADLINE,   /* it ran longer than it may                                    */
    TT_WHY_AGAIN,      /* all are there after a restart or a reshape (count, wanted)   */
    TT_WHY_NOBODY_LEFT /* watch_only, and nobody works any more (count: of failed)     */
} tt_why_t;

/*  The stage was decided; the same as before, too: a front end tells by its own status whether that is news. */
typedef struct {
    tt_stage_t stage;
    tt_why_t why;
    size_t replica; /* TT_PLAN_NONE = nobody's doing */
    size_t count, wanted;
} tt_fact_t;

typedef enum { TT_DO_CREATE, TT_DO_DELETE, TT_DO_SERVE, TT_DO_UNSERVE, TT_DO_FORGET } tt_do_t;

/*  Where one stands among those of its owner. */
typedef struct {
    size_t lead, size;  /* the one that leads; how many there are                  */
    int64_t start, sum; /* weights before it, of all                               */
} tt_gang_t;

typedef struct {
    tt_do_t what;
    size_t group;        /* CREATE; SERVE of a place                                                */
    size_t replica;      /* DELETE, SERVE; CREATE: whose place it takes; TT_PLAN_NONE = SERVE the job, or a place */
    size_t service;      /* UNSERVE                                                                 */
    size_t owner;        /* CREATE in an owned group                                                */
    int32_t index, rank; /* CREATE, SERVE of a place; -1 = none                                     */
    int32_t restarts, reshapes;
    int64_t backoff_s;
    int32_t failures;
    int grace_s; /* DELETE; -1 = the replica's own                                          */
    tt_gang_t gang;
    bool lead_goes; /* CREATE in an owned group: who leads is replaced with it                 */
} tt_action_t;

typedef struct {
    tt_action_t *actions; /* in the order of decision */
    size_t count, room;
    tt_fact_t facts[4]; /* in the order of decision */
    size_t fact_count;
    tt_plan_state_t state; /* after it; `first` is borrowed from the replicas or the old state */
    size_t first, twins;   /* the first that decides, TT_PLAN_NONE; how many claim to be it    */
    int64_t again_s;       /* look again then though nothing changed; -1 = no                  */
} tt_plan_t;

/*  `out` needs no preparation and is to be cleared. */
void tt_plan(tt_plan_t *out, const tt_rules_t *rules, const tt_plan_state_t *state, const tt_seen_t *seen);
void tt_plan_clear(tt_plan_t *self);

bool tt_stage_final(tt_stage_t stage);
/*  Counts as there: not going, not ended. */
bool tt_replica_alive(const tt_replica_t *self);
/*  The n of a group that go first when fewer are wanted: unscheduled, not ready, newest, then by name; never one that is
 *  going. Indices; returns how many. */
size_t tt_plan_victims(const tt_replica_t *replicas, size_t count, size_t group, size_t n, size_t *out);
/*  Where a replica stands among these, of which all that belong to its owner count. */
tt_gang_t tt_plan_gang(const tt_replica_t *replicas, size_t count, size_t at);
/*  Seconds from the end of one till another may take its place, and those that are left of them (0 = now). */
int64_t tt_plan_delay_s(const tt_replica_t *self);
int64_t tt_plan_wait_s(const tt_replica_t *self, int64_t delay_s, int64_t now_s);
/*  How many have failed in a row in its place, it included: each by its own doing, within TT_PLAN_RESET_S of its beginning. Who lives
 *  longer or ends well begins anew at 0, and so does a place that was left empty as long; one that was disrupted, or that its place
 *  refused, neither counts nor forgets. What was started again inside it counts where that lived for less than TT_PLAN_RESET_S each
 *  time, on the average: nothing more is known of it. */
int32_t tt_plan_failures(const tt_replica_t *self, int64_t now_s);
