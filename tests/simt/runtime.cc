/*  runtime - CUDA's calls: memory, streams, events, errors.
 *
 *  Memory:   device memory lies in one reserved range that nobody may touch but while work runs; each allocation ends at a page that is
 *            never there. Fresh memory is NaN. Copies to and from the host want memory of cudaMallocHost, or device memory.
 *  Streams:  TT_SIMT_STREAMS=lazy (as it is without): work is kept until somebody waits for it, and among streams that could go on the
 *            one that was asked for goes on as late as it may. eager: done by the call.
 *  Graphs:   what a stream is given while it records is kept in their order, and each launch queues all of it again. While one records,
 *            whatever waits, allocates or frees is refused, and the recording is spoilt; events are not recorded at all here.
 *  Failures: TT_SIMT_DEVICES=N cards (1); TT_SIMT_MEMORY=BYTES of each; TT_SIMT_FAIL=malloc:N | launch:N | image:N | graph:N | lost:N fails the Nth
 *            allocation, the Nth launch of a kernel (image: as a card does that the kernel was not built for) or of a graph, or the Nth piece of work, after which a lost device fails everything.
 *  Threads:  one lock. */
#include <sys/mman.h>
#include <unistd.h>
#include <fcntl.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>
#include "tests/simt/bounds.h"
#include "tests/simt/count.h"
#include "tests/simt/order.h"
#include "tests/simt/simt.h"

namespace
{

constexpr size_t page = 4096, reserved = size_t(64) << 30;

struct item {
    std::function<cudaError_t()> work;
    std::shared_ptr<simt::point> asked, after; /* what its host had done by then; what was done before the event that it waits for */
    cudaEvent_t record = nullptr, wait = nullptr;
    uint64_t number = 0; /* of the record that is meant */
};

struct failing {
    const char *what = "";
    long after = -1;
};

std::recursive_mutex s_lock;
std::map<char *, size_t> s_device, s_pinned; /* what is there, by its first byte */
std::vector<cudaStream_t> s_streams;
char *s_range;
size_t s_range_used, s_bytes;
int s_open; /* pieces of work that may touch device memory */
cudaError_t s_last, s_sticky;
std::multimap<size_t, char *> s_free; /* by bytes of pages */
simt_count_t s_count;
std::map<const void *, size_t> s_shared; /* of a launch's own at most, of kernels that asked for more */
simt::point s_done; /* all that streams have done: what waits for the whole card waits for that */

} // namespace

struct CUgraph_st {
    std::vector<item> items;
};

struct CUgraphExec_st {
    std::vector<item> items;
};

struct CUstream_st {
    std::deque<item> queue;
    std::unique_ptr<CUgraph_st> records; /* while it does */
    bool spoilt = false;                 /* what it records */
    simt::history self;                  /* its work is nobody's but its own */
    simt::point done;                    /* so far */
    std::shared_ptr<simt::crew> crew = simt::hire();
};

struct CUevent_st {
    uint64_t recorded, done; /* records that were queued; that were passed */
    std::shared_ptr<simt::point> passed = std::make_shared<simt::point>(); /* who waits may outlive the event */
};

