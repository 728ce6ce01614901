/*  logs - what the replicas of a run wrote. */
#include <dirent.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cli/cmd.h"
#include "common/base/file.h"
#include "common/base/mem.h"
#include "controller/logfile.h"
#include "controller/rundir.h"

const tt_option_t tt_opt_logs[] = {{"follow", 'f', NULL, "go on until the run has ended"}, {0}};

enum { LOGS_MAX = 1024, LOOK_AGAIN_MS = 100 };

typedef struct {
    char name[NAME_MAX + 1]; /* "collector-1.log" */
    tt_logfile_reader_t at;
} log_t;

typedef struct {
    const tt_rundir_t *run;
    const char *wanted; /* "collector", "collector/1", NULL = all */
    log_t *logs;
    size_t count;
} reader_t;

/*  "collector-1.log" for "collector", "collector/1" or "collector-1". */
static bool s_wanted(const reader_t *self, const char *file)
{
    const char *dot = strstr(file, ".log");
    if (!dot || dot[4])
        return false;
    if (!self->wanted)
        return true;
    char name[NAME_MAX + 1], wanted[NAME_MAX + 1];
    snprintf(name, sizeof name, "%.*s", (int)(dot - file), file);
    snprintf(wanted, sizeof wanted, "%.200s", self->wanted);
    for (char *slash = strchr(wanted, '/'); slash; slash = NULL)
        *slash = '-';
    const size_t length = strlen(wanted), own = strlen(name);
    if (length > own + 1 && wanted[length - own - 1] == '-' && strcmp(wanted + length - own, name) == 0)
        return true; /* a pod of a DIJob by its whole name: <job>-collector-x7k2d */
    return strncmp(name, wanted, length) == 0 && (!name[length] || name[length] == '-' || name[length] == '.');
}

static int s_by_name(const void *a, const void *b)
{
    return strverscmp(((const log_t *)a)->name, ((const log_t *)b)->name);
}

/*  Files that have appeared since; replicas come and go. */
static tt_status_t s_look(reader_t *self)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/logs", self->run->path);
    DIR *dir = opendir(path);
    if (!dir)
        return tt_err_errno(TT_IO, "%s", path);
    for (struct dirent *entry; (entry = readdir(dir)) && self->count < LOGS_MAX;) {
        bool known = !s_wanted(self, entry->d_name);
        for (size_t i = 0; !known && i < self->count; i++)
            known = strcmp(self->logs[i].name, entry->d_name) == 0;
        if (!known)
            snprintf(self->logs[self->count++].name, sizeof self->logs[0].name, "%s", entry->d_name);
    }
    closedir(dir);
    qsort(self->logs, self->count, sizeof *self->logs, s_by_name);
    return TT_OK;
}

/*  Whole new lines only, each behind its file's name when there are several. */
static void s_show_text(const reader_t *self, const log_t *log, const char *text, size_t size)
{
    const int stem = (int)strlen(log->name) - 4;
    while (size) {
        const char *end = memchr(text, '\n', size);
        const size_t line = end ? (size_t)(end - text) + 1 : size;
        if (self->count > 1)
            printf("%.*s | ", stem, log->name);
        fwrite(text, 1, line, stdout);
        text += line;
        size -= line;
    }
}

enum { CHUNK = 1 << 16 };

static bool s_show(const reader_t *self, log_t *log, bool to_the_end)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/logs/%s", self->run->path, log->name);
    int fd = -1;
    if (tt_file_open(&fd, path) != TT_OK)
        return false;
    char *chunk = tt_new0(CHUNK);
    bool any = false;
    for (size_t size; (size = tt_logfile_next(&log->at, fd, chunk, CHUNK, to_the_end)); any = true)
        s_show_text(self, log, chunk, size);
    free(chunk);
    close(fd);
    fflush(stdout);
    return any;
}

static tt_status_t s_read(reader_t *self, bool follow)
{
    for (;;) {
        const bool last = !follow || !tt_rundir_live(self->run);
        TT_TRY(s_look(self));
        bool any = false;
        for (size_t i = 0; i < self->count; i++)
            any |= s_show(self, &self->logs[i], last);
        if (last)
            return self->count ? TT_OK
                               : tt_err(TT_NOT_FOUND, "run %s has no log of '%s'", self->run->name,
                                     self->wanted ? self->wanted : "anything");
        if (!any)
            poll(NULL, 0, LOOK_AGAIN_MS);
    }
}

int tt_cmd_logs(int argc, char **argv)
{
    int code;
    TT_AUTO(tt_args) args = tt_args_new(&code, "logs", argc, argv);
    if (!args)
        return code;
    tt_rundir_t run;
    tt_status_t status = tt_rundir_find(&run, tt_operand(args, 0));
    if (status == TT_OK) {
        reader_t reader = {.run = &run, .wanted = tt_operand(args, 1)};
        reader.logs = tt_array0(LOGS_MAX, sizeof *reader.logs);
        status = s_read(&reader, tt_arg_given(args, "follow"));
        free(reader.logs);
    }
    return status == TT_OK ? 0 : tt_args_fail(args, status);
}
