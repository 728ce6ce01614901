/*  pass - rows through the towers that somebody asks for: forward alone, or an objective with its loss and the way back.
 *
 *  Views (a set seen from a frame) take turns in the lane's activations. The trained one comes last, so that the way back
 *  finds its own there; a trunk is computed once a view, and views of one frame share one gather. */
#include <string.h>
#include "common/nn/cpu/cpu.h"

/*  Which towers each view computes and which are walked back, as bits. */
typedef struct {
    uint32_t forward[CPU_VIEWS];
    uint32_t back;
} plan_t;

static uint32_t s_view(const tt_stage_t *stage)
{
    return (uint32_t)stage->frame * TT_SETS_MAX + stage->set;
}

static plan_t s_plan(const cpu_net_t *self, const tt_objective_t *objective)
{
    plan_t plan = {.back = 0};
    for (uint32_t s = 0; s < objective->stages; s++) {
        const tt_stage_t *stage = &objective->stage[s];
        const uint32_t chain = self->tower[0][stage->tower].chain;
        plan.forward[s_view(stage)] |= chain;
        plan.back |= stage->grad ? chain : 0;
    }
    return plan;
}

static void s_forward_towers(const cpu_block_t *block, uint32_t view, uint32_t towers)
{
    for (uint32_t t = 0; towers >> t; t++)
        if (towers >> t & 1)
            cpu_tower_forward(block, view % TT_SETS_MAX, t, block->lane->out[view][t]);
}

/*  Columns to row-major. */
static void s_put_rows(const float *columns, size_t outs, size_t rows, float *out)
{
    for (size_t a = 0; a < outs; a++)
        for (size_t r = 0; r < rows; r++)
            out[r * outs + a] = columns[a * TT_BLOCK + r];
}

tt_status_t cpu_forward(
    tt_net_t *net, uint32_t lane_number, uint32_t set, const float *const *obs, size_t rows, float *const *out)
{
    const cpu_net_t *self = net->impl;
    const cpu_lane_t *lane = &self->lanes[lane_number];
    const uint32_t towers = net->spec.towers;
    uint32_t wanted = 0;
    for (uint32_t t = 0; t < towers; t++)
        if (self->tower[set][t].outs && out[t])
            wanted |= self->tower[set][t].chain;
    for (size_t at = 0; at < rows; at += TT_BLOCK) {
        const cpu_block_t block = {.net = self, .lane = lane, .rows = rows - at < TT_BLOCK ? rows - at : TT_BLOCK};
        self->kernels->gather(block.rows, net->spec.obs, obs + at, lane->x, self->obs16);
        s_forward_towers(&block, set, wanted);
        for (uint32_t t = 0; t < towers; t++) {
            const size_t outs = self->tower[set][t].outs;
            if (outs && out[t])
                s_put_rows(lane->out[set][t], outs, block.rows, out[t] + at * outs);
        }
    }
    return TT_OK;
}

/* ---- objectives -------------------------------------------------------------------------------------------------- */

static void s_forward_views(
    const tt_net_t *net, const cpu_block_t *block, const plan_t *plan, const tt_pass_t *pass, size_t at)
{
    uint32_t gathered = TT_FRAMES;
    for (uint32_t view = CPU_VIEWS; view-- > 0;) {
        const uint32_t frame = view / TT_SETS_MAX;
        if (!plan->forward[view])
            continue;
        if (frame != gathered)
            block->net->kernels->gather(
                block->rows, net->spec.obs, pass->obs[frame] + at, block->lane->x, block->net->obs16);
        gathered = frame;
        s_forward_towers(block, view, plan->forward[view]);
    }
}

/*  The rows behind the last one hold what the bias made of them: the loss is promised zeros. */
static void s_clear_behind(float *columns, size_t outs, size_t rows)
{
    if (rows < TT_BLOCK)
        for (size_t a = 0; a < outs; a++)
            memset(columns + a * TT_BLOCK + rows, 0, (TT_BLOCK - rows) * sizeof(float));
}

