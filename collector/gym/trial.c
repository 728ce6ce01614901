#include "collector/gym/trial.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "collector/gym/worker.h"
#include "collector/guard.h"
#include "common/base/json.h"
#define TT_LOG_COMPONENT "env"
#include "common/base/log.h"

static const char *const s_kinds[] = {"copy", "replay"}; /* as python/tutti_env/state.py has them */
enum { PAIR = 2 };

json_t *gym_saves(const char *text)
{
    const size_t word = strcspn(text, " ");
    for (size_t i = 0; i < TT_COUNT(s_kinds); i++)
        if (strlen(s_kinds[i]) == word && strncmp(s_kinds[i], text, word) == 0)
            return json_pack("{s:s, s:I}", "kind", s_kinds[i], "room", (json_int_t)strtoul(text + word, NULL, 10));
    return json_pack("{s:s, s:i}", "kind", "", "room", 0);
}

static tt_status_t s_start(gym_worker_t *worker, const char *python, const char *package, const json_t *asked,
    const char *kind, const char *part)
{
    TT_TRY(gym_worker_start(worker, python, package, -1));
    json_t *spec = json_copy((json_t *)(uintptr_t)asked);
    json_object_set_new(spec, "try", json_string(part));
    json_object_set_new(spec, "kind", json_string(kind));
    const tt_status_t status = gym_worker_tell(worker, spec);
    json_decref(spec);
    return status;
}

/*  What the first one says goes to the second one, which imports meanwhile. */
static tt_status_t s_run(gym_worker_t pair[PAIR], const char *python, const char *package, const json_t *asked,
    const char *kind, json_t **out)
{
    uint32_t which;
    json_t *played = NULL;
    TT_TRY(s_start(&pair[0], python, package, asked, kind, "save"));
    TT_TRY(s_start(&pair[1], python, package, asked, kind, "load"));
    TT_TRY(gym_worker_wait(&pair[0], 1, true, &which, &played));
    const tt_status_t status = gym_worker_tell(&pair[1], played);
    json_decref(played);
    TT_TRY(status);
    return gym_worker_wait(&pair[1], 1, true, &which, out);
}

/*  TT_INVALID: the text says why this is no way. Else the env or its worker failed, which whoever plays it will say. */
static tt_status_t s_try(
    const char *id, const char *python, const char *package, const json_t *asked, const char *kind, json_t **out)
{
    gym_worker_t pair[PAIR];
    for (int i = 0; i < PAIR; i++)
        pair[i] = (gym_worker_t){.id = id,
            .number = -1,
            .pidfd = -1,
            .socket = -1,
            .log = -1,
            .start_s = guard_seconds("TT_ENV_START_S", 60)};
    json_t *answer = NULL;
    tt_status_t status = s_run(pair, python, package, asked, kind, &answer);
    gym_worker_end(pair, PAIR);
    const char *why = json_string_value(json_object_get(answer, "why"));
    if (status == TT_OK && (why || !json_is_integer(json_object_get(answer, "room"))))
        status = tt_err(json_is_true(json_object_get(answer, "env")) ? TT_INTERNAL : TT_INVALID, "%s",
            why ? why : "its worker said what is no answer");
    if (status == TT_OK)
        *out = json_incref(answer);
    json_decref(answer);
    return status;
}

static void s_say(char out[TT_ENV_SAVES_MAX], const char *kind, const json_t *answer)
{
    snprintf(out, TT_ENV_SAVES_MAX, "%s %lld", kind, (long long)json_integer_value(json_object_get(answer, "room")));
}

void gym_trial(char out[TT_ENV_SAVES_MAX], const char *id, const char *python, const char *package, const json_t *asked)
{
    char why[1024] = "";
    size_t used = 0;
    snprintf(out, TT_ENV_SAVES_MAX, "no");
    for (size_t i = 0; i < TT_COUNT(s_kinds); i++) {
        json_t *answer = NULL;
        const tt_status_t status = s_try(id, python, package, asked, s_kinds[i], &answer);
        if (status != TT_OK && status != TT_INVALID) {
            log_debug("%s: the trial of its state failed: %s", id, tt_err_text());
            return;
        }
        if (status == TT_INVALID) {
            if (used < sizeof why)
                used += (size_t)snprintf(
                    why + used, sizeof why - used, "%s%s: %.400s", used ? "; " : "", s_kinds[i], tt_err_text());
            continue;
        }
        const bool large = json_is_true(json_object_get(answer, "large")), first = strncmp(out, "no", 2) == 0;
        if (first || !large) /* of two large ones the better kind */
            s_say(out, s_kinds[i], answer);
        json_decref(answer);
        if (!large)
            return;
    }
    if (strcmp(out, "no") == 0)
        log_info("%s: its state cannot be saved, an environment that moves begins anew: %s", id, why);
}
