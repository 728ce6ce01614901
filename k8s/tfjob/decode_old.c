/*  decode_old - a spec of v1alpha1: replicas as a list, one of which is the chief by terminationPolicy.
 *
 *  Nothing stood in a spec of that time about runs: a job has neither deadline nor limits, and leaves nothing when it is over. */
#include <stdio.h>
#include <string.h>
#include "k8s/tfjob/decode.h"

static const char *const s_types[] = {"", "MASTER", "PS", "WORKER"};

static tfjob_type_t s_type(size_t word)
{
    static const tfjob_type_t types[] = {TFJOB_MASTER, TFJOB_MASTER, TFJOB_PS, TFJOB_WORKER, TFJOB_TYPES};
    return types[word];
}

bool tfjob_is_old(const json_t *spec)
{
    return json_object_get(spec, "replicaSpecs") && !json_object_get(spec, "tfReplicaSpecs");
}

/* ---- replicas ------------------------------------------------------------------------------------------------------------- */

/*  The template's own, as nothing beside it said another one: Kubernetes' default is Always. */
static tfjob_restart_t s_restart(const json_t *template_)
{
    const char *policy = parts_text(parts_object(template_, "spec"), "restartPolicy", "Always");
    return strcmp(policy, "Never") == 0       ? TFJOB_NEVER
           : strcmp(policy, "OnFailure") == 0 ? TFJOB_ON_FAILURE
                                              : TFJOB_ALWAYS;
}

static void s_template(tfjob_t *self, tfjob_type_t type, const json_t *holder, const char *where)
{
    tfjob_replicas_t *replicas = &self->types[type];
    const json_t *member = json_object_get(holder, "template"), *template_ = parts_object(holder, "template");
    replicas->restart = s_restart(template_);
    if (template_)
        tfjob_containers(self, replicas, template_, where);
    else if (type != TFJOB_PS || (member && !json_is_null(member)))
        INVALID(self, "expected %s.template: only a PS has one where nothing is said", where);
    else {
        self->old.default_ps = true;
        replicas->restart = TFJOB_ON_FAILURE;
    }
}

static void s_replicas(tfjob_t *self, const json_t *holder, const char *where)
{
    const size_t word = spec_word(&self->invalid, holder, where, "tfReplicaType", s_types, TT_COUNT(s_types));
    const tfjob_type_t type = s_type(word);
    if (type == TFJOB_TYPES)
        return;
    tfjob_replicas_t *replicas = &self->types[type];
    if (replicas->there)
        INVALID(self, "%s: there are two of tfReplicaType %s", where, word ? s_types[word] : "MASTER");
    replicas->there = true;
    replicas->replicas = (int32_t)spec_number(
        &self->invalid, holder, where, "replicas", 1, 1, type == TFJOB_MASTER ? 1 : TFJOB_REPLICAS_MAX);
    s_template(self, type, holder, where);
    replicas->port = (uint16_t)spec_number(&self->invalid, holder, where, "tfPort", TFJOB_PORT_NUMBER, 1, 65535);
}

static void s_list(tfjob_t *self, const json_t *spec)
{
    const json_t *list = parts_array(spec, "replicaSpecs");
    char where[48];
    size_t i;
    json_t *holder;
    if (json_array_size(list) == 0)
        INVALID(self, "spec.replicaSpecs: expected a list of replicas");
    json_array_foreach((json_t *)(uintptr_t)list, i, holder)
    {
        snprintf(where, sizeof where, "spec.replicaSpecs[%zu]", i);
        if (json_is_object(holder))
            s_replicas(self, holder, where);
        else
            INVALID(self, "%s: expected a mapping", where);
    }
}

/* ---- the rest ------------------------------------------------------------------------------------------------------------- */

static void s_chief(tfjob_t *self, const json_t *spec)
{
    static const char where[] = "spec.terminationPolicy.chief";
    const json_t *chief = parts_object(parts_object(spec, "terminationPolicy"), "chief");
    const tfjob_type_t type =
        s_type(spec_word(&self->invalid, chief, where, "replicaName", s_types, TT_COUNT(s_types)));
    self->old.chief = type < TFJOB_TYPES ? type : TFJOB_MASTER;
    self->old.chief_index =
        (int32_t)spec_number(&self->invalid, chief, where, "replicaIndex", 0, 0, TFJOB_REPLICAS_MAX - 1);
    const tfjob_replicas_t *replicas = &self->types[self->old.chief];
    if (!replicas->there || self->old.chief_index >= replicas->replicas)
        INVALID(self, "spec.terminationPolicy: there is no %s %d among spec.replicaSpecs to say when the job is done",
            tfjob_type_title(self->old.chief), (int)self->old.chief_index);
}

/*  It is in the names of what is made, so it has to be the same at every look: where none is given it is drawn from the job's
 *  UID. */
static void s_draw(tfjob_t *self)
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    for (const char *at = *self->meta.uid ? self->meta.uid : self->meta.name; *at; at++)
        hash = (hash ^ (unsigned char)*at) * 1099511628211u;
    for (size_t i = 0; i < 4; i++, hash /= 36)
        self->old.runtime_id[i] = digits[hash % 36];
}

static void s_runtime_id(tfjob_t *self, const json_t *spec)
{
    const char *text = spec_text(&self->invalid, spec, "spec", "RuntimeId");
    const size_t length = strlen(text);
    if (length > TFJOB_RUNTIME_MAX || strspn(text, "0123456789abcdefghijklmnopqrstuvwxyz") != length)
        INVALID(self, "spec.RuntimeId: '%.40s' is not made of at most %d lower case letters and digits", text,
            TFJOB_RUNTIME_MAX);
    else if (length > 0)
        snprintf(self->old.runtime_id, sizeof self->old.runtime_id, "%s", text);
    if (!*self->old.runtime_id)
        s_draw(self);
}

static void s_board(tfjob_t *self, const json_t *spec)
{
    static const char where[] = "spec.tensorboard";
    static const char *const types[] = {"", "ClusterIP", "NodePort", "LoadBalancer"};
    const json_t *board = json_object_get(spec, "tensorboard");
    self->old.board = *parts_text(board, "logDir", "") != '\0';
    if (board && !json_is_null(board) && !self->old.board)
        INVALID(self, "%s.logDir: expected a folder", where);
    spec_word(&self->invalid, board, where, "serviceType", types, TT_COUNT(types));
}

/*  All of it is a label's value, and its beginning that of names. */
static void s_name(tfjob_t *self)
{
    if (strlen(self->meta.name) > TFJOB_NAME_MAX)
        INVALID(self, "metadata.name: '%.80s' is to be a label, which has at most %d characters", self->meta.name,
            TFJOB_NAME_MAX);
}

void tfjob_old_spec(tfjob_t *self, const json_t *spec)
{
    self->old.there = true;
    self->clean = TT_CLEAN_ALL;
    self->deadline_s = self->ttl_s = self->backoff_limit = -1;
    s_list(self, spec);
    s_chief(self, spec);
    s_runtime_id(self, spec);
    s_board(self, spec);
    s_name(self);
}
