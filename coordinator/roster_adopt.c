/*  A coordinator without a journal among members that were under way: its predecessor's disk is gone (a pod made anew on
 *  another node), and what they say in HELLO is all that is left of the run. */
#define TT_LOG_COMPONENT "roster"
#include <inttypes.h>
#include <stdio.h>
#include "common/base/log.h"
#include "coordinator/roster_parts.h"

/*  Rosters that our predecessor sent to somebody who has not come have numbers that we do not know: keep away from them. */
enum { GAP = 100 };

bool roster_may_adopt(const roster_t *self)
{
    return !self->announced && self->era == 0 && self->epoch == 0;
}

static bool s_is_holder(const peer_t *peer)
{
    return peer->role == TT_PEER_LEARNER && peer->claim.holds && peer->claim.place > 0;
}

bool roster_any_holder(const roster_t *self)
{
    for (size_t i = 0; i < self->peer_count; i++)
        if (roster_may_adopt(self) && s_is_holder(self->peers[i]))
            return true;
    return false;
}

/*  The largest numbers that anybody knows; in `newest`, those of the learners that hold weights. */
typedef struct {
    uint32_t era;
    uint64_t generation, epoch;
    peer_claim_t newest;
    size_t holders; /* of newest's era and generation */
} claims_t;

static bool s_newer(const peer_claim_t *a, const peer_claim_t *b)
{
    return a->era != b->era ? a->era > b->era : a->generation > b->generation;
}

static claims_t s_claims(const roster_t *self)
{
    claims_t all = {0};
    for (size_t i = 0; i < self->peer_count; i++) {
        const peer_claim_t *claim = &self->peers[i]->claim;
        all.era = claim->era > all.era ? claim->era : all.era;
        all.generation = claim->generation > all.generation ? claim->generation : all.generation;
        all.epoch = claim->epoch > all.epoch ? claim->epoch : all.epoch;
        if (!s_is_holder(self->peers[i]))
            continue;
        if (all.holders == 0 || s_newer(claim, &all.newest)) {
            all.newest = *claim;
            all.holders = 0;
        }
        all.holders += claim->era == all.newest.era && claim->generation == all.newest.generation;
    }
    return all;
}

int64_t roster_adopt_due(roster_t *self)
{
    const claims_t claims = s_claims(self);
    if (claims.era == 0)
        return self->cfg.expect_until_ns;
    if (claims.holders > 0 && claims.holders >= claims.newest.learners)
        return 0;
    if (self->claims_until == 0)
        self->claims_until = tt_now_ns(self->clock) + 2 * self->cfg.lease_ns;
    return self->claims_until;
}

/*  One that holds weights of an older generation, or was to get them, may have missed an update. It is asked for a
 *  HELLO again, and refused. */
static void s_drop_stale(roster_t *self, const claims_t *claims)
{
    for (size_t i = self->peer_count; i-- > 0;) {
        peer_t *peer = self->peers[i];
        const peer_claim_t *claim = &peer->claim;
        const bool member = claim->place > 0 && claim->era == claims->era;
        if (peer->role != TT_PEER_LEARNER || (!claim->holds && !member))
            continue;
        if (member && claim->generation >= claims->newest.generation) {
            peer->holds = claim->holds;
            peer->rank = claim->place - 1;
        } else {
            roster_leave(self, peer, PEER_ENDED, "its weights are of an older generation");
        }
    }
}

void roster_adopt(roster_t *self)
{
    const claims_t claims = s_claims(self);
    if (claims.era == 0)
        return;
    self->era = claims.era;
    self->generation = claims.generation + GAP;
    self->epoch = claims.epoch + GAP;
    self->begun = true;
    if (claims.holders > 0 && claims.newest.era == claims.era) {
        s_drop_stale(self, &claims);
        self->took_over = true;
        log_info("taking over a run that is under way: era %u, generation %" PRIu64
                 ", %zu of %u learners hold the weights",
            claims.era, claims.newest.generation, claims.holders, claims.newest.learners);
        return;
    }
    log_warn("members of a run that is under way are here, but no learner with its weights");
    for (size_t i = 0; i < self->peer_count; i++)
        self->peers[i]->claim.holds = false;
}
