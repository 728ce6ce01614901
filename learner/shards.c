#include "learner/shards.h"
#include <stdbool.h>
#include <stdlib.h>
#include "common/base/mem.h"
#include "common/nn/tree.h"

struct shards {
    tt_net_t *net;
    pool_t *pool;
    uint32_t shards;
    size_t count; /* floats of a gradient        */
    float **leaf; /* [shards], made when needed  */
    const float **obs[TT_FRAMES];
    uint32_t obs_room;
    const shards_work_t *work; /* of the compute going on */
    uint32_t lo, hi;
    tt_status_t *lane_status; /* [lanes] */
    struct {
        const float *const *obs;
        size_t rows;
        float *const *out;
    } forward; /* of the forward going on */
};

typedef struct {
    uint32_t lo, hi;
} run_t;

static run_t s_part(uint32_t lo, uint32_t hi, uint32_t part, uint32_t parts)
{
    const uint64_t width = hi - lo;
    return (run_t){lo + (uint32_t)(width * part / parts), lo + (uint32_t)(width * (part + 1) / parts)};
}

shards_t *shards_new(tt_net_t *net, pool_t *pool, uint32_t shards)
{
    TT_CHECK(tt_tree_shards_ok(shards));
    shards_t *self = tt_new0(sizeof *self);
    self->net = net;
    self->pool = pool;
    self->shards = shards;
    self->count = tt_net_grad_count(tt_net_spec(net));
    self->leaf = tt_array0(shards, sizeof *self->leaf);
    self->lane_status = tt_array0(pool_lanes(pool), sizeof *self->lane_status);
    return self;
}

void shards_destroy(shards_t **self_p)
{
    shards_t *self = *self_p;
    if (!self)
        return;
    for (uint32_t s = 0; s < self->shards; s++)
        free(self->leaf[s]);
    free(self->leaf);
    for (int f = 0; f < TT_FRAMES; f++)
        free(self->obs[f]);
    free(self->lane_status);
    free(self);
    *self_p = NULL;
}

static bool s_within_a_part(uint32_t lo, uint32_t hi, uint32_t parts, uint32_t from, uint32_t to)
{
    for (uint32_t p = 0; p < parts; p++) {
        const run_t part = s_part(lo, hi, p, parts);
        if (from >= part.lo && to <= part.hi)
            return true;
    }
    return false;
}

/*  Every addition of the tree inside [lo, hi), but for those inside one of the `parts` near-equal parts of it, which were
 *  made before (parts = 0: none were). leaf[s]: count floats of shard s. */
static void s_sum(float *const *leaf, uint32_t lo, uint32_t hi, uint32_t parts, size_t count)
{
    for (uint32_t width = 1; width <= (hi - lo) / 2; width *= 2) {
        const uint32_t step = 2 * width;
        for (uint32_t at = (lo + step - 1) / step * step; at + step <= hi; at += step)
            if (!s_within_a_part(lo, hi, parts, at, at + step))
                tt_grad_add(leaf[at], leaf[at + width], count);
    }
}

uint32_t shards_first(const shards_t *self, uint32_t rows, uint32_t shard)
{
    return (uint32_t)((uint64_t)rows * shard / self->shards);
}

/*  One shard: its rows of every frame, side by side, through the network. */
static tt_status_t s_shard(shards_t *self, uint32_t lane, uint32_t shard)
{
    const shards_work_t *work = self->work;
    const uint32_t first = shards_first(self, work->rows, shard), end = shards_first(self, work->rows, shard + 1);
    tt_pass_t pass = {
        .objective = work->objective, .ctx = work->loss_ctx, .row = work->row + first, .rows = end - first};
    for (int f = 0; f < TT_FRAMES; f++) {
        if (!work->obs[f])
            continue;
        for (uint32_t r = first; r < end; r++)
            self->obs[f][r] = work->obs[f][work->row[r]];
        pass.obs[f] = self->obs[f] + first;
    }
    return tt_net_shard_grad(self->net, lane, &pass, self->leaf[shard]);
}

/*  One lane: its part of the run, and what can be added inside it. */
static void s_lane(void *ctx, uint32_t lane, uint32_t lanes)
{
    shards_t *self = ctx;
    const run_t run = s_part(self->lo, self->hi, lane, lanes);
    for (uint32_t s = run.lo; s < run.hi; s++) {
        const tt_status_t status = s_shard(self, lane, s);
        if (status != TT_OK) {
            self->lane_status[lane] = status;
            return;
        }
    }
    s_sum(self->leaf, run.lo, run.hi, 0, self->count);
}

static tt_status_t s_on_all_lanes(shards_t *self, pool_fn fn, const char *trouble)
{
    const uint32_t lanes = pool_lanes(self->pool);
    for (uint32_t lane = 0; lane < lanes; lane++)
        self->lane_status[lane] = TT_OK;
    pool_run(self->pool, fn, self);
    for (uint32_t lane = 0; lane < lanes; lane++)
        if (self->lane_status[lane] != TT_OK)
            return tt_err(self->lane_status[lane], "%s", trouble); /* a lane's own words are in its thread */
    return TT_OK;
}

static void s_reserve(shards_t *self, const shards_work_t *work, uint32_t lo, uint32_t hi)
{
    for (uint32_t s = lo; s < hi; s++)
        if (!self->leaf[s])
            self->leaf[s] = tt_aligned0(tt_mul(self->count, sizeof(float)));
    if (work->rows > self->obs_room) {
        for (int f = 0; f < TT_FRAMES; f++) {
            free(self->obs[f]);
            self->obs[f] = tt_array0(work->rows, sizeof *self->obs[f]);
        }
        self->obs_room = work->rows;
    }
}

tt_status_t shards_compute(shards_t *self, const shards_work_t *work, uint32_t lo, uint32_t hi)
{
    s_reserve(self, work, lo, hi);
    self->work = work;
    self->lo = lo;
    self->hi = hi;
    TT_TRY(s_on_all_lanes(self, s_lane, "the gradient of a shard could not be computed"));
    s_sum(self->leaf, lo, hi, pool_lanes(self->pool), self->count);
    return TT_OK;
}

const float *shards_node(const shards_t *self, uint32_t node)
{
    uint32_t lo, hi;
    tt_tree_span(self->shards, node, &lo, &hi);
    return self->leaf[lo];
}

/*  One lane: near-equal runs of whole blocks. A row's result does not depend on the rows beside it. */
static void s_forward_lane(void *ctx, uint32_t lane, uint32_t lanes)
{
    shards_t *self = ctx;
    const tt_net_spec_t *spec = tt_net_spec(self->net);
    const size_t blocks = (self->forward.rows + TT_BLOCK - 1) / TT_BLOCK;
    const size_t lo = blocks * lane / lanes * TT_BLOCK;
    size_t hi = blocks * (lane + 1) / lanes * TT_BLOCK;
    hi = hi < self->forward.rows ? hi : self->forward.rows;
    if (lo >= hi)
        return;
    float *out[TT_TOWERS_MAX] = {NULL};
    for (uint32_t t = 0; t < spec->towers; t++)
        out[t] = self->forward.out[t] ? self->forward.out[t] + lo * spec->tower[t].out : NULL;
    self->lane_status[lane] = tt_net_forward(self->net, lane, 0, self->forward.obs + lo, hi - lo, out);
}

tt_status_t shards_forward(void *ctx, const float *const *obs, size_t rows, float *const *out)
{
    shards_t *self = ctx;
    self->forward.obs = obs;
    self->forward.rows = rows;
    self->forward.out = out;
    return s_on_all_lanes(self, s_forward_lane, "rows could not be evaluated");
}
