/*  store: tables and indexes against a plain search; the rules of put, gone, list and watch, one by one and then in any
 *  interleaving of our writes' answers with what list and watch bring. */
#include "k8s/api/store_fill.h"
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/base/rng.h"
#include "tests/test.h"

/* ---- entries: metadata, and spec.color for an index ----------------------------------------------------------------- */

typedef struct {
    kube_meta_t meta;
    char color[16];  /* "" = none         */
    char place[512]; /* "namespace/color" */
} thing_t;

static int s_living; /* entries made and not destroyed */

static tt_status_t s_decode(void *ctx, const char *json, size_t size, void **entry)
{
    (void)ctx;
    json_t *object = json_loadb(json, size, 0, NULL);
    thing_t *thing = tt_new0(sizeof *thing);
    tt_status_t status = object ? kube_meta_read(&thing->meta, object) : tt_err(TT_DATA, "no JSON");
    if (status == TT_OK && json_object_get(object, "foreign"))
        status = tt_err(TT_DATA, "a foreign thing");
    const char *color = json_string_value(json_object_get(json_object_get(object, "spec"), "color"));
    if (status == TT_OK) {
        snprintf(thing->color, sizeof thing->color, "%s", color ? color : "");
        snprintf(thing->place, sizeof thing->place, "%s/%s", thing->meta.namespace_, thing->color);
        *entry = thing;
        s_living++;
    } else {
        kube_meta_clear(&thing->meta);
        free(thing);
    }
    json_decref(object);
    return status;
}

static void s_destroy(void *entry)
{
    thing_t *thing = entry;
    kube_meta_clear(&thing->meta);
    free(thing);
    s_living--;
}

static const char *s_color(const void *entry)
{
    const thing_t *thing = entry;
    return thing->color[0] ? thing->color : NULL;
}

static const char *s_place(const void *entry)
{
    return ((const thing_t *)entry)->place;
}

/*  What `changed` told: lines "before now", each "name:uid@version" or "-". */
static char s_told[4000];

static void s_tell(char *to, const thing_t *thing)
{
    if (thing)
        sprintf(to, "%s:%s@%llu", thing->meta.name, thing->meta.uid, (unsigned long long)thing->meta.version);
    else
        strcpy(to, "-");
}

static void s_changed(void *ctx, const void *before, const void *now)
{
    (void)ctx;
    char was[400], is[400];
    s_tell(was, before);
    s_tell(is, now);
    const size_t size = strlen(s_told);
    snprintf(s_told + size, sizeof s_told - size, "%s>%s ", was, is);
}

static void s_assert_told(const char *expected)
{
    assert_string_equal(s_told, expected);
    s_told[0] = '\0';
}

static kube_store_t *s_new(void)
{
    const kube_store_ops_t ops = {
        .decode = s_decode, .destroy = s_destroy, .index = {s_color, NULL, s_place}, .changed = s_changed};
    kube_store_t *store = NULL;
    assert_ok(kube_store_new(&store, &ops));
    s_told[0] = '\0';
    return store;
}

static const char *s_json(const char *name, const char *uid, uint64_t version, const char *color)
{
    static char json[500];
    snprintf(json, sizeof json,
        "{\"metadata\":{\"namespace\":\"n\",\"name\":\"%s\",\"uid\":\"%s\",\"resourceVersion\":\"%llu\"},"
        "\"spec\":{\"color\":\"%s\"}}",
        name, uid, (unsigned long long)version, color);
    return json;
}

static void s_put(kube_store_t *store, const char *name, const char *uid, uint64_t version)
{
    const char *json = s_json(name, uid, version, "red");
    assert_ok(kube_store_put(store, json, strlen(json)));
}

static void s_event(kube_store_t *store, const char *type, const char *name, const char *uid, uint64_t version)
{
    const char *json = s_json(name, uid, version, "red");
    kube_store_event(store, type, json, strlen(json));
}

static void s_listed(kube_store_t *store, const char *name, const char *uid, uint64_t version)
{
    const char *json = s_json(name, uid, version, "red");
    kube_store_list_object(store, json, strlen(json));
}

/* ---- rules ---------------------------------------------------------------------------------------------------------- */

