#include "controller/logfile.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/mem.h"

#define NOTE_BEGIN "--- tutti: "
#define NOTE_END   " bytes are missing here: the log had become too large (TT_LOG_MB)\n"

/*  Of the limit; the newest part is a quarter of it. */
enum {
    MIB = 1 << 20,
    INITIAL_MB = 32,
    MOST_MB = 1 << 20,
    HEAD_MOST = 64 << 10,
    HEAD_SHARE = 16,
    TAIL_SHARE = 4,
    NOTE_MOST = 160,
    CHUNK = 64 << 10
};

/* ---- the limit ----------------------------------------------------------------------------------------------------- */

/*  0: it is none. */
static uint64_t s_read(const char *text)
{
    char *end;
    if (!text || !*text)
        return INITIAL_MB;
    const unsigned long long mb = text[0] >= '0' && text[0] <= '9' ? strtoull(text, &end, 10) : 0;
    return mb > 0 && mb <= MOST_MB && !*end ? mb : 0;
}

tt_status_t tt_logfile_check(void)
{
    const char *text = getenv("TT_LOG_MB");
    return s_read(text)
               ? TT_OK
               : tt_err(TT_CONFIG, "TT_LOG_MB: '%s' is not a number of MiB, 1 to %d: the most that a process's log has",
                     text, MOST_MB);
}

uint64_t tt_logfile_limit(void)
{
    const uint64_t mb = s_read(getenv("TT_LOG_MB"));
    return (mb ? mb : INITIAL_MB) * MIB;
}

/* ---- the line that says what is missing ----------------------------------------------------------------------------- */

/*  At the beginning of `text`? */
static bool s_is_note(const char *text, size_t size, tt_logfile_gap_t *out)
{
    char line[NOTE_MOST], *end;
    const char *newline = memchr(text, '\n', size < sizeof line - 1 ? size : sizeof line - 1);
    const size_t begin = strlen(NOTE_BEGIN);
    if (!newline || size < begin || memcmp(text, NOTE_BEGIN, begin) != 0)
        return false;
    const size_t length = (size_t)(newline + 1 - text);
    memcpy(line, text, length);
    line[length] = '\0';
    out->dropped = strtoull(line + begin, &end, 10);
    out->after = out->at + (off_t)length;
    return strcmp(end, NOTE_END) == 0 && out->dropped > 0;
}

static tt_logfile_gap_t s_find(const char *text, size_t size)
{
    tt_logfile_gap_t gap = {0};
    for (const char *at = text; at; at = memchr(at, '\n', size - (size_t)(at - text)), at = at ? at + 1 : NULL) {
        gap.at = at - text;
        if (s_is_note(at, size - (size_t)gap.at, &gap))
            return gap;
    }
    return (tt_logfile_gap_t){0};
}

/*  Where a limit would let it begin, and somewhat later: who wrote in between is before it. */
tt_logfile_gap_t tt_logfile_gap(int fd)
{
    const size_t most = 2 * HEAD_MOST;
    char *text = tt_new0(most);
    const ssize_t size = pread(fd, text, most, 0);
    const tt_logfile_gap_t gap = s_find(text, size > 0 ? (size_t)size : 0);
    free(text);
    return gap;
}

/* ---- trim -------------------------------------------------------------------------------------------------------------- */

/*  Whole lines of the beginning. */
static off_t s_head(int fd, uint64_t limit)
{
    const size_t most = limit / HEAD_SHARE < HEAD_MOST ? (size_t)limit / HEAD_SHARE : HEAD_MOST;
    char *text = tt_new0(most);
    const ssize_t size = pread(fd, text, most, 0);
    const char *last = size > 0 ? memrchr(text, '\n', (size_t)size) : NULL;
    const off_t head = last ? last + 1 - text : 0;
    free(text);
    return head;
}

/*  The first line that begins behind `from`, if one does within a chunk. */
static off_t s_next_line(int fd, off_t from, char *chunk)
{
    const ssize_t size = pread(fd, chunk, CHUNK, from);
    const char *newline = size > 0 ? memchr(chunk, '\n', (size_t)size) : NULL;
    return newline && newline + 1 < chunk + size ? from + (newline + 1 - chunk) : from;
}

