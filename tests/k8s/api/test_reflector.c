/*  reflector: against a server that pages, cuts, forgets, lies and falls silent, the store ends as the server is. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "k8s/api/store_fill.h"
#include "tests/k8s/api/watch_server.h"
#include "tests/test.h"

#define PATH "/api/v1/namespaces/n/things"

typedef struct {
    kube_meta_t meta;
    char value[32];
} thing_t;

typedef struct {
    world_t world;
    kube_store_t *store;
    kube_reflector_t *reflector;
    int synced, changes;
    bool junk;       /* something that should be dropped was decoded */
    uint64_t want;   /* for s_passed: this version; for s_has_lists: so many */
    uint64_t failed; /* how often it had when time was last turned over a back-off */
    bool (*done)(void *ctx);
} bench_t;

static tt_status_t s_decode(void *ctx, const char *json, size_t size, void **entry)
{
    bench_t *self = ctx;
    json_t *object = json_loadb(json, size, 0, NULL);
    thing_t *thing = tt_new0(sizeof *thing);
    tt_status_t status = object ? kube_meta_read(&thing->meta, object) : tt_err(TT_DATA, "no JSON");
    const char *value = json_string_value(json_object_get(json_object_get(object, "data"), "value"));
    snprintf(thing->value, sizeof thing->value, "%s", value ? value : "");
    self->junk |= json_object_get(json_object_get(object, "metadata"), "managedFields") != NULL;
    json_decref(object);
    if (status == TT_OK) {
        *entry = thing;
    } else {
        kube_meta_clear(&thing->meta);
        free(thing);
    }
    return status;
}

static void s_destroy(void *entry)
{
    thing_t *thing = entry;
    kube_meta_clear(&thing->meta);
    free(thing);
}

static void s_changed(void *ctx, const void *before, const void *now)
{
    bench_t *self = ctx;
    assert_true(before || now);
    self->changes++;
}

static void s_synced(void *ctx)
{
    bench_t *self = ctx;
    assert_true(kube_reflector_synced(self->reflector));
    self->synced++;
}

static void s_open(bench_t *self)
{
    *self = (bench_t){0};
    world_open(&self->world);
    const kube_store_ops_t ops = {.decode = s_decode, .destroy = s_destroy, .changed = s_changed, .ctx = self};
    assert_ok(kube_store_new(&self->store, &ops));
}

static void s_reflect(bench_t *self, kube_reflector_opts_t opts)
{
    opts.path = PATH;
    opts.synced = s_synced;
    opts.ctx = self;
    assert_ok(kube_reflector_new(&self->reflector, self->world.client, self->store, &opts));
}

static void s_close(bench_t *self)
{
    assert_false(self->junk);
    kube_reflector_destroy(&self->reflector);
    kube_store_destroy(&self->store);
    world_close(&self->world);
}

static bool s_is_synced(void *ctx)
{
    return kube_reflector_synced(((bench_t *)ctx)->reflector);
}

static bool s_passed(void *ctx)
{
    const bench_t *self = ctx;
    return kube_store_version(self->store) >= self->want;
}

static bool s_has_lists(void *ctx)
{
    const bench_t *self = ctx;
    return kube_reflector_stats(self->reflector).lists >= self->want;
}

/*  It has failed once more: the longest back-off goes by, which is short for anything that is under way. */
static bool s_done_or_later(void *ctx)
{
    bench_t *self = ctx;
    const uint64_t errors = kube_reflector_stats(self->reflector).errors;
    if (errors > self->failed)
        tt_clock_turn(&self->world.clock, INT64_C(30000000000));
    self->failed = errors;
    return self->done(self);
}

/*  Until done says so. Time stands while an answer is awaited, however slow the server is. */
static void s_until(bench_t *self, bool (*done)(void *ctx))
{
    self->done = done;
    world_until(&self->world, s_done_or_later, self, 0);
}

static void s_ctl(bench_t *self, const char *command)
{
    free(world_ctl(&self->world, command));
}

/*  Make or change a thing; its version. */
static uint64_t s_make(bench_t *self, const char *name, const char *value)
{
    char *answer = NULL;
    char *path = tt_sprintf("%s/%s", PATH, name);
    char *body = tt_sprintf("{'metadata':{'name':'%s','managedFields':[]},'data':{'value':'%s'}}", name, value);
    if (world_call(&self->world, "PUT", path, body, &answer) != TT_OK)
        assert_ok(world_call(&self->world, "POST", PATH, body, &answer));
    json_t *object = json_loads(answer, 0, NULL);
    uint64_t version = 0;
    assert_true(kube_version_read(
        json_string_value(json_object_get(json_object_get(object, "metadata"), "resourceVersion")), &version));
    json_decref(object);
    free(answer);
    free(path);
    free(body);
    return version;
}