static void test_list_and_watch(void **state)
{
    (void)state;
    TT_AUTO(kube_store) store = s_new();
    kube_store_list_begin(store);
    s_listed(store, "a", "1", 3);
    s_listed(store, "b", "2", 4);
    assert_ok(kube_store_list_end(store, 5));
    s_assert_told("->a:1@3 ->b:2@4 ");
    s_event(store, "MODIFIED", "a", "1", 6);
    s_event(store, "MODIFIED", "a", "1", 6); /* twice */
    s_event(store, "ADDED", "c", "3", 7);
    s_event(store, "DELETED", "b", "2", 8);
    s_event(store, "DELETED", "b", "2", 8);
    s_assert_told("a:1@3>a:1@6 ->c:3@7 b:2@4>- ");
    assert_int_equal(kube_store_version(store), 8);
    kube_store_passed(store, 20);
    kube_store_passed(store, 19);
    assert_int_equal(kube_store_version(store), 20);
    assert_int_equal(kube_store_count(store), 2);
    kube_store_list_begin(store); /* what is not in the next list goes, what is as it was is not told again */
    s_listed(store, "a", "1", 6);
    s_listed(store, "d", "4", 21);
    assert_ok(kube_store_list_end(store, 22));
    s_assert_told("->d:4@21 c:3@7>- ");
    assert_null(kube_store_get(store, "n", "c"));
    assert_null(kube_store_get(store, "m", "a"));
    assert_null(kube_store_by_uid(store, "3"));
    assert_ptr_equal(kube_store_by_uid(store, "4"), kube_store_get(store, "n", "d"));
}

static void test_our_writes(void **state)
{
    (void)state;
    TT_AUTO(kube_store) store = s_new();
    s_event(store, "ADDED", "a", "1", 10);
    s_put(store, "a", "1", 12);
    s_event(store, "MODIFIED", "a", "1", 11); /* late */
    s_event(store, "MODIFIED", "a", "1", 12);
    s_assert_told("->a:1@10 a:1@10>a:1@12 ");
    s_event(store, "DELETED", "a", "1", 13);
    s_put(store, "a", "1", 12); /* the watch has passed it */
    s_assert_told("a:1@12>- ");
    s_put(store, "b", "2", 20);
    s_put(store, "b", "3", 22); /* the name's next owner: the old one is gone */
    s_event(store, "ADDED", "b", "2", 20);
    s_event(store, "DELETED", "b", "2", 21);
    s_event(store, "ADDED", "b", "3", 22);
    s_assert_told("->b:2@20 b:2@20>- ->b:3@22 ");
    s_put(store, "b", "3", 30); /* the answer to our deletion */
    s_event(store, "DELETED", "b", "3", 30);
    s_assert_told("b:3@22>b:3@30 b:3@30>- ");
}

static void test_gone(void **state)
{
    (void)state;
    TT_AUTO(kube_store) store = s_new();
    kube_store_gone(store, "n", "a", 5);
    s_put(store, "a", "1", 10);
    kube_store_gone(store, "n", "a", 9); /* a newer one has come since */
    s_assert_told("->a:1@10 ");
    kube_store_gone(store, "n", "a", 10);
    s_assert_told("a:1@10>- ");
    s_event(store, "ADDED", "a", "1", 10); /* the watch is behind */
    s_event(store, "MODIFIED", "a", "1", 11);
    s_put(store, "a", "1", 11);
    s_event(store, "DELETED", "a", "1", 12);
    s_assert_told("");
    s_event(store, "ADDED", "a", "2", 13);
    s_assert_told("->a:2@13 ");
    kube_store_list_begin(store);
    kube_store_gone(store, "n", "a", 13); /* gone while the list comes, which is older */
    s_listed(store, "a", "2", 13);
    assert_ok(kube_store_list_end(store, 14));
    s_assert_told("a:2@13>- ");
    assert_int_equal(kube_store_count(store), 0);
}

static void test_writes_during_a_list(void **state)
{
    (void)state;
    TT_AUTO(kube_store) store = s_new();
    s_event(store, "ADDED", "a", "1", 3);
    kube_store_list_begin(store); /* a snapshot at 10 */
    s_put(store, "new", "2", 12);
    s_put(store, "short", "3", 8); /* gone at 9 */
    s_put(store, "a", "1", 11);
    s_listed(store, "a", "1", 9);
    assert_ok(kube_store_list_end(store, 10));
    s_assert_told("->a:1@3 ->new:2@12 ->short:3@8 a:1@3>a:1@11 short:3@8>- ");
}

