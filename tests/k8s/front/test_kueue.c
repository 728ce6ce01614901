/*  The Workload of a job for Kueue: which is made, what is read of one, what it is told, and what its pods get. */
#include "k8s/front/kueue.h"
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "tests/k8s/front/decoded.h"

/* ---- making ------------------------------------------------------------------------------------------------------------- */

static tt_status_t s_make(json_t **out, const char *text, const json_t *config)
{
    decoded_t job = decoded_open(text);
    const front_job_t info = job.front->job(job.entry);
    const tt_status_t status = kueue_make(out, job.front, job.entry, info.queue, job.whole, config);
    decoded_close(&job);
    return status;
}

static void s_assert_spec(const char *text, const char *want)
{
    json_t *workload = NULL;
    assert_ok(s_make(&workload, text, NULL));
    assert_json(json_incref(json_object_get(workload, "spec")), want);
    json_decref(workload);
}

#define DIJOB(spec)                                                                                               \
    "{'apiVersion':'diengine.opendilab.org/v1alpha1','kind':'DIJob','metadata':{'name':'j','namespace':'n','uid'" \
    ":'4f2a1b3c-0','generation':1,'labels':{'kueue.x-k8s.io/queue-name':'q'}},'spec':{" spec "}}"
#define CONTAINER         "{'name':'di-container','image':'x','terminationMessagePolicy':'File'}"
#define ROLE(name, count) "'" name "':{" count "'template':{'spec':{'containers':[" CONTAINER "]}}}"
#define SET(name, count, more)                                                                                        \
    "{'name':'" name "','count':" count ",'template':{'metadata':{'annotations':{},'labels':{}},'spec':{'containers'" \
    ":[" CONTAINER "]" more "}}}"

static void test_a_set_for_each_group_of_which_there_is_somebody(void **state)
{
    (void)state;
    s_assert_spec(DIJOB(ROLE("coordinator", "") ",'priorityClassName':'high'," ROLE(
                      "collector", "'replicas':4,") "," ROLE("learner", "'replicas':0,")),
        "{'queueName':'q','podSets':[" SET("coordinator", "1",
            ",'priorityClassName':'high','restartPolicy':'Never'") "," SET("collector", "4", "") "]}");
    s_assert_spec(
        DIJOB("'tasks':[{'type':'learner','replicas':2,'template':{'metadata':{'labels':{'a':'b'},'name':'no'},"
              "'spec':{'containers':[" CONTAINER "]}}}]"),
        "{'queueName':'q','podSets':[{'name':'learner','count':2,'template':{'metadata':{'annotations':{},'labels':{"
        "'a':'b'}},'spec':{'containers':[" CONTAINER "]}}}]}");
}

/*  Of one set Kueue may admit fewer than were asked for: of collectors first, and of one at least. */
static void test_one_set_may_be_admitted_in_part(void **state)
{
    (void)state;
#define COORDINATOR SET("coordinator", "1", ",'restartPolicy':'Never'")
    s_assert_spec(DIJOB(ROLE("coordinator", "") "," ROLE("collector", "'replicas':4,'minReplicas':2,") "," ROLE(
                      "learner", "'replicas':3,'minReplicas':1,")),
        "{'queueName':'q','podSets':[" COORDINATOR
        "," SET("collector", "4,'minCount':2", "") "," SET("learner", "3", "") "]}");
    s_assert_spec(DIJOB(ROLE("coordinator", "") "," ROLE("collector", "'replicas':4,'minReplicas':4,") "," ROLE(
                      "learner", "'replicas':3,'minReplicas':0,")),
        "{'queueName':'q','podSets':[" COORDINATOR
        "," SET("collector", "4", "") "," SET("learner", "3,'minCount':1", "") "]}");
#undef COORDINATOR
}

/*  Roles for which somebody asks over HTTP are in no queue. */
static void test_who_is_not_declared_is_in_no_set(void **state)
{
    (void)state;
    s_assert_spec(DIJOB(ROLE("coordinator", "") "," ROLE("collector", "") "," ROLE("learner", "")),
        "{'queueName':'q','podSets':[" SET("coordinator", "1", ",'restartPolicy':'Never'") "]}");
}

