#include "coordinator/digest.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "coordinator/state.h"

const char *const digest_roles[3] = {"collector", "learner", "aggregator"};
static const tt_peer_role_t s_roles[3] = {TT_PEER_COLLECTOR, TT_PEER_LEARNER, TT_PEER_AGGREGATOR};

/*  How many of a role take part; are all of them here? */
static uint32_t s_gather(const coordinator_t *self, tt_peer_role_t role, usage_mean_t *out, bool *here)
{
    uint32_t count = 0;
    for (size_t i = 0; i < roster_peer_count(self->roster); i++) {
        const peer_t *peer = roster_peer(self->roster, i);
        if (peer->role != role || peer->state != PEER_ACTIVE)
            continue;
        usage_add(out, &peer->usage);
        *here = *here && peer->host && strcmp(peer->host, self->host) == 0;
        count++;
    }
    return count;
}

void digest_facts(const coordinator_t *self, digest_facts_t *out)
{
    uint32_t count[3];
    bool here = true;
    *out = (digest_facts_t){0};
    for (size_t i = 0; i < TT_COUNT(s_roles); i++) {
        count[i] = s_gather(self, s_roles[i], &out->role[i], &here);
        out->memory += out->role[i].memory;
        out->cpus += out->role[i].cpus;
    }
    const bottleneck_t facts = {.lag = self->cfg.lag,
        .collectors = count[0],
        .learners = count[1],
        .num_envs = self->cfg.num_envs,
        .shards = self->cfg.learner.shards,
        .processors = here ? (uint32_t)sysconf(_SC_NPROCESSORS_ONLN) : 0,
        .collector = &out->role[0],
        .learner = &out->role[1],
        .cpus = out->cpus};
    bottleneck_say(&facts, out->bottleneck, sizeof out->bottleneck);
}

static void s_add(digest_t *out, size_t *names, const char *name, double value)
{
    if (out->stats.metrics_count == DIGEST_METRICS)
        return;
    char *copy = out->name[*names];
    snprintf(copy, sizeof out->name[0], "%s", name);
    out->metric[out->stats.metrics_count++] = (tt_rec_METRIC_t){.name = copy, .value = value};
    ++*names;
}

void digest_stats(const coordinator_t *self, const tt_msg_STATS_t *said, digest_t *out)
{
    size_t names = 0;
    const size_t count = said->metrics_count < DIGEST_METRICS ? said->metrics_count : DIGEST_METRICS;
    digest_facts(self, &out->facts);
    if (count)
        memcpy(out->metric, said->metrics, count * sizeof *out->metric);
    out->stats = *said;
    out->stats.metrics = out->metric;
    out->stats.metrics_count = count;
    out->stats.bottleneck = out->facts.bottleneck;
    for (size_t r = 0; r < TT_COUNT(digest_roles); r++)
        for (size_t i = 0; i < out->facts.role[r].count; i++) {
            char name[64];
            snprintf(name, sizeof name, "time/%s/%s", digest_roles[r], out->facts.role[r].share[i].name);
            s_add(out, &names, name, out->facts.role[r].share[i].share);
        }
    if (out->facts.memory)
        s_add(out, &names, "system/memory_bytes", (double)out->facts.memory);
    if (out->facts.cpus > 0)
        s_add(out, &names, "system/cpus", out->facts.cpus);
    tt_rec_METRIC_t evaluation[EVALUATIONS_METRICS];
    const size_t evaluated = evaluations_newest(self->evaluations, evaluation);
    for (size_t i = 0; i < evaluated; i++)
        s_add(out, &names, evaluation[i].name, evaluation[i].value);
}
