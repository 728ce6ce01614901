#include "cli/setup.h"
#include "cli/leftovers.h"
#include "cli/recipes.h"
#include "collector/gym/gym.h"
#include "collector/registry.h"
#include "collector/vec.h"
#include "common/base/limits.h"
#include "common/base/mem.h"
#include "common/config/synonyms.h"
#include "common/job/encoder.h"
#include "common/job/fit.h"
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct tt_setup {
    const char *file; /* the config's, borrowed while it is read */
    tt_config_t *config;
    tt_train_cfg_t train;
    const tt_env_ops_t *env;
    const tt_algorithm_t *algorithm;
    void *algorithm_cfg;
    bool resolved; /* what the program fills in stands in the config that was read */
    tt_buf_t yaml, upgraded;
    char *note;
};

/*  The keys that decide what the rest can be; tt_train_fields claims them again, with the rest. */
#define AT(member)   offsetof(tt_train_cfg_t, member)
#define ROOM(member) sizeof(((tt_train_cfg_t *)NULL)->member)
static const tt_cfg_field_t s_names[] = {
    {"name", TT_CFG_STR, AT(name), "", .size = ROOM(name), .help = "of the run"},
    {"env", TT_CFG_STR, AT(env), NULL, .size = ROOM(env), .help = "write 'env: CartPole-v1'; 'tutti envs' lists them"},
    {"env.args", TT_CFG_MAP, AT(env_args), "{}", .help = "what the environment takes"},
    {"env.python", TT_CFG_STR, AT(gym.python), "", .size = ROOM(gym.python), .help = "the interpreter", .quiet = true},
    {"env.path", TT_CFG_STR, AT(gym.path), "", .size = ROOM(gym.path), .help = "folders of modules", .quiet = true},
    {"env.workers", TT_CFG_U32, AT(gym.workers), "0", 0, 1024, .help = "worker processes", .quiet = true},
    {"env.wrappers", TT_CFG_TEXTS, AT(gym.wrappers), "", .help = "wrappers, the innermost first", .quiet = true},
    {"env.mask", TT_CFG_STR, AT(gym.mask), "", .size = ROOM(gym.mask), .help = "masks of choices", .quiet = true},
    {"env.frames.screen_size", TT_CFG_U32, AT(frames.screen_size), "0", 0, 1024, .help = "pixels", .quiet = true},
    {"env.frames.frame_skip", TT_CFG_U32, AT(frames.frame_skip), "4", 1, 64, .help = "frames", .quiet = true},
    {"env.frames.noop_max", TT_CFG_U32, AT(frames.noop_max), "30", 0, 1024, .help = "frames", .quiet = true},
    {"env.frames.terminal_on_life_loss", TT_CFG_BOOL, AT(frames.terminal_on_life_loss), "false",
        .help = "a life is all", .quiet = true},
    {"env.frames.clip_reward", TT_CFG_BOOL, AT(frames.clip_reward), "false", .help = "signs of rewards", .quiet = true},
    {"space.env_saves", TT_CFG_STR, AT(space.env_saves), "", .size = ROOM(space.env_saves),
        .help = "how an env is saved"},
    {"env.stack", TT_CFG_U32, AT(stack.frames), "1", 1, TT_STACK_MAX, .help = "frames that an observation shows"},
    {"algorithm.name", TT_CFG_STR, AT(algorithm.name), "ppo", .size = ROOM(algorithm.name),
        .help = "'tutti algorithms' lists them"},
    {0},
};

/*  A failure that belongs to a key, as a fault of the configuration. */
static tt_status_t s_blame(const tt_config_t *config, const char *key, tt_status_t status)
{
    if (status == TT_OK)
        return TT_OK;
    tt_err_wrap(status, "%s: %s", tt_config_origin(config, key), key);
    return TT_CONFIG;
}

/*  ---- the env: what it decides, and what it takes ---- */

/*  Where a relative path of the config starts: its file's directory; of the command line, and of standard input: here.
 *  Only what stands in a file has a line. */
static char *s_base(const tt_setup_t *self)
{
    const char *slash = strrchr(self->file, '/');
    const bool in_file = strchr(tt_config_origin(self->config, "env"), ':') != NULL;
    char *directory = in_file && slash ? tt_sprintf("%.*s/", (int)(slash - self->file), self->file) : tt_strdup("./");
    char *base = realpath(directory, NULL);
    free(directory);
    return base ? base : tt_strdup(".");
}