static void test_server_set_back(void **state)
{
    (void)state;
    TT_AUTO(kube_store) store = s_new();
    s_event(store, "ADDED", "a", "1", 100);
    s_event(store, "ADDED", "b", "2", 101);
    s_told[0] = '\0';
    kube_store_list_begin(store);
    s_listed(store, "a", "1", 50);
    assert_int_equal(kube_store_list_end(store, 60), TT_AGAIN);
    s_assert_told("");
    kube_store_list_begin(store);
    s_listed(store, "a", "1", 50);
    assert_ok(kube_store_list_end(store, 61));
    s_assert_told("a:1@0>a:1@50 b:2@0>- ");
    s_event(store, "MODIFIED", "a", "1", 62);
    s_assert_told("a:1@50>a:1@62 ");
}

static void test_foreign(void **state)
{
    (void)state;
    TT_AUTO(kube_store) store = s_new();
    s_event(store, "ADDED", "a", "1", 3);
    static const char *const bad[] = {"{}", "x", "{\"metadata\":{\"name\":\"a\"}}",
        "{\"metadata\":{\"name\":\"a/b\",\"uid\":\"1\",\"resourceVersion\":\"9\"}}",
        "{\"metadata\":{\"name\":\"..\",\"uid\":\"1\",\"resourceVersion\":\"9\"}}",
        "{\"metadata\":{\"name\":\"a\",\"uid\":\"1\",\"resourceVersion\":\"-9\"}}",
        "{\"metadata\":{\"name\":\"a\",\"uid\":\"1\",\"resourceVersion\":\"99999999999999999999\"}}",
        "{\"metadata\":{\"name\":\"a\",\"namespace\":3,\"uid\":\"1\",\"resourceVersion\":\"9\"}}",
        "{\"metadata\":{\"name\":\"a\",\"uid\":\"1234567890123456789012345678901234567\",\"resourceVersion\":\"9\"}}"};
    for (size_t i = 0; i < TT_COUNT(bad); i++) {
        assert_int_equal(kube_store_put(store, bad[i], strlen(bad[i])), TT_DATA);
        kube_store_event(store, i % 2 ? "MODIFIED" : "DELETED", bad[i], strlen(bad[i]));
        kube_store_list_object(store, bad[i], strlen(bad[i]));
    }
    s_assert_told("->a:1@3 ");
    static const char foreign[] = "{\"foreign\":1,\"metadata\":{\"namespace\":\"n\",\"name\":\"a\",\"uid\":\"1\","
                                  "\"resourceVersion\":\"9\"}}"; /* it was one of ours */
    kube_store_event(store, "MODIFIED", foreign, strlen(foreign));
    s_assert_told("a:1@3>- ");
    assert_int_equal(kube_store_version(store), 9);
}

/* ---- tables --------------------------------------------------------------------------------------------------------- */

static size_t s_count(const kube_store_t *store, int index, const char *key)
{
    size_t n = 0;
    const void *at = NULL;
    for (const thing_t *thing; (thing = kube_store_next(store, index, key, &at)) != NULL; n++)
        assert_string_equal(index == 0 ? thing->color : key, key);
    return n;
}