static void s_remove(bench_t *self, const char *name)
{
    char *path = tt_sprintf("%s/%s", PATH, name);
    assert_ok(world_call(&self->world, "DELETE", path, NULL, NULL));
    free(path);
}

static const char *s_value(const bench_t *self, const char *name)
{
    const thing_t *thing = kube_store_get(self->store, "n", name);
    return thing ? thing->value : NULL;
}

/*  The store is what the server lists now. */
static void s_assert_same(bench_t *self, const char *query)
{
    char *answer = NULL, *path = tt_sprintf("%s?limit=0%s", PATH, query);
    assert_ok(world_call(&self->world, "GET", path, NULL, &answer));
    json_t *list = json_loads(answer, 0, NULL), *item;
    size_t i;
    json_array_foreach(json_object_get(list, "items"), i, item)
    {
        const json_t *meta = json_object_get(item, "metadata");
        const thing_t *thing = kube_store_get(self->store, "n", json_string_value(json_object_get(meta, "name")));
        assert_non_null(thing);
        assert_string_equal(thing->meta.uid, json_string_value(json_object_get(meta, "uid")));
        assert_string_equal(thing->value, json_string_value(json_object_get(json_object_get(item, "data"), "value")));
        assert_int_equal(thing->meta.version, atoll(json_string_value(json_object_get(meta, "resourceVersion"))));
    }
    assert_int_equal(kube_store_count(self->store), i);
    json_decref(list);
    free(answer);
    free(path);
}

/*  Once more something happens, and the store has it. */
static void s_assert_follows(bench_t *self)
{
    self->want = s_make(self, "last", "word");
    s_until(self, s_passed);
    assert_non_null(s_value(self, "last"));
    assert_string_equal(s_value(self, "last"), "word");
    s_assert_same(self, "");
}

/* ---- one by one ------------------------------------------------------------------------------------------------------- */

static void test_pages_then_watch(void **state)
{
    (void)state;
    bench_t bench;
    s_open(&bench);
    char name[20];
    for (int i = 0; i < 25; i++) {
        sprintf(name, "thing-%d", i);
        s_make(&bench, name, "one");
    }
    s_reflect(&bench, (kube_reflector_opts_t){.page = 10});
    s_until(&bench, s_is_synced);
    assert_int_equal(bench.synced, 1);
    assert_int_equal(bench.changes, 25);
    s_assert_same(&bench, "");
    s_make(&bench, "thing-3", "two");
    s_remove(&bench, "thing-4");
    s_assert_follows(&bench);
    assert_string_equal(s_value(&bench, "thing-3"), "two");
    assert_null(s_value(&bench, "thing-4"));
    assert_int_equal(bench.changes, 28);
    const kube_reflector_stats_t stats = kube_reflector_stats(bench.reflector);
    assert_int_equal(stats.lists, 1);
    assert_int_equal(stats.watches, 1);
    assert_int_equal(stats.events, 3);
    assert_int_equal(stats.errors, 0);
    char *asked = world_ctl(&bench.world, "{'do':'asked'}");
    assert_non_null(strstr(asked, "limit=10&continue=")); /* three pages, of which ... */
    const char *second = strstr(strstr(asked, "&continue=") + 1, "&continue=");
    assert_non_null(second); /* ... two go on */
    assert_null(strstr(second + 1, "&continue="));
    assert_non_null(strstr(asked, "watch=true&allowWatchBookmarks=true&timeoutSeconds="));
    assert_non_null(strstr(asked, "&resourceVersion=26"));
    free(asked);
    s_close(&bench);
}

/*  With one more bookmark: those before the watch is open are lost. */
static bool s_marked(void *ctx)
{
    s_ctl(ctx, "{'do':'bookmark'}");
    return s_passed(ctx);
}