/*  What the path means, though nothing may be there: with directories named, for messages. */
static char *s_join(const tt_setup_t *self, const char *path)
{
    if (path[0] == '/')
        return tt_strdup(path);
    char *base = s_base(self), *joined = tt_sprintf("%s/%s", base, strncmp(path, "./", 2) == 0 ? path + 2 : path);
    free(base);
    return joined;
}

static tt_status_t s_no_object(const char *env, const char *joined)
{
    const bool relative = strcmp(joined, env) != 0;
    tt_err_errno(TT_NOT_FOUND, "%s%s%s", relative ? env : "", relative ? " is looked for at " : "", joined);
    if (!gym_could_be(env))
        return TT_NOT_FOUND;
    return tt_err(TT_NOT_FOUND, "%s; Gymnasium's is called 'gym:%s' here", tt_err_text(), env);
}

/*  A plug-in is found from any directory, and by a resumed run, once its path is absolute. */
static tt_status_t s_absolute(const tt_setup_t *self, tt_train_cfg_t *names)
{
    if (!tt_env_is_object(names->env))
        return TT_OK;
    char *joined = s_join(self, names->env), *path = realpath(joined, NULL);
    tt_status_t status = TT_OK;
    if (!path)
        status = s_no_object(names->env, joined);
    else if (strlen(path) >= sizeof names->env)
        status = tt_err(TT_INVALID, "%s: the path is too long", path);
    else
        snprintf(names->env, sizeof names->env, "%s", path);
    free(joined);
    free(path);
    return s_blame(self->config, "env", status);
}

/*  What only Python's environments are made with. */
static tt_status_t s_refuse_elsewhere(const tt_setup_t *self, const char *env)
{
    for (const tt_cfg_field_t *field = s_names; field->key; field++) {
        const char *origin = tt_config_origin(self->config, field->key);
        if (field->quiet && !gym_is(env) && strcmp(origin, "default") != 0)
            return tt_err(TT_CONFIG,
                "%s: %s: only environments of Gymnasium's have it, and %s is none; those are "
                "written gym:ID",
                origin, field->key, env);
    }
    return TT_OK;
}

/*  What Gymnasium's environments are made with, as it will do from any directory: the interpreter's path (as it stands: a link of
 *  a virtual environment must not be followed), and where a module of one's own is looked for. */
static tt_status_t s_settle_gym(tt_setup_t *self, tt_train_cfg_t *names)
{
    TT_TRY(s_refuse_elsewhere(self, names->env));
    char key[] = "env.python", *origin = tt_strdup(tt_config_origin(self->config, key));
    char here[4096];
    if (strchr(names->gym.python, '/') && names->gym.python[0] != '/') {
        char *path = s_join(self, names->gym.python);
        tt_config_put(self->config, key, path, origin);
        free(path);
    }
    free(origin);
    if (gym_is(names->env) && strchr(names->env + 4, ':') && !names->gym.path[0]) {
        char *base = s_base(self);
        const bool apart = getcwd(here, sizeof here) && strcmp(here, base) != 0;
        char *both = tt_sprintf("%s%s%s", base, apart ? ":" : "", apart ? here : "");
        tt_config_put(self->config, "env.path", both, "where it was started");
        free(both);
        free(base);
    }
    return tt_config_claim(self->config, s_names, names);
}

/*  "CartPole-v1" of CartPole-v1 and gym:CartPole-v1, "my_env" of /x/my_env.so; other letters than a name may have become '-'. */
static void s_default_name(tt_train_cfg_t *names)
{
    const char *last = names->env + strlen(names->env);
    while (last > names->env && last[-1] != '/' && (last[-1] != ':' || tt_env_is_object(names->env)))
        last--;
    snprintf(names->name, sizeof names->name, "%.63s", last);
    const size_t length = strlen(names->name);
    if (length > 3 && strcmp(names->name + length - 3, ".so") == 0)
        names->name[length - 3] = '\0';
    for (char *c = names->name; *c; c++)
        if (!isalnum((unsigned char)*c) && *c != '_' && *c != '.')
            *c = '-';
    if (!isalnum((unsigned char)names->name[0]))
        names->name[0] = 'r';
}

static void s_put_whole(tt_config_t *config, const char *key, uint64_t value, const char *origin)
{
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    tt_config_put(config, key, text, origin);
}

