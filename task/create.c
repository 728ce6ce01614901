/*  create - a new task: everything is checked, its directory made and its rows written, under one write lock. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "common/base/mem.h"
#include "task/dataset.h"
#include "task/names.h"
#include "task/place.h"
#include "task/tasks.h"

typedef struct {
    const task_new_t *wanted;
    char volume[PATH_MAX], dir[PLACE_MAX];
    exec_secondary_t secondary[EXEC_SECONDARY_MAX];
    size_t secondary_count;
    dataset_t config, data, more[EXEC_SECONDARY_MAX];
    int64_t id;
    store_t *store;
    size_t jobs;
    bool made;
} creation_t;

static tt_status_t s_check_numbers(const task_new_t *wanted)
{
    if (wanted->testers < 1 || wanted->pass < 1 || wanted->pass > 100 || wanted->retries > TASK_RETRIES_MAX)
        return tt_err(TT_USAGE, "testers: 1 or more; percent to pass: 1 to 100; retries: 0 to %d", TASK_RETRIES_MAX);
    if (wanted->image && (!*wanted->image || strlen(wanted->image) > 1024))
        return tt_err(TT_USAGE, "the image's name is empty or over 1024 characters");
    return TT_OK;
}

static tt_status_t s_check(creation_t *self)
{
    const task_new_t *wanted = self->wanted;
    TT_TRY(names_check("task", wanted->name));
    if (names_check_part("output file", wanted->output) != TT_OK)
        return TT_USAGE; /* in its words */
    TT_TRY(s_check_numbers(wanted));
    TT_TRY(exec_secondary(wanted->secondary ? wanted->secondary : "", self->secondary, &self->secondary_count));
    TT_TRY(exec_check(wanted->exec, wanted->data_set != NULL, self->secondary, self->secondary_count));
    if (!realpath(wanted->volume, self->volume))
        return tt_err_errno(TT_NOT_FOUND, "%s", wanted->volume);
    TT_TRY(names_check_path("directory", self->volume));
    const bool root = strcmp(self->volume, "/") == 0;
    snprintf(self->dir, sizeof self->dir, "%.3400s/%s", root ? "" : self->volume, wanted->name);
    return TT_OK;
}

static tt_status_t s_find_sets(creation_t *self)
{
    TT_TRY(dataset_find(self->store, self->wanted->config_set, &self->config));
    if (self->wanted->data_set)
        TT_TRY(dataset_find(self->store, self->wanted->data_set, &self->data));
    for (size_t i = 0; i < self->secondary_count; i++)
        TT_TRY(dataset_find(self->store, self->secondary[i].value, &self->more[i]));
    if (self->config.files < 1 || self->config.files > TASK_JOBS_MAX)
        return tt_err(TT_INVALID, "data set %s has %lld files; 1 to %d are possible", self->config.name,
            (long long)self->config.files, TASK_JOBS_MAX);
    self->jobs = (size_t)self->config.files;
    return TT_OK;
}

static tt_status_t s_take_number(void *ctx, sqlite3_stmt *row)
{
    *(int64_t *)ctx = sqlite3_column_int64(row, 0);
    return TT_OK;
}

static tt_status_t s_is_free(const creation_t *self)
{
    int64_t taken = 0;
    TT_TRY(store_run(
        self->store, "SELECT count(*) FROM tasks WHERE name = ?", s_take_number, &taken, "s", self->wanted->name));
    if (taken)
        return tt_err(TT_EXISTS, "task '%s' is there already; 'tutti task delete -t %s' forgets it", self->wanted->name,
            self->wanted->name);
    return TT_OK;
}

typedef struct {
    place_link_t links[2 + EXEC_SECONDARY_MAX];
    char targets[2 + EXEC_SECONDARY_MAX][PLACE_MAX];
    size_t count;
} links_t;

/*  What lies below the same directory as the task is linked to from there: so it is found wherever that is mounted. */
static void s_add_link(links_t *links, const creation_t *self, const dataset_t *set)
{
    const size_t length = strlen(self->volume);
    const bool below = strncmp(set->path, self->volume, length) == 0 && set->path[length] == '/';
    for (size_t i = 0; i < links->count; i++)
        if (strcmp(links->links[i].name, set->name) == 0)
            return; /* one set may be used for several things */
    snprintf(
        links->targets[links->count], PLACE_MAX, "%s%.4000s", below ? "../" : "", set->path + (below ? length + 1 : 0));
    links->links[links->count] = (place_link_t){set->name, links->targets[links->count]};
    links->count++;
}

