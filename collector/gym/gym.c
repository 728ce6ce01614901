#include "collector/gym/gym.h"
#include <ctype.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "collector/gym/cache.h"
#include "collector/gym/crew.h"
#include "collector/gym/describe.h"
#include "collector/gym/python.h"
#include "collector/gym/trial.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#define TT_LOG_COMPONENT "env"
#include "common/base/log.h"

static const char s_prefix[] = "gym:";

/*  One kind of env, as the config asks for it. */
typedef struct kind {
    tt_env_batch_ops_t ops; /* first: the table is handed out */
    json_t *asked;          /* id, args, wrappers, path: what every worker is told */
    json_t *question;       /* what an answer depends on            */
    gym_answer_t answer;    /* what the probe said, and a trial     */
    bool kept;              /* another process had it asked         */
    gym_trial_t trial;      /* it has begun                         */
    tt_space_t shown;       /* the screens that observations are made of; rank 0 = they are as they are shown */
    char *id, *summary, *python, *package;
    uint32_t workers;             /* wanted; 0 = as many as cores */
    char saves[TT_ENV_SAVES_MAX]; /* how states are saved; "" = nobody has tried */
    struct kind *next;
} kind_t;

/*  A range of them. */
typedef struct {
    const kind_t *kind;
    gym_rows_t rows;
    gym_crew_t crew;
    uint32_t slots;
    uint32_t next;    /* the worker that is looked at first */
    bool saved;       /* the rows of states are those of now */
    bool *loads;      /* [slots] whose state is to be loaded from its row */
    uint32_t loading; /* rounds of that which are under way */
} gym_t;

/*  What was found, for as long as the process lives. */
static pthread_mutex_t s_lock = PTHREAD_MUTEX_INITIALIZER;
static kind_t *s_kinds;

bool gym_is(const char *id)
{
    return strncmp(id, s_prefix, sizeof s_prefix - 1) == 0;
}

bool gym_could_be(const char *id)
{
    const char *version = strrchr(id, '-');
    if (gym_is(id) || !isalnum((unsigned char)id[0]) || !version || version[1] != 'v' || !version[2])
        return false;
    return version[2 + strspn(version + 2, "0123456789")] == '\0';
}

/* ---- a range ------------------------------------------------------------------------------------------------------------ */

static void s_close(void *handle)
{
    gym_t *self = handle;
    gym_crew_end(&self->crew);
    gym_rows_free(&self->rows);
    free(self->loads);
    free(self);
}

static tt_status_t s_differs(const kind_t *kind)
{
    gym_cache_forget(kind->question);
    if (!kind->kept)
        return tt_err(TT_INTERNAL, "its spaces are others each time that it is made");
    return tt_err(TT_INTERNAL, "its spaces are not those that were kept of it, which is forgotten now: start again");
}

static tt_status_t s_start(gym_t *self, uint32_t lo, bool loads)
{
    const kind_t *kind = self->kind;
    const tt_space_t *shown = kind->shown.rank ? &kind->shown : &kind->ops.env.obs;
    TT_TRY(gym_rows_init(&self->rows, &kind->ops.env, shown, self->slots, self->crew.room));
    TT_TRY(gym_crew_share(&self->crew, &self->rows, lo, self->slots, loads));
    for (uint32_t left = self->crew.playing, which; left; left--) {
        json_t *about = NULL;
        TT_TRY(gym_worker_wait(self->crew.worker, self->crew.hired, true, &which, &about));
        const bool same = gym_same_spaces(about, kind->answer.about);
        json_decref(about);
        if (!same)
            return s_differs(self->kind);
    }
    return TT_OK;
}

/*  A worker that was killed is a mishap; all else would come again. */
static bool s_said(tt_env_why_t *why, tt_status_t status)
{
    why->lost = status == TT_UNAVAILABLE;
    snprintf(why->text, sizeof why->text, "%s", tt_err_text());
    return false;
}

static bool s_open(void **out, const tt_env_open_t *how, tt_env_rows_t *rows, tt_env_why_t *why)
{
    const kind_t *kind = (const kind_t *)(const void *)how->ops;
    gym_t *self = tt_new0(sizeof *self), *from = how->from;
    self->kind = kind;
    self->rows.fd = -1;
    self->slots = how->count;
    self->loads = tt_array0(how->count, sizeof *self->loads);
    self->crew = (gym_crew_t){.id = kind->id, .python = kind->python, .package = kind->package, .asked = kind->asked};
    gym_crew_gather(&self->crew, gym_crew_size(kind->workers, how->count), how->count, from ? &from->crew : NULL);
    const tt_status_t status = s_start(self, how->first, from != NULL);
    if (status != TT_OK) {
        s_close(self);
        return s_said(why, status);
    }
    *rows = self->rows.rows;
    rows->shares = self->crew.shares;
    rows->share_end = self->crew.share_end;
    rows->loads_later = true;
    *out = self;
    return true;
}