static tt_status_t s_put_words(tt_config_t *config, const char *key, const tt_space_t *space, const char *origin)
{
    tt_buf_t words;
    tt_buf_init(&words, TT_SPACE_TEXT_MAX - 1);
    tt_status_t status = tt_space_text(space, &words);
    if (status == TT_OK)
        tt_config_put(config, key, tt_buf_text(&words), origin);
    else
        status = tt_err(TT_INVALID, "%s: its %s in words has more than %d bytes", origin, key, TT_SPACE_TEXT_MAX - 1);
    tt_buf_free(&words);
    return status;
}

static tt_status_t s_put_space(tt_config_t *config, const tt_env_ops_t *env, uint32_t frames)
{
    char origin[160], threshold[40] = "null";
    snprintf(origin, sizeof origin, "environment %.127s", env->id);
    if (tt_vec_save_size(env, frames) > TT_ENV_STATE_MAX)
        return tt_err(TT_INVALID, "a saved state of %s with %u frames is more than %d MiB: lower env.stack", env->id,
            frames, TT_ENV_STATE_MAX >> 20);
    TT_TRY(s_put_words(config, "space.obs", &env->obs, origin));
    TT_TRY(s_put_words(config, "space.action", &env->action, origin));
    tt_config_put(config, "space.mask", env->mask ? "true" : "false", origin);
    if (gym_is(env->id))
        tt_config_put(config, "space.env_saves", gym_settle(env), origin);
    s_put_whole(config, "space.env_state", tt_vec_save_size(env, frames), origin);
    if (!isnan(env->reward_threshold))
        snprintf(threshold, sizeof threshold, "%.17g", env->reward_threshold);
    tt_config_put(config, "space.threshold", threshold, origin);
    return TT_OK;
}

/* ---- the env: which of its keys a failure speaks of --------------------------------------------------------------------- */

/*  As a word of its own. */
static bool s_speaks_of(const char *text, size_t length, const char *word)
{
    const char *const end = text + length;
    const size_t n = strlen(word);
    for (const char *at = text; (at = memmem(at, (size_t)(end - at), word, n)); at++) {
        const bool begins = at == text || !(isalnum((unsigned char)at[-1]) || at[-1] == '_');
        const bool ends = at + n == end || !(isalnum((unsigned char)at[n]) || at[n] == '_');
        if (begins && ends)
            return true;
    }
    return false;
}

/*  The only argument that is spoken of. Gymnasium names all of them behind what it says of one. */
static bool s_find_arg(const tt_cfg_map_t *args, const char *text, char *key, size_t size)
{
    const char *all = strstr(text, " was raised from the environment creator");
    const size_t length = all ? (size_t)(all - text) : strlen(text);
    uint32_t found = 0;
    for (uint32_t i = 0; i < args->count; i++)
        if (s_speaks_of(text, length, args->at[i].key)) {
            snprintf(key, size, "env.args.%s", args->at[i].key);
            found++;
        }
    return found == 1;
}

/*  A key below the env's that stands somewhere, and in the text. */
static bool s_find_key(const tt_config_t *config, const char *text, char *key, size_t size)
{
    static const char *const keys[] = {"env.python", "env.path", "env.workers", "env.wrappers", "env.mask"};
    for (size_t i = 0; i < TT_COUNT(keys); i++)
        if (strstr(text, keys[i]) && strcmp(tt_config_origin(config, keys[i]), "default") != 0) {
            snprintf(key, size, "%s", keys[i]);
            return true;
        }
    return false;
}

/*  The first that the command line gave: it may be this one, and stands where nobody would look for it. */
static bool s_find_given(const tt_config_t *config, const tt_cfg_map_t *args, char *key, size_t size)
{
    for (uint32_t i = 0; i < args->count; i++) {
        snprintf(key, size, "env.args.%s", args->at[i].key);
        if (strcmp(tt_config_origin(config, key), "--set") == 0)
            return strcmp(tt_config_origin(config, "env"), "--set") != 0;
    }
    return false;
}

static tt_status_t s_blame_env(const tt_setup_t *self, const tt_cfg_map_t *args, tt_status_t status)
{
    char key[sizeof args->at[0].key + 16];
    if (status == TT_OK)
        return TT_OK;
    if (s_find_key(self->config, tt_err_text(), key, sizeof key) || s_find_arg(args, tt_err_text(), key, sizeof key))
        return s_blame(self->config, key, status);
    if (!s_find_given(self->config, args, key, sizeof key))
        return s_blame(self->config, "env", status);
    tt_err_wrap(status, "%s: env, with %s of --set", tt_config_origin(self->config, "env"), key);
    return TT_CONFIG;
}