static void test_ten_thousand(void **state)
{
    (void)state;
    enum { N = 10000 };
    static const char *const colors[] = {"red", "green", "blue", ""};
    kube_store_t *store = s_new();
    char name[40], uid[40];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < N; i++) { /* color moves on each round; every third is removed in the last */
            sprintf(name, "thing-%d", i);
            sprintf(uid, "uid-%d", i);
            const char *json = s_json(name, uid, (uint64_t)(round * N + i + 1), colors[(i + round) % 4]);
            kube_store_event(store, round == 2 && i % 3 == 0 ? "DELETED" : "MODIFIED", json, strlen(json));
        }
    }
    size_t expected[4] = {0}, all = 0;
    for (int i = 0; i < N; i++) {
        sprintf(name, "thing-%d", i);
        sprintf(uid, "uid-%d", i);
        const thing_t *thing = kube_store_get(store, "n", name);
        assert_true((thing == NULL) == (i % 3 == 0));
        assert_ptr_equal(thing, kube_store_by_uid(store, uid));
        if (thing)
            assert_int_equal(thing->meta.version, 2 * N + i + 1);
        expected[(i + 2) % 4] += thing != NULL;
    }
    const void *at = NULL;
    while (kube_store_each(store, &at))
        all++;
    assert_int_equal(all, kube_store_count(store));
    assert_int_equal(all, N - (N + 2) / 3);
    for (int c = 0; c < 3; c++)
        assert_int_equal(s_count(store, 0, colors[c]), expected[c]);
    assert_int_equal(s_count(store, 0, ""), 0); /* NULL: not in it */
    assert_int_equal(s_count(store, 2, "n/"), expected[3]);
    assert_int_equal(s_count(store, 2, "n/red"), expected[0]);
    assert_int_equal(s_count(store, 0, "yellow"), 0);
    kube_store_destroy(&store);
    assert_int_equal(s_living, 0);
}

/* ---- any interleaving ------------------------------------------------------------------------------------------------- */

enum { NAMES = 6, HISTORY = 400, ANSWERS = 30 };

typedef struct {
    int name, uid; /* uid 0: no such object */
    uint64_t version;
    char type; /* 'A', 'M', 'D' */
} fact_t;

typedef struct {
    int name, uid;
    uint64_t version;
    bool gone; /* 404 to what we knew as `version` */
} answer_t;

typedef struct {
    uint64_t seed, at; /* dice */
    fact_t now[NAMES]; /* the server's state */
    fact_t history[HISTORY];
    size_t facts, shown; /* the watch has shown so many */
    int uids;
    uint64_t version;
    answer_t answers[ANSWERS];
    size_t answer_count;
    fact_t page[NAMES]; /* of the list under way */
    size_t page_at, page_facts;
    uint64_t page_version;
    bool listing;
    int told[NAMES];        /* uid that `changed` last told of */
    bool over[HISTORY + 1]; /* uids that were told to be gone  */
} world_t;

static uint32_t s_roll(world_t *world, uint32_t n)
{
    uint32_t words[4];
    tt_draw(words, world->seed, TT_STREAM_TEST, 2, world->at++);
    return tt_below(words[0], n);
}

static void s_world_changed(void *ctx, const void *before, const void *now)
{
    world_t *world = ctx;
    const thing_t *was = before, *is = now;
    const int name = atoi((was ? was : is)->meta.name);
    assert_int_equal(world->told[name], was ? atoi(was->meta.uid) : 0);
    world->told[name] = is ? atoi(is->meta.uid) : 0;
    if (was && !is)
        world->over[atoi(was->meta.uid)] = true;
    if (is) {
        assert_false(world->over[atoi(is->meta.uid)]); /* none comes back */
        assert_true(!was || is->meta.version > was->meta.version);
    }
}

static void s_fact(world_t *world, int name, char type)
{
    fact_t *now = &world->now[name];
    *now = (fact_t){
        .name = name, .uid = type == 'A' ? ++world->uids : now->uid, .version = ++world->version, .type = type};
    world->history[world->facts++] = *now;
    if (type == 'D')
        now->uid = 0;
}

/*  Something happens on the server; when we did it, there will be an answer. */
static void s_act(world_t *world, const kube_store_t *store)
{
    const int name = (int)s_roll(world, NAMES);
    const bool ours = s_roll(world, 2) && world->answer_count < ANSWERS;
    char text[20];
    sprintf(text, "%d", name);
    const thing_t *known = kube_store_get(store, "n", text);
    answer_t answer = {.name = name};
    if (world->now[name].uid) {
        s_fact(world, name, s_roll(world, 3) ? 'M' : 'D');
        answer.uid = world->history[world->facts - 1].uid;
        answer.version = world->version;
    } else if (ours && known && s_roll(world, 2)) { /* we ask for one that is gone and not known to be */
        answer.gone = true;
        answer.version = known->meta.version;
    } else {
        s_fact(world, name, 'A');
        answer.uid = world->now[name].uid;
        answer.version = world->version;
    }
    if (ours)
        world->answers[world->answer_count++] = answer;
}

