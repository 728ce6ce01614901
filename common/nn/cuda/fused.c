/*  fused - a pass of a small network as one launch (kernels/mlp.cuh): which passes are such, and what the launch is told.
 *
 *  A launch of a graph takes a card 1.5 to 2 us, however little it does, and a pass launched step by step has some twenty. All of it in
 *  one launch has a block of threads a shard and no more, so that it pays while a shard is little work:
 *
 *      saved                    20 launches, 35 us
 *      a multiprocessor         128 multiply-adds a cycle, 1.7 GHz; half of that, since loads take as long: 109 a ns
 *      so a shard may have      35 us x 109 / ns = 3.8 million, here 2^22
 *
 *  A row of two networks of 4-64-64 is 3 x 9,000 of them (forward, and twice as many on the way back): 155 rows a shard.
 *  TT_CUDA_FUSED=off: step by step, as tools that look at kernels like it, and to find out whether this is at fault. */
#include "common/nn/cuda/cuda.h"
#include "common/nn/spec.h"

enum { WORK = 1 << 22 }; /* multiply-adds of a shard */

/*  Forwards in the order that cuda_fused_t wants: frames one after the other, trained ones last. */
typedef struct {
    const tt_objective_stage_t *stage[TT_STAGES_MAX];
    uint32_t count;
} order_t;

static order_t s_order(const tt_objective_t *objective)
{
    order_t self = {.count = 0};
    for (uint32_t frame = TT_FRAMES; frame-- > 0;)
        for (int grad = 0; grad < 2; grad++)
            for (uint32_t s = 0; s < objective->stages; s++)
                if (objective->stage[s].frame == frame && objective->stage[s].grad == (grad != 0))
                    self.stage[self.count++] = &objective->stage[s];
    return self;
}

/*  Floats of `units` columns, made up to what a thread takes at once. */
static size_t s_columns(size_t units)
{
    return (units + CUDA_MLP_PER - 1) / CUDA_MLP_PER * CUDA_MLP_PER * CUDA_MLP_COLUMN;
}

static size_t s_hidden(const cuda_tower_t *tower)
{
    size_t floats = 0;
    for (uint32_t l = 0; l < tower->layers; l++)
        floats += s_columns(tower->layer[l].out);
    return floats;
}

/*  Shared memory of all: rows, then what heads give and get, then what hidden layers of trained stages give. Those of the others come and
 *  go before these, in the same place. */
typedef struct {
    size_t head[TT_STAGES_MAX], d_head[TT_STAGES_MAX], hidden[TT_STAGES_MAX];
    size_t floats;
} places_t;

static places_t s_places(const cuda_net_t *net, const order_t *order)
{
    places_t self = {.floats = s_columns(net->spec->obs)};
    size_t most = 0;
    for (uint32_t i = 0; i < order->count; i++) {
        const size_t outs = (size_t)net->tower[order->stage[i]->tower].outs * TT_BLOCK;
        self.head[i] = self.floats;
        self.floats += outs;
        self.d_head[i] = self.floats;
        self.floats += order->stage[i]->grad ? outs : 0;
    }
    const size_t first = self.floats;
    for (uint32_t i = 0; i < order->count; i++) {
        const size_t hidden = s_hidden(&net->tower[order->stage[i]->tower]);
        const bool grad = order->stage[i]->grad;
        self.hidden[i] = grad ? self.floats : first;
        self.floats += grad ? hidden : 0;
        most = !grad && hidden > most ? hidden : most;
    }
    if (self.floats < first + most)
        self.floats = first + most;
    return self;
}

/*  Multiply-adds of a row. */
static uint64_t s_row_work(const cuda_net_t *net, const order_t *order)
{
    uint64_t work = 0;
    for (uint32_t i = 0; i < order->count; i++) {
        const cuda_tower_t *tower = &net->tower[order->stage[i]->tower];
        uint64_t once = (uint64_t)tower->head.in * tower->head.out;
        for (uint32_t l = 0; l < tower->layers; l++)
            once += (uint64_t)tower->layer[l].in * tower->layer[l].out;
        work += once * (order->stage[i]->grad ? 3 : 1);
    }
    return work;
}

/*  A shard with as many rows as any; each float of its gradient is written as well. */
static bool s_little_work(const tt_sums_t *sums, const tt_pass_t *pass, const order_t *order)
{
    const uint64_t rows = (pass->rows + (uint64_t)sums->shards - 1) / sums->shards;
    return sums->count <= WORK && s_row_work(sums->net->impl, order) <= (WORK - sums->count) / rows;
}

