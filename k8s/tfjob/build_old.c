/*  build_old - what only jobs of v1alpha1 have: parameter servers without a template, TensorBoard, labels. */
#include <stdlib.h>
#include <string.h>
#include "common/base/buf.h"
#include "common/base/mem.h"
#include "k8s/front/object.h"
#include "k8s/tfjob/tfjob.h"

#define IMAGE  "tensorflow/tensorflow:1.3.0"
#define VOLUME "ps-config-volume"
#define FOLDER "/ps-server"
#define SCRIPT "grpc_tensorflow_server.py"
enum { BOARD_PORT = 6006, SPEC_MAX = 16 << 20, UID_PART = 8 };

const char tfjob_old_script[] =
    "# A parameter server: it keeps variables till somebody ends it. SIGTERM is lost on a container's first process\n"
    "# that does not ask for it, and a handler of Python's would never run while the server is waited for.\n"
    "import argparse, os, signal, threading\n"
    "\n"
    "def end():\n"
    "    signal.sigwait([signal.SIGTERM])\n"
    "    os._exit(128 + signal.SIGTERM)\n"
    "\n"
    "if hasattr(signal, 'sigwait'):  # not in Python 2, as TensorFlow 1 may have it\n"
    "    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])  # by every thread made from here on\n"
    "    waits = threading.Thread(target=end)\n"
    "    waits.daemon = True\n"
    "    waits.start()\n"
    "import tensorflow as tf\n"
    "\n"
    "options = argparse.ArgumentParser()\n"
    "options.add_argument('--cluster_spec', required=True, help='ps|host:port;host:port,worker|host:port')\n"
    "options.add_argument('--job_name', required=True)\n"
    "options.add_argument('--task_id', required=True, type=int)\n"
    "asked = options.parse_args()\n"
    "cluster = {}\n"
    "for group in asked.cluster_spec.split(','):\n"
    "    name, hosts = group.split('|')\n"
    "    cluster[name] = hosts.split(';')\n"
    "begin = tf.train.Server if hasattr(tf.train, 'Server') else tf.distribute.Server\n"
    "server = begin(tf.train.ClusterSpec(cluster), job_name=asked.job_name, task_index=asked.task_id, "
    "protocol='grpc')\n"
    "server.join()\n";

static const char *s_image(const json_t *whole)
{
    const char *image = parts_text(json_object_get(whole, "spec"), "tfImage", "");
    return *image ? image : IMAGE;
}

/* ---- parameter servers ---------------------------------------------------------------------------------------------------- */

bool tfjob_old_is_default(const tfjob_t *job, const tfjob_place_t *place)
{
    return job->old.default_ps && place->type == TFJOB_PS;
}

/*  "master|a:2222,ps|b:2222;c:2222": types in the order of the alphabet. Caller frees. */
static char *s_cluster(const tfjob_t *job, tfjob_host_fn host, void *ctx)
{
    tt_buf_t text;
    tt_buf_init(&text, SPEC_MAX);
    for (int type = 0; type < TFJOB_TYPES; type++) {
        for (int32_t i = 0; job->types[type].there && i < job->types[type].replicas; i++) {
            char *at = host(ctx, job, (tfjob_type_t)type, i);
            (void)tt_buf_printf(&text, "%s%s%s%s", i || text.size == 0 ? "" : ",",
                i ? "" : tfjob_type_label((tfjob_type_t)type), i ? ";" : "|", at);
            free(at);
        }
    }
    char *out = tt_strdup(tt_buf_text(&text));
    tt_buf_free(&text);
    return out;
}

json_t *tfjob_old_command(const tfjob_t *job, const tfjob_place_t *place, tfjob_host_fn host, void *ctx)
{
    char *cluster = s_cluster(job, host, ctx), *index = tt_sprintf("%d", place->index);
    json_t *command = json_pack("[s, s, s, s, s, s, s, s]", "python", FOLDER "/" SCRIPT, "--cluster_spec", cluster,
        "--job_name", "ps", "--task_id", index);
    free(cluster);
    free(index);
    return command;
}

/*  It may be made and not read: with the job's UID in its name nobody else has it, nor a job with the same RuntimeId. */
static char *s_script_name(const tfjob_t *job)
{
    return tt_sprintf("cm-ps-%s-%.*s", job->old.runtime_id, UID_PART, job->meta.uid);
}

json_t *tfjob_old_template(
    const tfjob_t *job, const json_t *whole, const tfjob_place_t *place, tfjob_host_fn host, void *ctx)
{
    char *name = s_script_name(job);
    json_t *container = json_pack("{s:s, s:s, s:o, s:[{s:s, s:s}]}", "name", TFJOB_CONTAINER, "image", s_image(whole),
        "command", tfjob_old_command(job, place, host, ctx), "volumeMounts", "name", VOLUME, "mountPath", FOLDER);
    json_t *volume = json_pack("{s:s, s:{s:s}}", "name", VOLUME, "configMap", "name", name);
    free(name);
    return json_pack(
        "{s:{s:s, s:[o], s:[o]}}", "spec", "restartPolicy", "OnFailure", "containers", container, "volumes", volume);
}

