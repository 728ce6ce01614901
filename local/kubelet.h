/*  kubelet - keeps local pods: a store of whole pod objects with their status, and their containers as processes.
 *
 *  Of what a kubelet does it does: init containers one after the other (those with restartPolicy Always stay beside), all
 *  containers at once, restart policies with a back-off (at once, then 1 s doubling to 60 s, where the cluster's begins at
 *  10 s), the pod's phase from its containers, SIGTERM and the grace period, volumes, limits. Not: probes, hooks.
 *
 *  A pod's status is JSON as the API server would show it, so what is decided about it (its front end's plan) is decided as there.
 *  Threads: an instance belongs to one thread; never blocks. */
#pragma once
#include "common/base/clock.h"
#include "controller/substrate.h"
#include "k8s/front/front.h"
#include "local/place.h"

typedef struct kubelet kubelet_t; /* opaque */

/*  Borrows place and clock. Pods are of this kind of jobs. Makes the caller a child subreaper (controller/process.h). tutti: a container without a command, or with
 *  one called tutti, runs this program. */
tt_status_t kubelet_new(kubelet_t **self_p, place_t *place, const front_t *front, bool tutti, const tt_clock_t *clock);
/*  Everything that runs is killed. */
void kubelet_destroy(kubelet_t **self_p);

/*  Take a pod object and begin with it. ip, port: its own ones. TT_EXISTS: one of that name is there. */
tt_status_t kubelet_create(kubelet_t *self, json_t *pod, const char *ip, int port);
/*  Ask it to go: gone when its containers are. grace_s -1 = the pod's own. One that is not there, or is going, is fine; a
 *  shorter grace shortens. */
void kubelet_delete(kubelet_t *self, const char *name, int grace_s);
/*  The same for all of them; nobody has to take leave of anybody any more. */
void kubelet_end(kubelet_t *self, int grace_s);
/*  Let go of the ended ones, start what is due. Did anything change? Call when a child ended, and when kubelet_due_ms says. */
bool kubelet_poll(kubelet_t *self);
/*  ms until poll is wanted though nothing happened; -1 = not. */
int64_t kubelet_due_ms(const kubelet_t *self);

size_t kubelet_count(const kubelet_t *self);
/*  As its front end keeps it, borrowed until the next poll, create or delete. Its port is the local one. */
const void *kubelet_pod(const kubelet_t *self, size_t index);
/*  The same as anybody sees it. */
const char *kubelet_name(const kubelet_t *self, size_t index);
const front_pod_t *kubelet_info(const kubelet_t *self, size_t index);
front_seen_t kubelet_seen(const kubelet_t *self, size_t index);
const json_t *kubelet_object(const kubelet_t *self, size_t index);
/*  kubelet_count when there is none. */
size_t kubelet_find(const kubelet_t *self, const char *name);
/*  Why a pod that leads could not even be started; "" while it could. Borrowed. */
const char *kubelet_broken(const kubelet_t *self);
/*  Processes that run now. */
size_t kubelet_running(const kubelet_t *self);
