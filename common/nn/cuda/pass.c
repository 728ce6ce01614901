/*  pass - a run of shards through an objective. All rows of a run go through a layer at once; only the loss sees blocks.
 *
 *  Views (a set seen from a frame) take turns in the activations. The trained one comes last, so that the way back finds its own
 *  there; what heads gave is kept of each. */
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/nn/cuda/cuda.h"
#include "common/nn/spec.h"

/* ---- a run ------------------------------------------------------------------------------------------------------------ */

typedef struct {
    const tt_work_t *work;
    const tt_pass_t *pass;
    tt_net_t *net;
    cuda_net_t *impl;
    cuda_device_t *device;
    uint32_t first, rows;
    uint32_t forward[CUDA_VIEWS]; /* towers, as bits */
    uint32_t apart[CUDA_VIEWS];   /* whose heads are seen as well: drawn from, known */
    uint8_t action[CUDA_VIEWS];   /* tt_action_kind_t of those that read one */
    uint32_t back, through;       /* through: to what was drawn */
    uint32_t groups, spans; /* that are trained, as bits; where a gradient has them and what is behind the parameters */
    tt_span_t span[TT_SPANS_MAX];
    cuda_fused_fn fused; /* not NULL: all of it is one launch */
    cuda_flow_t flow;
    const uint32_t *row;        /* on the card            */
    const uint32_t *host_row;   /* in staging             */
    cuda_blocks_t host_blocks;  /* there, too             */
    cuda_sequences_t sequences; /* where the network recurs */
    float *columns[CUDA_VIEWS][TT_TOWERS_MAX];
    float *d_columns[TT_TOWERS_MAX];
    cuda_loss_t loss;
} pass_t;

static uint32_t s_view(const tt_objective_stage_t *stage)
{
    return (uint32_t)stage->frame * TT_SETS_MAX + stage->set;
}

static void s_plan(pass_t *self)
{
    const tt_objective_t *objective = self->pass->objective;
    for (uint32_t s = 0; self->rows && s < objective->stages; s++) {
        const tt_objective_stage_t *stage = &objective->stage[s];
        const uint32_t chain = self->impl->tower[stage->tower].chain;
        const bool source = objective->draw && s == objective->source; /* that one comes before all (s_draw) */
        self->apart[s_view(stage)] |= source || stage->known ? 1u << stage->tower : 0;
        if (stage->known)
            continue;
        self->forward[s_view(stage)] |= source ? 0 : chain;
        if (stage->action)
            self->action[s_view(stage)] = stage->action;
        self->through |= (uint32_t)stage->through << stage->tower;
        self->back |= stage->grad ? chain : 0;
    }
}

/*  The first row of a shard in the minibatch: of one of sequences these are not parted. */
static uint32_t s_first(const pass_t *self, uint32_t shard)
{
    const uint32_t length = self->pass->length ? self->pass->length : 1;
    return length * tt_sums_first(self->work->compute.sums->shards, self->pass->rows / length, shard);
}

static uint32_t s_shard_rows(const pass_t *self, uint32_t shard, uint32_t *first)
{
    *first = s_first(self, shard);
    return s_first(self, shard + 1) - *first;
}

static uint32_t s_sequences(const pass_t *self)
{
    return self->pass->length ? self->rows / self->pass->length : 0;
}

static uint32_t s_count_blocks(const pass_t *self)
{
    uint32_t blocks = 0, first;
    for (uint32_t s = self->work->compute.lo; s < self->work->compute.hi; s++)
        blocks += (s_shard_rows(self, s, &first) + TT_BLOCK - 1) / TT_BLOCK;
    return blocks;
}

/*  What differs from run to run, made in staging, in the order in which it lies on the card: parameters of the loss, and lists. */
typedef struct {
    void *params;
    uint32_t *row, *first, *rows, *shard, *shard_block, *slot;
    uint32_t *sequence, *apart; /* of cuda_sequences_t */
} lists_t;

