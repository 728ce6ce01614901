#include "cli/comes_to.h"
#include <string.h>
#include "cli/figures.h"
#include "cli/graph.h"
#include "cli/spaces.h"
#include "common/base/mem.h"
#include "common/job/fit.h"
#include "common/job/groups.h"
#include "common/nn/spec.h"
#include "learner/memory.h"

typedef struct {
    tt_columns_t *columns; /* owned                                    */
    tt_net_spec_t net;
    uint64_t params[TT_TOWERS_MAX], all; /* of each tower; of all, with log_std */
    uint64_t act, train;                 /* FLOPs of a row                      */
    uint32_t copies;                     /* of the parameters, that follow them */
    uint64_t rows, bytes;                /* of a batch, as a lone collector's   */
    uint32_t segments;                   /* that it is then                     */
    tt_feed_t feed;
    uint64_t copy; /* bytes of frames that the learner's device may have, too */
} sums_t;

/*  What a tower reads, if it is a trunk. */
static const tt_tower_t *s_trunk(const tt_net_spec_t *net, const tt_tower_t *tower)
{
    return tower->from ? &net->tower[tower->from - 1] : NULL;
}

/*  That a batch fits was checked with the config. */
static void s_add_segments(sums_t *self, const tt_train_cfg_t *train)
{
    tt_segment_shape_t shape = tt_train_segment(train, self->columns);
    const uint32_t most = shape.E;
    self->segments = tt_segment_parts(train->num_envs, most);
    for (uint32_t i = 0; i < self->segments; i++) {
        uint32_t first;
        size_t bytes = 0;
        tt_segment_part(train->num_envs, most, i, &first, &shape.E);
        const tt_status_t status = tt_segment_size(&shape, &bytes);
        TT_CHECK(status == TT_OK);
        self->bytes += bytes;
    }
}

/*  `auto` asks the device, which may be a card. */
static uint64_t s_copy(const sums_t *self, const tt_train_cfg_t *train)
{
    const bool never = self->feed.memory == TT_MEMORY_HOST ||
                       (self->feed.memory == TT_MEMORY_AUTO && strcmp(train->learner.device, "cpu") == 0);
    return self->feed.source != TT_FEED_REPLAY || never ? 0 : memory_copy_bytes(train, self->columns, &self->feed);
}

/*  Towers of which heads are made that need no action, with the trunks before them, as bits. */
static uint32_t s_acting(const tt_net_spec_t *net)
{
    uint32_t acting = 0;
    for (uint32_t t = net->towers; t-- > 0;) {
        const tt_tower_t *tower = &net->tower[t];
        const bool acts = (tower->out && !tower->action) || (acting >> t & 1);
        if (acts)
            acting |= 1u << t | (tower->from ? 1u << (tower->from - 1) : 0);
    }
    return acting;
}

/*  That there are columns was checked with the config. */
static void s_add_up(sums_t *self, const tt_setup_t *setup)
{
    const tt_train_cfg_t *train = tt_setup_train(setup);
    uint64_t multiplies = 0, acts = 0;
    *self = (sums_t){0};
    const tt_status_t status = tt_train_columns(&self->columns, train);
    TT_CHECK(status == TT_OK);
    s_add_segments(self, train);
    self->net = tt_train_net(train, self->columns);
    const uint32_t acting = s_acting(&self->net);
    for (uint32_t t = 0; t < self->net.towers; t++) {
        self->params[t] = tt_spec_tower_params(&self->net, t) - self->net.tower[t].log_std;
        self->all += tt_spec_tower_params(&self->net, t);
        multiplies += tt_net_tower_work(&self->net, t);
        acts += acting >> t & 1 ? tt_net_tower_work(&self->net, t) : 0;
    }
    const tt_algorithm_shape_t shape =
        tt_algorithm_shape(tt_setup_algorithm(setup), train, tt_setup_algorithm_cfg(setup));
    self->act = 2 * acts;
    self->train = (2 + (shape.forwards ? shape.forwards : 1)) * 2 * multiplies; /* two products more on the way back */
    self->copies = shape.sets > 1 ? shape.sets - 1 : 0;
    self->rows = (uint64_t)train->num_envs * train->num_steps;
    self->feed = shape.feed;
    self->copy = s_copy(self, train);
}

/*  What a tower's outputs are, where they are not logits or values alone. */
static void s_print_head(FILE *out, const sums_t *self, const tt_tower_t *tower)
{
    tt_policy_t policy;
    tt_policy_of(&policy, self->columns);
    const bool acts = strcmp(tower->name, "actor") == 0;
    const uint32_t own = acts ? policy.own_std : 0, means = acts && self->columns->no_std ? tower->out
                                                            : own                         ? own
                                                                                          : tt_tower_deviations(tower);
    if (tower->out)
        fprintf(out, " -> %u", tower->out);
    if (means && means == tower->out)
        fprintf(out, " means");
    else if (means + own < tower->out && means)
        fprintf(out, " (%u logits, %u means%s)", tower->out - means - own, means, own ? ", as many deviations" : "");
    else if (own)
        fprintf(out, " (%u means, as many deviations)", means);
}

