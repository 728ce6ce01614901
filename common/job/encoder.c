#include "common/job/encoder.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include "common/base/mem.h"

enum { WORD_MAX = 79, NESTED_MAX = 4, TIMES_MAX = 64 };

#define STAGE(channels)                                                                    \
    "conv " channels " 3x3 pad 1, max_pool 3x3 /2 pad 1, residual 2 (relu, conv " channels \
    " 3x3 pad 1, relu, conv " channels " 3x3 pad 1)"

/*  A known list, by its name. */
typedef struct {
    const char *name, *words, *source;
} known_t;

static const known_t s_known[] = {
    {"nature", "conv 32 8x8 /4 relu, conv 64 4x4 /2 relu, conv 64 3x3 relu, dense 512 relu",
        "Mnih et al. 2015, doi:10.1038/nature14236"},
    {"impala", STAGE("16") ", " STAGE("32") ", " STAGE("32") ", relu, dense 256 relu",
        "the deep network of Espeholt et al. 2018, arXiv:1802.01561"},
    {"minatar", "conv 16 3x3 relu, dense 128 relu", "Young and Tian 2019, arXiv:1903.03176"},
};

bool tt_has_encoder(const tt_train_cfg_t *cfg)
{
    return *cfg->network.encoder && strcmp(cfg->network.encoder, "none") != 0;
}

typedef struct reader reader_t;

/*  A word that a layer begins with. */
typedef struct {
    const char *name, *usage;
    tt_layer_kind_t kind;
    tt_nn_activation_t activation;
    tt_status_t (*read)(reader_t *self, tt_layer_t *layer); /* what stands behind it; NULL: nothing, or an activation */
} word_t;

struct reader {
    const char *at; /* what is left of the text */
    const tt_columns_t *columns;
    tt_net_spec_t *spec;
    const word_t *word; /* of the layer in hand        */
    uint32_t number;    /* of it, from 1, as written   */
    uint32_t nested;
};

static tt_status_t s_list(reader_t *self);

/* ---- words ------------------------------------------------------------------------------------------------------------ */

/*  The next character that is no blank. */
static char s_next(reader_t *self)
{
    self->at += strspn(self->at, " \t\n");
    return *self->at;
}

static bool s_skip(reader_t *self, char c)
{
    const bool there = s_next(self) == c;
    self->at += there;
    return there;
}

/*  The word that comes next, "" at a comma, a bracket or the end; too long: the beginning of it. */
static void s_peek(reader_t *self, char out[WORD_MAX + 1])
{
    s_next(self);
    const size_t length = strcspn(self->at, " \t\n,()");
    snprintf(out, WORD_MAX + 1, "%.*s", (int)(length < WORD_MAX ? length : WORD_MAX), self->at);
}

static void s_pass(reader_t *self)
{
    self->at += strcspn(self->at, " \t\n,()");
}

/*  It is not what the layer in hand goes on with. */
static tt_status_t s_misplaced(const reader_t *self, const char *word)
{
    return tt_err(TT_INVALID, "layer %u: '%s' %s%s%s: write %s", self->number, self->word->name,
        *word ? "does not go on with '" : "is not complete", word, *word ? "'" : "", self->word->usage);
}

/*  Digits alone, lo .. hi. */
static bool s_number(const char *text, uint32_t lo, uint32_t hi, uint32_t *out)
{
    uint64_t value = 0;
    const char *at = text;
    for (; isdigit((unsigned char)*at) && value <= hi; at++)
        value = 10 * value + (uint64_t)(*at - '0');
    *out = (uint32_t)value;
    return at > text && !*at && value >= lo && value <= hi;
}