/*  Who is gone by now is heard of where its answer is waited for. */
static bool s_send_share(void *handle, uint32_t which, tt_env_why_t *why)
{
    (void)why;
    gym_t *self = handle;
    const uint32_t playing = self->crew.playing;
    self->saved = false;
    gym_crew_dismiss(&self->crew);
    gym_worker_go(&self->crew.worker[which % playing], which / playing);
    return true;
}

static bool s_send(void *handle, tt_env_why_t *why)
{
    const gym_t *self = handle;
    for (uint32_t k = 0; k < self->crew.shares; k++)
        s_send_share(handle, k, why);
    return true;
}

static bool s_ready(void *handle)
{
    const gym_t *self = handle;
    return gym_worker_ready(self->crew.worker, self->crew.hired);
}

static bool s_recv(void *handle, uint32_t *first, uint32_t *count, tt_env_why_t *why)
{
    gym_t *self = handle;
    const tt_status_t status = gym_worker_wait(self->crew.worker, self->crew.hired, false, &self->next, NULL);
    if (status != TT_OK)
        return s_said(why, status);
    const gym_share_t *share = &self->crew.share[self->next][self->crew.worker[self->next].turn.came];
    self->next++;
    *first = share->first;
    *count = share->end - share->first;
    gym_rows_shrink(&self->rows, *first, *count);
    return true;
}

/* ---- states ------------------------------------------------------------------------------------------------------------- */

/*  All slots save in one round, since whoever asks for one asks for all. */
static bool s_save_all(gym_t *self, tt_env_why_t *why)
{
    uint32_t first, count;
    memset(self->rows.rows.todo, GYM_SAVE, self->slots);
    bool well = s_send(self, why);
    for (uint32_t left = self->slots; well && left; left -= well ? count : 0)
        well = s_recv(self, &first, &count, why);
    self->saved = well;
    return well;
}

static bool s_save(void *handle, uint32_t slot, void *bytes, tt_env_why_t *why)
{
    gym_t *self = handle;
    if (!self->saved && !s_save_all(self, why))
        return false;
    gym_rows_state(&self->rows, slot, bytes);
    return true;
}

static bool s_load(void *handle, uint32_t slot, const void *bytes, tt_env_why_t *why)
{
    (void)why;
    gym_t *self = handle;
    gym_rows_put_state(&self->rows, slot, bytes);
    self->saved = false;
    self->loads[slot] = true;
    return true;
}

/*  true: some slot of it loads. */
static bool s_order_loads(gym_t *self, gym_share_t share)
{
    bool any = false;
    for (uint32_t i = share.first; i < share.end; i++) {
        self->rows.rows.todo[i] = self->loads[i] ? GYM_LOAD : TT_ENV_REST;
        any |= self->loads[i];
        self->loads[i] = false;
    }
    return any;
}

/*  All workers load side by side: actions that are made again may take as long as they took at first. */
static void s_begin_loads(gym_t *self)
{
    const uint32_t playing = self->crew.playing;
    for (uint32_t k = 0; k < self->crew.shares; k++)
        if (s_order_loads(self, self->crew.share[k % playing][k / playing])) {
            gym_worker_go(&self->crew.worker[k % playing], k / playing);
            self->loading++;
        }
}

static bool s_loaded(void *handle, bool *all, uint64_t *moves, tt_env_why_t *why)
{
    gym_t *self = handle;
    if (!self->loading)
        s_begin_loads(self);
    tt_status_t status = TT_AGAIN;
    if (self->loading)
        status = gym_worker_wait_a_moment(self->crew.worker, self->crew.hired, &self->next);
    if (status != TT_OK && status != TT_AGAIN)
        return s_said(why, status);
    if (status == TT_OK) {
        self->loading--;
        self->crew.worker[self->next++].moves++;
    }
    *all = !self->loading;
    *moves = 0;
    for (uint32_t i = 0; i < self->crew.playing; i++)
        *moves += self->crew.worker[i].moves;
    return true;
}

static void s_set_saves(kind_t *self, const char *saves)
{
    snprintf(self->saves, sizeof self->saves, "%s", saves);
    json_t *state = gym_saves(saves);
    self->ops.env.save_size = (size_t)json_integer_value(json_object_get(state, "room"));
    const bool can = self->ops.env.save_size > 0;
    self->ops.save = can ? s_save : NULL;
    self->ops.load = can ? s_load : NULL;
    json_object_set_new(self->asked, "state", state);
}