/*  Only the env knows which values it takes, and which it must have: one is made with them. */
static tt_status_t s_try_args(const tt_setup_t *self, const tt_env_arg_t *args)
{
    if (!self->env->options)
        return TT_OK;
    TT_AUTO(tt_columns) columns = NULL;
    TT_AUTO(tt_vec) one = NULL;
    TT_TRY(tt_train_columns(&columns, &self->train));
    const tt_vec_cfg_t cfg = {.ops = self->env, .args = args, .columns = columns, .seed = self->train.seed, .count = 1};
    return tt_vec_new(&one, &cfg);
}

static tt_status_t s_check_args(const tt_setup_t *self)
{
    tt_env_arg_t args[TT_ENV_ARGS_MAX + 1];
    tt_env_args_of(args, &self->train);
    char key[sizeof self->train.env_args.at[0].key + 16] = "env";
    for (uint32_t i = 0; i < self->train.env_args.count; i++) {
        const tt_env_arg_t one[] = {args[i], {0}};
        snprintf(key, sizeof key, "env.args.%s", args[i].key);
        if (tt_env_check_args(self->env, one) != TT_OK)
            return tt_err_wrap(TT_CONFIG, "%s", tt_config_origin(self->config, key));
    }
    const tt_status_t status = s_try_args(self, args);
    return self->train.env_args.count == 1 ? s_blame(self->config, key, status)
                                           : s_blame_env(self, &self->train.env_args, status);
}

/*  How one of Gymnasium's is saved is asked next (s_put_space). */
static tt_status_t s_find_env(tt_setup_t *self, const tt_train_cfg_t *names)
{
    return gym_is(names->env) ? gym_find(&self->env, names, true) : tt_env_of(&self->env, names);
}

tt_status_t tt_setup_find_algorithm(const tt_algorithm_t **out, const char *name)
{
    const char *ours = tt_synonym_algorithm(name);
    if (ours)
        return tt_err(TT_NOT_FOUND, "no algorithm '%s'; here it is %s", name, ours);
    return tt_algorithm_find(out, name);
}

static tt_status_t s_resolve_env(tt_setup_t *self, tt_train_cfg_t *names)
{
    TT_TRY(s_blame_env(self, &names->env_args, s_find_env(self, names)));
    TT_TRY(s_blame(self->config, "algorithm.name", tt_setup_find_algorithm(&self->algorithm, names->algorithm.name)));
    if (tt_env_is_object(names->env)) {
        char *origin = tt_strdup(tt_config_origin(self->config, "env"));
        tt_config_put(self->config, "env", names->env, origin);
        free(origin);
    }
    if (!names->name[0]) {
        s_default_name(names);
        tt_config_put(self->config, "name", names->name, "env");
    }
    return s_blame_env(self, &names->env_args, s_put_space(self->config, self->env, names->stack.frames));
}

static tt_status_t s_resolve(tt_setup_t *self)
{
    tt_train_cfg_t names = {0};
    TT_TRY(tt_config_claim(self->config, s_names, &names));
    TT_TRY(s_settle_gym(self, &names));
    TT_TRY(s_absolute(self, &names));
    if (!gym_is(names.env))
        return s_resolve_env(self, &names);
    leftovers_watch();
    const tt_status_t status = s_resolve_env(self, &names);
    leftovers_end();
    return status;
}

/*  ---- the rest ---- */

/*  So that an option of another algorithm is said to be one. */
static void s_name_others(tt_setup_t *self)
{
    size_t count;
    const tt_algorithm_t *const *algorithms = tt_algorithms(&count);
    for (size_t i = 0; i < count; i++)
        if (algorithms[i] != self->algorithm)
            tt_config_foreign(self->config, algorithms[i]->fields, algorithms[i]->name, self->algorithm->name);
}

/*  The algorithm's options about the same: those that begin with the same word. "" = there is none. */
static char *s_options_about(const tt_setup_t *self, const char *what)
{
    static const char section[] = "algorithm.";
    char *options = tt_strdup("");
    const size_t word = strcspn(what, "_"), skip = strlen(section);
    for (const tt_cfg_field_t *field = self->algorithm->fields; field->key; field++) {
        if (strncmp(field->key, section, skip) != 0 || strncmp(field->key + skip, what, word) != 0)
            continue;
        if (field->key[skip + word] && field->key[skip + word] != '_')
            continue; /* a longer word */
        char *more = tt_sprintf("%s%s%s", options, *options ? ", " : "", field->key);
        free(options);
        options = more;
    }
    return options;
}