static size_t s_carve_lists(const pass_t *self, char *memory, lists_t *out)
{
    const uint32_t hi = self->work->compute.hi, blocks = self->loss.blocks.blocks, sequences = s_sequences(self);
    uint32_t **list[] = {
        &out->row, &out->first, &out->rows, &out->shard, &out->shard_block, &out->slot, &out->sequence, &out->apart};
    const size_t count[] = {
        self->rows, blocks, blocks, blocks, hi - self->work->compute.lo + 1, self->rows, sequences, sequences};
    size_t at = tt_align(self->pass->params_size, 16);
    out->params = memory;
    for (size_t i = 0; i < TT_COUNT(list); i++) {
        *list[i] = (uint32_t *)(void *)(memory + at);
        at += count[i] * sizeof(uint32_t);
    }
    return at;
}

static void s_fill_shard(const pass_t *self, uint32_t s, uint32_t *block, const lists_t *out)
{
    uint32_t first;
    const uint32_t rows = s_shard_rows(self, s, &first);
    for (uint32_t at = 0; at < rows; at += TT_BLOCK, ++*block) {
        const uint32_t count = rows - at < TT_BLOCK ? rows - at : TT_BLOCK, begin = first - self->first + at;
        out->first[*block] = begin;
        out->rows[*block] = count;
        out->shard[*block] = s;
        for (uint32_t r = 0; r < count; r++)
            out->slot[begin + r] = *block * TT_BLOCK + r;
    }
}

/*  A shard's sequences, TT_SEQUENCES at a time: their first steps, their second ones, and so on. So lie all rows of the run. */
static void s_fill_sequences(const pass_t *self, uint32_t s, const lists_t *out)
{
    const uint32_t length = self->pass->length;
    uint32_t begin, count;
    const uint32_t end = s_shard_rows(self, s, &begin) + begin;
    for (uint32_t at = begin; at < end; at += count * length) {
        const uint32_t left = (end - at) / length, base = at - self->first;
        count = left < TT_SEQUENCES ? left : TT_SEQUENCES;
        for (uint32_t u = 0; u < count; u++) {
            out->sequence[base / length + u] = base + u;
            out->apart[base / length + u] = count;
            for (uint32_t t = 0; t < length; t++)
                out->row[base + t * count + u] = self->pass->row[at + u * length + t];
        }
    }
}

static void s_fill_lists(const pass_t *self, const lists_t *out)
{
    const uint32_t lo = self->work->compute.lo, hi = self->work->compute.hi;
    uint32_t block = 0;
    if (self->pass->params_size)
        memcpy(out->params, self->pass->params, self->pass->params_size);
    if (self->rows && !self->pass->length)
        memcpy(out->row, self->pass->row + self->first, self->rows * sizeof *out->row);
    for (uint32_t s = lo; s < hi; s++) {
        out->shard_block[s - lo] = block;
        s_fill_shard(self, s, &block, out);
        if (self->pass->length)
            s_fill_sequences(self, s, out);
    }
    out->shard_block[hi - lo] = block;
}

static cuda_blocks_t s_blocks(const pass_t *self, const lists_t *list)
{
    return (cuda_blocks_t){
        self->loss.blocks.blocks, list->first, list->rows, list->shard, list->shard_block, list->slot};
}

