#include "tests/collector/herd.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/base/status.h"

herd_t herd;

typedef struct {
    uint32_t count;
    uint8_t *todo, *terminated, *truncated, *begun, *bytes, *last_bytes;
    uint32_t *seed, *of; /* of: what it began with */
    int32_t *told;
    double *steps, *last_steps;
    float *reward;
    uint32_t shares, *share_end;
    uint32_t *under; /* shares that are under way, in the order of their sending */
    uint32_t sent;   /* how many                                                 */
    uint32_t named;  /* rows of the one that comes that recv has named           */
    uint8_t *loads;  /* whose states are to be loaded                            */
    uint64_t loaded; /* how many were                                            */
    char (*kept)[12];
    void *obs[2], *final[2], *action[1];
} flock_t;

static void s_start(flock_t *h, uint32_t i)
{
    h->of[i] = h->seed[i];
    h->steps[i] = 0;
    memcpy(h->bytes + 2 * i, &h->of[i], 2);
}

static bool s_say(tt_env_why_t *why, const char *text)
{
    why->lost = herd.lost;
    snprintf(why->text, sizeof why->text, "%s", text);
    return false;
}

static void s_share_out(flock_t *h, tt_env_rows_t *rows)
{
    const uint32_t n = h->count, wide = herd.wide && herd.wide < n ? herd.wide : n;
    h->shares = (n + wide - 1) / wide;
    h->share_end = tt_array0(h->shares, sizeof *h->share_end);
    h->under = tt_array0(h->shares, sizeof *h->under);
    for (uint32_t k = 0; k < h->shares; k++)
        h->share_end[k] = k + 1 < h->shares ? (k + 1) * wide : n;
    rows->shares = herd.wide ? h->shares : 0;
    rows->share_end = h->share_end;
}

static bool herd_open(void **self, const tt_env_open_t *how, tt_env_rows_t *rows, tt_env_why_t *why)
{
    if (herd.fail_open)
        return s_say(why, herd.fail_open);
    const uint32_t n = how->count;
    flock_t *h = tt_new0(sizeof *h);
    herd.newest = h;
    herd.from = how->from;
    h->count = n;
    h->todo = tt_new0(n);
    h->loads = tt_new0(n);
    h->kept = tt_array0(n, sizeof *h->kept);
    h->terminated = tt_new0(n);
    h->truncated = tt_new0(n);
    h->begun = tt_new0(n);
    h->bytes = tt_new0(2 * n);
    h->last_bytes = tt_new0(2 * n);
    h->seed = tt_array0(n, sizeof *h->seed);
    h->of = tt_array0(n, sizeof *h->of);
    h->told = tt_array0(n, sizeof *h->told);
    h->steps = tt_array0(n, sizeof *h->steps);
    h->last_steps = tt_array0(n, sizeof *h->last_steps);
    h->reward = tt_array0(n, sizeof *h->reward);
    h->obs[0] = h->bytes;
    h->obs[1] = h->steps;
    h->final[0] = h->last_bytes;
    h->final[1] = h->last_steps;
    h->action[0] = h->told;
    *rows = (tt_env_rows_t){.todo = h->todo,
        .seed = h->seed,
        .action = h->action,
        .obs = h->obs,
        .reward = h->reward,
        .terminated = h->terminated,
        .truncated = h->truncated};
    if (herd.begins) {
        rows->begun = h->begun;
        rows->final = h->final;
    }
    rows->loads_later = herd.later;
    if (herd.forgets)
        rows->reward = NULL;
    s_share_out(h, rows);
    herd.opened++;
    *self = h;
    return true;
}

static void herd_close(void *self)
{
    flock_t *h = self;
    void *all[] = {h->todo, h->terminated, h->truncated, h->begun, h->bytes, h->last_bytes, h->seed, h->of, h->told,
        h->steps, h->last_steps, h->reward, h->share_end, h->under, h->loads, h->kept, h};
    for (size_t i = 0; i < TT_COUNT(all); i++)
        free(all[i]);
    herd.closed++;
}

static void s_step(flock_t *h, uint32_t i)
{
    h->steps[i]++;
    h->reward[i] = (float)h->told[i];
    h->terminated[i] = h->of[i] % 2 == 1 && h->steps[i] >= 2;
    h->truncated[i] = h->steps[i] >= 3;
    h->begun[i] = herd.begins && (herd.early || h->terminated[i] || h->truncated[i]);
    if (!h->begun[i])
        return;
    h->last_steps[i] = h->steps[i];
    memcpy(h->last_bytes + 2 * i, h->bytes + 2 * i, 2);
    s_start(h, i);
}

static uint32_t s_first(const flock_t *h, uint32_t which)
{
    return which ? h->share_end[which - 1] : 0;
}

/*  Nobody should look there before they come. */
static void s_spoil(flock_t *h, uint32_t i)
{
    h->steps[i] += 1000;
    h->bytes[2 * i] ^= 0xff;
    h->reward[i] = NAN;
    h->terminated[i] = h->truncated[i] = 0xff;
}

