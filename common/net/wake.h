/*  wake - a socket by which processes of one host wake each other: a byte that means nothing but "look again".
 *
 *  For what lies in memory that they share, where a message through a third process would take longer than the work. A datagram socket in
 *  the run's directory of sockets; what comes twice, or from nobody we know, does no harm.
 *  Threads: an instance belongs to one thread. */
#pragma once
#include "common/base/status.h"

enum { TT_WAKE_PATH = 108 }; /* of a sockaddr_un */

typedef struct {
    int fd; /* to wait for in a loop; -1: none */
    char path[TT_WAKE_PATH];
} tt_wake_t;

/*  TT_INVALID: the path is too long; TT_OS. */
tt_status_t tt_wake_open(tt_wake_t *out, const char *path);
/*  Take all that has come. */
void tt_wake_drain(const tt_wake_t *self);
/*  Wake who has that path; if he is gone, or has been woken and has not looked yet, nothing happens. Never waits. */
void tt_wake_other(const tt_wake_t *self, const char *path);
/*  The path goes with it. */
void tt_wake_close(tt_wake_t *self);
