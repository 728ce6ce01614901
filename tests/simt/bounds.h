/*  bounds - what of the card's memory is somebody's, as AddressSanitizer is told. Without it all of this is nothing. */
#pragma once
#include <cstddef>
#if defined(SIMT_ASAN)
#include <sanitizer/asan_interface.h>
#endif

namespace simt
{

constexpr size_t gap = 64; /* between arrays that would be neighbours */

#if defined(SIMT_ASAN)
constexpr bool forbids = true;

inline void forbid(const void *memory, size_t bytes)
{
    __asan_poison_memory_region(memory, bytes);
}
inline void allow(const void *memory, size_t bytes)
{
    __asan_unpoison_memory_region(memory, bytes);
}
#else
constexpr bool forbids = false;

inline void forbid(const void *, size_t)
{
}
inline void allow(const void *, size_t)
{
}
#endif

} // namespace simt
