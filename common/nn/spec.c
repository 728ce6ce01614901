#include "common/nn/spec.h"
#include "common/nn/layers.h"
#include <math.h>
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

tt_net_spec_t tt_net_twin_critics(
    uint32_t obs, const uint32_t *hidden, uint32_t hidden_count, tt_nn_activation_t activation, uint32_t action)
{
    tt_net_spec_t spec = {.obs = obs, .action = action, .towers = 3};
    spec.tower[0] = s_layers("actor", hidden, hidden_count, activation);
    spec.tower[0].out = action;
    for (uint32_t q = 1; q <= 2; q++) {
        spec.tower[q] = s_layers(q == 1 ? "q1" : "q2", hidden, hidden_count, activation);
        spec.tower[q].out = 1;
        spec.tower[q].group = 1;
        spec.tower[q].action = true;
    }
    return spec;
}

tt_net_spec_t tt_net_soft_actor_critic(uint32_t obs, const uint32_t *hidden, uint32_t hidden_count,
    tt_nn_activation_t activation, uint32_t out, uint32_t action)
{
    tt_net_spec_t spec = tt_net_twin_critics(obs, hidden, hidden_count, activation, action);
    spec.tower[0].out = out;
    spec.tower[0].log_std = 1;
    spec.tower[0].log_alpha = true;
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

/*  A tower that is made of others' heads. */
static tt_tower_t s_made(tt_tower_kind_t kind, const char *name, uint32_t value, uint32_t advantage, uint32_t out)
{
    tt_tower_t tower = s_layers(name, NULL, 0, 0);
    tower.kind = kind;
    tower.out = out;
    tower.value = value;
    tower.advantage = advantage;
    return tower;
}

/*  `name` from "value" with n outputs and "advantage" with `all`. */
static tt_net_spec_t s_dueling(const char *name, uint32_t obs, const uint32_t *hidden, uint32_t hidden_count,
    tt_nn_activation_t activation, uint32_t n, uint32_t all)
{
    tt_net_spec_t spec = {.obs = obs};
    const uint32_t common = hidden_count ? hidden_count - 1 : 0, own = hidden_count - common;
    if (common)
        spec.tower[spec.towers++] = s_layers("trunk", hidden, common, activation);
    const uint32_t value = spec.towers, advantage = value + 1;
    for (uint32_t t = value; t <= advantage; t++) {
        spec.tower[t] = s_layers(t == value ? "value" : "advantage", hidden + common, own, activation);
        spec.tower[t].from = value; /* the trunk's number plus one, or 0 */
        spec.tower[t].out = t == value ? n : all;
    }
    spec.tower[advantage + 1] = s_made(TT_TOWER_DUELING, name, value, advantage, all);
    spec.towers = advantage + 2;
    return spec;
}

tt_net_spec_t tt_net_values(uint32_t obs, const uint32_t *hidden, uint32_t hidden_count, tt_nn_activation_t activation,
    uint32_t choices, const tt_values_t *how)
{
    static const tt_values_t plain = {0};
    how = how ? how : &plain;
    const uint32_t n = how->quantiles ? how->quantiles : how->atoms ? how->atoms : 1;
    const char *head = how->quantiles ? "quantiles" : how->atoms ? "atoms" : "q";
    const uint64_t product = (uint64_t)choices * n;
    const uint32_t all = product < UINT32_MAX ? (uint32_t)product : UINT32_MAX;
    tt_net_spec_t spec = how->dueling ? s_dueling(head, obs, hidden, hidden_count, activation, n, all)
                                      : tt_net_one(head, obs, hidden, hidden_count, activation, all);
    if (!how->quantiles && !how->atoms)
        return spec;
    const uint32_t t = spec.towers++;
    spec.tower[t] = s_made(how->quantiles ? TT_TOWER_MEAN : TT_TOWER_ATOMS, "q", t - 1, t - 1, choices);
    spec.tower[t].low = how->quantiles ? 0 : how->low;
    spec.tower[t].high = how->quantiles ? 0 : how->high;
    return spec;
}

static bool s_reads_obs(const tt_net_spec_t *spec, const tt_tower_t *tower)
{
    (void)spec;
    return tower->kind == TT_TOWER_MLP && tower->from == 0;
}

/*  Or an encoder, which reads it. */
static bool s_reads_first(const tt_net_spec_t *spec, const tt_tower_t *tower)
{
    return tower->kind == TT_TOWER_MLP && (tower->from == 0 || spec->tower[tower->from - 1].kind == TT_TOWER_ENCODER);
}

/*  A tower that is put before others, which read it instead of what they read. */
typedef struct {
    const tt_tower_t *tower;
    const char *suffix; /* of its name, where each of them gets one of its own */
    uint32_t groups;    /* of which they are, as bits                          */
    bool (*before)(const tt_net_spec_t *spec, const tt_tower_t *tower);
} put_t;

static bool s_put_before(const put_t *put, const tt_net_spec_t *spec, const tt_tower_t *tower)
{
    return (put->groups >> tower->group & 1) && put->before(spec, tower);
}

/*  Its numbers of towers, when that one is at now[] which was number t. */
static void s_renumber(tt_tower_t *tower, const uint32_t *now)
{
    if (tower->from)
        tower->from = now[tower->from - 1] + 1;
    if (!tt_tower_is_made(tower->kind))
        return;
    tower->value = now[tower->value];
    tower->advantage = now[tower->advantage];
}

/*  One before a tower, as number `at`. */
static void s_put_one(tt_net_spec_t *spec, uint32_t at, const put_t *put, const tt_tower_t *reader, uint32_t from)
{
    tt_tower_t *tower = &spec->tower[at];
    *tower = *put->tower;
    tower->group = reader->group;
    tower->from = from;
    if (put->suffix)
        snprintf(tower->name, sizeof tower->name, "%.*s_%s", (int)(sizeof tower->name - strlen(put->suffix) - 2),
            reader->name, put->suffix);
}

/*  One of its own before each of them, or, without a suffix, one for all before the first. Of too many only the number is told. */
static void s_put(tt_net_spec_t *spec, const put_t *put)
{
    const tt_net_spec_t before = *spec;
    uint32_t now[TT_TOWERS_MAX] = {0}, count = before.towers, made = 0; /* made: number + 1 of the newest */
    for (uint32_t t = 0, shared = 0; t < before.towers; t++)
        if (s_put_before(put, &before, &before.tower[t]) && (put->suffix || !shared++))
            count++;
    spec->towers = count;
    for (uint32_t t = 0, at = 0; t < before.towers && count <= TT_TOWERS_MAX; t++, at++) {
        const tt_tower_t *tower = &before.tower[t];
        const bool reads = s_put_before(put, &before, tower);
        if (reads && (put->suffix || !made)) {
            s_put_one(spec, at, put, tower, tower->from ? now[tower->from - 1] + 1 : 0);
            made = ++at;
        }
        now[t] = at;
        spec->tower[at] = *tower;
        s_renumber(&spec->tower[at], now);
        if (reads)
            spec->tower[at].from = made;
    }
}

static void s_put_encoder(tt_net_spec_t *spec, const tt_tower_t *encoder, const char *suffix, uint32_t groups)
{
    tt_tower_t own = *encoder;
    own.kind = TT_TOWER_ENCODER;
    own.out = 0;
    if (spec->towers <= TT_TOWERS_MAX)
        s_put(spec, &(put_t){&own, suffix, groups, s_reads_obs});
}

void tt_net_put_encoder(tt_net_spec_t *spec, const tt_tower_t *encoder, bool separate)
{
    s_put_encoder(spec, encoder, separate ? "encoder" : NULL, UINT32_MAX);
}

void tt_net_put_encoder_of(tt_net_spec_t *spec, const tt_tower_t *encoder, uint32_t group)
{
    s_put_encoder(spec, encoder, NULL, 1u << group);
}

void tt_net_put_recurrent(tt_net_spec_t *spec, tt_tower_kind_t kind, uint32_t units, bool separate)
{
    tt_tower_t own = {.kind = kind, .hidden_count = 1, .hidden = {units}};
    const char *name = kind == TT_TOWER_LSTM ? "lstm" : "gru";
    snprintf(own.name, sizeof own.name, "%s", name);
    if (spec->towers <= TT_TOWERS_MAX)
        s_put(spec, &(put_t){&own, separate ? name : NULL, UINT32_MAX, s_reads_first});
}

uint32_t tt_tower_carry(const tt_tower_t *tower)
{
    return tt_tower_recurs(tower->kind) ? tower->hidden[0] * (tower->kind == TT_TOWER_LSTM ? 2 : 1) : 0;
}

uint32_t tt_net_carry(const tt_net_spec_t *spec)
{
    uint32_t floats = 0;
    for (uint32_t t = 0; t < spec->towers; t++)
        floats += tt_tower_carry(&spec->tower[t]);
    return floats;
}

uint32_t tt_net_tower(const tt_net_spec_t *spec, const char *name)
{
    uint32_t t = 0;
    while (t < spec->towers && strcmp(spec->tower[t].name, name) != 0)
        t++;
    return t;
}

uint32_t tt_spec_made_of(const tt_net_spec_t *spec, uint32_t t)
{
    for (uint32_t q = 0; q < spec->towers; q++)
        if (tt_tower_is_made(spec->tower[q].kind) && (spec->tower[q].value == t || spec->tower[q].advantage == t))
            return q;
    return spec->towers;
}

size_t tt_spec_part_bytes(const tt_part_t *part)
{
    return tt_align(part->elements * (part->bytes ? sizeof(uint8_t) : sizeof(float)), sizeof(float));
}

size_t tt_net_row_bytes(const tt_net_spec_t *spec)
{
    size_t bytes = spec->parts ? 0 : spec->obs * sizeof(float);
    if (spec->parts == 1 && spec->part[0].bytes)
        return spec->part[0].elements; /* frames lie side by side where they are stored */
    for (uint32_t p = 0; p < spec->parts; p++)
        bytes += tt_spec_part_bytes(&spec->part[p]);
    return bytes;
}

bool tt_net_noisy(const tt_net_spec_t *spec)
{
    bool noisy = false;
    for (uint32_t t = 0; t < spec->towers; t++)
        noisy |= spec->tower[t].noise > 0;
    return noisy;
}

uint32_t tt_spec_groups_of(const tt_net_spec_t *spec, uint32_t towers)
{
    uint32_t groups = 0;
    for (uint32_t t = 0; towers >> t; t++)
        if (towers >> t & 1)
            groups |= 1u << spec->tower[t].group;
    return groups;
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
        return tt_err(TT_INVALID, "network: tower %u needs a name of 1 to %zu of a-z, 0-9 and _, not '%.24s'", t,
            sizeof spec->tower[t].name - 1, name);
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

/*  One part, and how many elements there are with it. */
static tt_status_t s_check_part(const tt_part_t *part, uint32_t p, uint64_t *elements)
{
    if (part->elements < 1 || part->elements > TT_ELEMENTS_MAX)
        return tt_err(TT_INVALID, "network: part %u of the observation has %u elements; 1 to %d are possible", p,
            part->elements, TT_ELEMENTS_MAX);
    if (part->bytes && part->divisor != 1.0f && part->divisor != 255.0f)
        return tt_err(TT_INVALID, "network: part %u of the observation is divided by %g; 1 and 255 are possible", p,
            (double)part->divisor);
    *elements += part->elements;
    return TT_OK;
}

static tt_status_t s_check_parts(const tt_net_spec_t *spec)
{
    uint64_t elements = spec->parts ? 0 : spec->obs;
    if (spec->parts > TT_PARTS_MAX)
        return tt_err(
            TT_INVALID, "network: an observation of %u parts; at most %d are possible", spec->parts, TT_PARTS_MAX);
    for (uint32_t p = 0; p < spec->parts; p++)
        TT_TRY(s_check_part(&spec->part[p], p, &elements));
    if (elements != spec->obs)
        return tt_err(TT_INVALID, "network: the observation has %u numbers, and its parts have %llu", spec->obs,
            (unsigned long long)elements);
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

/*  One of the heads that a tower is made of. dueling: it may be a dueling one's. */
static tt_status_t s_check_head(
    const tt_net_spec_t *spec, uint32_t t, const char *what, uint32_t head, uint32_t out, bool dueling)
{
    const char *name = spec->tower[t].name;
    if (head >= t)
        return tt_err(TT_INVALID, "network: %s: its %s is tower %u, which does not come before it", name, what, head);
    const tt_tower_t *read = &spec->tower[head];
    if (tt_tower_is_made(read->kind) && !(dueling && read->kind == TT_TOWER_DUELING))
        return tt_err(TT_INVALID, "network: %s: its %s %s has no layers of its own", name, what, read->name);
    if (read->action)
        return tt_err(TT_INVALID, "network: %s: its %s %s reads an action", name, what, read->name);
    if (read->out != out)
        return tt_err(
            TT_INVALID, "network: %s: its %s %s has %u outputs and not %u", name, what, read->name, read->out, out);
    if (tt_spec_made_of(spec, head) != t)
        return tt_err(TT_INVALID, "network: %s and %s both read the head of %s",
            spec->tower[tt_spec_made_of(spec, head)].name, name, read->name);
    return TT_OK;
}

static tt_status_t s_check_made(const tt_net_spec_t *spec, uint32_t t, const char *heads)
{
    const tt_tower_t *tower = &spec->tower[t];
    if (tower->from || tower->hidden_count || tower->log_std)
        return tt_err(TT_INVALID, "network: %s is made of %s: it has no trunk, layers or deviations of its own",
            tower->name, heads);
    if (tower->group != (t ? spec->tower[t - 1].group : 0))
        return tt_err(
            TT_INVALID, "network: %s has no parameters, and cannot begin group %u", tower->name, tower->group);
    return TT_OK;
}

/*  A tower that is made of the parts of one head. */
static tt_status_t s_check_of_parts(const tt_net_spec_t *spec, uint32_t t)
{
    const tt_tower_t *tower = &spec->tower[t];
    TT_TRY(s_check_made(spec, t, "a head"));
    if (tower->value != tower->advantage)
        return tt_err(TT_INVALID, "network: %s is made of one head, and not of two", tower->name);
    const uint32_t outs = tower->value < t ? spec->tower[tower->value].out : 0;
    if (outs % tower->out)
        return tt_err(TT_INVALID, "network: %s: %s has %u outputs, which is no multiple of %u", tower->name,
            spec->tower[tower->value].name, outs, tower->out);
    return s_check_head(spec, t, "head", tower->value, outs ? outs : tower->out, true);
}

static tt_status_t s_check_atoms(const tt_net_spec_t *spec, uint32_t t)
{
    const tt_tower_t *tower = &spec->tower[t];
    TT_TRY(s_check_of_parts(spec, t));
    const uint32_t n = spec->tower[tower->value].out / tower->out;
    if (n < 2 || n > TT_ATOMS_MAX)
        return tt_err(TT_INVALID, "network: %s has %u atoms; 2 to %d are possible", tower->name, n, TT_ATOMS_MAX);
    if (!(tower->low < tower->high) || !isfinite(tower->high - tower->low))
        return tt_err(TT_INVALID, "network: %s: its atoms lie from %g to %g, which is no range", tower->name,
            (double)tower->low, (double)tower->high);
    return TT_OK;
}

static tt_status_t s_check_dueling(const tt_net_spec_t *spec, uint32_t t)
{
    const tt_tower_t *tower = &spec->tower[t];
    TT_TRY(s_check_made(spec, t, "two heads"));
    const uint32_t n = tower->value < t ? spec->tower[tower->value].out : 1;
    if (n > 1 && tower->out % n)
        return tt_err(TT_INVALID, "network: %s: its value %s has %u outputs, of which %u is no multiple", tower->name,
            spec->tower[tower->value].name, n, tower->out);
    TT_TRY(s_check_head(spec, t, "value", tower->value, n ? n : 1, false));
    TT_TRY(s_check_head(spec, t, "advantage", tower->advantage, tower->out, false));
    if (tower->value == tower->advantage)
        return tt_err(TT_INVALID, "network: %s: its value and its advantage are both %s", tower->name,
            spec->tower[tower->value].name);
    return TT_OK;
}

static const char *s_read_by(const tt_net_spec_t *spec, const tt_tower_t *tower)
{
    return tower->from ? spec->tower[tower->from - 1].name : "the observation";
}

/*  One place has what they read and the action behind it. */
static tt_status_t s_check_beside(const tt_net_spec_t *spec, uint32_t t)
{
    const tt_tower_t *tower = &spec->tower[t];
    for (uint32_t before = 0; before < t; before++) {
        const tt_tower_t *other = &spec->tower[before];
        if (other->action && other->from != tower->from)
            return tt_err(TT_INVALID,
                "network: %s reads an action behind %s, and %s one behind %s; all must read the same", other->name,
                s_read_by(spec, other), tower->name, s_read_by(spec, tower));
    }
    return TT_OK;
}

/*  It has a layer of its own on both, and nothing in between. */
static tt_status_t s_check_action(const tt_net_spec_t *spec, uint32_t t)
{
    const tt_tower_t *tower = &spec->tower[t];
    const uint64_t read = tower->from ? tt_spec_gives(spec, tower->from - 1) : spec->obs;
    if (!tower->hidden_count || !tower->out || tower->noise > 0)
        return tt_err(TT_INVALID,
            "network: %s reads an action: it needs hidden layers and a head, and has no noisy layers", tower->name);
    TT_TRY(s_check_beside(spec, t));
    if (spec->action < 1 || read + spec->action > TT_UNITS_MAX)
        return tt_err(TT_INVALID,
            "network: %s reads %s of %llu numbers and an action of %u; 1 to %d of both "
            "are possible",
            tower->name, tower->from ? s_read_by(spec, tower) : "an observation", (unsigned long long)read,
            spec->action, TT_UNITS_MAX);
    return TT_OK;
}

/*  Sequences (nn.h) have no actions. */
static tt_status_t s_check_steps(const tt_net_spec_t *spec)
{
    for (uint32_t t = 0; t < spec->towers; t++)
        for (uint32_t r = 0; r < spec->towers; r++)
            if (spec->tower[t].action && tt_tower_recurs(spec->tower[r].kind))
                return tt_err(TT_INVALID, "network: %s reads an action, and %s recurs; one network has not both",
                    spec->tower[t].name, spec->tower[r].name);
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
    TT_TRY(s_check_from(spec, t));
    return tower->action ? s_check_action(spec, t) : TT_OK;
}

/*  What it reads remembers nothing: otherwise a step of the one would wait for a step of the other. */
static tt_status_t s_check_recurrent(const tt_net_spec_t *spec, uint32_t t)
{
    const tt_tower_t *tower = &spec->tower[t];
    if (tower->hidden_count != 1 || tower->out || tower->log_std)
        return tt_err(TT_INVALID, "network: %s recurs: it has one number of units, and no head", tower->name);
    TT_TRY(s_check_units(tower->name, "", 0, tower->hidden[0]));
    TT_TRY(s_check_from(spec, t));
    for (uint32_t at = tower->from; at; at = spec->tower[at - 1].from)
        if (tt_tower_recurs(spec->tower[at - 1].kind))
            return tt_err(TT_INVALID, "network: %s reads %s, and both recur", tower->name, spec->tower[at - 1].name);
    return TT_OK;
}

static tt_status_t (*const s_checks[])(const tt_net_spec_t *spec, uint32_t t) = {
    [TT_TOWER_MLP] = s_check_layers,
    [TT_TOWER_DUELING] = s_check_dueling,
    [TT_TOWER_MEAN] = s_check_of_parts,
    [TT_TOWER_ATOMS] = s_check_atoms,
    [TT_TOWER_ENCODER] = tt_layers_check,
    [TT_TOWER_LSTM] = s_check_recurrent,
    [TT_TOWER_GRU] = s_check_recurrent,
};

static tt_status_t s_check_tower(const tt_net_spec_t *spec, uint32_t t)
{
    TT_TRY(s_check_name(spec, t));
    const tt_tower_t *tower = &spec->tower[t];
    if (tower->out > TT_UNITS_MAX)
        return s_check_units(tower->name, ": the output", 0, tower->out);
    if (tower->out == 0 && tower->hidden_count == 0 && tower->kind != TT_TOWER_ENCODER)
        return tt_err(TT_INVALID, "network: %s has neither hidden layers nor an output", tower->name);
    if (tower->action && tower->kind != TT_TOWER_MLP)
        return tt_err(TT_INVALID, "network: %s reads an action, which only layers of its own can", tower->name);
    if ((size_t)tower->kind >= TT_COUNT(s_checks))
        return tt_err(TT_INVALID, "network: %s: kind %d is unknown", tower->name, (int)tower->kind);
    if (!(tower->noise >= 0 && tower->noise <= TT_NOISE_MAX) || (tower->noise > 0 && tower->kind != TT_TOWER_MLP))
        return tt_err(TT_INVALID, "network: %s: noise %g; 0 to %d is possible, and 0 where it is no MLP", tower->name,
            (double)tower->noise, TT_NOISE_MAX);
    TT_TRY(s_check_group(spec, t));
    return s_checks[tower->kind](spec, t);
}

/*  Encoders take large ones apart; an MLP would have a weight for each of its numbers and units. */
static tt_status_t s_check_obs(const tt_net_spec_t *spec)
{
    bool flat = false;
    for (uint32_t t = 0; t < spec->towers; t++)
        flat |= spec->tower[t].kind != TT_TOWER_ENCODER && !tt_tower_is_made(spec->tower[t].kind) &&
                spec->tower[t].from == 0;
    if (spec->obs > TT_ELEMENTS_MAX && !flat)
        return tt_err(
            TT_INVALID, "network: the observation has %u numbers; at most %d are possible", spec->obs, TT_ELEMENTS_MAX);
    if (flat || spec->obs == 0)
        TT_TRY(s_check_units("", "the observation", 0, spec->obs));
    return s_check_parts(spec);
}

/*  Of all encoders together: those that share a list count it each. */
static tt_status_t s_check_layer_count(const tt_net_spec_t *spec)
{
    uint64_t layers = 0;
    for (uint32_t t = 0; t < spec->towers; t++)
        layers += spec->tower[t].kind == TT_TOWER_ENCODER ? spec->tower[t].layers : 0;
    layers = spec->layers > layers ? spec->layers : layers;
    if (layers > TT_ENCODER_LAYERS_MAX)
        return tt_err(TT_INVALID, "network: %llu layers of encoders; at most %d are possible",
            (unsigned long long)layers, TT_ENCODER_LAYERS_MAX);
    return TT_OK;
}

tt_status_t tt_spec_check(const tt_net_spec_t *spec)
{
    if (spec->towers < 1 || spec->towers > TT_TOWERS_MAX)
        return tt_err(TT_INVALID, "network: %u towers; 1 to %d are possible", spec->towers, TT_TOWERS_MAX);
    TT_TRY(s_check_obs(spec));
    TT_TRY(s_check_layer_count(spec));
    if (spec->sets > TT_SETS_MAX)
        return tt_err(TT_INVALID, "network: %u sets of parameters; at most %d are possible", spec->sets, TT_SETS_MAX);
    if (spec->ride > TT_RIDE_MAX)
        return tt_err(
            TT_INVALID, "network: %u floats ride on a gradient; at most %d are possible", spec->ride, TT_RIDE_MAX);
    for (uint32_t t = 0; t < spec->towers; t++)
        TT_TRY(s_check_tower(spec, t));
    TT_TRY(s_check_steps(spec));
    if (tt_spec_params(spec) > TT_PARAMS_MAX)
        return tt_err(TT_INVALID, "network: %llu parameters; at most %d are possible",
            (unsigned long long)tt_spec_params(spec), TT_PARAMS_MAX);
    return TT_OK;
}
