/*  refusals - which groups of a job could not have a pod made, in which words, and till when that is not tried again: what whoever
 *  looks after a job keeps from one plan to the next, and hands to it (front_view_t).
 *
 *  Threads: an instance belongs to one thread. Time: the caller's clock, ms. */
#pragma once
#include "k8s/front/front.h"

/*  Zeroed: none. */
typedef struct {
    front_refusal_t *list; /* owned, one a group; until_ms INT64_MAX = as long as it is kept */
    size_t count;
} front_refusals_t;

/*  All of `refusal` is copied, in place of what was known of that group. */
void front_refuse(front_refusals_t *self, const front_refusal_t *refusal);
/*  Of this group nothing is known any more. */
void front_allow(front_refusals_t *self, int group);
/*  Forget those whose time is over; returns when the next one's is, INT64_MAX = never. */
int64_t front_refused_until(front_refusals_t *self, int64_t now_ms);
/*  Is the group one of the view's refusals? */
bool front_is_refused(const front_view_t *view, int group);
/*  Forget them all. */
void front_refusals_clear(front_refusals_t *self);
