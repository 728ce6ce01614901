/*  misuse CASE - a kernel, or a host, that breaks one of the rules of tests/simt; "fine" breaks none and prints a sum. */
#include <cstdio>
#include <cstring>
#include "common/nn/cuda/launch.cuh"

static constexpr unsigned N = 64;
static cudaStream_t s_stream, s_other;
static float *s_host, *s_card, *s_out;

/*  The sum of 64 numbers; `wait` false: without the barrier that it needs. */
__global__ void sum(const float *x, float *out, bool wait)
{
    CUDA_STATIC_SHARED(float, part, N);
    part[N - 1 - threadIdx.x] = x[threadIdx.x];
    if (wait)
        __syncthreads();
    float v = threadIdx.x < 32 ? part[threadIdx.x] + part[threadIdx.x + 32] : 0;
    for (unsigned bit = 16; bit; bit /= 2)
        v = __fadd_rn(v, __shfl_xor_sync(0xffffffffu, v, bit));
    if (threadIdx.x == 0)
        *out = v;
}

/*  Right where the first thread comes last. */
__global__ void sum_by_the_first(const float *x, float *out)
{
    CUDA_STATIC_SHARED(float, part, N);
    part[threadIdx.x] = x[threadIdx.x];
    float v = 0;
    for (unsigned i = 0; threadIdx.x == 0 && i < N; i++)
        v = __fadd_rn(v, part[i]);
    if (threadIdx.x == 0)
        *out = v;
}

/*  Of a warp's lanes each reads what its neighbour wrote; `order` false: an exchange lies between, which orders no memory. */
__global__ void sum_of_neighbours(const float *x, float *out, bool order)
{
    CUDA_STATIC_SHARED(float, part, N);
    part[threadIdx.x] = x[threadIdx.x];
    if (order)
        __syncwarp();
    else
        (void)__shfl_xor_sync(0xffffffffu, 1.0f, 1);
    float v = __fadd_rn(part[threadIdx.x], part[threadIdx.x ^ 1]);
    for (unsigned bit = 16; bit > 1; bit /= 2)
        v = __fadd_rn(v, __shfl_xor_sync(0xffffffffu, v, bit));
    CUDA_STATIC_SHARED(float, warps, 2);
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x == 0)
        *out = __fadd_rn(warps[0], warps[1]);
}

/*  Two blocks add, one behind the other's sum: right where they run one after the other in that order. */
__global__ void sum_in_turn(const float *x, float *out)
{
    float v = blockIdx.x ? *out : 0;
    for (unsigned i = 0; i < N / 2; i++)
        v = __fadd_rn(v, x[blockIdx.x * (N / 2) + i]);
    *out = v;
}

/*  What nobody has written: of the block's memory; and the launch's; and of the card's, x. */
__global__ void unwritten(const float *x, float *out, unsigned where)
{
    CUDA_STATIC_SHARED(float, part, N);
    CUDA_SHARED(float, own);
    *out = where == 0 ? part[N / 2] : where == 1 ? own[0] : x[N / 2];
}

/*  In the block's memory, and not in the array. */
__global__ void beside_an_array(float *out)
{
    CUDA_STATIC_SHARED(float, first, N - 1);
    CUDA_STATIC_SHARED(float, second, N);
    float *const by_address = first;
    by_address[threadIdx.x] = 1;
    second[threadIdx.x] = 1;
    if (threadIdx.x == 0)
        *out = second[1];
}

__global__ void behind_the_launch(float *out)
{
    CUDA_SHARED(float, all);
    all[threadIdx.x] = 1;
    if (threadIdx.x == 0)
        *out = all[0];
}

__global__ void leave_early()
{
    if (threadIdx.x == 3)
        return;
    __syncthreads();
}

__global__ void two_barriers()
{
    if (threadIdx.x < 32)
        __syncthreads();
    else
        __syncthreads();
}

__global__ void absent_lane(float *out)
{
    if (threadIdx.x % 32 != 7)
        out[threadIdx.x] = __shfl_xor_sync(0xffffffffu, 1.0f, 1);
}

__global__ void too_much_shared(float *out)
{
    CUDA_STATIC_SHARED(float, large, 65536);
    out[0] = large[0];
}

__global__ void write_at(float *out, size_t at)
{
    out[at] = 1;
}

static void s_copy_in()
{
    for (unsigned i = 0; i < N; i++)
        s_host[i] = static_cast<float>(i);
    cudaMemcpyAsync(s_card, s_host, N * sizeof(float), cudaMemcpyHostToDevice, s_stream);
}

