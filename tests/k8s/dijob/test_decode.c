#include "k8s/dijob/dijob.h"
#include "tests/k8s/json.h"

#define API      "'apiVersion':'diengine.opendilab.org/v1alpha1','kind':'DIJob'"
#define TEMPLATE "{'template':{'spec':{'containers':[{'name':'di-container','image':'x'}]}}}"
#define ROLES    "'coordinator':" TEMPLATE ",'collector':" TEMPLATE ",'learner':" TEMPLATE

static dijob_t *s_decode(const char *text)
{
    dijob_t *job = NULL;
    json_t *object = json_of(text);
    assert_ok(dijob_from_json(&job, object));
    json_decref(object);
    return job;
}

/*  The reason why a spec is invalid; "" when it is not. Caller frees. */
static char *s_reason(const char *name, const char *spec)
{
    char *text = tt_sprintf("{" API ",'metadata':{'name':'%s'},'spec':%s}", name, spec);
    dijob_t *job = s_decode(text);
    char *reason = tt_strdup(dijob_refusal(job) ? dijob_refusal(job) : "");
    dijob_destroy(&job);
    free(text);
    return reason;
}

static void s_assert_reason(const char *name, const char *spec, const char *want)
{
    char *reason = s_reason(name, spec);
    assert_string_equal(reason, want);
    free(reason);
}

static void test_a_job_of_roles(void **state)
{
    (void)state;
    dijob_t *job =
        s_decode("{" API ",'metadata':{'name':'qbert-dqn','namespace':'rl','uid':'u-1','resourceVersion':'812',"
                 "'generation':3},'spec':{'group':'g'," ROLES "},'status':{'phase':'Running','b':1,'a':0.1}}");
    assert_null(job->invalid);
    assert_string_equal(job->meta.name, "qbert-dqn");
    assert_string_equal(job->meta.namespace_, "rl");
    assert_string_equal(job->meta.uid, "u-1");
    assert_int_equal(job->meta.version, 812);
    assert_int_equal(job->generation, 3);
    assert_false(job->deleting || job->tasks_shape || job->tutti || job->embedded);
    assert_int_equal(job->clean, TT_CLEAN_RUNNING);
    assert_true(job->has[DIJOB_COORDINATOR] && job->has[DIJOB_COLLECTOR] && job->has[DIJOB_DDP_LEARNER]);
    assert_false(job->has[DIJOB_AGGREGATOR]);
    assert_int_equal(job->replicas[DIJOB_COLLECTOR], -1);
    assert_int_equal(job->phase, DIJOB_PHASE_RUNNING);
    assert_string_equal(job->status, "{\"a\":0.1,\"b\":1,\"phase\":\"Running\"}");
    dijob_destroy(&job);
    assert_null(job);
}

static void test_what_a_batch_job_has(void **state)
{
    (void)state;
    dijob_t *job = s_decode("{" API ",'metadata':{'name':'a'},'spec':{'activeDeadlineSeconds':60,"
                            "'ttlSecondsAfterFinished':0,'suspend':true," ROLES "}}");
    assert_null(job->invalid);
    assert_int_equal(job->deadline_s, 60);
    assert_int_equal(job->ttl_s, 0);
    assert_true(job->suspend);
    dijob_destroy(&job);
    job = s_decode("{" API ",'metadata':{'name':'a'},'spec':{'activeDeadlineSeconds':null,'suspend':null," ROLES "}}");
    assert_null(job->invalid);
    assert_int_equal(job->deadline_s, -1);
    assert_int_equal(job->ttl_s, -1);
    assert_false(job->suspend);
    dijob_destroy(&job);
    s_assert_reason("a", "{'activeDeadlineSeconds':0," ROLES "}",
        "spec.activeDeadlineSeconds: expected a number from 1 to 2147483647");
    s_assert_reason("a", "{'activeDeadlineSeconds':2147483648," ROLES "}",
        "spec.activeDeadlineSeconds: expected a number from 1 to 2147483647");
    s_assert_reason("a", "{'ttlSecondsAfterFinished':-1," ROLES "}",
        "spec.ttlSecondsAfterFinished: expected a number from 0 to 2147483647");
    s_assert_reason("a", "{'suspend':'yes'," ROLES "}", "spec.suspend: expected true or false");
    static const char *const fields[] = {"'suspend':true", "'activeDeadlineSeconds':1", "'ttlSecondsAfterFinished':1"};
    for (size_t i = 0; i < TT_COUNT(fields); i++) {
        char *spec = tt_sprintf("{'managedBy':'coordinator',%s," ROLES "}", fields[i]);
        s_assert_reason("a", spec,
            "spec.suspend, spec.activeDeadlineSeconds and spec.ttlSecondsAfterFinished need an operator, and "
            "spec.managedBy is coordinator");
        free(spec);
    }
    s_assert_reason("a", "{'managedBy':'coordinator','suspend':false," ROLES "}", "");
}