static tt_status_t s_refuse_by_hand(const tt_setup_t *self, const char *key, const char *origin)
{
    char *options = s_options_about(self, strchr(key, '.') + 1);
    const tt_status_t status =
        *options ? tt_err(TT_CONFIG, "%s: %s is filled in from the algorithm; set %s", origin, key, options)
                 : tt_err(TT_CONFIG,
                       "%s: %s is filled in from the algorithm: algorithm.name decides, and %s has no option for it",
                       origin, key, self->algorithm->name);
    free(options);
    return status;
}

/*  actor.* is the algorithm's to say. Where a program wrote the config it is what the settings came to then. */
static tt_status_t s_check_by_hand(const tt_setup_t *self)
{
    for (const tt_cfg_field_t *field = tt_train_fields; field->key; field++) {
        const char *origin = tt_config_origin(self->config, field->key);
        const bool there = strncmp(field->key, "actor.", 6) == 0 && strcmp(origin, "default") != 0;
        if (there && (!self->resolved || strcmp(origin, "--set") == 0))
            return s_refuse_by_hand(self, field->key, origin);
    }
    return TT_OK;
}

static void s_put_part(tt_config_t *config, const char *key, double value, const char *origin)
{
    char text[40];
    snprintf(text, sizeof text, "%.17g", value);
    tt_config_put(config, key, text, origin);
}

/*  Only the env knows its bounds. What an algorithm always does is no fault of an option. */
static tt_status_t s_check_squash(const tt_setup_t *self, const tt_actor_t *actor)
{
    const bool always = tt_actor_has_twins(actor);
    const char *key = always ? "algorithm.name" : "algorithm.squash";
    return tt_err_wrap(tt_vec_check_squash(self->env), "%s: %s%s%s", tt_config_origin(self->config, key), key,
        always ? ": " : "", always ? self->algorithm->name : "");
}

/*  How collectors act, which the algorithm says once its options are known. */
static tt_status_t s_put_actor(tt_setup_t *self)
{
    static const char *const kinds[] = {
        [TT_ACT_SAMPLE] = "sample", [TT_ACT_ARGMAX] = "argmax", [TT_ACT_SQUASHED] = "squashed", [TT_ACT_MEAN] = "mean"};
    const tt_actor_t actor = tt_algorithm_shape(self->algorithm, &self->train, self->algorithm_cfg).actor;
    char origin[64];
    TT_TRY(s_check_by_hand(self));
    snprintf(origin, sizeof origin, "algorithm %s", self->algorithm->name);
    tt_config_put(self->config, "actor.kind", kinds[actor.kind], origin);
    if (actor.squash)
        TT_TRY(s_check_squash(self, &actor));
    tt_config_put(self->config, "actor.squash", actor.squash ? "true" : "false", origin);
    tt_config_put(self->config, "actor.state_std", actor.state_std ? "true" : "false", origin);
    tt_config_put(self->config, "actor.dueling", actor.dueling ? "true" : "false", origin);
    s_put_whole(self->config, "actor.quantiles", actor.quantiles, origin);
    s_put_whole(self->config, "actor.atoms", actor.atoms, origin);
    s_put_part(self->config, "actor.v_min", (double)actor.v_min, origin);
    s_put_part(self->config, "actor.v_max", (double)actor.v_max, origin);
    s_put_part(self->config, "actor.noisy", (double)actor.noisy, origin);
    s_put_part(self->config, "actor.epsilon", actor.epsilon, origin);
    s_put_part(self->config, "actor.epsilon_end", actor.epsilon_end, origin);
    s_put_whole(self->config, "actor.epsilon_rows", actor.epsilon_rows, origin);
    s_put_whole(self->config, "actor.random_rows", actor.random_rows, origin);
    s_put_part(self->config, "actor.sigma", (double)actor.sigma, origin);
    s_put_part(self->config, "actor.epsilon_power", (double)actor.epsilon_power, origin);
    if (strcmp(actor.groups, self->train.actor.groups) != 0)
        tt_config_put(self->config, "actor.groups", actor.groups, origin);
    return tt_config_claim(self->config, tt_train_fields, &self->train);
}

