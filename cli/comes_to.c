#include "cli/comes_to.h"
#include <string.h>
#include "common/base/mem.h"
#include "common/job/fit.h"

typedef struct {
    char observation[32], action[32];
    tt_net_spec_t net;
    uint64_t params[2], all; /* of actor and critic; of both and log_std */
    uint64_t act, train;     /* FLOPs of a row                           */
    uint64_t rows, bytes;    /* of a batch, as one segment               */
} sums_t;

void space_text(char *out, size_t size, const tt_space_t *space)
{
    snprintf(out, size, "%s(%u)", space->kind == TT_SPACE_DISCRETE ? "Discrete" : "Box", space->n);
}

/*  Parameters of one tower, and the multiply-adds of a row that goes through it. */
static uint64_t s_tower(const tt_net_spec_t *net, uint32_t out, uint64_t *multiplies)
{
    uint64_t params = 0, in = net->obs;
    for (uint32_t l = 0; l <= net->hidden_count; l++) {
        const uint64_t units = l < net->hidden_count ? net->hidden[l] : out;
        params += (in + 1) * units;
        *multiplies += in * units;
        in = units;
    }
    return params;
}

static void s_add_up(sums_t *self, const tt_setup_t *setup)
{
    const tt_train_cfg_t *train = tt_setup_train(setup);
    const tt_env_ops_t *env = tt_setup_env(setup);
    const tt_segment_shape_t shape = tt_train_segment(train);
    size_t bytes = 0;
    uint64_t multiplies = 0;
    *self = (sums_t){.net = tt_train_net(train)};
    space_text(self->observation, sizeof self->observation, &env->obs);
    space_text(self->action, sizeof self->action, &env->action);
    self->params[0] = s_tower(&self->net, self->net.out, &multiplies);
    self->params[1] = s_tower(&self->net, 1, &multiplies);
    self->all = tt_net_param_count(&self->net);
    self->act = 2 * multiplies;
    self->train = 3 * self->act;
    self->rows = (uint64_t)train->num_envs * train->num_steps;
    const tt_status_t fits = tt_segment_size(&shape, &bytes); /* that it does was checked with the config */
    self->bytes = fits == TT_OK ? bytes : 0;
}

/*  1234567 -> "1,234,567". */
static const char *s_grouped(char out[32], uint64_t number)
{
    char digits[24];
    const int length = snprintf(digits, sizeof digits, "%llu", (unsigned long long)number);
    size_t at = 0;
    for (int i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0)
            out[at++] = ',';
        out[at++] = digits[i];
    }
    out[at] = '\0';
    return out;
}

static const char *s_amount(char out[32], uint64_t number, const char *unit)
{
    static const char *const prefixes[] = {"", "k", "M", "G", "T"};
    double amount = (double)number;
    size_t p = 0;
    for (; amount >= 1000 && p + 1 < TT_COUNT(prefixes); p++)
        amount /= 1000;
    snprintf(out, 32, amount < 10 && p ? "%.1f %s%s" : "%.0f %s%s", amount, prefixes[p], unit);
    return out;
}

static void s_print_tower(FILE *out, const sums_t *self, const char *name, uint32_t last, uint64_t params)
{
    char number[32];
    fprintf(out, "#   %-12s %u", name, self->net.obs);
    for (uint32_t l = 0; l < self->net.hidden_count; l++)
        fprintf(out, " -> %u %s", self->net.hidden[l], self->net.activation == TT_NN_RELU ? "relu" : "tanh");
    fprintf(out, " -> %u%s: %s parameters\n", last, self->net.continuous && last == self->net.out ? " means" : "",
        s_grouped(number, params));
}

void comes_to_print(FILE *out, const tt_setup_t *setup)
{
    sums_t self;
    char a[32], b[32];
    s_add_up(&self, setup);
    const tt_train_cfg_t *train = tt_setup_train(setup);
    fprintf(out, "# what it comes to:\n#   %-12s %s\n#   %-12s %s\n", "observation", self.observation, "action",
        self.action);
    s_print_tower(out, &self, "actor", self.net.out, self.params[0]);
    s_print_tower(out, &self, "critic", 1, self.params[1]);
    fprintf(out, "#   %-12s %s parameters%s, %s\n", "together", s_grouped(a, self.all),
        self.net.continuous ? " with log_std" : "", s_amount(b, 4 * self.all, "B"));
    fprintf(out, "#   %-12s %s to act, %s to train on it once\n", "a row", s_amount(a, self.act, "FLOP"),
        s_amount(b, self.train, "FLOP"));
    fprintf(out, "#   %-12s %u envs x %u steps = %s rows, %s\n", "a batch", train->num_envs, train->num_steps,
        s_grouped(a, self.rows), s_amount(b, self.bytes, "B"));
}

json_t *comes_to_json(const tt_setup_t *setup)
{
    sums_t self;
    s_add_up(&self, setup);
    return json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I}", "observation", self.observation, "action", self.action,
        "parameters", (json_int_t)self.all, "flop_act", (json_int_t)self.act, "flop_train", (json_int_t)self.train,
        "batch_rows", (json_int_t)self.rows, "batch_bytes", (json_int_t)self.bytes);
}