namespace
{

cudaError_t say(cudaError_t error)
{
    if (error != cudaSuccess)
        s_last = error;
    return error;
}

cudaError_t stick(cudaError_t error)
{
    s_sticky = error;
    return say(error);
}

/*  TT_SIMT_ONCE=FILE: of several processes one fails, which makes it. */
bool first_to_fail()
{
    const char *once = getenv("TT_SIMT_ONCE");
    const int fd = once ? open(once, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600) : -1;
    if (fd >= 0)
        close(fd);
    return !once || fd >= 0;
}

/*  Is it this call that fails? */
bool fails(const char *what)
{
    static failing wish = [] {
        failing f;
        const char *text = getenv("TT_SIMT_FAIL");
        const char *colon = text ? strchr(text, ':') : nullptr;
        if (colon) {
            f.what = strndup(text, static_cast<size_t>(colon - text));
            f.after = atol(colon + 1);
        }
        return f;
    }();
    return strcmp(wish.what, what) == 0 && wish.after > 0 && --wish.after == 0 && first_to_fail();
}

size_t limit()
{
    const char *text = getenv("TT_SIMT_MEMORY");
    return text && *text ? strtoull(text, nullptr, 10) : reserved / 2;
}

int devices()
{
    const char *text = getenv("TT_SIMT_DEVICES");
    return text && *text ? atoi(text) : 1;
}

size_t pages(size_t size)
{
    return (size + page - 1) / page * page;
}

/*  All of device memory in one call: what is no allocation, and the page behind each, is of a file without a byte, and faults open or
 *  closed. */
void protect(bool open)
{
    if (s_range_used && mprotect(s_range, s_range_used, open ? PROT_READ | PROT_WRITE : PROT_NONE) != 0)
        simt::fail("device memory cannot be %s", open ? "opened" : "closed");
}

/*  Nothing is there from now on. Each place has its own offset in the file, so that neighbours become one mapping. */
bool take_away(char *base, size_t bytes)
{
    static const int nothing = memfd_create("no device memory", MFD_CLOEXEC);
    return mmap(base, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, nothing, base - s_range) != MAP_FAILED;
}

/*  Memory of NaN, closed. */
bool put_there(char *base, size_t bytes)
{
    void *there = mmap(base, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (there == MAP_FAILED)
        return false;
    simt::allow(base, bytes);
    memset(base, 0xff, bytes);
    return mprotect(base, bytes, PROT_NONE) == 0;
}

bool inside(const std::map<char *, size_t> &map, const void *memory, size_t size)
{
    char *at = static_cast<char *>(const_cast<void *>(memory));
    auto next = map.upper_bound(at);
    if (next == map.begin())
        return false;
    --next;
    return at + size <= next->first + next->second;
}

bool in_range(const void *memory)
{
    const char *at = static_cast<const char *>(memory);
    return s_range && at >= s_range && at < s_range + reserved;
}

void known(cudaStream_t stream)
{
    for (cudaStream_t there : s_streams)
        if (there == stream)
            return;
    simt::fail("a stream that was never made, or is destroyed, is used");
}

cudaError_t step(cudaStream_t stream);

/*  The record that an event's wait means has been passed. */
cudaError_t pass(cudaEvent_t event, uint64_t number)
{
    while (event->done < number) {
        bool found = false;
        for (cudaStream_t stream : s_streams)
            for (const item &i : stream->queue)
                if (i.record == event && i.number <= number && !found) {
                    found = true;
                    const cudaError_t error = step(stream);
                    if (error != cudaSuccess)
                        return error;
                    break;
                }
        if (!found)
            return cudaSuccess;
    }
    return cudaSuccess;
}

/*  It and its copies of what it works with end before it leaves. */
cudaError_t step_as(cudaStream_t stream)
{
    const item next = std::move(stream->queue.front());
    stream->queue.pop_front();
    if (next.asked)
        next.asked->acquire();
    if (next.wait) {
        const cudaError_t error = pass(next.wait, next.number);
        if (error != cudaSuccess)
            return error;
    }
    if (next.after)
        next.after->acquire();
    if (next.record) {
        next.record->passed->release();
        if (next.record->done < next.number)
            next.record->done = next.number;
    }
    if (!next.work)
        return cudaSuccess;
    if (fails("lost"))
        return stick(cudaErrorLaunchFailure);
    return next.work();
}

/*  The oldest piece of a stream's work. */
cudaError_t step(cudaStream_t stream)
{
    stream->self.enter();
    const cudaError_t error = step_as(stream);
    stream->done.release();
    s_done.release();
    stream->self.leave();
    return error;
}

/*  Waits of other streams go on only as far as events ask: whoever forgot one reads what is not there yet. */
cudaError_t drain(cudaStream_t stream)
{
    if (s_open++ == 0)
        protect(true);
    cudaError_t error = s_sticky;
    while (error == cudaSuccess && !stream->queue.empty())
        error = step(stream);
    if (error != cudaSuccess)
        stream->queue.clear();
    if (--s_open == 0)
        protect(false);
    return error;
}

void wait_for_all()
{
    for (cudaStream_t stream : s_streams)
        drain(stream);
    s_done.acquire();
}

bool eager()
{
    const char *text = getenv("TT_SIMT_STREAMS");
    return text && strcmp(text, "eager") == 0;
}

cudaError_t queue(cudaStream_t stream, item work)
{
    known(stream);
    if (s_sticky != cudaSuccess)
        return say(s_sticky);
    if (stream->records) {
        if (!work.work)
            simt::fail("an event of a stream that records: this stand-in has no such graphs");
        stream->records->items.push_back(std::move(work));
        return cudaSuccess;
    }
    if (simt::watched) {
        work.asked = std::make_shared<simt::point>();
        work.asked->release();
    }
    stream->queue.push_back(std::move(work));
    return eager() ? say(drain(stream)) : cudaSuccess;
}

/*  What a stream that records does not bear, whichever stream it is meant for. */
cudaError_t unless_recording()
{
    cudaError_t error = cudaSuccess;
    for (cudaStream_t stream : s_streams)
        if (stream->records) {
            stream->spoilt = true;
            error = cudaErrorStreamCaptureUnsupported;
        }
    return say(error);
}

/*  Anything can be asked of the card now. */
cudaError_t can_be_asked()
{
    return s_sticky != cudaSuccess ? say(s_sticky) : unless_recording();
}

} // namespace

/*  As a card with 227 KiB a block. */
cudaError_t cudaFuncSetAttribute(const void *function, cudaFuncAttribute attribute, int value)
{
    const std::lock_guard hold(s_lock);
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 ||
        static_cast<size_t>(value) > simt::shared_max)
        return say(cudaErrorInvalidValue);
    s_shared[function] = static_cast<size_t>(value);
    return say(s_sticky);
}

