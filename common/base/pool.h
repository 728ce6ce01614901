/*  pool - memory for many small things that stay, apart from the heap.
 *
 *  What is kept while much else comes and goes leaves holes in the heap, too small to be given back. Here blocks of one size
 *  (16 bytes apart) lie together, in slabs of 64 KiB; a slab in which nothing is left goes back to the system. Worth it for
 *  thousands of blocks of some hundred bytes; one of more than 2 KiB has pages of its own.
 *
 *  One pool a process. Out of memory aborts. Under AddressSanitizer it is the heap, so that nothing escapes the sanitizer.
 *  Threads: any (a lock). */
#pragma once
#include <stddef.h>

/*  Zeroed, aligned to 16 bytes. Free with tt_pool_free. */
void *tt_pool_new0(size_t size);
/*  NULL is fine. */
void tt_pool_free(void *block);
