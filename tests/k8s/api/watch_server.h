/*  watch_server - watch_server.py as a child of a test, with a loop and a client that speak to it. */
#pragma once
#include "k8s/api/client.h"

typedef struct {
    kube_config_t *config;
    tt_clock_t clock; /* stands; world_until turns it */
    tt_reactor_t *loop;
    kube_client_t *client;
} world_t;

/*  The server is started for the first world, and as new for each. One world at a time. */
void world_open(world_t *self);
void world_close(world_t *self);
/*  The last world is closed: end the server (a group's teardown). */
int world_end(void **state);
/*  POST /ctl. The text has ' for ". Returns the answer; caller frees. */
char *world_ctl(world_t *self, const char *command);
/*  Has something met each of the faults that were asked for? What is to be held back is held then. ctx: the world. */
bool world_met(void *ctx);
/*  One request with kube_client_call; ' for " in the body. */
tt_status_t world_call(world_t *self, const char *method, const char *path, const char *body, char **answer);
/*  Run the loop, time going `speed` times as fast as it does, until done says so; fails the test after 60 s. With a speed,
 *  what waits for the server is as impatient as that; 0: it is as patient as the test. */
void world_until(world_t *self, bool (*done)(void *ctx), void *ctx, int speed);
/*  The clock jumps; what is due is done. */
void world_turn(world_t *self, int64_t ms);
