/*  tower - all rows of a run through one tower and back. */
#include "common/nn/cuda/cuda.h"
#include "common/nn/spec.h"

void cuda_gather_rows(const cuda_flow_t *flow, const cuda_rows_t *from)
{
    const tt_net_spec_t *spec = flow->net->spec;
    cuda_gather_t job = {
        .count = from->count,
        .parts = spec->parts ? spec->parts : 1,
        .rows = from->rows,
        .bytes = from->bytes,
        .row = from->row,
        .out = flow->x,
    };
    uint32_t at = 0;
    job.part[0].elements = spec->obs;
    for (uint32_t p = 0; p < spec->parts; p++) {
        job.part[p].at = at;
        job.part[p].elements = spec->part[p].elements;
        job.part[p].bytes = spec->part[p].bytes;
        at += (uint32_t)tt_spec_part_bytes(&spec->part[p]);
    }
    if (flow->net->flat)
        cuda_gather(flow->device->work, &job);
}

/*  What goes into layer l of tower t; l = layers is the head's input. */
static const float *s_input(const cuda_flow_t *flow, uint32_t t, uint32_t l)
{
    const cuda_tower_t *tower = &flow->net->tower[t];
    if (l)
        return flow->hidden[t][l - 1];
    if (flow->net->spec->tower[t].action)
        return flow->joined;
    return tower->reads_obs ? flow->x : flow->last[tower->from];
}

/*  Layers that read bytes leave out the zeros, as on the CPU; heads do not. */
static bool s_skips(const cuda_flow_t *flow, uint32_t t, uint32_t l)
{
    return flow->net->bits && l == 0 && flow->net->tower[t].reads_obs && !flow->net->spec->tower[t].action;
}

static void s_layer_forward(const cuda_flow_t *flow, const float *params, uint32_t t, uint32_t l)
{
    const cuda_tower_t *tower = &flow->net->tower[t];
    const cuda_layer_t *layer = &tower->layer[l];
    const cuda_gemm_t job = {
        .kind = tower->forward,
        .skip_zeros = s_skips(flow, t, l),
        .m = flow->rows,
        .n = layer->out,
        .k = layer->in,
        .a = s_input(flow, t, l),
        .a_row = layer->in,
        .a_k = 1,
        .b = params + layer->weight_at,
        .b_k = layer->out,
        .b_col = 1,
        .c = flow->hidden[t][l],
        .c_row = layer->out,
        .bias = params + layer->bias_at,
    };
    cuda_dense(&flow->dense, flow->device->work, &job);
}

static void s_mlp_forward(const cuda_flow_t *flow, const tt_net_t *net, const cuda_forward_t *job, uint32_t t)
{
    const cuda_tower_t *tower = &flow->net->tower[t];
    const float *params = cuda_noise_weights(net, job->set, t);
    for (uint32_t l = 0; l < tower->layers; l++)
        s_layer_forward(flow, params, t, l);
    if (!tower->outs)
        return;
    const cuda_dots_t head = {
        .rows = flow->rows,
        .k = tower->head.in,
        .outs = tower->outs,
        .x = s_input(flow, t, tower->layers),
        .w = params + tower->head.weight_at,
        .bias = params + tower->head.bias_at,
        .slot = job->slot,
        .out = job->slot ? job->columns[t] : flow->heads[t],
    };
    cuda_dots(flow->device->work, &head);
}

static void s_dueling_forward(const cuda_flow_t *flow, const cuda_forward_t *job, uint32_t t)
{
    const cuda_tower_t *tower = &flow->net->tower[t];
    float *const *heads = job->slot ? job->columns : flow->heads;
    const cuda_dueling_t dueling = {
        .rows = flow->rows,
        .outs = tower->outs,
        .n = flow->net->tower[tower->value].outs,
        .slot = job->slot,
        .value = heads[tower->value],
        .advantage = heads[tower->advantage],
        .q = heads[t],
    };
    cuda_dueling(flow->device->work, &dueling);
}

/*  Numbers of each part of the head that a tower is made of. */
static uint32_t s_parts(const cuda_flow_t *flow, const cuda_tower_t *tower)
{
    return flow->net->tower[tower->value].outs / tower->outs;
}

static void s_mean_forward(const cuda_flow_t *flow, const cuda_forward_t *job, uint32_t t)
{
    const cuda_tower_t *tower = &flow->net->tower[t];
    float *const *heads = job->slot ? job->columns : flow->heads;
    cuda_mean(
        flow->device->work, flow->rows, job->slot, tower->outs, s_parts(flow, tower), heads[tower->value], heads[t]);
}

