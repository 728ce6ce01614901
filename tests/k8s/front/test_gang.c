/*  PodGroups of both kinds: how many members, of which resources; and what a pod of one is told by. */
#include "k8s/front/gang.h"
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "tests/k8s/front/decoded.h"

static const gang_t *s_gang(const char *name)
{
    const gang_t *gang = NULL;
    assert_ok(gang_pick(&gang, name));
    return gang;
}

/*  The spec of the job's PodGroup; "" = there is none. */
static void s_assert_admitted(const char *gang, const char *job, const front_admission_t *admission, const char *want)
{
    decoded_t of = decoded_open(job);
    json_t *group = gang_make(s_gang(gang), of.front, of.entry, admission, of.whole);
    if (*want)
        assert_json(json_incref(json_object_get(group, "spec")), want);
    else
        assert_null(group);
    json_decref(group);
    decoded_close(&of);
}

static void s_assert_spec(const char *gang, const char *job, const char *want)
{
    s_assert_admitted(gang, job, &(front_admission_t){0}, want);
}

#define DIJOB(spec)                                                                                                   \
    "{'apiVersion':'diengine.opendilab.org/v1alpha1','kind':'DIJob','metadata':{'name':'j','uid':'u','annotations':{" \
    "'scheduling.volcano.sh/queue-name':'rl'}},'spec':{" spec "}}"
#define ROLE(name, count, cpu)                                                                       \
    "'" name "':{" count                                                                             \
    "'template':{'spec':{'containers':[{'name':'di-container','image':'x','resources':{'requests':{" \
    "'cpu':" cpu "}}}]}}}"

static void test_roles_that_the_spec_asks_for_are_members(void **state)
{
    (void)state;
    s_assert_spec(
        "volcano", DIJOB(ROLE("coordinator", "", "1")), "{'minMember':1,'minResources':{'cpu':'1'},'queue':'rl'}");
    s_assert_spec("volcano",
        DIJOB(ROLE("coordinator", "", "'100m'") "," ROLE("collector", "'replicas':4,", "'1.5'") "," ROLE(
            "learner", "", "8")),
        "{'minMember':5,'minResources':{'cpu':'6100m'},'queue':'rl'}");
    s_assert_spec("scheduler-plugins", DIJOB(ROLE("coordinator", "", "1") "," ROLE("learner", "'replicas':0,", "8")),
        "{'minMember':1,'minResources':{'cpu':'1'}}");
}

/*  Collectors and learners say themselves how many are enough; coordinator and aggregator are there whole. */
static void test_the_fewest_that_are_enough_are_members(void **state)
{
    (void)state;
    s_assert_spec("scheduler-plugins",
        DIJOB("'engine':'tutti'," ROLE("coordinator", "", "1") "," ROLE("collector", "'replicas':8,'minReplicas':3,",
            "2") "," ROLE("learner", "'replicas':4,'minReplicas':2,", "10")),
        "{'minMember':7,'minResources':{'cpu':'27'}}");
    s_assert_spec("scheduler-plugins",
        DIJOB(ROLE("coordinator", "", "1") "," ROLE("collector", "'replicas':2,'minReplicas':0,", "2") "," ROLE(
            "learner", "'minReplicas':1,", "10")),
        "{'minMember':1,'minResources':{'cpu':'1'}}");
    static const front_share_t shares[] = {{"coordinator", 1}, {"collector", 4}};
    s_assert_admitted("scheduler-plugins",
        DIJOB(ROLE("coordinator", "", "1") "," ROLE("collector", "'replicas':8,'minReplicas':3,", "2")),
        &(front_admission_t){.queue = "q", .admitted = true, .shares = shares, .share_count = TT_COUNT(shares)},
        "{'minMember':4,'minResources':{'cpu':'7'}}");
}

/*  More were wanted than its queue has admitted. */
static void test_who_is_not_admitted_is_no_member(void **state)
{
    (void)state;
    static const front_share_t shares[] = {{"coordinator", 1}, {"collector", 2}};
    s_assert_admitted("scheduler-plugins",
        DIJOB(ROLE("coordinator", "", "1") "," ROLE("collector", "'replicas':4,", "2") "," ROLE(
            "learner", "'replicas':1,", "8")),
        &(front_admission_t){.queue = "q", .admitted = true, .shares = shares, .share_count = TT_COUNT(shares)},
        "{'minMember':3,'minResources':{'cpu':'5'}}");
}

/*  Two learners of ours have an aggregator, though nobody asked for one; its template is not the job's. A role without a template
 *  is not made, so nobody waits for it. */
static void test_what_is_made_unasked_and_what_cannot_be(void **state)
{
    (void)state;
    s_assert_spec("scheduler-plugins",
        DIJOB("'engine':'tutti'," ROLE("coordinator", "", "1") "," ROLE("learner", "'replicas':2,", "2")),
        "{'minMember':4,'minResources':{'cpu':'5'}}");
    s_assert_spec("scheduler-plugins", DIJOB(ROLE("coordinator", "", "1") ",'collector':{'replicas':3}"),
        "{'minMember':1,'minResources':{'cpu':'1'}}");
}

