#include "coordinator/placement.h"
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"

static bool s_candidate(const peer_t *peer)
{
    return peer->state == PEER_WAITING || peer->state == PEER_ACTIVE;
}

static size_t s_gather(peer_t **out, peer_t *const *peers, size_t count, tt_peer_role_t role)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        if (peers[i]->role == role && s_candidate(peers[i]))
            out[found++] = peers[i];
    return found;
}

static int s_compare(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int s_by_index(const void *a, const void *b)
{
    const peer_t *x = *(peer_t *const *)a, *y = *(peer_t *const *)b;
    return s_compare(x->index, y->index);
}

static int s_by_age(const void *a, const void *b)
{
    const peer_t *x = *(peer_t *const *)a, *y = *(peer_t *const *)b;
    if (x->state != y->state)
        return x->state == PEER_ACTIVE ? -1 : 1;
    return s_compare(x->order, y->order);
}

static int s_by_rank(const void *a, const void *b)
{
    const peer_t *x = *(peer_t *const *)a, *y = *(peer_t *const *)b;
    return x->rank != y->rank ? s_compare(x->rank, y->rank) : s_compare(x->index, y->index);
}

/*  Learners that were summing already: of the newest roster, or of an earlier coordinator's. One that is left out
 *  misses what the others do then, and may have weights, or be about to get them. */
static size_t s_summing(peer_t *const *learners, size_t count)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        found += learners[i]->rank != UINT32_MAX;
    return found;
}

/*  Who would make the others wait is not among them yet. Nobody holds: all begin alike. */
static size_t s_leave_cold_out(peer_t **learners, size_t count)
{
    bool held = false;
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        held |= learners[i]->holds;
    for (size_t i = 0; i < count; i++)
        if (!held || learners[i]->holds || learners[i]->warm || learners[i]->rank != UINT32_MAX)
            learners[kept++] = learners[i];
    return kept;
}

/*  Those that take part can play all envs until the others have made theirs. */
static size_t s_leave_making_out(peer_t **collectors, size_t count)
{
    bool played = false;
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        played |= collectors[i]->state == PEER_ACTIVE;
    for (size_t i = 0; i < count; i++)
        if (!played || collectors[i]->state == PEER_ACTIVE || collectors[i]->warm)
            collectors[kept++] = collectors[i];
    return kept;
}

/*  The first that holds the weights moves to the front; the rest keep their order. */
static void s_lead_with_holder(peer_t **learners, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!learners[i]->holds)
            continue;
        peer_t *holder = learners[i];
        memmove(learners + 1, learners, i * sizeof *learners);
        learners[0] = holder;
        return;
    }
}

static size_t s_least(size_t a, size_t b)
{
    return a < b ? a : b;
}

void placement_make(placement_t *out, peer_t *const *peers, size_t count, const placement_limits_t *limits)
{
    memset(out, 0, sizeof *out);
    out->learners = tt_array0(count, sizeof(peer_t *));
    out->collectors = tt_array0(count, sizeof(peer_t *));
    out->aggregators = tt_array0(count, sizeof(peer_t *));

    size_t room = TT_MEMBERS_MAX;
    out->aggregator_count = s_least(s_gather(out->aggregators, peers, count, TT_PEER_AGGREGATOR), room / 4);
    qsort(out->aggregators, out->aggregator_count, sizeof(peer_t *), s_by_index);
    room -= out->aggregator_count;

    /* Gradients of two learners need an aggregator. Those that were summing already wait for the next one; a joiner
     * does not make the others wait. */
    size_t learners = s_gather(out->learners, peers, count, TT_PEER_LEARNER);
    learners = limits->warms ? s_leave_cold_out(out->learners, learners) : learners;
    const size_t active = s_summing(out->learners, learners);
    const size_t summable = out->aggregator_count ? limits->shards : (active ? active : 1);
    qsort(out->learners, learners, sizeof(peer_t *), s_by_rank);
    s_lead_with_holder(out->learners, learners);
    out->learner_count = s_least(s_least(learners, limits->shards), s_least(summable, room / 2));
    room -= out->learner_count;

    size_t collectors = s_gather(out->collectors, peers, count, TT_PEER_COLLECTOR);
    collectors = limits->collectors_warm ? s_leave_making_out(out->collectors, collectors) : collectors;
    /* where there are too many, those who came last are spare; ranges go by index, whatever the order of arrival */
    qsort(out->collectors, collectors, sizeof(peer_t *), s_by_age);
    out->collector_count = s_least(s_least(collectors, limits->num_envs), room);
    qsort(out->collectors, out->collector_count, sizeof(peer_t *), s_by_index);
}

void placement_free(placement_t *self)
{
    free(self->learners);
    free(self->collectors);
    free(self->aggregators);
    memset(self, 0, sizeof *self);
}

void placement_range(uint32_t num_envs, size_t i, size_t n, uint32_t *lo, uint32_t *count)
{
    const uint64_t from = (uint64_t)num_envs * i / n, to = (uint64_t)num_envs * (i + 1) / n;
    *lo = (uint32_t)from;
    *count = (uint32_t)(to - from);
}