/*  "3x3", or "3" for both where one is enough. */
static bool s_pair(const char *text, bool both, uint32_t lo, uint8_t out[2])
{
    char first[WORD_MAX + 1];
    const char *x = strchr(text, 'x');
    uint32_t height, width;
    if (both && !x)
        return false;
    snprintf(first, sizeof first, "%.*s", x ? (int)(x - text) : WORD_MAX, text);
    if (!s_number(first, lo, UINT8_MAX, &height) || !s_number(x ? x + 1 : text, lo, UINT8_MAX, &width))
        return false;
    out[0] = (uint8_t)height;
    out[1] = (uint8_t)width;
    return true;
}

/* ---- layers ----------------------------------------------------------------------------------------------------------- */

static bool s_activation(const char *word, tt_nn_activation_t *out)
{
    if (strcmp(word, "relu") != 0 && strcmp(word, "tanh") != 0)
        return false;
    *out = *word == 'r' ? TT_NN_RELU : TT_NN_TANH;
    return true;
}

static tt_status_t s_units(reader_t *self, tt_layer_t *layer)
{
    char word[WORD_MAX + 1];
    s_peek(self, word);
    if (!s_number(word, 1, TT_UNITS_MAX, &layer->units))
        return s_misplaced(self, word);
    s_pass(self);
    return TT_OK;
}

static tt_status_t s_kernel(reader_t *self, tt_layer_t *layer)
{
    char word[WORD_MAX + 1];
    s_peek(self, word);
    if (!s_pair(word, true, 1, layer->kernel))
        return s_misplaced(self, word);
    s_pass(self);
    return TT_OK;
}

/*  "pad 1". */
static tt_status_t s_pad(reader_t *self, tt_layer_t *layer)
{
    char word[WORD_MAX + 1];
    s_pass(self);
    s_peek(self, word);
    return s_pair(word, false, 0, layer->pad) ? TT_OK : s_misplaced(self, word);
}

/*  What may follow, up to the layer's end. */
static tt_status_t s_options(reader_t *self, tt_layer_t *layer)
{
    const bool window = tt_layer_looks(layer->kind);
    const bool acts = !tt_layer_pools(layer->kind) && layer->kind != TT_LAYER_ACTIVATION;
    char word[WORD_MAX + 1];
    for (s_peek(self, word); *word; s_pass(self), s_peek(self, word)) {
        if (window && strcmp(word, "pad") == 0)
            TT_TRY(s_pad(self, layer));
        else if (!(window && *word == '/' && s_pair(word + 1, false, 1, layer->stride)) &&
                 !(acts && s_activation(word, &layer->activation)))
            return s_misplaced(self, word);
    }
    return TT_OK;
}

static tt_status_t s_conv(reader_t *self, tt_layer_t *layer)
{
    TT_TRY(s_units(self, layer));
    TT_TRY(s_kernel(self, layer));
    return s_options(self, layer);
}

static tt_status_t s_pool(reader_t *self, tt_layer_t *layer)
{
    TT_TRY(s_kernel(self, layer));
    return s_options(self, layer);
}

static tt_status_t s_dense(reader_t *self, tt_layer_t *layer)
{
    TT_TRY(s_units(self, layer));
    return s_options(self, layer);
}

static tt_status_t s_push(const reader_t *self, const tt_layer_t *layer)
{
    tt_net_spec_t *spec = self->spec;
    if (spec->layers == TT_ENCODER_LAYERS_MAX)
        return tt_err(TT_INVALID, "layer %u: an encoder has more than %d layers", self->number, TT_ENCODER_LAYERS_MAX);
    spec->layer[spec->layers++] = *layer;
    return TT_OK;
}