static void s_atoms_forward(const cuda_flow_t *flow, const cuda_forward_t *job, uint32_t t)
{
    const cuda_tower_t *tower = &flow->net->tower[t];
    float *const *heads = job->slot ? job->columns : flow->heads;
    const cuda_atoms_t atoms = {
        .rows = flow->rows,
        .outs = tower->outs,
        .n = s_parts(flow, tower),
        .slot = job->slot,
        .low = flow->net->spec->tower[t].low,
        .high = flow->net->spec->tower[t].high,
        .head = heads[tower->value],
        .q = heads[t],
    };
    cuda_atoms(flow->device->work, &atoms);
}

static void s_forward(cuda_flow_t *flow, const tt_net_t *net, const cuda_forward_t *job, uint32_t t)
{
    const cuda_tower_t *tower = &flow->net->tower[t];
    if (tt_tower_recurs(tower->kind)) {
        s_layer_forward(flow, net->params[job->set], t, 0);
        cuda_recurrent_forward(flow, net, job->set, t);
    } else if (tower->encoder)
        flow->last[t] = cuda_encoder_forward(tower->encoder, flow->device->work, &flow->dense, net->params[job->set],
            &job->from, flow->net->encoder[t].memory);
    else if (tower->kind == TT_TOWER_DUELING)
        s_dueling_forward(flow, job, t);
    else if (tower->kind == TT_TOWER_MEAN)
        s_mean_forward(flow, job, t);
    else if (tower->kind == TT_TOWER_ATOMS)
        s_atoms_forward(flow, job, t);
    else
        s_mlp_forward(flow, net, job, t);
}

void cuda_towers_forward(cuda_flow_t *flow, const tt_net_t *net, const cuda_forward_t *job)
{
    for (uint32_t t = 0; job->towers >> t; t++)
        if (job->towers >> t & 1)
            s_forward(flow, net, job, t);
}

/* ---- back ----------------------------------------------------------------------------------------------------------- */

static void s_param_grad(const cuda_flow_t *flow, const cuda_run_t *run, const cuda_layer_t *layer, bool skip_zeros,
    const float *x, const float *d)
{
    const cuda_outer_t job = {
        .skip_zeros = skip_zeros,
        .m = layer->in,
        .n = layer->out,
        .x = x,
        .d = d,
        .x_row = layer->in,
        .d_row = layer->out,
        .at = layer->weight_at,
        .bias_at = layer->bias_at,
    };
    cuda_dense_grads(&flow->dense, flow->device->work, run, &job);
}

/*  The gradient of layer l's input (l = layers: the head's), with the derivative of the activation that gave it; of the first layer's it
 *  is that of what a trunk gave, and no action's. d: what came to the layer's output. add: to what is there. */
static void s_input_grad(
    const cuda_flow_t *flow, const tt_net_t *net, uint32_t t, uint32_t l, const float *d, bool add, float *d_input)
{
    const cuda_tower_t *tower = &flow->net->tower[t];
    const cuda_layer_t *layer = l == tower->layers ? &tower->head : &tower->layer[l];
    const uint32_t columns = l ? layer->in : flow->net->tower[tower->from].gives;
    const cuda_gemm_t job = {
        .kind = l ? tower->backward : flow->net->tower[tower->from].backward,
        .add = add,
        .m = flow->rows,
        .n = columns,
        .k = layer->out,
        .a = d,
        .a_row = layer->out,
        .a_k = 1,
        .b = cuda_noise_weights(net, 0, t) + layer->weight_at,
        .b_k = 1,
        .b_col = layer->out,
        .c = d_input,
        .c_row = columns,
        .h = l ? s_input(flow, t, l) : flow->last[tower->from],
        .h_row = columns,
    };
    cuda_dense(&flow->dense, flow->device->work, &job);
}

void cuda_join_actions(const cuda_flow_t *flow, const cuda_actions_t *actions)
{
    const cuda_net_t *net = flow->net;
    const cuda_join_t job = {.rows = flow->rows,
        .read = net->action_at,
        .numbers = net->spec->action,
        .x = net->action_from ? flow->last[net->action_from - 1] : flow->x,
        .given = actions->given,
        .row = actions->row,
        .slot = actions->slot,
        .columns = actions->columns,
        .out = flow->joined};
    cuda_join(flow->device->work, &job);
}

