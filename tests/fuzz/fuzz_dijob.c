/*  Jobs and pods from a server, and what is built of them. */
#include <stdlib.h>
#include "k8s/dijob/build.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void s_build(const json_t *object)
{
    for (int role = 0; role < DIJOB_ROLES; role++) {
        const dijob_pod_want_t want = {.role = (dijob_role_t)role,
            .name = "job-x",
            .server_url = "http://s",
            .resources = {.cpus = "2", .memory = "1Gi", .gpus = "1"},
            .gpus = 3,
            .split = true,
            .agconfig = object,
            .aggregator = "a",
            .aggregator_uid = "u"};
        json_t *pod = NULL;
        if (dijob_build_pod(&pod, object, &want) == TT_OK) {
            free(kube_dump(pod));
            json_decref(pod);
        }
    }
}

static void s_job(const uint8_t *data, size_t size)
{
    dijob_t *job = NULL;
    json_t *object = json_loadb((const char *)data, size, 0, NULL);
    if (object && dijob_from_json(&job, object) == TT_OK)
        s_build(object);
    dijob_destroy(&job);
    json_decref(object);
}

static void s_pod(const uint8_t *data, size_t size)
{
    char name[] = "job", nowhere[] = "";
    const dijob_t job = {.meta = {.name = name, .namespace_ = nowhere}};
    dijob_pod_t *pod = NULL;
    json_t *service = NULL;
    if (dijob_pod_decode(&pod, (const char *)data, size) == TT_OK && dijob_build_service(&service, &job, pod) == TT_OK)
        json_decref(service);
    tt_pool_free(pod);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dijob_service_t *service = NULL;
    dijob_service_decode(&service, (const char *)data, size);
    tt_pool_free(service);
    s_job(data, size);
    s_pod(data, size);
    return 0;
}