static void test_selectors_and_metadata(void **state)
{
    (void)state;
    bench_t bench;
    s_open(&bench);
    s_ctl(&bench, "{'do':'chaos','path':'" PATH "','seed':1,'changes':50,'faults':0}");
    s_ctl(&bench, "{'do':'settle'}");
    s_reflect(&bench, (kube_reflector_opts_t){.label_selector = "on=yes", .metadata_only = true});
    s_until(&bench, s_is_synced);
    s_ctl(&bench, "{'do':'chaos','path':'" PATH "','seed':2,'changes':300,'faults':0}");
    s_ctl(&bench, "{'do':'settle'}");
    bench.want = s_make(&bench, "x", "y"); /* not selected: the bookmark behind it shows that all came */
    s_until(&bench, s_marked);
    s_assert_same(&bench, "&labelSelector=on%3Dyes");
    assert_true(kube_reflector_stats(bench.reflector).bookmarks > 0);
    char *asked = world_ctl(&bench.world, "{'do':'asked'}");
    assert_non_null(strstr(asked, "things?labelSelector=on%3Dyes&limit="));
    assert_non_null(strstr(asked, "as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"));
    assert_non_null(strstr(asked, "as=PartialObjectMetadata;v=v1;g=meta.k8s.io"));
    free(asked);
    s_close(&bench);
}

/*  Each way a watch can go wrong; what it costs. */
static void s_one_fault(const char *what, bool anew)
{
    bench_t bench;
    s_open(&bench);
    s_make(&bench, "a", "one");
    char *command = tt_sprintf("{'do':'faults','faults':[{'at':'watch','what':'%s'}]}", what);
    s_ctl(&bench, command);
    free(command);
    s_reflect(&bench, (kube_reflector_opts_t){0});
    s_until(&bench, s_is_synced);
    s_make(&bench, "b", "two");
    s_assert_follows(&bench);
    const kube_reflector_stats_t stats = kube_reflector_stats(bench.reflector);
    assert_int_equal(stats.lists, anew ? 2 : 1);
    assert_in_range(stats.watches, 1, 3);
    s_close(&bench);
}

static void test_watch_faults(void **state)
{
    (void)state;
    static const char *const kept[] = {"500", "403", "reset", "garbage", "end", "cut", "error500", "late"};
    for (size_t i = 0; i < TT_COUNT(kept); i++)
        s_one_fault(kept[i], false);
    s_one_fault("410", true);
    s_one_fault("error410", true);
}

static void test_list_faults(void **state)
{
    (void)state;
    bench_t bench;
    s_open(&bench);
    char name[20];
    for (int i = 0; i < 25; i++) {
        sprintf(name, "thing-%d", i);
        s_make(&bench, name, "one");
    }
    s_ctl(&bench, "{'do':'faults','faults':[{'at':'list','what':'500'},{'at':'list','what':'reset'},"
                  "{'at':'list','what':'garbage'},{'at':'page','what':'410'},{'at':'page','what':'reset'},"
                  "{'at':'page','what':'garbage'},{'at':'page','what':'500'}]}");
    s_reflect(&bench, (kube_reflector_opts_t){.page = 10});
    s_until(&bench, s_is_synced);
    assert_int_equal(bench.synced, 1);
    assert_int_equal(bench.changes, 25);
    assert_in_range(kube_reflector_stats(bench.reflector).errors, 5, 7); /* libcurl tries again on old connections */
    s_assert_same(&bench, "");
    s_assert_follows(&bench);
    s_close(&bench);
}

static bool s_has_failed(void *ctx)
{
    const bench_t *self = ctx;
    return kube_reflector_stats(self->reflector).errors > 0;
}

static bool s_is_silent(void *ctx)
{
    return world_met(&((bench_t *)ctx)->world);
}

static void test_silence(void **state)
{
    (void)state;
    bench_t bench;
    s_open(&bench);
    s_ctl(&bench, "{'do':'faults','faults':[{'at':'watch','what':'silence'}]}");
    s_reflect(&bench, (kube_reflector_opts_t){0});
    s_until(&bench, s_is_synced);
    s_until(&bench, s_is_silent); /* this watch, and not the next one */
    s_make(&bench, "a", "one");
    world_turn(&bench.world, 119000);
    assert_null(s_value(&bench, "a"));
    assert_int_equal(kube_reflector_stats(bench.reflector).errors, 0);
    world_until(&bench.world, s_has_failed, &bench, 1000); /* the silence begins when the watch has been answered */
    assert_int_equal(kube_reflector_stats(bench.reflector).errors, 1);
    s_assert_follows(&bench);
    assert_int_equal(kube_reflector_stats(bench.reflector).lists, 1);
    s_close(&bench);
}

