/*  kube_watch - reflector and lease against a real API server (KUBECONFIG), for test_watch.py.
 *
 *    kube_watch watch PATH [PAGE [LABELS]]   answers each line of its input, "look", with one line of JSON: what the
 *                                            store holds ({"namespace/name": "uid version"}), synced, the statistics
 *    kube_watch mine PATH N                  makes N ConfigMaps while it watches, changes and removes them, each answer
 *                                            going into the store at once; then as above
 *    kube_watch lease NAMESPACE NAME HOLDER  prints "held MS" and "lost MS" (monotonic); its end frees the lease
 *
 *  Ends when its input does. */
#include <malloc.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/mem.h"
#include "k8s/api/lease.h"
#include "k8s/api/store.h"

typedef struct {
    kube_meta_t meta;
} thing_t;

typedef struct {
    tt_reactor_t *loop;
    kube_client_t *client;
    kube_store_t *store;
    kube_reflector_t *reflector;
    const char *path;
    int todo, twice; /* of `mine`: objects to be made; changes that were told with a version we had */
    int64_t synced_ms, began_ms;
    bool over;

} watch_t;

/* ---- the store ------------------------------------------------------------------------------------------------------- */

static tt_status_t s_decode(void *ctx, const char *json, size_t size, void **entry)
{
    (void)ctx;
    json_t *object = json_loadb(json, size, 0, NULL);
    thing_t *thing = tt_new0(sizeof *thing);
    const tt_status_t status = object ? kube_meta_read(&thing->meta, object) : tt_err(TT_DATA, "no JSON");
    json_decref(object);
    if (status == TT_OK)
        *entry = thing;
    else
        free(thing);
    return status;
}

static void s_destroy(void *entry)
{
    kube_meta_clear(&((thing_t *)entry)->meta);
    free(entry);
}

static void s_changed(void *ctx, const void *before, const void *now)
{
    watch_t *self = ctx;
    const thing_t *was = before, *is = now;
    self->twice += was && is && was->meta.version == is->meta.version;
}

static void s_synced(void *ctx)
{
    watch_t *self = ctx;
    self->synced_ms = tt_now_ms(tt_clock_real()) - self->began_ms;
}

/* ---- what is asked --------------------------------------------------------------------------------------------------- */

/*  Bytes that are allocated and not freed; under a sanitizer, which has an allocator of its own, none. */
static json_int_t s_living(void)
{
    const struct mallinfo2 all = mallinfo2();
    return (json_int_t)(all.uordblks + all.hblkhd);
}

static void s_look(watch_t *self)
{
    const json_int_t living = s_living(); /* without what is made here */
    json_t *objects = json_object();
    const void *at = NULL;
    for (const thing_t *thing; (thing = kube_store_each(self->store, &at)) != NULL;) {
        char *key = tt_sprintf("%s/%s", thing->meta.namespace_, thing->meta.name);
        char *value = tt_sprintf("%s %llu", thing->meta.uid, (unsigned long long)thing->meta.version);
        json_object_set_new(objects, key, json_string(value));
        free(key);
        free(value);
    }
    const kube_reflector_stats_t stats = kube_reflector_stats(self->reflector);
    json_t *answer = json_pack("{s:o, s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:i, s:i, s:I}", "objects", objects, "synced",
        kube_reflector_synced(self->reflector), "synced_ms", (json_int_t)self->synced_ms, "lists",
        (json_int_t)stats.lists, "watches", (json_int_t)stats.watches, "events", (json_int_t)stats.events, "bookmarks",
        (json_int_t)stats.bookmarks, "errors", (json_int_t)stats.errors, "twice", self->twice, "todo", self->todo,
        "living", living);
    char *text = json_dumps(answer, JSON_COMPACT);
    printf("%s\n", text);
    fflush(stdout);
    free(text);
    json_decref(answer);
}

static void s_on_input(void *ctx, int fd)
{
    watch_t *self = ctx;
    char buf[256];
    const ssize_t n = read(fd, buf, sizeof buf);
    if (n <= 0) {
        self->over = true;
        tt_reactor_forget_fd(self->loop, fd);
    }
    for (ssize_t i = 0; i < n; i++)
        if (buf[i] == '\n' && self->store)
            s_look(self);
}

/* ---- our own writes ---------------------------------------------------------------------------------------------------- */

typedef struct {
    watch_t *watch;
    int i, step; /* of object i: made, changed, removed */
} write_t;

static void s_on_written(void *ctx, const kube_reply_t *reply);

