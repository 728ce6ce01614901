/*  What a reflector leaves of a pod is all that is decoded of it. */
#include "k8s/api/scan.h"
#include "k8s/dijob/dijob.h"
#include "tests/k8s/json.h"

static const char s_pod[] =
    "{'kind':'Pod','apiVersion':'v1','metadata':{'name':'j-ddp-learner-x','namespace':'rl','uid':'u','resourceVersion':"
    "'7',"
    "'creationTimestamp':'2026-11-21T10:00:00Z','deletionTimestamp':'2026-11-21T10:01:00Z','managedFields':[{'manager':"
    "'m'}],"
    "'labels':{'dijob-name':'j','replica-type':'ddp-learner','ddp-learner-type':'ddp-learner-master'},'annotations':{'"
    "tutti/replaces':"
    "'w','tutti/backoff':'8','tutti/failures':'5','diengine/rank':'3','diengine/"
    "task-rank':'2'},'ownerReferences':[{'kind':'DIJob','uid':'ju','controller':"
    "true},{'kind':'Pod','name':'j-aggregator-y','uid':'a'}]},'spec':{'nodeName':'n','restartPolicy':'OnFailure','"
    "volumes':[{'name':'v'}],"
    "'containers':[{'name':'shell','image':'b'},{'name':'di-container','env':[{'name':'A','value':'b'}],'ports':[{'"
    "name':'di-port',"
    "'containerPort':99}],'resources':{'limits':{'nvidia.com/"
    "gpu':'4'}}}]},'status':{'phase':'Running','reason':'OutOfcpu','podIP':"
    "'10.0.0.1','hostIP':'10.0.0.9','conditions':[{'type':'Ready','status':'True'},{'type':'DisruptionTarget','status':"
    "'True'}],"
    "'containerStatuses':[{'name':'di-container','ready':true,'restartCount':7,'image':'b','state':{'terminated':{'"
    "exitCode':3,'"
    "finishedAt':"
    "'2026-11-21T10:00:30Z'}}},{'name':'shell','state':{'waiting':{'reason':'CrashLoopBackOff'}}}]}}";

/*  A pod as text, to be compared. */
static char *s_text(const char *json, size_t size)
{
    dijob_pod_t *pod = NULL;
    assert_ok(dijob_pod_decode(&pod, json, size));
    char *text = tt_sprintf(
        "%s %s %s %llu job %s %s ip %s role %d phase %d main %d flags %d%d%d%d%d%d%d containers %d/%d port %d+%d "
        "backoff %d failures %d+%d exit %d rank %d/%d of %d times %lld %lld replaces %s owner %s",
        pod->meta.namespace_, pod->meta.name, pod->meta.uid, (unsigned long long)pod->meta.version, pod->job,
        pod->job_uid, pod->ip, pod->role, pod->phase, pod->main, pod->deleting, pod->scheduled, pod->ready,
        pod->disrupted, pod->stuck, pod->refused, pod->ddp_master, pod->ready_containers, pod->containers, pod->port,
        pod->gpu_ports, pod->backoff_s, pod->failures, pod->own_restarts, pod->exit_code, pod->rank, pod->task_rank,
        pod->reschedules, (long long)pod->created_s, (long long)pod->finished_s, pod->replaces, pod->owner_pod);
    tt_pool_free(pod);
    return text;
}

typedef struct {
    char *text;
    size_t size;
} seen_t;

static tt_status_t s_on_object(void *ctx, const char *type, const char *json, size_t size)
{
    seen_t *seen = ctx;
    (void)type;
    seen->text = s_text(json, size);
    seen->size = size;
    return TT_OK;
}

static void test_nothing_that_is_read_is_dropped(void **state)
{
    (void)state;
    seen_t seen = {0};
    kube_scan_t *scan = NULL;
    json_t *pod = json_of(s_pod),
           *list = json_pack("{s:{s:s}, s:[O]}", "metadata", "resourceVersion", "1", "items", pod);
    char *whole = kube_dump(pod), *body = kube_dump(list), *want = s_text(whole, strlen(whole));
    assert_ok(kube_scan_new(&scan, KUBE_SCAN_LIST, entry_pod_drop, 1 << 20, s_on_object, &seen));
    assert_ok(kube_scan_feed(scan, body, strlen(body)));
    assert_ok(kube_scan_end(scan));
    assert_non_null(seen.text);
    assert_string_equal(seen.text, want);
    assert_non_null(strstr(want, "flags 1111111 containers 1/2 port 99+3 backoff 8 failures 5+7 exit 3 rank 3/2"));
    assert_true(seen.size < strlen(whole) - 100);
    kube_scan_destroy(&scan);
    free(seen.text), free(whole), free(body), free(want);
    json_decref(list);
    json_decref(pod);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_nothing_that_is_read_is_dropped)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