static const char *s_image(json_t *workload, size_t set)
{
    const json_t *template_ =
        json_object_get(json_array_get(json_object_get(json_object_get(workload, "spec"), "podSets"), set), "template");
    const json_t *containers = json_object_get(json_object_get(template_, "spec"), "containers");
    return json_string_value(json_object_get(json_array_get(containers, 0), "image"));
}

/*  Two learners of ours have an aggregator, whose template may be an AggregatorConfig's: that has to be fetched. */
static void test_an_aggregator_of_a_config_is_in_a_set(void **state)
{
    (void)state;
    const char *text = DIJOB("'engine':'tutti'," ROLE("coordinator", "") "," ROLE("learner", "'replicas':2,"));
    decoded_t job = decoded_open(text);
    assert_int_equal(kueue_needs(job.front, job.entry), FRONT_NEEDS_JOB | FRONT_NEEDS_CONFIG);
    decoded_close(&job);
    json_t *workload = NULL,
           *config =
               json_of("{'spec':{'aggregator':{'template':{'spec':{'containers':[{'name':'c','image':'agg'}]}}}}}");
    assert_ok(s_make(&workload, text, config));
    assert_string_equal(s_image(workload, 2), "agg");
    json_decref(workload);
    json_decref(config);
    job = decoded_open(DIJOB(ROLE("coordinator", "")));
    assert_int_equal(kueue_needs(job.front, job.entry), FRONT_NEEDS_JOB);
    decoded_close(&job);
}

/*  Another job of that name has another UID, and another Workload. */
static void test_it_is_the_jobs(void **state)
{
    (void)state;
    json_t *workload = NULL;
    assert_ok(s_make(&workload, DIJOB(ROLE("coordinator", "")), NULL));
    assert_json(json_incref(json_object_get(workload, "metadata")),
        "{'name':'dijob-j-4f2a1','namespace':'n','labels':{'app.kubernetes.io/name':'dijob','app.kubernetes.io/"
        "instance':"
        "'j','app.kubernetes.io/version':'" TT_VERSION
        "','app.kubernetes.io/part-of':'tutti','app.kubernetes.io/managed-by':'tutti-operator','kueue.x-k8s.io/"
        "job-uid'"
        ":'4f2a1b3c-0'},'ownerReferences':[{'apiVersion':'diengine.opendilab.org/v1alpha1','kind':'DIJob','name':'j',"
        "'uid':'4f2a1b3c-0','controller':true,'blockOwnerDeletion':true}]}");
    json_decref(workload);
}

/*  Members of no front end's: of each template so many, and no fewer; a template of which there is nobody is no set. */
static void test_of_parts(void **state)
{
    (void)state;
    json_t *template_ = json_of("{'spec':{'containers':[]}}"), *metadata = json_of("{'name':'t-0','namespace':'n'}");
    const front_part_t parts[] = {{"ps", template_, 0}, {"worker", template_, 3}};
    assert_json(kueue_of_parts(metadata, "team", parts, TT_COUNT(parts)),
        "{'apiVersion':'kueue.x-k8s.io/v1beta2','kind':'Workload','metadata':{'name':'t-0','namespace':'n'},'spec':{"
        "'queueName':'team','podSets':[{'name':'worker','count':3,'template':{'spec':{'containers':[]}}}]}}");
    json_decref(template_);
}

static void s_assert_class(const char *labels, const char *spec, const char *want)
{
    json_t *whole = json_of(labels), *workload = json_of(spec);
    char *path = kueue_class_path(workload, whole);
    if (want)
        assert_string_equal(path, want);
    else
        assert_null(path);
    free(path);
    json_decref(whole);
    json_decref(workload);
}

