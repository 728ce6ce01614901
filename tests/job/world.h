/*  world - replicas of one job in memory: what a plan says is done, what befalls them the test says. */
#pragma once
#include "common/job/plan.h"
#include "tests/test.h"

enum { WORLD_REPLICAS = 256, WORLD_GROUPS = 4 };

typedef struct {
    tt_rules_t rules;
    tt_group_t groups[WORLD_GROUPS];
    tt_plan_state_t state;
    char first[16];
    tt_replica_t replicas[WORLD_REPLICAS]; /* names, uids, replaces, owner are owned */
    size_t replica_count;
    tt_service_t services[WORLD_REPLICAS]; /* names are owned */
    size_t service_count;
    int64_t now_s;
    unsigned uids;
    bool forgotten;
    tt_fact_t last;       /* the last that was decided */
    unsigned lose;        /* of 100 actions are lost on the way */
    unsigned lose_writes; /* of 100 states are not written, and then nothing is done */
    uint32_t (*draw)(void *ctx);
    void *ctx;
} world_t;

/*  No group yet; now = 1000. */
void world_init(world_t *self);
/*  A group of that rule, nothing else said. */
tt_group_t *world_group(world_t *self, tt_identity_t identity, tt_failure_t on_failure, tt_decides_t decides, int want);
void world_free(world_t *self);

tt_replica_t *world_add(world_t *self, size_t group, const char *name, int index);
void world_remove(world_t *self, tt_replica_t *replica);
void world_unserve(world_t *self, size_t at);             /* that service is gone */
tt_replica_t *world_get(world_t *self, const char *name); /* NULL */
void world_run(world_t *self, tt_replica_t *replica);
void world_end(world_t *self, tt_replica_t *replica, int exit_code);
size_t world_alive(const world_t *self, size_t group);
size_t world_succeeded(const world_t *self, size_t group);

void world_plan(const world_t *self, tt_plan_t *out);
/*  The state is written first. */
void world_do(world_t *self, const tt_plan_t *plan);
/*  Plan and do; every replica gets what it waits for and time goes on, till there is nothing to do; fails after `most`. */
void world_settle(world_t *self, int most);

/*  sound.c: TT_CONFIG: a rule that another excludes, or a group that is none (text says which). */
tt_status_t rules_check(const tt_rules_t *rules);
