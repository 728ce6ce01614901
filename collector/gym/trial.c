#include "collector/gym/trial.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "collector/guard.h"
#define TT_LOG_COMPONENT "env"
#include "common/base/log.h"

static const char *const s_kinds[] = {"copy", "replay"}; /* as python/tutti_env/state.py has them */

json_t *gym_saves(const char *text)
{
    const size_t word = strcspn(text, " ");
    for (size_t i = 0; i < TT_COUNT(s_kinds); i++)
        if (strlen(s_kinds[i]) == word && strncmp(s_kinds[i], text, word) == 0)
            return json_pack("{s:s, s:I}", "kind", s_kinds[i], "room", (json_int_t)strtoul(text + word, NULL, 10));
    return json_pack("{s:s, s:i}", "kind", "", "room", 0);
}

static tt_status_t s_start(gym_trial_t *self, const char *part)
{
    gym_worker_t *worker = &self->worker[self->started++];
    *worker = (gym_worker_t){.id = self->id, .number = -1, .start_s = guard_seconds("TT_ENV_START_S", GYM_START_S)};
    TT_TRY(gym_worker_start(worker, self->python, self->package, -1));
    json_t *spec = json_copy((json_t *)(uintptr_t)self->asked);
    json_object_set_new(spec, "part", json_string(part));
    gym_worker_tell(worker, spec);
    json_decref(spec);
    return TT_OK;
}

tt_status_t gym_trial_open(gym_trial_t *self, bool both, json_t **about)
{
    uint32_t which;
    self->started = 0;
    TT_TRY(s_start(self, "save"));
    if (both)
        TT_TRY(s_start(self, "load"));
    return gym_worker_wait(self->worker, 1, true, &which, about);
}

void gym_trial_close(gym_trial_t *self)
{
    gym_worker_end(self->worker, self->started);
    self->started = 0;
}

/*  What the first one says goes to the second one, which prepares itself meanwhile. */
static tt_status_t s_run(gym_trial_t *self, const char *kind, json_t *about, json_t **out)
{
    uint32_t which;
    json_t *played = NULL, *what = json_pack("{s:s}", "kind", kind);
    tt_status_t status = self->started < GYM_TRIAL_PAIR ? s_start(self, "load") : TT_OK;
    for (int i = 0; i < GYM_TRIAL_PAIR && status == TT_OK; i++)
        gym_worker_tell(&self->worker[i], what);
    json_decref(what);
    if (status == TT_OK)
        status = gym_worker_wait(self->worker, 1, true, &which, &played);
    if (status == TT_OK) {
        gym_worker_tell(&self->worker[1], played);
        status = gym_worker_wait(&self->worker[1], 1, true, &which, out);
    }
    json_decref(played);
    if (status == TT_OK)
        json_object_set(about, "sources", json_object_get(*out, "sources")); /* it was played since that was said */
    return status;
}

/*  TT_INVALID: the text says why this is no way. Else the env or its worker failed, which whoever plays it will say. */
static tt_status_t s_try(gym_trial_t *self, const char *kind, json_t *about, json_t **out)
{
    json_t *answer = NULL;
    tt_status_t status = s_run(self, kind, about, &answer);
    const char *why = json_string_value(json_object_get(answer, "why"));
    if (status == TT_OK && (why || !json_is_integer(json_object_get(answer, "room"))))
        status = tt_err(json_is_true(json_object_get(answer, "env")) ? TT_INTERNAL : TT_INVALID, "%s",
            why ? why : "its worker said what is no answer");
    if (status == TT_OK)
        *out = json_incref(answer);
    json_decref(answer);
    return status;
}

static void s_say(gym_verdict_t *out, const char *kind, const json_t *answer)
{
    const long long room = (long long)json_integer_value(json_object_get(answer, "room"));
    snprintf(out->saves, sizeof out->saves, "%s %lld", kind, room);
}

/*  It is no way by this kind; the text says why. */
static void s_add_why(gym_verdict_t *out, const char *kind)
{
    const size_t used = strlen(out->why);
    snprintf(out->why + used, sizeof out->why - used, "%s%s: %.400s", used ? "; " : "", kind, tt_err_text());
}

void gym_trial_run(gym_trial_t *self, json_t *about, gym_verdict_t *out)
{
    *out = (gym_verdict_t){.saves = "no"};
    for (size_t i = 0; i < TT_COUNT(s_kinds); i++) {
        json_t *answer = NULL;
        const tt_status_t status = s_try(self, s_kinds[i], about, &answer);
        out->failed = status != TT_OK && status != TT_INVALID;
        if (out->failed) {
            log_debug("%s: the trial of its state failed: %s", self->id, tt_err_text());
            return;
        }
        if (status == TT_INVALID) {
            s_add_why(out, s_kinds[i]);
            continue;
        }
        const bool large = json_is_true(json_object_get(answer, "large")), first = strncmp(out->saves, "no", 2) == 0;
        if (first || !large) /* of two large ones the better kind */
            s_say(out, s_kinds[i], answer);
        json_decref(answer);
        if (!large)
            return;
    }
}