/*  "-> 64 tanh -> 64 tanh", "-> 128 lstm, carries 256 floats". */
static void s_print_layers(FILE *out, const tt_tower_t *tower)
{
    static const char *const kinds[] = {[TT_TOWER_LSTM] = "lstm", [TT_TOWER_GRU] = "gru"};
    const bool recurs = tt_tower_recurs(tower->kind);
    const char *activation = recurs ? kinds[tower->kind] : tower->activation == TT_NN_RELU ? "relu" : "tanh";
    for (uint32_t l = 0; l < tower->hidden_count; l++)
        fprintf(out, " -> %u %s", tower->hidden[l], activation);
    if (recurs)
        fprintf(out, ", carries %u floats", tt_tower_carry(tower));
}

static void s_print_tower(FILE *out, const sums_t *self, uint32_t t)
{
    char number[FIGURE];
    const tt_tower_t *tower = &self->net.tower[t], *trunk = s_trunk(&self->net, tower);
    fprintf(out, "#   %-12s ", tower->name);
    if (tower->kind == TT_TOWER_DUELING)
        fprintf(out, "%s + %s - mean", self->net.tower[tower->value].name, self->net.tower[tower->advantage].name);
    else if (tower->kind == TT_TOWER_MEAN)
        fprintf(out, "means of %s", self->net.tower[tower->value].name);
    else if (tower->kind == TT_TOWER_ATOMS)
        fprintf(out, "expected of %s from %g to %g", self->net.tower[tower->value].name, (double)tower->low,
            (double)tower->high);
    else if (trunk)
        fprintf(out, "%s", trunk->name);
    else
        fprintf(out, "%u", self->net.obs);
    if (tower->action)
        fprintf(out, " + %u of an action", self->net.action);
    s_print_layers(out, tower);
    s_print_head(out, self, tower);
    if (tower->noise > 0)
        fprintf(out, ", noisy");
    if (tt_spec_layers(&self->net, t))
        fprintf(out, ": %s parameters", figure_count(self->params[t], number));
    fprintf(out, "\n");
}

/*  What there is beside the towers' layers. */
static const char *s_beside(const tt_net_spec_t *net)
{
    for (uint32_t t = 0; t < net->towers; t++)
        if (net->tower[t].log_std)
            return net->tower[t].log_alpha ? " with log_alpha" : " with log_std";
    return "";
}

static void s_print_copy(FILE *out, const sums_t *self, const tt_train_cfg_t *train)
{
    char bytes[FIGURE];
    if (!self->copy)
        return;
    figure_amount(self->copy, "B", bytes);
    fprintf(out, "#   %-12s %s more in the memory of learner.device %s%s (replay.memory)\n", "its frames", bytes,
        train->learner.device, self->feed.memory == TT_MEMORY_AUTO ? ", if it is a card with twice that free" : "");
}

/*  On disk: what two snapshots refer to, and what is written for a third. Where learners may come from other hosts it is a part of each
 *  instead. */
static void s_print_replay(FILE *out, const sums_t *self, const tt_train_cfg_t *train)
{
    const tt_feed_t *feed = &self->feed;
    char a[FIGURE], b[FIGURE];
    figure_amount(feed->capacity, "B", a);
    figure_amount(4 * feed->capacity, "B", b);
    fprintf(out, "#   %-12s %s at most, on each learner; a step draws %u of its ", "a replay", a, feed->units);
    if (feed->length)
        fprintf(out, "sequences of %u rows behind %u\n", feed->length, feed->burn);
    else
        fprintf(out, "rows\n");
    s_print_copy(out, self, train);
    fprintf(out, "#   %-12s ", "on disk");
    if (!feed->save)
        fprintf(out, "nothing of it: who is resumed, or loses all learners at once, begins with an empty one\n");
    else if (train->coordinator.listen[0])
        fprintf(out, "%s in each snapshot (replay.save)\n", a);
    else
        fprintf(out, "%s of files beside the snapshots, %s while much is written (replay.save)\n", a, b);
}

static void s_print_stack(FILE *out, const tt_columns_t *columns)
{
    if (columns->stack.frames == 1)
        return;
    fprintf(out, "#   %-12s %u frames, each stored and sent once: ", "stacked", columns->stack.frames);
    columns_print_stacked(out, columns);
    fprintf(out, ", before an episode %s\n", columns->stack.pad == TT_PAD_ZERO ? "zeros" : "its first frame");
}

