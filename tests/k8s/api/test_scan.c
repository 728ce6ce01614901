/*  scan: what comes out is what jansson gives after the same members are taken out of the tree, however the bytes are cut;
 *  and what is no list and no watch is refused. */
#include "k8s/api/scan.h"
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/buf.h"
#include "common/base/mem.h"
#include "common/base/rng.h"
#include "tests/test.h"

typedef struct {
    tt_buf_t seen; /* "TYPE json\n" for each */
    int count, stop_after;
} seen_t;

static tt_status_t s_see(void *ctx, const char *type, const char *json, size_t size)
{
    seen_t *self = ctx;
    assert_int_equal(json[size], 0);
    assert_ok(tt_buf_printf(&self->seen, "%s %s\n", type ? type : "-", json));
    self->count++;
    return self->count == self->stop_after ? tt_err(TT_STOPPED, "enough") : TT_OK;
}

/*  Pieces of `cut` bytes; 0 = of random sizes. */
static tt_status_t s_scan(
    kube_scan_t **scan, kube_scan_kind_t kind, kube_drop_t drop, const char *text, size_t cut, size_t max, seen_t *seen)
{
    tt_buf_init(&seen->seen, 1 << 24);
    seen->count = 0;
    assert_ok(kube_scan_new(scan, kind, drop, max, s_see, seen));
    const size_t size = strlen(text);
    uint32_t draw = 12345;
    for (size_t at = 0; at < size;) {
        draw = draw * 1664525 + 1013904223;
        size_t n = cut ? cut : (draw >> 16) % 40;
        n = n > size - at ? size - at : n;
        char *piece = tt_new0(n); /* of its own, so that a sanitizer sees a read behind it */
        memcpy(piece, text + at, n);
        const tt_status_t status = kube_scan_feed(*scan, piece, n);
        free(piece);
        TT_TRY(status);
        at += n;
    }
    return kube_scan_end(*scan);
}

static void s_expect(kube_scan_kind_t kind, kube_drop_t drop, const char *text, const char *expected)
{
    const size_t cuts[] = {1 << 20, 1, 2, 3, 7, 0};
    for (size_t i = 0; i < TT_COUNT(cuts); i++) {
        TT_AUTO(kube_scan) scan = NULL;
        seen_t seen = {0};
        const tt_status_t status = s_scan(&scan, kind, drop, text, cuts[i], 1 << 20, &seen);
        if (status != TT_OK)
            fail_msg("%s: %s", text, tt_err_text());
        assert_string_equal(tt_buf_text(&seen.seen), expected);
        tt_buf_free(&seen.seen);
    }
}

static void test_list(void **state)
{
    (void)state;
    static const char text[] =
        "{\"kind\":\"PodList\", \"x\":[{\"items\":[{}]},[]],\"metadata\":{\"resourceVersion\":\"77\","
        "\"a\":{\"continue\":\"no\"},\"continue\":\"abc\"},\n\"items\":[ {\"a\" : 1} ,{\"b\":"
        "[1,2.5e+3,{}, true , \"x\\\"}\" ]},{}]}\n";
    TT_AUTO(kube_scan) scan = NULL;
    seen_t seen = {0};
    assert_ok(s_scan(&scan, KUBE_SCAN_LIST, NULL, text, 5, 100, &seen));
    assert_string_equal(tt_buf_text(&seen.seen), "- {\"a\":1}\n- {\"b\":[1,2.5e+3,{},true,\"x\\\"}\"]}\n- {}\n");
    assert_string_equal(kube_scan_version(scan), "77");
    assert_string_equal(kube_scan_continue(scan), "abc");
    tt_buf_free(&seen.seen);
    s_expect(KUBE_SCAN_LIST, NULL, "{\"metadata\":{},\"items\":null}", "");
    s_expect(KUBE_SCAN_LIST, NULL, "{\"items\":[]}", "");
}