/*  The list in brackets, as often as is said. `layer` was pushed. */
static tt_status_t s_residual(reader_t *self, uint32_t first)
{
    const uint32_t number = self->number;
    const word_t *word = self->word;
    char text[WORD_MAX + 1];
    uint32_t times = 1;
    s_peek(self, text);
    if (*text && !s_number(text, 1, TIMES_MAX, &times))
        return s_misplaced(self, text);
    s_pass(self);
    if (!s_skip(self, '('))
        return s_misplaced(self, "");
    TT_TRY(s_list(self));
    if (!s_skip(self, ')'))
        return tt_err(TT_INVALID, "layer %u: '%s (' is not closed: write %s", number, word->name, word->usage);
    const uint32_t count = self->spec->layers - first;
    self->spec->layer[first].span = count - 1;
    for (uint32_t k = count; k < times * count; k++)
        TT_TRY(s_push(self, &self->spec->layer[first + k - count]));
    return TT_OK;
}

/*  "image" of the column "obs.image"; "obs" of an observation without parts. */
static const char *s_key(const tt_column_t *column)
{
    return strncmp(column->name, "obs.", 4) == 0 ? column->name + 4 : column->name;
}

/*  "image [84, 84, 3], speed": what there is. Returns out. */
static const char *s_parts(const tt_columns_t *columns, char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (uint32_t c = 0; c < columns->obs_count && used < size; c++) {
        const tt_column_t *column = &columns->at[c];
        used += (size_t)snprintf(out + used, size - used, "%s%s", c ? ", " : "", s_key(column));
        for (uint32_t i = 0; i < column->rank && used < size; i++)
            used += (size_t)snprintf(
                out + used, size - used, "%s%u%s", i ? ", " : " [", column->shape[i], i + 1 == column->rank ? "]" : "");
    }
    return out;
}

/*  Its column; obs_count: there is none. */
static uint32_t s_find(const tt_columns_t *columns, const char *key)
{
    uint32_t c = 0;
    while (c < columns->obs_count && strcmp(s_key(&columns->at[c]), key) != 0)
        c++;
    return c;
}

/*  The part that the next word names. */
static tt_status_t s_part(reader_t *self, tt_layer_t *layer)
{
    char word[WORD_MAX + 1], parts[512];
    s_peek(self, word);
    if (!*word)
        return s_misplaced(self, word);
    layer->part = s_find(self->columns, word);
    if (layer->part == self->columns->obs_count)
        return tt_err(TT_INVALID, "layer %u: the observation has no part '%s'; it has %s", self->number, word,
            s_parts(self->columns, parts, sizeof parts));
    s_pass(self);
    return TT_OK;
}

/*  A column's choices, as those of the layer. */
static tt_status_t s_push_choices(const reader_t *self, const tt_column_t *column, tt_layer_t *layer)
{
    tt_net_spec_t *spec = self->spec;
    if (column->elements > TT_EMBEDDED_MAX - spec->choices)
        return tt_err(TT_INVALID, "layer %u: with the %u elements of '%s' an encoder embeds more than %d", self->number,
            column->elements, s_key(column), TT_EMBEDDED_MAX);
    layer->choice = spec->choices;
    layer->choices = column->elements;
    memcpy(
        spec->choice + spec->choices, self->columns->choices + column->first, column->elements * sizeof *spec->choice);
    spec->choices += column->elements;
    return TT_OK;
}

static tt_status_t s_embed(reader_t *self, tt_layer_t *layer)
{
    char parts[512];
    TT_TRY(s_part(self, layer));
    const tt_column_t *column = &self->columns->at[layer->part];
    if (!column->choice)
        return tt_err(TT_INVALID,
            "layer %u: '%s' is no choice (discrete or multi_discrete) that could be embedded; the observation has %s",
            self->number, s_key(column), s_parts(self->columns, parts, sizeof parts));
    TT_TRY(s_units(self, layer));
    return s_push_choices(self, column, layer);
}

