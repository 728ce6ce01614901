#include "tests/snapshot/sample.h"
#include <stdio.h>
#include "tests/test.h"

static const tt_tensor_t s_tensors[] = {{.name = "actor.0.weight", .kind = TT_TENSOR_DENSE, .rows = 2, .cols = 2},
    {.name = "actor.0.bias", .rows = 1, .cols = 2, .offset = 4}};
float sample_params[6] = {1, 2, 3, 4, 5, 6};
static double s_norm[5] = {4, 1, 2, 3, 4}, s_reward[3] = {1, 2, 3}, s_episodes[2] = {5, 6}, s_returns[2] = {7, 8};

tt_snapshot_t sample_expect(void)
{
    return (tt_snapshot_t){.tensor = s_tensors,
        .tensors = TT_COUNT(s_tensors),
        .param_count = TT_COUNT(sample_params),
        .norm_count = TT_COUNT(s_norm),
        .reward_count = TT_COUNT(s_reward),
        .envs = TT_COUNT(s_returns),
        .episodes_count = TT_COUNT(s_episodes)};
}

static tt_snapshot_t s_sample(uint64_t update)
{
    tt_snapshot_t snapshot = sample_expect();
    snapshot.config = "name: x\nseed: 3\n";
    snapshot.env = "CartPole-v1";
    snapshot.algorithm = "ppo";
    snapshot.return_mean = 123.5;
    snapshot.update = update;
    snapshot.params = sample_params;
    snapshot.versions = 1;
    snapshot.version[0] = (tt_snapshot_version_t){update, sample_params, s_norm, s_reward};
    snapshot.episodes = s_episodes;
    snapshot.returns = s_returns;
    return snapshot;
}

void sample_encode(tt_buf_t *out, uint64_t update)
{
    const tt_snapshot_t snapshot = s_sample(update);
    tt_buf_init(out, 1 << 20);
    assert_ok(tt_snapshot_encode(&snapshot, out));
}

void sample_save(const char *folder, const char *name, const void *bytes, size_t size)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

void sample_write(const char *folder, const char *name, uint64_t update)
{
    tt_buf_t bytes;
    sample_encode(&bytes, update);
    sample_save(folder, name, bytes.data, bytes.size);
    tt_buf_free(&bytes);
}

void sample_write_pieces(const char *folder, const char *name, uint64_t update, const tt_piece_t *piece, size_t pieces)
{
    char path[512];
    tt_snapshot_t snapshot = s_sample(update);
    snapshot.replays = true;
    snapshot.replay = "block";
    snapshot.replay_bytes = 5;
    snapshot.piece = piece;
    snapshot.pieces = pieces;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_ok(tt_snapshot_write(&snapshot, path, TT_NO_PROGRESS));
}

void sample_write_best(const char *folder, uint64_t update, double return_mean)
{
    char path[512];
    tt_snapshot_t snapshot = s_sample(update);
    snapshot.bare = true;
    snapshot.return_mean = return_mean;
    snprintf(path, sizeof path, "%s/best.safetensors", folder);
    assert_ok(tt_snapshot_write(&snapshot, path, TT_NO_PROGRESS));
}

void sample_damage(const char *folder, const char *name)
{
    char path[512];
    tt_buf_t bytes;
    tt_buf_init(&bytes, 1 << 20);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_ok(tt_buf_read_file(&bytes, path));
    bytes.data[bytes.size / 2] ^= 1;
    sample_save(folder, name, bytes.data, bytes.size);
    tt_buf_free(&bytes);
}