static void test_watch(void **state)
{
    (void)state;
    s_expect(KUBE_SCAN_WATCH, NULL, "", "");
    s_expect(KUBE_SCAN_WATCH, NULL, "{\"type\":\"ADDED\",\"object\":{\"a\":{}}}\n{\"object\":{ },\"type\":\"DELETED\"}",
        "ADDED {\"a\":{}}\nDELETED {}\n");
    const char *const drop[] = {"*", "+metadata.resourceVersion", NULL}; /* an error is not an object of ours */
    s_expect(KUBE_SCAN_WATCH, drop,
        "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Pod\",\"metadata\":{\"resourceVersion\":\"5\",\"x\":1}}}"
        "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410}}",
        "BOOKMARK {\"metadata\":{\"resourceVersion\":\"5\"}}\nERROR {\"kind\":\"Status\",\"code\":410}\n");
    s_expect(KUBE_SCAN_WATCH, drop, "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\"},\"type\":\"ADDED\"}",
        "ERROR {\"kind\":\"Status\"}\n"); /* of two types the first counts */
}

static void test_drop(void **state)
{
    (void)state;
    static const char text[] =
        "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"managedFields\":[{\"a\":\"}\"}],\"name\":\"n\","
        "\"annotations\":"
        "{\"kubectl.kubernetes.io/last-applied-configuration\":\"{\\\"a\\\":1}\",\"b\":\"c\"}},"
        "\"spec\":{\"nodeName\":\"m\",\"volumes\":[1],\"containers\":[{\"name\":\"x\",\"image\":\"i\",\"ports\":"
        "[{\"name\":\"p\",\"port\":1}]},{\"image\":\"j\"},{}]}}}";
    const char *const plain[] = {"metadata.managedFields",
        "metadata.annotations[kubectl.kubernetes.io/last-applied-configuration]", "spec.containers.image",
        "spec.volumes", "spec.containers.ports.name", NULL};
    s_expect(KUBE_SCAN_WATCH, plain, text,
        "ADDED {\"metadata\":{\"name\":\"n\",\"annotations\":{\"b\":\"c\"}},\"spec\":{\"nodeName\":\"m\","
        "\"containers\":[{\"name\":\"x\",\"ports\":[{\"port\":1}]},{},{}]}}\n");
    const char *const star[] = {"spec.*", "+spec.containers.ports", "+spec.nodeName", "metadata", NULL};
    s_expect(KUBE_SCAN_WATCH, star, text,
        "ADDED {\"spec\":{\"nodeName\":\"m\",\"containers\":[{\"ports\":[{\"name\":\"p\",\"port\":1}]},{},{}]}}\n");
    const char *const both[] = {
        "*", "+spec", "spec.containers", "+spec.containers.name", NULL}; /* the plain one wins */
    s_expect(KUBE_SCAN_WATCH, both, text, "ADDED {\"spec\":{\"nodeName\":\"m\",\"volumes\":[1]}}\n");
    const char *const escaped[] = {"a/b", "c", NULL};
    s_expect(KUBE_SCAN_WATCH, escaped,
        "{\"type\":\"ADDED\",\"object\":{\"a\\/b\":1,\"\\u0063\":2,\"\\u0063\\ud83d\\ude00\":3,\"d\\n\":4}}",
        "ADDED {\"\\u0063\\ud83d\\ude00\":3,\"d\\n\":4}\n");
}

static void test_refuses(void **state)
{
    (void)state;
    static const char *const lists[] = {"", " ", "[]", "{", "{}x", "{\"items\":{}}", "{\"items\":[1]}",
        "{\"items\":[[{}]]}", "{\"items\":[{\"a\":1,}]}", "{\"items\":[{\"a\" 1}]}", "{\"items\":[{\"a\":}]}",
        "{\"items\":[{a:1}]}", "{\"items\":[{\"a\":1]}", "{\"items\":[{}}", "{\"items\":[{},]}", "{\"items\":[{}{}]}",
        "{\"items\":[{\"a\":\"b\n\"}]}", "{\"items\":[{\"a\":\"b", "{\"items\":[{\"a\":\"b\\", "{\"a\":@}",
        "{\"a\":1 2}", "{\"items\":[{\"a\":\"\\\x01\"}]}", "{,}", "{}", "{\"items\":5}", "{\"items\":\"\"}",
        "{\"kind\":\"Pod\",\"metadata\":{\"resourceVersion\":\"5\"},\"spec\":{}}", "{\"a\":[,1]}", "{\"a\":1}}"};
    static const char *const watches[] = {"{}", "{\"type\":\"ADDED\"}", "{\"object\":{}}", "{\"type\":1,\"object\":{}}",
        "{\"type\":\"ADDED\",\"object\":[]}", "{\"type\":\"ADDED\",\"object\":\"x\"}",
        "{\"type\":\"ADDED\",\"object\":{}"};
    for (size_t i = 0; i < TT_COUNT(lists) + TT_COUNT(watches); i++) {
        const bool list = i < TT_COUNT(lists);
        const char *text = list ? lists[i] : watches[i - TT_COUNT(lists)];
        for (size_t cut = 1; cut < 30; cut += 28) {
            TT_AUTO(kube_scan) scan = NULL;
            seen_t seen = {0};
            if (s_scan(&scan, list ? KUBE_SCAN_LIST : KUBE_SCAN_WATCH, NULL, text, cut, 100, &seen) != TT_DATA)
                fail_msg("accepted: %s", text);
            assert_non_null(strstr(tt_err_text(), "byte "));
            assert_int_equal(kube_scan_end(scan), TT_DATA);
            tt_buf_free(&seen.seen);
        }
    }
}

