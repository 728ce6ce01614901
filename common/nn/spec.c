#include "common/nn/spec.h"
#include <stdio.h>
#include <string.h>
#include "common/base/limits.h"
#include "common/base/mem.h"

static tt_tower_t s_layers(
    const char *name, const uint32_t *hidden, uint32_t hidden_count, tt_nn_activation_t activation)
{
    tt_tower_t tower = {.hidden_count = hidden_count, .activation = activation};
    snprintf(tower.name, sizeof tower.name, "%s", name);
    for (uint32_t l = 0; l < hidden_count && l < TT_HIDDEN_MAX; l++)
        tower.hidden[l] = hidden[l];
    return tower;
}

tt_net_spec_t tt_net_actor_critic(uint32_t obs, const uint32_t *hidden, uint32_t hidden_count,
    tt_nn_activation_t activation, uint32_t out, uint32_t log_std)
{
    tt_net_spec_t spec = {.obs = obs, .towers = 2};
    spec.tower[0] = s_layers("actor", hidden, hidden_count, activation);
    spec.tower[0].out = out;
    spec.tower[0].log_std = log_std;
    spec.tower[1] = s_layers("critic", hidden, hidden_count, activation);
    spec.tower[1].out = 1;
    return spec;
}

tt_net_spec_t tt_net_shared(uint32_t obs, const uint32_t *hidden, uint32_t hidden_count, tt_nn_activation_t activation,
    uint32_t out, uint32_t log_std)
{
    tt_net_spec_t spec = {.obs = obs, .towers = 3};
    spec.tower[0] = s_layers("trunk", hidden, hidden_count, activation);
    spec.tower[1] = (tt_tower_t){.name = "actor", .from = 1, .out = out, .log_std = log_std};
    spec.tower[2] = (tt_tower_t){.name = "critic", .from = 1, .out = 1};
    return spec;
}

tt_net_spec_t tt_net_one(const char *name, uint32_t obs, const uint32_t *hidden, uint32_t hidden_count,
    tt_nn_activation_t activation, uint32_t out)
{
    tt_net_spec_t spec = {.obs = obs, .towers = 1};
    spec.tower[0] = s_layers(name, hidden, hidden_count, activation);
    spec.tower[0].out = out;
    return spec;
}

tt_net_spec_t tt_net_dueling(const char *name, uint32_t obs, const uint32_t *hidden, uint32_t hidden_count,
    tt_nn_activation_t activation, uint32_t out)
{
    tt_net_spec_t spec = {.obs = obs};
    const uint32_t common = hidden_count ? hidden_count - 1 : 0, own = hidden_count - common;
    if (common)
        spec.tower[spec.towers++] = s_layers("trunk", hidden, common, activation);
    const uint32_t value = spec.towers, advantage = value + 1;
    for (uint32_t t = value; t <= advantage; t++) {
        spec.tower[t] = s_layers(t == value ? "value" : "advantage", hidden + common, own, activation);
        spec.tower[t].from = value; /* the trunk's number plus one, or 0 */
        spec.tower[t].out = t == value ? 1 : out;
    }
    tt_tower_t *q = &spec.tower[advantage + 1];
    *q = s_layers(name, NULL, 0, 0);
    q->kind = TT_TOWER_DUELING;
    q->out = out;
    q->value = value;
    q->advantage = advantage;
    spec.towers = advantage + 2;
    return spec;
}

uint32_t tt_net_tower(const tt_net_spec_t *spec, const char *name)
{
    uint32_t t = 0;
    while (t < spec->towers && strcmp(spec->tower[t].name, name) != 0)
        t++;
    return t;
}

uint32_t tt_spec_layers(const tt_tower_t *tower)
{
    return tower->kind == TT_TOWER_DUELING ? 0 : tower->hidden_count + (tower->out > 0);
}

uint32_t tt_spec_dueling(const tt_net_spec_t *spec, uint32_t t)
{
    for (uint32_t q = 0; q < spec->towers; q++)
        if (spec->tower[q].kind == TT_TOWER_DUELING && (spec->tower[q].value == t || spec->tower[q].advantage == t))
            return q;
    return spec->towers;
}

uint32_t tt_spec_sets(const tt_net_spec_t *spec)
{
    return spec->sets ? spec->sets : 1;
}

/* ---- what is possible -------------------------------------------------------------------------------------------- */

static tt_status_t s_check_units(const char *tower, const char *what, uint32_t index, uint32_t units)
{
    if (units < 1 || units > TT_UNITS_MAX)
        return tt_err(TT_INVALID, "network: %s%s%.0u has %u units; 1 to %d are possible", tower, what, index, units,
            TT_UNITS_MAX);
    return TT_OK;
}

