/*  relax - a word to the processor from a loop that looks again and again: let the other thread of this core have a moment.
 *
 *  Threads: pure. */
#pragma once

static inline void tt_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}