static tt_status_t s_lists(pass_t *self)
{
    lists_t list;
    void *stage = NULL;
    const uint32_t lo = self->work->compute.lo, hi = self->work->compute.hi;
    self->loss.blocks.blocks = s_count_blocks(self);
    const size_t bytes =
        tt_align(self->pass->params_size, 16) +
        ((size_t)2 * self->rows + (size_t)3 * self->loss.blocks.blocks + hi - lo + 1 + (size_t)2 * s_sequences(self)) *
            sizeof(uint32_t);
    TT_TRY(cuda_room(self->device, &self->impl->lists, bytes));
    TT_TRY(cuda_stage(self->device, bytes, &stage));
    const size_t carved = s_carve_lists(self, stage, &list);
    TT_CHECK(carved == bytes);
    s_fill_lists(self, &list);
    self->host_row = list.row;
    self->host_blocks = s_blocks(self, &list);
    void *there = self->impl->lists.memory;
    TT_TRY(cuda_said(self->device, cudaMemcpyAsync(there, stage, bytes, cudaMemcpyHostToDevice, self->device->work),
        "a copy to the card"));
    (void)s_carve_lists(self, there, &list); /* addresses there */
    self->row = list.row;
    self->loss.params = list.params;
    self->loss.run = (cuda_run_t){
        self->work->compute.sums->shards, self->pass->rows, lo, hi, self->work->compute.sums->leaf, self->pass->length};
    if (self->pass->length)
        self->sequences = (cuda_sequences_t){.count = s_sequences(self),
            .length = self->pass->length,
            .first = list.sequence,
            .apart = list.apart,
            .row = list.row,
            .begins = self->pass->begins->copy,
            .carry = self->pass->carry->copy,
            .carry_floats = self->impl->carry};
    self->loss.blocks = s_blocks(self, &list);
    return TT_OK;
}

/* ---- columns ---------------------------------------------------------------------------------------------------------- */

static size_t s_carve_columns(pass_t *self, char *memory)
{
    const size_t column = (size_t)self->loss.blocks.blocks * TT_BLOCK;
    size_t at = 0;
    for (uint32_t t = 0; t < self->net->spec.towers; t++) {
        const size_t floats = tt_mul(column, self->impl->tower[t].outs);
        for (uint32_t view = 0; view < CUDA_VIEWS; view++)
            if (floats && (self->forward[view] | self->apart[view]) >> t & 1)
                self->columns[view][t] = cuda_carve(memory, &at, 1, floats);
        if (floats && (self->back | self->through) >> t & 1)
            self->d_columns[t] = cuda_carve(memory, &at, 1, floats);
    }
    if (self->pass->objective->draw)
        self->loss.action = cuda_carve(memory, &at, 1, tt_mul(column, self->net->spec.action));
    if (self->through)
        self->loss.d_action = cuda_carve(memory, &at, 1, tt_mul(column, self->net->spec.action));
    return at;
}

/*  Of what a loss that is a kernel adds up over a block. */
static size_t s_carve_partials(pass_t *self, char *memory)
{
    const size_t blocks = self->loss.blocks.blocks;
    size_t at = 0;
    self->loss.stats = cuda_carve(memory, &at, 1, blocks * TT_LOSS_STATS);
    for (uint32_t s = 0; s < self->loss.stages; s++)
        if (self->loss.d_head[s] && self->loss.log_stds[s])
            self->loss.d_log_std[s] = cuda_carve(memory, &at, 1, tt_mul(blocks, self->loss.log_stds[s]));
    return at;
}

static tt_status_t s_zero(cuda_device_t *device, const cuda_room_t *room, size_t bytes)
{
    return bytes ? cuda_said(device, cudaMemsetAsync(room->memory, 0, bytes, device->work), "zeros") : TT_OK;
}

/*  Behind the last row of a block stand zeros. */
static tt_status_t s_columns(pass_t *self)
{
    const size_t bytes = s_carve_columns(self, NULL);
    TT_TRY(cuda_room(self->device, &self->impl->columns, bytes));
    s_carve_columns(self, self->impl->columns.memory);
    return s_zero(self->device, &self->impl->columns, bytes);
}

/* ---- forward, loss, back ------------------------------------------------------------------------------------------------ */

static void s_join(pass_t *self, uint8_t action)
{
    const tt_table_t *given = self->pass->input[self->pass->objective->given];
    const cuda_actions_t actions = {.given = action == TT_ACTION_GIVEN ? given->copy : NULL,
        .row = self->row,
        .slot = self->loss.blocks.slot,
        .columns = self->loss.action};
    cuda_join_actions(&self->flow, &actions);
}

/*  Towers of a view; its frame's rows are gathered unless they are there. Those that read an action come last: what is before it may be a
 *  trunk's. */