/*  History is gone while we are away: what was removed meanwhile goes, too. */
static void test_forgotten(void **state)
{
    (void)state;
    bench_t bench;
    s_open(&bench);
    s_make(&bench, "a", "one");
    s_make(&bench, "b", "one");
    s_ctl(&bench, "{'do':'faults','faults':[{'at':'watch','what':'end'}]}");
    s_reflect(&bench, (kube_reflector_opts_t){0});
    s_until(&bench, s_is_synced);
    s_remove(&bench, "a"); /* time stands: the next watch is not asked for yet */
    s_make(&bench, "c", "one");
    s_ctl(&bench, "{'do':'compact'}");
    s_assert_follows(&bench);
    assert_null(s_value(&bench, "a"));
    assert_int_equal(kube_reflector_stats(bench.reflector).lists, 2);
    s_close(&bench);
}

static void test_set_back(void **state)
{
    (void)state;
    bench_t bench;
    s_open(&bench);
    for (int i = 0; i < 100; i++)
        s_make(&bench, "a", "many");
    s_reflect(&bench, (kube_reflector_opts_t){0});
    s_until(&bench, s_is_synced);
    bench.want = s_make(&bench, "a", "seen");
    s_until(&bench, s_passed); /* the watch is open */
    s_ctl(&bench, "{'do':'faults','faults':[{'at':'watch','what':'410','times':1}]}");
    s_ctl(&bench, "{'do':'set_back','by':60}"); /* last: it ends the watch, and the next one is to meet the fault */
    bench.want = 2;
    s_until(&bench, s_has_lists);
    const uint64_t made = s_make(&bench, "b", "new");
    assert_true(made < 60);
    s_assert_follows(&bench);
    s_assert_same(&bench, "");
    s_close(&bench);
}

static void test_bookmark_of_the_past(void **state)
{
    (void)state;
    bench_t bench;
    s_open(&bench);
    s_make(&bench, "a", "one");
    s_reflect(&bench, (kube_reflector_opts_t){0});
    s_until(&bench, s_is_synced);
    s_ctl(&bench, "{'do':'faults','faults':[{'at':'watch_now','what':'back'}]}");
    bench.want = 2;
    s_until(&bench, s_has_lists);
    s_assert_follows(&bench);
    s_close(&bench);
}

/*  A server that refuses every watch is not asked all the time. */
static void test_backoff(void **state)
{
    (void)state;
    bench_t bench;
    s_open(&bench);
    s_ctl(&bench, "{'do':'faults','faults':[{'at':'watch','what':'410','times':1000}]}");
    s_reflect(&bench, (kube_reflector_opts_t){0});
    bench.want = 8;
    const int64_t began_ms = tt_now_ms(&bench.world.clock);
    world_until(&bench.world, s_has_lists, &bench, 50);
    /* at once, then half of 0.8, 1.6, .. 25.6 s at least */
    assert_true(tt_now_ms(&bench.world.clock) - began_ms > 25000);
    s_close(&bench);
}

/* ---- at random ---------------------------------------------------------------------------------------------------------- */

static void test_chaos(void **state)
{
    (void)state;
    for (int seed = 1; seed <= 4; seed++) {
        bench_t bench;
        s_open(&bench);
        s_ctl(&bench, "{'do':'chaos','path':'" PATH "','seed':7,'changes':100,'faults':0}");
        s_ctl(&bench, "{'do':'settle'}");
        char *command = tt_sprintf("{'do':'chaos','path':'" PATH "','seed':%d,'changes':1500,'faults':0.03}", seed);
        s_ctl(&bench, command);
        free(command);
        s_reflect(&bench, (kube_reflector_opts_t){.page = 7});
        for (int i = 0; i < 400; i++) { /* it goes on while we look */
            assert_ok(tt_reactor_poll(bench.world.loop, 5));
            tt_clock_turn(&bench.world.clock, 50000000);
        }
        s_ctl(&bench, "{'do':'calm'}");
        s_assert_follows(&bench);
        s_close(&bench);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pages_then_watch),
        cmocka_unit_test(test_selectors_and_metadata), cmocka_unit_test(test_watch_faults),
        cmocka_unit_test(test_list_faults), cmocka_unit_test(test_silence), cmocka_unit_test(test_forgotten),
        cmocka_unit_test(test_set_back), cmocka_unit_test(test_bookmark_of_the_past), cmocka_unit_test(test_backoff),
        cmocka_unit_test(test_chaos)};
    return cmocka_run_group_tests(tests, NULL, world_end);
}
