/*  simt - a stand-in for a GPU, in the process that asks for it: kernels compiled by the host's compiler run thread by thread, block
 *  by block, in an order that is chosen against whoever forgot to wait.
 *
 *  Every CUDA thread is a fiber, so that it can stand at a barrier while others go on. A block's threads run one after the other as far
 *  as they come; which one first, and which block, says the schedule. Shared memory is full of NaN at first.
 *  Misuse ends the process with one message: a barrier that a thread of the block does not reach, or reaches on another line; a
 *  shuffle or a warp's barrier with lanes that are not there; more shared memory than a block has (docs/internals/simt.md).
 *
 *  Environment: TT_SIMT_SCHEDULE=forward|reverse|random:SEED, TT_SIMT_STREAMS=lazy|eager (runtime.cc).
 *  Threads:     kernels run on the thread that waits for them, one at a time in a process. */
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>
#include <cuda_runtime_api.h>

namespace simt
{

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_)
    {
    }
};

/*  What a kernel's code sees of where it is. */
struct where {
    dim3 thread, block, threads, blocks;
    unsigned number; /* of the thread in its block */
    void *shared;    /* the launch's own bytes     */
};
extern const where *now;

inline unsigned lane()
{
    return now->number % 32;
}

void sync_block(const char *file, int line);
void sync_warp(unsigned mask, const char *file, int line);
/*  Every lane of the mask gives 32 bits and gets those of lane `from`. */
uint32_t exchange(unsigned mask, uint32_t bits, unsigned from, const char *file, int line);
unsigned ballot(unsigned mask, bool vote, const char *file, int line);

template <class T> T shuffle(unsigned mask, T x, unsigned from, const char *file, int line)
{
    static_assert(sizeof(T) == 4);
    return __builtin_bit_cast(T, exchange(mask, __builtin_bit_cast(uint32_t, x), from, file, line));
}

/*  Bytes of a block's shared memory, on the cards that we build for: sm_90's; and of a launch's own where its kernel asked for no more. */
constexpr size_t shared_max = 227 * 1024, launch_shared_max = 48 * 1024;

/*  The block's array of that key, made when its first thread asks. */
void *shared_array(const void *key, size_t bytes, const char *file, int line);

/*  One launch, done when the stream's turn comes. */
struct grid {
    const char *kernel;
    const void *function; /* by which cudaFuncSetAttribute knows it */
    dim3 blocks, threads;
    size_t shared;
    std::function<void()> body;
};
void enqueue(cudaStream_t stream, grid work);

/*  Whose threads run a stream's kernels, one after the other. */
struct crew;
std::shared_ptr<crew> hire();
/*  Now. */
void run(const grid &work, crew *who);

enum class order { forward, reverse, random };
/*  Of threads and blocks from here on, in place of what the environment says. */
void schedule(order order, uint64_t seed);
/*  A number below n, from the schedule's own randomness. */
unsigned draw(unsigned n);
order ordered();

template <class... P, class... A>
void launch(
    const char *name, void (*kernel)(P...), dim3 blocks, dim3 threads, size_t shared, cudaStream_t stream, A... args)
{
    enqueue(stream, {name, reinterpret_cast<const void *>(kernel), blocks, threads, shared,
                        [=] { kernel(static_cast<P>(args)...); }});
}

[[noreturn]] void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

} // namespace simt