/*  What an encoder divides the picture's bytes by, so that they lie within 0 .. 1: bounds are not in the space's words. */
static uint32_t s_divisor(const tt_space_t *picture)
{
    const bool bytes = picture->kind == TT_SPACE_BOX && picture->dtype == TT_U8;
    const uint32_t bounds = !picture->high ? 0 : picture->same_bounds ? 1 : tt_space_elements(picture);
    for (uint32_t i = 0; i < bounds; i++)
        if (picture->high[i] != 255)
            return 1;
    return bytes ? 255 : 1;
}

/*  Zeros stand for an observation, so one must be allowed to be that: Gymnasium would take the bound that is nearest. */
static tt_status_t s_check_pad(const tt_setup_t *self)
{
    const tt_space_t *leaf[TT_COLUMNS_MAX];
    const uint32_t leaves = tt_space_leaves(&self->env->obs, leaf, TT_COLUMNS_MAX);
    if (self->train.stack.frames == 1 || self->train.stack.pad != TT_PAD_ZERO)
        return TT_OK;
    for (uint32_t l = 0; l < leaves; l++) {
        const uint32_t bounds = leaf[l]->kind != TT_SPACE_BOX ? 0
                                : leaf[l]->same_bounds        ? 1
                                                              : tt_space_elements(leaf[l]);
        for (uint32_t i = 0; i < bounds; i++)
            if ((leaf[l]->low && leaf[l]->low[i] > 0) || (leaf[l]->high && leaf[l]->high[i] < 0))
                return s_blame(self->config, "env.stack_pad",
                    tt_err(TT_INVALID, "zeros are outside of what %s observes, within [%g, %g]: take 'reset'",
                        self->env->id, leaf[l]->low ? leaf[l]->low[i] : -(double)INFINITY,
                        leaf[l]->high ? leaf[l]->high[i] : (double)INFINITY));
    }
    return TT_OK;
}

/*  What is wrong with the encoder is said later, with the rest (tt_train_fit). */
static tt_status_t s_put_divisor(tt_setup_t *self)
{
    const tt_space_t *leaf[TT_COLUMNS_MAX];
    uint32_t picture = TT_COLUMNS_MAX;
    char origin[160];
    TT_AUTO(tt_columns) columns = NULL;
    TT_TRY(tt_train_columns(&columns, &self->train));
    if (!tt_has_encoder(&self->train) || tt_encoder_picture(&self->train, columns, &picture) != TT_OK)
        picture = TT_COLUMNS_MAX;
    const bool there = picture < tt_space_leaves(&self->env->obs, leaf, TT_COLUMNS_MAX);
    snprintf(origin, sizeof origin, "environment %.127s", self->env->id);
    s_put_whole(self->config, "space.divisor", there ? s_divisor(leaf[picture]) : 1, origin);
    return TT_OK;
}

/*  Is it for the program to choose? Not where a program chose before. */
static bool s_is_open(const tt_setup_t *self, const char *key)
{
    return !self->resolved && strcmp(tt_config_origin(self->config, key), "default") == 0;
}

/*  An observation that is a picture is read as one, unless it is too small for that. */
static tt_status_t s_put_encoder(tt_setup_t *self)
{
    TT_AUTO(tt_columns) columns = NULL;
    TT_TRY(tt_train_columns(&columns, &self->train));
    if (tt_train_could_see(&self->train, columns, "nature"))
        tt_config_put(self->config, "network.encoder", "nature", "default for pictures");
    return tt_config_claim(self->config, tt_train_fields, &self->train);
}

/*  Units of nothing: somebody forgot to say what has them. Who says `rnn: none` to a config that has them knows it. */
static tt_status_t s_check_rnn_size(const tt_setup_t *self)
{
    if (self->resolved || !s_is_open(self, "network.rnn") || s_is_open(self, "network.rnn_size"))
        return TT_OK;
    return s_blame(self->config, "network.rnn_size",
        tt_err(TT_INVALID, "network.rnn is none: nothing has these units; say lstm or gru"));
}

