/*  recurrent - cells of an LSTM and of a GRU, and their way back: a thread for each unit of each sequence. */
#include "common/nn/cuda/kernels/threads.cuh"
#include "common/nn/cuda/kernels_recurrent.h"
#include "common/nn/math/recurrent.h"

namespace
{

/*  A launch's argument: one step of a tower. */
struct step_t {
    cuda_sequences_t of;
    cuda_cells_t job;
    uint32_t t;
};

__device__ size_t row_of(const cuda_sequences_t &of, uint32_t u, uint32_t t)
{
    return of.first ? of.first[u] + (size_t)t * of.apart[u] : u;
}

__device__ uint32_t number_of(const cuda_sequences_t &of, size_t row)
{
    return of.row ? of.row[row] : (uint32_t)row;
}

/*  Is nothing carried into step t? */
__device__ bool begins(const cuda_sequences_t &of, uint32_t u, uint32_t t)
{
    return of.begins && of.begins[number_of(of, row_of(of, u, t))];
}

/*  Where a unit's numbers stand at a step: in rows, in their gates, in sequences, and in their gates. */
struct unit_t {
    uint32_t u, i;
    size_t row, row_gates, now, now_gates;
};

__device__ unit_t unit_of(const cuda_sequences_t &of, const cuda_cells_t &job, const number_t &my, uint32_t t)
{
    const size_t row = row_of(of, my.row, t), gates = (job.lstm ? 4u : 3u) * (size_t)job.units;
    return {my.row, my.i, row * job.units + my.i, row * gates + my.i, (size_t)my.row * job.units + my.i,
        my.row * gates + my.i};
}

__global__ void s_begin(step_t step)
{
    const cuda_sequences_t &of = step.of;
    const cuda_cells_t &job = step.job;
    const number_t my = my_number(of.count, job.units);
    if (my.i >= job.units)
        return;
    const bool nothing = begins(of, my.row, 0);
    const uint32_t number = number_of(of, row_of(of, my.row, 0));
    const float *carry = of.carry + (size_t)number * of.carry_floats + job.carry_at;
    const size_t at = (size_t)my.row * job.units + my.i;
    job.h_now[at] = nothing ? 0.0f : carry[my.i];
    if (job.lstm)
        job.c_now[at] = nothing ? 0.0f : carry[job.units + my.i];
}

/* ---- forward --------------------------------------------------------------------------------------------------------- */

__device__ float lstm_step(const cuda_cells_t &job, const unit_t &my)
{
    const uint32_t H = job.units;
    float *gates = job.gates + my.row_gates;
    const float *hidden = job.hidden + my.now_gates;
    const tt_lstm_gates_t ih = {gates[0], gates[H], gates[2 * H], gates[3 * H]};
    const tt_lstm_gates_t hh = {hidden[0], hidden[H], hidden[2 * H], hidden[3 * H]};
    const tt_lstm_t out = tt_lstm(&ih, &hh, job.c_now[my.now]);
    gates[0] = out.gates.i;
    gates[H] = out.gates.f;
    gates[2 * H] = out.gates.g;
    gates[3 * H] = out.gates.o;
    job.c_in[my.row] = job.c_now[my.now];
    job.c[my.row] = job.c_now[my.now] = out.c;
    return out.h;
}

__device__ float gru_step(const cuda_cells_t &job, const unit_t &my)
{
    const uint32_t H = job.units;
    float *gates = job.gates + my.row_gates;
    const float *hidden = job.hidden + my.now_gates;
    const tt_gru_gates_t ih = {gates[0], gates[H], gates[2 * H]}, hh = {hidden[0], hidden[H], hidden[2 * H]};
    tt_gru_gates_t out;
    const float h = tt_gru(&ih, &hh, job.h_now[my.now], &out);
    gates[0] = out.r;
    gates[H] = out.z;
    gates[2 * H] = out.n;
    job.n_in[my.row] = hh.n;
    return h;
}

/*  What is carried out of the last step; it is not asked whether an episode ended there. */
__device__ void carry_out(const cuda_sequences_t &of, const cuda_cells_t &job, const unit_t &my, float h)
{
    float *out = job.carry_out + (size_t)my.u * of.carry_floats + job.carry_at;
    out[my.i] = h;
    if (job.lstm)
        out[job.units + my.i] = job.c_now[my.now];
}

__global__ void s_step(step_t step)
{
    const cuda_sequences_t &of = step.of;
    const cuda_cells_t &job = step.job;
    const uint32_t t = step.t;
    const number_t mine = my_number(of.count, job.units);
    if (mine.i >= job.units)
        return;
    const unit_t my = unit_of(of, job, mine, t);
    const bool last = t + 1 == of.length, ends = !last && begins(of, my.u, t + 1);
    job.h_in[my.row] = job.h_now[my.now];
    const float h = job.lstm ? lstm_step(job, my) : gru_step(job, my);
    job.h[my.row] = h;
    job.h_now[my.now] = ends ? 0.0f : h;
    if (job.lstm && ends)
        job.c_now[my.now] = 0.0f;
    if (last && job.carry_out)
        carry_out(of, job, my, h);
}

struct leaving_t {
    cuda_cells_t job;
    cuda_keep_t keep;
};

__global__ void s_keep(leaving_t leaving)
{
    const cuda_cells_t &job = leaving.job;
    const cuda_keep_t &keep = leaving.keep;
    const number_t my = my_number(keep.count, job.units);
    if (my.i >= job.units)
        return;
    const size_t from = (size_t)keep.row[my.row] * job.units + my.i;
    float *to = keep.to + (size_t)my.row * keep.carry_floats + job.carry_at;
    to[my.i] = job.h[from];
    if (job.lstm)
        to[job.units + my.i] = job.c[from];
}

/* ---- back ------------------------------------------------------------------------------------------------------------ */

__device__ void lstm_back(const cuda_cells_t &job, const unit_t &my, float d_h, float d_c)
{
    const uint32_t H = job.units;
    float *gates = job.gates + my.row_gates, *hidden = job.hidden + my.now_gates;
    const tt_lstm_gates_t gave = {gates[0], gates[H], gates[2 * H], gates[3 * H]};
    const tt_lstm_gates_t d = tt_lstm_back(&gave, job.c_in[my.row], tt_tanhf(job.c[my.row]), d_h, &d_c);
    gates[0] = hidden[0] = d.i;
    gates[H] = hidden[H] = d.f;
    gates[2 * H] = hidden[2 * H] = d.g;
    gates[3 * H] = hidden[3 * H] = d.o;
    job.c_now[my.now] = d_c;
}

__device__ void gru_back(const cuda_cells_t &job, const unit_t &my, float d_h)
{
    const uint32_t H = job.units;
    float *gates = job.gates + my.row_gates, *hidden = job.hidden + my.now_gates;
    float *d_hidden = job.d_hidden + my.row_gates, d_hh_n;
    const tt_gru_gates_t gave = {gates[0], gates[H], gates[2 * H]};
    const tt_gru_gates_t d = tt_gru_back(&gave, job.n_in[my.row], job.h_in[my.row], &d_h, &d_hh_n);
    gates[0] = d_hidden[0] = hidden[0] = d.r;
    gates[H] = d_hidden[H] = hidden[H] = d.z;
    gates[2 * H] = d.n;
    d_hidden[2 * H] = hidden[2 * H] = d_hh_n;
    job.h_now[my.now] = d_h;
}

__global__ void s_back(step_t step)
{
    const cuda_sequences_t &of = step.of;
    const cuda_cells_t &job = step.job;
    const uint32_t t = step.t;
    const number_t mine = my_number(of.count, job.units);
    if (mine.i >= job.units)
        return;
    const unit_t my = unit_of(of, job, mine, t);
    const bool ends = t + 1 == of.length || begins(of, my.u, t + 1);
    const float d_h = __fadd_rn(job.d_h[my.row], ends ? 0.0f : job.h_now[my.now]);
    if (job.lstm)
        lstm_back(job, my, d_h, ends ? 0.0f : job.c_now[my.now]);
    else
        gru_back(job, my, d_h);
}

} // namespace

void cuda_cells_begin(cudaStream_t stream, const cuda_sequences_t *of, const cuda_cells_t *job)
{
    CUDA_LAUNCH_NUMBERS(s_begin, stream, of->count, job->units, (step_t{*of, *job, 0}));
}

void cuda_cells_step(cudaStream_t stream, const cuda_sequences_t *of, const cuda_cells_t *job, uint32_t t)
{
    CUDA_LAUNCH_NUMBERS(s_step, stream, of->count, job->units, (step_t{*of, *job, t}));
}

void cuda_cells_keep(cudaStream_t stream, const cuda_cells_t *job, const cuda_keep_t *keep)
{
    CUDA_LAUNCH_NUMBERS(s_keep, stream, keep->count, job->units, (leaving_t{*job, *keep}));
}

void cuda_cells_back(cudaStream_t stream, const cuda_sequences_t *of, const cuda_cells_t *job, uint32_t t)
{
    CUDA_LAUNCH_NUMBERS(s_back, stream, of->count, job->units, (step_t{*of, *job, t}));
}
