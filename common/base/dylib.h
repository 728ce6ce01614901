/*  dylib - a shared library that is loaded when it is first needed, and not with the program.
 *
 *  For one that few processes of a run use and whose load every process would pay. The owner has a struct of function
 *  pointers and names them; it is filled once and read-only afterwards:
 *
 *      static const tt_symbol_t s_symbols[] = {{"cos", &s_table.cos}};
 *      static tt_dylib_t s_library = TT_DYLIB("libm.so.6", "install libc6", s_symbols, NULL);
 *      TT_TRY(tt_dylib_load(&s_library));
 *
 *  Threads: load from any; whoever comes second waits for the first. */
#pragma once
#include <pthread.h>
#include "common/base/status.h"

typedef struct {
    const char *name;
    void *slot; /* of a function pointer: where the function's address goes */
} tt_symbol_t;

/*  Static; made by TT_DYLIB. Borrows all it names. */
typedef struct {
    const char *soname; /* "libcurl.so.4"                                     */
    const char *advice; /* what to do where it is missing: "install libcurl4" */
    const tt_symbol_t *symbols;
    size_t symbol_count;
    tt_status_t (*init)(void); /* once all symbols are there; NULL = nothing to do. Its failure is the load's */
    pthread_mutex_t mutex;
    void *object;
    bool loaded;
} tt_dylib_t;

#define TT_DYLIB(soname_, advice_, symbols_, init_)                                                          \
    {                                                                                                        \
        .soname = (soname_), .advice = (advice_), .symbols = (symbols_), .symbol_count = TT_COUNT(symbols_), \
        .init = (init_), .mutex = PTHREAD_MUTEX_INITIALIZER                                                  \
    }

/*  It stays loaded until the process ends. TT_UNSUPPORTED: there is no such library (the words say what to do), or it
 *  lacks a symbol; or what init said. A load that failed is tried again by the next call. */
tt_status_t tt_dylib_load(tt_dylib_t *self);
