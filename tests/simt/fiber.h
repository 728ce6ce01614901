/*  fiber - a stack of its own and a place to go on from: what a CUDA thread is while another one runs.
 *  Threads: a fiber runs on the thread that made it. */
#pragma once
#include <cstddef>
#include "tests/simt/order.h"

namespace simt
{

class fiber
{
  public:
    fiber();
    ~fiber();
    fiber(const fiber &) = delete;
    fiber &operator=(const fiber &) = delete;

    /*  Go on with body() from its begin, until it leaves or ends. */
    void start(void (*body)());
    /*  Go on where it left. */
    void resume();
    /*  Back to whoever started or resumed the fiber that runs. */
    static void leave();
    bool running() const
    {
        return running_;
    } /* it has left, and not ended */

  private:
    static void enter();
    char *stack_;
    void *at_ = nullptr;
    void (*body_)() = nullptr;
    bool running_ = false;
    history history_;
};

} // namespace simt
