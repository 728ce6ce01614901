/*  engine - what runs the jobs: one process a registry, in the foreground, on this machine or on a cluster.
 *
 *  Every decision is a transaction of the store and made before it is carried out: a job is `running` there before its process is. So
 *  whatever is killed, the next engine knows what may have been under way. It ends what is left of it (survivors.h), believes the exit
 *  codes that jobs left behind, and lets those run again that left none. No job runs twice at once, and none that has ended is run
 *  again.
 *
 *  A job is a replica of the process substrate (controller/process.h): it ends with the engine, however that ends. It has
 *  ended when nothing of it is left and the store has its end; till then it keeps its slot, and the others go on.
 *
 *  Threads: one, and no other when it begins. */
#pragma once
#include "k8s/api/kubeconfig.h"
#include "task/cluster.h"
#include "task/store.h"

enum { ENGINE_SLOTS_MAX = 1024, ENGINE_GPU_NAME = 64, ENGINE_GRACE_MS = 5000 };

/*  Jobs as Jobs of a Kubernetes (task/cluster.h). They go on when the engine ends, and the next one of this kind finds them. Only tasks
 *  with an image, that stand in `volume`, are its concern. */
typedef struct {
    kube_config_opts_t kube;
    cluster_rules_t rules;
    const char *claim;  /* the PersistentVolumeClaim that holds `volume` */
    const char *volume; /* absolute, without links                       */
} engine_cluster_t;

typedef struct {
    const engine_cluster_t *cluster;          /* NULL = processes of this machine */
    bool stay;                                /* wait for new tasks when there is nothing left */
    void (*say)(void *ctx, const char *line); /* what happens, a line a deed; may be NULL */
    void *ctx;
} engine_options_t;

/*  Run until nothing is left to do, or SIGTERM, SIGINT or SIGHUP: then jobs are ended, and will run again next time. *signal: the one that
 *  came, 0 = none. TT_EXISTS: another engine has this registry. TT_UNAVAILABLE: jobs are left that no slot takes. */
tt_status_t engine_run(store_t *store, const engine_options_t *options, int *signal);

/*  What an engine that died left behind is put right, as the next one would: for commands, so that what they show and change is so.
 *  Nothing is done while an engine lives; nor where a process does not end though it was killed, which is said. */
tt_status_t engine_settle(store_t *store);
/*  Its process; 0: there is none. */
int engine_pid(store_t *store);

/*  Slots: one job each. cpus: -1 = one a processor (the default); gpus: "0,1", names as CUDA_VISIBLE_DEVICES takes them, "" = none. They
 *  hold until they are changed; an engine that runs heeds them at once, and lets the jobs that run end. NULL and -2: as they were. TT_INVALID. */
tt_status_t engine_slots_set(store_t *store, int cpus, const char *gpus);

typedef struct {
    size_t cpus, gpus;
    char gpu[ENGINE_SLOTS_MAX][ENGINE_GPU_NAME];
} engine_slots_t;
tt_status_t engine_slots(store_t *store, engine_slots_t *out);