static void s_world_object(kube_store_t *store, const char *how, int name, int uid, uint64_t version)
{
    char a[20], b[20];
    sprintf(a, "%d", name);
    sprintf(b, "%d", uid);
    if (strcmp(how, "put") == 0)
        s_put(store, a, b, version);
    else if (strcmp(how, "list") == 0)
        s_listed(store, a, b, version);
    else
        s_event(store, how, a, b, version);
}

static void s_answer(world_t *world, kube_store_t *store)
{
    if (!world->answer_count)
        return;
    const size_t i = s_roll(world, (uint32_t)world->answer_count); /* in any order */
    const answer_t answer = world->answers[i];
    world->answers[i] = world->answers[--world->answer_count];
    char text[20];
    sprintf(text, "%d", answer.name);
    if (answer.gone)
        kube_store_gone(store, "n", text, answer.version);
    else
        s_world_object(store, "put", answer.name, answer.uid, answer.version);
}

static void s_show(world_t *world, kube_store_t *store)
{
    if (world->listing || world->shown == world->facts)
        return;
    const fact_t *fact = &world->history[world->shown++];
    s_world_object(store,
        fact->type == 'A'   ? "ADDED"
        : fact->type == 'M' ? "MODIFIED"
                            : "DELETED",
        fact->name, fact->uid, fact->version);
}

/*  The next object of the list; a new list where none is under way. */
static void s_list(world_t *world, kube_store_t *store, bool begin)
{
    if (!world->listing || begin) {
        kube_store_list_begin(store);
        memcpy(world->page, world->now, sizeof world->page);
        world->page_at = 0;
        world->page_facts = world->facts;
        world->page_version = world->version;
        world->listing = true;
    } else if (world->page_at < NAMES) {
        const fact_t *fact = &world->page[world->page_at++];
        if (fact->uid)
            s_world_object(store, "list", fact->name, fact->uid, fact->version);
    } else {
        assert_ok(kube_store_list_end(store, world->page_version));
        world->shown = world->page_facts;
        world->listing = false;
    }
}

static void s_assert_same(const world_t *world, const kube_store_t *store)
{
    for (int name = 0; name < NAMES; name++) {
        char text[20];
        sprintf(text, "%d", name);
        const thing_t *thing = kube_store_get(store, "n", text);
        assert_int_equal(thing ? atoi(thing->meta.uid) : 0, world->now[name].uid);
        assert_int_equal(thing ? atoi(thing->meta.uid) : 0, world->told[name]);
        if (thing)
            assert_int_equal(thing->meta.version, world->now[name].version);
    }
}

static void s_one_world(uint64_t seed)
{
    world_t *world = tt_new0(sizeof *world);
    world->seed = seed;
    const kube_store_ops_t ops = {
        .decode = s_decode, .destroy = s_destroy, .index = {s_color}, .changed = s_world_changed, .ctx = world};
    TT_AUTO(kube_store) store = NULL;
    assert_ok(kube_store_new(&store, &ops));
    s_list(world, store, true);
    const uint32_t lists = s_roll(world, 2) ? 40 : 400; /* one step in so many begins a list */
    while (world->facts < HISTORY - 1) {
        const uint32_t what = s_roll(world, 10);
        if (what < 3)
            s_act(world, store);
        else if (what < 6)
            s_answer(world, store);
        else if (what < 9)
            world->listing ? s_list(world, store, false) : s_show(world, store);
        else if (s_roll(world, lists / 10) == 0)
            s_list(world, store, true);
    }
    while (world->answer_count || world->listing || world->shown < world->facts) { /* all that is due, in any order */
        const uint32_t what = s_roll(world, 2);
        if (what)
            s_answer(world, store);
        else
            world->listing ? s_list(world, store, false) : s_show(world, store);
    }
    s_assert_same(world, store);
    free(world);
}

static void test_any_interleaving(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 600; seed++)
        s_one_world(seed);
    assert_int_equal(s_living, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_list_and_watch), cmocka_unit_test(test_our_writes),
        cmocka_unit_test(test_gone), cmocka_unit_test(test_writes_during_a_list),
        cmocka_unit_test(test_server_set_back), cmocka_unit_test(test_foreign), cmocka_unit_test(test_ten_thousand),
        cmocka_unit_test(test_any_interleaving)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