void simt::enqueue(cudaStream_t stream, grid work)
{
    const std::lock_guard hold(s_lock);
    const auto asked = s_shared.find(work.function);
    const size_t shared = asked != s_shared.end() ? asked->second : launch_shared_max;
    const unsigned threads = work.threads.x * work.threads.y * work.threads.z;
    if (threads == 0 || threads > 1024 || work.blocks.x == 0 || work.blocks.y == 0 || work.blocks.z == 0 ||
        work.blocks.y > 65535 || work.blocks.z > 65535 || work.shared > shared) {
        say(cudaErrorInvalidValue);
        return;
    }
    if (fails("launch")) {
        stick(cudaErrorLaunchFailure);
        return;
    }
    if (fails("image")) {
        stick(cudaErrorNoKernelImageForDevice);
        return;
    }
    item next;
    next.work = [work = std::move(work), who = stream->crew.get()] {
        run(work, who);
        return cudaSuccess;
    };
    if (!stream->records)
        s_count.kernels++;
    queue(stream, std::move(next));
}

simt_count_t simt_count(void)
{
    const std::lock_guard hold(s_lock);
    return s_count;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = devices();
    return devices() > 0 ? cudaSuccess : devices() < 0 ? cudaErrorInsufficientDriver : cudaErrorNoDevice;
}

