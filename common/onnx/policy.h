/*  policy - a trained policy as an ONNX model: from what an environment shows to what to do, everything between inside the graph.
 *
 *  Inputs:   a leaf of the observation each, by its column's name ("obs", "obs.image"), [batch][its shape], in Gymnasium's type: float32,
 *            float64, uint8, int32, int64, bool; int64 for choices (counted from the space's start), int8 for multi-binary. Where
 *            the env says which choices are allowed also "mask", bool [batch][choices of all discrete elements]; not given = all are.
 *            Of a recurrent policy "carry", float32 [batch][tt_net_carry]: zeros where an episode begins, and then what went out of the
 *            step before.
 *  Inside:   one-hot choices, division of pictures' bytes, the normaliser (mean, deviation, clip).
 *  Outputs:  of each leaf of the action space the head's part, "logits" [batch][choices of all elements] or "mean" [batch][numbers] and
 *            "log_std" [numbers], with ".<path>" behind it in a dict or tuple; "q" of an algorithm that has values in place of
 *            logits; "value" [batch] where there is a critic; "carry_out" where there is a "carry"; and, by its column's name ("action", "action.0"), the most
 *            probable action, as the env takes it but for a box's bounds, which no checkpoint knows: what is squashed is within
 *            -1 .. 1, which stand for them.
 *  Threads:  pure. */
#pragma once
#include "common/onnx/net.h"
#include "common/rl/columns.h"
#include "common/rl/norm.h"

/*  All borrowed. */
typedef struct {
    const tt_space_t *obs, *action; /* the spaces ...                                   */
    const tt_columns_t *columns;    /* ... and the columns that they came to            */
    bool mask;                      /* the env says which choices are allowed           */
    const tt_net_spec_t *spec;
    const tt_tensor_t *tensor;
    size_t tensors;
    const float *params;
    const tt_norm_t *norm; /* NULL = observations as they are      */
    float clip;            /* what it clips at                     */
    bool squash;           /* boxes go through tanh, tt_actor_t    */
    bool value;            /* the weights of the critic are there  */
} tt_onnx_policy_t;

/*  Put all of it into a new model. The network has a tower "actor", or one called "q", and fits the columns. */
void tt_onnx_policy(tt_onnx_t *model, const tt_onnx_policy_t *policy);