/*  A zero stands nowhere in JSON, whatever it may end for a C string. */
static void test_a_zero_is_a_byte_like_any_other(void **state)
{
    (void)state;
    static const char list[] = "{\"items\":[{\"a\":[1,\"b\",true]}]}";
    for (size_t at = 0; at < sizeof list; at++) {
        char text[sizeof list];
        memcpy(text, list, at);
        text[at] = '\0';
        memcpy(text + at + 1, list + at, sizeof list - 1 - at);
        TT_AUTO(kube_scan) scan = NULL;
        seen_t seen = {0};
        tt_buf_init(&seen.seen, 1000);
        assert_ok(kube_scan_new(&scan, KUBE_SCAN_LIST, NULL, 100, s_see, &seen));
        if (kube_scan_feed(scan, text, sizeof text) != TT_DATA)
            fail_msg("accepted with a zero before '%s'", list + at);
        tt_buf_free(&seen.seen);
    }
}

static void test_limits(void **state)
{
    (void)state;
    char text[400] = "{\"items\":[{\"a\":";
    for (int deep = 60; deep <= 62; deep++) { /* with the three brackets around it: 63, 64, 65 */
        char *at = text + 15;
        memset(at, '[', (size_t)deep);
        memset(at + deep, ']', (size_t)deep);
        memcpy(at + 2 * deep, "}]}", 4);
        TT_AUTO(kube_scan) scan = NULL;
        seen_t seen = {0};
        const tt_status_t status = s_scan(&scan, KUBE_SCAN_LIST, NULL, text, 9, 1000, &seen);
        assert_int_equal(status, deep <= 61 ? TT_OK : TT_DATA);
        tt_buf_free(&seen.seen);
    }
    const char *const drop[] = {"b", NULL}; /* what is dropped does not count */
    static const char large[] = "{\"items\":[{\"b\":\"1234567890123456789\",\"a\":\"12345\"}]}";
    for (size_t max = 12; max <= 13; max++) {
        TT_AUTO(kube_scan) scan = NULL;
        seen_t seen = {0};
        const tt_status_t status = s_scan(&scan, KUBE_SCAN_LIST, drop, large, 4, max, &seen);
        assert_int_equal(status, max == 13 ? TT_OK : TT_DATA);
        tt_buf_free(&seen.seen);
    }
    TT_AUTO(kube_scan) scan = NULL;
    seen_t seen = {.stop_after = 2};
    assert_int_equal(s_scan(&scan, KUBE_SCAN_LIST, NULL, "{\"items\":[{},{},{}]}", 4, 100, &seen), TT_STOPPED);
    assert_int_equal(seen.count, 2);
    tt_buf_free(&seen.seen);
}

static void test_rules(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "+", ".a", "a.", "a..b", "a[", "a[b", "a[b]c", "a[]", "*.a", "+a.*", "[]"};
    for (size_t i = 0; i < TT_COUNT(bad); i++) {
        const char *const drop[] = {bad[i], NULL};
        kube_scan_t *scan = NULL;
        if (kube_scan_new(&scan, KUBE_SCAN_LIST, drop, 1, s_see, NULL) != TT_INVALID)
            fail_msg("accepted: %s", bad[i]);
        assert_null(scan);
    }
}