cudaError_t cudaSetDevice(int device)
{
    return say(device >= 0 && device < devices() ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device)
{
    if (device < 0 || device >= devices())
        return say(cudaErrorInvalidDevice);
    *prop = {};
    snprintf(prop->name, sizeof prop->name, "simulated");
    prop->major = 9;
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *free, size_t *total)
{
    const std::lock_guard hold(s_lock);
    *total = limit();
    *free = s_bytes < limit() ? limit() - s_bytes : 0;
    return say(s_sticky);
}

/*  So that the last byte lies at the end of a page, as far as an alignment of 256 bytes allows. */
cudaError_t cudaMalloc(void **memory, size_t size)
{
    const std::lock_guard hold(s_lock);
    const cudaError_t refused = can_be_asked();
    if (refused != cudaSuccess)
        return refused;
    const size_t room = pages((size + 255) / 256 * 256), bytes = room + page;
    if (fails("malloc") || size == 0 || s_bytes + size > limit() || s_range_used + bytes > reserved)
        return say(size == 0 ? cudaErrorInvalidValue : cudaErrorMemoryAllocation);
    if (!s_range) {
        void *range = mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (range == MAP_FAILED)
            return say(cudaErrorMemoryAllocation);
        s_range = static_cast<char *>(range);
        if (!take_away(s_range, reserved))
            simt::fail("no place for device memory");
    }
    char *base;
    const auto again = s_free.find(bytes);
    if (again != s_free.end()) {
        base = again->second;
        s_free.erase(again);
    } else {
        base = s_range + s_range_used;
        s_range_used += bytes;
    }
    if (!put_there(base, room))
        return say(cudaErrorMemoryAllocation);
    char *at = base + room - (size + 255) / 256 * 256;
    simt::forbid(base, room);
    simt::allow(at, size);
    s_device[at] = size;
    s_bytes += size;
    *memory = at;
    return cudaSuccess;
}

/*  As CUDA's it waits for everything. */
cudaError_t cudaFree(void *memory)
{
    const std::lock_guard hold(s_lock);
    if (!memory || unless_recording() != cudaSuccess)
        return memory ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
    const auto at = s_device.find(static_cast<char *>(memory));
    if (at == s_device.end())
        simt::fail("cudaFree of %p, which is no device memory, or was freed before", memory);
    wait_for_all();
    char *base = at->first - reinterpret_cast<uintptr_t>(at->first) % page;
    const size_t room = pages((at->second + 255) / 256 * 256);
    if (!take_away(base, room))
        simt::fail("device memory cannot be given back");
    s_free.insert({room + page, base});
    s_bytes -= at->second;
    s_device.erase(at);
    return cudaSuccess;
}

cudaError_t cudaMallocHost(void **memory, size_t size)
{
    const std::lock_guard hold(s_lock);
    const cudaError_t refused = can_be_asked();
    if (refused != cudaSuccess || size == 0)
        return say(size ? refused : cudaErrorInvalidValue);
    void *out = nullptr;
    if (posix_memalign(&out, 256, size) != 0)
        return say(cudaErrorMemoryAllocation);
    memset(out, 0xff, size);
    s_pinned[static_cast<char *>(out)] = size;
    *memory = out;
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *memory)
{
    const std::lock_guard hold(s_lock);
    if (!memory || unless_recording() != cudaSuccess)
        return memory ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
    if (s_pinned.erase(static_cast<char *>(memory)) == 0)
        simt::fail("cudaFreeHost of %p, which cudaMallocHost did not give, or which was freed before", memory);
    wait_for_all();
    free(memory);
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int)
{
    const std::lock_guard hold(s_lock);
    if (s_sticky != cudaSuccess)
        return say(s_sticky);
    *stream = new CUstream_st;
    s_streams.push_back(*stream);
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    const std::lock_guard hold(s_lock);
    known(stream);
    drain(stream);
    std::erase(s_streams, stream);
    delete stream;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    const std::lock_guard hold(s_lock);
    known(stream);
    s_count.waits++;
    const cudaError_t refused = unless_recording();
    if (refused != cudaSuccess)
        return refused;
    const cudaError_t error = drain(stream);
    stream->done.acquire();
    return say(error);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int)
{
    const std::lock_guard hold(s_lock);
    item next;
    next.wait = event;
    next.after = event->passed;
    next.number = event->recorded;
    return queue(stream, std::move(next));
}

namespace
{

/*  Its records have been passed, so nobody has to wait for them. */
void forget(cudaEvent_t event)
{
    for (cudaStream_t stream : s_streams)
        for (item &i : stream->queue) {
            i.wait = i.wait == event ? nullptr : i.wait;
            i.record = i.record == event ? nullptr : i.record;
        }
}

} // namespace

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int)
{
    *event = new CUevent_st{};
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    const std::lock_guard hold(s_lock);
    if (s_open++ == 0)
        protect(true);
    const cudaError_t error = s_sticky != cudaSuccess ? s_sticky : pass(event, event->recorded);
    if (--s_open == 0)
        protect(false);
    forget(event);
    delete event;
    return say(error);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    const std::lock_guard hold(s_lock);
    item next;
    next.record = event;
    next.number = ++event->recorded;
    return queue(stream, std::move(next));
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    const std::lock_guard hold(s_lock);
    if (unless_recording() != cudaSuccess)
        return cudaErrorStreamCaptureUnsupported;
    if (s_open++ == 0)
        protect(true);
    const cudaError_t error = s_sticky != cudaSuccess ? s_sticky : pass(event, event->recorded);
    if (--s_open == 0)
        protect(false);
    event->passed->acquire();
    return say(error);
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    const std::lock_guard hold(s_lock);
    if (event->done < event->recorded)
        return cudaErrorNotReady;
    event->passed->acquire();
    return cudaSuccess;
}

namespace
{

/*  Which memory a copy may name: one end of it lies on the device, the other on the device or where cudaMallocHost put it. */
bool may_copy(const void *memory, size_t count, bool device)
{
    if (device != in_range(memory))
        return false;
    if (device && !inside(s_device, memory, count))
        simt::fail("a copy of %zu bytes at %p leaves its device memory", count, memory);
    return device || inside(s_pinned, memory, count);
}

} // namespace

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t count, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    const std::lock_guard hold(s_lock);
    const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    if (count == 0)
        return say(s_sticky);
    if (!may_copy(to, count, to_device) || !may_copy(from, count, from_device))
        return say(cudaErrorInvalidValue);
    item next;
    next.work = [=] {
        /* it may have been recorded long ago */
        if (!may_copy(to, count, to_device) || !may_copy(from, count, from_device))
            simt::fail("a copy of %zu bytes from %p to %p, of which one is no more", count, from, to);
        memmove(to, from, count);
        s_count.up += kind == cudaMemcpyHostToDevice ? count : 0;
        return cudaSuccess;
    };
    s_count.copies += !stream->records;
    return queue(stream, std::move(next));
}

