/*  pass - the rows of a shard through an objective: forwards, its loss and the way back.
 *
 *  Views (a set seen from a frame) take turns in the lane's activations. The trained one comes last, so that the way back
 *  finds its own there; a trunk is computed once a view, and views of one frame share one gather. */
#include <string.h>
#include "common/nn/cpu/encoder.h"
#include "common/nn/spec.h"

static uint32_t s_view(const tt_objective_stage_t *stage)
{
    return (uint32_t)stage->frame * TT_SETS_MAX + stage->set;
}

void cpu_plan(cpu_plan_t *self, const tt_net_t *net, const tt_pass_t *pass)
{
    const cpu_net_t *impl = net->impl;
    const tt_objective_t *objective = pass->objective;
    *self = (cpu_plan_t){.net = net, .pass = pass};
    for (uint32_t s = 0; pass->rows && s < objective->stages; s++) {
        const tt_objective_stage_t *stage = &objective->stage[s];
        const uint32_t chain = impl->tower[0][stage->tower].chain;
        if (stage->known)
            continue;
        if (!(objective->draw && s == objective->source)) /* that one comes before all (s_draw) */
            self->forward[s_view(stage)] |= chain;
        if (stage->action)
            self->action[s_view(stage)] = stage->action;
        self->through |= (uint32_t)stage->through << stage->tower;
        self->near |= impl->tower[0][stage->tower].near;
        self->back |= stage->grad ? chain : 0;
    }
    for (uint32_t i = 0; i < TT_INPUTS_MAX; i++)
        self->input[i] = pass->input[i] ? pass->input[i]->rows : NULL;
    self->groups = tt_spec_groups_of(&net->spec, self->back);
    self->spans = tt_work_spans(net, self->groups, self->span);
}

/*  The rows behind the last one hold what the bias made of them: the loss is promised zeros. */
static void s_clear_behind(float *columns, size_t outs, size_t rows)
{
    if (rows < TT_BLOCK)
        for (size_t a = 0; a < outs; a++)
            memset(columns + a * TT_BLOCK + rows, 0, (TT_BLOCK - rows) * sizeof(float));
}

/*  Rows of a known head as columns. Forwards may have used these for another tower of the view: so this comes behind all of them. */
static void s_known(const tt_table_t *table, const uint32_t *row, size_t rows, size_t outs, float *columns)
{
    const float *from = (const float *)(const void *)table->rows;
    for (size_t a = 0; a < outs; a++)
        for (size_t r = 0; r < rows; r++)
            columns[a * TT_BLOCK + r] = from[row[r] * outs + a];
}

static void s_show_stage(const cpu_plan_t *plan, const cpu_block_t *block, uint32_t s, tt_loss_block_t *out)
{
    const tt_net_t *net = plan->net;
    const tt_objective_stage_t *stage = &plan->pass->objective->stage[s];
    const uint32_t t = stage->tower;
    const size_t outs = block->net->tower[0][t].outs;
    float *head = block->lane->out[s_view(stage)][t];
    if (stage->known)
        s_known(plan->pass->head[s], out->row, block->rows, outs, head);
    s_clear_behind(head, outs, block->rows);
    out->head[s] = head;
    out->d_head[s] = stage->grad || stage->through ? block->lane->d_out[t] : NULL;
    if (net->spec.tower[t].log_std) {
        out->log_std[s] = net->params[stage->set] + net->log_std_at[t];
    }
}

void cpu_show_sums(const cpu_plan_t *plan, const cpu_slice_t *slice, tt_loss_block_t *out)
{
    const tt_net_t *net = plan->net;
    const tt_objective_t *objective = plan->pass->objective;
    out->stats = slice->grad + net->param_count;
    out->ride = net->spec.ride ? slice->grad + net->param_count + TT_LOSS_STATS : NULL;
    for (uint32_t s = 0; s < objective->stages; s++)
        if (objective->stage[s].grad && out->log_std[s])
            out->d_log_std[s] = slice->grad + net->log_std_at[objective->stage[s].tower];
}

/*  The block as a draw sees it. */
static tt_loss_block_t s_show_source(const cpu_plan_t *plan, const cpu_block_t *block, const uint32_t *row)
{
    const uint32_t source = plan->pass->objective->source;
    tt_loss_block_t out = {.rows = (uint32_t)block->rows, .row = row};
    s_show_stage(plan, block, source, &out);
    return out;
}