/* ---- objects ------------------------------------------------------------------------------------------------------------------ */

uint32_t tfjob_old_objects(const tfjob_t *job)
{
    const uint32_t board = 1u << TFJOB_OLD_BOARD | 1u << TFJOB_OLD_BOARD_SERVICE;
    return (job->old.default_ps ? 1u << TFJOB_OLD_SCRIPT : 0) | (job->old.board ? board : 0);
}

/*  None of those by which pods and services of places are found. */
static json_t *s_board_labels(const tfjob_t *job)
{
    return json_pack(
        "{s:s, s:s, s:s}", "app", "tensorboard", "runtime_id", job->old.runtime_id, "tf_job_name", job->meta.name);
}

/*  Goes when the job goes, and not at its end: what it shows is of use then. */
static json_t *s_metadata(const tfjob_t *job, const char *name, json_t *labels)
{
    const char *namespace_ = *job->meta.namespace_ ? job->meta.namespace_ : "default";
    json_t *owner = parts_owner_of(TFJOB_API_VERSION, "TFJob", job->meta.name, job->meta.uid, true);
    return json_pack(
        "{s:s, s:s, s:o, s:[o]}", "name", name, "namespace", namespace_, "labels", labels, "ownerReferences", owner);
}

static json_t *s_script_map(const tfjob_t *job)
{
    char *name = s_script_name(job);
    json_t *metadata = s_metadata(
        job, name, json_pack("{s:s, s:s}", "runtime_id", job->old.runtime_id, "tf_job_name", job->meta.name));
    free(name);
    return json_pack("{s:s, s:s, s:o, s:{s:s}}", "apiVersion", "v1", "kind", "ConfigMap", "metadata", metadata, "data",
        SCRIPT, tfjob_old_script);
}

static json_t *s_list_of(const json_t *holder, const char *key)
{
    const json_t *list = parts_array(holder, key);
    return list ? json_deep_copy(list) : json_array();
}

static json_t *s_board_pod(const tfjob_t *job, const json_t *whole)
{
    const json_t *asked = json_object_get(json_object_get(whole, "spec"), "tensorboard");
    json_t *command = json_pack("[s, s, s, s, s, s, s]", "tensorboard", "--logdir", parts_text(asked, "logDir", ""),
        "--host", "0.0.0.0", "--port", "6006");
    json_t *container = json_pack("{s:s, s:s, s:o, s:[{s:i}], s:o}", "name", "tensorboard", "image", s_image(whole),
        "command", command, "ports", "containerPort", BOARD_PORT, "volumeMounts", s_list_of(asked, "volumeMounts"));
    return json_pack("{s:{s:o}, s:{s:[o], s:o}}", "metadata", "labels", s_board_labels(job), "spec", "containers",
        container, "volumes", s_list_of(asked, "volumes"));
}

static json_t *s_board(const tfjob_t *job, const json_t *whole, const char *name)
{
    return json_pack("{s:s, s:s, s:o, s:{s:i, s:{s:o}, s:o}}", "apiVersion", "apps/v1", "kind", "Deployment",
        "metadata", s_metadata(job, name, s_board_labels(job)), "spec", "replicas", 1, "selector", "matchLabels",
        s_board_labels(job), "template", s_board_pod(job, whole));
}

static json_t *s_board_service(const tfjob_t *job, const json_t *whole, const char *name)
{
    const json_t *asked = json_object_get(json_object_get(whole, "spec"), "tensorboard");
    const char *type = parts_text(asked, "serviceType", "");
    return json_pack("{s:s, s:s, s:o, s:{s:s, s:o, s:[{s:s, s:i, s:i}]}}", "apiVersion", "v1", "kind", "Service",
        "metadata", s_metadata(job, name, s_board_labels(job)), "spec", "type", *type ? type : "ClusterIP", "selector",
        s_board_labels(job), "ports", "name", "tb-port", "port", 80, "targetPort", BOARD_PORT);
}

json_t *tfjob_old_build(const tfjob_t *job, const json_t *whole, tfjob_old_object_t which)
{
    if (which == TFJOB_OLD_SCRIPT)
        return s_script_map(job);
    char *name = tt_sprintf("%.*s-tensorboard-%s", TFJOB_OLD_NAME, job->meta.name, job->old.runtime_id);
    json_t *object = which == TFJOB_OLD_BOARD ? s_board(job, whole, name) : s_board_service(job, whole, name);
    free(name);
    return object;
}

/* ---- labels --------------------------------------------------------------------------------------------------------------- */

static const char *s_type_word(tfjob_type_t type)
{
    return type == TFJOB_PS ? "PS" : type == TFJOB_WORKER ? "WORKER" : "MASTER";
}

void tfjob_old_labels(json_t *labels, const tfjob_t *job, const tfjob_place_t *place)
{
    char *index = tt_sprintf("%d", place->index);
    json_t *own = json_pack("{s:s, s:s, s:s, s:s, s:s}", TFJOB_GROUP, "", "job_type", s_type_word(place->type),
        "runtime_id", job->old.runtime_id, "tf_job_name", job->meta.name, "task_index", index);
    json_object_update(labels, own);
    json_decref(own);
    free(index);
}