static void s_forward_view(pass_t *self, uint32_t view, uint32_t towers, uint32_t *gathered)
{
    const uint32_t frame = view / TT_SETS_MAX, acting = towers & self->impl->acting;
    const tt_table_t *obs = self->pass->obs[frame];
    cuda_forward_t job = {.set = view % TT_SETS_MAX,
        .towers = towers & ~acting,
        .from = {.count = self->rows, .rows = obs->copy, .bytes = obs->bytes, .row = self->row},
        .slot = self->loss.blocks.slot,
        .columns = self->columns[view]};
    if (frame != *gathered)
        cuda_gather_rows(&self->flow, &job.from);
    *gathered = frame;
    cuda_towers_forward(&self->flow, self->net, &job);
    if (!acting)
        return;
    s_join(self, self->action[view]);
    job.towers = acting;
    cuda_towers_forward(&self->flow, self->net, &job);
}

/*  The action that later forwards read. */
static tt_status_t s_draw(pass_t *self, uint32_t *gathered)
{
    const tt_objective_t *objective = self->pass->objective;
    if (!objective->draw)
        return TT_OK;
    const tt_objective_stage_t *stage = &objective->stage[objective->source];
    s_forward_view(self, s_view(stage), self->impl->tower[stage->tower].chain, gathered);
    const cuda_loss_fn draw = cuda_draw_find(objective->name).draw;
    if (!draw)
        return cuda_host_draw(self->device, self->pass, &self->loss, self->host_row, &self->host_blocks);
    draw(self->device->work, &self->loss);
    return cuda_launched(self->device, "a draw");
}

/*  Rows of known heads as columns. Forwards may have used these for another tower of the view: so this comes behind all of them. */
static void s_known(const pass_t *self)
{
    const tt_objective_t *objective = self->pass->objective;
    for (uint32_t s = 0; s < objective->stages; s++) {
        const tt_objective_stage_t *stage = &objective->stage[s];
        if (stage->known)
            cuda_columns_of_rows(self->device->work, self->rows, self->row, self->loss.blocks.slot,
                self->impl->tower[stage->tower].outs, self->pass->head[s]->copy,
                self->columns[s_view(stage)][stage->tower]);
    }
}

static tt_status_t s_forward_views(pass_t *self)
{
    uint32_t gathered = TT_FRAMES;
    TT_TRY(s_draw(self, &gathered));
    for (uint32_t view = CUDA_VIEWS; view-- > 0;) {
        if (self->forward[view])
            s_forward_view(self, view, self->forward[view], &gathered);
    }
    s_known(self);
    return cuda_launched(self->device, "a forward");
}

static void s_show_stage(pass_t *self, uint32_t s)
{
    const tt_objective_stage_t *stage = &self->pass->objective->stage[s];
    const uint32_t t = stage->tower;
    self->loss.outs[s] = self->impl->tower[t].outs;
    self->loss.log_stds[s] = self->net->spec.tower[t].log_std;
    self->loss.head[s] = self->columns[s_view(stage)][t];
    self->loss.d_head[s] = stage->grad || stage->through ? self->d_columns[t] : NULL;
    if (self->loss.log_stds[s])
        self->loss.log_std[s] = self->net->params[stage->set] + self->net->log_std_at[t];
}

static void s_show_loss(pass_t *self)
{
    const tt_net_t *net = self->net;
    self->loss.row = self->row;
    self->loss.source = self->pass->objective->source;
    self->loss.numbers = net->spec.action;
    self->loss.stages = self->pass->objective->stages;
    self->loss.ride_at = net->spec.ride ? net->param_count + TT_LOSS_STATS : 0;
    for (uint32_t i = 0; i < TT_INPUTS_MAX; i++)
        self->loss.input[i] = self->pass->input[i] ? self->pass->input[i]->copy : NULL;
    for (uint32_t s = 0; s < self->loss.stages; s++)
        s_show_stage(self, s);
}

static tt_status_t s_prepare_loss(pass_t *self)
{
    s_show_loss(self);
    const size_t bytes = s_carve_partials(self, NULL);
    TT_TRY(cuda_room(self->device, &self->impl->partials, bytes));
    s_carve_partials(self, self->impl->partials.memory);
    return s_zero(self->device, &self->impl->partials, bytes);
}