/*  An encoder, or a layer that remembers, is enough, and so is one of it; but critics beside an action need layers behind it. */
static tt_status_t s_put_network(tt_setup_t *self)
{
    if (s_is_open(self, "network.encoder"))
        TT_TRY(s_blame(self->config, "env", s_put_encoder(self)));
    TT_TRY(s_blame(self->config, "env", s_put_divisor(self)));
    TT_TRY(s_check_rnn_size(self));
    const bool encoder = tt_has_encoder(&self->train), before = encoder || self->train.network.rnn != TT_RNN_NONE;
    const char *origin = encoder ? "default with network.encoder" : "default with network.rnn";
    if (before && !tt_actor_has_twins(&self->train.actor) && s_is_open(self, "network.hidden"))
        tt_config_put(self->config, "network.hidden", "[]", origin);
    if (before && self->train.actor.kind == TT_ACT_SAMPLE && s_is_open(self, "network.shared"))
        tt_config_put(self->config, "network.shared", "true", origin);
    return tt_config_claim(self->config, tt_train_fields, &self->train);
}

static tt_status_t s_claim(tt_setup_t *self)
{
    s_name_others(self);
    self->algorithm_cfg = tt_new0(self->algorithm->cfg_size);
    TT_TRY(tt_config_claim(self->config, tt_train_fields, &self->train));
    TT_TRY(tt_config_claim(self->config, self->algorithm->fields, self->algorithm_cfg));
    TT_TRY(tt_config_finish(self->config));
    TT_TRY(s_put_actor(self));
    TT_TRY(s_put_network(self));
    TT_TRY(tt_train_check(self->config, &self->train));
    TT_TRY(tt_train_fit(self->config, &self->train));
    TT_TRY(s_check_pad(self));
    TT_TRY(s_check_args(self));
    TT_TRY(tt_algorithm_check(self->algorithm, self->config, &self->train, self->algorithm_cfg));
    return tt_config_dump(self->config, &self->yaml, false);
}

/*  What has options of its own; NULL: not given. */
typedef struct {
    const char *env, *seed, *name;
} asked_t;

/*  path "": a config without a line. */
static tt_status_t s_fill(
    tt_setup_t *self, const char *path, bool old, const asked_t *asked, const char *const *sets, size_t count)
{
    self->file = path;
    TT_TRY(*path ? tt_config_load(&self->config, path) : tt_config_parse(&self->config, "", 0, "defaults"));
    tt_config_upgrade_spaces(self->config);
    self->resolved = strcmp(tt_config_origin(self->config, "space.obs"), "default") != 0;
    if (old)
        TT_TRY(tt_config_upgrade(self->config, &self->upgraded));
    for (size_t i = 0; i < count; i++)
        TT_TRY(tt_config_set(self->config, sets[i]));
    if (asked->seed)
        TT_TRY(tt_config_set_by(self->config, "--seed", "seed", asked->seed));
    if (asked->name)
        TT_TRY(tt_config_set_by(self->config, "--name", "name", asked->name));
    if (asked->env)
        tt_config_put(self->config, "env", asked->env, *path ? "--env" : "command line");
    TT_TRY(s_resolve(self));
    return s_claim(self);
}

static tt_status_t s_new(
    tt_setup_t **self_p, const char *path, bool old, const asked_t *asked, const char *const *sets, size_t count)
{
    tt_setup_t *self = tt_new0(sizeof *self);
    tt_buf_init(&self->yaml, TT_CONFIG_TEXT_MAX);
    tt_buf_init(&self->upgraded, TT_CONFIG_TEXT_MAX);
    const tt_status_t status = s_fill(self, path, old, asked, sets, count);
    if (status == TT_OK)
        *self_p = self;
    else
        tt_setup_destroy(&self);
    return status;
}

tt_status_t tt_setup_new(tt_setup_t **self_p, const char *path, const char *const *sets, size_t count)
{
    return s_new(self_p, path, false, &(asked_t){0}, sets, count);
}

void tt_setup_destroy(tt_setup_t **self_p)
{
    tt_setup_t *self = *self_p;
    *self_p = NULL;
    if (!self)
        return;
    tt_config_destroy(&self->config);
    tt_buf_free(&self->yaml);
    tt_buf_free(&self->upgraded);
    free(self->algorithm_cfg);
    free(self->note);
    free(self);
}

/*  The last one given, NULL when none is or the command has no such option. */
static const char *s_last(const tt_args_t *args, const char *name)
{
    const char *last = NULL;
    for (size_t n = 0; tt_arg_nth(args, name, n); n++)
        last = tt_arg_nth(args, name, n);
    return last;
}

/*  The environment that the command line asks for: --env, or what stands in the config's place. A path is one from here,
 *  not from where the config lies. The caller frees; NULL: none is asked for. */
