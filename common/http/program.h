/*  program - runs a program without blocking a reactor: what it says, how it ended, and not for longer than it may.
 *
 *  Its input is empty, and it has a process group of its own, which is killed as a whole. So much of its output is taken and no more; of
 *  what it says on stderr, the end. A child of its own that holds its pipes open is not waited for.
 *
 *  Threads: the reactor's. */
#pragma once
#include "common/http/reactor.h"

typedef struct tt_program tt_program_t; /* opaque */

/*  How it ended. Borrowed. */
typedef struct {
    bool late;          /* killed at its deadline                     */
    int signal, code;   /* signal: 0 = it ended by itself, with code  */
    const char *output; /* ends with a 0 byte                         */
    size_t size;
    bool too_much;     /* there was more of it                        */
    const char *words; /* the last of stderr, in one line             */
} tt_program_end_t;

typedef struct {
    char *const *args; /* args[0] is looked for in $PATH. Borrowed for the call, as env is */
    char *const *env;
    size_t output_max;
    int64_t deadline_ms;
    /*  It is over: the program is to be destroyed after this, or within it. */
    void (*done)(void *ctx, const tt_program_end_t *end);
    void *ctx;
} tt_program_opts_t;

/*  TT_NOT_FOUND: there is no such program; TT_OS. Its name comes first in the words. */
tt_status_t tt_program_start(tt_program_t **self_p, tt_reactor_t *loop, const tt_program_opts_t *opts);
/*  Killed when it runs still, without a call. */
void tt_program_destroy(tt_program_t **self_p);
