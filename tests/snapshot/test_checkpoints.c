/*  The folder of checkpoints: which names belong there, which go, and the second name of the best. */
#include "common/snapshot/checkpoints.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/mem.h"
#include "common/nn/safetensors.h"
#include "tests/folder.h"
#include "tests/snapshot/sample.h"
#include "tests/test.h"

static void test_names(void **state)
{
    (void)state;
    char name[TT_CHECKPOINT_NAME];
    tt_checkpoint_name(name, 123);
    assert_string_equal(name, "00000123.safetensors");
    assert_true(tt_checkpoint_is_name(name));
    tt_checkpoint_name(name, 123456789012);
    assert_true(tt_checkpoint_is_name(name));
    assert_true(tt_checkpoint_is_name("final.safetensors"));
    const char *const wrong[] = {"", "best.safetensors", "123.safetensors", "00000123.safetensors.part",
        "../00000123.safetensors", "00000123", "00000123/.safetensors", "final.safetensors/",
        "00000000000000000000000123.safetensors"};
    for (size_t i = 0; i < TT_COUNT(wrong); i++)
        assert_false(tt_checkpoint_is_name(wrong[i]));
}

static bool s_is_there(const char *folder, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

/*  Two that go on from update 11, of which one does not know yet that the other has taken over. */
static void s_overtaken(const char *folder)
{
    tt_checkpoint_updates_t found = {0};
    sample_save(folder, "00000014.safetensors", "x", 1); /* void */
    assert_ok(tt_checkpoints_list(folder, &found));
    assert_int_equal(found.count, 3);
    assert_int_equal(found.at[0], 14);
    sample_save(folder, "00000015.safetensors", "x", 1); /* the other one's */
    tt_checkpoints_keep(folder, 2, 12, &found);
    assert_false(s_is_there(folder, "00000014.safetensors"));
    assert_true(s_is_there(folder, "00000015.safetensors"));
    assert_true(s_is_there(folder, "00000012.safetensors"));
    assert_true(s_is_there(folder, "00000011.safetensors")); /* one's own newest two, besides */
    tt_checkpoint_updates_free(&found);
    tt_checkpoints_keep(folder, 2, 12, NULL);
    assert_false(s_is_there(folder, "00000015.safetensors"));
}

static void test_the_newest_stay(void **state)
{
    (void)state;
    char dir[FOLDER_MAX], folder[256], text[16] = {0}, path[512];
    assert_int_equal(folder_make(dir, "checkpoints"), 0);
    assert_ok(tt_checkpoints_open(dir, folder, sizeof folder));
    assert_ok(tt_checkpoints_open(dir, folder, sizeof folder)); /* there already */
    for (uint64_t update = 9; update <= 12; update++) {
        char name[TT_CHECKPOINT_NAME];
        tt_checkpoint_name(name, update);
        sample_save(folder, name, "x", 1);
    }
    sample_save(folder, "final.safetensors", "the end", 7);
    sample_save(folder, ".00000013.safetensors.part", "half", 4);
    sample_save(folder, "00000013.safetensors.tmp", "half", 4); /* its writer was killed */
    tt_checkpoints_keep(folder, 2, 12, NULL);
    assert_false(s_is_there(folder, "00000013.safetensors.tmp"));
    assert_false(s_is_there(folder, "00000009.safetensors"));
    assert_false(s_is_there(folder, "00000010.safetensors"));
    assert_true(s_is_there(folder, "00000011.safetensors"));
    assert_true(s_is_there(folder, "00000012.safetensors"));
    assert_true(s_is_there(folder, "final.safetensors"));
    assert_true(s_is_there(folder, ".00000013.safetensors.part"));
    tt_checkpoints_keep(folder, 0, 12, NULL); /* one more than the newest, whatever is asked for */
    assert_true(s_is_there(folder, "00000011.safetensors"));
    assert_true(s_is_there(folder, "00000012.safetensors"));
    tt_checkpoints_keep(folder, 2, 11, NULL); /* the run went back, and 12 is of what is void */
    assert_true(s_is_there(folder, "00000011.safetensors"));
    assert_false(s_is_there(folder, "00000012.safetensors"));
    sample_save(folder, "00000012.safetensors", "x", 1);
    s_overtaken(folder);

    assert_ok(tt_checkpoint_alias(folder, "00000012.safetensors", TT_CHECKPOINT_BEST));
    assert_ok(tt_checkpoint_alias(folder, "final.safetensors", TT_CHECKPOINT_BEST));
    assert_ok(tt_checkpoint_alias(folder, "final.safetensors", TT_CHECKPOINT_BEST)); /* one file already */
    snprintf(path, sizeof path, "%s/%s", folder, TT_CHECKPOINT_BEST);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fread(text, 1, sizeof text - 1, file), 7);
    fclose(file);
    assert_string_equal(text, "the end");
    assert_false(s_is_there(folder, "best.safetensors.tmp"));
    assert_int_equal(tt_checkpoint_alias(folder, "none", TT_CHECKPOINT_BEST), TT_IO);
    assert_int_equal(tt_checkpoints_open("/nonexistent", folder, sizeof folder), TT_IO);

    assert_int_equal(folder_remove(dir), 0);
}

