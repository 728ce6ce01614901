/*  patience - who waits for an environment that takes long to begin hears why: once in a process, in a line of the log.
 *
 *  An environment begins in the thread that needs it, which can say nothing meanwhile; another thread looks at the clock.
 *  Threads: any, each with a patience_t of its own, and what patience_also says is of its own, too. */
#pragma once
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum { PATIENCE_MS = 1500 }; /* who waits longer is told */

typedef void (*patience_fn)(void *ctx, const char *doing);

typedef struct {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t ended;
    const char *env;
    patience_fn also;
    void *ctx;
    char doing[96];
    int64_t until_ns;
    bool watched, over;
} patience_t;

/*  What comes is the beginning of env ("./slow.so", borrowed), and there now "its constructors". Without a thread nobody is told. */
void patience_begin(patience_t *self, const char *env, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void patience_end(patience_t *self);

/*  True once in a process: for who waits so long and looks at the clock itself. */
bool patience_first(void);

/*  Who else is to hear what is told of what this thread begins: called from another one. NULL = nobody. */
void patience_also(patience_fn fn, void *ctx);