cudaError_t cudaMemsetAsync(void *memory, int value, size_t count, cudaStream_t stream)
{
    const std::lock_guard hold(s_lock);
    if (count == 0)
        return say(s_sticky);
    if (!may_copy(memory, count, true))
        return say(cudaErrorInvalidValue);
    item next;
    next.work = [=] {
        memset(memory, value, count);
        return cudaSuccess;
    };
    return queue(stream, std::move(next));
}

/* ---- graphs --------------------------------------------------------------------------------------------------------- */

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode)
{
    const std::lock_guard hold(s_lock);
    known(stream);
    if (s_sticky != cudaSuccess || stream->records)
        return say(stream->records ? cudaErrorIllegalState : s_sticky);
    stream->records = std::make_unique<CUgraph_st>();
    stream->spoilt = false;
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    const std::lock_guard hold(s_lock);
    known(stream);
    *graph = nullptr;
    if (!stream->records)
        return say(cudaErrorIllegalState);
    const std::unique_ptr<CUgraph_st> recorded = std::move(stream->records);
    if (stream->spoilt || s_sticky != cudaSuccess)
        return say(stream->spoilt ? cudaErrorStreamCaptureInvalidated : s_sticky);
    *graph = new CUgraph_st(*recorded);
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long)
{
    const std::lock_guard hold(s_lock);
    if (s_sticky != cudaSuccess)
        return say(s_sticky);
    *exec = new CUgraphExec_st{graph->items};
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    const std::lock_guard hold(s_lock);
    known(stream);
    if (stream->records)
        simt::fail("a graph is launched into a stream that records: this stand-in has no such graphs");
    if (fails("graph"))
        return stick(cudaErrorLaunchFailure);
    s_count.graphs++;
    cudaError_t error = say(s_sticky);
    for (size_t i = 0; error == cudaSuccess && i < exec->items.size(); i++)
        error = queue(stream, exec->items[i]);
    return error;
}

/*  Launches that are queued have copies of their own, as CUDA's go on, too. */
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    const std::lock_guard hold(s_lock);
    delete exec;
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    const std::lock_guard hold(s_lock);
    delete graph;
    return cudaSuccess;
}

/* ---- errors --------------------------------------------------------------------------------------------------------- */

cudaError_t cudaGetLastError(void)
{
    const std::lock_guard hold(s_lock);
    const cudaError_t last = s_sticky != cudaSuccess ? s_sticky : s_last;
    s_last = cudaSuccess;
    return last;
}

const char *cudaGetErrorString(cudaError_t error)
{
    switch (error) {
    case cudaSuccess:
        return "no error";
    case cudaErrorInvalidValue:
        return "invalid argument";
    case cudaErrorMemoryAllocation:
        return "out of memory";
    case cudaErrorInsufficientDriver:
        return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorNoDevice:
        return "no CUDA-capable device is detected";
    case cudaErrorInvalidDevice:
        return "invalid device ordinal";
    case cudaErrorInvalidDeviceFunction:
        return "invalid device function";
    case cudaErrorUnsupportedPtxVersion:
        return "the provided PTX was compiled with an unsupported toolchain.";
    case cudaErrorSystemDriverMismatch:
        return "system has unsupported display driver / cuda driver combination";
    case cudaErrorCompatNotSupportedOnDevice:
        return "forward compatibility was attempted on non supported HW";
    case cudaErrorNoKernelImageForDevice:
        return "no kernel image is available for execution on the device";
    case cudaErrorInvalidResourceHandle:
        return "invalid resource handle";
    case cudaErrorIllegalState:
        return "the operation cannot be performed in the present state";
    case cudaErrorStreamCaptureUnsupported:
        return "operation not permitted when stream is capturing";
    case cudaErrorStreamCaptureInvalidated:
        return "operation failed due to a previous error during capture";
    case cudaErrorNotReady:
        return "device not ready";
    case cudaErrorIllegalAddress:
        return "an illegal memory access was encountered";
    case cudaErrorLaunchFailure:
        return "unspecified launch failure";
    }
    return "unrecognized error code";
}
