#include "common/nn/spec.h"
#include <stdio.h>
#include "common/base/limits.h"

static tt_status_t s_check_units(const char *what, uint32_t index, uint32_t units)
{
    if (units < 1 || units > TT_UNITS_MAX)
        return tt_err(
            TT_INVALID, "network: %s%.0u has %u units; 1 to %d are possible", what, index, units, TT_UNITS_MAX);
    return TT_OK;
}

static uint32_t s_in(const tt_net_spec_t *spec, uint32_t layer)
{
    return layer ? spec->hidden[layer - 1] : spec->obs;
}

/*  Parameters of both networks; no product overflows 64 bits with checked units. */
static uint64_t s_count_params(const tt_net_spec_t *spec)
{
    uint64_t count = spec->log_std;
    for (uint32_t l = 0; l < spec->hidden_count; l++)
        count += 2 * ((uint64_t)s_in(spec, l) + 1) * spec->hidden[l];
    return count + ((uint64_t)s_in(spec, spec->hidden_count) + 1) * ((uint64_t)spec->out + 1);
}

tt_status_t tt_spec_check(const tt_net_spec_t *spec)
{
    TT_TRY(s_check_units("the observation", 0, spec->obs));
    TT_TRY(s_check_units("the output", 0, spec->out));
    if (spec->log_std > spec->out)
        return tt_err(TT_INVALID, "network: %u deviations for %u outputs", spec->log_std, spec->out);
    if (spec->hidden_count > TT_HIDDEN_MAX)
        return tt_err(
            TT_INVALID, "network: %u hidden layers; at most %d are possible", spec->hidden_count, TT_HIDDEN_MAX);
    for (uint32_t l = 0; l < spec->hidden_count; l++)
        TT_TRY(s_check_units("hidden layer ", l + 1, spec->hidden[l]));
    if (spec->activation != TT_NN_TANH && spec->activation != TT_NN_RELU)
        return tt_err(TT_INVALID, "network: activation %d is unknown", (int)spec->activation);
    if (s_count_params(spec) > TT_PARAMS_MAX)
        return tt_err(TT_INVALID, "network: %llu parameters; at most %d are possible",
            (unsigned long long)s_count_params(spec), TT_PARAMS_MAX);
    return TT_OK;
}

static void s_name_tensor(tt_tensor_t *tensor, const char *tower, const char *what, uint32_t rows, uint32_t cols)
{
    *tensor = (tt_tensor_t){.rows = rows, .cols = cols};
    snprintf(tensor->name, sizeof tensor->name, "%s.%s", tower, what);
}

/*  "<tower>.0.weight", ".0.bias", ".2.weight" ...: the numbers of an nn.Sequential that has an activation between. */
static size_t s_name_tower(const tt_net_spec_t *spec, const char *tower, uint32_t out, tt_tensor_t *tensors)
{
    size_t count = 0;
    for (uint32_t l = 0; l <= spec->hidden_count; l++) {
        const uint32_t units = l < spec->hidden_count ? spec->hidden[l] : out;
        char what[24];
        snprintf(what, sizeof what, "%u.weight", 2 * l);
        s_name_tensor(&tensors[count++], tower, what, s_in(spec, l), units);
        snprintf(what, sizeof what, "%u.bias", 2 * l);
        s_name_tensor(&tensors[count++], tower, what, 1, units);
    }
    return count;
}

static size_t s_place(tt_tensor_t *tensors, size_t count, size_t offset, bool whole_lines)
{
    for (size_t i = 0; i < count; i++) {
        const size_t size = (size_t)tensors[i].rows * tensors[i].cols;
        if ((size % 16 == 0) == whole_lines) {
            tensors[i].offset = offset;
            offset += size;
        }
    }
    return offset;
}

size_t tt_spec_tensors(const tt_net_spec_t *spec, tt_tensor_t *tensors)
{
    size_t count = s_name_tower(spec, "actor", spec->out, tensors);
    if (spec->log_std)
        s_name_tensor(&tensors[count++], "actor", "log_std", 1, spec->log_std);
    count += s_name_tower(spec, "critic", 1, tensors + count);
    s_place(tensors, count, s_place(tensors, count, 0, true), false);
    return count;
}

size_t tt_net_param_count(const tt_net_spec_t *spec)
{
    return tt_spec_check(spec) == TT_OK ? (size_t)s_count_params(spec) : 0;
}

size_t tt_net_stats_offset(const tt_net_spec_t *spec)
{
    return tt_net_param_count(spec);
}

size_t tt_net_grad_count(const tt_net_spec_t *spec)
{
    return (tt_net_param_count(spec) + TT_LOSS_STATS + 15) & ~(size_t)15;
}
