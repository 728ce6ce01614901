/*  roster_parts - the inside of roster.h, shared by roster.c (peers, leases, when) and roster_make.c (the next roster).
 *
 *  Threads: as roster.h. */
#pragma once
#include "coordinator/roster.h"

/*  Structure of our class */
struct roster {
    roster_cfg_t cfg;
    const tt_clock_t *clock;
    peer_t **peers; /* owned, in order of arrival */
    size_t peer_count, peer_room;
    uint64_t arrivals;

    uint32_t spares[ROSTER_ROLES]; /* that were said */

    uint32_t era, rolled_back;
    uint32_t over; /* eras up to this one are */
    uint64_t epoch, generation;
    bool announced, fresh;
    bool begun;     /* somebody has held weights of this era */
    bool again;     /* rank 0 cannot begin this era: another is to begin */
    bool took_over; /* what roster_took_over says */
    char *restore;
    tt_rec_MEMBER_t *members; /* of the newest roster, or of the journal's; owned, strings too */
    size_t member_count;

    int64_t dirty_ns;     /* since when something has changed; INT64_MAX = nothing has       */
    int64_t past_until;   /* before the first roster: members of the journal's are awaited   */
    int64_t claims_until; /* the same without a journal: those that say they were under way; 0 = nobody has yet */
};

/*  roster_adopt.c: without a journal, what members say of the roster they know takes its place. May that still be? When
 *  is it decided (0 = now)? Decide, before the first roster is made. */
bool roster_may_adopt(const roster_t *self);
/*  ... and somebody is here who holds weights. */
bool roster_any_holder(const roster_t *self);
int64_t roster_adopt_due(roster_t *self);
void roster_adopt(roster_t *self);

/*  Something has changed: a roster is due. */
void roster_dirty(roster_t *self);
/*  An event for a peer; the roster is dirty when it must be made anew. */
void roster_fire(roster_t *self, peer_t *peer, peer_event_t event);
/*  The member of the newest roster with this instance; NULL = none. */
const tt_rec_MEMBER_t *roster_member(const roster_t *self, uint32_t role, uint64_t instance);
void roster_free_members(tt_rec_MEMBER_t *members, size_t count);