static void test_replicas_of_tasks_are_members(void **state)
{
    (void)state;
    s_assert_spec("scheduler-plugins",
        DIJOB("'tasks':[{'type':'learner','replicas':2,'template':{'spec':{'containers':[{'name':'c','image':'x','"
              "resources':{"
              "'limits':{'nvidia.com/"
              "gpu':1}}}]}}},{'type':'none','name':'other','template':{'spec':{'containers':[{'name':'c',"
              "'image':'x'}]}}}]"),
        "{'minMember':3,'minResources':{'nvidia.com/gpu':'2'}}");
}

#define TFJOB(policy, resources)                                                                                    \
    "{'apiVersion':'kubeflow.org/v1','kind':'TFJob','metadata':{'name':'j','uid':'u'},'spec':{'runPolicy':{" policy \
    "},'tfReplicaSpecs':{'Worker':{'replicas':2,'template':{'spec':{'containers':[{'name':'tensorflow','image':'x'" \
    "," resources                                                                                                   \
    "}],'initContainers':[{'name':'i','image':'x','resources':{'requests':{'memory':'3Gi','cpu':'1m'}}}]"           \
    "}}}}}}"

/*  A limit stands for a request that is not there; one container before the others may need more than these. */
static void test_what_a_pod_asks_for(void **state)
{
    (void)state;
    s_assert_spec("volcano",
        TFJOB("", "'resources':{'requests':{'memory':'1Gi'},'limits':{'memory':'9Gi','cpu':'250m'}}"),
        "{'minMember':2,'minResources':{'memory':'6442450944','cpu':'500m'}}");
    s_assert_spec("volcano", TFJOB("", "'resources':{'requests':{'cpu':'nonsense','memory':'4Gi'}}"),
        "{'minMember':2,'minResources':{'memory':'8589934592','cpu':'2m'}}");
}

static void test_a_scheduling_policy_wins(void **state)
{
    (void)state;
    s_assert_spec("volcano",
        TFJOB("'schedulingPolicy':{'minAvailable':1,'queue':'q','priorityClass':'p','scheduleTimeoutSeconds':9}",
            "'resources':{}"),
        "{'minMember':1,'minResources':{'memory':'3221225472','cpu':'1m'},'queue':'q','priorityClassName':'p'}");
    s_assert_spec("scheduler-plugins",
        TFJOB(
            "'schedulingPolicy':{'minResources':{'cpu':'7'},'queue':'q','scheduleTimeoutSeconds':9}", "'resources':{}"),
        "{'minMember':2,'minResources':{'cpu':'7'},'scheduleTimeoutSeconds':9}");
}

static void s_assert_dressed(const char *gang, const char *pod, const char *want)
{
    json_t *made = json_of(pod);
    gang_dress(s_gang(gang), made, "j");
    assert_json(made, want);
}

static void test_a_pod_says_which_group_it_is_of(void **state)
{
    (void)state;
    s_assert_dressed("volcano",
        "{'metadata':{'labels':{'app.kubernetes.io/component':'ps'},'annotations':{}},'spec':{}}",
        "{'metadata':{'labels':{'app.kubernetes.io/component':'ps'},'annotations':{'scheduling.k8s.io/group-name':'j',"
        "'volcano.sh/task-spec':'ps'}},'spec':{'schedulerName':'volcano'}}");
    s_assert_dressed("scheduler-plugins", "{'metadata':{'labels':{},'annotations':{}},'spec':{'schedulerName':'mine'}}",
        "{'metadata':{'labels':{'scheduling.x-k8s.io/"
        "pod-group':'j'},'annotations':{}},'spec':{'schedulerName':'mine'}}");
}

static void test_a_scheduler_that_nobody_knows(void **state)
{
    (void)state;
    const gang_t *gang = NULL;
    assert_null(s_gang(NULL));
    assert_null(s_gang("none"));
    assert_int_equal(gang_pick(&gang, "Volcano"), TT_INVALID);
    assert_non_null(strstr(tt_err_text(), "volcano, scheduler-plugins"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_roles_that_the_spec_asks_for_are_members),
        cmocka_unit_test(test_the_fewest_that_are_enough_are_members),
        cmocka_unit_test(test_who_is_not_admitted_is_no_member),
        cmocka_unit_test(test_what_is_made_unasked_and_what_cannot_be),
        cmocka_unit_test(test_replicas_of_tasks_are_members),
        cmocka_unit_test(test_what_a_pod_asks_for),
        cmocka_unit_test(test_a_scheduling_policy_wins),
        cmocka_unit_test(test_a_pod_says_which_group_it_is_of),
        cmocka_unit_test(test_a_scheduler_that_nobody_knows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
