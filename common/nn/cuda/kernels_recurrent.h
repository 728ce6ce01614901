/*  kernels_recurrent - what a recurrent tower asks of a GPU besides products (kernels.h): its cells, step by step, and their way back.
 *
 *  Bits, memory, errors and threads are as kernels.h has them; what a cell does is math/recurrent.h's. A step is the product of what is carried
 *  (cuda_gemm) and a launch of cells, for all sequences of the run at once: they do not know of one another. */
#pragma once
#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*  Sequences of a run: step t of sequence u is row first[u] + t apart[u] of the run. */
typedef struct {
    uint32_t count, length;
    const uint32_t *first, *apart; /* [count]; NULL: u, and 0 */
    const uint32_t *row;           /* [rows of the run] numbers in the tables of the pass; NULL: as they are */
    const uint8_t *begins;         /* by number: an episode begins with the row; NULL: none does             */
    const float *carry;            /* by number of the first row: [C]                                        */
    uint32_t carry_floats;         /* C                                                                      */
} cuda_sequences_t;

/*  A tower's units of a run. H units; G gates: 4 of an LSTM (i, f, g, o), 3 of a GRU (r, z, n). Arrays of rows are [rows][width], of sequences
 *  [count][width]. What only an LSTM or only a GRU has is NULL of the other. */
typedef struct {
    bool lstm;
    uint32_t units;    /* H                                                                          */
    uint32_t carry_at; /* where its own begin in what is carried: h[H], and c[H] of an LSTM          */
    float *
        gates; /* rows [G H]: in: what comes of the input; then the gates; then, on the way back, what comes to the former */
    float *h_in, *h; /* rows [H]: what is carried into a row, and out of it                         */
    float *c_in, *c; /* rows [H], LSTM                                                             */
    float *n_in;     /* rows [H], GRU: what comes of h_in for n                                    */
    float *d_hidden; /* rows [G H]: on the way back, what comes to what comes of h_in; LSTM: it is `gates` */
    float *h_now;    /* sequences [H]: what is carried into the step at hand, or came back out of it */
    float *c_now;    /* sequences [H], LSTM                                                        */
    float *
        hidden; /* sequences [G H]: of the step at hand: what comes of h_now; or, on the way back, what comes to that */
    const float *d_h; /* rows [H]: what came to h from those that read it                            */
    float *carry_out; /* sequences [C]: what is carried on after the last step; NULL: nobody wants it */
} cuda_cells_t;

/*  h_now and c_now before the first step. */
void cuda_cells_begin(cudaStream_t stream, const cuda_sequences_t *of, const cuda_cells_t *job);
/*  A step forward; `hidden` is there. */
void cuda_cells_step(cudaStream_t stream, const cuda_sequences_t *of, const cuda_cells_t *job, uint32_t t);
/*  A step back, from the last to the first: from d_h, and from h_now and c_now, which came out of the step after (not read in the last), to gates, d_hidden,
 *  `hidden`, c_now, and to the part of h_now that does not go by `hidden`: of a GRU; of an LSTM there is none, and h_now is left as it is. */
void cuda_cells_back(cudaStream_t stream, const cuda_sequences_t *of, const cuda_cells_t *job, uint32_t t);

/*  Rows whose state is carried to somewhere else as well. */
typedef struct {
    uint32_t count;
    const uint32_t *row;   /* [count] of the run                  */
    float *to;             /* [count][C], of which a tower writes its own */
    uint32_t carry_floats; /* C                                   */
} cuda_keep_t;
/*  After the steps: what rows carry on, to keep->to. */
void cuda_cells_keep(cudaStream_t stream, const cuda_cells_t *job, const cuda_keep_t *keep);

#ifdef __cplusplus
}
#endif