/*  What a trial says, now or before. */
static void s_try(kind_t *self)
{
    gym_verdict_t *verdict = &self->answer.verdict;
    json_t *about = NULL;
    if (!verdict->saves[0]) {
        if (self->trial.started || gym_trial_open(&self->trial, true, &about) == TT_OK)
            gym_trial_run(&self->trial, self->answer.about, verdict);
        else
            *verdict = (gym_verdict_t){.saves = "no", .failed = true}; /* whoever plays it will say why */
        gym_trial_close(&self->trial);
        if (!verdict->failed)
            gym_cache_put(&self->answer, self->question);
        json_decref(about);
    }
    if (strcmp(verdict->saves, "no") == 0 && verdict->why[0])
        log_info("%s: its state cannot be saved, an environment that moves begins anew: %s", self->id, verdict->why);
}

const char *gym_settle(const tt_env_ops_t *env)
{
    kind_t *self = (kind_t *)(void *)(uintptr_t)env; /* of s_keep */
    pthread_mutex_lock(&s_lock);
    if (!self->saves[0]) {
        s_try(self);
        s_set_saves(self, self->answer.verdict.saves);
    }
    pthread_mutex_unlock(&s_lock);
    return self->saves;
}

/* ---- finding ------------------------------------------------------------------------------------------------------------ */

static json_t *s_args(const tt_cfg_map_t *args)
{
    json_t *out = json_array();
    for (uint32_t i = 0; i < args->count; i++) {
        json_t *pair = json_array();
        json_array_append_new(pair, tt_json_text(args->at[i].key));
        json_array_append_new(pair, tt_json_text(args->at[i].value));
        json_array_append_new(out, pair);
    }
    return out;
}

static json_t *s_wrappers(const tt_cfg_texts_t *texts)
{
    json_t *out = json_array();
    for (uint32_t i = 0; i < texts->count; i++)
        json_array_append_new(out, tt_json_text(texts->at[i]));
    return out;
}

/*  Folders divided by ':'. */
static json_t *s_path(const char *path)
{
    json_t *out = json_array();
    for (size_t length; *path; path += length + (path[length] == ':')) {
        length = strcspn(path, ":");
        if (length)
            json_array_append_new(out, json_stringn(path, length));
    }
    return out;
}

/*  What a worker makes of a game's frames; null: it plays the env as it is. */
static json_t *s_frames(const tt_train_cfg_t *cfg)
{
    if (!cfg->frames.screen_size)
        return json_null();
    return json_pack("{s:i, s:i, s:i, s:b, s:b}", "screen_size", (int)cfg->frames.screen_size, "frame_skip",
        (int)cfg->frames.frame_skip, "noop_max", (int)cfg->frames.noop_max, "terminal_on_life_loss",
        cfg->frames.terminal_on_life_loss, "clip_reward", cfg->frames.clip_reward);
}

static json_t *s_asked(const tt_train_cfg_t *cfg)
{
    json_t *out = json_object();
    json_object_set_new(out, "id", tt_json_text(cfg->env + sizeof s_prefix - 1));
    json_object_set_new(out, "args", s_args(&cfg->env_args));
    json_object_set_new(out, "wrappers", s_wrappers(&cfg->gym.wrappers));
    json_object_set_new(out, "frames", s_frames(cfg));
    json_object_set_new(out, "path", s_path(cfg->gym.path));
    json_object_set_new(out, "mask", tt_json_text(cfg->gym.mask));
    json_object_set_new(out, "state", gym_saves(cfg->space.env_saves));
    return out;
}

static kind_t *s_known(const json_t *asked, const char *python, uint32_t workers)
{
    pthread_mutex_lock(&s_lock);
    kind_t *at = s_kinds;
    while (at && !(at->workers == workers && strcmp(at->python, python) == 0 && json_equal(at->asked, asked)))
        at = at->next;
    pthread_mutex_unlock(&s_lock);
    return at;
}

/*  What was kept, if it says all that is wanted; else a worker says it, and waits for the trial where there will be one. */
static tt_status_t s_ask(kind_t *self, bool settles)
{
    self->question = gym_cache_question(self->asked, self->python, self->package);
    self->kept = gym_cache_get(&self->answer, self->question);
    if (self->kept && (self->answer.verdict.saves[0] || !settles))
        return TT_OK;
    json_decref(self->answer.about);
    self->answer = (gym_answer_t){0};
    self->kept = false;
    self->trial = (gym_trial_t){.id = self->id, .python = self->python, .package = self->package, .asked = self->asked};
    TT_TRY(gym_trial_open(&self->trial, settles, &self->answer.about));
    if (!settles) {
        gym_trial_close(&self->trial);
        gym_cache_put(&self->answer, self->question);
    }
    return TT_OK;
}

