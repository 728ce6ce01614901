/*  order - what happens before what, as ThreadSanitizer is told: nothing but what CUDA promises. Without it all of this is nothing.
 *
 *  A history is somebody who does one thing after the other: a stream, a thread of a kernel. What it did before it released a point
 *  happens before what another one does after acquiring it; the order in which the simulator happens to do things means nothing.
 *  The simulator itself is not instrumented: what it reads and writes is nobody's; but what it calls of the C library is seen, so in a
 *  stream's place it calls nothing that writes to its own stack. */
#pragma once
#if defined(SIMT_TSAN)
#include <sanitizer/tsan_interface.h>

/*  Exported by ThreadSanitizer, declared by none of its headers. */
extern "C" void AnnotateIgnoreWritesBegin(const char *file, int line);
extern "C" void AnnotateIgnoreWritesEnd(const char *file, int line);
#endif

namespace simt
{

#if defined(SIMT_TSAN)
constexpr bool watched = true;

class history
{
  public:
    history() : own_(__tsan_create_fiber(0))
    {
    }
    ~history()
    {
        __tsan_destroy_fiber(own_);
    }
    /*  What is done from here on is this one's; leave() gives it back to whoever it was before. */
    void enter()
    {
        before_ = __tsan_get_current_fiber();
        __tsan_switch_to_fiber(own_, __tsan_switch_to_fiber_no_sync);
    }
    void leave()
    {
        __tsan_switch_to_fiber(before_, __tsan_switch_to_fiber_no_sync);
    }
    history(const history &) = delete;
    history &operator=(const history &) = delete;

  private:
    void *own_, *before_ = nullptr;
};

/*  A place in memory that stands for a moment. */
struct point {
    mutable long place = 0;
    void release() const
    {
        __tsan_release(&place);
    }
    void acquire() const
    {
        __tsan_acquire(&place);
    }
};

/*  Writes of nobody: fresh memory is filled before anybody has it. */
struct unseen {
    unseen()
    {
        AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
    }
    ~unseen()
    {
        AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    }
};
#else
constexpr bool watched = false;

struct history {
    void enter()
    {
    }
    void leave()
    {
    }
};

struct point {
    void release() const
    {
    }
    void acquire() const
    {
    }
};

struct unseen {
    unseen()
    {
    }
};
#endif

} // namespace simt
