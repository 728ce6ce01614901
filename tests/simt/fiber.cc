#include "tests/simt/fiber.h"
#include <sys/mman.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif
#if defined(SIMT_ASAN)
#include <sanitizer/common_interface_defs.h>
#endif

namespace simt
{

namespace
{

constexpr size_t stack_bytes = 128 * 1024, page = 4096;

fiber *s_running; /* NULL: whoever waits for the device */
char *s_stack;    /* of the fiber that runs             */
void *s_home;     /* where it was started from          */
#if defined(SIMT_ASAN)
void *s_fake_home;
const void *s_home_stack;
size_t s_home_size;
#endif

#if defined(__x86_64__)
/*  Keep what a call keeps on the stack, say where that is in *from, and go on at `to`. */
extern "C" void simt_switch(void **from, void *to);
asm(R"(
.text
.p2align 4
.type simt_switch, @function
simt_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size simt_switch, .-simt_switch
)");

void *first_frame(char *top, void (*enter)())
{
    void **at = reinterpret_cast<void **>(top);
    *--at = nullptr; /* a call's return address: entering a function the stack is 8 beside a multiple of 16 */
    *--at = reinterpret_cast<void *>(enter);
    for (int kept = 0; kept < 6; kept++)
        *--at = nullptr;
    return at;
}
#else
void simt_switch(void **from, void *to)
{
    ucontext_t here;
    *from = &here;
    swapcontext(&here, static_cast<ucontext_t *>(to));
}

void *first_frame(char *top, void (*enter)())
{
    auto *context = reinterpret_cast<ucontext_t *>(top) - 1;
    getcontext(context);
    context->uc_stack.ss_sp = top - stack_bytes;
    context->uc_stack.ss_size = stack_bytes - sizeof *context;
    makecontext(context, enter, 0);
    return context;
}
#endif

} // namespace

/*  Below the stack lies a page that nobody may touch. */
fiber::fiber()
{
    const unseen fresh;
    void *memory =
        mmap(nullptr, stack_bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory, page, PROT_NONE) != 0) {
        fprintf(stderr, "simt: no memory for a thread's stack\n");
        abort();
    }
    stack_ = static_cast<char *>(memory) + page;
}

fiber::~fiber()
{
    munmap(stack_ - page, stack_bytes + page);
}

void fiber::enter()
{
#if defined(SIMT_ASAN)
    __sanitizer_finish_switch_fiber(nullptr, &s_home_stack, &s_home_size);
#endif
    for (;;) {
        s_running->body_();
        s_running->running_ = false;
        leave();
    }
}

void fiber::start(void (*body)())
{
    body_ = body;
    if (!at_)
        at_ = first_frame(stack_ + stack_bytes, enter);
    running_ = true;
    resume();
}

void fiber::resume()
{
    s_running = this;
    s_stack = stack_;
#if defined(SIMT_ASAN)
    __sanitizer_start_switch_fiber(&s_fake_home, stack_, stack_bytes);
#endif
    history_.enter();
    simt_switch(&s_home, at_);
#if defined(SIMT_ASAN)
    __sanitizer_finish_switch_fiber(s_fake_home, nullptr, nullptr);
#endif
    s_running = nullptr;
}

void fiber::leave()
{
    fiber *self = s_running;
#if defined(SIMT_ASAN)
    void *fake;
    __sanitizer_start_switch_fiber(&fake, s_home_stack, s_home_size);
#endif
    self->history_.leave();
    simt_switch(&self->at_, s_home);
#if defined(SIMT_ASAN)
    __sanitizer_finish_switch_fiber(fake, &s_home_stack, &s_home_size);
#endif
}

} // namespace simt