static void test_who_comes_first_in_a_queue(void **state)
{
    (void)state;
    const char *sets =
        "{'spec':{'podSets':[{'template':{'spec':{}}},{'template':{'spec':{'priorityClassName':'a/b'}}},{"
        "'template':{'spec':{'priorityClassName':'c'}}}]}}";
    s_assert_class("{'metadata':{'labels':{'kueue.x-k8s.io/priority-class':'w'}}}", sets,
        "/apis/kueue.x-k8s.io/v1beta2/workloadpriorityclasses/w");
    s_assert_class("{'metadata':{}}", sets, "/apis/scheduling.k8s.io/v1/priorityclasses/a%2Fb");
    s_assert_class("{}", "{'spec':{'podSets':[{'template':{'spec':{}}}]}}", NULL);
    json_t *workload = json_of("{'spec':{}}"),
           *class_ = json_of("{'kind':'PriorityClass','metadata':{'name':'c'},'value':-3}"),
           *odd = json_of("{'kind':'WorkloadPriorityClass','metadata':{'name':'w'},'value':'3'}");
    assert_ok(kueue_rank(workload, class_));
    assert_int_equal(kueue_rank(workload, odd), TT_DATA);
    assert_json(workload,
        "{'spec':{'priority':-3,'priorityClassRef':{'group':'scheduling.k8s.io','kind':'PriorityClass',"
        "'name':'c'}}}");
    json_decref(class_);
    json_decref(odd);
}

static void test_which_jobs_are_of_a_queue(void **state)
{
    (void)state;
    static const char *const none[] = {"{'apiVersion':'diengine.opendilab.org/v1alpha1','kind':'DIJob','metadata':{"
                                       "'name':'j','labels':{'kueue.x-k8s.io/queue-name':''}},'spec':{}}",
        "{'apiVersion':'diengine.opendilab.org/v1alpha1','kind':'DIJob','metadata':{'name':'j','labels':{"
        "'kueue.x-k8s.io/queue-name':7}},'spec':{}}",
        "{'apiVersion':'kubeflow.org/v1','kind':'TFJob','metadata':{'name':'j','labels':{'kueue.x-k8s.io/queue-name':"
        "'q'}},'spec':{}}"};
    for (size_t i = 0; i < TT_COUNT(none); i++) {
        decoded_t job = decoded_open(none[i]);
        assert_null(job.front->job(job.entry).queue);
        decoded_close(&job);
    }
}

static void test_a_keeper_that_nobody_knows(void **state)
{
    (void)state;
    bool queues = true;
    assert_ok(kueue_pick(&queues, "none"));
    assert_false(queues);
    assert_ok(kueue_pick(&queues, "kueue"));
    assert_true(queues);
    assert_int_equal(kueue_pick(&queues, "yunikorn"), TT_INVALID);
    assert_non_null(strstr(tt_err_text(), "kueue"));
}

/* ---- reading ------------------------------------------------------------------------------------------------------------ */

#define IS(type, state) "{'type':'" type "','status':'" state "','reason':'R','message':'as " type "'}"
#define WORKLOAD(spec, conditions, admission)                                                                       \
    "{'metadata':{'name':'w','namespace':'n','uid':'w-1','resourceVersion':'7','generation':2,'ownerReferences':[{" \
    "'kind':'DIJob','name':'j','uid':'u','controller':true}]},'spec':{" spec                                        \
    "'podSets':[{'name':'a','count':3}]},'status':{'conditions':[" conditions "]" admission "}}"
#define ADMISSION                                                                                             \
    ",'admission':{'clusterQueue':'c','podSetAssignments':[{'name':'a','flavors':{'cpu':'f','memory':'f'}},{" \
    "'name':'b','count':1,'flavors':{'cpu':'g'}}]}"

static kueue_t *s_read(const char *text)
{
    json_t *object = json_of(text);
    char *dump = kube_dump(object);
    kueue_t *workload = NULL;
    assert_ok(kueue_decode(&workload, dump, strlen(dump)));
    free(dump);
    json_decref(object);
    return workload;
}