static const word_t s_words[] = {
    {"conv", "'conv 32 8x8 /4 pad 1 relu': channels, kernel; stride, pad and activation may be left away",
        TT_LAYER_CONV2D, TT_NN_NONE, s_conv},
    {"max_pool", "'max_pool 3x3 /2 pad 1': window; stride and pad may be left away", TT_LAYER_MAX_POOL, TT_NN_NONE,
        s_pool},
    {"avg_pool", "'avg_pool 2x2 /2 pad 1': window; stride and pad may be left away", TT_LAYER_AVG_POOL, TT_NN_NONE,
        s_pool},
    {"dense", "'dense 512 relu': units; the activation may be left away", TT_LAYER_DENSE, TT_NN_NONE, s_dense},
    {"layer_norm", "'layer_norm', and an activation or none", TT_LAYER_LAYER_NORM, TT_NN_NONE, s_options},
    {"relu", "'relu' alone", TT_LAYER_ACTIVATION, TT_NN_RELU, s_options},
    {"tanh", "'tanh' alone", TT_LAYER_ACTIVATION, TT_NN_TANH, s_options},
    {"residual", "'residual 2 (relu, conv 16 3x3 pad 1)': how often, and a list in brackets", TT_LAYER_RESIDUAL,
        TT_NN_NONE, NULL},
    {"concat", "'concat KEY': a part of the observation", TT_LAYER_CONCAT, TT_NN_NONE, s_part},
    {"embed", "'embed KEY 16': a part of the observation, and how many numbers each of its choices becomes",
        TT_LAYER_EMBED, TT_NN_NONE, s_embed},
};

static tt_status_t s_unknown(const reader_t *self, const char *text)
{
    const char *names[TT_COUNT(s_words) + TT_COUNT(s_known)];
    size_t count = 0;
    for (size_t i = 0; i < TT_COUNT(s_words); i++)
        names[count++] = s_words[i].name;
    for (size_t i = 0; i < TT_COUNT(s_known); i++)
        names[count++] = s_known[i].name;
    const char *near = tt_nearest(text, names, count);
    char list[256] = "";
    for (size_t i = 0; i < count; i++) {
        const size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s",
            i == TT_COUNT(s_words) ? "; whole encoders are "
            : i                    ? ", "
                                   : "",
            names[i]);
    }
    return tt_err(TT_INVALID, "layer %u: '%s' is no layer%s%s%s: layers are %s", self->number, text,
        near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "", list);
}

/*  A whole encoder by its name, as if its list stood there. */
static tt_status_t s_insert(reader_t *self, const known_t *known)
{
    const char *after = self->at;
    const uint32_t number = self->number;
    self->at = known->words;
    const tt_status_t status = s_list(self);
    TT_CHECK(status != TT_OK || !*self->at);
    self->at = after;
    self->number = number;
    return status;
}

static tt_status_t s_begun(reader_t *self)
{
    tt_layer_t layer = {.kind = self->word->kind, .activation = self->word->activation};
    if (tt_layer_looks(layer.kind))
        layer.stride[0] = layer.stride[1] = 1;
    if (layer.kind != TT_LAYER_RESIDUAL) {
        TT_TRY(self->word->read(self, &layer));
        return s_push(self, &layer);
    }
    const uint32_t first = self->spec->layers;
    TT_TRY(s_push(self, &layer));
    return s_residual(self, first);
}

static tt_status_t s_layer(reader_t *self)
{
    char text[WORD_MAX + 1];
    self->number++;
    s_peek(self, text);
    if (!*text)
        return tt_err(TT_INVALID, "layer %u: a layer expected%s%.20s%s", self->number, *self->at ? " at '" : "",
            self->at, *self->at ? "'" : "");
    s_pass(self);
    for (size_t i = 0; i < TT_COUNT(s_known); i++)
        if (strcmp(text, s_known[i].name) == 0)
            return s_insert(self, &s_known[i]);
    for (size_t i = 0; i < TT_COUNT(s_words); i++)
        if (strcmp(text, s_words[i].name) == 0) {
            self->word = &s_words[i];
            return s_begun(self);
        }
    return s_unknown(self, text);
}