static void test_what_ours_adds(void **state)
{
    (void)state;
    dijob_t *job = s_decode("{" API ",'metadata':{'name':'a','deletionTimestamp':'2026-01-01T00:00:00Z'},'spec':{"
                            "'engine':'tutti','managedBy':'coordinator','cleanPodPolicy':'ALL','coordinator':" TEMPLATE
                            ",'collector':{'replicas':4,'template':{'spec':{'containers':[{'name':'c'}]}}},"
                            "'aggregator':{'replicas':0}}}");
    assert_null(job->invalid);
    assert_true(job->deleting && job->tutti && job->embedded);
    assert_int_equal(job->clean, TT_CLEAN_ALL);
    assert_int_equal(job->replicas[DIJOB_COLLECTOR], 4);
    assert_int_equal(job->replicas[DIJOB_LEARNER], -1);
    assert_int_equal(job->replicas[DIJOB_AGGREGATOR], 0);
    assert_int_equal(job->phase, DIJOB_PHASE_NONE);
    assert_null(job->status);
    dijob_destroy(&job);
}

static void test_a_job_of_tasks(void **state)
{
    (void)state;
    dijob_t *job =
        s_decode("{'apiVersion':'diengine.opendilab.org/v2alpha1','kind':'DIJob','metadata':{'name':'a'},'spec':{"
                 "'preemptible':true,'backoffLimit':0,'tasks':[{'type':'learner','template':{'spec':{'containers':["
                 "{'name':'di-container'}]}}},{'type':'none','name':'league','replicas':3,'template':{'spec':{"
                 "'containers':[{'name':'x'}]}}}]}}");
    assert_null(job->invalid);
    assert_true(job->tasks_shape && job->preemptible);
    assert_int_equal(job->backoff_limit, 0);
    assert_int_equal(job->task_count, 2);
    assert_string_equal(job->tasks[0].name, "learner");
    assert_int_equal(job->tasks[0].replicas, 1);
    assert_string_equal(job->tasks[1].name, "league");
    assert_string_equal(job->tasks[1].type, "none");
    assert_int_equal(job->tasks[1].replicas, 3);
    dijob_destroy(&job);
}

/*  A job that no server keeps: what owns it owns its pods. */
static void test_a_job_that_is_a_file(void **state)
{
    (void)state;
    dijob_t *job =
        s_decode("{" API ",'metadata':{'name':'a','ownerReferences':[{'apiVersion':'v1','kind':'Pod','name':'p',"
                 "'uid':'pod-uid','controller':true}]},'spec':{" ROLES "}}");
    assert_string_equal(job->meta.uid, "pod-uid");
    assert_non_null(strstr(job->owner, "\"kind\":\"Pod\""));
    assert_int_equal(job->backoff_limit, -1);
    dijob_destroy(&job);
}

/*  In the words of the schema. */
static void test_bounds_of_replicas(void **state)
{
    (void)state;
    static const struct {
        const char *numbers, *words;
    } cases[] = {{"'replicas':4,'minReplicas':4,'maxReplicas':4", NULL}, {"'minReplicas':2,'maxReplicas':8", NULL},
        {"'replicas':9,'maxReplicas':8", "spec.learner.replicas: expected at most maxReplicas"},
        {"'replicas':1,'minReplicas':2", "spec.learner.replicas: expected at least minReplicas"},
        {"'minReplicas':3,'maxReplicas':2", "spec.learner.minReplicas: expected at most maxReplicas"},
        {"'maxReplicas':0", "spec.learner.maxReplicas: expected a number from 1 to 256"},
        {"'minReplicas':'2'", "spec.learner.minReplicas: expected a number from 0 to 256"}};
    for (size_t i = 0; i < TT_COUNT(cases); i++) {
        char *text = tt_sprintf("{" API ",'metadata':{'name':'a'},'spec':{'coordinator':" TEMPLATE
                                ",'learner':{%s,'template':{'spec':{'containers':[{'name':'c'}]}}}}}",
            cases[i].numbers);
        dijob_t *job = s_decode(text);
        if (cases[i].words)
            assert_string_equal(job->invalid, cases[i].words);
        else
            assert_null(job->invalid);
        dijob_destroy(&job);
        free(text);
    }
}