static char *s_summary(const json_t *about)
{
    const char *version = json_string_value(json_object_get(about, "version"));
    const json_t *limit = json_object_get(about, "limit");
    char cut[64] = "";
    if (json_is_integer(limit))
        snprintf(cut, sizeof cut, ", which cuts an episode at %lld steps", (long long)json_integer_value(limit));
    return tt_sprintf("played by Gymnasium %.32s%s", version ? version : "?", cut);
}

/*  The worker shows whole screens; observations are those made smaller. */
static tt_status_t s_shrinks(kind_t *self, uint32_t side)
{
    tt_space_t *obs = &self->ops.env.obs;
    if (obs->kind != TT_SPACE_BOX || obs->dtype != TT_U8 || obs->rank != 2)
        return tt_err(TT_INVALID, "env.frames makes grey screens smaller; its worker shows something else");
    if (side > obs->shape[0] || side > obs->shape[1])
        return tt_err(TT_INVALID, "env.frames.screen_size is %u, but its screen has only %u x %u: take at most %u",
            side, obs->shape[1], obs->shape[0], obs->shape[0] < obs->shape[1] ? obs->shape[0] : obs->shape[1]);
    self->shown = *obs;
    obs->shape[0] = obs->shape[1] = side;
    return TT_OK;
}

static tt_status_t s_probe(kind_t *self, bool settles)
{
    const json_t *frames = json_object_get(self->asked, "frames");
    TT_TRY(gym_package(&self->package));
    TT_TRY(s_ask(self, settles));
    TT_TRY(gym_describe(&self->ops.env, self->answer.about));
    if (json_is_object(frames))
        TT_TRY(s_shrinks(self, (uint32_t)json_integer_value(json_object_get(frames, "screen_size"))));
    self->summary = s_summary(self->answer.about);
    self->ops.env.summary = self->summary;
    return TT_OK;
}

static kind_t *s_new(const tt_train_cfg_t *cfg, json_t *asked, char *python)
{
    kind_t *self = tt_new0(sizeof *self);
    self->id = tt_strdup(cfg->env);
    self->asked = asked;
    self->python = python;
    self->workers = cfg->gym.workers;
    self->ops = (tt_env_batch_ops_t){.env = {.abi = TT_ENV_BATCH_ABI, .id = self->id},
        .outside = true,
        .any_args = true,
        .open = s_open,
        .send = s_send,
        .send_share = s_send_share,
        .recv = s_recv,
        .ready = s_ready,
        .loaded = s_loaded,
        .close = s_close};
    s_set_saves(self, cfg->space.env_saves);
    return self;
}

static void s_free(kind_t *self)
{
    gym_trial_close(&self->trial);
    gym_describe_free(&self->ops.env);
    json_decref(self->asked);
    json_decref(self->question);
    json_decref(self->answer.about);
    free(self->id);
    free(self->summary);
    free(self->python);
    free(self->package);
    free(self);
}

static void s_keep(kind_t *self)
{
    pthread_mutex_lock(&s_lock);
    self->next = s_kinds;
    s_kinds = self;
    pthread_mutex_unlock(&s_lock);
}

/*  Where another Python is taken than the one of the environment that is active: who has that on is told, once, or as part of what went wrong. */
static void s_tell_passed(const char *passed, const char *python, tt_status_t status)
{
    static atomic_bool s_told;
    if (!passed)
        return;
    if (status != TT_OK) {
        char *text = tt_strdup(tt_err_text());
        tt_err(status, "%s (%s: so it was not taken)", text, passed);
        free(text);
    } else if (!atomic_exchange(&s_told, true)) {
        log_warn("%s: %s is taken", passed, python);
    }
}

tt_status_t gym_find(const tt_env_ops_t **out, const tt_train_cfg_t *cfg, bool settles)
{
    char *python, *passed;
    if (!cfg->env[sizeof s_prefix - 1])
        return tt_err(TT_USAGE, "gym: what? An id of Gymnasium's stands behind it, as in gym:CartPole-v1");
    TT_TRY(gym_python(&python, cfg->gym.python, &passed));
    json_t *asked = s_asked(cfg);
    const kind_t *known = s_known(asked, python, cfg->gym.workers);
    if (known) {
        json_decref(asked);
        free(python);
        free(passed);
        *out = &known->ops.env;
        return TT_OK;
    }
    kind_t *self = s_new(cfg, asked, python);
    const tt_status_t status = s_probe(self, settles && !self->saves[0]);
    s_tell_passed(passed, self->python, status);
    free(passed);
    if (status != TT_OK) {
        tt_err_wrap(status, "env %s", self->id);
        if (self->kept)
            gym_cache_forget(self->question);
        s_free(self);
        return status;
    }
    s_keep(self);
    *out = &self->ops.env;
    return TT_OK;
}