static tt_status_t s_list(reader_t *self)
{
    if (self->nested == NESTED_MAX)
        return tt_err(TT_INVALID, "layer %u: brackets in more than %d others", self->number, NESTED_MAX - 1);
    self->nested++;
    do
        TT_TRY(s_layer(self));
    while (s_skip(self, ','));
    self->nested--;
    return TT_OK;
}

/*  All of the text, as layers of spec. */
static tt_status_t s_read(const tt_train_cfg_t *cfg, const tt_columns_t *columns, tt_net_spec_t *spec)
{
    reader_t self = {.at = cfg->network.encoder, .columns = columns, .spec = spec};
    TT_TRY(s_list(&self));
    if (!s_next(&self))
        return TT_OK;
    return tt_err(TT_INVALID, "layer %u: a comma or the end expected at '%.20s'", self.number, self.at);
}

/* ---- what it reads ---------------------------------------------------------------------------------------------------- */

static bool s_has(const tt_net_spec_t *spec, tt_layer_kind_t kind)
{
    for (uint32_t l = 0; l < spec->layers; l++)
        if (spec->layer[l].kind == kind)
            return true;
    return false;
}

static bool s_is_flat(const tt_column_t *column)
{
    return column->rank != 2 && column->rank != 3;
}

static tt_status_t s_named(const char *key, const tt_columns_t *columns, uint32_t *out)
{
    char parts[512];
    *out = s_find(columns, key);
    if (*out == columns->obs_count)
        return tt_err(
            TT_INVALID, "the observation has no part '%s'; it has %s", key, s_parts(columns, parts, sizeof parts));
    const tt_column_t *column = &columns->at[*out];
    if (s_is_flat(column) || column->choice || !(tt_column_is_bytes(column) || column->dtype == TT_F32))
        return tt_err(TT_INVALID,
            "'%s' is no picture, which is a box of uint8, bool or float32 with two or three dimensions; the "
            "observation "
            "has %s",
            key, s_parts(columns, parts, sizeof parts));
    return TT_OK;
}

static tt_status_t s_only(const tt_columns_t *columns, uint32_t *out)
{
    char parts[512];
    uint32_t count = 0;
    for (uint32_t c = 0; c < columns->obs_count; c++)
        if (tt_column_is_bytes(&columns->at[c]) && !s_is_flat(&columns->at[c])) {
            count++;
            *out = c;
        }
    if (count == 1)
        return TT_OK;
    return tt_err(TT_INVALID, "%s to convolve: the observation has %s; network.picture: KEY names one",
        count ? "more than one picture" : "no picture of bytes (uint8 or bool, two or three dimensions)",
        s_parts(columns, parts, sizeof parts));
}

static bool s_looks(const tt_net_spec_t *spec)
{
    for (uint32_t l = 0; l < spec->layers; l++)
        if (tt_layer_looks(spec->layer[l].kind))
            return true;
    return false;
}

static tt_status_t s_picture(
    const tt_train_cfg_t *cfg, const tt_columns_t *columns, const tt_net_spec_t *spec, uint32_t *out)
{
    *out = columns->obs_count;
    if (*cfg->network.picture)
        return s_named(cfg->network.picture, columns, out);
    return s_looks(spec) ? s_only(columns, out) : TT_OK;
}

/*  Of `frames` that lie side by side. */
static void s_put_shape(tt_tower_t *tower, const tt_column_t *picture, uint32_t frames)
{
    const uint32_t *shape = picture->shape;
    const bool first = picture->rank == 3 && shape[0] < shape[2] && shape[0] <= shape[1];
    const uint32_t *area = shape + (first ? 1 : 0), channels = picture->rank == 2 ? 1 : first ? shape[0] : shape[2];
    tower->height = area[0];
    tower->width = area[1];
    tower->channels = frames * channels;
    tower->planes = first ? tower->channels : frames;
}

