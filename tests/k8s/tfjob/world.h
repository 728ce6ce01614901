/*  world - a TFJob on a cluster in memory, by the front end's own table: whole objects are built, kept and decoded again; what a
 *  kubelet would do the test does. */
#pragma once
#include "k8s/front/front.h"
#include "k8s/tfjob/tfjob.h"
#include "tests/k8s/json.h"

enum { WORLD_OBJECTS = 256 };

typedef struct {
    json_t *job;                        /* whole, with its status */
    json_t *pods[WORLD_OBJECTS];        /* whole                  */
    json_t *services[WORLD_OBJECTS];    /* whole                  */
    json_t *objects[TFJOB_OLD_OBJECTS]; /* whole; NULL = was not made */
    size_t pod_count, service_count;
    uint32_t made; /* objects, as an operator remembers them */
    int64_t now_s;
    unsigned uids;
    bool gone;     /* the job itself was deleted */
    size_t writes; /* of the status              */
    size_t rounds; /* that had something to do   */
    unsigned lose; /* of 100 actions are lost on the way */
    uint32_t (*draw)(void *ctx);
    void *ctx;
    front_refusal_t refusal; /* .words NULL: none */
    char events[65536];      /* "Normal TFJobCreated TFJob x is created.\n" ... */
    size_t event_size;
} world_t;

/*  A job "mnist" of namespace "ns"; spec in the test's quotes ('). A template is "T", see world_spec. */
void world_init(world_t *self, const char *spec);
/*  The text with each T in `'template':T` made the smallest template. Caller frees. */
char *world_spec(const char *spec);
/*  What is decoded of a job of that spec: version "v1", "v1alpha1", NULL = not said; meta is a mapping. */
tfjob_t *world_decode(const char *version, const char *meta, const char *spec);
/*  It is invalid for a reason in which these words stand. Takes `job`. */
void assert_invalid(tfjob_t *job, const char *words);
void world_free(world_t *self);
/*  Change the spec, as a user does. */
void world_edit(world_t *self, const char *spec);

json_t *world_pod(const world_t *self, const char *name); /* NULL */
json_t *world_service(const world_t *self, const char *name);
void world_run(world_t *self, const char *name);
void world_end(world_t *self, const char *name, int exit_code);
/*  Containers of it were started again so often. */
void world_again(world_t *self, const char *name, int restarts);
void world_remove(world_t *self, json_t *pod);
void world_remove_service(world_t *self, size_t at);

/*  Plan and do. False: there was nothing to do. */
bool world_round(world_t *self);
/*  Rounds, and the time that is waited for, till there is nothing to do; who is going goes; fails after `most` of them. */
void world_settle(world_t *self, int most);
/*  How the plan says the time goes: -1 = not. */
int64_t world_again_s(const world_t *self);

/*  Of the status: "" = none. Static. */
const char *world_last(const world_t *self); /* type of the last condition          */
const char *world_condition(const world_t *self, const char *type, const char *member);
int world_count(const world_t *self, const char *type, const char *member);
const char *world_text(const world_t *self, const char *key);