static void s_show_stage(
    const tt_net_t *net, const cpu_block_t *block, const tt_stage_t *stage, uint32_t s, tt_loss_block_t *out)
{
    const uint32_t t = stage->tower;
    float *head = block->lane->out[s_view(stage)][t];
    s_clear_behind(head, block->net->tower[0][t].outs, block->rows);
    out->head[s] = head;
    out->d_head[s] = stage->grad ? block->lane->d_out[t] : NULL;
    if (net->spec.tower[t].log_std) {
        out->log_std[s] = net->params[stage->set] + net->log_std_at[t];
        out->d_log_std[s] = stage->grad ? block->grad + net->log_std_at[t] : NULL;
    }
}

static void s_call_loss(const tt_net_t *net, const cpu_block_t *block, const tt_pass_t *pass, size_t at)
{
    const tt_objective_t *objective = pass->objective;
    tt_loss_block_t out = {
        .rows = (uint32_t)block->rows,
        .row = pass->row + at,
        .stats = block->grad + net->param_count,
        .ride = net->spec.ride ? block->grad + net->param_count + TT_LOSS_STATS : NULL,
    };
    for (uint32_t s = 0; s < objective->stages; s++)
        s_show_stage(net, block, &objective->stage[s], s, &out);
    objective->loss(pass->ctx, &out);
}

/*  Of a tower that is not walked back nothing else writes the gradient. */
static void s_clear_tower(const cpu_tower_t *tower, float *grad)
{
    for (uint32_t l = 0; l < tower->layers; l++) {
        const cpu_layer_t *layer = &tower->layer[l];
        memset(grad + layer->weight_at, 0, layer->in * layer->out * sizeof(float));
        memset(grad + layer->bias_at, 0, layer->out * sizeof(float));
    }
    memset(grad + tower->weight_at, 0, tower->in * tower->outs * sizeof(float));
    memset(grad + tower->bias_at, 0, tower->outs * sizeof(float));
}

/*  What is added to by others, and what nobody writes: log_std, statistics, what rides, padding and the gaps between
 *  groups. */
static void s_clear_sums(const tt_net_t *net, const plan_t *plan, float *grad)
{
    const cpu_net_t *self = net->impl;
    size_t end = 0;
    for (uint32_t g = 0; g < tt_net_groups(&net->spec); g++) {
        size_t first = 0, count = 0;
        tt_net_group_span(&net->spec, g, &first, &count);
        memset(grad + end, 0, (first - end) * sizeof(float));
        end = first + count;
    }
    memset(grad + end, 0, (net->grad_count - end) * sizeof(float));
    for (uint32_t t = 0; t < net->spec.towers; t++) {
        if (!(plan->back >> t & 1))
            s_clear_tower(&self->tower[0][t], grad);
        memset(grad + net->log_std_at[t], 0, net->spec.tower[t].log_std * sizeof(float));
    }
}

static void s_back(const tt_net_t *net, cpu_block_t *block, const plan_t *plan)
{
    for (uint32_t i = 0; i < net->spec.towers; i++)
        if (plan->back >> block->net->back[i] & 1)
            cpu_tower_backward(block, block->net->back[i]);
}

static void s_pass_rows(
    const tt_net_t *net, const cpu_lane_t *lane, const plan_t *plan, const tt_pass_t *pass, float *grad)
{
    for (size_t at = 0; at < pass->rows; at += TT_BLOCK) {
        cpu_block_t block = {
            .net = net->impl,
            .lane = lane,
            .rows = pass->rows - at < TT_BLOCK ? pass->rows - at : TT_BLOCK,
            .first = at == 0,
            .grad = grad,
        };
        s_forward_views(net, &block, plan, pass, at);
        s_call_loss(net, &block, pass, at);
        s_back(net, &block, plan);
    }
}

tt_status_t cpu_shard_grad(tt_net_t *net, uint32_t lane_number, const tt_pass_t *pass, float *grad)
{
    const cpu_net_t *self = net->impl;
    const cpu_lane_t *lane = &self->lanes[lane_number];
    if (pass->rows == 0) {
        memset(grad, 0, net->grad_count * sizeof(float));
        return TT_OK;
    }
    const plan_t plan = s_plan(self, pass->objective);
    s_clear_sums(net, &plan, grad);
    s_pass_rows(net, lane, &plan, pass, grad);
    for (uint32_t t = 0; t < net->spec.towers; t++)
        if (plan.back >> t & 1)
            cpu_tower_put_head_grad(&self->tower[0][t], lane->head_grad[t], grad);
    return TT_OK;
}