/*  What was passed over, in order. */
static void s_bad(void *ctx, const char *name, const char *why)
{
    strcat(strcat(ctx, name), " ");
    assert_true(why[0] != '\0');
}

static void s_expect_newest(const char *folder, const char *name, uint64_t update, const char *passed_over)
{
    char bad[512] = "";
    tt_checkpoint_t newest;
    assert_ok(tt_checkpoints_newest(folder, &newest, s_bad, bad));
    assert_string_equal(newest.name, name);
    assert_int_equal(newest.info.update, update);
    assert_string_equal(bad, passed_over);
    tt_snapshot_info_free(&newest.info);
}

static void test_the_newest_that_is_whole(void **state)
{
    (void)state;
    char dir[FOLDER_MAX], bad[512] = "";
    tt_checkpoint_t newest;
    assert_int_equal(folder_make(dir, "checkpoints"), 0);
    assert_int_equal(tt_checkpoints_newest(dir, &newest, NULL, NULL), TT_NOT_FOUND);
    sample_write(dir, "00000009.safetensors", 9);
    sample_write(dir, "00000010.safetensors", 10);
    sample_write(dir, "00000100.safetensors", 100);
    sample_write(dir, ".00000200.safetensors.part", 200); /* was never finished */
    s_expect_newest(dir, "00000100.safetensors", 100, "");
    sample_write(dir, "final.safetensors", 120);
    s_expect_newest(dir, "final.safetensors", 120, "");
    sample_damage(dir, "final.safetensors");
    s_expect_newest(dir, "00000100.safetensors", 100, "final.safetensors ");
    sample_damage(dir, "00000100.safetensors");
    assert_ok(tt_checkpoint_alias(dir, "00000100.safetensors", TT_CHECKPOINT_BEST)); /* the same file: said once */
    s_expect_newest(dir, "00000010.safetensors", 10, "final.safetensors 00000100.safetensors ");
    sample_write(dir, "00000011.safetensors", 5); /* a copy with a wrong name */
    s_expect_newest(dir, "00000010.safetensors", 10, "final.safetensors 00000100.safetensors 00000011.safetensors ");
    sample_save(dir, "final.safetensors", "", 0); /* which update is unknown */
    sample_damage(dir, "00000010.safetensors");
    sample_damage(dir, "00000009.safetensors");
    assert_int_equal(tt_checkpoints_newest(dir, &newest, s_bad, bad), TT_DATA);
    assert_non_null(strstr(tt_err_text(), "final.safetensors"));
    assert_non_null(strstr(bad, "00000009.safetensors"));
    assert_int_equal(folder_remove(dir), 0);
}

static bool s_exceeds(const char *folder, double return_mean)
{
    bool exceeds;
    assert_ok(tt_checkpoint_exceeds_best(folder, return_mean, &exceeds));
    return exceeds;
}