/*  Roles go on for ever where nothing is said, as they always did; tasks have DI-orchestrator's three. */
static void test_the_limit_of_failures(void **state)
{
    (void)state;
    static const struct {
        const char *spec;
        int64_t limit;
    } cases[] = {{ROLES, -1}, {"'backoffLimit':6," ROLES, 6}, {"'backoffLimit':0," ROLES, 0},
        {"'tasks':[{'type':'none','name':'a','template':{'spec':{'containers':[{'name':'x'}]}}}]", 3}};
    for (size_t i = 0; i < TT_COUNT(cases); i++) {
        char *text = tt_sprintf("{" API ",'metadata':{'name':'a'},'spec':{%s}}", cases[i].spec);
        dijob_t *job = s_decode(text);
        assert_null(job->invalid);
        assert_int_equal(job->backoff_limit, cases[i].limit);
        dijob_destroy(&job);
        free(text);
    }
}

/*  A policy stands beside what the codes of engine tutti say, and has the last word. */
static void test_which_codes_end_a_job(void **state)
{
    (void)state;
#define POLICY                                                                                       \
    "'podFailurePolicy':{'rules':[{'action':'Count','onExitCodes':{'operator':'In','values':[66]}}," \
    "{'action':'FailJob','onExitCodes':{'operator':'In','values':[2]}}]},"
    static const struct {
        const char *spec;
        bool policy, ends_2, ends_66, ends_78;
    } cases[] = {{ROLES, false, false, false, false}, {POLICY ROLES, true, true, false, false},
        {"'engine':'tutti'," POLICY ROLES, true, true, false, true}};
#undef POLICY
    for (size_t i = 0; i < TT_COUNT(cases); i++) {
        char *text = tt_sprintf("{" API ",'metadata':{'name':'a'},'spec':{%s}}", cases[i].spec);
        dijob_t *job = s_decode(text);
        assert_null(job->invalid);
        assert_int_equal(job->policy, cases[i].policy);
        assert_int_equal(tt_code_set_has(&job->fatal, 2), cases[i].ends_2);
        assert_int_equal(tt_code_set_has(&job->fatal, 66), cases[i].ends_66);
        assert_int_equal(tt_code_set_has(&job->fatal, 78), cases[i].ends_78);
        dijob_destroy(&job);
        free(text);
    }
    s_assert_reason("a", "{'podFailurePolicy':{'rules':[{'action':'Ignore'}]}," ROLES "}",
        "spec.podFailurePolicy.rules[0].action: 'Ignore' is none of FailJob, Count");
}

static void test_the_words_of_the_schema(void **state)
{
    (void)state;
    s_assert_reason("ok", "{" ROLES ",'cleanPodPolicy':'None'}", "");
    s_assert_reason("ok", "{" ROLES ",'cleanPodPolicy':'Sometimes'}",
        "Invalid CleanPodPolicy Sometimes, expected in [None, Running, All]");
    s_assert_reason("ok", "{'collector':" TEMPLATE "}", "expected spec.coordinator, or spec.tasks");
    s_assert_reason("ok",
        "{'coordinator':" TEMPLATE ",'tasks':[{'type':'learner','template':{'spec':{'containers':[{'name':'x'}]}}}]}",
        "spec.tasks cannot stand beside spec.coordinator, spec.collector, spec.learner or spec.aggregator");
    s_assert_reason("Caps", "{" ROLES "}",
        "Invalid name Caps, expected at most 45 lower case letters, digits and dashes, a letter first and no dash "
        "last");
    s_assert_reason("ok", "{'coordinator':{}}", "expected spec.coordinator.template");
    s_assert_reason("ok", "{'coordinator':{'template':{'spec':{'containers':'abc'}}}}",
        "expected spec.coordinator.template.spec.containers");
    s_assert_reason("ok", "{" ROLES ",'engine':'torch'}", "spec.engine: 'torch' is neither di-engine nor tutti");
    s_assert_reason("ok",
        "{'coordinator':" TEMPLATE ",'learner':{'replicas':257,'template':{'spec':{'containers':[{'name':'x'}]}}}}",
        "spec.learner.replicas: expected a number from 0 to 256");
    s_assert_reason("ok", "{" ROLES ",'volumes':[{}]}", "expected spec.volumes[0].name");
    s_assert_reason("ok", "7", "expected spec");
}

