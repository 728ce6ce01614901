/*  fuzz_snapshot - arbitrary bytes as a snapshot, file or fetched state: refused with words, or every array that a restore
 *  reads is there to its last element. */
#include <math.h>
#include <string.h>
#include "common/base/status.h"
#include "common/snapshot/snapshot.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OPT = 20, NORM = 5, REWARD = 3, ENVS = 2, STATE = 4, EPISODES = 6 };

static const tt_tensor_t s_tensors[] = {
    {.name = "actor.0.weight", .kind = TT_TENSOR_DENSE, .rows = 2, .cols = 2, .offset = 0},
    {.name = "actor.0.bias", .rows = 1, .cols = 2, .offset = 4},
    {.name = "critic.0.weight", .kind = TT_TENSOR_DENSE, .rows = 2, .cols = 1, .offset = 6},
    {.name = "critic.0.bias", .rows = 1, .cols = 1, .offset = 8}};

static double s_sum(const void *data, size_t count, size_t bytes)
{
    double sum = 0;
    for (size_t i = 0; i < count * bytes; i++)
        sum += ((const uint8_t *)data)[i];
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tt_snapshot_t snapshot = {.tensor = s_tensors,
        .tensors = TT_COUNT(s_tensors),
        .param_count = 9,
        .opt = {{.name = "", .count = OPT}},
        .opts = 1,
        .norm_count = NORM,
        .reward_count = REWARD,
        .envs = ENVS,
        .env_bytes = STATE,
        .episodes_count = EPISODES,
        .replays = true};
    const tt_status_t status = tt_snapshot_decode(&snapshot, data, size);
    if (status != TT_OK) {
        TT_CHECK(status == TT_DATA && *tt_err_text() && !snapshot.file);
        return 0;
    }
    volatile double sum = s_sum(snapshot.params, 9, 4) + s_sum(snapshot.opt[0].state, OPT, 4);
    sum += s_sum(snapshot.episodes, EPISODES, 8) + s_sum(snapshot.returns, ENVS, 8);
    if (snapshot.env_states)
        sum += s_sum(snapshot.env_states, ENVS, STATE);
    if (snapshot.replay)
        sum += s_sum(snapshot.replay, snapshot.replay_bytes, 1);
    for (size_t i = 0; i < snapshot.pieces; i++)
        TT_CHECK(tt_piece_is_name(snapshot.piece[i].file) && snapshot.piece[i].first < snapshot.piece[i].next);
    for (size_t i = 0; i < snapshot.versions; i++) {
        const tt_snapshot_version_t *version = &snapshot.version[i];
        TT_CHECK(version->version <= snapshot.update);
        sum += s_sum(version->params, 9, 4) + s_sum(version->norm, NORM, 8) + s_sum(version->reward, REWARD, 8);
    }
    TT_CHECK(snapshot.versions >= 1 && isfinite(snapshot.params[0]) && sum >= 0);
    tt_snapshot_close(&snapshot);
    return 0;
}