/*  All that lies behind `from`, and what is appended meanwhile, to where it is to lie; where that ends. Negative: it cannot be done. */
static off_t s_move(int fd, off_t from, off_t to, uint64_t limit, char *chunk)
{
    ssize_t got = 0;
    for (const off_t most = to + (off_t)limit; to < most && (got = pread(fd, chunk, CHUNK, from)) > 0;
         from += got, to += got)
        if (pwrite(fd, chunk, (size_t)got, to) != got)
            return -1;
    return got < 0 ? -1 : to;
}

/*  The newest part comes before what it is made of, and the file ends behind it: at no moment does what others append stand out of turn. */
static void s_trim(int fd, off_t size, uint64_t limit)
{
    tt_logfile_gap_t gap = tt_logfile_gap(fd);
    if (!gap.dropped)
        gap.at = gap.after = s_head(fd, limit);
    const off_t newest = size - (off_t)(limit / TAIL_SHARE);
    char *chunk = tt_new0(CHUNK), note[NOTE_MOST];
    const off_t from = s_next_line(fd, newest > gap.after ? newest : gap.after, chunk);
    const unsigned long long dropped = gap.dropped + (uint64_t)(from - gap.after);
    const int length = snprintf(note, sizeof note, NOTE_BEGIN "%llu" NOTE_END, dropped);
    if (pwrite(fd, note, (size_t)length, gap.at) == length) {
        const off_t end = s_move(fd, from, gap.at + length, limit, chunk);
        if (end >= 0)
            (void)!ftruncate(fd, end);
    }
    free(chunk);
}

void tt_logfile_trim(const char *path, uint64_t limit)
{
    struct stat info;
    if (stat(path, &info) != 0 || !S_ISREG(info.st_mode) || (uint64_t)info.st_size <= limit)
        return;
    const int fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return;
    const bool alone = flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && (uint64_t)info.st_size > (alone ? limit : 2 * limit))
        s_trim(fd, info.st_size, limit);
    close(fd);
}

/* ---- a reader ------------------------------------------------------------------------------------------------------------- */

/*  A file that became too large has lost what it had most of, and says so where that was. It may have grown again since, so its size alone does
 *  not tell. */
static void s_look_for_gap(tt_logfile_reader_t *self, int fd)
{
    struct stat info;
    if (fstat(fd, &info) != 0 || info.st_size == self->size)
        return;
    self->gap = tt_logfile_gap(fd);
    self->size = info.st_size;
}

/*  Where in the file goes on what was shown; behind the gap, or at the line that stands for it. *most: how far in one go. */
static off_t s_place(const tt_logfile_reader_t *self, size_t *most)
{
    const tt_logfile_gap_t *gap = &self->gap;
    const off_t behind = self->shown - gap->at - (off_t)gap->dropped;
    if (!gap->dropped || behind >= 0)
        return gap->dropped ? gap->after + behind : self->shown;
    const bool before = self->shown < gap->at;
    const off_t at = before ? self->shown : gap->at, left = (before ? gap->at : gap->after) - at;
    if (left < (off_t)*most)
        *most = (size_t)left;
    return at;
}

static void s_pass(tt_logfile_reader_t *self, off_t to)
{
    const tt_logfile_gap_t *gap = &self->gap;
    self->shown = gap->dropped && to >= gap->after ? to - gap->after + gap->at + (off_t)gap->dropped : to;
}

size_t tt_logfile_next(tt_logfile_reader_t *self, int fd, char *text, size_t most, bool to_the_end)
{
    size_t part = most;
    const bool held = flock(fd, LOCK_SH) == 0; /* some file systems have no locks */
    s_look_for_gap(self, fd);
    const off_t at = s_place(self, &part);
    const ssize_t got = pread(fd, text, part, at);
    if (held)
        (void)flock(fd, LOCK_UN);
    const char *last = got > 0 ? memrchr(text, '\n', (size_t)got) : NULL;
    const size_t size = last                                             ? (size_t)(last - text) + 1
                        : got > 0 && (to_the_end || (size_t)got == most) ? (size_t)got
                                                                         : 0;
    if (size)
        s_pass(self, at + (off_t)size);
    return size;
}