/*  The best of evaluations: nobody goes on from it, however new it is, and a better one replaces it. */
static void test_the_best_evaluated(void **state)
{
    (void)state;
    char dir[FOLDER_MAX];
    assert_int_equal(folder_make(dir, "checkpoints"), 0);
    assert_true(s_exceeds(dir, -1e9)); /* there is none */
    sample_write(dir, "00000010.safetensors", 10);
    sample_write_best(dir, 20, 7.5);
    s_expect_newest(dir, "00000010.safetensors", 10, "");
    assert_true(s_exceeds(dir, 7.75));
    assert_false(s_exceeds(dir, 7.5));
    assert_false(s_exceeds(dir, 7));
    assert_ok(tt_checkpoint_alias_best(dir, "00000010.safetensors", 7.5));
    assert_false(s_exceeds(dir, 7.5)); /* it is what it was */
    sample_damage(dir, "best.safetensors");
    assert_true(s_exceeds(dir, 7));
    assert_ok(tt_checkpoint_alias_best(dir, "00000010.safetensors", 7));
    s_expect_newest(dir, "00000010.safetensors", 10, ""); /* nothing that is damaged is left */
    assert_int_equal(folder_remove(dir), 0);
}

static void test_the_one_before(void **state)
{
    (void)state;
    char dir[FOLDER_MAX], name[TT_CHECKPOINT_NAME] = "";
    assert_int_equal(folder_make(dir, "checkpoints"), 0);
    assert_int_equal(tt_checkpoints_below("/nonexistent", 1, name), TT_NOT_FOUND);
    sample_save(dir, "00000010.safetensors", "x", 1);
    sample_save(dir, "00000100.safetensors", "x", 1);
    sample_save(dir, "final.safetensors", "x", 1);
    sample_save(dir, "00000101.safetensors.tmp", "x", 1); /* its writer is another process, and at it */
    assert_ok(tt_checkpoints_below(dir, UINT64_MAX, name));
    assert_string_equal(name, "00000100.safetensors");
    assert_ok(tt_checkpoints_below(dir, 100, name));
    assert_string_equal(name, "00000010.safetensors");
    assert_int_equal(tt_checkpoints_below(dir, 10, name), TT_NOT_FOUND);
    assert_true(s_is_there(dir, "00000101.safetensors.tmp"));
    assert_int_equal(folder_remove(dir), 0);
}

/* ---- what cannot be read ---------------------------------------------------------------------------------------------- */

/*  Refused, with the folder and the reason: not "there is none". */
static void s_expect_refused(const char *folder, tt_status_t status, const char *reason)
{
    tt_checkpoint_t newest;
    tt_checkpoint_updates_t found = {0};
    char name[TT_CHECKPOINT_NAME];
    assert_int_equal(tt_checkpoints_newest(folder, &newest, NULL, NULL), status);
    assert_non_null(strstr(tt_err_text(), folder));
    assert_non_null(strstr(tt_err_text(), reason));
    assert_int_equal(tt_checkpoints_list(folder, &found), status);
    assert_int_equal(found.count, 0);
    assert_int_equal(tt_checkpoints_below(folder, UINT64_MAX, name), status);
}

static void test_a_folder_that_cannot_be_read(void **state)
{
    (void)state;
    char dir[FOLDER_MAX], path[FOLDER_MAX + 8];
    struct rlimit limit;
    tt_checkpoint_updates_t found = {0};
    assert_int_equal(folder_make(dir, "checkpoints"), 0);
    sample_write(dir, "00000010.safetensors", 10);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const struct rlimit none = {.rlim_cur = 0, .rlim_max = limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    s_expect_refused(dir, TT_IO, "Too many open files");
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    s_expect_newest(dir, "00000010.safetensors", 10, "");
    snprintf(path, sizeof path, "%s/link", dir);
    assert_ok(tt_checkpoints_list(path, &found)); /* not there: none */
    assert_int_equal(symlink("link", path), 0);
    s_expect_refused(path, TT_IO, "Too many levels of symbolic links");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("away", path), 0); /* a disk that is not mounted */
    s_expect_refused(path, TT_IO, "No such file or directory");
    assert_int_equal(folder_remove(dir), 0);
}

static void test_a_folder_that_is_shut(void **state)
{
    (void)state;
    char dir[FOLDER_MAX];
    tt_checkpoint_t newest;
    const uid_t me = geteuid();
    assert_int_equal(folder_make(dir, "checkpoints"), 0);
    sample_write(dir, "00000010.safetensors", 10);
    assert_int_equal(chmod(dir, 0), 0);
    if (me == 0 && seteuid(65534) != 0)
        skip();
    const tt_status_t status = tt_checkpoints_newest(dir, &newest, NULL, NULL);
    char *words = tt_strdup(tt_err_text());
    assert_int_equal(me == 0 ? seteuid(0) : 0, 0);
    assert_int_equal(chmod(dir, 0700), 0);
    assert_int_equal(status, TT_DENIED);
    assert_non_null(strstr(words, "Permission denied"));
    free(words);
    assert_int_equal(folder_remove(dir), 0);
}