static void s_fold(const pass_t *self)
{
    const cuda_loss_t *loss = &self->loss;
    cuda_fold(self->device->work, &loss->run, &loss->blocks, TT_LOSS_STATS, loss->stats, self->net->param_count);
    for (uint32_t s = 0; s < loss->stages; s++)
        if (loss->d_log_std[s])
            cuda_fold(self->device->work, &loss->run, &loss->blocks, loss->log_stds[s], loss->d_log_std[s],
                self->net->log_std_at[self->pass->objective->stage[s].tower]);
}

static tt_status_t s_loss(pass_t *self)
{
    const cuda_loss_fn loss = cuda_loss_find(self->pass->objective->name);
    if (!loss)
        return cuda_host_loss(self->device, self->net, self->pass, &self->loss, self->host_row, &self->host_blocks);
    loss(self->device->work, &self->loss);
    s_fold(self);
    return cuda_launched(self->device, self->pass->objective->name);
}

/*  What came to the heads of trained stages, or of those through which it goes on to the draw, row by row. */
static void s_heads_back(pass_t *self, bool through)
{
    for (uint32_t s = 0; s < self->loss.stages; s++) {
        const tt_objective_stage_t *stage = &self->pass->objective->stage[s];
        if (self->loss.d_head[s] && stage->through == through)
            cuda_rows_of_columns(self->device->work, self->rows, self->loss.blocks.slot, self->loss.outs[s],
                self->loss.d_head[s], self->flow.heads[stage->tower]);
    }
}

/*  Through those that read what was drawn, to the head of what it was drawn from. */
static tt_status_t s_back_to_source(pass_t *self)
{
    bool more = false;
    if (!self->through)
        return TT_OK;
    s_heads_back(self, true);
    for (uint32_t t = 0; self->through >> t; t++)
        if (self->through >> t & 1) {
            cuda_tower_through(&self->flow, self->net, t, more);
            more = true;
        }
    cuda_columns_of_rows(self->device->work, self->rows, NULL, self->loss.blocks.slot, self->loss.numbers,
        self->flow.d_action, self->loss.d_action);
    const cuda_loss_fn back = cuda_draw_find(self->pass->objective->name).back;
    if (!back)
        return cuda_host_draw_back(self->device, self->pass, &self->loss, self->host_row, &self->host_blocks);
    back(self->device->work, &self->loss);
    return cuda_launched(self->device, "the way back to a draw");
}

static void s_back(pass_t *self)
{
    s_heads_back(self, false);
    for (uint32_t i = 0; i < self->impl->backs; i++)
        if (self->back >> self->impl->back[i] & 1)
            cuda_tower_backward(&self->flow, self->net, &self->loss.run, self->impl->back[i]);
}

static tt_status_t s_rows(pass_t *self)
{
    TT_TRY(cuda_flow(&self->flow, self->net, self->rows, self->back != 0));
    self->flow.dense = (cuda_dense_t){self->device->fast, &self->loss.run};
    if (self->sequences.count)
        TT_TRY(cuda_cells(&self->flow, self->net, &self->sequences, self->back != 0));
    TT_TRY(s_columns(self));
    TT_TRY(s_prepare_loss(self));
    TT_TRY(s_forward_views(self));
    TT_TRY(s_loss(self));
    TT_TRY(s_back_to_source(self));
    s_back(self);
    cuda_noise_back(self->net, self->groups, &self->loss.run);
    return cuda_launched(self->device, "the way back");
}

/*  The run, and where some floats of its gradients are; grad has room for all shards. */
static cuda_run_t s_part(const cuda_run_t *run, size_t first, float **grad)
{
    cuda_run_t part = *run;
    for (uint32_t s = run->lo; s < run->hi; s++)
        grad[s] = run->grad[s] + first;
    part.grad = grad;
    return part;
}