/*  No picture, and `embed` before any layer that would need something to come to it. */
static bool s_is_blank(const tt_net_spec_t *spec, const tt_columns_t *columns, uint32_t picture)
{
    uint32_t l = 0;
    while (l < spec->layers && spec->layer[l].kind == TT_LAYER_CONCAT)
        l++;
    return picture == columns->obs_count && l < spec->layers && spec->layer[l].kind == TT_LAYER_EMBED;
}

static bool s_embeds(const tt_net_spec_t *spec, uint32_t part)
{
    for (uint32_t l = 0; l < spec->layers; l++)
        if (spec->layer[l].kind == TT_LAYER_EMBED && spec->layer[l].part == part)
            return true;
    return false;
}

/*  What nobody reads, behind the rest, unless the list has a word about that. */
static tt_status_t s_put_others(tt_net_spec_t *spec, const tt_columns_t *columns, uint32_t picture)
{
    reader_t self = {.spec = spec, .number = spec->layers};
    const bool whole = picture == columns->obs_count && !s_is_blank(spec, columns, picture);
    if (whole || s_has(spec, TT_LAYER_CONCAT))
        return TT_OK;
    for (uint32_t c = 0; c < columns->obs_count; c++) {
        const tt_layer_t layer = {.kind = TT_LAYER_CONCAT, .activation = TT_NN_NONE, .part = c};
        if (c != picture && !s_embeds(spec, c))
            TT_TRY(s_push(&self, &layer));
    }
    return TT_OK;
}

/*  Actor and critics that are trained apart see by encoders of their own, as Stable-Baselines3's do. */
static void s_put_before(const tt_train_cfg_t *cfg, tt_net_spec_t *spec, tt_tower_t *encoder)
{
    static const char *const names[] = {"actor_encoder", "critics_encoder"};
    if (!tt_actor_has_twins(&cfg->actor)) {
        tt_net_put_encoder(spec, encoder, !cfg->network.shared && cfg->actor.kind == TT_ACT_SAMPLE);
        return;
    }
    for (uint32_t group = 0; group < TT_COUNT(names); group++) {
        snprintf(encoder->name, sizeof encoder->name, "%s", names[group]);
        tt_net_put_encoder_of(spec, encoder, group);
    }
}

tt_status_t tt_encoder_put(const tt_train_cfg_t *cfg, const tt_columns_t *columns, tt_net_spec_t *spec)
{
    tt_tower_t tower = {.name = "encoder", .kind = TT_TOWER_ENCODER};
    uint32_t picture;
    TT_TRY(s_read(cfg, columns, spec));
    TT_TRY(s_picture(cfg, columns, spec, &picture));
    if (picture < columns->obs_count) {
        tower.part = picture;
        s_put_shape(&tower, &columns->at[picture], columns->stack.frames);
        spec->part[picture].divisor = (float)cfg->space.divisor;
    }
    tower.blank = s_is_blank(spec, columns, picture);
    TT_TRY(s_put_others(spec, columns, picture));
    tower.layers = spec->layers;
    s_put_before(cfg, spec, &tower);
    return TT_OK;
}

/*  Its layers alone: no network is needed to say whether the words make sense. */
tt_status_t tt_encoder_picture(const tt_train_cfg_t *cfg, const tt_columns_t *columns, uint32_t *column)
{
    tt_net_spec_t spec = {0};
    TT_TRY(s_read(cfg, columns, &spec));
    return s_picture(cfg, columns, &spec, column);
}

tt_status_t tt_encoder_check(const tt_train_cfg_t *cfg, const tt_columns_t *columns, const char **key)
{
    tt_net_spec_t spec = {0};
    uint32_t picture = 0;
    *key = "network.encoder";
    if (!tt_has_encoder(cfg))
        return TT_OK;
    TT_TRY(s_read(cfg, columns, &spec));
    if (*cfg->network.picture)
        *key = "network.picture";
    TT_TRY(s_picture(cfg, columns, &spec, &picture));
    *key = "network.encoder";
    return s_put_others(&spec, columns, picture);
}