/* ---- against jansson ------------------------------------------------------------------------------------------------ */

typedef struct {
    uint64_t seed, at;
} dice_t;

static uint32_t s_roll(dice_t *dice, uint32_t n)
{
    uint32_t words[4];
    tt_draw(words, dice->seed, TT_STREAM_TEST, 1, dice->at++);
    return tt_below(words[0], n);
}

static const char *s_key(dice_t *dice)
{
    static const char *const keys[] = {"a", "b", "c", "d.e", "f/g", "type", "items", "metadata", "\xc3\xa4", "q\"\\\n"};
    return keys[s_roll(dice, TT_COUNT(keys))];
}

static json_t *s_value(dice_t *dice, int depth)
{
    const uint32_t kind = s_roll(dice, depth > 5 ? 6 : 12);
    if (kind >= 6) {
        json_t *made = kind < 10 ? json_object() : json_array();
        for (uint32_t n = s_roll(dice, 5); n > 0; n--) {
            if (kind < 10)
                json_object_set_new(made, s_key(dice), s_value(dice, depth + 1));
            else
                json_array_append_new(made, s_value(dice, depth + 1));
        }
        return made;
    }
    switch (kind) {
    case 0:
        return json_null();
    case 1:
        return json_boolean(s_roll(dice, 2));
    case 2:
        return json_integer((json_int_t)s_roll(dice, 1000) - 500);
    case 3:
        return json_real(s_roll(dice, 1000) * 0.37e-9);
    default:
        return json_string(s_key(dice));
    }
}

/*  A rule, and its parts with a byte 1 before each. */
typedef struct {
    char text[200], parts[200];
    bool plus, star;
} rule_t;

static rule_t s_rule(dice_t *dice)
{
    static const char *const names[] = {"a", "b", "c", "f/g", "metadata", "\xc3\xa4"};
    rule_t rule = {.plus = s_roll(dice, 2), .star = s_roll(dice, 3) == 0};
    rule.star &= !rule.plus;
    const uint32_t count = 1 + s_roll(dice, 3) - rule.star;
    char *text = rule.text + sprintf(rule.text, "%s", rule.plus ? "+" : ""), *parts = rule.parts;
    for (uint32_t i = 0; i < count; i++) {
        const bool last = i + 1 == count && !rule.star;
        const char *name = last && s_roll(dice, 4) == 0 ? "d.e" : names[s_roll(dice, TT_COUNT(names))];
        const bool bracket = strchr(name, '.') != NULL;
        text += sprintf(text, bracket ? "[%s]" : i ? ".%s" : "%s", name);
        parts += sprintf(parts, "\1%s", name);
    }
    if (rule.star)
        sprintf(text, count ? ".*" : "*");
    return rule;
}

/*  Does a star hold for the members of the object at this path? Straight from the words of scan.h. */
static bool s_starred(const rule_t *rules, size_t count, const char *path)
{
    bool ends = false;
    for (size_t i = 0; i < count; i++) {
        if (rules[i].star && strcmp(rules[i].parts, path) == 0)
            return true;
        ends |= rules[i].plus && strcmp(rules[i].parts, path) == 0;
    }
    if (ends || !*path)
        return false;
    char parent[400];
    snprintf(parent, sizeof parent, "%s", path);
    *strrchr(parent, '\1') = '\0';
    return s_starred(rules, count, parent);
}

static bool s_dropped(const rule_t *rules, size_t count, const char *object, const char *member)
{
    bool plus = false;
    const size_t size = strlen(member);
    for (size_t i = 0; i < count; i++) {
        const bool through = strncmp(rules[i].parts, member, size) == 0;
        const char after = through ? rules[i].parts[size] : 'x';
        if (!rules[i].plus && !rules[i].star && through && !after)
            return true;
        plus |= rules[i].plus && through && (!after || after == '\1');
    }
    return !plus && s_starred(rules, count, object);
}

static void s_remove(json_t *value, const rule_t *rules, size_t count, const char *path)
{
    size_t i;
    json_t *child;
    json_array_foreach(value, i, child) s_remove(child, rules, count, path);
    const char *key;
    void *next;
    json_object_foreach_safe(value, next, key, child)
    {
        char below[400];
        snprintf(below, sizeof below, "%s\1%s", path, key);
        if (s_dropped(rules, count, path, below))
            json_object_del(value, key);
        else
            s_remove(child, rules, count, below);
    }
}