/*  Every addition of the tree inside the run, of what is trained. */
static tt_status_t s_tree(const pass_t *self)
{
    const cuda_run_t *run = &self->loss.run;
    float **grad = tt_array0(run->hi, sizeof *grad);
    for (uint32_t i = 0; i < self->spans; i++) {
        const cuda_run_t part = s_part(run, self->span[i].first, grad);
        for (uint32_t width = 1; width <= (run->hi - run->lo) / 2; width *= 2)
            cuda_tree_level(self->device->work, &part, width, self->span[i].count);
    }
    free(grad);
    return cuda_launched(self->device, "sums");
}

static tt_status_t s_fused(pass_t *self)
{
    s_show_loss(self);
    TT_TRY(cuda_fused(self->work->compute.sums, self->pass, &self->loss));
    return s_tree(self);
}

static tt_status_t s_run(void *given)
{
    pass_t *self = given;
    if (self->fused)
        return s_fused(self);
    for (uint32_t i = 0; i < self->spans; i++)
        cuda_clear(self->device->work, &self->loss.run, self->span[i].first, self->span[i].count);
    if (self->rows)
        TT_TRY(s_rows(self));
    return s_tree(self);
}

/*  Lists, parameters and tables' rows are read on the card: only where they lie matters. */
static void s_key(const pass_t *self, cuda_key_t *key)
{
    const tt_pass_t *pass = self->pass;
    const uint32_t numbers[] = {
        self->work->compute.lo, self->work->compute.hi, pass->rows, pass->objective->stages, pass->length};
    const void *carried[] = {pass->length ? pass->carry->copy : NULL, pass->length ? pass->begins->copy : NULL};
    cuda_key_add(key, "pass", 4);
    cuda_key_add(key, &self->work->compute.sums, sizeof self->work->compute.sums);
    cuda_key_add(key, numbers, sizeof numbers);
    cuda_key_add(key, carried, sizeof carried);
    cuda_key_add(key, &pass->params_size, sizeof pass->params_size);
    cuda_key_add(key, &pass->objective->name, sizeof pass->objective->name);
    cuda_key_add(key, pass->objective->stage, pass->objective->stages * sizeof *pass->objective->stage);
    for (uint32_t f = 0; f < TT_FRAMES; f++)
        cuda_key_add(key, pass->obs[f] ? &pass->obs[f]->copy : &(void *){NULL}, sizeof(void *));
    for (uint32_t i = 0; i < TT_INPUTS_MAX; i++)
        cuda_key_add(key, pass->input[i] ? &pass->input[i]->copy : &(void *){NULL}, sizeof(void *));
    for (uint32_t s = 0; s < TT_STAGES_MAX; s++)
        cuda_key_add(key, pass->head[s] ? &pass->head[s]->copy : &(void *){NULL}, sizeof(void *));
}

static tt_status_t s_run_or_again(pass_t *self)
{
    cuda_key_t key = {0};
    /* of nothing there is no objective; a loss on the host waits in the middle */
    if (!self->rows || !cuda_loss_find(self->pass->objective->name))
        return s_run(self);
    s_key(self, &key);
    return cuda_again(self->device, &key, s_run, self);
}

tt_status_t cuda_compute(const tt_work_t *work)
{
    tt_sums_t *sums = work->compute.sums;
    pass_t self = {.work = work,
        .pass = work->compute.pass,
        .net = sums->net,
        .impl = sums->net->impl,
        .device = (cuda_device_t *)sums->net->device};
    TT_TRY(tt_work_check_rows(work));
    TT_TRY(tt_work_reserve(work));
    self.first = s_first(&self, work->compute.lo);
    self.rows = s_first(&self, work->compute.hi) - self.first;
    s_plan(&self);
    self.fused = self.rows ? cuda_fused_fits(sums, self.pass) : NULL;
    TT_TRY(s_lists(&self));
    self.groups = tt_spec_groups_of(&sums->net->spec, self.back);
    self.spans = tt_work_spans(sums->net, self.groups, self.span);
    sums->root = sums->leaf[0];
    sums->groups = self.groups;
    return s_run_or_again(&self);
}