/*  The gradient of those inputs of the first layer that are the action. */
static void s_action_grad(const cuda_flow_t *flow, const tt_net_t *net, uint32_t t, const float *d, bool add)
{
    const cuda_layer_t *layer = &flow->net->tower[t].layer[0];
    const cuda_gemm_t job = {
        .kind = CUDA_D_NONE,
        .add = add,
        .m = flow->rows,
        .n = net->spec.action,
        .k = layer->out,
        .a = d,
        .a_row = layer->out,
        .a_k = 1,
        .b = net->params[0] + layer->weight_at + (size_t)flow->net->action_at * layer->out,
        .b_k = 1,
        .b_col = layer->out,
        .c = flow->d_action,
        .c_row = net->spec.action,
    };
    cuda_gemm(flow->device->work, &job);
}

void cuda_tower_through(const cuda_flow_t *flow, const tt_net_t *net, uint32_t t, bool more)
{
    const float *d = flow->heads[t];
    for (uint32_t l = flow->net->tower[t].layers, next = 0; l > 0; l--, next++) {
        s_input_grad(flow, net, t, l, d, false, flow->d[next % 2]);
        d = flow->d[next % 2];
    }
    s_action_grad(flow, net, t, d, more);
}

/*  What tower t gives to the trunk that it reads: its first reader writes, later ones are added. */
static void s_give_to_trunk(cuda_flow_t *flow, const tt_net_t *net, uint32_t t, const float *d)
{
    const uint32_t from = flow->net->tower[t].from;
    s_input_grad(flow, net, t, 0, d, flow->filled >> from & 1, flow->d_trunk[from]);
    flow->filled |= 1u << from;
}

static void s_mlp_backward(cuda_flow_t *flow, const tt_net_t *net, const cuda_run_t *run, uint32_t t)
{
    const cuda_tower_t *tower = &flow->net->tower[t];
    const float *d = tower->outs ? flow->heads[t] : flow->d_trunk[t];
    uint32_t next = 0;
    if (tower->outs) {
        s_param_grad(flow, run, &tower->head, false, s_input(flow, t, tower->layers), d);
        if (tower->layers) {
            s_input_grad(flow, net, t, tower->layers, d, false, flow->d[next]);
            d = flow->d[next++];
        }
    }
    for (uint32_t l = tower->layers; l-- > 0;) {
        s_param_grad(flow, run, &tower->layer[l], s_skips(flow, t, l), s_input(flow, t, l), d);
        if (l > 0) {
            s_input_grad(flow, net, t, l, d, false, flow->d[next % 2]);
            d = flow->d[next++ % 2];
        }
    }
    if (!tower->reads_obs)
        s_give_to_trunk(flow, net, t, d);
}

static void s_recurrent_backward(cuda_flow_t *flow, const tt_net_t *net, const cuda_run_t *run, uint32_t t)
{
    const cuda_tower_t *tower = &flow->net->tower[t];
    cuda_recurrent_backward(flow, net, t);
    s_param_grad(flow, run, &tower->head, false, flow->cells[t].h_in, flow->cells[t].d_hidden);
    s_param_grad(flow, run, &tower->layer[0], s_skips(flow, t, 0), s_input(flow, t, 0), flow->cells[t].gates);
    if (!tower->reads_obs)
        s_give_to_trunk(flow, net, t, flow->cells[t].gates);
}

void cuda_tower_backward(cuda_flow_t *flow, const tt_net_t *net, const cuda_run_t *run, uint32_t t)
{
    const cuda_tower_t *tower = &flow->net->tower[t];
    if (tt_tower_recurs(tower->kind))
        s_recurrent_backward(flow, net, run, t);
    else if (tower->kind == TT_TOWER_DUELING)
        cuda_dueling_back(flow->device->work, flow->rows, tower->outs, flow->net->tower[tower->value].outs,
            flow->heads[t], flow->heads[tower->value], flow->heads[tower->advantage]);
    else if (tower->kind == TT_TOWER_MEAN)
        cuda_mean_back(flow->device->work, flow->rows, tower->outs, s_parts(flow, tower), flow->heads[t],
            flow->heads[tower->value]);
    else if (tower->encoder)
        cuda_encoder_backward(tower->encoder, flow->device->work, &flow->dense, net->params[0], run, flow->d_trunk[t],
            flow->net->encoder[t].memory);
    else
        s_mlp_backward(flow, net, run, t);
}
