/*  export_onnx - a checkpoint as common/onnx has it, and what it says of itself. */
#include <stdio.h>
#include <stdlib.h>
#include "cli/export.h"
#include "common/base/mem.h"
#include "common/onnx/policy.h"
#include "common/rl/spaces.h"
#include "common/snapshot/snapshot.h"

static void s_meta(tt_onnx_t *model, const checkpoint_t *checkpoint, const char *sha256)
{
    const tt_train_cfg_t *cfg = &checkpoint->cfg;
    char update[24], stack[16];
    snprintf(update, sizeof update, "%llu", (unsigned long long)checkpoint->update);
    snprintf(stack, sizeof stack, "%u", checkpoint->columns->stack.frames);
    const char *const pairs[][2] = {{"run", cfg->name}, {"env", cfg->env}, {"algorithm", cfg->algorithm.name},
        {"update", update}, {"space.obs", cfg->space.obs}, {"env.stack", stack}, {"space.action", cfg->space.action},
        {"weights_sha256", sha256}};
    for (size_t i = 0; i < TT_COUNT(pairs); i++)
        tt_onnx_meta(model, pairs[i][0], pairs[i][1]);
}

static tt_status_t s_make(const checkpoint_t *checkpoint, const tt_onnx_policy_t *policy, tt_buf_t *out)
{
    char sha256[65] = "";
    tt_net_t *net = tt_inference_net(checkpoint->net);
    const size_t count = tt_net_param_count(policy->spec);
    tt_onnx_policy_t whole = *policy;
    float *params = tt_array0(count, sizeof *params);
    tt_onnx_t *model = tt_onnx_new();
    tt_status_t status = tt_net_get(net, tt_inference_stream(checkpoint->net), 0, params);
    whole.params = params;
    if (status == TT_OK) {
        tt_weights_sha256(params, count, sha256);
        tt_onnx_policy(model, &whole);
        s_meta(model, checkpoint, sha256);
        const tt_buf_t *bytes = tt_onnx_finish(model, "policy", "tutti", TT_VERSION);
        status = tt_buf_add(out, tt_buf_text(bytes), bytes->size);
    }
    tt_onnx_destroy(&model);
    free(params);
    return status;
}

tt_status_t export_onnx(const checkpoint_t *checkpoint, tt_buf_t *out)
{
    const tt_train_cfg_t *cfg = &checkpoint->cfg;
    tt_space_t *obs = NULL, *action = NULL;
    const tt_net_t *net = tt_inference_net(checkpoint->net);
    tt_onnx_policy_t policy = {.columns = checkpoint->columns,
        .mask = cfg->space.mask,
        .spec = tt_net_spec(net),
        .norm = checkpoint->norm,
        .clip = cfg->normalize.clip_obs,
        .squash = cfg->actor.squash,
        .value = checkpoint->critic};
    policy.tensor = tt_net_tensors(net, &policy.tensors);
    tt_status_t status = tt_space_parse(&obs, cfg->space.obs);
    if (status == TT_OK)
        status = tt_space_parse(&action, cfg->space.action);
    policy.obs = obs;
    policy.action = action;
    if (status == TT_OK)
        status = s_make(checkpoint, &policy, out);
    tt_space_free(&obs);
    tt_space_free(&action);
    return status;
}
