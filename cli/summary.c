#include "cli/summary.h"
#include "common/base/json.h"
#include <stdlib.h>
#include <string.h>
#include "cli/changes.h"
#include "common/base/text.h"

/*  Filled from EVENT finished by their own names. */
static const char *const s_copied[] = {"env_steps", "updates", "episodes", "return_mean", "solved_at_steps",
    "solved_at_s", "wall_s", "first_step_s", "sps", "weights_sha256", "transitions", "lag_max", "eval", "weights_only",
    "restored_from"};

static const char *const s_stop_rules[] = {"return_mean", "env_steps", "wall_s"};

static const char *s_finished_reason(const json_t *finished)
{
    const char *reason = json_string_value(json_object_get(finished, "reason"));
    return reason ? reason : "";
}

static bool s_is_stop_rule(const char *reason)
{
    for (size_t i = 0; i < TT_COUNT(s_stop_rules); i++)
        if (strcmp(reason, s_stop_rules[i]) == 0)
            return true;
    return false;
}

tt_job_phase_t tt_summary_phase(const tt_outcome_t *outcome)
{
    if (outcome->phase != TT_JOB_SUCCEEDED)
        return outcome->phase;
    json_t *finished = outcome->finished ? json_loads(outcome->finished, 0, NULL) : NULL;
    const bool by_rule = finished && s_is_stop_rule(s_finished_reason(finished));
    json_decref(finished);
    return by_rule ? TT_JOB_SUCCEEDED : TT_JOB_STOPPED;
}

static json_t *s_or_null(json_t *value)
{
    return value ? json_incref(value) : json_null();
}

json_t *tt_summary(const tt_rundir_t *run, const tt_outcome_t *outcome, double wall_s)
{
    json_t *finished = outcome->finished ? json_loads(outcome->finished, 0, NULL) : NULL;
    const tt_job_phase_t phase = tt_summary_phase(outcome);
    const char *reason = phase == TT_JOB_FAILED ? outcome->reason : s_finished_reason(finished);
    json_t *out = json_object(), *rolled_back = json_object_get(finished, "rolled_back");
    json_object_set_new(out, "run", tt_json_text(run->name));
    json_object_set_new(out, "status", json_string(tt_job_end_name(phase)));
    json_object_set_new(out, "rolled_back", rolled_back ? json_incref(rolled_back) : json_integer(0));
    json_object_set_new(out, "reason", tt_json_text(reason));
    for (size_t i = 0; i < TT_COUNT(s_copied); i++)
        json_object_set_new(out, s_copied[i], s_or_null(json_object_get(finished, s_copied[i])));
    json_object_set_new(out, "wall_s", json_real(wall_s));
    json_object_set_new(out, "run_dir", tt_json_text(run->path));
    json_decref(finished);
    return out;
}

static double s_number(const json_t *summary, const char *key)
{
    return json_number_value(json_object_get(summary, key));
}

static const char *s_text(const json_t *object, const char *key)
{
    const char *text = tt_shown(json_string_value(json_object_get(object, key)));
    return text ? text : "";
}

/*  What was not as it should be is said; that a resumed run went on from its newest snapshot is not. */
static void s_print_restored(FILE *stream, const json_t *from)
{
    const json_t *bad = json_object_get(from, "passed_over"), *item;
    const bool adopted = json_is_true(json_object_get(from, "adopted"));
    size_t i;
    if (json_is_null(json_object_get(from, "snapshot")))
        fprintf(stream, "  there was no snapshot to go on from: it began anew, with version 0\n");
    json_array_foreach(bad, i, item)
        fprintf(stream, "  %s was passed over: %s\n", s_text(item, "snapshot"), s_text(item, "reason"));
    if (adopted || json_array_size(bad) > 0)
        fprintf(stream, "  it went on from %s, update %.0f%s\n", s_text(from, "snapshot"), s_number(from, "updates"),
            adopted ? ", which the journal did not know" : "");
}

static void s_print_evaluation(FILE *stream, const json_t *newest)
{
    if (json_is_object(newest))
        fprintf(stream, "  evaluation of version %.0f: mean return %.1f of %.0f episodes\n",
            s_number(newest, "updates"), s_number(newest, "mean_reward"), s_number(newest, "episodes"));
}

void tt_summary_print_life(FILE *stream, const json_t *summary)
{
    const json_t *changed = json_object_get(summary, "changed");
    if (s_number(summary, "life") < 2)
        return;
    char *text = tt_changes_text(changed);
    fprintf(stream, "  life %.0f of the run%s%s\n", s_number(summary, "life"), text[0] ? ", from here on with " : "",
        tt_shown(text));
    free(text);
}

/*  A job of Kubernetes that was stopped does not go on. */
static bool s_goes_on(const json_t *summary)
{
    return strcmp(s_text(summary, "status"), tt_job_end_name(TT_JOB_STOPPED)) == 0 &&
           json_is_number(json_object_get(summary, "updates"));
}

/*  How far it came. What is null is not known, and not zero. */
static void s_print_progress(FILE *stream, const json_t *summary)
{
    static const char *const said[][2] = {{"updates", " in %.0f updates"}, {"episodes", " and %.0f episodes"},
        {"sps", ", %.0f steps/s"}, {"wall_s", ", %.2f s in all"}};
    if (!json_is_number(json_object_get(summary, "env_steps")))
        return;
    fprintf(stream, "  %.0f steps", s_number(summary, "env_steps"));
    for (size_t i = 0; i < TT_COUNT(said); i++)
        if (json_is_number(json_object_get(summary, said[i][0])))
            fprintf(stream, said[i][1], s_number(summary, said[i][0]));
    fprintf(stream, "\n");
}

void tt_summary_print(FILE *stream, const json_t *summary, const char *failure)
{
    fprintf(stream, "%s: %s%s\n", s_text(summary, "status"),
        failure && failure[0] ? tt_shown(failure) : s_text(summary, "reason"),
        s_goes_on(summary) ? "; 'tutti resume' goes on" : "");
    s_print_progress(stream, summary);
    if (json_is_number(json_object_get(summary, "return_mean")))
        fprintf(stream, "  mean return of the last 100 episodes %.1f\n", s_number(summary, "return_mean"));
    s_print_evaluation(stream, json_object_get(summary, "eval"));
    if (json_is_number(json_object_get(summary, "solved_at_s")))
        fprintf(stream, "  solved after %.0f steps, %.2f s from process start\n", s_number(summary, "solved_at_steps"),
            s_number(summary, "solved_at_s"));
    if (json_is_string(json_object_get(summary, "weights_only")))
        fprintf(stream, "  final.safetensors has the weights alone, and no run goes on from it: %s\n",
            s_text(summary, "weights_only"));
    tt_summary_print_life(stream, summary);
    s_print_restored(stream, json_object_get(summary, "restored_from"));
    fprintf(stream, "  %s\n", s_text(summary, "run_dir"));
}