static void test_when_its_job_may_have_pods(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words;
        bool goes;
    } cases[] = {
        {WORKLOAD("", IS("QuotaReserved", "True") "," IS("Admitted", "True"), ADMISSION), NULL, true},
        {WORKLOAD("'active':true,", IS("Admitted", "True") "," IS("Evicted", "False"), ADMISSION), NULL, true},
        {WORKLOAD("", "", ""), "", false},
        {WORKLOAD("", IS("QuotaReserved", "False"), ""), "as QuotaReserved", false},
        {WORKLOAD("", IS("QuotaReserved", "True"), ADMISSION),
            "its quota is reserved, and admission checks are not through", false},
        {WORKLOAD("", IS("QuotaReserved", "True") "," IS("Admitted", "Unknown"), ADMISSION), NULL, false},
        {WORKLOAD("", IS("QuotaReserved", "True") "," IS("Admitted", "True") "," IS("Evicted", "True"), ADMISSION),
            "as Evicted", false},
        {WORKLOAD("'active':false,", IS("Admitted", "True"), ADMISSION), "its Workload has spec.active false", false},
        {WORKLOAD("", IS("Admitted", "True") "," IS("Finished", "True"), ADMISSION), NULL, false},
    };
    for (size_t i = 0; i < TT_COUNT(cases); i++) {
        kueue_t *workload = s_read(cases[i].text);
        assert_int_equal(kueue_goes(workload), cases[i].goes);
        if (cases[i].words)
            assert_string_equal(workload->words, cases[i].words);
        assert_string_equal(workload->job, "j");
        assert_string_equal(workload->job_uid, "u");
        kueue_destroy(&workload);
    }
}

/*  The count at admission, else the spec's; a set that the spec has not counts none. */
static void test_how_many_were_admitted(void **state)
{
    (void)state;
    kueue_t *workload = s_read(WORKLOAD("", IS("Admitted", "True"), ADMISSION));
    assert_int_equal(workload->share_count, 2);
    assert_string_equal(workload->shares[0].name, "a");
    assert_int_equal(workload->shares[0].count, 3);
    assert_int_equal(workload->shares[1].count, 1);
    kueue_destroy(&workload);
    workload =
        s_read(WORKLOAD("", IS("Admitted", "True"), ",'admission':{'podSetAssignments':[{'name':'b','count':-2}]}"));
    assert_int_equal(workload->shares[0].count, 0);
    kueue_destroy(&workload);
}

static void test_nonsense_is_no_admission(void **state)
{
    (void)state;
    static const char *const odd[] = {
        "{'metadata':{'name':'w'},'spec':7,'status':[]}",
        "{'metadata':{'name':'w','ownerReferences':7},'status':{'conditions':{},'admission':[]}}",
        ("{'metadata':{'name':'w'},'status':{'conditions':[7,{'type':7},{'type':'Admitted','status':true}],'admission':"
         "{"
         "'podSetAssignments':[7,{'name':7,'flavors':[]}]}}}"),
    };
    for (size_t i = 0; i < TT_COUNT(odd); i++) {
        kueue_t *workload = s_read(odd[i]);
        assert_false(kueue_goes(workload));
        assert_string_equal(workload->job_uid, "");
        kueue_destroy(&workload);
        json_t *object = json_of(odd[i]), *flavors = json_object();
        assert_json(kueue_flavors(object), "[]");
        json_decref(kueue_updates(object, flavors));
        kueue_release(object, 0);
        json_decref(object);
        json_decref(flavors);
    }
    kueue_t *workload = NULL;
    assert_int_equal(kueue_decode(&workload, "{", 1), TT_DATA);
    assert_int_equal(kueue_decode(&workload, "{\"metadata\":{}}", 15), TT_DATA);
}

/* ---- telling ------------------------------------------------------------------------------------------------------------ */

#define TOLD(type, state, reason, words, time)                                                                   \
    "{'type':'" type "','status':'" state "','reason':'" reason "','message':'" words "','observedGeneration':2" \
    ",'lastTransitionTime':'" time "'}"
#define THEN "1970-01-01T00:00:00Z"
#define NOW  "1970-01-01T00:01:00Z"

static void s_assert_released(const char *reason, const char *requeued)
{
    char *text = tt_sprintf(WORKLOAD("",
                                TOLD("QuotaReserved", "True", "R", "", THEN) "," TOLD("Admitted", "True", "R", "",
                                    THEN) "," TOLD("Evicted", "True", "%s", "room for others", THEN),
                                ADMISSION ",'schedulingStats':1"),
             reason),
         *want = tt_sprintf("{'schedulingStats':1,'conditions':[" TOLD("QuotaReserved", "False", "Pending",
                                "room for others", NOW) "," TOLD("Admitted", "False", "NoReservation",
                                "It has no quota any more", NOW) "," TOLD("Evicted", "True", "%s", "room for others",
                                THEN) "," TOLD("Requeued", "%s", "%s", "room for others", NOW) "]}",
             reason, requeued, reason);
    json_t *workload = json_of(text);
    kueue_release(workload, 60);
    assert_json(json_incref(json_object_get(workload, "status")), want);
    json_decref(workload);
    free(text);
    free(want);
}