static void s_assert_tasks(const char *tasks, const char *want)
{
    char *spec = tt_sprintf("{'tasks':%s}", tasks);
    s_assert_reason("forty-characters-long-as-a-name-is-allowed", spec, want);
    free(spec);
}

#define TASK(head) "{" head ",'template':{'spec':{'containers':[{'name':'x'}]}}}"

static void test_the_words_for_tasks(void **state)
{
    (void)state;
    s_assert_tasks("[" TASK("'type':'none','name':'a'") "," TASK("'type':'none','name':'b'") "]", "");
    s_assert_tasks("[]", "spec.tasks: expected 1 to 64 tasks");
    s_assert_tasks("[" TASK("'type':'none'") "]", "spec.tasks[0]: a task of type none must have a name");
    s_assert_tasks(
        "[" TASK("'type':'actor'") "]", "spec.tasks[0].type: 'actor' is none of learner, collector, evaluator, none");
    s_assert_tasks("[" TASK("'type':'Learner'") "]",
        "spec.tasks[0].type: 'Learner' is none of learner, collector, evaluator, none; did you mean 'learner'?");
    s_assert_tasks(
        "[" TASK("'type':'learner'") "," TASK("'type':'learner','name':'b'") "]", "spec.tasks has type learner twice");
    s_assert_tasks("[" TASK("'type':'learner'") "," TASK("'type':'none','name':'learner'") "]",
        "spec.tasks has name learner twice");
    s_assert_tasks("[" TASK("'type':'learner','name':'sixteen-and-more'") "]",
        "Invalid task name sixteen-and-more, together with the job's name it has more than 57 characters");
    s_assert_tasks(
        "[" TASK("'type':'learner','replicas':0") "]", "spec.tasks[0].replicas: expected a number from 1 to 4096");
}

static void s_assert_foreign(const char *text)
{
    dijob_t *job = NULL;
    json_t *object = json_of(text);
    assert_int_equal(dijob_from_json(&job, object), TT_DATA);
    assert_null(job);
    json_decref(object);
}

static void test_other_things_are_no_jobs(void **state)
{
    (void)state;
    dijob_t *job = NULL;
    s_assert_foreign("{'kind':'Pod','apiVersion':'v1','metadata':{'name':'a'}}");
    s_assert_foreign("{'kind':'DIJob','apiVersion':'diengine.opendilab.organic/v1','metadata':{'name':'a'}}");
    s_assert_foreign("{" API ",'metadata':{'name':7}}");
    s_assert_foreign("{" API "}");
    s_assert_foreign("{" API ",'metadata':{'name':'a','uid':'0123456789012345678901234567890123456789'}}");
    s_assert_foreign("[]");
    assert_int_equal(dijob_decode(&job, "{", 1), TT_DATA);
}

/*  What only another operator's schema lets in is told apart from what nobody could run. */
static void test_a_name_is_no_broken_spec(void **state)
{
    (void)state;
    static const char *const names[] = {"2048-dqn", "exp.v1", "a234567890123456789012345678901234567890123456"};
    for (size_t i = 0; i < TT_COUNT(names); i++) {
        dijob_t *job = NULL;
        char *text = tt_sprintf("{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"tasks\":[{\"type\":\"learner\","
                                "\"template\":{\"spec\":{\"containers\":[{\"name\":\"c\"}]}}}]}}",
            names[i]);
        assert_ok(dijob_decode(&job, text, strlen(text)));
        assert_null(job->invalid);
        assert_non_null(strstr(job->misnamed, names[i]));
        dijob_destroy(&job);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_name_is_no_broken_spec),
        cmocka_unit_test(test_a_job_of_roles),
        cmocka_unit_test(test_what_a_batch_job_has),
        cmocka_unit_test(test_what_ours_adds),
        cmocka_unit_test(test_a_job_of_tasks),
        cmocka_unit_test(test_the_limit_of_failures),
        cmocka_unit_test(test_which_codes_end_a_job),
        cmocka_unit_test(test_bounds_of_replicas),
        cmocka_unit_test(test_a_job_that_is_a_file),
        cmocka_unit_test(test_the_words_of_the_schema),
        cmocka_unit_test(test_the_words_for_tasks),
        cmocka_unit_test(test_other_things_are_no_jobs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
