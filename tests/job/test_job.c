/*  The job model: what tt_job_check refuses, quantities, and names in texts. */
#include "common/job/job.h"
#include "common/base/mem.h"
#include "tests/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*  A job of `count` roles named a, b, c, ..., one replica each. */
static tt_job_t *s_job(size_t count)
{
    tt_job_t *job = tt_new0(sizeof *job);
    job->name = tt_strdup("j");
    job->role_count = count;
    job->roles = tt_array0(count, sizeof *job->roles);
    for (size_t i = 0; i < count; i++) {
        job->roles[i].name = tt_sprintf("%c", (int)('a' + i));
        job->roles[i].replicas = job->roles[i].max_replicas = 1;
    }
    return job;
}

static void s_depend(tt_role_t *role, const char *first, const char *second)
{
    role->depends_on = tt_array0(3, sizeof *role->depends_on);
    role->depends_on[0] = tt_strdup(first);
    role->depends_on[1] = tt_strdup(second);
}

static void s_refused(tt_job_t *job, const char *message)
{
    assert_int_equal(tt_job_check(job), TT_CONFIG);
    assert_string_equal(tt_err_text(), message);
    tt_job_destroy(&job);
    assert_null(job);
}

static void test_check(void **state)
{
    (void)state;
    tt_job_t *job = s_job(3);
    s_depend(&job->roles[0], "b", "c"); /* starts last, although it stands first */
    s_depend(&job->roles[1], "c", NULL);
    assert_ok(tt_job_check(job));
    tt_job_destroy(&job);
    tt_job_destroy(&job);
}

static void test_check_refuses(void **state)
{
    (void)state;
    s_refused(s_job(0), "job 'j' has no role");
    tt_job_t *job = s_job(1);
    job->name[0] = '\0';
    s_refused(job, "the job has no name");
    job = s_job(2);
    job->roles[1].name[0] = '\0';
    s_refused(job, "job 'j': role 1 has no name");
    job = s_job(2);
    job->roles[1].name[0] = 'a';
    s_refused(job, "job 'j': two roles are named 'a'");
    job = s_job(2);
    job->roles[1].replicas = 2;
    s_refused(job, "job 'j': role 'b': 2 replicas are outside 0 .. 1");
    job = s_job(2);
    job->roles[1].min_replicas = 2;
    s_refused(job, "job 'j': role 'b': 1 replicas are outside 2 .. 1");
    job = s_job(2);
    s_depend(&job->roles[1], "a", "z");
    s_refused(job, "job 'j': role 'b' depends on 'z', which is no role of this job");
    job = s_job(3);
    s_depend(&job->roles[1], "c", "a");
    s_depend(&job->roles[2], "b", NULL);
    s_refused(job, "job 'j': role 'b' can never start: its depends_on leads round in a circle");
    job = s_job(1);
    s_depend(&job->roles[0], "a", NULL);
    s_refused(job, "job 'j': role 'a' can never start: its depends_on leads round in a circle");
}

/*  Everything a template can hold is freed (the address sanitizer sees what is not). */
static void test_destroy_frees_all(void **state)
{
    (void)state;
    tt_job_t *job = s_job(1);
    tt_template_t *t = &job->roles[0].template_;
    t->command = tt_array0(3, sizeof *t->command);
    t->command[0] = tt_strdup("sh");
    t->command[1] = tt_strdup("-c");
    t->args = tt_array0(1, sizeof *t->args);
    t->working_dir = tt_strdup("/");
    t->env = tt_array0(1, sizeof *t->env);
    t->env[t->env_count++] = (tt_env_var_t){tt_strdup("A"), tt_strdup("1")};
    assert_ok(tt_job_check(job));
    tt_job_destroy(&job);
}

static void test_quantities(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double value;
    } good[] = {{"0", 0}, {"2", 2}, {"500m", 0.5}, {"2Gi", 2147483648}, {"1.5Ki", 1536}, {".5", 0.5}, {"5.", 5},
        {"100n", 1e-7}, {"250u", 250e-6}, {"3k", 3000}, {"3M", 3e6}, {"3G", 3e9}, {"3T", 3e12}, {"3P", 3e15},
        {"3E", 3e18}, {"1Mi", 1048576}, {"1Ti", 0x1p40}, {"1Pi", 0x1p50}, {"1Ei", 0x1p60}, {"12e6", 12e6},
        {"12E6", 12e6}, {"5e-3", 5e-3}, {"-1", -1}, {"+1", 1}};
    static const char *const bad[] = {"", ".", "Gi", "2gi", "2 Gi", " 2", "2K", "1e", "1e+", "1e1000", "1Gi2", "0x10",
        "inf", "nan", "--1", "1.2.3", "2GiB", "11111111111111111111111111111111111111111111111111111111111111111"};
    for (size_t i = 0; i < TT_COUNT(good); i++) {
        double value;
        assert_ok(tt_quantity(&value, good[i].text));
        const double error = value - good[i].value;
        if (error > 1e-15 * good[i].value || error < -1e-15 * good[i].value)
            if (good[i].value > 0)
                fail_msg("%s became %.17g", good[i].text, value);
    }
    for (size_t i = 0; i < TT_COUNT(bad); i++) {
        double value = 7;
        if (tt_quantity(&value, bad[i]) != TT_INVALID || value < 7 || value > 7)
            fail_msg("'%s' was taken for %g", bad[i], value);
    }
    double value;
    assert_int_equal(tt_quantity(&value, "2GB"), TT_INVALID);
    assert_string_equal(tt_err_text(), "'2GB' is not a quantity, as 2, 500m, 1.5Gi or 64e6");
}

/*  Knows A, AB and nothing else. */
static const char *s_lookup(const void *ctx, const char *name, size_t length)
{
    assert_string_equal(ctx, "ctx");
    return length == 1 && *name == 'A' ? "one" : length == 2 && strncmp(name, "AB", 2) == 0 ? "$(A)" : NULL;
}

static void test_names_are_expanded(void **state)
{
    (void)state;
    static const struct {
        const char *text, *expected;
    } table[] = {{"", ""}, {"plain", "plain"}, {"$(A)", "one"}, {"<$(A)$(A)>", "<oneone>"}, {"$(AB)", "$(A)"},
        {"$(B) $() $A", "$(B) $() $A"}, {"$$(A)", "$(A)"}, {"$$$(A)", "$one"}, {"$$$$", "$$"}, {"$", "$"},
        {"$(A", "$(A"}, {"$($(A))", "$(one)"}};
    for (size_t i = 0; i < TT_COUNT(table); i++) {
        char *text = tt_expand(table[i].text, s_lookup, "ctx");
        assert_string_equal(text, table[i].expected);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_check),
        cmocka_unit_test(test_check_refuses),
        cmocka_unit_test(test_destroy_frees_all),
        cmocka_unit_test(test_quantities),
        cmocka_unit_test(test_names_are_expanded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
