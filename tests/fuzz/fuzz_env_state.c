/*  Saved env states from outside: whatever is accepted must be steppable without a crash, a hang or a write out of
 *  bounds; a state that leads to numbers that are none is reported. First byte: which native env. */
#include <stdlib.h>
#include <string.h>
#include "collector/registry.h"
#include "collector/vec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void play(tt_vec_t *vec, const tt_env_ops_t *ops)
{
    const void *action = ops->action.kind == TT_SPACE_BOX ? (const void *)&(float){0.3f} : &(int32_t){1};
    float reward;
    uint8_t terminated, truncated;
    for (int t = 0; t < 20; t++) {
        if (tt_vec_step(vec, action, &reward, &terminated, &truncated) != TT_OK)
            break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t count;
    const tt_env_ops_t *const *envs = tt_envs(&count);
    if (size < 1)
        return -1;
    const tt_env_ops_t *ops = envs[data[0] % count];
    const size_t need = tt_vec_save_size(ops);
    unsigned char *bytes = calloc(1, need);
    tt_vec_t *vec = NULL;
    if (!bytes || tt_vec_new(&vec, ops, 1, 0, 1, 0) != TT_OK)
        abort();
    tt_vec_save(vec, 0, bytes); /* input lies over a good state from the counters on, else nothing passes the magic */
    if (size - 1 > need)
        size = need + 1;
    memcpy(bytes + need - (size - 1), data + 1, size - 1);
    if (tt_vec_load(vec, 0, bytes) == TT_OK)
        play(vec, ops);
    tt_vec_destroy(&vec);
    free(bytes);
    return 0;
}