/*  The action that later forwards read. Returns the frame whose rows were gathered for it. */
static uint32_t s_draw(const cpu_plan_t *plan, cpu_block_t *block, const uint32_t *row)
{
    const tt_objective_t *objective = plan->pass->objective;
    const tt_objective_stage_t *stage = &objective->stage[objective->source];
    if (!objective->draw)
        return TT_FRAMES;
    cpu_gather(block, plan->pass->obs[stage->frame], row, 0);
    cpu_towers_forward(block, s_view(stage), block->net->tower[0][stage->tower].chain);
    const tt_loss_block_t shown = s_show_source(plan, block, row);
    objective->draw(plan->pass->params, plan->input, &shown, block->lane->action);
    return stage->frame;
}

/*  And back through those who read it, to what was drawn from. */
static void s_back_to_source(const cpu_plan_t *plan, cpu_block_t *block, const uint32_t *row)
{
    const tt_objective_t *objective = plan->pass->objective;
    bool more = false;
    for (uint32_t t = 0; plan->through >> t; t++)
        if (plan->through >> t & 1) {
            cpu_tower_through(block, t, more);
            more = true;
        }
    if (more) {
        const tt_loss_block_t shown = s_show_source(plan, block, row);
        objective->d_draw(plan->pass->params, plan->input, &shown, block->lane->d_action);
    }
}

/*  Those that read an action come last: what is before it may be a trunk's. */
static void s_forward_view(const cpu_plan_t *plan, const cpu_block_t *block, uint32_t view, const uint32_t *row)
{
    const uint32_t acting = plan->forward[view] & block->net->acting;
    cpu_towers_forward(block, view, plan->forward[view] & ~acting);
    if (!acting)
        return;
    cpu_join(block, plan->action[view] == TT_ACTION_GIVEN ? plan->input[plan->pass->objective->given] : NULL, row);
    cpu_towers_forward(block, view, acting);
}

static void s_forward_views(const cpu_plan_t *plan, cpu_block_t *block, const uint32_t *row)
{
    uint32_t gathered = s_draw(plan, block, row);
    for (uint32_t view = CPU_VIEWS; view-- > 0;) {
        const uint32_t frame = view / TT_SETS_MAX;
        if (!plan->forward[view])
            continue;
        if (frame != gathered)
            cpu_gather(block, plan->pass->obs[frame], row, 0);
        gathered = frame;
        s_forward_view(plan, block, view, row);
    }
}

void cpu_loss(const cpu_plan_t *plan, const cpu_block_t *block, const uint32_t *row)
{
    const tt_objective_t *objective = plan->pass->objective;
    tt_loss_block_t out = {.rows = (uint32_t)block->rows, .row = row};
    for (uint32_t s = 0; s < objective->stages; s++)
        s_show_stage(plan, block, s, &out);
    if (block->slices > 1) {
        cpu_slices_loss(plan, block, &out);
        return;
    }
    cpu_show_sums(plan, &block->slice[0], &out);
    objective->loss(plan->pass->params, plan->input, &out);
}

/*  Of a tower that is not walked back nothing else writes the gradient. */
static void s_clear_tower(const cpu_tower_t *tower, float *grad)
{
    if (tower->made)
        return;
    if (tower->encoder)
        cpu_encoder_clear(tower->encoder, grad);
    for (uint32_t l = 0; l < tower->layers; l++) {
        const cpu_layer_t *layer = &tower->layer[l];
        memset(grad + layer->weight_at, 0, layer->in * layer->out * sizeof(float));
        memset(grad + layer->bias_at, 0, layer->out * sizeof(float));
    }
    memset(grad + tower->weight_at, 0, tower->in * tower->outs * sizeof(float));
    memset(grad + tower->bias_at, 0, tower->outs * sizeof(float));
}

/*  What is added to: log_std, statistics, what rides. */
static void s_clear_added(const cpu_plan_t *plan, float *grad)
{
    const tt_net_t *net = plan->net;
    memset(grad + net->param_count, 0, (net->grad_count - net->param_count) * sizeof(float));
    for (uint32_t t = 0; t < net->spec.towers; t++)
        if (plan->groups >> net->spec.tower[t].group & 1)
            memset(grad + net->log_std_at[t], 0, net->spec.tower[t].log_std * sizeof(float));
}