static void s_play(flock_t *h, uint32_t i)
{
    h->steps[i] -= 1000;
    h->bytes[2 * i] ^= 0xff;
    h->terminated[i] = h->truncated[i] = h->begun[i] = 0;
    if (h->todo[i] == TT_ENV_BEGIN)
        s_start(h, i);
    else if (h->todo[i] == TT_ENV_STEP)
        s_step(h, i);
}

static bool herd_send_share(void *self, uint32_t which, tt_env_why_t *why)
{
    flock_t *h = self;
    (void)why;
    herd.sends++;
    herd.apart += h->sent > 0;
    h->under[h->sent++] = which;
    for (uint32_t i = s_first(h, which); i < h->share_end[which]; i++)
        s_spoil(h, i);
    return true;
}

static bool herd_send(void *self, tt_env_why_t *why)
{
    return herd_send_share(self, 0, why);
}

/*  The one that comes first, in front. */
static void s_order(flock_t *h)
{
    if (h->named || !herd.swaps)
        return;
    const uint32_t last = h->under[h->sent - 1];
    memmove(h->under + 1, h->under, (h->sent - 1) * sizeof *h->under);
    h->under[0] = last;
}

/*  The rows of one share, in one part or two. */
static bool herd_recv(void *self, uint32_t *first, uint32_t *count, tt_env_why_t *why)
{
    flock_t *h = self;
    if (herd.fail_recv)
        return s_say(why, herd.fail_recv);
    s_order(h);
    const uint32_t from = s_first(h, h->under[0]), all = h->share_end[h->under[0]] - from;
    const uint32_t cut = herd.backwards ? all / 2 : 0;
    *first = from + (h->named == 0 ? cut : 0);
    *count = h->named == 0 ? all - cut : cut;
    for (uint32_t i = *first; i < *first + *count; i++)
        s_play(h, i);
    h->named += *count;
    if (h->named == all) {
        h->sent--;
        memmove(h->under, h->under + 1, h->sent * sizeof *h->under);
        h->named = 0;
    }
    *count += herd.beyond;
    if (herd.across)
        *first = 0, *count = h->count;
    return true;
}

static bool herd_ready(void *self)
{
    const flock_t *h = self;
    return herd.ready && h->sent > 0;
}

static bool herd_save(void *self, uint32_t slot, void *bytes, tt_env_why_t *why)
{
    const flock_t *h = self;
    (void)why;
    memcpy(bytes, &h->of[slot], 4);
    memcpy((char *)bytes + 4, &h->steps[slot], 8);
    return true;
}

static bool s_load(flock_t *h, uint32_t slot, const void *bytes, tt_env_why_t *why)
{
    double steps;
    memcpy(&steps, (const char *)bytes + 4, 8);
    if (!(steps >= 0 && steps < 3))
        return s_say(why, "steps\nout of range");
    memcpy(&h->of[slot], bytes, 4);
    h->steps[slot] = steps;
    memcpy(h->bytes + 2 * slot, bytes, 2);
    return true;
}

static bool herd_load(void *self, uint32_t slot, const void *bytes, tt_env_why_t *why)
{
    flock_t *h = self;
    if (!herd.later)
        return s_load(h, slot, bytes, why);
    memcpy(h->kept[slot], bytes, sizeof h->kept[slot]);
    h->loads[slot] = 1;
    return true;
}

static bool herd_loaded(void *self, bool *all, uint64_t *moves, tt_env_why_t *why)
{
    flock_t *h = self;
    uint32_t slot = h->count;
    if (herd.fail_loaded)
        return s_say(why, herd.fail_loaded);
    while (slot > 0 && !h->loads[slot - 1])
        slot--;
    if (slot > 0) {
        h->loads[slot - 1] = 0;
        h->loaded++;
        if (!s_load(h, slot - 1, h->kept[slot - 1], why))
            return false;
    }
    *moves = h->loaded;
    *all = slot == 0;
    return true;
}

static const int64_t s_n[] = {2}, s_from[] = {1};
static const tt_space_t s_parts[] = {
    {.kind = TT_SPACE_BOX, .key = "seed", .dtype = TT_U8, .rank = 1, .shape = {2}},
    {.kind = TT_SPACE_BOX, .key = "steps", .dtype = TT_F64},
};
const tt_env_batch_ops_t herd_ops = {
    .env = {.abi = TT_ENV_BATCH_ABI,
        .id = "Herd-v0",
        .summary = "many",
        .reward_threshold = NAN,
        .save_size = 12,
        .obs = {.kind = TT_SPACE_DICT, .part = s_parts, .parts = 2},
        .action = {.kind = TT_SPACE_DISCRETE, .n = s_n, .start = s_from}},
    .open = herd_open,
    .send = herd_send,
    .recv = herd_recv,
    .close = herd_close,
    .save = herd_save,
    .load = herd_load,
    .send_share = herd_send_share,
    .ready = herd_ready,
    .loaded = herd_loaded,
};
