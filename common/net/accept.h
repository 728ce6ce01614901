/*  accept - what becomes of a connection for which there is no file descriptor. Inside tt_net only.
 *
 *  libzmq 4.3.4 aborts when a process that listens on ipc runs out of descriptors, and on tcp it tries again without a
 *  pause, for ever. So its accept4() is ours: it keeps some descriptors for the process itself, and turns away who comes
 *  beyond that (the peer sees its connection end, and tries again).
 *
 *  Threads: any. */
#pragma once

/*  Instead of the C library's, for libzmq and every other library of this process. (Its header has a type of its own for
 *  the address, and cannot be included beside this.) ECONNABORTED: turned away; EAGAIN: there is no descriptor at all. */
int accept4(int fd, void *address, void *size, int flags);
