#include "tests/simt/simt.h"
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>
#include "tests/simt/bounds.h"
#include "tests/simt/fiber.h"
#include "tests/simt/order.h"

namespace simt
{

const where *now;

namespace
{

constexpr unsigned threads_max = 1024, warp = 32;
constexpr size_t arrays_max = 64;

enum class state { ready, at_block, at_warp, done };

struct thread {
    where at;
    state doing;
    const char *file; /* of the barrier that it stands at */
    int line;
    unsigned mask; /* of the lanes it waits for        */
    uint32_t gives, gets;
    unsigned from;
    struct seat *seat;
    bool turn;      /* which of its seat's points it released last */
    uint32_t turns; /* those of its warp's lanes at the barrier    */
};

struct array {
    const void *key;
    char *bytes;
    size_t size;
    const char *file;
    int line;
};

/*  What a thread of a block has as long as others follow it there. */
struct seat {
    std::unique_ptr<fiber> own;
    point arrived[2]; /* at a warp's barriers, by turns: who goes on late must not know what others did behind the barrier */
};

/*  Where blocks run one after the other, each knowing of the one before. */
struct room {
    std::vector<seat> seats{threads_max};
    std::unique_ptr<char[]> memory;
    char *shared = nullptr; /* in it, on a cache line */
    point arrived[2];       /* at the block's barrier, by turns as above */
    point ended[2];         /* the block before; this one                */
    bool turn = false;
    bool entered; /* a block of this launch was here */
};

struct block {
    const grid *work;
    crew *who;
    room *in;
    unsigned count;
    std::vector<thread> threads{threads_max};
    std::vector<array> arrays;
    char *next;  /* free byte of shared memory */
    size_t used; /* of it, as a card counts    */
    bool turn;   /* of the block's barrier     */
};

} // namespace

/*  Two rooms, so that neighbouring blocks do not know of one another: nothing orders them. One is enough where nobody watches. */
struct crew {
    room rooms[watched ? 2 : 1];
    unsigned blocks = 0;
    point begun;
};

namespace
{

block s_block;
thread *s_now;
order s_order;
uint64_t s_state;
bool s_chosen;

uint64_t next_random()
{
    s_state += 0x9e3779b97f4a7c15u; /* splitmix64 */
    uint64_t z = s_state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

void read_schedule()
{
    const char *text = getenv("TT_SIMT_SCHEDULE");
    s_chosen = true;
    if (!text || !*text || strcmp(text, "forward") == 0)
        s_order = order::forward;
    else if (strcmp(text, "reverse") == 0)
        s_order = order::reverse;
    else if (strncmp(text, "random:", 7) == 0)
        schedule(order::random, strtoull(text + 7, nullptr, 10));
    else
        fail("TT_SIMT_SCHEDULE=%s: use forward, reverse or random:SEED", text);
}

/*  The i-th of n in the schedule's order: `shift` is drawn once for all of them. */
unsigned turn(unsigned i, unsigned n, unsigned shift, unsigned step)
{
    if (s_order == order::forward)
        return i;
    if (s_order == order::reverse)
        return n - 1 - i;
    return static_cast<unsigned>((static_cast<uint64_t>(i) * step + shift) % n);
}

unsigned coprime(unsigned n)
{
    for (;;) {
        const unsigned step = n > 1 ? 1 + draw(n - 1) : 1;
        unsigned a = n, b = step;
        while (b) {
            const unsigned rest = a % b;
            a = b;
            b = rest;
        }
        if (a == 1)
            return step;
    }
}

/*  What was done before the launch is done, and so is the block that was here before. */
void body()
{
    const room *in = s_block.in;
    s_block.who->begun.acquire();
    if (in->entered)
        in->ended[in->turn].acquire();
    s_block.work->body();
    in->ended[!in->turn].release();
}

void run_thread(thread *t)
{
    s_now = t;
    now = &t->at;
    t->doing = state::ready;
    fiber *own = t->seat->own.get();
    if (own->running())
        own->resume();
    else
        own->start(body);
    if (!own->running())
        t->doing = state::done;
    now = nullptr;
}

/*  A warp whose asked lanes all stand at the same barrier goes on. */
bool release_warp(unsigned first)
{
    const unsigned end = first + warp < s_block.count ? first + warp : s_block.count;
    thread *leader = nullptr;
    for (unsigned n = first; n < end && !leader; n++)
        leader = s_block.threads[n].doing == state::at_warp ? &s_block.threads[n] : nullptr;
    if (!leader)
        return false;
    for (unsigned l = 0; l < warp; l++) {
        if (!(leader->mask >> l & 1))
            continue;
        const thread *t = first + l < end ? &s_block.threads[first + l] : nullptr;
        if (!t || t->doing != state::at_warp || t->mask != leader->mask || t->line != leader->line ||
            t->file != leader->file)
            fail("%s: block %u, thread %u stands at %s:%d for lane %u, which is not there", s_block.work->kernel,
                leader->at.block.x, leader->at.number, leader->file, leader->line, l);
    }
    const unsigned mask = leader->mask;
    uint32_t turns = 0;
    for (unsigned l = 0; l < warp && first + l < end; l++)
        turns |= uint32_t(s_block.threads[first + l].turn) << l;
    for (unsigned l = 0; l < warp; l++) {
        if (!(mask >> l & 1))
            continue;
        thread *t = &s_block.threads[first + l];
        if (!(mask >> t->from & 1))
            fail("%s: block %u, thread %u at %s:%d asks lane %u, which takes no part", s_block.work->kernel,
                t->at.block.x, t->at.number, t->file, t->line, t->from);
        t->gets = s_block.threads[first + t->from].gives;
        t->turns = turns;
    }
    for (unsigned l = 0; l < warp; l++)
        if (mask >> l & 1)
            s_block.threads[first + l].doing = state::ready;
    return true;
}

bool release_warps()
{
    bool any = false;
    for (unsigned first = 0; first < s_block.count; first += warp)
        any |= release_warp(first);
    return any;
}

/*  All of them stand at one barrier, or there is nobody left. */
bool release_block()
{
    const thread *waiting = nullptr, *other = nullptr;
    for (unsigned n = 0; n < s_block.count; n++) {
        const thread *t = &s_block.threads[n];
        if (t->doing == state::at_block && !waiting)
            waiting = t;
    }
    if (!waiting)
        return false;
    for (unsigned n = 0; n < s_block.count && !other; n++) {
        const thread *t = &s_block.threads[n];
        other = t->doing != state::at_block || t->line != waiting->line || t->file != waiting->file ? t : nullptr;
    }
    if (other && other->doing == state::done)
        fail("%s: block %u: thread %u stands at the barrier of %s:%d, thread %u has ended without it",
            s_block.work->kernel, waiting->at.block.x, waiting->at.number, waiting->file, waiting->line,
            other->at.number);
    if (other)
        fail("%s: block %u: thread %u stands at the barrier of %s:%d, thread %u at that of %s:%d", s_block.work->kernel,
            waiting->at.block.x, waiting->at.number, waiting->file, waiting->line, other->at.number, other->file,
            other->line);
    s_block.turn = !s_block.turn;
    for (unsigned n = 0; n < s_block.count; n++)
        s_block.threads[n].doing = state::ready;
    return true;
}

bool all_done()
{
    for (unsigned n = 0; n < s_block.count; n++)
        if (s_block.threads[n].doing != state::done)
            return false;
    return true;
}

void prepare_thread(unsigned n, dim3 block)
{
    const grid *work = s_block.work;
    thread *t = &s_block.threads[n];
    t->seat = &s_block.in->seats[n];
    if (!t->seat->own)
        t->seat->own = std::make_unique<fiber>();
    t->doing = state::ready;
    t->at.number = n;
    t->at.thread =
        dim3(n % work->threads.x, n / work->threads.x % work->threads.y, n / work->threads.x / work->threads.y);
    t->at.block = block;
    t->at.threads = work->threads;
    t->at.blocks = work->blocks;
    t->at.shared = s_block.in->shared;
}

size_t lines(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

/*  Every bit set, and of the gap behind it, too: a NaN as a float, and no number that anybody expects. */
void put_shared(char *at, size_t bytes)
{
    const unseen fill;
    allow(at, bytes);
    memset(at, 0xff, forbids ? bytes : lines(bytes) + gap);
}

/*  Nobody has stored there. */
bool clean_behind(const char *at, size_t bytes)
{
    for (size_t i = bytes; !forbids && i < lines(bytes) + gap; i++)
        if (at[i] != static_cast<char>(0xff))
            return false;
    return true;
}

void check_shared()
{
    const char *kernel = s_block.work->kernel;
    const unsigned block = s_block.threads[0].at.block.x;
    if (!clean_behind(s_block.in->shared, s_block.work->shared))
        fail("%s: block %u: a thread has stored behind the launch's shared memory", kernel, block);
    for (const array &there : s_block.arrays)
        if (!clean_behind(there.bytes, there.size))
            fail("%s: block %u: a thread has stored behind the shared array of %s:%d", kernel, block, there.file, there.line);
}

/*  The launch's own bytes come first; what is nobody's yet is forbidden. */
void begin_shared()
{
    constexpr size_t most = shared_max + (arrays_max + 1) * gap;
    room *in = s_block.in;
    s_block.arrays.clear();
    s_block.arrays.reserve(arrays_max);
    if (!in->memory) {
        const unseen fresh;
        in->memory = std::make_unique<char[]>(most + 64);
        in->shared = in->memory.get() + (64 - reinterpret_cast<uintptr_t>(in->memory.get()) % 64);
    }
    s_block.used = lines(s_block.work->shared);
    s_block.next = in->shared + s_block.used + gap;
    forbid(in->shared, most);
    put_shared(in->shared, s_block.work->shared);
}

void run_block(dim3 at)
{
    s_block.in = &s_block.who->rooms[s_block.who->blocks++ % std::size(s_block.who->rooms)];
    begin_shared();
    for (unsigned n = 0; n < s_block.count; n++)
        prepare_thread(n, at);
    const unsigned shift = draw(s_block.count), step = s_order == order::random ? coprime(s_block.count) : 1;
    do {
        for (unsigned i = 0; i < s_block.count; i++) {
            thread *t = &s_block.threads[turn(i, s_block.count, shift, step)];
            if (t->doing == state::ready)
                run_thread(t);
        }
    } while (release_warps() || release_block());
    s_block.in->turn = !s_block.in->turn;
    s_block.in->entered = true;
    if (!all_done())
        fail("%s: block %u: its threads wait for one another", s_block.work->kernel, at.x);
    check_shared();
}

void wait(state what, const char *file, int line)
{
    s_now->doing = what;
    s_now->file = file;
    s_now->line = line;
    fiber::leave();
}

} // namespace

void fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("simt: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    abort();
}

void schedule(order order, uint64_t seed)
{
    s_chosen = true;
    s_order = order;
    s_state = seed;
}

unsigned draw(unsigned n)
{
    return s_order == order::random && n > 1 ? static_cast<unsigned>(next_random() % n) : 0;
}

order ordered()
{
    if (!s_chosen)
        read_schedule();
    return s_order;
}

std::shared_ptr<crew> hire()
{
    static std::shared_ptr<crew> everybodys;
    if (watched)
        return std::make_shared<crew>();
    if (!everybodys)
        everybodys = std::make_shared<crew>();
    return everybodys;
}

void run(const grid &work, crew *who)
{
    ordered();
    who->begun.release();
    for (room &in : who->rooms)
        in.entered = false;
    s_block.work = &work;
    s_block.who = who;
    s_block.count = work.threads.x * work.threads.y * work.threads.z;
    const unsigned blocks = work.blocks.x * work.blocks.y * work.blocks.z;
    const unsigned shift = draw(blocks), step = s_order == order::random ? coprime(blocks) : 1;
    for (unsigned i = 0; i < blocks; i++) {
        const unsigned b = turn(i, blocks, shift, step);
        run_block(dim3(b % work.blocks.x, b / work.blocks.x % work.blocks.y, b / work.blocks.x / work.blocks.y));
    }
    for (const room &in : who->rooms)
        for (const point &ended : in.ended)
            ended.acquire();
}

void sync_block(const char *file, int line)
{
    const point *barrier = &s_block.in->arrived[s_block.turn];
    barrier->release();
    wait(state::at_block, file, line);
    barrier->acquire();
}

/*  As on a card: it orders nothing that lanes do to memory. */
uint32_t exchange(unsigned mask, uint32_t bits, unsigned from, const char *file, int line)
{
    s_now->mask = mask;
    s_now->gives = bits;
    s_now->from = from;
    wait(state::at_warp, file, line);
    return s_now->gets;
}

/*  Each lane that takes part knows what the others did before it. */
void sync_warp(unsigned mask, const char *file, int line)
{
    s_now->turn = !s_now->turn;
    s_now->seat->arrived[s_now->turn].release();
    exchange(mask, 0, lane(), file, line);
    const thread *first = s_now - s_now->at.number % warp;
    for (unsigned l = 0; l < warp; l++)
        if (mask >> l & 1)
            first[l].seat->arrived[s_now->turns >> l & 1].acquire();
}

unsigned ballot(unsigned mask, bool vote, const char *file, int line)
{
    unsigned all = 0;
    for (unsigned l = 0; l < warp; l++)
        if (mask >> l & 1)
            all |= (exchange(mask, vote, l, file, line) & 1) << l;
    return all;
}

void *shared_array(const void *key, size_t bytes, const char *file, int line)
{
    for (const array &there : s_block.arrays)
        if (there.key == key)
            return there.bytes;
    if (s_block.used + lines(bytes) > shared_max || s_block.arrays.size() == arrays_max)
        fail("%s: %s:%d: %zu bytes of shared memory, and %zu are there already: a block has %zu", s_block.work->kernel,
            file, line, bytes, s_block.used, shared_max);
    char *const at = s_block.next;
    put_shared(at, bytes);
    s_block.used += lines(bytes);
    s_block.next += lines(bytes) + gap;
    s_block.arrays.push_back({key, at, bytes, file, line});
    return at;
}

} // namespace simt