/*  Who was preempted is in the queue again at once; who was set inactive is not. */
static void test_a_quota_is_given_back(void **state)
{
    (void)state;
    s_assert_released("Preempted", "True");
    s_assert_released("NodeFailures", "True");
    s_assert_released("Deactivated", "False");
}

static void test_an_end_is_told(void **state)
{
    (void)state;
    json_t *workload = json_of(WORKLOAD("", "", ""));
    kueue_finish(workload, false, "j: Failed", 60);
    assert_json(json_incref(json_object_get(workload, "status")),
        "{'conditions':[" TOLD("Finished", "True", "Failed", "j: Failed", NOW) "]}");
    json_decref(workload);
}

/* ---- pods --------------------------------------------------------------------------------------------------------------- */

#define TOLERATION "{'key':'k','operator':'Exists'}"

static void s_assert_dressed(const char *set, const char *pod, const char *want)
{
    json_t *workload = json_of(WORKLOAD("", "",
               ADMISSION
               ",'admissionChecks':[{'name':'c','podSetUpdates':[{'name':'a','labels':{'dijob-name':'x','l':'1'},"
               "'annotations':{'n':'1'},'nodeSelector':{'pool':'p'},'tolerations':[" TOLERATION "]}]}]")),
           *flavors = json_of("{'f':{'spec':{'nodeLabels':{'cards':'h100'},'tolerations':[" TOLERATION "]}},'g':{}}"),
           *made = json_of(pod), *updates = kueue_updates(workload, flavors);
    assert_json(kueue_flavors(workload), "['f','g']");
    kueue_dress(made, updates, set);
    assert_json(made, want);
    json_decref(workload);
    json_decref(flavors);
    json_decref(updates);
}

/*  What its template says stays, but for where it goes; the labels that it is known by are never another's. */
static void test_a_pod_goes_where_its_set_was_admitted_to(void **state)
{
    (void)state;
    s_assert_dressed("a",
        "{'metadata':{'labels':{'dijob-name':'j'},'annotations':{}},'spec':{'nodeSelector':{'cards':'any','os':'linux'}"
        "}}",
        "{'metadata':{'labels':{'dijob-name':'j','l':'1','kueue.x-k8s.io/podset':'a'},'annotations':{'n':'1'}},'spec':{"
        "'nodeSelector':{'cards':'h100','os':'linux','pool':'p'},'tolerations':[" TOLERATION "]}}");
    s_assert_dressed("b", "{'metadata':{'labels':{},'annotations':{}},'spec':{'tolerations':[" TOLERATION "]}}",
        "{'metadata':{'labels':{'kueue.x-k8s.io/podset':'b'},'annotations':{}},'spec':{'tolerations':[" TOLERATION
        "],'nodeSelector':{}}}");
    s_assert_dressed("c", "{'metadata':{'labels':{}},'spec':{}}", "{'metadata':{'labels':{}},'spec':{}}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_set_for_each_group_of_which_there_is_somebody),
        cmocka_unit_test(test_one_set_may_be_admitted_in_part),
        cmocka_unit_test(test_who_is_not_declared_is_in_no_set),
        cmocka_unit_test(test_an_aggregator_of_a_config_is_in_a_set),
        cmocka_unit_test(test_it_is_the_jobs),
        cmocka_unit_test(test_of_parts),
        cmocka_unit_test(test_who_comes_first_in_a_queue),
        cmocka_unit_test(test_which_jobs_are_of_a_queue),
        cmocka_unit_test(test_a_keeper_that_nobody_knows),
        cmocka_unit_test(test_when_its_job_may_have_pods),
        cmocka_unit_test(test_how_many_were_admitted),
        cmocka_unit_test(test_nonsense_is_no_admission),
        cmocka_unit_test(test_a_quota_is_given_back),
        cmocka_unit_test(test_an_end_is_told),
        cmocka_unit_test(test_a_pod_goes_where_its_set_was_admitted_to),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