static char *s_env_of(const tt_args_t *args, const recipe_t *recipe)
{
    const char *env = s_last(args, "env");
    if (!env && !*recipe->env)
        return NULL;
    env = env ? env : recipe->env;
    char *path = recipe_is_object(env) ? realpath(env, NULL) : NULL;
    return path ? path : tt_strdup(env);
}

/*  Of a bundled config's options, with another algorithm than its own: there may be one with that. */
static void s_hint(const recipe_t *recipe, const char *const *sets, size_t count, tt_status_t status)
{
    static const char key[] = "algorithm.name=";
    char name[256];
    const char *algorithm = NULL;
    for (size_t i = 0; i < count; i++)
        if (strncmp(sets[i], key, sizeof key - 1) == 0)
            algorithm = sets[i] + sizeof key - 1;
    if (!algorithm || !recipe_beside(recipe, algorithm, name))
        return;
    char *why = tt_strdup(tt_err_text());
    tt_err(status, "%s; with %s there is the bundled config %s", why, algorithm, name);
    free(why);
}

/*  An environment stands in the config's place: another one beside it would be trained by the settings, and to the goal, of the first. */
static tt_status_t s_check_env(const tt_args_t *args, const char *operand)
{
    static const char key[] = "env=";
    const char *option = s_last(args, "env"), *other = NULL;
    if (option && strcmp(option, operand) != 0)
        return tt_err(TT_USAGE, "%s beside --env %s: give one environment, or a config with --env", operand, option);
    for (size_t n = 0; tt_arg_nth(args, "set", n); n++)
        if (strncmp(tt_arg_nth(args, "set", n), key, sizeof key - 1) == 0)
            other = tt_arg_nth(args, "set", n) + sizeof key - 1;
    if (other && *other != '{' && strcmp(other, operand) != 0) /* {args: ...} says more of this one */
        return tt_err(TT_USAGE, "%s beside --set env=%s: give one environment, or a config with --env", operand, other);
    return TT_OK;
}

tt_status_t tt_setup_from_args(tt_setup_t **self_p, const tt_args_t *args, const char *path, const char *first)
{
    recipe_t recipe;
    TT_TRY(recipe_find(&recipe, path));
    if (recipe.by_env)
        TT_TRY(s_check_env(args, path));
    size_t given = 0, count = 0;
    while (tt_arg_nth(args, "set", given))
        given++;
    const char **sets = tt_array0(given + 1, sizeof *sets);
    if (first)
        sets[count++] = first;
    for (size_t i = 0; i < given; i++)
        sets[count++] = tt_arg_nth(args, "set", i);
    char *env = s_env_of(args, &recipe);
    const asked_t asked = {env, s_last(args, "seed"), s_last(args, "name")};
    const tt_status_t status = s_new(self_p, recipe.path, false, &asked, sets, count);
    if (status == TT_OK)
        (*self_p)->note = tt_strdup(recipe.note);
    else if (recipe.hides)
        tt_err_wrap(status, "%s", recipe.note);
    else
        s_hint(&recipe, sets, count, status);
    free(env);
    free(sets);
    return status;
}

tt_status_t tt_setup_from_run(tt_setup_t **self_p, const tt_args_t *args, const char *path, bool old)
{
    size_t count = 0;
    while (args && tt_arg_nth(args, "set", count))
        count++;
    const char **sets = tt_array0(count + 1, sizeof *sets);
    for (size_t i = 0; i < count; i++)
        sets[i] = tt_arg_nth(args, "set", i);
    const tt_status_t status = s_new(self_p, path, old, &(asked_t){0}, sets, count);
    free(sets);
    return status;
}

const char *tt_setup_upgraded(const tt_setup_t *self)
{
    return tt_buf_text(&self->upgraded);
}

const char *tt_setup_note(const tt_setup_t *self)
{
    return self->note ? self->note : "";
}

const tt_train_cfg_t *tt_setup_train(const tt_setup_t *self)
{
    return &self->train;
}

const tt_env_ops_t *tt_setup_env(const tt_setup_t *self)
{
    return self->env;
}

const tt_algorithm_t *tt_setup_algorithm(const tt_setup_t *self)
{
    return self->algorithm;
}

const void *tt_setup_algorithm_cfg(const tt_setup_t *self)
{
    return self->algorithm_cfg;
}

const tt_config_t *tt_setup_config(const tt_setup_t *self)
{
    return self->config;
}

const char *tt_setup_yaml(const tt_setup_t *self)
{
    return tt_buf_text(&self->yaml);
}