static void s_write(void *ctx)
{
    static const char *const methods[] = {"POST", "PATCH", "DELETE"};
    write_t *write = ctx;
    const watch_t *self = write->watch;
    const int i = write->i, step = write->step;
    char *body = tt_sprintf("{\"metadata\":{\"name\":\"mine-%d\"},\"data\":{\"step\":\"%d\"}}", i, step);
    char *path = step ? tt_sprintf("%s/mine-%d", self->path, i) : tt_strdup(self->path);
    const kube_request_t request = {.method = methods[step],
        .path = path,
        .body = step == 2 ? NULL : body,
        .content_type = step == 1 ? "application/merge-patch+json" : NULL,
        .timeout_ms = 10000};
    kube_client_send(self->client, &request, s_on_written, write);
    free(body);
    free(path);
}

/*  The answer goes into the store; then the next step. Odd ones are not removed. */
static void s_on_written(void *ctx, const kube_reply_t *reply)
{
    write_t *write = ctx;
    watch_t *self = write->watch;
    char name[32];
    snprintf(name, sizeof name, "mine-%d", write->i);
    /* 403 is what a server says that has begun and does not know the namespaces yet */
    if (!reply->code || reply->code == 403 || reply->code >= 429) {
        tt_reactor_timer(self->loop, 200, s_write, write);
        return;
    }
    if (reply->code == 404 || (reply->code == 200 && write->step == 2)) /* a Status is the answer to a deletion */
        kube_store_gone(self->store, "default", name, UINT64_MAX);
    else if (reply->code / 100 == 2)
        (void)kube_store_put(self->store, reply->body, reply->size);
    if (++write->step == (write->i % 2 ? 2 : 3)) {
        self->todo--;
        free(write);
    } else {
        s_write(write);
    }
}

/* ---- main -------------------------------------------------------------------------------------------------------------- */

static void s_lease_changed(void *ctx, bool held)
{
    (void)ctx;
    printf("%s %lld\n", held ? "held" : "lost", (long long)tt_now_ms(tt_clock_real()));
    fflush(stdout);
}

static tt_status_t s_run(watch_t *self)
{
    tt_reactor_fd(self->loop, 0, s_on_input, self);
    while (!self->over)
        TT_TRY(tt_reactor_poll(self->loop, 1000));
    return TT_OK;
}

static tt_status_t s_lease(watch_t *self, char **argv)
{
    kube_lease_t *lease = NULL;
    const kube_lease_opts_t opts = {
        .namespace_ = argv[2], .name = argv[3], .holder = argv[4], .changed = s_lease_changed};
    TT_TRY(kube_lease_new(&lease, self->client, &opts));
    const tt_status_t status = s_run(self);
    kube_lease_destroy(&lease);
    return status;
}

static tt_status_t s_watch(watch_t *self, int argc, char **argv)
{
    const bool mine = strcmp(argv[1], "mine") == 0;
    const kube_store_ops_t ops = {.decode = s_decode, .destroy = s_destroy, .changed = s_changed, .ctx = self};
    const kube_reflector_opts_t opts = {.path = argv[2],
        .page = argc > 3 && !mine ? atoi(argv[3]) : 0,
        .label_selector = argc > 4 ? argv[4] : NULL,
        .metadata_only = !mine,
        .synced = s_synced,
        .ctx = self};
    self->path = argv[2];
    self->began_ms = tt_now_ms(tt_clock_real());
    TT_TRY(kube_store_new(&self->store, &ops));
    TT_TRY(kube_reflector_new(&self->reflector, self->client, self->store, &opts));
    self->todo = mine && argc > 3 ? atoi(argv[3]) : 0;
    for (int i = 0, n = self->todo; i < n; i++) {
        write_t *write = tt_new0(sizeof *write);
        *write = (write_t){.watch = self, .i = i};
        s_write(write);
    }
    return s_run(self);
}

int main(int argc, char **argv)
{
    watch_t self = {0};
    kube_config_t *config = NULL;
    tt_status_t status = argc < 3 ? tt_err(TT_USAGE, "kube_watch watch|mine|lease ...") : TT_OK;
    if (status == TT_OK)
        status = kube_config_load(&config, &(kube_config_opts_t){0});
    if (status == TT_OK)
        status = tt_reactor_new(&self.loop, NULL);
    if (status == TT_OK)
        status = kube_client_new(&self.client, self.loop, config, &(kube_client_opts_t){.agent = "kube_watch"});
    if (status == TT_OK)
        status = strcmp(argv[1], "lease") == 0 && argc == 5 ? s_lease(&self, argv) : s_watch(&self, argc, argv);
    if (status != TT_OK)
        fprintf(stderr, "kube_watch: %s\n", tt_err_text());
    kube_reflector_destroy(&self.reflector);
    kube_store_destroy(&self.store);
    kube_client_destroy(&self.client);
    tt_reactor_destroy(&self.loop);
    kube_config_destroy(&config);
    return tt_status_exit_code(status);
}