static float s_copy_out(cudaStream_t stream)
{
    cudaMemcpyAsync(s_host, s_out, sizeof(float), cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
    return s_host[0];
}

static void s_sum(bool wait)
{
    s_copy_in();
    CUDA_LAUNCH(sum, 1, N, 0, s_stream, s_card, s_out, wait);
    printf("%g\n", static_cast<double>(s_copy_out(s_stream)));
}

/*  One of the kernels that add, alone. */
template <class... P, class... A>
static void s_sum_by(void (*kernel)(P...), unsigned blocks, unsigned threads, A... args)
{
    s_copy_in();
    CUDA_LAUNCH(kernel, blocks, threads, 0, s_stream, s_card, s_out, args...);
    printf("%g\n", static_cast<double>(s_copy_out(s_stream)));
}

/*  The host writes its numbers anew while the copy of the old ones is under way, or reads the sum before anybody waited for it. */
static void s_host_is_early(bool writes)
{
    s_copy_in();
    if (writes)
        s_host[0] = 0;
    CUDA_LAUNCH(sum, 1, N, 0, s_stream, s_card, s_out, true);
    cudaMemcpyAsync(s_host, s_out, sizeof(float), cudaMemcpyDeviceToHost, s_stream);
    if (writes)
        cudaStreamSynchronize(s_stream);
    printf("%g\n", static_cast<double>(s_host[0]));
}

/*  Another stream reads the sum; `event`: once it is there; `gone`: the event goes before anything has run. */
static void s_streams(bool event, bool gone)
{
    cudaEvent_t done;
    cudaEventCreateWithFlags(&done, cudaEventDisableTiming);
    s_copy_in();
    CUDA_LAUNCH(sum, 1, N, 0, s_stream, s_card, s_out, true);
    cudaEventRecord(done, s_stream);
    if (event)
        cudaStreamWaitEvent(s_other, done, 0);
    if (gone)
        cudaEventDestroy(done);
    printf("%g\n", static_cast<double>(s_copy_out(s_other)));
    if (!gone)
        cudaEventDestroy(done);
}

/*  The sum as a graph, launched twice; between its launches nothing but what it copies is new. */
static void s_recorded(const char *name)
{
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t again = nullptr;
    void *more = nullptr;
    cudaStreamBeginCapture(s_stream, cudaStreamCaptureModeThreadLocal);
    CUDA_LAUNCH(sum, 1, N, 0, s_stream, s_card, s_out, true);
    if (strcmp(name, "graph-malloc") == 0)
        cudaMalloc(&more, 4);
    if (strcmp(name, "graph-waits") == 0)
        cudaStreamSynchronize(s_stream);
    const cudaError_t recorded = cudaStreamEndCapture(s_stream, &graph);
    if (recorded != cudaSuccess) {
        printf("%s\n", cudaGetErrorString(recorded));
        return;
    }
    cudaGraphInstantiate(&again, graph, 0);
    cudaGraphDestroy(graph);
    for (int i = 0; i < 2; i++) {
        s_copy_in();
        if (i == 1 && strcmp(name, "graph-freed") == 0)
            cudaFree(s_card);
        cudaGraphLaunch(again, s_stream);
        cudaStreamSynchronize(s_stream); /* before the host's numbers are written again */
    }
    printf("%g\n", static_cast<double>(s_copy_out(s_stream)));
    cudaGraphExecDestroy(again);
}

/*  More than 48 KiB of a launch's own, with and without asking for it first. */
static void s_shared(const char *name)
{
    const int wanted = strcmp(name, "launch-far-too-much") == 0 ? 228 * 1024 : 50000;
    cudaError_t code = cudaSuccess;
    if (strcmp(name, "launch-too-much") != 0)
        code = cudaFuncSetAttribute(
            reinterpret_cast<const void *>(behind_the_launch), cudaFuncAttributeMaxDynamicSharedMemorySize, wanted);
    if (code == cudaSuccess) {
        CUDA_LAUNCH(
            behind_the_launch, 1, N, strcmp(name, "launch-more-than-asked") == 0 ? 50001 : 50000, s_stream, s_out);
        code = cudaGetLastError();
    }
    cudaStreamSynchronize(s_stream);
    printf("%s\n", cudaGetErrorString(code));
}

static void s_one(const char *name)
{
    float pageable = 0;
    if (strcmp(name, "fine") == 0)
        s_sum(true);
    else if (strcmp(name, "no-barrier") == 0)
        s_sum(false);
    else if (strcmp(name, "no-barrier-last") == 0)
        s_sum_by(sum_by_the_first, 1, N);
    else if (strcmp(name, "warp") == 0)
        s_sum_by(sum_of_neighbours, 1, N, true);
    else if (strcmp(name, "no-warp") == 0)
        s_sum_by(sum_of_neighbours, 1, N, false);
    else if (strcmp(name, "in-turn") == 0)
        s_sum_by(sum_in_turn, 2, 1);
    else if (strcmp(name, "early-write") == 0)
        s_host_is_early(true);
    else if (strcmp(name, "early-read") == 0)
        s_host_is_early(false);
    else if (strcmp(name, "event") == 0)
        s_streams(true, false);
    else if (strcmp(name, "no-event") == 0)
        s_streams(false, false);
    else if (strcmp(name, "event-gone") == 0)
        s_streams(true, true);
    else if (strncmp(name, "graph", 5) == 0)
        s_recorded(name);
    else if (strcmp(name, "leave-early") == 0)
        CUDA_LAUNCH(leave_early, 1, N, 0, s_stream);
    else if (strcmp(name, "two-barriers") == 0)
        CUDA_LAUNCH(two_barriers, 1, N, 0, s_stream);
    else if (strcmp(name, "absent-lane") == 0)
        CUDA_LAUNCH(absent_lane, 1, N, 0, s_stream, s_out);
    else if (strcmp(name, "too-much-shared") == 0)
        CUDA_LAUNCH(too_much_shared, 1, N, 0, s_stream, s_out);
    else if (strncmp(name, "launch-", 7) == 0)
        s_shared(name);
    else if (strcmp(name, "beside-an-array") == 0)
        CUDA_LAUNCH(beside_an_array, 1, N, 0, s_stream, s_out);
    else if (strcmp(name, "behind-the-launch") == 0)
        CUDA_LAUNCH(behind_the_launch, 1, N, (N - 1) * sizeof(float), s_stream, s_out);
    else if (strcmp(name, "beside-the-end") == 0)
        CUDA_LAUNCH(write_at, 1, 1, 0, s_stream, s_out, size_t(1));
    else if (strcmp(name, "behind-the-end") == 0)
        CUDA_LAUNCH(write_at, 1, 1, 0, s_stream, s_out, size_t(4096) / sizeof(float));
    else if (strcmp(name, "after-its-end") == 0) {
        cudaFree(s_out);
        CUDA_LAUNCH(write_at, 1, 1, 0, s_stream, s_out, size_t(0));
    } else if (strncmp(name, "unwritten-", 10) == 0) {
        CUDA_LAUNCH(unwritten, 1, 1, sizeof(float), s_stream, s_card, s_out, static_cast<unsigned>(name[10] - '0'));
        printf("%d\n", s_copy_out(s_stream) != s_copy_out(s_stream));
    } else if (strcmp(name, "host-writes") == 0)
        s_card[0] = 1;
    else if (strcmp(name, "host-reads") == 0)
        printf("%g\n", static_cast<double>(s_card[0]));
    else if (strcmp(name, "pageable") == 0)
        printf("%s\n", cudaGetErrorString(cudaMemcpyAsync(&pageable, s_out, 4, cudaMemcpyDeviceToHost, s_stream)));
    else if (strcmp(name, "copy-behind") == 0)
        cudaMemcpyAsync(s_host, s_out, N * sizeof(float), cudaMemcpyDeviceToHost, s_stream);
    else if (strcmp(name, "freed-twice") == 0)
        cudaFree(s_card), cudaFree(s_card);
    else
        printf("no such case\n");
}

int main(int, char **argv)
{
    cudaStreamCreateWithFlags(&s_stream, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&s_other, cudaStreamNonBlocking);
    cudaMallocHost(reinterpret_cast<void **>(&s_host), N * sizeof(float));
    if (cudaMalloc(reinterpret_cast<void **>(&s_card), N * sizeof(float)) != cudaSuccess ||
        cudaMalloc(reinterpret_cast<void **>(&s_out), sizeof(float)) != cudaSuccess) {
        printf("%s\n", cudaGetErrorString(cudaGetLastError()));
        return 1;
    }
    s_one(argv[1]);
    cudaStreamSynchronize(s_stream);
    const cudaError_t last = cudaGetLastError();
    if (last != cudaSuccess)
        printf("%s\n", cudaGetErrorString(last));
    return 0;
}