static bool s_plain_tower(const cuda_net_t *net, const tt_objective_stage_t *stage)
{
    const cuda_tower_t *tower = &net->tower[stage->tower];
    return !stage->known && net->spec->tower[stage->tower].kind == TT_TOWER_MLP &&
           !net->spec->tower[stage->tower].action && tower->outs && tower->reads_obs && !tower->noisy &&
           tower->layers < CUDA_MLP_LAYERS;
}

/*  A network of sequences or with noise is none even where these stages have to do with neither. */
static bool s_plain(const tt_net_t *net, const tt_objective_t *objective)
{
    const cuda_net_t *impl = net->impl;
    for (uint32_t t = 0; t < net->spec.towers; t++)
        if (impl->tower[t].noisy)
            return false;
    for (uint32_t s = 0; s < objective->stages; s++)
        if (!s_plain_tower(impl, &objective->stage[s]))
            return false;
    return !impl->carry && !objective->draw && net->spec.parts <= 1 && objective->stages <= CUDA_MLP_STAGES;
}

/*  Of so little work no product is another library's; only the stand-in's bound is lower (fast.h). */
static bool s_ours(const cuda_device_t *device)
{
    return !device->fast || WORK < CUDA_FAST_LEAST;
}

cuda_fused_fn cuda_fused_fits(const tt_sums_t *sums, const tt_pass_t *pass)
{
    const cuda_net_t *net = sums->net->impl;
    if (!net->fused || !s_ours((const cuda_device_t *)sums->net->device) || !s_plain(sums->net, pass->objective))
        return NULL;
    const order_t order = s_order(pass->objective);
    if (!s_little_work(sums, pass, &order) || s_places(net, &order).floats > CUDA_MLP_SHARED / sizeof(float))
        return NULL;
    return cuda_fused_find(pass->objective->name);
}

static cuda_mlp_layer_t s_layer(const cuda_layer_t *layer)
{
    return (cuda_mlp_layer_t){layer->in, layer->out, (uint32_t)layer->weight_at, (uint32_t)layer->bias_at};
}

static cuda_mlp_t s_stage(const tt_net_t *net, const tt_objective_stage_t *stage)
{
    const cuda_tower_t *tower = &((const cuda_net_t *)net->impl)->tower[stage->tower];
    cuda_mlp_t self = {.params = net->params[stage->set],
        .frame = (uint32_t)stage->frame,
        .grad = stage->grad,
        .forward = tower->forward,
        .backward = tower->backward,
        .layers = tower->layers,
        .log_std_at = net->log_std_at[stage->tower]};
    for (uint32_t l = 0; l < tower->layers; l++)
        self.layer[l] = s_layer(&tower->layer[l]);
    self.layer[tower->layers] = s_layer(&tower->head);
    return self;
}

/*  The observation is at 0; of a tower without layers the place of hidden ones is said as well. */
static void s_inputs(cuda_mlp_t *self, size_t hidden)
{
    self->input_at[1] = (uint32_t)hidden;
    for (uint32_t l = 1; l < self->layers; l++)
        self->input_at[l + 1] = self->input_at[l] + (uint32_t)s_columns(self->layer[l - 1].out);
}

tt_status_t cuda_fused(const tt_sums_t *sums, const tt_pass_t *pass, const cuda_loss_t *loss)
{
    const tt_net_t *net = sums->net;
    const cuda_net_t *impl = net->impl;
    cuda_device_t *device = (cuda_device_t *)net->device;
    const order_t order = s_order(pass->objective);
    const places_t places = s_places(impl, &order);
    cuda_fused_t job = {.loss = *loss,
        .count = sums->count,
        .stats_at = net->param_count,
        .obs = net->spec.obs,
        .bytes = net->spec.parts && net->spec.part[0].bytes,
        .skip_zeros = impl->bits,
        .stages = order.count,
        .floats = (uint32_t)places.floats};
    for (uint32_t f = 0; f < TT_FRAMES; f++) {
        job.rows[f] = pass->obs[f] ? pass->obs[f]->copy : NULL;
        job.row_bytes[f] = pass->obs[f] ? pass->obs[f]->bytes : 0;
    }
    for (uint32_t i = 0; i < order.count; i++) {
        job.mlp[i] = s_stage(net, order.stage[i]);
        job.place[order.stage[i] - pass->objective->stage] = i;
        job.mlp[i].head_at = (uint32_t)places.head[i];
        job.mlp[i].d_head_at = (uint32_t)places.d_head[i];
        s_inputs(&job.mlp[i], places.hidden[i]);
    }
    cuda_fused_find(pass->objective->name)(device->work, &job);
    return cuda_launched(device, "a pass of a small network");
}