/*  What the policy of an env takes along from step to step. */
static void s_print_carry(FILE *out, const tt_columns_t *columns, const tt_train_cfg_t *train)
{
    char bytes[FIGURE];
    if (columns->carry == 0)
        return;
    figure_amount((uint64_t)columns->carry * sizeof(float), "B", bytes);
    fprintf(out, "#   %-12s %u floats by each env, %s with each batch", "carried", columns->carry, bytes);
    if (train->space.env_state)
        fprintf(out, ", and again with its saved state");
    fprintf(out, "\n");
}

static void s_print_groups(FILE *out, const tt_train_cfg_t *train)
{
    tt_groups_t groups;
    if (tt_groups_parse(&groups, train->actor.groups) != TT_OK || groups.count == 0)
        return;
    fprintf(out, "#   %-12s ", "groups");
    for (uint32_t g = 0; g < groups.count; g++)
        fprintf(out, "%s%s", g ? ", " : "", groups.at[g].name);
    fprintf(out, ": an optimiser each\n");
}

void comes_to_print(FILE *out, const tt_setup_t *setup)
{
    sums_t self;
    char a[FIGURE], b[FIGURE];
    s_add_up(&self, setup);
    const tt_train_cfg_t *train = tt_setup_train(setup);
    fprintf(out, "# what it comes to:\n#   %-12s %s\n#   %-12s %s%s\n", "observation", train->space.obs, "action",
        train->space.action, train->space.mask ? ", some choices masked" : "");
    s_print_stack(out, self.columns);
    columns_print(out, self.columns);
    fprintf(out, "#   %-12s %u numbers that the networks read\n", "flattened", self.columns->flat);
    for (uint32_t t = 0; t < self.net.towers; t++) {
        if (self.net.tower[t].kind == TT_TOWER_ENCODER)
            graph_print(out, &self.net, self.columns, t);
        else
            s_print_tower(out, &self, t);
    }
    fprintf(out, "#   %-12s %s parameters%s, %s\n", "together", figure_count(self.all, a), s_beside(&self.net),
        figure_amount(4 * self.all, "B", b));
    if (self.copies)
        fprintf(out, "#   %-12s %u of all parameters, which follow them: target networks\n", "copies", self.copies);
    s_print_groups(out, train);
    s_print_carry(out, self.columns, train);
    fprintf(out, "#   %-12s %s to act, %s to train on it once; %u B\n", "a row", figure_amount(self.act, "FLOP", a),
        figure_amount(self.train, "FLOP", b), columns_bytes(self.columns));
    fprintf(out, "#   %-12s %u envs x %u steps = %s rows, %s", "a batch", train->num_envs, train->num_steps,
        figure_count(self.rows, a), figure_amount(self.bytes, "B", b));
    if (self.segments > 1)
        fprintf(out, " in %u segments", self.segments);
    fprintf(out, "\n");
    if (self.feed.source == TT_FEED_REPLAY)
        s_print_replay(out, &self, train);
    tt_columns_destroy(&self.columns);
}

static void s_add_replay(json_t *all, const sums_t *self)
{
    const tt_feed_t *feed = &self->feed;
    json_object_set_new(all, "replay_bytes", json_integer((json_int_t)feed->capacity));
    json_object_set_new(all, "replay_disk_bytes", json_integer(feed->save ? (json_int_t)(4 * feed->capacity) : 0));
    json_object_set_new(all, "replay_device_bytes", json_integer((json_int_t)self->copy));
}

json_t *comes_to_json(const tt_setup_t *setup)
{
    sums_t self;
    s_add_up(&self, setup);
    const tt_train_cfg_t *train = tt_setup_train(setup);
    char hash[24];
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)self.columns->hash);
    json_t *all = json_pack("{s:s, s:s, s:b, s:I, s:o, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "observation",
        train->space.obs, "action", train->space.action, "mask", train->space.mask, "flat",
        (json_int_t)self.columns->flat, "columns", columns_json(self.columns), "columns_hash", hash, "row_bytes",
        (json_int_t)columns_bytes(self.columns), "parameters", (json_int_t)self.all, "flop_act", (json_int_t)self.act,
        "flop_train", (json_int_t)self.train, "parameter_copies", (json_int_t)self.copies, "batch_rows",
        (json_int_t)self.rows, "batch_bytes", (json_int_t)self.bytes, "batch_segments", (json_int_t)self.segments);
    for (uint32_t t = 0; t < self.net.towers; t++)
        if (self.net.tower[t].kind == TT_TOWER_ENCODER)
            json_object_set_new(all, self.net.tower[t].name, graph_json(&self.net, self.columns, t));
    if (self.columns->stack.frames > 1)
        json_object_set_new(all, "stack", json_integer((json_int_t)self.columns->stack.frames));
    if (self.columns->carry)
        json_object_set_new(all, "carry", json_integer((json_int_t)self.columns->carry));
    if (self.feed.source == TT_FEED_REPLAY)
        s_add_replay(all, &self);
    tt_columns_destroy(&self.columns);
    return all;
}