/*  What nobody writes: the gaps between groups, and towers of the plan's groups that it does not train. */
static void s_clear_unwritten(const cpu_plan_t *plan, float *grad)
{
    const tt_net_t *net = plan->net;
    const cpu_net_t *self = net->impl;
    size_t end = 0;
    for (uint32_t g = 0; g < tt_net_groups(&net->spec); g++) {
        size_t first = 0, count = 0;
        tt_net_group_span(&net->spec, g, &first, &count);
        memset(grad + end, 0, (first - end) * sizeof(float));
        end = first + count;
    }
    memset(grad + end, 0, (net->param_count - end) * sizeof(float));
    for (uint32_t t = 0; t < net->spec.towers; t++)
        if (plan->groups >> net->spec.tower[t].group & 1 && !(plan->back >> t & 1))
            s_clear_tower(&self->tower[0][t], grad);
}

static void s_clear_spans(const cpu_plan_t *plan, float *grad)
{
    for (uint32_t i = 0; i < plan->spans; i++)
        memset(grad + plan->span[i].first, 0, plan->span[i].count * sizeof(float));
}

void cpu_back(cpu_block_t *block, uint32_t t)
{
    const cpu_tower_t *tower = &block->net->tower[0][t];
    float *const *d_out = block->lane->d_out;
    if (tower->made == TT_TOWER_MEAN)
        cpu_mean_backward(d_out[t], tower->outs, cpu_parts(block, tower), d_out[tower->value]);
    else if (tower->made == TT_TOWER_DUELING)
        cpu_dueling_backward(d_out[t], tower->outs, block->net->tower[0][tower->value].outs, d_out[tower->value],
            d_out[tower->advantage]);
    else if (tower->encoder)
        cpu_encoder_backward(block, t);
    else
        cpu_tower_backward(block, t);
}

static void s_back(const cpu_plan_t *plan, cpu_block_t *block)
{
    for (uint32_t i = 0; i < plan->net->spec.towers; i++)
        if (plan->back >> block->net->back[i] & 1)
            cpu_back(block, block->net->back[i]);
}

static void s_pass_block(const cpu_plan_t *plan, cpu_block_t *block, const uint32_t *row)
{
    s_forward_views(plan, block, row);
    cpu_loss(plan, block, row);
    s_back_to_source(plan, block, row);
    s_back(plan, block);
}

static void s_pass_rows(const cpu_plan_t *plan, const cpu_lane_t *lane, uint32_t first, uint32_t end, float *grad)
{
    for (uint32_t at = first; at < end; at += TT_BLOCK) {
        const cpu_slice_t slice = {.rows = end - at < TT_BLOCK ? end - at : TT_BLOCK, .grad = grad};
        cpu_block_t block = {
            .net = plan->net->impl,
            .lane = lane,
            .rows = slice.rows,
            .first = at == first,
            .slices = 1,
            .slice = &slice,
        };
        s_pass_block(plan, &block, plan->pass->row + at);
        cpu_tell(plan, lane);
    }
}

void cpu_shard(const cpu_plan_t *plan, const cpu_lane_t *lane, uint32_t first, uint32_t end, float *grad)
{
    const tt_net_t *net = plan->net;
    const cpu_net_t *self = net->impl;
    if (first == end) {
        s_clear_spans(plan, grad);
        return;
    }
    s_clear_unwritten(plan, grad);
    s_clear_added(plan, grad);
    if (plan->pass->length)
        cpu_sequences(plan, lane, first, end, grad);
    else
        s_pass_rows(plan, lane, first, end, grad);
    for (uint32_t t = 0; t < net->spec.towers; t++)
        if (plan->back >> t & 1)
            cpu_tower_put_head_grad(&self->tower[0][t], lane->head_grad[t], grad);
    cpu_noise_back(net, plan->groups, grad);
}

void cpu_shards(
    const cpu_plan_t *plan, const cpu_lane_t *lane, uint32_t first, const cpu_slice_t *slice, uint32_t slices)
{
    const tt_net_t *net = plan->net;
    const cpu_slice_t *last = &slice[slices - 1];
    cpu_block_t block = {
        .net = net->impl,
        .lane = lane,
        .rows = last->first + last->rows,
        .first = true,
        .slices = slices,
        .slice = slice,
    };
    s_clear_unwritten(plan, slice[0].grad);
    for (uint32_t i = 0; i < slices; i++)
        s_clear_added(plan, slice[i].grad);
    s_pass_block(plan, &block, plan->pass->row + first);
    cpu_slices_add(&block, net->param_count, net->grad_count - net->param_count);
    for (uint32_t t = 0; t < net->spec.towers; t++)
        if (plan->back >> t & 1)
            cpu_slices_add(&block, net->log_std_at[t], net->spec.tower[t].log_std);
}
