#include "controller/mark.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char s_first_line[] = "tutti-run 1\n";
static const char s_words[] = "This directory is a run of tutti. `tutti rm` removes it with all that is the run's.\n";

/* ---- small files --------------------------------------------------------------------------------------------------- */

/*  The beginning of an ordinary file in the directory, "" when there is none. */
static void s_begins(int dir, const char *name, char *out, size_t size)
{
    out[0] = '\0';
    struct stat info;
    const int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return;
    const ssize_t got = fstat(fd, &info) == 0 && S_ISREG(info.st_mode) ? read(fd, out, size - 1) : 0;
    out[got > 0 ? got : 0] = '\0';
    close(fd);
}

static bool s_is_file(int dir, const char *name)
{
    struct stat info;
    return fstatat(dir, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(info.st_mode);
}

static bool s_is_marked(int dir)
{
    char text[sizeof s_first_line];
    s_begins(dir, MARK_FILE, text, sizeof text);
    return strcmp(text, s_first_line) == 0;
}

/* ---- without a mark ------------------------------------------------------------------------------------------------ */

static bool s_has_who(int dir)
{
    char text[256];
    int pid, guard, end = 0;
    long long started;
    s_begins(dir, "run.json", text, sizeof text);
    return sscanf(text, "{\"pid\": %d, \"guard\": %d, \"started_ns\": %lld, \"resumed\": %n", &pid, &guard, &started,
               &end) == 3 &&
           end > 0;
}

static bool s_has_journal(int dir)
{
    char text[32];
    s_begins(dir, "journal.db", text, sizeof text);
    return strcmp(text, "SQLite format 3") == 0; /* and a zero byte */
}

static bool s_holds_run(int dir)
{
    return (s_is_file(dir, "config.yaml") || s_is_file(dir, "job.json")) && (s_has_who(dir) || s_has_journal(dir));
}

static bool s_is_one_of(const char *name, const char *const *patterns, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (fnmatch(patterns[i], name, FNM_PERIOD) == 0)
            return true;
    return false;
}

/*  All that 0.1 ever wrote into a run directory; later versions mark theirs, so this list is final. */
static bool s_is_of_0_1(const char *name)
{
    static const char *const names[] = {"config.yaml", "metrics.jsonl", "events.out.tfevents.*.tutti", "checkpoints",
        "logs", "summary.json", "result.json", "run.json", "job.json", "pods.json", "pods", "claims", "hosts",
        "journal.db", "journal.db-*", "key", "token", "http.json", "lock", "coordinator.lock", "sock", ".*.tmp",
        ".*.new"};
    return s_is_one_of(name, names, TT_COUNT(names));
}

/*  What was added since (docs/guide/formats.md), with files on their way to their names (common/base/beside.h), and what a file
 *  system puts anywhere. */
static bool s_is_ours(const char *name)
{
    static const char *const names[] = {MARK_FILE, "evaluations.jsonl", "history.jsonl", ".room", "host",
        "*.tutti-*.tmp", ".*.tutti-*.tmp", "lost+found", ".nfs*"};
    return s_is_of_0_1(name) || s_is_one_of(name, names, TT_COUNT(names));
}

static bool s_is_itself(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static DIR *s_list(int dir)
{
    const int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
    if (!list && fd >= 0)
        close(fd);
    return list;
}

/*  Is there nothing but what `expected` knows? */
static bool s_only(int dir, bool (*expected)(const char *name))
{
    DIR *list = s_list(dir);
    if (!list)
        return false;
    bool only = true;
    for (struct dirent *entry; only && (entry = readdir(list));)
        only = s_is_itself(entry->d_name) || expected(entry->d_name);
    closedir(list);
    return only;
}

/* ---- somebody else's ------------------------------------------------------------------------------------------------ */

enum { NAMED = 3 };

typedef struct {
    char name[NAMED][NAME_MAX + 1]; /* the first by the alphabet, whatever order the directory has */
    size_t count;                   /* of all */
} strangers_t;

static void s_note(strangers_t *self, const char *name)
{
    size_t at = self->count < NAMED ? self->count : NAMED;
    self->count++;
    while (at > 0 && strcmp(name, self->name[at - 1]) < 0)
        at--;
    if (at == NAMED)
        return;
    memmove(self->name + at + 1, self->name + at, (NAMED - 1 - at) * sizeof *self->name);
    snprintf(self->name[at], sizeof *self->name, "%s", name);
}

static void s_say(const strangers_t *self, char *out, size_t size)
{
    size_t length = 0;
    out[0] = '\0';
    for (size_t i = 0; i < self->count && i < NAMED && length < size; i++)
        length += (size_t)snprintf(out + length, size - length, "%s%.80s", i ? ", " : "", self->name[i]);
    if (self->count > NAMED && length < size)
        snprintf(out + length, size - length, " and %zu more", self->count - NAMED);
}

static tt_status_t s_err_unread(void)
{
    return tt_err_errno(TT_IO, "what else lies there cannot be read");
}

tt_status_t mark_strangers(int dir, size_t *count, char *out, size_t size)
{
    strangers_t found = {.count = 0};
    DIR *list = s_list(dir);
    if (!list)
        return s_err_unread();
    const struct dirent *entry;
    while (errno = 0, (entry = readdir(list)))
        if (!s_is_itself(entry->d_name) && !s_is_ours(entry->d_name))
            s_note(&found, entry->d_name);
    const tt_status_t status = errno == 0 ? TT_OK : s_err_unread();
    closedir(list);
    TT_TRY(status);
    s_say(&found, out, size);
    *count = found.count;
    return TT_OK;
}

/* ---- asked --------------------------------------------------------------------------------------------------------- */

mark_t mark_look_at(int dir)
{
    if (s_is_marked(dir))
        return MARK_RUN;
    if (!s_holds_run(dir))
        return MARK_NONE;
    return s_only(dir, s_is_of_0_1) ? MARK_RUN : MARK_HOLDS;
}

mark_t mark_look(const char *path)
{
    const int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return MARK_NONE;
    const mark_t mark = mark_look_at(dir);
    close(dir);
    return mark;
}

/* ---- written ------------------------------------------------------------------------------------------------------- */

static bool s_is_of_a_file_system(const char *name)
{
    return strcmp(name, "lost+found") == 0;
}

static tt_status_t s_write(int dir)
{
    const int fd = openat(dir, MARK_FILE, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0)
        return tt_err_errno(errno == EACCES || errno == EROFS ? TT_DENIED : TT_IO, "cannot mark the run directory");
    const bool written = dprintf(fd, "%s%s", s_first_line, s_words) > 0;
    if (close(fd) == 0 && written)
        return TT_OK;
    const tt_status_t status = tt_err_errno(TT_IO, "cannot mark the run directory");
    unlinkat(dir, MARK_FILE, 0);
    return status;
}

tt_status_t mark_write(int dir)
{
    return s_only(dir, s_is_of_a_file_system) ? s_write(dir) : TT_OK;
}

/*  A file system that cannot sync is as good as one that does not. */
static bool s_sync(int fd)
{
    return fsync(fd) == 0 || errno == EINVAL || errno == EROFS || errno == ENOTSUP;
}

tt_status_t mark_sync(int dir)
{
    const int fd = openat(dir, MARK_FILE, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? TT_OK : tt_err_errno(TT_IO, MARK_FILE);
    const tt_status_t status =
        s_sync(fd) && s_sync(dir) ? TT_OK : tt_err_errno(TT_IO, "cannot write " MARK_FILE " to the disk");
    close(fd);
    return status;
}

tt_status_t mark_renew(int dir)
{
    return mark_look_at(dir) == MARK_RUN && !s_is_marked(dir) ? s_write(dir) : TT_OK;
}