/*  Letters, digits and _: a name becomes part of the names of tensors. */
static tt_status_t s_check_name(const tt_net_spec_t *spec, uint32_t t)
{
    const char *name = spec->tower[t].name;
    const size_t length = strnlen(name, sizeof spec->tower[t].name);
    if (length == 0 || length == sizeof spec->tower[t].name ||
        strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != length)
        return tt_err(TT_INVALID, "network: tower %u needs a name of 1 to 15 of a-z, 0-9 and _, not '%.16s'", t, name);
    for (uint32_t before = 0; before < t; before++)
        if (strcmp(spec->tower[before].name, name) == 0)
            return tt_err(TT_INVALID, "network: two towers are called '%s'", name);
    return TT_OK;
}

static tt_status_t s_check_from(const tt_net_spec_t *spec, uint32_t t)
{
    const tt_tower_t *tower = &spec->tower[t];
    if (tower->from > t)
        return tt_err(
            TT_INVALID, "network: %s reads tower %u, which does not come before it", tower->name, tower->from);
    if (tower->from && spec->tower[tower->from - 1].out)
        return tt_err(TT_INVALID, "network: %s reads %s, which has a head; only a trunk (out 0) can be read",
            tower->name, spec->tower[tower->from - 1].name);
    return TT_OK;
}

static tt_status_t s_check_group(const tt_net_spec_t *spec, uint32_t t)
{
    const uint32_t group = spec->tower[t].group, before = t ? spec->tower[t - 1].group : 0;
    if (group != before && (t == 0 || group != before + 1))
        return tt_err(TT_INVALID, "network: %s is in group %u; %u%s would be next", spec->tower[t].name, group, before,
            t ? " or one more" : "");
    return TT_OK;
}

/*  One of the two heads that a dueling tower reads. */
static tt_status_t s_check_head(const tt_net_spec_t *spec, uint32_t t, const char *what, uint32_t head, uint32_t out)
{
    const char *name = spec->tower[t].name;
    if (head >= t)
        return tt_err(TT_INVALID, "network: %s: its %s is tower %u, which does not come before it", name, what, head);
    const tt_tower_t *read = &spec->tower[head];
    if (read->kind == TT_TOWER_DUELING)
        return tt_err(TT_INVALID, "network: %s: its %s %s has no layers of its own", name, what, read->name);
    if (read->out != out)
        return tt_err(
            TT_INVALID, "network: %s: its %s %s has %u outputs and not %u", name, what, read->name, read->out, out);
    if (tt_spec_dueling(spec, head) != t)
        return tt_err(TT_INVALID, "network: %s and %s both read the head of %s",
            spec->tower[tt_spec_dueling(spec, head)].name, name, read->name);
    return TT_OK;
}

static tt_status_t s_check_dueling(const tt_net_spec_t *spec, uint32_t t)
{
    const tt_tower_t *tower = &spec->tower[t];
    if (tower->from || tower->hidden_count || tower->log_std)
        return tt_err(TT_INVALID, "network: %s is made of two heads: it has no trunk, layers or deviations of its own",
            tower->name);
    TT_TRY(s_check_head(spec, t, "value", tower->value, 1));
    TT_TRY(s_check_head(spec, t, "advantage", tower->advantage, tower->out));
    if (tower->value == tower->advantage)
        return tt_err(TT_INVALID, "network: %s: its value and its advantage are both %s", tower->name,
            spec->tower[tower->value].name);
    if (tower->group != spec->tower[t - 1].group)
        return tt_err(
            TT_INVALID, "network: %s has no parameters, and cannot begin group %u", tower->name, tower->group);
    return TT_OK;
}

static tt_status_t s_check_layers(const tt_net_spec_t *spec, uint32_t t)
{
    const tt_tower_t *tower = &spec->tower[t];
    if (tower->log_std > tower->out)
        return tt_err(TT_INVALID, "network: %s: %u deviations for %u outputs", tower->name, tower->log_std, tower->out);
    if (tower->hidden_count > TT_HIDDEN_MAX)
        return tt_err(TT_INVALID, "network: %s: %u hidden layers; at most %d are possible", tower->name,
            tower->hidden_count, TT_HIDDEN_MAX);
    for (uint32_t l = 0; l < tower->hidden_count; l++)
        TT_TRY(s_check_units(tower->name, ": hidden layer ", l + 1, tower->hidden[l]));
    if (tower->activation != TT_NN_TANH && tower->activation != TT_NN_RELU)
        return tt_err(TT_INVALID, "network: %s: activation %d is unknown", tower->name, (int)tower->activation);
    return s_check_from(spec, t);
}

static tt_status_t s_check_tower(const tt_net_spec_t *spec, uint32_t t)
{
    TT_TRY(s_check_name(spec, t));
    const tt_tower_t *tower = &spec->tower[t];
    if (tower->out > TT_UNITS_MAX)
        return s_check_units(tower->name, ": the output", 0, tower->out);
    if (tower->out == 0 && tower->hidden_count == 0)
        return tt_err(TT_INVALID, "network: %s has neither hidden layers nor an output", tower->name);
    if (tower->kind != TT_TOWER_MLP && tower->kind != TT_TOWER_DUELING)
        return tt_err(TT_INVALID, "network: %s: kind %d is unknown", tower->name, (int)tower->kind);
    TT_TRY(s_check_group(spec, t));
    return tower->kind == TT_TOWER_DUELING ? s_check_dueling(spec, t) : s_check_layers(spec, t);
}

