/*  draft - a plan in the making: actions as they are decided, and the status that is being changed.
 *
 *  Threads: an instance lives in one call of a front end's plan. */
#pragma once
#include <stdarg.h>
#include "k8s/front/front.h"

typedef struct {
    front_plan_t *out;
    size_t room;        /* for actions                            */
    const char *before; /* the status as it is, JSON; NULL = none */
    json_t *status;     /* the same, being changed                */
    int64_t now_s;
} draft_t;

/*  An empty plan, and a status that is as it is (JSON, or NULL; borrowed). */
void draft_open(draft_t *self, front_plan_t *out, const char *status, int64_t now_s);
/*  The status goes into the plan, if it differs. The plan is the caller's; front_plan_clear. */
void draft_close(draft_t *self);

/*  One more; the name is copied. What else belongs to it is filled in by who adds it: `own` is one block of memory, the plan's from
 *  then on; type and reason are borrowed for good. Valid until the next one. */
front_action_t *draft_add(draft_t *self, front_do_t what, const char *name);
/*  Words that came from outside may not be UTF-8, which no JSON takes, or be more than an event holds: what becomes of the format is mended and
 *  shortened (tt_words). */
void draft_event(draft_t *self, const char *type, const char *reason, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
char *draft_words(const char *fmt, va_list args); /* the same, as a new string */
/*  Look again in so many seconds, or earlier. */
void draft_again(draft_t *self, int64_t seconds);

/*  A count of the status: 0 = absent, never below, and there is room for one more. */
int64_t draft_count(const draft_t *self, const char *key);
/*  When a job that has ended did so, by status.<key>; by its condition where another operator wrote no time. 0 = nobody knows. */
int64_t draft_ended_s(const draft_t *self, const char *key, const char *condition);
/*  One of status.conditions by its type; NULL. Borrowed. */
json_t *draft_condition(const draft_t *self, const char *type);
/*  status.conditions, made if there is none. Borrowed. */
json_t *draft_conditions(draft_t *self);