/*  It is named like one that is damaged, whatever its name says of it. */
static void test_a_file_that_cannot_be_looked_at(void **state)
{
    (void)state;
    char dir[FOLDER_MAX], path[FOLDER_MAX + 32];
    assert_int_equal(folder_make(dir, "checkpoints"), 0);
    sample_write(dir, "00000010.safetensors", 10);
    snprintf(path, sizeof path, "%s/00000012.safetensors", dir);
    assert_int_equal(symlink("00000012.safetensors", path), 0);
    snprintf(path, sizeof path, "%s/final.safetensors", dir);
    assert_int_equal(symlink("final.safetensors", path), 0);
    s_expect_newest(dir, "00000010.safetensors", 10, "final.safetensors 00000012.safetensors ");
    snprintf(path, sizeof path, "%s/best.safetensors", dir);
    assert_int_equal(symlink("best.safetensors", path), 0);
    bool exceeds;
    assert_int_equal(tt_checkpoint_exceeds_best(dir, 1e9, &exceeds), TT_IO); /* it may be a better one */
    assert_ok(tt_checkpoint_alias_best(dir, "00000010.safetensors", 1e9));
    assert_int_equal(tt_checkpoint_exceeds_best(dir, 1e9, &exceeds), TT_IO);
    assert_int_equal(folder_remove(dir), 0);
}

/* ---- two writers ------------------------------------------------------------------------------------------------------ */

enum { TURNS = 300 };

/*  What a learner does at the end, as one that was overtaken does beside the one that overtook it. Texts of errors are a thread's own. */
static void *s_write(void *arg)
{
    static const char zeros[100000];
    const char *dir = arg;
    char path[FOLDER_MAX + 40];
    tt_buf_t bytes;
    tt_buf_init(&bytes, 1 << 20);
    bool ok = tt_buf_add(&bytes, zeros, sizeof zeros) == TT_OK;
    snprintf(path, sizeof path, "%s/final.safetensors", dir);
    for (int i = 0; i < TURNS && ok; i++) {
        ok = tt_st_save(&bytes, path, false, TT_NO_PROGRESS) == TT_OK &&
             tt_checkpoint_alias(dir, "final.safetensors", TT_CHECKPOINT_BEST) == TT_OK;
        tt_checkpoints_keep(dir, 2, 12, NULL);
    }
    tt_buf_free(&bytes);
    return ok ? NULL : arg;
}

static void test_two_writers(void **state)
{
    (void)state;
    char dir[FOLDER_MAX];
    pthread_t other;
    void *failed = NULL;
    assert_int_equal(folder_make(dir, "checkpoints"), 0);
    assert_int_equal(pthread_create(&other, NULL, s_write, dir), 0);
    assert_null(s_write(dir));
    assert_int_equal(pthread_join(other, &failed), 0);
    assert_null(failed);
    assert_true(s_is_there(dir, "final.safetensors") && s_is_there(dir, TT_CHECKPOINT_BEST));
    sample_save(dir, "00000013.safetensors.tutti-12-0.tmp", "half", 4); /* its writer was killed */
    sample_save(dir, "00000013.other.tutti-12-0.tmp", "half", 4);
    tt_checkpoints_keep(dir, 2, 12, NULL);
    assert_false(s_is_there(dir, "00000013.safetensors.tutti-12-0.tmp"));
    assert_true(s_is_there(dir, "00000013.other.tutti-12-0.tmp"));
    assert_int_equal(folder_remove(dir), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_names), cmocka_unit_test(test_the_newest_stay),
        cmocka_unit_test(test_the_newest_that_is_whole), cmocka_unit_test(test_the_one_before),
        cmocka_unit_test(test_the_best_evaluated), cmocka_unit_test(test_a_folder_that_cannot_be_read),
        cmocka_unit_test(test_a_folder_that_is_shut), cmocka_unit_test(test_a_file_that_cannot_be_looked_at),
        cmocka_unit_test(test_two_writers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