/* ---- layout ------------------------------------------------------------------------------------------------------ */

/*  What goes into a layer; layer hidden_count is the head. */
static uint32_t s_in(const tt_net_spec_t *spec, const tt_tower_t *tower, uint32_t layer)
{
    if (layer)
        return tower->hidden[layer - 1];
    if (tower->from == 0)
        return spec->obs;
    const tt_tower_t *trunk = &spec->tower[tower->from - 1];
    return trunk->hidden[trunk->hidden_count - 1];
}

static uint32_t s_units(const tt_tower_t *tower, uint32_t layer)
{
    return layer < tower->hidden_count ? tower->hidden[layer] : tower->out;
}

/*  Where a group begins and, when it is the last, where the vector ends. No product overflows 64 bits with checked units:
 *  TT_TOWERS_MAX * (TT_HIDDEN_MAX + 1) layers of at most 2^32 + 2^16 floats. */
static uint64_t s_span(const tt_net_spec_t *spec, uint32_t group, uint64_t *count)
{
    uint64_t first = 0;
    *count = 0;
    for (uint32_t t = 0; t < spec->towers && spec->tower[t].group <= group; t++) {
        const tt_tower_t *tower = &spec->tower[t];
        if (t && tower->group != spec->tower[t - 1].group) {
            first = (first + *count + TT_GROUP_ALIGN - 1) / TT_GROUP_ALIGN * TT_GROUP_ALIGN;
            *count = 0;
        }
        *count += tower->log_std;
        for (uint32_t l = 0; l < tt_spec_layers(tower); l++)
            *count += ((uint64_t)s_in(spec, tower, l) + 1) * s_units(tower, l);
    }
    return first;
}

static uint64_t s_count_params(const tt_net_spec_t *spec)
{
    uint64_t count = 0;
    const uint64_t first = s_span(spec, spec->tower[spec->towers - 1].group, &count);
    return first + count;
}

tt_status_t tt_spec_check(const tt_net_spec_t *spec)
{
    TT_TRY(s_check_units("", "the observation", 0, spec->obs));
    if (spec->towers < 1 || spec->towers > TT_TOWERS_MAX)
        return tt_err(TT_INVALID, "network: %u towers; 1 to %d are possible", spec->towers, TT_TOWERS_MAX);
    if (spec->sets > TT_SETS_MAX)
        return tt_err(TT_INVALID, "network: %u sets of parameters; at most %d are possible", spec->sets, TT_SETS_MAX);
    if (spec->ride > TT_RIDE_MAX)
        return tt_err(
            TT_INVALID, "network: %u floats ride on a gradient; at most %d are possible", spec->ride, TT_RIDE_MAX);
    for (uint32_t t = 0; t < spec->towers; t++)
        TT_TRY(s_check_tower(spec, t));
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
static size_t s_name_tower(const tt_net_spec_t *spec, const tt_tower_t *tower, tt_tensor_t *tensors)
{
    size_t count = 0;
    for (uint32_t l = 0; l < tt_spec_layers(tower); l++) {
        char what[24];
        snprintf(what, sizeof what, "%u.weight", 2 * l);
        s_name_tensor(&tensors[count++], tower->name, what, s_in(spec, tower, l), s_units(tower, l));
        snprintf(what, sizeof what, "%u.bias", 2 * l);
        s_name_tensor(&tensors[count++], tower->name, what, 1, s_units(tower, l));
    }
    if (tower->log_std)
        s_name_tensor(&tensors[count++], tower->name, "log_std", 1, tower->log_std);
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
    size_t count = 0, offset = 0;
    for (uint32_t t = 0; t < spec->towers;) {
        const size_t first = count;
        const uint32_t group = spec->tower[t].group;
        for (; t < spec->towers && spec->tower[t].group == group; t++)
            count += s_name_tower(spec, &spec->tower[t], tensors + count);
        offset = s_place(tensors + first, count - first, tt_align(offset, TT_GROUP_ALIGN), true);
        offset = s_place(tensors + first, count - first, offset, false);
    }
    return count;
}

uint32_t tt_net_groups(const tt_net_spec_t *spec)
{
    return spec->tower[spec->towers - 1].group + 1;
}

void tt_net_group_span(const tt_net_spec_t *spec, uint32_t group, size_t *first, size_t *count)
{
    uint64_t floats = 0;
    const uint32_t groups = tt_net_groups(spec);
    TT_CHECK(group < groups);
    *first = (size_t)s_span(spec, group, &floats);
    *count = (size_t)floats;
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
    return tt_align(tt_net_param_count(spec) + TT_LOSS_STATS + spec->ride, 16);
}
