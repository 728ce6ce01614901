/*  groups - the groups of a job's network, in words: "policy: actor, baseline: critic".
 *
 *  A group is named, and begins with a tower of the network; it has the towers up to where the next begins. Those before the
 *  first that is named (trunks) are in the first group; an encoder of a tower's own is in that tower's group, a common one in
 *  the first. No words at all: one group, which has no name.
 *
 *  An algorithm says the words (actor.groups), and everybody makes the network of them, since a group begins at a place of its
 *  own in the vector of weights.
 *
 *  Threads: pure. */
#pragma once
#include "common/base/limits.h"
#include "common/nn/nn.h"

enum { TT_GROUP_NAME_MAX = 24 };

typedef struct {
    uint32_t count; /* 0: one group without a name */
    struct {
        char name[TT_GROUP_NAME_MAX];  /* letters, digits and '_' */
        char tower[TT_GROUP_NAME_MAX]; /* it begins with          */
    } at[TT_TOWERS_MAX];
} tt_groups_t;

/*  TT_INVALID: words of another form, a name twice, too many. */
tt_status_t tt_groups_parse(tt_groups_t *out, const char *words);
/*  The towers' groups, before encoders are put. TT_INVALID: a tower is not there, or not behind the one before; nothing was changed. */
tt_status_t tt_groups_put(const tt_groups_t *self, tt_net_spec_t *spec);