static tt_status_t s_make_place(creation_t *self)
{
    links_t *links = tt_new0(sizeof *links);
    s_add_link(links, self, &self->config);
    if (self->wanted->data_set)
        s_add_link(links, self, &self->data);
    for (size_t i = 0; i < self->secondary_count; i++)
        s_add_link(links, self, &self->more[i]);
    const tt_status_t status = place_make(self->dir, self->wanted->name, links->links, links->count);
    self->made = status == TT_OK;
    free(links);
    return status;
}

static tt_status_t s_insert_job(void *ctx, const char *config)
{
    creation_t *self = ctx;
    return store_run(self->store, "INSERT INTO jobs(task, config_id, config, state) VALUES(?, ?, ?, ?)", NULL, NULL,
        "iiss", self->id, (int64_t)self->jobs++, config, job_state_name(JOB_REGISTERED));
}

static tt_status_t s_insert_use(const creation_t *self, const char *key, const dataset_t *set)
{
    return store_run(self->store, "INSERT INTO uses(task, dataset, key) VALUES(?, ?, ?)", NULL, NULL, "iss", self->id,
        set->name, key);
}

static tt_status_t s_insert_task(creation_t *self)
{
    const task_new_t *wanted = self->wanted;
    char user[128];
    names_user(user, sizeof user);
    TT_TRY(store_run(self->store,
        "INSERT INTO tasks(name, username, dir, exec, output, image, gpu, et, eta, state, bypass, testers, pass, "
        "retries, created)"
        " VALUES(?, ?, ?, ?, ?, ?, ?, nullif(?, -1), nullif(?, -1), ?, ?, ?, ?, ?, ?)",
        NULL, NULL, "ssssssiiisiiiii", wanted->name, user, self->dir, wanted->exec, wanted->output, wanted->image,
        (int64_t)wanted->gpu, wanted->et, wanted->eta, task_state_name(TASK_REGISTERED), (int64_t)wanted->bypass,
        (int64_t)wanted->testers, (int64_t)wanted->pass, (int64_t)wanted->retries, (int64_t)time(NULL)));
    self->id = store_last_id(self->store);
    return TT_OK;
}

static tt_status_t s_insert(creation_t *self)
{
    TT_TRY(s_insert_task(self));
    TT_TRY(s_insert_use(self, "%IN", &self->config));
    if (self->wanted->data_set)
        TT_TRY(s_insert_use(self, "%DATA", &self->data));
    for (size_t i = 0; i < self->secondary_count; i++)
        TT_TRY(s_insert_use(self, self->secondary[i].key, &self->more[i]));
    self->jobs = 0;
    return dataset_files(self->store, &self->config, s_insert_job, self);
}

static tt_status_t s_create(void *ctx, store_t *store)
{
    creation_t *self = ctx;
    self->store = store;
    TT_TRY(s_find_sets(self));
    TT_TRY(s_is_free(self));
    if (self->wanted->dry)
        return TT_OK;
    TT_TRY(s_make_place(self));
    return s_insert(self);
}

/*  Keeps the words of what went wrong. */
static void s_take_back(const creation_t *self)
{
    char why[2048];
    snprintf(why, sizeof why, "%s", tt_err_text());
    (void)place_remove(self->dir, self->wanted->name);
    (void)tt_err(TT_IO, "%s", why);
}

tt_status_t task_create(store_t *store, const task_new_t *wanted, char *dir, size_t *jobs)
{
    creation_t *self = tt_new0(sizeof *self);
    self->wanted = wanted;
    tt_status_t status = s_check(self);
    if (status == TT_OK)
        status = store_tx(store, s_create, self);
    if (status != TT_OK && self->made)
        s_take_back(self);
    if (status == TT_OK && self->made)
        status = place_finish(
            self->dir, wanted->name); /* unfinished without rows is what a kill before this leaves behind */
    if (status == TT_OK) {
        snprintf(dir, PLACE_MAX, "%s", self->dir);
        *jobs = self->jobs;
    }
    free(self);
    return status;
}
