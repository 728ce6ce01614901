/*  slots - how many jobs run at once, and on which cards: two facts of the store. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "task/engine.h"

#define GPU_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

static size_t s_processors(void)
{
    cpu_set_t set;
    const int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return count < 1 ? 1 : count > ENGINE_SLOTS_MAX ? ENGINE_SLOTS_MAX : (size_t)count;
}

static tt_status_t s_split(const char *gpus, engine_slots_t *out)
{
    out->gpus = 0;
    for (const char *at = gpus; *at; at += strspn(at, ",")) {
        const size_t length = strcspn(at, ",");
        if (length == 0 || length >= ENGINE_GPU_NAME || strspn(at, GPU_LETTERS) < length ||
            out->gpus == ENGINE_SLOTS_MAX)
            return tt_err(TT_INVALID, "'%.200s': cards have to be named as 0,1,2 (or by their UUIDs), %d at most", gpus,
                ENGINE_SLOTS_MAX);
        snprintf(out->gpu[out->gpus++], ENGINE_GPU_NAME, "%.*s", (int)length, at);
        at += length;
    }
    for (size_t i = 0; i < out->gpus; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(out->gpu[i], out->gpu[k]) == 0)
                return tt_err(TT_INVALID, "'%.200s': card %s is there twice", gpus, out->gpu[i]);
    return TT_OK;
}

static tt_status_t s_take(void *ctx, sqlite3_stmt *row)
{
    engine_slots_t *out = ctx;
    if (strcmp(store_text(row, 0), "gpus") == 0)
        return s_split(store_text(row, 1), out);
    const int64_t cpus = sqlite3_column_int64(row, 1);
    out->cpus = cpus < 0 || cpus > ENGINE_SLOTS_MAX ? s_processors() : (size_t)cpus;
    return TT_OK;
}

tt_status_t engine_slots(store_t *store, engine_slots_t *out)
{
    *out = (engine_slots_t){.cpus = s_processors()};
    return store_run(store, "SELECT key, value FROM facts WHERE key IN ('cpus', 'gpus')", s_take, out, "");
}

typedef struct {
    int cpus;
    const char *gpus;
} slots_t;

static tt_status_t s_set(void *ctx, store_t *store)
{
    const slots_t *slots = ctx;
    if (slots->cpus >= -1)
        TT_TRY(
            store_run(store, "INSERT OR REPLACE INTO facts VALUES('cpus', ?)", NULL, NULL, "i", (int64_t)slots->cpus));
    if (slots->gpus)
        TT_TRY(store_run(store, "INSERT OR REPLACE INTO facts VALUES('gpus', ?)", NULL, NULL, "s", slots->gpus));
    return TT_OK;
}

tt_status_t engine_slots_set(store_t *store, int cpus, const char *gpus)
{
    engine_slots_t checked;
    if (cpus > ENGINE_SLOTS_MAX)
        return tt_err(TT_INVALID, "%d slots: %d are possible", cpus, ENGINE_SLOTS_MAX);
    if (gpus)
        TT_TRY(s_split(gpus, &checked));
    return store_tx(store, s_set, &(slots_t){cpus, gpus});
}