typedef struct {
    json_t *expected; /* array */
    size_t at;
    const char *type;
} against_t;

static tt_status_t s_compare(void *ctx, const char *type, const char *json, size_t size)
{
    against_t *self = ctx;
    json_error_t error;
    json_t *got = json_loadb(json, size, 0, &error);
    if (!got)
        fail_msg("%s: %s", json, error.text);
    if (self->type)
        assert_string_equal(type, self->type);
    else
        assert_null(type);
    if (!json_equal(got, json_array_get(self->expected, self->at)))
        fail_msg("object %zu is %s", self->at, json);
    self->at++;
    json_decref(got);
    return TT_OK;
}

static void s_feed_cut(kube_scan_t *scan, const char *text, dice_t *dice)
{
    const size_t size = strlen(text);
    const uint32_t longest = s_roll(dice, 3) ? 1 + s_roll(dice, 100) : 1;
    for (size_t at = 0; at < size;) {
        size_t n = 1 + s_roll(dice, longest);
        n = n > size - at ? size - at : n;
        assert_ok(kube_scan_feed(scan, text + at, n));
        at += n;
    }
    assert_ok(kube_scan_end(scan));
}

static void s_one(uint64_t seed)
{
    dice_t dice = {.seed = seed};
    rule_t rules[6];
    const char *drop[7] = {NULL};
    const size_t count = s_roll(&dice, 7);
    for (size_t i = 0; i < count; i++) {
        rules[i] = s_rule(&dice);
        drop[i] = rules[i].text;
    }
    json_t *items = json_array();
    for (uint32_t n = s_roll(&dice, 5); n > 0; n--) {
        json_t *object = json_object();
        for (uint32_t m = s_roll(&dice, 8); m > 0; m--)
            json_object_set_new(object, s_key(&dice), s_value(&dice, 0));
        json_array_append_new(items, object);
    }
    const size_t flags = (s_roll(&dice, 2) ? JSON_INDENT(s_roll(&dice, 3)) : JSON_COMPACT) |
                         (s_roll(&dice, 2) ? JSON_ENSURE_ASCII : 0) | (s_roll(&dice, 2) ? JSON_ESCAPE_SLASH : 0);
    json_t *list = json_pack("{s:s, s:{s:s}, s:O, s:[{s:[{}]}]}", "kind", "List", "metadata", "resourceVersion", "9",
        "items", items, "more", "items");
    char *text = json_dumps(list, flags);
    tt_buf_t events;
    tt_buf_init(&events, 1 << 24);
    size_t i;
    json_t *item;
    json_array_foreach(items, i, item)
    {
        json_t *event = s_roll(&dice, 2) ? json_pack("{s:s, s:O}", "type", "MODIFIED", "object", item)
                                         : json_pack("{s:O, s:s}", "object", item, "type", "MODIFIED");
        char *line = json_dumps(event, flags);
        assert_ok(tt_buf_printf(&events, "%s\n", line));
        free(line);
        json_decref(event);
    }
    json_array_foreach(items, i, item) s_remove(item, rules, count, "");
    for (int kind = 0; kind < 2; kind++) {
        against_t against = {.expected = items, .type = kind ? "MODIFIED" : NULL};
        TT_AUTO(kube_scan) scan = NULL;
        assert_ok(kube_scan_new(&scan, kind ? KUBE_SCAN_WATCH : KUBE_SCAN_LIST, drop, 1 << 20, s_compare, &against));
        s_feed_cut(scan, kind ? tt_buf_text(&events) : text, &dice);
        assert_int_equal(against.at, json_array_size(items));
        assert_string_equal(kube_scan_version(scan), kind ? "" : "9");
    }
    free(text);
    tt_buf_free(&events);
    json_decref(list);
    json_decref(items);
}

static void test_like_jansson(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 4000; seed++)
        s_one(seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_list), cmocka_unit_test(test_watch),
        cmocka_unit_test(test_drop), cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_a_zero_is_a_byte_like_any_other), cmocka_unit_test(test_limits),
        cmocka_unit_test(test_rules), cmocka_unit_test(test_like_jansson)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
