/*  Saved env states from outside: whatever is accepted must be steppable without a crash, a hang or a write out of
 *  bounds; a state that leads to numbers that are none is reported. First byte: which env, the native ones and one of every
 *  kind of space. */
#include <stdlib.h>
#include <string.h>
#include "collector/registry.h"
#include "collector/vec.h"
#include "common/rl/policy.h"
#include "tests/collector/load.h"
#include "tests/collector/zoo.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/*  As a policy that knows nothing: within the mask, which came out of the state. */
static void play(tt_vec_t *vec, const tt_columns_t *columns)
{
    static const float head[64], log_std[8];
    double room[TT_COLUMNS_MAX][8]; /* no action here has more than 64 bytes in a column */
    void *action[TT_COLUMNS_MAX];
    float reward;
    uint8_t terminated, truncated;
    tt_policy_t policy;
    tt_policy_of(&policy, columns);
    if (policy.out > 64 || policy.log_std > 8)
        abort();
    for (uint32_t k = 0; k < columns->action_count; k++)
        action[k] = room[k];
    for (int t = 0; t < 20; t++) {
        const uint64_t clock = tt_vec_clock(vec, 0);
        const tt_dist_draw_t draw = {1, TT_STREAM_TEST, &(uint32_t){0}, &clock};
        tt_policy_sample(&policy, head, log_std, tt_vec_mask(vec), 1, &draw, action, NULL);
        const tt_status_t status = tt_vec_step(vec, (const void *const *)action, &reward, &terminated, &truncated);
        if (status == TT_INVALID)
            abort(); /* the mask allowed it */
        if (status != TT_OK)
            break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t count;
    const tt_env_ops_t *const *envs = tt_envs(&count);
    if (size < 1)
        return -1;
    const size_t which = data[0] % (count + 1);
    const tt_env_ops_t *ops = which < count ? envs[which] : &zoo_env;
    const size_t need = tt_vec_save_size(ops, 1);
    unsigned char *bytes = calloc(1, need);
    tt_vec_t *vec = NULL;
    tt_columns_t *columns = NULL;
    if (!bytes || tt_columns_new(&columns, &ops->obs, &ops->action, ops->mask, true) != TT_OK)
        abort();
    if (tt_vec_new(&vec, &(tt_vec_cfg_t){.ops = ops, .columns = columns, .seed = 1, .count = 1}) != TT_OK)
        abort();
    tt_vec_save(vec, 0, bytes); /* input lies over a good state from the counters on, else nothing passes the magic */
    if (size - 1 > need)
        size = need + 1;
    memcpy(bytes + need - (size - 1), data + 1, size - 1);
    if (vec_load(vec, 0, bytes) == TT_OK)
        play(vec, columns);
    tt_vec_destroy(&vec);
    tt_columns_destroy(&columns);
    free(bytes);
    return 0;
}
