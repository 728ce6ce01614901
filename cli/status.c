/*  status - one run: its phase, progress and who takes part. */
#include <string.h>
#include "cli/client.h"
#include "cli/cmd.h"
#include "cli/history.h"
#include "cli/state.h"
#include "cli/summary.h"
#include "common/base/json.h"
#include "common/base/text.h"

const tt_option_t tt_opt_status[] = {{"output", 'o', "text|json", "json: one object on stdout"}, {0}};

static const char *s_text(const json_t *object, const char *key)
{
    const char *text = tt_shown(json_string_value(json_object_get(object, key)));
    return text ? text : "-";
}

static double s_number(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static void s_print_counts(const json_t *counts)
{
    const char *role;
    json_t *count;
    json_object_foreach((json_t *)counts, role, count)
    {
        printf("  %-12s %.0f of %.0f", role, s_number(count, "ready"), s_number(count, "desired"));
        if (s_number(count, "spare") > 0)
            printf(", %.0f more than there is work for", s_number(count, "spare"));
        if (s_number(count, "warming") > 0)
            printf(", %.0f warming", s_number(count, "warming"));
        putchar('\n');
    }
}

/*  "env 61 %, policy 20 %": what takes a hundredth of its time at least. */
static void s_time_text(const json_t *time, char *out, size_t size)
{
    size_t used = 0;
    const char *key;
    json_t *value;
    out[0] = '\0';
    json_object_foreach((json_t *)time, key, value)
    {
        if (json_number_value(value) >= 0.01 && used < size)
            used += (size_t)snprintf(
                out + used, size - used, "%s%s %.0f %%", used ? ", " : "", key, 100 * json_number_value(value));
    }
}

static void s_print_time(const json_t *members)
{
    size_t i;
    json_t *member;
    printf("  %-14s %9s %6s %s\n", "MEMBER", "MEMORY", "CPU", "TIME");
    json_array_foreach((json_t *)members, i, member)
    {
        char name[64], time[512];
        snprintf(name, sizeof name, "%s/%.0f", s_text(member, "role"), s_number(member, "index"));
        s_time_text(json_object_get(member, "time_share"), time, sizeof time);
        printf("  %-14s %6.1f MB %4.0f %% %s\n", name, s_number(member, "memory_bytes") * 1e-6,
            100 * s_number(member, "cpus"), time[0] ? time : "-");
    }
}

static void s_print_members(const json_t *members)
{
    size_t i;
    json_t *member;
    printf("  %-14s %8s %6s %-12s %s\n", "MEMBER", "PID", "RANK", "ENVS", "STATE");
    json_array_foreach((json_t *)members, i, member)
    {
        char name[64], envs[64] = "-", rank[16] = "-";
        snprintf(name, sizeof name, "%s/%.0f", s_text(member, "role"), s_number(member, "index"));
        if (s_number(member, "env_count") > 0)
            snprintf(envs, sizeof envs, "%.0f-%.0f", s_number(member, "env_lo"),
                s_number(member, "env_lo") + s_number(member, "env_count") - 1);
        if (strcmp(s_text(member, "role"), "learner") == 0)
            snprintf(rank, sizeof rank, "%.0f", s_number(member, "rank"));
        printf("  %-14s %8.0f %6s %-12s %s\n", name, s_number(member, "pid"), rank, envs, s_text(member, "state"));
    }
}

/*  A run that goes on without being saved. */
static void s_print_unsaved(const json_t *status)
{
    const json_t *failure = json_object_get(status, "snapshot_failure");
    if (json_is_object(failure))
        printf("  no snapshot could be made for %.0f s (%.0f failed): %s\n",
            s_number(status, "wall_s") - s_number(failure, "since_s"), s_number(failure, "failures"),
            s_text(failure, "reason"));
}

/*  A job of Kubernetes on this machine (local/). */
static void s_print_job(const json_t *status)
{
    size_t i;
    json_t *pod;
    printf("%s  %s %s/%s  %s\n", s_text(status, "run"), s_text(status, "kind"), s_text(status, "namespace"),
        s_text(status, "name"), s_text(status, "phase"));
    s_print_counts(json_object_get(status, "replicas"));
    printf("  %-40s %-16s %6s %s\n", "POD", "ADDRESS", "PORT", "STATUS");
    json_array_foreach(json_object_get(status, "members"), i, pod) printf("  %-40s %-16s %6.0f %s\n",
        s_text(pod, "name"), s_text(pod, "ip"), s_number(pod, "port"), s_text(pod, "state"));
}

static void s_print(const json_t *status)
{
    if (json_object_get(status, "kind")) {
        s_print_job(status);
        return;
    }
    printf("%s  %s  %s\n", s_text(status, "run"), s_text(status, "env"), s_text(status, "phase"));
    printf("  %.0f steps, %.0f updates, %.0f steps/s", s_number(status, "env_steps"), s_number(status, "updates"),
        s_number(status, "sps"));
    if (json_is_number(json_object_get(status, "return_mean")))
        printf(", mean return %.1f", s_number(status, "return_mean"));
    printf("\n");
    if (s_number(status, "replaced") > 0)
        printf("  silent and replaced: %.0f; last %s\n", s_number(status, "replaced"), s_text(status, "replaced_last"));
    s_print_unsaved(status);
    tt_summary_print_life(stdout, status);
    s_print_counts(json_object_get(status, "replicas"));
    s_print_members(json_object_get(status, "members"));
    s_print_time(json_object_get(status, "members"));
    if (json_is_string(json_object_get(status, "bottleneck")))
        printf("  %s\n", s_text(status, "bottleneck"));
}

/*  Which life of the run it is, and what it was begun with: the coordinator does not know. */
static void s_add_life(const tt_rundir_t *run, json_t *answer)
{
    json_t *history = NULL;
    if (tt_history_read(run, &history) != TT_OK)
        return;
    const json_t *began = tt_history_last(history, "began");
    json_t *life = json_object_get(began, "life"), *changed = json_object_get(began, "changed");
    if (life && changed) {
        json_object_set(answer, "life", life);
        json_object_set(answer, "changed", changed);
    }
    json_decref(history);
}

/*  What else than a kill may have been the reason that nothing says how it ended. */
static const char *s_unwritten(const tt_rundir_t *run)
{
    if (tt_rundir_full(run))
        return ", or its disk, which is full now, left it no room to say how: make some";
    if (tt_rundir_read_only(run))
        return ", or its file system, which is read-only now, kept it from saying how: look after the disk (dmesg)";
    return "";
}

int tt_cmd_status(int argc, char **argv)
{
    int code;
    TT_AUTO(tt_args) args = tt_args_new(&code, "status", argc, argv);
    if (!args)
        return code;
    tt_rundir_t run;
    tt_status_t status = tt_rundir_find(&run, tt_operand(args, 0));
    if (status != TT_OK)
        return tt_args_fail(args, status);
    json_t *answer = NULL;
    const char *state = tt_run_state(&run, &answer);
    bool live = strcmp(state, "running") == 0;
    if (live)
        status = tt_client_ask(&run, "status", "", 10000, &answer);
    if (status == TT_UNAVAILABLE && !tt_rundir_live(&run)) { /* it ended while it was asked */
        status = TT_OK;
        state = tt_run_state(&run, &answer);
        live = false;
    }
    if (status != TT_OK)
        return tt_args_fail(args, status);
    if (live)
        s_add_life(&run, answer);
    if (tt_arg_is(args, "output", "json")) {
        json_t *out = answer ? answer
                             : json_pack("{s:o, s:s, s:o}", "run", tt_json_text(run.name), "status", state, "run_dir",
                                   tt_json_text(run.path));
        json_dumpf(out, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
        putchar('\n');
        answer = out;
    } else if (live) {
        s_print(answer);
    } else if (answer) {
        printf("%s  ", tt_shown(run.name));
        tt_summary_print(stdout, answer, NULL);
    } else {
        printf("%s  killed before it could end by itself%s; 'tutti resume %s' continues it\n", tt_shown(run.name),
            s_unwritten(&run), tt_shown(run.name));
    }
    json_decref(answer);
    return 0;
}
